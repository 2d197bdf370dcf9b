//! Why a part of the test bed failed. Every message completes "failed to ...".
use std::io;
use std::path::{Path, PathBuf};

/// The result of a step.
pub type Result<T> = std::result::Result<T, Error>;

/// The failure of a step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// What was being done, for example `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A program that could not start.
    #[error("start `{program}` to {purpose}: {source}; is it installed, and in PATH?")]
    Start {
        /// The program.
        program: String,
        /// What it was started for.
        purpose: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A program that ended with an error.
    #[error("{purpose}: `{command}` ended with {status}:\n{output}")]
    Program {
        /// What it was started for.
        purpose: String,
        /// The command as typed.
        command: String,
        /// Its exit status.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// Something that this machine lacks.
    #[error("find {what}: {remedy}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A file with other contents than expected.
    #[error("read {}: {reason}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A guest that did not get to a state.
    #[error(
        "{waiting_for} in guest {guest}: {reason}; the end of its console and of QEMU's messages:\n{console}"
    )]
    Guest {
        /// The guest.
        guest: String,
        /// What was being waited for or done.
        waiting_for: String,
        /// Why it failed.
        reason: String,
        /// The last lines of the console.
        console: String,
    },
    /// A command that QEMU refused.
    #[error("run the QMP command {command} for guest {guest}: {reason}")]
    Qmp {
        /// The guest.
        guest: String,
        /// The command.
        command: String,
        /// QEMU's error.
        reason: String,
    },
}

/// For `map_err` of an operation on a file.
pub fn file<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::File { action, path: path.to_owned(), source }
}

/// The last lines of a text.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
