//! The bounds that trials leave for a goal, and what is said of it in the end.
use super::Step;
use super::goal::Goal;
use super::load::{Class, Trial, classify, conditional_throughput};

/// The relevant bounds of a goal (RFC 9971, section 4.8), packets per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The largest lower bound below the upper one.
    pub lower: Option<u64>,
    /// The smallest upper bound.
    pub upper: Option<u64>,
}

impl Bounds {
    /// Whether both are known and no further apart than the share of the upper one; neighbours always are close enough.
    pub(super) fn are_within(self, width: f64) -> bool {
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => {
                let apart = upper - lower;
                apart <= 1 || apart as f64 <= width * upper as f64
            }
            _ => false,
        }
    }
}

/// How the search for a goal came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalState {
    /// Both bounds are known and as close as asked: a regular goal result.
    Regular,
    /// Irregular: even the highest load is a lower bound, so there is no upper one.
    MaxLoadReached,
    /// Irregular: even the lowest load is an upper bound, so there is no lower one.
    MinLoadFails,
    /// Irregular: the search ended before the bounds were known or close.
    Unfinished,
}

/// What a search found for a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GoalResult {
    /// Whether it is what was asked for.
    pub state: GoalState,
    /// The relevant bounds, by the goal's own classification.
    pub bounds: Bounds,
    /// The bounds that the shortest trials would give; all that is known of an unfinished search.
    pub narrowed: Bounds,
    /// Conditional throughput at the lower bound, packets per second.
    pub conditional_throughput: Option<f64>,
    /// Whether the upper bound is one because the generator could not send as much, in most of its high-loss trials.
    pub limited_by_generator: bool,
}

impl GoalResult {
    /// What the trials say of a goal. `loads` are the lowest and the highest load, once known.
    pub(super) fn of(goal: &Goal, steps: &[Step], loads: Option<(u64, u64)>) -> Self {
        let found = bounds(goal, steps);
        let is = |load: Option<u64>, class| {
            load.is_some_and(|load| classify(goal, trials_at(steps, load)) == class)
        };
        let state = if found.are_within(goal.width) {
            GoalState::Regular
        } else if is(loads.map(|(_, max)| max), Class::Lower) && found.upper.is_none() {
            GoalState::MaxLoadReached
        } else if is(loads.map(|(min, _)| min), Class::Upper) {
            GoalState::MinLoadFails
        } else {
            GoalState::Unfinished
        };
        let shortest = goal.stages().first().map_or(*goal, |stage| *stage);
        let conditional_throughput =
            found.lower.and_then(|load| conditional_throughput(goal, load, trials_at(steps, load)));
        let at_upper = || {
            let high = |step: &&Step| {
                Some(step.trial.load) == found.upper && step.trial.loss_ratio > goal.loss_ratio
            };
            steps.iter().filter(high)
        };
        let short = at_upper().filter(|step| step.fell_short).count();
        Self {
            state,
            bounds: found,
            narrowed: bounds(&shortest, steps),
            conditional_throughput,
            limited_by_generator: 2 * short > at_upper().count(),
        }
    }
}

/// The steps that loads are classified by.
fn evidence(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| step.is_evidence())
}

/// The trials at a load.
pub(super) fn trials_at(steps: &[Step], load: u64) -> impl Iterator<Item = Trial> {
    evidence(steps).map(|step| step.trial).filter(move |trial| trial.load == load)
}

/// The loads that were tried, ascending, each once.
pub(super) fn loads(steps: &[Step]) -> Vec<u64> {
    let mut loads: Vec<u64> = evidence(steps).map(|step| step.trial.load).collect();
    loads.sort_unstable();
    loads.dedup();
    loads
}

/// The relevant bounds by the classification of a goal.
pub(super) fn bounds(goal: &Goal, steps: &[Step]) -> Bounds {
    let loads = loads(steps);
    let class = |load: u64| classify(goal, trials_at(steps, load));
    let upper = loads.iter().copied().find(|load| class(*load) == Class::Upper);
    let below = loads.iter().rev().copied().filter(|load| upper.is_none_or(|upper| *load < upper));
    Bounds { lower: below.into_iter().find(|load| class(*load) == Class::Lower), upper }
}
