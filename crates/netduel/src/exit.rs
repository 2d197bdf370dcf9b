//! How a command fails: an error for people and a documented exit code for scripts (`docs/exit-codes.md`).
use std::error::Error;
use std::fmt;
use std::io;

use netduel_control::coordinator::RunErrorKind;
use netduel_model::file_error;
use netduel_report::json::envelope::ErrorInfo;

pub use netduel_agent::chain;

use netduel_model::pairing::without_strings;

use crate::kept_files;
use crate::redaction;

/// The kinds of failure, each with its exit code. [`EXIT_STATUS`] has their meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal = 1,
    Usage = 2,
    Environment = 3,
    Host = 4,
    Store = 5,
    NoVerdict = 6,
    Lab = 7,
    Findings = 8,
    NoSuchRun = 9,
    NotPaired = 10,
    Gate = 11,
    Bed = 12,
    Interrupted = 130,
}

impl From<RunErrorKind> for Kind {
    fn from(kind: RunErrorKind) -> Self {
        match kind {
            RunErrorKind::Usage => Self::Usage,
            RunErrorKind::Environment => Self::Environment,
            RunErrorKind::Host => Self::Host,
            RunErrorKind::Store => Self::Store,
            RunErrorKind::Lab => Self::Lab,
            RunErrorKind::Provider => Self::Bed,
            RunErrorKind::Internal => Self::Internal,
        }
    }
}

/// Every exit code with its meaning, for the man pages; `docs/exit-codes.md` has the same meanings with remedies.
pub const EXIT_STATUS: &[(i32, &str)] = &[
    (0, "success"),
    (Kind::Internal as i32, "internal error: a bug in netduel"),
    (Kind::Usage as i32, "invalid command line, plan or bed file"),
    (
        Kind::Environment as i32,
        "the environment lacks something: a permission, a kernel feature, a program; or no agent can be started on a host (ssh fails, no such \
         namespace)",
    ),
    (
        Kind::Host as i32,
        "a host, its agent or a paired server failed: the agent did not start or answer, the server could not be reached, or one of them ended, runs \
         another version, is full, was not restored, or its rules refuse the test",
    ),
    (
        Kind::Store as i32,
        "the store or another output failed: disk full, no permission, unreadable, in use, or written by a newer version",
    ),
    (
        Kind::NoVerdict as i32,
        "the run ended, but a comparison has no data: its trials are missing or excluded",
    ),
    (Kind::Lab as i32, "a lab problem: its name is taken, there is no such lab, or a step in it failed"),
    (Kind::Findings as i32, "`netduel inspect` found something at or above the severity of `--fail-on`"),
    (
        Kind::NoSuchRun as i32,
        "no stored run has this name, no file has this path, or several runs begin with the name",
    ),
    (Kind::NotPaired as i32, "there is no pairing with this host"),
    (
        Kind::Gate as i32,
        "a verdict proves a regression that `--fail-if` names; with `--strict` also: it does not rule one out",
    ),
    (
        Kind::Bed as i32,
        "a bed on Azure could not be created, found, used or deleted, or a NIC or VM of a treatment not be changed: Azure refused, a resource group that is no bed \
         has its name, its VMs do not run, or its guests contradict what Azure claims",
    ),
    (Kind::Interrupted as i32, "interrupted (Ctrl-C, SIGTERM or SIGHUP); finished trials are kept"),
];

/// Start of a message that a lower-case fragment completes.
const FAILED_TO: &str = "failed to ";

/// A message with the text of its cause.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Caused {
    message: String,
    #[source]
    cause: Box<dyn Error + Send + Sync>,
}

/// An error for `main`.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub kind: Kind,
    /// The failed operation, its object and the reason.
    pub error: anyhow::Error,
    /// The remedy, unless the message contains it.
    pub remedy: Option<String>,
}

