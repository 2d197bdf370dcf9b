//! How a pairing string, which is a secret, comes into this program, and how it does not leave it: other users read the arguments of a
//! process in /proc, and the processes of this user its environment. Nothing is connected or stored here.
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::prompt;
use crate::cli::unknown::QUICK_TESTS;
use crate::exit::{Failure, Kind, unread};
use crate::input_file;
use crate::program;
use netduel_model::pairing::{Pairing, PairingError, without_strings};
use netduel_model::units::plural;

/// The environment variable with a pairing string.
const VARIABLE: &str = "NETDUEL_PAIRING";
/// The command beside the quick tests that takes a pairing string.
const PAIR: &str = "pair";
/// The word for standard input, as HOST or as the value of `--pairing-file`.
pub const STDIN: &str = "-";
/// The option with which the new process reads the string of [`VARIABLE`] for a named HOST.
const FROM_STDIN: &str = "--pairing-file=-";
/// Maximum length of a text with a pairing string, bytes.
pub const TEXT_LEN_MAX: u64 = 4096;

/// The pairing from standard input, which can be read once: a command may run several tests.
static FROM_INPUT: OnceLock<Pairing> = OnceLock::new();

/// Replaces this process by the same program with a pipe as its standard input when there is a pairing string in the arguments or in the
/// environment of a command that takes one. Returns when there is none. Refuses an argument that contains a string and other characters.
pub fn hide() -> Result<(), Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(before) = before_string(&words) {
        return Err(not_alone(before));
    }
    let variable = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
    let Some(hidden) = hidden(&words, variable.as_deref()) else { return Ok(()) };
    let failed = |error: io::Error| {
        let text = format!("failed to hide the pairing string from other users: {error}");
        Failure::caused(Kind::Environment, text, error)
            .remedy("name a file with the string with --pairing-file, or write - as HOST and enter it on standard input")
    };
    let mut command = Command::new(program::path());
    command.args(hidden.words.iter().skip(1)).env_remove(VARIABLE);
    if let Some(name) = hidden.words.first() {
        command.arg0(name);
    }
    if let Some(text) = hidden.text {
        if text.len() as u64 > TEXT_LEN_MAX {
            return Err(Failure::message(Kind::Usage, PairingError::Damaged));
        }
        let (reader, mut writer) = io::pipe().map_err(failed)?;
        // A pipe takes so many bytes without a reader (pipe(7)).
        writer.write_all(text.as_encoded_bytes()).map_err(failed)?;
        command.stdin(reader);
    }
    Err(failed(command.exec()))
}

/// The arguments of the new process, and its standard input if it differs.
#[derive(Debug, PartialEq, Eq)]
struct Hidden {
    words: Vec<OsString>,
    text: Option<OsString>,
}

