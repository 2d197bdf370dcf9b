//! Search for the highest rate without loss, or with little, in the terms of RFC 9971 (MLRsearch), as a pure state machine.
//!
//! The caller alternates [`RateSearch::wanted`], which requests a trial, and [`RateSearch::record`], which adds its counts, until
//! the search ends; [`RateSearch::results`] is available at any time. Classification of loads and conditional throughput are
//! exactly the standard's; the selection of loads is our own. No clock, no traffic and no randomness. The cost on simulated
//! devices is in `docs/design/0019-search.md`.
mod bounds;
mod goal;
mod load;
mod stage;

pub use goal::GoalError;
pub use load::{Class, Trial, classify};

use netduel_model::search::{
    Search, SearchEnd, SearchInput, SearchOutput, SearchPurpose, SearchResult, SearchStep,
};
use netduel_model::units::Nanos;

use bounds::result;
use goal::{check, stages};
use stage::{Choice, Stage, View};

/// Nanoseconds in a second.
const SECOND_NS: f64 = 1e9;
/// Minimum number of packets of the shortest trial at the lowest load, so that a loss ratio is meaningful.
const PACKETS_MIN: u64 = 10;
/// The lowest load, as a share of the highest. A path that loses packets at a thousandth of its maximum is faulty, and its rate
/// without loss is not a measure of its speed.
const LOAD_SHARE_MIN: f64 = 0.001;
/// Tolerance between intended and offered load before unsent packets count as lost (RFC 9971, section 4.9.1, leaves the share to
/// the implementation): half of the narrowest width.
const SHORTFALL_SHARE: f64 = 0.5;

/// The highest load, as a share of the unpaced rate of the generator, when none of its packets was lost. At its own limit a
/// generator does not keep a rate, and the search is not for that limit (RFC 9971, section 4.9.1, recommends a highest load that
/// can be offered).
const KEPT_SHARE: f64 = 0.95;

/// Errors of search settings.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SearchError {
    /// No goal.
    #[error("a search needs a goal")]
    NoGoal,
    /// An invalid goal.
    #[error("goal {number}: {reason}")]
    Goal {
        /// Number of the goal, from 1.
        number: usize,
        /// The reason.
        reason: GoalError,
    },
}

