//! The coordinator: one linear loop that takes a plan through its blocks over agents. It knows no clock, no disk, no terminal.
mod arrival;
mod conductor;
mod conversation;
mod describe;
mod failover;
mod host;
mod search;
mod trial;

use std::collections::BTreeMap;

use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{HostName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Pair, ResolvedPlan};
use netduel_model::run::RunEnd;
use netduel_model::search::Search;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;

use crate::launcher::LaunchError;
use crate::peer::PeerError;
use crate::protocol::{FailureKind, Limits};

/// What the coordinator needs of its surroundings.
pub trait Surroundings {
    /// The argv that starts the agent of a host.
    fn launcher(&mut self, name: &HostName, host: &Host) -> Result<Vec<String>, String>;
    /// Puts the lab's guests on a path.
    fn set_path(&mut self, path: LabPath) -> Result<(), String>;
    /// Traffic of a failover between guests of the lab has begun: has the lab do these things to the path, each at its time from now,
    /// while it goes on.
    fn begin_events(&mut self, _pair: &Pair, _events: &[PathEvent]) -> Result<(), String> {
        Err("events of a lab were asked for where there is none".to_owned())
    }
    /// Has what [`Self::begin_events`] began end, and the path given back. What was done; absent when nothing was begun.
    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        Ok(None)
    }
    /// The hosts have described themselves: make or reopen the run. Gives its name, its seed, and the trials it has.
    fn hosts_known(
        &mut self,
        hosts: &BTreeMap<HostName, HostSnapshot>,
    ) -> Result<(RunId, u64, Vec<Trial>), StoreProblem>;
    /// Makes sure that the next trial can be kept, before it is run.
    fn reserve(&mut self) -> Result<(), StoreProblem>;
    /// Keeps a trial, durably.
    fn store(&mut self, trial: &Trial) -> Result<(), StoreProblem>;
    /// Tells what happens.
    fn event(&mut self, event: Event);
    /// Asked after each complete block from `blocks_min` on: is it enough?
    fn stop_after_block(&mut self, trials: &[Trial]) -> Option<RunEnd>;
    /// Who chooses the rates of a trial that is a search, and judges what they showed; it may take this long.
    fn search(&mut self, _search: &Search, _most: Nanos) -> Result<Box<dyn Seeker>, String> {
        Err("a search was asked for of a coordinator that cannot judge one".to_owned())
    }
    /// How often the ends of a trial tell how it goes.
    fn progress_interval(&self) -> Nanos {
        Limits::PROGRESS
    }
    /// Whether the hosts are kept from other runs until this one ends.
    fn locks_hosts(&self) -> bool {
        true
    }

    /// Whether an agent that is lost is started again, once: for the trials that are to come.
    fn restarts_agents(&self) -> bool {
        true
    }
    /// Whether somebody wants the run to stop.
    fn interrupted(&self) -> bool;
    /// Monotonic clock, nanoseconds.
    fn now_ns(&self) -> u64;
    /// Wall clock, milliseconds since the Unix epoch.
    fn unix_ms(&self) -> u64;
    /// A new secret.
    fn token(&mut self) -> Result<Token, String>;
}

/// The store cannot keep what it is given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreProblem {
    /// What, why, and what to do.
    pub message: String,
}

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
        /// Why.
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
            Self::Launch(_) | Self::NoLauncher { .. } | Self::Peer { .. } | Self::Vanished { .. } => {
                RunErrorKind::Host
            }
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
enum Trouble {
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

pub use describe::Described;
pub use search::Seeker;

/// Has the hosts of a plan describe themselves, side by side, over agents that it starts and ends. `metadata`: whether each may ask
/// its cloud's metadata service. `None` when somebody wants it to stop.
pub fn describe(
    plan: &ResolvedPlan,
    surroundings: &mut dyn Surroundings,
    metadata: bool,
) -> Option<Described> {
    conductor::Conductor::new(plan, surroundings).describe(metadata)
}

/// Runs a plan to its end, over agents that it starts and ends.
pub fn run(plan: &ResolvedPlan, surroundings: &mut dyn Surroundings) -> Result<RunEnd, RunError> {
    conductor::Conductor::new(plan, surroundings).run_and_close()
}