/// The number of characters before the pairing string in an argument that is no string, but contains one. The command would show the argument
/// or a part of it in a message.
fn before_string(words: &[OsString]) -> Option<usize> {
    let index = command_index(words);
    let is_word = |index: usize, text: &str| words.get(index).is_some_and(|word| word == text);
    // The arguments of another program.
    if index == 1 && is_word(1, "lab") && is_word(2, "exec") {
        return None;
    }
    let command = words.get(index)?.to_str();
    let is_taken = command.is_some_and(|command| QUICK_TESTS.contains(&command) || command == PAIR);
    // A word alone is left out of messages; what only begins with a string is not, and leaves the arguments when the command takes strings.
    let is_hidden = |text: &str| {
        Pairing::looks_like(text) && (is_taken || text.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    let others = words.iter().skip(index).filter(|word| !word.to_str().is_some_and(is_hidden));
    others.map(|word| word.to_string_lossy()).find_map(|text| Pairing::place_in(&text))
}

fn not_alone(before: usize) -> Failure {
    let others = match before {
        0 => "other characters in it or after it".to_owned(),
        before => format!("{} before it", plural(before, "character")),
    };
    Failure::message(
        Kind::Usage,
        format!("an argument is no pairing string, but contains one, which has {others}"),
    )
    .remedy("copy the string again, whole and alone; it is a secret, and no other argument may contain it")
}

fn hidden(words: &[OsString], variable: Option<&OsStr>) -> Option<Hidden> {
    let index = command_index(words);
    let command = words.get(index)?.to_str()?;
    let is_test = QUICK_TESTS.contains(&command);
    if !is_test && command != PAIR {
        return None;
    }
    let is_string = |word: &OsString| word.to_str().is_some_and(Pairing::looks_like);
    let mut words = words.to_vec();
    if let Some(text) = words.iter().skip(index + 1).find(|word| is_string(word)).cloned() {
        for word in words.iter_mut().skip(index + 1).filter(|word| is_string(word)) {
            *word = STDIN.into();
        }
        return Some(Hidden { words, text: Some(text) });
    }
    // The program in a lab inherits the variable, and hides it itself.
    let variable = variable.filter(|_| index == 1)?;
    let is_stdin = words.iter().skip(2).any(|word| word == STDIN);
    let has_file = words.iter().any(|word| word.as_encoded_bytes().starts_with(b"--pairing-file"));
    let text = (is_stdin || (is_test && !has_file)).then(|| variable.to_owned());
    if text.is_some() && !is_stdin {
        words.insert(2, FROM_STDIN.into());
    }
    Some(Hidden { words, text })
}

/// The index of the command that may take a string: the first argument, or that of netduel in a guest of a lab, which inherits the standard
/// input of `lab exec`.
fn command_index(words: &[OsString]) -> usize {
    let is_word = |index: usize, text: &str| words.get(index).is_some_and(|word| word == text);
    let is_netduel = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == "netduel");
    let separator =
        words.iter().position(|word| word == "--").filter(|_| is_word(1, "lab") && is_word(2, "exec"));
    match separator {
        Some(separator) if words.get(separator + 1).is_some_and(is_netduel) => separator + 2,
        _ => 1,
    }
}

/// The pairing string from standard input, read by the first call; on a terminal it is asked for and not shown.
pub fn read_stdin() -> Result<Pairing, Failure> {
    if let Some(pairing) = FROM_INPUT.get() {
        return Ok(pairing.clone());
    }
    let mut input = io::stdin();
    let read = if input.is_terminal() {
        prompt::line("Pairing string (not shown): ", TEXT_LEN_MAX)
    } else {
        let mut bytes = Vec::new();
        let read = input.by_ref().take(TEXT_LEN_MAX).read_to_end(&mut bytes);
        read.and_then(|_| input_file::text_of(bytes)).map(Some)
    };
    let text = match read {
        Ok(Some(text)) => text,
        Ok(None) => return Err(Failure::message(Kind::Interrupted, "stopped by the user")),
        Err(error) => {
            let doing = "read the pairing string from standard input";
            return Err(unread(Kind::Usage, doing, error, "name a file with the string with --pairing-file"));
        }
    };
    let pairing: Pairing = text.trim().parse().map_err(|error| Failure::message(Kind::Usage, error))?;
    Ok(FROM_INPUT.get_or_init(|| pairing).clone())
}

/// The arguments of this process so that they can be stored and repeated: HOST:PORT in place of a pairing string.
pub fn repeatable(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let words = words.into_iter().filter(|word| word != FROM_STDIN);
    let mut repeatable: Vec<String> = words.map(|word| without_strings(&word)).collect();
    if let (Some(pairing), Some(word)) =
        (FROM_INPUT.get(), repeatable.iter_mut().skip(2).find(|word| *word == STDIN))
    {
        *word = pairing.server.to_string();
    }
    repeatable
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRING: &str = "netduel1abcdefgh";

    fn of(words: &str, variable: Option<&str>) -> Option<(String, Option<String>)> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let hidden = hidden(&words, variable.map(OsStr::new))?;
        let text = |word: &OsString| word.to_str().expect("text").to_owned();
        Some((hidden.words.iter().map(text).collect::<Vec<_>>().join(" "), hidden.text.as_ref().map(text)))
    }

    #[test]
    fn arguments_of_the_new_process_contain_no_string() {
        let hidden = |words: &str| Some((words.to_owned(), Some(STRING.to_owned())));
        assert_eq!(of(&format!("netduel tcp {STRING} -t 1"), None), hidden("netduel tcp - -t 1"));
        assert_eq!(of(&format!("n pair --json {STRING}"), Some("other")), hidden("n pair --json -"));
        assert_eq!(of("netduel rr far", Some(STRING)), hidden("netduel rr --pairing-file=- far"));
        assert_eq!(of("netduel rr -", Some(STRING)), hidden("netduel rr -"));
        assert_eq!(of("netduel pair -", Some(STRING)), hidden("netduel pair -"));
        let unread = Some(("netduel udp far --pairing-file x".to_owned(), None));
        assert_eq!(of("netduel udp far --pairing-file x", Some(STRING)), unread);
        for words in ["netduel tcp far", "netduel tcp -", "netduel", "netduel pair --list"] {
            assert_eq!(of(words, None), None, "{words}");
        }
        assert_eq!(of(&format!("netduel inspect {STRING}"), Some(STRING)), None);
        let in_lab = "netduel lab exec a -- /bin/netduel tcp";
        assert_eq!(of(&format!("{in_lab} {STRING}"), None), hidden(&format!("{in_lab} -")));
        assert_eq!(of(&format!("{in_lab} -"), Some(STRING)), None);
        assert_eq!(of(&format!("netduel lab exec a -- echo tcp {STRING}"), None), None);
    }

    #[test]
    fn argument_with_more_than_a_string_is_found() {
        let string = format!("netduel1{}", "7".repeat(88));
        let broken = format!("netduel1{}\n{}", "7".repeat(40), "7".repeat(48));
        let before = |words: &str| {
            let filled = |word: &str| word.replace("STRING", &string).replace("BROKEN", &broken);
            let words: Vec<OsString> = words.split(' ').map(|word| filled(word).into()).collect();
            before_string(&words)
        };
        for (words, expected) in [
            ("netduel", None),
            ("netduel tcp far", None),
            ("netduel tcp STRING", None),
            ("netduel tcp xSTRING", Some(1)),
            ("netduel tcp 'STRING' --json", Some(1)),
            ("netduel tcp -- STRING:5210", Some(0)),
            ("netduel tcp far --note k=STRING", Some(2)),
            // Standard input of the new process takes it, as a string that was copied with its line break.
            ("netduel tcp BROKEN", None),
            ("netduel inspect STRING", None),
            ("netduel inspect BROKEN", Some(0)),
            ("netduel xSTRING", Some(1)),
            ("netduel lab exec a -- echo xSTRING", None),
            ("netduel lab exec a -- netduel tcp xSTRING", Some(1)),
        ] {
            assert_eq!(before(words), expected, "{words}");
        }
    }
}
