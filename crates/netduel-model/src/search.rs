//! The search for the highest rate without loss, or with little: what it looks for, and what it found. Terms of RFC 9971 (MLRsearch).
//!
//! Plain records; which load is tried next, and what the steps at a load make of it, is computed elsewhere.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::units::{Nanos, Percent};
use crate::word::word;
use crate::workload::setting::ppm;

/// Nanoseconds in a second.
const S: u64 = 1_000_000_000;
/// Steps of a search at most: about five times what a path that is noisy, chokes and loses was seen to take.
pub const TRIALS_MAX: u32 = 150;

/// A search goal with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchPreset {
    /// Not a packet lost in two of three steps of 2 s.
    NoDrop,
    /// At most 0.5 % lost in two of three steps of 2 s.
    PartialDrop,
    /// RFC 2544's throughput: not a packet lost in one step of 60 s.
    Rfc2544,
    /// ETSI TST009's: not a packet lost in one of two steps of 60 s.
    Tst009,
}

impl SearchPreset {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// The goal of this name.
    pub fn goal(self) -> SearchGoal {
        // Half of the steps may be spoilt, as the standard recommends: on a host that others share, a goal that lets no step
        // fail is decided by the worst moment of the search.
        let short = SearchGoal {
            name: self.word().to_owned(),
            final_trial: Nanos(2 * S),
            duration_sum: Nanos(6 * S),
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            width: 0.01,
            initial_trial: Nanos(S / 2),
            settle: Nanos(S / 2),
        };
        let minute = Nanos(60 * S);
        // RFC 9971, sections 4.10.1 and 4.10.2.
        let long = SearchGoal {
            final_trial: minute,
            duration_sum: minute,
            initial_trial: Nanos(S),
            // RFC 2544, section 23: 2 s for what is still in flight, and 5 s for the device to settle.
            settle: Nanos(7 * S),
            ..short.clone()
        };
        match self {
            Self::NoDrop => short,
            // The loss that FD.io CSIT calls partial drop.
            Self::PartialDrop => SearchGoal { loss_ratio: 0.005, ..short },
            Self::Rfc2544 => SearchGoal { exceed_ratio: 0.0, ..long },
            Self::Tst009 => SearchGoal { duration_sum: Nanos(120 * S), ..long },
        }
    }
}

/// What a search looks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// At least one; each step counts for all.
    pub goals: Vec<SearchGoal>,
    /// Steps at most; the time is the workload's duration.
    pub trials_max: u32,
}

impl Search {
    /// The pause before each of its steps.
    pub fn settle(&self) -> Nanos {
        self.goals.iter().map(|goal| goal.settle).max().unwrap_or_default()
    }

    /// What it looks for, for people.
    pub fn words(&self) -> String {
        let goals: Vec<&str> = self.goals.iter().map(|goal| goal.name.as_str()).collect();
        format!("search for {}", goals.join(" and "))
    }

    /// The metrics of its goals, each once.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<Metric> = self.goals.iter().map(SearchGoal::metric).collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }

    /// The metrics that a search for these goals can yield.
    pub(crate) fn possible_metrics(&self) -> &'static [Metric] {
        match self.metrics().as_slice() {
            [Metric::PartialDropRate] => &[Metric::PartialDropRate],
            [Metric::NoDropRate, _] => &[Metric::NoDropRate, Metric::PartialDropRate],
            _ => &[Metric::NoDropRate],
        }
    }
}

/// One search goal (RFC 9971, section 4.6.7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchGoal {
    /// The preset's, or `goal-1`, `goal-2` ... in the order of the plan.
    pub name: String,
    /// A step decides a load for good only when it is this long.
    pub final_trial: Nanos,
    /// How much of such steps a load needs at most.
    pub duration_sum: Nanos,
    /// A step that loses a larger share of its packets is a high-loss step. 0 to below 1.
    pub loss_ratio: f64,
    /// The share of high-loss steps, by duration, that a lower bound may have. 0 to below 1.
    pub exceed_ratio: f64,
    /// How far the bounds may be apart at the end, as a share of the upper one. Above 0, below 1.
    pub width: f64,
    /// The shortest step.
    pub initial_trial: Nanos,
    /// Pause before each step, so that what the one before left in buffers and buckets is gone. A search takes the longest of its goals.
    #[serde(default)]
    pub settle: Nanos,
}

