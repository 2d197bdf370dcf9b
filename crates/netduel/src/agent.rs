//! The command `agent`: serves a coordinator over standard input and output. The work is in the crate `netduel-agent`.
use netduel_agent::{AgentWork, Monotonic};
use netduel_sys::local_bind::LocalBind;

use crate::exit::{Failure, Kind, OrFail as _, unread};

/// Prints the SHA-256 of this program's file.
pub fn print_checksum() -> Result<(), Failure> {
    let checksum = crate::ssh::own_checksum().map_err(|error| {
        unread(Kind::Environment, "read the file of this program", error, "install netduel again")
    })?;
    crate::console::print_exact(&format!("{checksum}\n"))
}

/// Serves one coordinator until its end.
pub fn command(bind: Option<LocalBind>) -> Result<(), Failure> {
    let mut work = AgentWork::new().bound_to(bind.unwrap_or(LocalBind::ANY));
    netduel_control::agent::serve(
        std::io::stdin(),
        std::io::stdout(),
        &mut work,
        netduel_model::PROGRAM,
        &Monotonic,
    )
    .kind(Kind::Host)
}
