//! Errors that end a run or one of its trials.
use std::net::IpAddr;

use netduel_model::ids::{ArmName, HostName, WorkloadName};
use netduel_model::workload::Family;
use netduel_stats::search::SearchError;

use super::blocked_port::BlockedPorts;
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
    /// A host on which no agent can be started as things are.
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
    /// The command that starts an agent ended before the agent answered.
    #[error("failed to start the agent of host {host}: its command ended ({how}){last_words}")]
    NotStarted {
        /// The host.
        host: HostName,
        /// Its exit status.
        how: String,
        /// The last lines of its output.
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
    /// The agents of a host were lost one after the other.
    #[error(
        "host {host} lost its agent {} times without a valid trial between: {}",
        .reasons.len(), numbered(.reasons)
    )]
    LostRepeatedly {
        /// The host.
        host: HostName,
        /// The kind of the last loss.
        kind: RunErrorKind,
        /// Why each was lost, the first one first.
        reasons: Vec<String>,
    },
    /// The connection to a paired server ended.
    #[error("host {host}: {reason}")]
    Disconnected {
        /// The host.
        host: HostName,
        /// The message of the connection's process.
        reason: String,
    },
    /// An agent that is needed has ended earlier.
    #[error("the agent of host {host} is not running")]
    NotRunning {
        /// The host.
        host: HostName,
    },
    /// The result of a host lacks a count.
    #[error("host {host} reported no {count}: the result of its trial is incomplete")]
    Incomplete {
        /// The host.
        host: HostName,
        /// The missing count.
        count: &'static str,
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
    /// A host of a resumed run has other settings than at its start.
    #[error(
        "host {host} has other settings than at the start of the run: {changes}; set them back to complete the run, or start a new one"
    )]
    HostChanged {
        /// The host.
        host: HostName,
        /// The settings, with both values.
        changes: String,
    },
    /// A client does not reach ports of its server.
    #[error("{0}")]
    PortsBlocked(BlockedPorts),
    /// A server does not have the address of the plan, and cannot listen there.
    #[error(
        "host {host} does not have the address {address} of the plan, so it cannot listen there; the address is another host's, or a NAT \
         translates it, as the public address of a cloud VM; the host has {own}: write one of these to `addresses` that the client reaches \
         without the NAT, or connect the hosts by a tunnel ({reason})"
    )]
    AddressElsewhere {
        /// The host.
        host: HostName,
        /// The address in the plan.
        address: IpAddr,
        /// The addresses that the host has, for people.
        own: String,
        /// The refusal of the agent.
        reason: String,
    },
    /// A change of a host could not be undone.
    #[error("host {host} is not restored, so no later trial there is valid: {left}")]
    NotRestored {
        /// The host.
        host: HostName,
        /// The changes that are left, and how to undo them by hand.
        left: String,
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
    /// The plan cannot be run as it is.
    #[error(transparent)]
    Plan(#[from] PlanFault),
    /// The plan's lab failed, on the coordinator's machine.
    #[error("{0}")]
    Lab(String),
    /// The provider did not change a resource.
    #[error("failed to change the resources of {host}: {reason}")]
    Provider {
        /// The host, or all of them.
        host: String,
        /// Why.
        reason: String,
    },
    /// The coordinator's machine has no secret for a trial.
    #[error("{0}")]
    Token(String),
}

/// A fault of a plan that shows when it is run: of an edited run file, or of a search on this path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanFault {
    /// An arm names a host that the plan does not have.
    #[error("the plan has no host {host}; add [hosts.{host}]")]
    NoHost {
        /// The host.
        host: HostName,
    },
    /// A server has no address of the IP version of a workload.
    #[error("host {host} has no {family} address in the plan; add one to its `addresses`")]
    NoAddress {
        /// The host.
        host: HostName,
        /// The IP version.
        family: Family,
    },
    /// The schedule has a workload that the arm does not.
    #[error("the plan has no workload {workload} in the arm {arm}; start a new run of the plan")]
    NoWorkload {
        /// The workload.
        workload: WorkloadName,
        /// The arm.
        arm: ArmName,
    },
    /// The settings of a search contradict each other.
    #[error("the search of the plan is invalid: {0}; correct its goals")]
    Search(#[from] SearchError),
    /// The first trial of a search does not fit into its time.
    #[error("the search tried no rate: its time is shorter than one trial; raise `duration`")]
    SearchTooShort,
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
    /// The plan's lab failed.
    Lab,
    /// The provider of the machines did not change a resource.
    Provider,
    /// A bug.
    Internal,
}

/// Reasons in one line, each with its number. Successive reasons that are the same are one with both numbers.
fn numbered(reasons: &[String]) -> String {
    let mut groups: Vec<(usize, usize, &str)> = Vec::new();
    for (number, reason) in (1..).zip(reasons) {
        let reason = reason.as_str();
        match groups.last_mut() {
            Some((_, last, text)) if *text == reason => *last = number,
            _ => groups.push((number, number, reason)),
        }
    }
    let words = groups.into_iter().map(|(first, last, text)| {
        if first == last { format!("({first}) {text}") } else { format!("({first} to {last}) {text}") }
    });
    words.collect::<Vec<_>>().join("; ")
}

impl RunError {
    /// The kind.
    pub fn kind(&self) -> RunErrorKind {
        match self {
            Self::Launch(LaunchError::Empty { .. } | LaunchError::Spawn { .. })
            | Self::NotStarted { .. }
            | Self::Peer { .. }
            | Self::Vanished { .. }
            | Self::Disconnected { .. }
            | Self::NotRunning { .. }
            | Self::Incomplete { .. }
            | Self::NotOver { .. }
            | Self::HostChanged { .. }
            | Self::PortsBlocked(_)
            | Self::AddressElsewhere { .. }
            | Self::NotRestored { .. } => RunErrorKind::Host,
            Self::Refused { kind, .. } => (*kind).into(),
            Self::LostRepeatedly { kind, .. } => *kind,
            Self::Store(_) => RunErrorKind::Store,
            Self::Plan(_) => RunErrorKind::Usage,
            Self::Lab(_) => RunErrorKind::Lab,
            Self::Provider { .. } => RunErrorKind::Provider,
            Self::Launch(LaunchError::Exhausted { .. }) | Self::NoLauncher { .. } | Self::Token(_) => {
                RunErrorKind::Environment
            }
        }
    }
}

impl From<FailureKind> for RunErrorKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Usage => Self::Usage,
            FailureKind::Environment => Self::Environment,
            FailureKind::Traffic | FailureKind::Busy | FailureKind::NotRestored => Self::Host,
            FailureKind::Internal => Self::Internal,
        }
    }
}

