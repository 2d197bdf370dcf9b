//! Questions before something is deleted: asked on the terminal, refused without one.
use std::io::{IsTerminal as _, Write as _};

use netduel_report::words;

use crate::exit::{Failure, Kind, OrFail as _};

/// Asks a question; refuses without a terminal. `command` is the one that needs `--yes` then.
pub fn confirmed(command: &str, question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        let text = format!("{command} needs a confirmation, and standard input is not a terminal");
        return Err(Failure::message(Kind::Usage, text).remedy("add --yes"));
    }
    let mut terminal = std::io::stderr();
    // The terminal may be closed; then there is no answer either.
    drop(write!(terminal, "{} [y/N] ", words::plain(question)).and_then(|()| terminal.flush()));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).kind(Kind::Environment)?;
    Ok(is_yes(&answer))
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
