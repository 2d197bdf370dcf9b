//! What searches for a rate did and found, in JSON.
use netduel_model::search as model;
use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::ArmSearch;

/// The searches of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Searches {
    /// What the searches look for.
    pub goals: Vec<Goal>,
    /// The search of each valid trial.
    pub trials: Vec<SearchTrial>,
}

/// A search goal (RFC 9971, section 4.6.7).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Goal {
    /// Name.
    pub name: String,
    /// Duration of a step that can decide a load.
    pub final_trial_ns: u64,
    /// Total duration of such steps that a load needs at most.
    pub duration_sum_ns: u64,
    /// Loss above which a step is a high-loss step.
    pub loss_ratio: f64,
    /// Share of high-loss steps, by duration, that a lower bound may have.
    pub exceed_ratio: f64,
    /// Distance of the bounds at which the search ends, as a fraction of the upper bound.
    pub width_ratio: f64,
    /// Duration of the shortest step.
    pub initial_trial_ns: u64,
    /// Pause before each step.
    pub settle_ns: u64,
}

/// The search of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SearchTrial {
    /// Block of the trial, from 1.
    pub block: u32,
    /// What was tried, in order.
    pub steps: Vec<Step>,
    /// What was found, in the order of the goals.
    pub results: Vec<Found>,
    /// Why the search ended.
    pub end: model::SearchEnd,
    /// Number of the step, from 0, whose traffic the figures of the trial are of; null when no step is.
    pub stored_step: Option<u32>,
}

/// A step of a search: traffic at one load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Number of the goal, from 0, that the step is for.
    pub goal: u32,
    /// Purpose.
    pub purpose: model::SearchPurpose,
    /// Input load; null for the highest rate of the generator.
    pub input_pps: Option<u64>,
    /// Intended duration.
    pub duration_ns: u64,
    /// Load: the input load, or the rate sent when there is none.
    pub load_pps: u64,
    /// Rate that the generator sent.
    pub offered_pps: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets received, each once.
    pub received: u64,
    /// Share of the packets that did not arrive.
    pub loss_ratio: f64,
    /// Whether the generator sent so much less than the load that the rest counts as lost.
    pub generator_limited: bool,
    /// Whether more was lost than the goal allows.
    pub high_loss: bool,
    /// Time in which packets were sent.
    pub elapsed_ns: u64,
    /// Time of the whole step with preparation and end.
    pub effective_duration_ns: u64,
    /// Lateness of the generator's bursts, 99th percentile; null without a rate.
    pub pacing_error_p99_ns: Option<u64>,
}

/// What a search found for a goal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// Whether both bounds are known.
    pub state: model::SearchState,
    /// Relevant lower bound; null when every load failed its goal.
    pub lower_pps: Option<u64>,
    /// Relevant upper bound; null when every load met its goal.
    pub upper_pps: Option<u64>,
    /// Lower bound of short steps alone.
    pub narrowed_lower_pps: Option<u64>,
    /// Upper bound of short steps alone.
    pub narrowed_upper_pps: Option<u64>,
    /// Packets per second that arrive at the lower bound.
    pub conditional_throughput_pps: Option<f64>,
    /// Whether the upper bound is the highest rate of the generator.
    pub generator_limited: bool,
}

impl Searches {
    pub(super) fn of(search: &ArmSearch) -> Self {
        Self {
            goals: search.goals.iter().map(Goal::of).collect(),
            trials: search.trials.iter().map(|(block, report)| SearchTrial::of(*block, report)).collect(),
        }
    }
}

impl Goal {
    fn of(goal: &model::SearchGoal) -> Self {
        Self {
            name: goal.name.clone(),
            final_trial_ns: goal.final_trial.0,
            duration_sum_ns: goal.duration_sum.0,
            loss_ratio: goal.loss_ratio,
            exceed_ratio: goal.exceed_ratio,
            width_ratio: goal.width,
            initial_trial_ns: goal.initial_trial.0,
            settle_ns: goal.settle.0,
        }
    }
}

impl SearchTrial {
    /// The search of the trial of a block.
    pub(super) fn of(block: u32, report: &model::SearchReport) -> Self {
        Self {
            block: block.saturating_add(1),
            steps: report.steps.iter().map(Step::of).collect(),
            results: report.results.iter().map(Found::of).collect(),
            end: report.end,
            stored_step: report.stored_step,
        }
    }
}

impl Step {
    /// Of the record.
    pub(super) fn of(step: &model::SearchStep) -> Self {
        let (input, output) = (&step.input, &step.output);
        Self {
            goal: input.goal,
            purpose: input.purpose,
            input_pps: input.load,
            duration_ns: input.duration.0,
            load_pps: step.load,
            offered_pps: step.offered_load,
            sent: output.sent,
            received: output.received,
            loss_ratio: step.loss_ratio,
            generator_limited: step.generator_limited,
            high_loss: step.high_loss,
            elapsed_ns: output.elapsed_ns,
            effective_duration_ns: output.effective_duration_ns,
            pacing_error_p99_ns: output.pacing_error_p99_ns,
        }
    }
}

impl Found {
    fn of(result: &model::SearchResult) -> Self {
        Self {
            state: result.state,
            lower_pps: result.lower,
            upper_pps: result.upper,
            narrowed_lower_pps: result.narrowed_lower,
            narrowed_upper_pps: result.narrowed_upper,
            conditional_throughput_pps: result.conditional_throughput,
            generator_limited: result.generator_limited,
        }
    }
}
