//! Runs a program to its end and returns what it printed. Decides nothing about the result but whether it succeeded.
use std::process::{Command, Output, Stdio};

use crate::error::{Error, Result, last_lines};

/// Lines of output in an error.
const LINES: usize = 20;

/// Runs the command without input. `purpose` completes "failed to".
pub fn output_of(command: &mut Command, purpose: &str) -> Result<Vec<u8>> {
    let output = any_output_of(command, purpose)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failure(command, purpose, &output))
}

/// Runs the command with the input and output that it has.
pub fn succeeds(command: &mut Command, purpose: &str) -> Result<()> {
    let child = command.stderr(Stdio::piped()).spawn();
    let output = child.and_then(std::process::Child::wait_with_output);
    let output = output.map_err(|source| not_started(command, purpose, source))?;
    if output.status.success() { Ok(()) } else { Err(failure(command, purpose, &output)) }
}

/// As [`output_of`], as text.
pub fn text_of(command: &mut Command, purpose: &str) -> Result<String> {
    output_of(command, purpose).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The output of a command, whatever its status.
pub fn any_output_of(command: &mut Command, purpose: &str) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|source| not_started(command, purpose, source))
}

/// The error of a program that does not start.
pub fn not_started(command: &Command, purpose: &str, source: std::io::Error) -> Error {
    let program = command.get_program().to_string_lossy().into_owned();
    Error::Start { program, purpose: purpose.to_owned(), source }
}

/// The error of a program that ended with a status other than 0.
pub fn failure(command: &Command, purpose: &str, output: &Output) -> Error {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Error::Program {
        purpose: purpose.to_owned(),
        command: shown(command),
        status: output.status.to_string(),
        output: last_lines(&text, LINES),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
