//! What happens in a run, as it happens. Progress bars, plain lines and the store are all consumers of these.
use crate::ids::{HostName, RunId};
use crate::run::RunEnd;
use crate::sample::LiveFigures;
use crate::search::{SearchInput, SearchStep};
use crate::trial::{Slot, Trial};
use crate::warning::Warning;
use crate::workload::Role;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An agent answered and is of our version.
    HostReady {
        /// Which host.
        host: HostName,
    },
    /// A host lost its agent, and another one is being started there.
    AgentRestarting {
        /// Which host.
        host: HostName,
        /// Why it was lost, with the host.
        reason: String,
        /// Number of the restart, from 1 since the last valid trial of the host.
        number: u32,
        /// Its largest value: the loss after that restart ends the run.
        number_max: u32,
    },
    /// A host, or a pair of hosts, has a problem that makes figures doubtful, sent before the first trial; or a host may have a change that the user
    /// has to undo, sent when all agents have ended.
    ProblemFound {
        /// Where and what, in one line.
        text: String,
    },
    /// The run begins, or goes on.
    RunStarted {
        /// Its name in the store.
        id: RunId,
        /// Total number of trials, unless a precision is reached before.
        trials_max: u32,
        /// Trials that need not be run because an earlier start did.
        trials_done: u32,
    },
    /// Resources of the provider are being changed for the next trial, which takes from seconds to minutes.
    ResourcesChanging {
        /// The host whose machine it is.
        host: HostName,
        /// What, in words.
        change: String,
    },
    /// A trial begins.
    TrialStarted {
        /// Where in the schedule.
        slot: Slot,
        /// How long its traffic runs, nanoseconds.
        duration_ns: u64,
    },
    /// Live figures of a running trial.
    TrialProgress {
        /// The end that reports them.
        role: Role,
        /// Its figures so far.
        figures: LiveFigures,
    },
    /// A trial that is a search tries a rate.
    SearchTries {
        /// What it tries.
        input: SearchInput,
    },
    /// A trial that is a search has tried a rate.
    SearchTried {
        /// What it found.
        step: SearchStep,
    },
    /// A trial ended, well or not, and is stored.
    TrialFinished {
        /// All of it.
        trial: Box<Trial>,
    },
    /// A block ended.
    BlockFinished {
        /// Which, from 0.
        block: u32,
    },
    /// A doubt arose.
    Warned {
        /// Which.
        warning: Warning,
    },
    /// The run ended.
    RunFinished {
        /// How.
        end: RunEnd,
    },
}
