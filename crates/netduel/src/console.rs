//! Standard output and this terminal, for the results of commands. Progress and errors do not go through here.
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netduel_report::json::error::ErrorDocument;
use netduel_report::words;

use crate::exit::{Failure, Kind, unwritten};
use crate::program;
use crate::redaction;
use netduel_model::pairing::without_strings;

/// The first character of a control sequence.
const ESCAPE: char = '\u{1b}';
/// GitHub sets it to `true` in every step of a workflow.
const IN_GITHUB: &str = "GITHUB_ACTIONS";
/// Azure Pipelines set it in every step.
const IN_AZURE_PIPELINES: &str = "TF_BUILD";
/// What begins a command anywhere in a line, to a workflow of GitHub and to a pipeline of Azure; and what is printed in its place, in a text and
/// in a string of JSON.
const COMMANDS_ANYWHERE: [(&str, &str, &str); 2] =
    [("##[", "## [", "##\\u005b"), ("##vso[", "## vso[", "##vso\\u005b")];
/// What begins a command to a workflow of GitHub at the start of a line.
const COMMAND_AT_START: &str = "::";
/// Assumed width of a terminal that does not report its own.
const WIDTH_DEFAULT: usize = 110;

/// Prints a text for people on standard output as it is laid out, without control characters except those of colours, on a terminal that
/// has them. Every text is a text from outside here: plans, hosts, file names and other programs have a part in it.
pub fn print(text: &str) -> Result<(), Failure> {
    print_exact(&as_printed(text))
}

/// The text that [`print()`] prints.
pub fn as_printed(text: &str) -> String {
    without_commands(laid_out(text, page_layout().1))
}

/// Whether a workflow of GitHub reads the outputs.
pub fn is_in_workflow() -> bool {
    std::env::var_os(IN_GITHUB).is_some_and(|value| value == "true")
}

/// Whether lines of some forms are commands to what reads the outputs, for example one that ignores all later ones or sets a variable.
fn are_commands_read() -> bool {
    is_in_workflow() || std::env::var_os(IN_AZURE_PIPELINES).is_some()
}

/// Prints a text for programs on standard output: one without control characters, or a page. A closed reader (`| head`) is not an error.
pub fn print_exact(text: &str) -> Result<(), Failure> {
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
            Err(unwritten(Kind::Store, "write to standard output", error, "redirect it to another place"))
        }
        _ => Ok(()),
    }
}

/// Prints a text for people on standard output, without control characters. On a terminal its lines are wrapped at spaces.
pub fn print_lines(text: &str) -> Result<(), Failure> {
    print_exact(&without_commands(broken(&plain_lines(text), terminal_width(std::io::stdout()))))
}

/// Prints a message on standard error, without control characters and without pairing strings. On a terminal its lines are wrapped at spaces. A message that cannot be written, because
/// its reader has gone or the disk is full, does not end the command: its result matters more.
pub fn tell(text: &str) {
    if let Some(held) = held().as_mut() {
        return held.lines.push(text.to_owned());
    }
    drop(writeln!(std::io::stderr(), "{}", message(text)));
}

/// Prints a command to a workflow on standard error, without control characters and without pairing strings. As with [`tell`], an error ends
/// nothing.
pub fn tell_command(line: &str) {
    drop(writeln!(std::io::stderr(), "{}", plain_lines(&redaction::text(&without_strings(line)))));
}

/// Messages that wait until a display of the whole terminal has ended.
#[derive(Default)]
struct Held {
    lines: Vec<String>,
    /// Number of them that the display has taken.
    shown: usize,
}

