//! Questions before something is deleted: asked on the terminal, refused without one.
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use netduel_report::words;

use crate::exit::{Failure, Kind, unread};
use crate::signal::unless_interrupted;

/// Asks a question; refuses without a terminal. `command` is the one that needs `--yes` then. A signal ends the wait also where the command
/// handles signals.
pub fn confirmed(command: &str, question: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let text = format!("{command} needs a confirmation, and standard input is not a terminal");
        return Err(Failure::message(Kind::Usage, text).remedy("add --yes"));
    }
    let mut terminal = io::stderr();
    // The terminal may be closed; then there is no answer either.
    drop(write!(terminal, "{} [y/N] ", words::plain(question)).and_then(|()| terminal.flush()));
    let answer = unless_interrupted(read_answer).and_then(Option::transpose).map_err(|error| {
        unread(Kind::Environment, format!("read the answer to {command}"), error, "add --yes")
    })?;
    let Some(answer) = answer else {
        // The cursor is behind the question.
        drop(writeln!(terminal));
        let text = format!("{command} was interrupted; nothing was deleted");
        return Err(Failure::message(Kind::Interrupted, text));
    };
    Ok(is_yes(&String::from_utf8_lossy(&answer)))
}

/// Reads a line, of any bytes.
fn read_answer() -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut answer)?;
    Ok(answer)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_confirms() {
        assert!(is_yes("y\n") && is_yes(" YES\n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("yep\n"));
    }
}
