//! The bounds of a goal from the trials, and its result.
use netduel_model::search::{SearchGoal, SearchResult, SearchState, SearchStep};

use super::goal::stages;
use super::is_evidence;
use super::load::{Class, Trial, classify, conditional_throughput};

/// The relevant bounds of a goal (RFC 9971, section 4.8), packets per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bounds {
    /// The largest lower bound below the upper one.
    pub lower: Option<u64>,
    /// The smallest upper bound.
    pub upper: Option<u64>,
}

impl Bounds {
    /// Whether both are known and at most `width` apart, as a share of the upper one; neighbouring loads are always close enough.
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

/// The result of a goal from the trials. `loads` are the minimum and the maximum load, once known.
pub(super) fn result(goal: &SearchGoal, steps: &[SearchStep], loads: Option<(u64, u64)>) -> SearchResult {
    let found = bounds(goal, steps);
    let is =
        |load: Option<u64>, class| load.is_some_and(|load| classify(goal, trials_at(steps, load)) == class);
    let state = if found.are_within(goal.width) {
        SearchState::Regular
    } else if is(loads.map(|(_, max)| max), Class::Lower) && found.upper.is_none() {
        SearchState::MaxLoadReached
    } else if is(loads.map(|(min, _)| min), Class::Upper) {
        SearchState::MinLoadFails
    } else {
        SearchState::Unfinished
    };
    let narrowed = bounds(stages(goal).first().unwrap_or(goal), steps);
    let conditional_throughput =
        found.lower.and_then(|load| conditional_throughput(goal, load, trials_at(steps, load)));
    let at_upper = || {
        let high = |step: &&SearchStep| Some(step.load) == found.upper && step.loss_ratio > goal.loss_ratio;
        steps.iter().filter(high)
    };
    let short = at_upper().filter(|step| step.generator_limited).count();
    SearchResult {
        state,
        lower: found.lower,
        upper: found.upper,
        narrowed_lower: narrowed.lower,
        narrowed_upper: narrowed.upper,
        conditional_throughput,
        // From most of its high-loss trials.
        generator_limited: 2 * short > at_upper().count(),
    }
}

/// Resolution by which loads are grouped.
fn evidence(steps: &[SearchStep]) -> impl Iterator<Item = &SearchStep> {
    steps.iter().filter(|step| is_evidence(step))
}

/// The trials at a load.
pub(super) fn trials_at(steps: &[SearchStep], load: u64) -> impl Iterator<Item = Trial> {
    evidence(steps).map(Trial::from).filter(move |trial| trial.load == load)
}

/// The tested loads, ascending, without duplicates.
pub(super) fn loads(steps: &[SearchStep]) -> Vec<u64> {
    let mut loads: Vec<u64> = evidence(steps).map(|step| step.load).collect();
    loads.sort_unstable();
    loads.dedup();
    loads
}

/// The relevant bounds from the classification by a goal.
pub(super) fn bounds(goal: &SearchGoal, steps: &[SearchStep]) -> Bounds {
    let loads = loads(steps);
    let class = |load: u64| classify(goal, trials_at(steps, load));
    let upper = loads.iter().copied().find(|load| class(*load) == Class::Upper);
    let below = loads.iter().rev().copied().filter(|load| upper.is_none_or(|upper| *load < upper));
    Bounds { lower: below.into_iter().find(|load| class(*load) == Class::Lower), upper }
}