static HELD: Mutex<Option<Held>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Held>> {
    // A thread that panicked has left whole lines.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds messages back from now on, for a display of the whole terminal.
pub fn hold() {
    held().get_or_insert_default();
}

/// The messages since the last call, for the display.
pub fn take_shown() -> Vec<String> {
    let mut held = held();
    let Some(held) = held.as_mut() else { return Vec::new() };
    let new = held.lines[held.shown..].iter().map(|line| redaction::text(&without_strings(line))).collect();
    held.shown = held.lines.len();
    new
}

/// Prints the messages that were held back; later ones are printed at once.
pub fn release() {
    let lines = held().take().map(|held| held.lines).unwrap_or_default();
    for line in &lines {
        tell(line);
    }
}

/// A message as [`tell`] prints it, for a display that writes to standard error itself.
pub fn message(text: &str) -> String {
    let text = plain_lines(&redaction::text(&without_strings(text)));
    without_commands(broken(&text, terminal_width(std::io::stderr())))
}

/// A text of which no line is a command to what reads it: plans, hosts and other programs have a part in it.
fn without_commands(text: String) -> String {
    if are_commands_read() { text.split('\n').map(no_command).collect::<Vec<_>>().join("\n") } else { text }
}

/// A line that is no command.
fn no_command(line: &str) -> String {
    let commands = COMMANDS_ANYWHERE.into_iter();
    let line = commands.fold(line.to_owned(), |line, (start, shown, _)| line.replace(start, shown));
    let Some(rest) = line.trim_start().strip_prefix(COMMAND_AT_START) else { return line };
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    format!("{indent}: :{rest}")
}

/// JSON of which no line is a command to what reads it. Outside of strings it has no such characters.
pub fn json_without_commands(json: String) -> String {
    if !are_commands_read() {
        return json;
    }
    COMMANDS_ANYWHERE.into_iter().fold(json, |json, (start, _, escaped)| json.replace(start, escaped))
}

/// A text whose lines cannot control the terminal: plans, hosts and other programs have a part in it.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(words::plain).collect::<Vec<_>>().join("\n")
}

/// A text whose lines cannot control the terminal, except for its colours.
fn laid_out(text: &str, has_colours: bool) -> String {
    text.split('\n').map(|line| laid_out_line(line, has_colours)).collect::<Vec<_>>().join("\n")
}

fn laid_out_line(line: &str, has_colours: bool) -> String {
    let mut parts = line.split(ESCAPE);
    let mut safe = parts.next().map(words::plain).unwrap_or_default();
    for part in parts {
        let colour = if has_colours { colour_len(part) } else { 0 };
        let (colour, rest) = part.split_at(colour);
        safe.push(if colour.is_empty() { char::REPLACEMENT_CHARACTER } else { ESCAPE });
        safe.push_str(colour);
        safe.push_str(&words::plain(rest));
    }
    safe
}

/// Length of what follows an escape character when both select a colour or a style (SGR in ECMA-48), else 0.
fn colour_len(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix('[') else { return 0 };
    let length = parameters.chars().take_while(|c| c.is_ascii_digit() || *c == ';').count();
    if parameters[length..].starts_with('m') { length + 2 } else { 0 }
}

/// Whether a message has neither control characters nor pairing strings, and is no command.
pub fn is_safe(text: &str) -> bool {
    without_commands(plain_lines(&without_strings(text))) == text
}

fn terminal_width(output: impl AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(output).map(|(width, _)| usize::from(width.0))
}

/// Wraps long lines at spaces; continuation lines are indented by two more columns than the text of the line. A word longer than the width is not
/// broken: it may be an address or a command.
fn broken(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    text.split('\n').map(|line| broken_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn broken_line(line: &str, width: usize) -> String {
    let own = text_column(line, width);
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

/// The column of the text of a line: behind its indentation, and behind the title of a row, which two spaces or more separate from the text. A title
/// that takes half of the width has no column beside it.
fn text_column(line: &str, width: usize) -> usize {
    let rest = line.trim_start_matches(' ');
    let indentation = line.len() - rest.len();
    let of_row = || {
        let (title, text) = rest.split_once("  ").filter(|_| indentation > 0)?;
        let gap = 2 + text.chars().take_while(|c| *c == ' ').count();
        Some(indentation + title.chars().count() + gap)
    };
    of_row().filter(|column| column * 2 <= width).unwrap_or(indentation)
}

/// Whether a document was printed: standard output has at most one.
static DOCUMENT_PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a document as indented JSON.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = json(document)?;
    DOCUMENT_PRINTED.store(true, Ordering::Relaxed);
    print_exact(&json_without_commands(text))
}

/// A document as indented JSON with a line end.
pub fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| Failure::message(Kind::Internal, error))?;
    Ok(format!("{}\n", escaped(&text)))
}