impl Failure {
    /// A failure of a kind from any error.
    pub fn new(kind: Kind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, error: error.into(), remedy: None }
    }
    /// A failure of a kind from a message.
    pub fn message(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, error: anyhow::anyhow!("{message}"), remedy: None }
    }
    /// A failure of a kind from a message that contains the text of its cause, which a JSON document names separately.
    pub fn caused(
        kind: Kind,
        message: impl fmt::Display,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::new(kind, Caused { message: message.to_string(), cause: cause.into() })
    }
    /// The same with a remedy.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
    /// The error of a JSON document.
    pub fn info(&self) -> ErrorInfo {
        let shown = |text: String| redaction::text(&without_strings(&text));
        let message = shown(self.to_string());
        let root = self.error.chain().skip(1).last().map(|root| shown(root.to_string()));
        // An error without a source of its own is the message.
        let cause = root.filter(|root| !message.trim_start_matches(FAILED_TO).starts_with(root.as_str()));
        ErrorInfo { message, cause, exit_code: self.kind as i32 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self.error.as_ref()))?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

/// A thread that could not be started.
pub fn no_thread(doing: &str, error: io::Error) -> Failure {
    Failure::caused(Kind::Environment, format!("failed to start a thread to {doing}: {error}"), error).remedy(
        "raise the limit of threads (`ulimit -u`, TasksMax= of the service, pids.max of a container, kernel.threads-max)",
    )
}

/// What could not be read. `doing`: the operation and its object. `otherwise`: what helps whatever the cause is; the remedy of the cause precedes it.
pub fn unread(kind: Kind, doing: impl fmt::Display, error: io::Error, otherwise: &str) -> Failure {
    let remedy = file_error::remedy(file_error::to_read(&error), otherwise);
    Failure::caused(kind, format!("{FAILED_TO}{doing}: {error}"), error).remedy(remedy)
}

/// As [`unread`], about what could not be written, created or removed. A file that the command reads, or a run of its store, was named by mistake.
pub fn unwritten(kind: Kind, doing: impl fmt::Display, error: io::Error, otherwise: &str) -> Failure {
    let kind = if kept_files::is_refusal(&error) { Kind::Usage } else { kind };
    let remedy = file_error::remedy(file_error::to_write(&error), otherwise);
    Failure::caused(kind, format!("{FAILED_TO}{doing}: {error}"), error).remedy(remedy)
}

/// Attaches an exit code to an error: `store.list().kind(Kind::Store)?`.
pub trait OrFail<T> {
    /// The same result with a kind.
    fn kind(self, kind: Kind) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrFail<T> for Result<T, E> {
    fn kind(self, kind: Kind) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(kind, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to open x: {0}")]
    struct Outer(#[source] io::Error);

    #[test]
    fn cause_is_printed_once() {
        let outer = Outer(io::Error::other("no such thing"));
        let failure = Failure::new(Kind::Store, anyhow::Error::new(outer).context("the run stopped"));
        assert_eq!(failure.to_string(), "the run stopped: failed to open x: no such thing");
    }

    #[test]
    fn error_of_a_document_has_its_innermost_cause_and_its_remedy_in_the_message() {
        let outer = Outer(io::Error::other("no such thing"));
        let info = Failure::new(Kind::Store, outer).remedy("make x").info();
        assert_eq!(info.message, "failed to open x: no such thing; make x");
        assert_eq!(info.cause.as_deref(), Some("no such thing"));
        assert_eq!((info.exit_code, Failure::message(Kind::Usage, "x").info().cause), (5, None));
    }

    #[test]
    fn message_with_the_text_of_its_cause_keeps_the_cause_apart() {
        let denied = io::Error::other("permission denied");
        let info = Failure::caused(Kind::Store, format!("failed to write x: {denied}; use y"), denied).info();
        assert_eq!(
            (info.message.as_str(), info.cause.as_deref()),
            ("failed to write x: permission denied; use y", Some("permission denied"))
        );
        let whole = io::Error::other("find lab x");
        assert_eq!(Failure::caused(Kind::Lab, format!("failed to {whole}"), whole).info().cause, None);
    }

    #[test]
    fn documentation_has_every_exit_code_with_its_meaning() {
        let page = include_str!("../../../docs/exit-codes.md");
        let row = |line: &'static str| {
            let mut cells = line.split('|').skip(1).map(str::trim);
            Some((cells.next()?.parse::<i32>().ok()?, cells.next()?))
        };
        assert_eq!(page.lines().filter_map(row).collect::<Vec<_>>(), EXIT_STATUS);
    }

    #[test]
    fn trials_without_data_have_the_word_of_the_screens() {
        let meaning = EXIT_STATUS.iter().find(|(code, _)| *code == Kind::NoVerdict as i32);
        assert!(meaning.is_some_and(|(_, text)| text.ends_with("its trials are missing or excluded")));
    }
}