impl SearchGoal {
    /// A quantity by its key in a plan, in the unit of its range.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let share = |ratio: f64| Some(ppm(Percent(ratio * 100.0)));
        match key {
            "final_trial" => Some(self.final_trial.0),
            "duration_sum" => Some(self.duration_sum.0),
            "loss_ratio" => share(self.loss_ratio),
            "exceed_ratio" => share(self.exceed_ratio),
            "width" => share(self.width),
            "initial_trial" => Some(self.initial_trial.0),
            "settle" => Some(self.settle.0),
            _ => None,
        }
    }

    /// The metric that it yields.
    pub fn metric(&self) -> Metric {
        if self.loss_ratio == 0.0 { Metric::NoDropRate } else { Metric::PartialDropRate }
    }
}

/// What a step of a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchPurpose {
    /// To find the highest load, and what still arrives of it.
    Maximum,
    /// To narrow the bounds down with a step shorter than the goal's.
    Narrow,
    /// To decide a load by steps of the goal's full length.
    Confirm,
}

/// What a step of a search sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchInput {
    /// Packets per second to send; absent: as many as the generator can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// How long to send.
    pub duration: Nanos,
    /// For which of the goals, from 0.
    pub goal: u32,
    /// What for.
    pub purpose: SearchPurpose,
}

/// What a step of a search counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchOutput {
    /// Packets that the generator sent.
    pub sent: u64,
    /// Of them, packets that arrived, each once.
    pub received: u64,
    /// How long it sent, nanoseconds; with a rate, at least the time of the step.
    pub elapsed_ns: u64,
    /// How long the whole step took, with its preparation and end, nanoseconds.
    pub effective_duration_ns: u64,
    /// How late the bursts of the generator were, at most, but for one in a hundred, nanoseconds; absent without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error_p99_ns: Option<u64>,
}

/// A step of a search with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchStep {
    /// The load and duration of the step.
    pub input: SearchInput,
    /// What the step counted.
    pub output: SearchOutput,
    /// The load, packets per second: the `load` of the input, or the sent rate when the input has none.
    pub load: u64,
    /// Packets per second that the generator sent.
    pub offered_load: f64,
    /// Loss ratio, 0 to 1: of the packets sent, or of the packets of the load when `generator_limited`.
    pub loss_ratio: f64,
    /// Whether the generator stayed so far below the load that unsent packets count as lost.
    pub generator_limited: bool,
    /// Whether the loss ratio exceeds that of the goal.
    pub high_loss: bool,
}

impl SearchStep {
    /// Difference of the sent rate from the load of the input, as a share of that load; absent when the input has none.
    pub fn pacing_error(&self) -> Option<f64> {
        self.input.load.map(|load| self.offered_load / load as f64 - 1.0)
    }
}

/// How the search for a goal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchState {
    /// Both bounds are known, and their distance is at most the goal width.
    Regular,
    /// The path carried even the highest load that the generator could send.
    MaxLoadReached,
    /// The path did not carry even the lowest load, a thousandth of the highest.
    MinLoadFails,
    /// The search reached its time limit first.
    Unfinished,
}

/// What a search found for a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// How the search for the goal ended.
    pub state: SearchState,
    /// Relevant lower bound, packets per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<u64>,
    /// Relevant upper bound, packets per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<u64>,
    /// The lower bound by the shortest steps alone: all that is known of an unfinished search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrowed_lower: Option<u64>,
    /// The upper bound by the shortest steps alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrowed_upper: Option<u64>,
    /// Conditional throughput at the lower bound: packets per second that arrive there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditional_throughput: Option<f64>,
    /// Whether the upper bound is one because the generator could not send as much.
    pub generator_limited: bool,
}

impl SearchResult {
    /// Whether the rate may be higher: nothing was found that is too much, or not close enough.
    pub fn is_at_least(&self) -> bool {
        matches!(self.state, SearchState::MaxLoadReached | SearchState::Unfinished)
    }
}

/// Why a search was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// Every goal has its result.
    Complete,
    /// The time or the number of steps was used up.
    Budget,
    /// The first step sent nothing.
    NothingSent,
    /// A step failed.
    Failed,
}

/// What a search did and found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchReport {
    /// Every step, in order.
    pub steps: Vec<SearchStep>,
    /// What was found, in the order of the goals.
    pub results: Vec<SearchResult>,
    /// Why it was over.
    pub end: SearchEnd,
    /// The step, from 0, whose ends are stored with the search's: at the lower bound of the first goal, or else the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_step: Option<u32>,
}
