//! The highest rate without loss, or with little: a search by the terms of RFC 9971 (MLRsearch), as a pure state machine.
//!
//! [`Search::wanted`] asks for a trial, [`Search::record`] takes what it showed, until the search has ended; [`Search::results`] may
//! be read at any time. Classification of loads and conditional throughput are exactly the standard's; the choice of loads is
//! ours. No clock, no traffic and no chance in here. What it costs on simulated devices is in `docs/design/0019-search.md`.
mod bounds;
mod goal;
mod load;
mod stage;

pub use bounds::{Bounds, GoalResult, GoalState};
pub use goal::{Goal, GoalError};
pub use load::{Class, Trial, classify, conditional_throughput};

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

/// What to search for, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// At least one; searched for in this order, each trial counts for all.
    pub goals: Vec<Goal>,
    /// The highest load that may be tried, packets per second; absent: the first trial is not paced and finds it.
    pub max_load: Option<u64>,
    /// When to end with what was found.
    pub budget: Budget,
}

/// What a search may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Trials at most.
    pub trials: u32,
    /// Nanoseconds that all trials may take, with what is spent around them.
    pub spent_ns: u64,
}

/// Why a search cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// There is nothing to find.
    #[error("a search needs a goal")]
    NoGoal,
    /// There is nothing to try.
    #[error("the highest load of a search must be above 0 packets per second")]
    NoLoad,
    /// One of the goals makes no sense.
    #[error("goal {number}: {reason}")]
    Goal {
        /// Which, from 1.
        number: usize,
        /// Why.
        reason: GoalError,
    },
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find the highest load, and the rate that still arrives of it.
    Maximum,
    /// To narrow the bounds down with a trial shorter than the goal's.
    Narrow,
    /// To decide a load by the goal's own trials.
    Confirm,
}

/// A trial that the search asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Packets per second to send; absent: as many as the generator can.
    pub load: Option<u64>,
    /// How long to send, nanoseconds.
    pub duration_ns: u64,
    /// For which of the goals, from 0.
    pub goal: usize,
    /// What for.
    pub purpose: Purpose,
}

/// What a trial showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Packets that left the generator.
    pub sent: u64,
    /// Of them, packets that arrived.
    pub received: u64,
    /// How long the generator sent, nanoseconds.
    pub elapsed_ns: u64,
    /// How long the whole trial took, nanoseconds, with its preparation and end: what the budget pays.
    pub spent_ns: u64,
}

/// A trial with its verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What was asked for.
    pub ask: Ask,
    /// The trial as the standard sees it.
    pub trial: Trial,
    /// Packets per second that the generator sent.
    pub offered: f64,
    /// Whether the generator stayed so far below the load that what it did not send counts as lost.
    pub fell_short: bool,
}

impl Step {
    /// Whether it says something of its load. What a generator sent without pacing, and nothing of it was lost, is above the highest
    /// load that is tried: it can be no bound.
    fn is_evidence(&self) -> bool {
        self.ask.load.is_some() || self.trial.loss_ratio > 0.0
    }

    /// How far the offered load was from the intended one, as a share of it; absent when none was intended.
    pub fn pacing_error(&self) -> Option<f64> {
        self.ask.load.map(|load| self.offered / load as f64 - 1.0)
    }
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A trial.
    Measure(Ask),
    /// Nothing: it is over.
    Ended(End),
}

/// Why a search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every goal has its result, regular or not.
    Complete,
    /// The budget was spent before.
    Budget,
    /// The first trial sent nothing.
    NothingSent,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    settings: Settings,
    steps: Vec<Step>,
    spent_ns: u64,
    /// Highest load, once it is known.
    max_load: Option<u64>,
    /// The stages that are left, in order, with the goal of each; the first is under way.
    stages: std::collections::VecDeque<Stage>,
}

