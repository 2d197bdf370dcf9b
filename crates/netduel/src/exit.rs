//! How a command fails: an error for people and a documented exit code for scripts (`docs/exit-codes.md`).
use std::fmt;

pub use netduel_agent::chain;

/// The kinds of failure, each with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bug in this program.
    Internal = 1,
    /// Wrong words on the command line, or a plan that makes no sense.
    Usage = 2,
    /// This machine lacks something: a permission, a kernel feature, a tool.
    Environment = 3,
    /// A host or its agent failed.
    Host = 4,
    /// The store failed: disk full, unreadable, written by a newer version.
    Store = 5,
    /// The run ended, but too few trials count for a verdict.
    NoVerdict = 6,
    /// The local lab: name clash, no such lab.
    Lab = 7,
    /// `inspect` found something at least as grave as was asked for.
    Findings = 8,
    /// Stopped by the user; finished trials are kept.
    Interrupted = 130,
}

/// A failure on its way to `main`.
#[derive(Debug)]
pub struct Failure {
    /// Which exit code.
    pub kind: Kind,
    /// What to tell.
    pub error: anyhow::Error,
}

impl Failure {
    /// A failure of a kind from any error.
    pub fn new(kind: Kind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, error: error.into() }
    }
    /// A failure of a kind from a message.
    pub fn message(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, error: anyhow::anyhow!("{message}") }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self.error.as_ref()))
    }
}

/// Gives an error its exit code: `store.list().kind(Kind::Store)?`.
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
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_cause_is_said_once() {
        let outer = Outer(std::io::Error::other("no such thing"));
        let failure = Failure::new(Kind::Store, anyhow::Error::new(outer).context("the run stopped"));
        assert_eq!(failure.to_string(), "the run stopped: failed to open x: no such thing");
    }
}
