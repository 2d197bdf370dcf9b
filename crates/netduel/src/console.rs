//! Standard output and this terminal. What a command prints as its result goes through here; progress and errors do not.
use std::io::{IsTerminal as _, Write as _};

use crate::exit::{Failure, Kind};

/// Tables are laid out for this width when the terminal does not tell its own.
const WIDTH_DEFAULT: usize = 110;

/// Prints a text on standard output; a reader that has gone (`| head`) is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::message(Kind::Environment, format!("failed to write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::message(Kind::Internal, error))?;
    print(&format!("{text}\n"))
}

/// Columns of this terminal, and whether colours are welcome.
pub fn page_layout() -> (usize, bool) {
    let width = terminal_size::terminal_size().map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0));
    (width, std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}
