//! Errors that end a run or one of its trials.
use netduel_model::ids::HostName;

use super::surroundings::StoreProblem;
use crate::launcher::LaunchError;
use crate::peer::PeerError;
use crate::protocol::FailureKind;

/// Why a run could not start or continue. Finished trials are stored in every case.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An agent could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// No launcher for a host.
    #[error("failed to start the agent of host {host}: {reason}")]
    NoLauncher {
        /// The host.
        host: HostName,
        /// The reason.
        reason: String,
    },
    /// An agent violated the protocol or a deadline.
    #[error("host {host}: {source}{last_words}")]
    Peer {
        /// The host.
        host: HostName,
        /// The violation.
        source: PeerError,
        /// The last lines of its standard error.
        last_words: String,
    },
    /// An agent ended.
    #[error("host {host} vanished: its agent ended ({how}){last_words}")]
    Vanished {
        /// The host.
        host: HostName,
        /// Its exit status.
        how: String,
        /// The last lines of its standard error.
        last_words: String,
    },
    /// An agent was killed, and its guard may still be restoring the host.
    #[error(
        "host {host}: its agent was killed, and what it started has not ended after {seconds} s: the host may not be restored; wait until \
         no netduel process runs there"
    )]
    NotOver {
        /// The host.
        host: HostName,
        /// Duration of the wait, seconds.
        seconds: u64,
    },
    /// An agent refused a request.
    #[error("host {host}: {message}")]
    Refused {
        /// The host.
        host: HostName,
        /// The kind of failure.
        kind: FailureKind,
        /// Its message.
        message: String,
    },
    /// The store failed.
    #[error("failed to keep the run: {0}")]
    Store(#[from] StoreProblem),
    /// A failure on the coordinator's machine: the lab, a secret.
    #[error("{0}")]
    Local(String),
}

/// The kinds of failure that have exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The plan is invalid on this host.
    Usage,
    /// A host lacks a permission, a kernel feature or a program.
    Environment,
    /// A host or its agent failed.
    Host,
    /// The store failed.
    Store,
    /// A bug.
    Internal,
}

impl RunError {
    /// The kind.
    pub fn kind(&self) -> RunErrorKind {
        match self {
            Self::Launch(_)
            | Self::NoLauncher { .. }
            | Self::Peer { .. }
            | Self::Vanished { .. }
            | Self::NotOver { .. } => RunErrorKind::Host,
            Self::Refused { kind, .. } => (*kind).into(),
            Self::Store(_) => RunErrorKind::Store,
            Self::Local(_) => RunErrorKind::Environment,
        }
    }
}

impl From<FailureKind> for RunErrorKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Usage => Self::Usage,
            FailureKind::Environment => Self::Environment,
            FailureKind::Traffic | FailureKind::Busy => Self::Host,
            FailureKind::Internal => Self::Internal,
        }
    }
}

/// Why a trial failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The user interrupted the run.
    #[error("stopped by the user")]
    Interrupted,
    /// An agent was abandoned.
    #[error("{error}")]
    Lost {
        /// Its host.
        host: HostName,
        /// The reason.
        error: Box<RunError>,
    },
    /// An agent refused a request; it still runs.
    #[error("host {host}: {message}")]
    Refused {
        /// The host.
        host: HostName,
        /// The kind of failure.
        kind: FailureKind,
        /// Its message.
        message: String,
    },
    /// An agent could not apply the treatments of an arm.
    #[error("{0}")]
    NotTreated(Box<Self>),
    /// A failure on the coordinator's machine.
    #[error("{0}")]
    Local(String),
}

impl Trouble {
    /// The kind of failure, and the host that refused the request, if one did.
    pub(super) fn kind(&self) -> (RunErrorKind, Option<&HostName>) {
        match self {
            Self::Refused { host, kind, .. } => ((*kind).into(), Some(host)),
            Self::NotTreated(trouble) => trouble.kind(),
            Self::Lost { error, .. } => (error.kind(), None),
            // An interrupted trial is no failure; what the coordinator lacks is its environment.
            Self::Interrupted | Self::Local(_) => (RunErrorKind::Environment, None),
        }
    }
}
