//! What every command that asks Azure needs: the user's `az`, the time, and the exit code of an error.
use netduel_azure::az::CallError;
use netduel_azure::az::cause::Cause;
use netduel_azure::az::process::AzProcess;
use netduel_azure::deployment::BedError;

use crate::exit::{Failure, Kind};
use crate::signal;

/// The user's `az`, stopped by the signals that stop a command.
pub fn az() -> Result<AzProcess, Failure> {
    let is_over = signal::interrupted().map_err(|error| signal::unheard("Ctrl-C", error))?;
    Ok(AzProcess::new(is_over))
}

/// The time, seconds since 1970-01-01T00:00:00Z.
pub fn now_unix_s() -> u64 {
    netduel_sys::clock::realtime_ns() / 1_000_000_000
}

/// An error for `main`; `doing` completes "failed to ...".
pub fn failed(doing: &str, error: BedError) -> Failure {
    Failure::caused(kind(&error), format!("failed to {doing}: {error}"), error)
}

/// The exit code of an error.
fn kind(error: &BedError) -> Kind {
    match error {
        BedError::Interrupted | BedError::RequestInterrupted { .. } | BedError::StartInterrupted { .. } => {
            Kind::Interrupted
        }
        BedError::Version { .. } => Kind::Environment,
        BedError::Call(error) => kind_of_call(error),
        _ => Kind::Bed,
    }
}

/// The exit code of a call of `az` without an answer.
pub fn kind_of_call(error: &CallError) -> Kind {
    match error {
        CallError::Interrupted { .. } => Kind::Interrupted,
        CallError::Start { .. }
        | CallError::Failed { cause: Cause::Login { .. } | Cause::Version { .. }, .. } => Kind::Environment,
        _ => Kind::Bed,
    }
}