/// JSON whose strings have no character that controls a terminal: JSON requires the escape of those below U+0020 only. Outside of
/// strings there is none but the line ends.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && words::controls_output(c) {
            // JSON has two escapes for a character above U+FFFF.
            for unit in &*c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Prints a document as one line of a stream of documents.
pub fn print_json_line(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(document).map_err(|error| Failure::message(Kind::Internal, error))?;
    print_exact(&json_without_commands(format!("{}\n", escaped(&text))))
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

/// Longest line of an error of the command line, characters: a message repeats the invalid value, which may be of any length.
const ERROR_LINE_MAX: usize = 1_000;

/// The text with the middle of overlong lines left out.
pub fn bounded_lines(text: &str) -> String {
    let bounded = |line: &str| {
        let length = line.chars().count();
        if length <= ERROR_LINE_MAX {
            return line.to_owned();
        }
        let part = ERROR_LINE_MAX / 2;
        let (first, last) = (line.chars().take(part), line.chars().skip(length - part));
        format!("{} ... {}", first.collect::<String>(), last.collect::<String>())
    };
    text.split('\n').map(bounded).collect::<Vec<_>>().join("\n")
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
    fn overlong_line_keeps_its_beginning_and_its_end() {
        let long = format!("invalid value '{}' for '--title'\nsecond", "x".repeat(100_000));
        let bounded = bounded_lines(&long);
        assert!(bounded.len() < 1_100, "{}", bounded.len());
        assert!(bounded.starts_with("invalid value 'x") && bounded.ends_with("x' for '--title'\nsecond"));
        assert_eq!(bounded_lines("short\n"), "short\n");
    }

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
    fn continuation_of_a_row_with_a_title_stands_in_the_column_of_its_text() {
        let rows = "  arms       one (baseline): client -> server, network synthetic\n\
                    \x20            other: client -> server, network accelerated";
        let wrapped = broken(rows, Some(40));
        let column = " ".repeat(13);
        assert!(wrapped.lines().count() > 3, "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with(&column)), "{wrapped}");
        let wide = broken("  a-long-title-of-a-row  text text", Some(20));
        assert_eq!(wide, "  a-long-title-of-a-row\n    text text");
    }

    #[test]
    fn text_has_no_control_characters_but_colours() {
        let text = "\u{1b}[1mbold\u{1b}[0m\n\u{1b}[2J\u{9b}2J\u{1b}]0;x\u{7}\u{202e}\u{1b}[31";
        let foreign = "\u{fffd}[2J\u{fffd}2J\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}[31";
        assert_eq!(laid_out(text, true), format!("\u{1b}[1mbold\u{1b}[0m\n{foreign}"));
        assert_eq!(laid_out(text, false), format!("\u{fffd}[1mbold\u{fffd}[0m\n{foreign}"));
        assert_eq!(laid_out("a\n\nb\n", true), "a\n\nb\n");
    }

    #[test]
    fn json_has_no_control_characters_and_the_same_value() {
        let value = "a\u{9b}2J\u{7f}\u{1b}\u{202e}\u{2028}\n\u{e9}\u{feff}\u{e0041}";
        let text = json(&[value]).expect("a document");
        assert!(text.chars().all(|c| c == '\n' || !words::controls_output(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).expect("JSON"), [value]);
    }

    #[test]
    fn line_that_would_be_a_command_to_a_workflow_is_none() {
        for (line, shown) in [
            ("::error::x", ": :error::x"),
            (" \u{3000}::stop-commands::x", " \u{3000}: :stop-commands::x"),
            ("failed: ##[error]x ###[group]y", "failed: ## [error]x ### [group]y"),
            ("a##vso[task.setvariable variable=x]y", "a## vso[task.setvariable variable=x]y"),
            ("fd77::2 a ::error::x # [1]", "fd77::2 a ::error::x # [1]"),
            ("", ""),
        ] {
            assert_eq!(no_command(line), shown);
        }
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
