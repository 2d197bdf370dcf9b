//! Why a run, or one trial of it, cannot go on.
use netduel_model::ids::HostName;

use super::surroundings::StoreProblem;
use crate::launcher::LaunchError;
use crate::peer::PeerError;
use crate::protocol::FailureKind;

/// Why a run could not be made or could not go on. Finished trials are kept in every case.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An agent could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// No launcher for a host.
    #[error("failed to start the agent of host {host}: {reason}")]
    NoLauncher {
        /// Which host.
        host: HostName,
        /// How.
        reason: String,
    },
    /// An agent did not speak the protocol, or not in time.
    #[error("host {host}: {source}{last_words}")]
    Peer {
        /// Which host.
        host: HostName,
        /// What was wrong.
        source: PeerError,
        /// The end of its standard error.
        last_words: String,
    },
    /// An agent ended.
    #[error("host {host} vanished: its agent ended ({how}){last_words}")]
    Vanished {
        /// Which host.
        host: HostName,
        /// Its exit status.
        how: String,
        /// The end of its standard error.
        last_words: String,
    },
    /// An agent was killed, and its guard may still be restoring the host.
    #[error(
        "host {host}: its agent was killed, and what it started has not ended after {seconds} s: the host may not be restored; wait until \
         no netduel process runs there"
    )]
    NotOver {
        /// Which host.
        host: HostName,
        /// How long that was waited for, seconds.
        seconds: u64,
    },
    /// An agent could not do what it had to.
    #[error("host {host}: {message}")]
    Refused {
        /// Which host.
        host: HostName,
        /// Whose fault.
        kind: FailureKind,
        /// Its words.
        message: String,
    },
    /// The store failed.
    #[error("failed to keep the run: {0}")]
    Store(#[from] StoreProblem),
    /// Something on the coordinator's own machine failed: the lab, a secret.
    #[error("{0}")]
    Local(String),
}

/// The kinds of failure that scripts tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The plan asks for something that makes no sense.
    Usage,
    /// A host lacks something.
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
            Self::Refused { kind, .. } => match kind {
                FailureKind::Usage => RunErrorKind::Usage,
                FailureKind::Environment => RunErrorKind::Environment,
                FailureKind::Traffic | FailureKind::Busy => RunErrorKind::Host,
                FailureKind::Internal => RunErrorKind::Internal,
            },
            Self::Store(_) => RunErrorKind::Store,
            Self::Local(_) => RunErrorKind::Environment,
        }
    }
}

/// What may go wrong in a trial.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// Somebody wants the run to stop.
    #[error("stopped by the user")]
    Interrupted,
    /// An agent is gone.
    #[error("{error}")]
    Lost {
        /// Whose.
        host: HostName,
        /// How.
        error: Box<RunError>,
    },
    /// An agent could not do what it had to; it lives.
    #[error("host {host}: {message}")]
    Refused {
        /// Which host.
        host: HostName,
        /// Whose fault.
        kind: FailureKind,
        /// Its words.
        message: String,
    },
    /// Something on the coordinator's machine.
    #[error("{0}")]
    Local(String),
}