/// Why a trial failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrialError {
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
    /// A failure without the loss of an agent.
    #[error("{0}")]
    Failed(#[from] Box<RunError>),
}

impl From<RunError> for TrialError {
    fn from(error: RunError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<PlanFault> for TrialError {
    fn from(fault: PlanFault) -> Self {
        RunError::from(fault).into()
    }
}

impl TrialError {
    /// Whether the provider of the machines did not change a resource.
    pub(super) fn is_of_provider(&self) -> bool {
        matches!(self, Self::Failed(error) if matches!(**error, RunError::Provider { .. }))
    }

    /// The kind of failure, and the host that refused the request, if one did.
    pub(super) fn kind(&self) -> (RunErrorKind, Option<&HostName>) {
        match self {
            Self::Refused { host, kind, .. } => ((*kind).into(), Some(host)),
            Self::NotTreated(error) => error.kind(),
            Self::Lost { error, .. } | Self::Failed(error) => (error.kind(), None),
            // An interrupted trial is no failure.
            Self::Interrupted => (RunErrorKind::Environment, None),
        }
    }

    /// The same as the error of a run; `None` for an interrupt, which is no error.
    pub(super) fn into_run_error(self) -> Option<RunError> {
        match self {
            Self::Interrupted => None,
            Self::Lost { error, .. } | Self::Failed(error) => Some(*error),
            Self::Refused { host, kind, message } => Some(RunError::Refused { host, kind, message }),
            Self::NotTreated(error) => error.into_run_error(),
        }
    }
}
