//! The highest rate without loss, or with little: a search by the terms of RFC 9971 (MLRsearch), as a pure state machine.
//!
//! [`RateSearch::wanted`] asks for a trial, [`RateSearch::record`] takes what it counted, until the search has ended;
//! [`RateSearch::results`] may be read at any time. Classification of loads and conditional throughput are exactly the standard's; the choice of loads is
//! ours. No clock, no traffic and no chance in here. What it costs on simulated devices is in `docs/design/0019-search.md`.
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
/// Packets that the shortest trial at the lowest load must have, so that a loss ratio means something.
const PACKETS_MIN: u64 = 10;
/// The lowest load that is tried, as a share of the highest. A path that loses packets at a thousandth of what it is offered at most
/// is faulty, and its rate without loss is no figure of its speed.
const LOAD_SHARE_MIN: f64 = 0.001;
/// How far the offered load may stay below the intended one before what was not sent counts as lost (RFC 9971, section 4.9.1,
/// leaves the share to the implementation): half of the narrowest width.
const SHORTFALL_SHARE: f64 = 0.5;

/// The highest load that is tried of what the generator sent without pacing, when none of that was lost. At its own limit a generator
/// does not keep to a rate, and to find out where exactly it begins to is no search for what the path carries (RFC 9971, section
/// 4.9.1, recommends a highest load that can be offered).
const KEPT_SHARE: f64 = 0.95;

/// Why a search cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SearchError {
    /// There is nothing to find.
    #[error("a search needs a goal")]
    NoGoal,
    /// One of the goals makes no sense.
    #[error("goal {number}: {reason}")]
    Goal {
        /// Which, from 1.
        number: usize,
        /// Why.
        reason: GoalError,
    },
}

/// Whether a trial is evidence about its load. What a generator sent without pacing, and nothing of it was lost, is above the highest
/// load that is tried: it can be no bound.
fn is_evidence(step: &SearchStep) -> bool {
    step.input.load.is_some() || step.loss_ratio > 0.0
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A trial.
    Measure(SearchInput),
    /// The search is over.
    Ended(SearchEnd),
}

/// A search that has begun.
#[derive(Debug, Clone)]
pub struct RateSearch {
    search: Search,
    /// What all trials may take, with what is spent around them.
    time: Nanos,
    steps: Vec<SearchStep>,
    spent_ns: u64,
    /// Highest load, once it is known.
    max_load: Option<u64>,
    /// The stages that are left, in order, with the goal of each; the first is under way.
    stages: std::collections::VecDeque<Stage>,
}

impl RateSearch {
    /// A search that may take `time`, with what is spent around its trials. The first trial is not paced and finds the highest load.
    ///
    /// # Errors
    /// What is wrong with its goals. The goals of a checked plan have no such error.
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

    /// What to do now. Asking again without recording an outcome gives the same answer.
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

    /// The trials so far.
    pub fn steps(&self) -> &[SearchStep] {
        &self.steps
    }

    /// The trials, after the search.
    pub fn into_steps(self) -> Vec<SearchStep> {
        self.steps
    }

    /// What is known so far of each goal, in the order of the plan.
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

    /// The trial, when time and number of trials have room for it.
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