/// Whether a trial is evidence about its load. The unpaced rate of a generator, when nothing was lost, is above the highest load,
/// so it cannot be a bound.
fn is_evidence(step: &SearchStep) -> bool {
    step.input.load.is_some() || step.loss_ratio > 0.0
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A trial.
    Measure(SearchInput),
    /// The search is over.
    Ended(SearchEnd),
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct RateSearch {
    search: Search,
    /// Time limit of all trials, including their overhead.
    time: Nanos,
    steps: Vec<SearchStep>,
    spent_ns: u64,
    /// Highest load, once known.
    max_load: Option<u64>,
    /// The remaining stages in order, with the goal of each; the first is the current one.
    stages: std::collections::VecDeque<Stage>,
}

impl RateSearch {
    /// A search with a time limit that includes the overhead of its trials. The first trial is not paced and finds the highest
    /// load.
    ///
    /// # Errors
    /// An invalid goal. The goals of a checked plan are valid.
    pub fn new(search: Search, time: Nanos) -> Result<Self, SearchError> {
        if search.goals.is_empty() {
            return Err(SearchError::NoGoal);
        }
        for (index, goal) in search.goals.iter().enumerate() {
            check(goal).map_err(|reason| SearchError::Goal { number: index + 1, reason })?;
        }
        let stages = search.goals.iter().zip(0..).flat_map(|(goal, number)| {
            let stages = stages(goal);
            let last = stages.len() - 1;
            stages.into_iter().enumerate().map(move |(index, target)| {
                let purpose = if index == last { SearchPurpose::Confirm } else { SearchPurpose::Narrow };
                Stage::new(number, target, purpose)
            })
        });
        let stages = stages.collect();
        Ok(Self { search, time, steps: Vec::new(), spent_ns: 0, max_load: None, stages })
    }

    /// The next action. Repeated calls without a recorded trial return the same action.
    pub fn wanted(&mut self) -> Next {
        if self.steps.is_empty() {
            return self.afford(self.first());
        }
        let Some(max_load) = self.max_load.filter(|load| *load > 0) else {
            return Next::Ended(SearchEnd::NothingSent);
        };
        let min_load = self.min_load(max_load);
        while let Some(stage) = self.stages.front_mut() {
            match stage.choose(&View { steps: &self.steps, min_load, max_load }) {
                Choice::Load(load) => {
                    let ask = SearchInput {
                        load: Some(load),
                        duration: stage.target.final_trial,
                        goal: stage.goal,
                        purpose: stage.purpose,
                    };
                    return self.afford(ask);
                }
                Choice::Done(found) => {
                    let goal = stage.goal;
                    self.stages.pop_front();
                    if let Some(next) = self.stages.front_mut().filter(|next| next.goal == goal) {
                        next.hints = found;
                    }
                }
            }
        }
        Next::Ended(SearchEnd::Complete)
    }

    /// Records the result of the requested trial.
    pub fn record(&mut self, ask: SearchInput, count: SearchOutput) -> SearchStep {
        let offered = count.sent as f64 * SECOND_NS / count.elapsed_ns.max(1) as f64;
        let load = ask.load.unwrap_or(offered as u64);
        let short = 1.0 - offered / load.max(1) as f64;
        let generator_limited = short > self.tolerated_shortfall();
        let expected = count.sent as f64 / if generator_limited { 1.0 - short } else { 1.0 };
        let forwarded = if count.sent == 0 { 0.0 } else { count.received as f64 / expected };
        let loss_ratio = (1.0 - forwarded).max(0.0);
        let allowed = self.search.goals.get(ask.goal as usize).map_or(0.0, |goal| goal.loss_ratio);
        let high_loss = loss_ratio > allowed;
        let step = SearchStep {
            input: ask,
            output: count,
            load,
            offered_load: offered,
            loss_ratio,
            generator_limited,
            high_loss,
        };
        let kept = if is_evidence(&step) { 1.0 } else { KEPT_SHARE };
        self.max_load.get_or_insert((load as f64 * kept) as u64);
        self.spent_ns = self.spent_ns.saturating_add(count.effective_duration_ns);
        self.steps.push(step.clone());
        step
    }

    /// The trials recorded so far.
    pub fn steps(&self) -> &[SearchStep] {
        &self.steps
    }

    /// The trials, after the search.
    pub fn into_steps(self) -> Vec<SearchStep> {
        self.steps
    }

    /// The current result of each goal, in the order of the plan.
    pub fn results(&self) -> Vec<SearchResult> {
        let bound =
            self.max_load.filter(|load| *load > 0).map(|max_load| (self.min_load(max_load), max_load));
        self.search.goals.iter().map(|goal| result(goal, &self.steps, bound)).collect()
    }

    fn first(&self) -> SearchInput {
        SearchInput { load: None, duration: self.shortest(), goal: 0, purpose: SearchPurpose::Maximum }
    }

    fn shortest(&self) -> Nanos {
        self.search.goals.iter().map(|goal| goal.initial_trial).min().unwrap_or_default()
    }

    /// The trial, if time and number of trials permit it.
    fn afford(&self, ask: SearchInput) -> Next {
        let spent_ns = self.spent_ns.saturating_add(ask.duration.0);
        if self.steps.len() as u64 >= u64::from(self.search.trials_max) || spent_ns > self.time.0 {
            Next::Ended(SearchEnd::Budget)
        } else {
            Next::Measure(ask)
        }
    }

    fn min_load(&self, max_load: u64) -> u64 {
        let few = PACKETS_MIN as f64 * SECOND_NS / self.shortest().0.max(1) as f64;
        let share = max_load as f64 * LOAD_SHARE_MIN;
        (few.max(share).ceil() as u64).clamp(1, max_load)
    }

    fn tolerated_shortfall(&self) -> f64 {
        self.search.goals.iter().map(|goal| goal.width).fold(1.0, f64::min) * SHORTFALL_SHARE
    }
}
