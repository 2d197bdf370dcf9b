//! Standard output and this terminal, for the results of commands. Progress and errors do not go through here.
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_report::json::error::ErrorDocument;
use netduel_report::words;

use crate::exit::{Failure, Kind};
use crate::program;
use crate::quick::string_input::without_strings;

/// Assumed width of a terminal that does not report its own.
const WIDTH_DEFAULT: usize = 110;

/// Prints a text on standard output; a closed reader (`| head`) is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints the help or the version that the parser of the command line has made.
pub fn print_help(help: &clap::Error) -> Result<(), Failure> {
    printed(help.print().and_then(|()| std::io::stdout().flush()))
}

fn printed(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let text = format!("failed to write to standard output: {error}");
            Err(Failure::caused(Kind::Store, text, error))
        }
        _ => Ok(()),
    }
}

/// Prints a text for people on standard output, without control characters. On a terminal its lines are wrapped at spaces.
pub fn print_lines(text: &str) -> Result<(), Failure> {
    print(&broken(&plain_lines(text), terminal_width(std::io::stdout())))
}

/// Prints a message on standard error, without control characters and without pairing strings. On a terminal its lines are wrapped at spaces. A message that cannot be written, because
/// its reader has gone or the disk is full, does not end the command: its result matters more.
pub fn tell(text: &str) {
    drop(writeln!(std::io::stderr(), "{}", message(text)));
}

/// A message as [`tell`] prints it, for a display that writes to standard error itself.
pub fn message(text: &str) -> String {
    broken(&plain_lines(&without_strings(text)), terminal_width(std::io::stderr()))
}

/// A text whose lines cannot control the terminal: plans, hosts and other programs have a part in it.
fn plain_lines(text: &str) -> String {
    text.split('\n').map(words::plain).collect::<Vec<_>>().join("\n")
}

/// Whether a message has neither control characters nor pairing strings.
pub fn is_safe(text: &str) -> bool {
    plain_lines(&without_strings(text)) == text
}

fn terminal_width(output: impl AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(output).map(|(width, _)| usize::from(width.0))
}

/// Wraps long lines at spaces; continuation lines are indented by two more columns. A word longer than the width is not broken:
/// it may be an address or a command.
fn broken(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    text.split('\n').map(|line| broken_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn broken_line(line: &str, width: usize) -> String {
    let own = line.chars().take_while(|c| *c == ' ').count();
    let indent = " ".repeat(own + 2);
    let (mut broken, mut rest) = (String::new(), line.to_owned());
    while rest.chars().count() > width {
        let spaces = rest.char_indices().enumerate().filter(|(_, (_, c))| *c == ' ');
        let mut after_indent = spaces.skip_while(|(column, _)| *column <= own + 2);
        let first = after_indent.clone().next();
        let fitting = after_indent.by_ref().take_while(|(column, _)| *column <= width).last();
        let Some((_, (at, _))) = fitting.or(first) else { break };
        broken.push_str(rest[..at].trim_end());
        broken.push('\n');
        rest = format!("{indent}{}", rest[at..].trim_start());
    }
    broken + rest.trim_end()
}

/// Whether a document was printed: standard output has at most one.
static DOCUMENT_PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a document as indented JSON.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| Failure::message(Kind::Internal, error))?;
    DOCUMENT_PRINTED.store(true, Ordering::Relaxed);
    print(&format!("{text}\n"))
}

/// Prints a document as one line of a stream of documents.
pub fn print_json_line(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(document).map_err(|error| Failure::message(Kind::Internal, error))?;
    print(&format!("{text}\n"))
}

/// Prints the error of a command with JSON output, unless it already printed its document: one line in a stream of documents.
pub fn print_json_error(failure: &Failure, is_stream: bool) {
    if DOCUMENT_PRINTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let document = ErrorDocument::of(failure.info(), Vec::new(), &program::origin());
    // The failure is printed on standard error in any case.
    drop(if is_stream { print_json_line(&document) } else { print_json(&document) });
}

/// Width of this terminal in columns, and whether to use colours.
pub fn page_layout() -> (usize, bool) {
    let width = terminal_size::terminal_size().map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0));
    let has_colours = std::io::stdout().is_terminal()
        && has_control_sequences()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    (width, has_colours)
}

/// Whether the terminal has colours and moves its cursor. A terminal `dumb` has neither (terminfo).
pub fn has_control_sequences() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_spaces() {
        let text = "check: synthetic    ipv4  ok: 100.0 % by syn0 at the client, 100.0 % by syn0 at the server, round trip p50 91 us\n  \
                    a second line";
        for width in [20, 40, 60, 80] {
            let broken = broken(text, Some(width));
            assert!(broken.lines().all(|line| line.chars().count() <= width), "{width}: {broken}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&broken), words(text));
            assert!(broken.lines().skip(1).all(|line| line.starts_with("  ")), "{broken}");
        }
        assert_eq!(broken(text, None), text);
        assert_eq!(broken(text, Some(200)), text);
    }

    #[test]
    fn word_wider_than_the_terminal_is_not_broken() {
        let long = "x".repeat(90);
        assert_eq!(
            broken(&format!("netduel tcp {long} -t 3"), Some(80)),
            format!("netduel tcp\n  {long}\n  -t 3")
        );
        assert_eq!(broken(&long, Some(80)), long);
    }
}