impl Search {
    /// A search that has not begun.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        if settings.goals.is_empty() {
            return Err(SettingsError::NoGoal);
        }
        if settings.max_load == Some(0) {
            return Err(SettingsError::NoLoad);
        }
        for (index, goal) in settings.goals.iter().enumerate() {
            goal.check().map_err(|reason| SettingsError::Goal { number: index + 1, reason })?;
        }
        let stages = settings.goals.iter().enumerate().flat_map(|(goal, settings)| {
            let stages = settings.stages();
            let last = stages.len() - 1;
            stages.into_iter().enumerate().map(move |(number, target)| {
                let purpose = if number == last { Purpose::Confirm } else { Purpose::Narrow };
                Stage::new(goal, target, purpose)
            })
        });
        let stages = stages.collect();
        let max_load = settings.max_load;
        Ok(Self { settings, steps: Vec::new(), spent_ns: 0, max_load, stages })
    }

    /// What to do now. Asking again without recording an outcome gives the same answer.
    pub fn wanted(&mut self) -> Next {
        if self.steps.is_empty() {
            return self.afford(self.first());
        }
        let Some(max_load) = self.max_load.filter(|load| *load > 0) else {
            return Next::Ended(End::NothingSent);
        };
        let min_load = self.min_load(max_load);
        while let Some(stage) = self.stages.front_mut() {
            match stage.choose(&View { steps: &self.steps, min_load, max_load }) {
                Choice::Load(load) => {
                    let ask = Ask {
                        load: Some(load),
                        duration_ns: stage.target.final_trial_ns,
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
        Next::Ended(End::Complete)
    }

    /// Takes what the trial showed that was asked for.
    pub fn record(&mut self, ask: Ask, outcome: Outcome) -> Step {
        let offered = outcome.sent as f64 * SECOND_NS / outcome.elapsed_ns.max(1) as f64;
        let load = ask.load.unwrap_or(offered as u64);
        let short = 1.0 - offered / load.max(1) as f64;
        let fell_short = short > self.tolerated_shortfall();
        let expected = outcome.sent as f64 / if fell_short { 1.0 - short } else { 1.0 };
        let forwarded = if outcome.sent == 0 { 0.0 } else { outcome.received as f64 / expected };
        let loss_ratio = (1.0 - forwarded).max(0.0);
        let trial = Trial { load, duration_ns: ask.duration_ns, loss_ratio };
        let step = Step { ask, trial, offered, fell_short };
        let kept = if step.is_evidence() { 1.0 } else { KEPT_SHARE };
        self.max_load.get_or_insert((load as f64 * kept) as u64);
        self.spent_ns = self.spent_ns.saturating_add(outcome.spent_ns);
        self.steps.push(step);
        step
    }

    /// The trials so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What is known so far of each goal, in the order of the settings.
    pub fn results(&self) -> Vec<GoalResult> {
        let bound =
            self.max_load.filter(|load| *load > 0).map(|max_load| (self.min_load(max_load), max_load));
        self.settings.goals.iter().map(|goal| GoalResult::of(goal, &self.steps, bound)).collect()
    }

    /// The highest load, packets per second, once it is known.
    pub fn max_load(&self) -> Option<u64> {
        self.max_load
    }

    fn first(&self) -> Ask {
        let duration_ns =
            self.settings.goals.iter().map(|goal| goal.initial_trial_ns).min().unwrap_or_default();
        Ask { load: self.settings.max_load, duration_ns, goal: 0, purpose: Purpose::Maximum }
    }

    /// The trial, when the budget has room for it.
    fn afford(&self, ask: Ask) -> Next {
        let budget = self.settings.budget;
        let spent_ns = self.spent_ns.saturating_add(ask.duration_ns);
        if self.steps.len() as u64 >= u64::from(budget.trials) || spent_ns > budget.spent_ns {
            Next::Ended(End::Budget)
        } else {
            Next::Measure(ask)
        }
    }

    fn min_load(&self, max_load: u64) -> u64 {
        let shortest_ns = self.settings.goals.iter().map(|goal| goal.initial_trial_ns).min().unwrap_or(1);
        let few = PACKETS_MIN as f64 * SECOND_NS / shortest_ns.max(1) as f64;
        let share = max_load as f64 * LOAD_SHARE_MIN;
        (few.max(share).ceil() as u64).clamp(1, max_load)
    }

    fn tolerated_shortfall(&self) -> f64 {
        self.settings.goals.iter().map(|goal| goal.width).fold(1.0, f64::min) * SHORTFALL_SHARE
    }
}
