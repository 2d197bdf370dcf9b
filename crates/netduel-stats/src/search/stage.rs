//! One stage of a search: selects loads until the bounds from trials of one length are close enough.
//!
//! In order: decide the current load; try the bounds from shorter trials, the lower one first; try both sides of the received
//! rate of a load that is too high; take growing steps away from the latest bound; after a step that went too far, bisect.
use netduel_model::search::{SearchGoal, SearchPurpose, SearchStep};

use super::bounds::{Bounds, bounds, loads, trials_at};
use super::load::{Class, classify};

/// Maximum distance of an earlier load from the wanted one to be used instead, as a share of the width: its trials are evidence
/// that costs nothing.
const NEAR: f64 = 0.25;
/// Distance of the two loads around an estimate from it, as a share of the width: together less than a width.
const AROUND: f64 = 0.49;

/// Within this distance of the lowest load, as a share of it, only the lowest load is tried: a path that fails there is not worth
/// a precise result.
const LOWEST: f64 = 1.0;
/// Growth factor of steps away from a bound that were not far enough.
const GROWTH: f64 = 3.0;
/// Number of steps towards a known bound before bisection is better: the received rate of a load far too high says little about
/// an overloaded path.
const STRIDES_MAX: i32 = 2;
/// Maximum number of guesses in a stage that turn out too high. On a path that delivers its capacity under overload the first
/// guess is right; where loss does not depend on the load, guesses would never end.
const GUESSES_MAX: u32 = 2;

/// The context of a load selection.
pub(super) struct View<'a> {
    /// Trials so far.
    pub steps: &'a [SearchStep],
    /// The lowest load.
    pub min_load: u64,
    /// The highest load.
    pub max_load: u64,
}

/// The next action of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// A trial at this load, packets per second.
    Load(u64),
    /// No further trial: the bounds.
    Done(Bounds),
}

/// Direction from a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Down,
    Up,
}

/// The origin of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// A bound by shorter trials, or the highest load.
    Hint,
    /// The received rate of a load that is too high.
    Guess,
    /// A step away from a bound.
    Stride(Side),
    /// Bisection.
    Half,
}

/// A stage.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    /// Index of the goal.
    pub goal: u32,
    /// The goal with the trial length of this stage.
    pub target: SearchGoal,
    /// Purpose of its trials.
    pub purpose: SearchPurpose,
    /// The bounds from shorter trials.
    pub hints: Bounds,
    /// The current load.
    in_flight: Option<(u64, Reason)>,
    /// Number of guesses that were too high.
    guesses: u32,
    /// Number of consecutive steps that were not far enough.
    strides: Option<(Side, i32)>,
    /// Whether a step went too far: bisection from then on.
    halving: bool,
}

impl Stage {
    /// A new stage.
    pub fn new(goal: u32, target: SearchGoal, purpose: SearchPurpose) -> Self {
        let hints = Bounds::default();
        Self { goal, target, purpose, hints, in_flight: None, guesses: 0, strides: None, halving: false }
    }

    /// The next load, or the end of the stage.
    pub fn choose(&mut self, view: &View<'_>) -> Choice {
        let found = bounds(&self.target, view.steps);
        let inside = |load: u64| {
            found.lower.is_none_or(|lower| load > lower) && found.upper.is_none_or(|upper| load < upper)
        };
        if let Some((load, reason)) = self.in_flight {
            let class = classify(&self.target, trials_at(view.steps, load));
            if class == Class::Undecided && inside(load) {
                return Choice::Load(load);
            }
            self.in_flight = None;
            self.learn(reason, class);
        }
        let is_lowest_too_high = found.upper.is_some_and(|upper| upper <= view.min_load);
        let is_highest_low = found.upper.is_none() && found.lower.is_some_and(|lower| lower >= view.max_load);
        if found.are_within(self.target.width) || is_lowest_too_high || is_highest_low {
            return Choice::Done(found);
        }
        let (wanted, reason) = self.wanted(view, found, &inside);
        // Strictly between the bounds, so that every decision narrows them.
        let floor = found.lower.map_or(view.min_load, |lower| lower + 1);
        let ceiling = found.upper.map_or(view.max_load, |upper| upper - 1);
        let load = self.near(view, wanted.clamp(floor, ceiling), &inside);
        self.in_flight = Some((load, reason));
        Choice::Load(load)
    }

    /// Updates the strategy from the class of a load and its origin.
    fn learn(&mut self, reason: Reason, class: Class) {
        if reason == Reason::Guess && class == Class::Upper {
            self.guesses += 1;
        }
        let Reason::Stride(side) = reason else { return };
        let went_on = match side {
            Side::Down => class == Class::Upper,
            Side::Up => class == Class::Lower,
        };
        if went_on {
            let done = self.strides.filter(|(before, _)| *before == side).map_or(0, |(_, count)| count);
            self.strides = Some((side, done + 1));
        } else {
            self.halving = true;
        }
    }

    fn wanted(&self, view: &View<'_>, found: Bounds, inside: &impl Fn(u64) -> bool) -> (u64, Reason) {
        let untried = |load: &u64| {
            inside(*load) && classify(&self.target, trials_at(view.steps, *load)) == Class::Undecided
        };
        if let Some(hint) = [self.hints.lower, self.hints.upper].into_iter().flatten().find(untried) {
            return (hint, Reason::Hint);
        }
        if let Some(guess) = self.guess(view, found) {
            return (guess, Reason::Guess);
        }
        match (found.lower, found.upper) {
            (None, None) => (view.max_load, Reason::Hint),
            (Some(lower), None) => (self.stride(Side::Up, lower), Reason::Stride(Side::Up)),
            (None, Some(upper)) => {
                let half = middle(view.min_load, upper);
                let (load, reason) = self.down(upper, half);
                let is_all_but_lowest = (load as f64) < view.min_load as f64 * (1.0 + LOWEST);
                if is_all_but_lowest { (view.min_load, reason) } else { (load, reason) }
            }
            (Some(lower), Some(upper)) => {
                let half = middle(lower, upper);
                let last = view.steps.last().map(|step| step.load);
                if last == Some(lower) && !self.halving && self.strides.is_none_or(|(_, n)| n < STRIDES_MAX) {
                    let stride = self.stride(Side::Up, lower);
                    if stride < half { (stride, Reason::Stride(Side::Up)) } else { (half, Reason::Half) }
                } else if last == Some(lower) {
                    (half, Reason::Half)
                } else {
                    self.down(upper, half)
                }
            }
        }
    }

    fn down(&self, upper: u64, half: u64) -> (u64, Reason) {
        let stride = self.stride(Side::Down, upper);
        if stride > half && !self.halving {
            (stride, Reason::Stride(Side::Down))
        } else {
            (half, Reason::Half)
        }
    }

    /// One side of the received rate of a load far too high: a path that delivers its capacity under overload receives exactly
    /// that.
    fn guess(&self, view: &View<'_>, found: Bounds) -> Option<u64> {
        let from = found.upper.unwrap_or(view.max_load);
        // In a trial that is too short, a buffer may absorb all excess packets.
        let lost = |least_ns: u64| {
            let trials = trials_at(view.steps, from).filter(|trial| trial.duration_ns >= least_ns);
            trials.map(|trial| trial.loss_ratio).reduce(f64::min)
        };
        let loss_ratio = lost(self.target.final_trial.0).or_else(|| lost(0))?;
        if self.guesses >= GUESSES_MAX || loss_ratio <= self.target.loss_ratio + self.target.width {
            return None;
        }
        let arrives = from as f64 * (1.0 - loss_ratio) / (1.0 - self.target.loss_ratio);
        let side = |sign: f64| (arrives * (1.0 + sign * AROUND * self.target.width)) as u64;
        let (below, above) = (side(-1.0), side(1.0));
        if below < view.min_load {
            None
        } else if found.lower.is_none_or(|lower| lower < below) {
            Some(below)
        } else {
            let is_below_close = found.lower.is_some_and(|lower| lower < above);
            (is_below_close && above < from).then_some(above)
        }
    }

    /// A step away from a bound: one width, growing after steps that were not far enough.
    fn stride(&self, side: Side, bound: u64) -> u64 {
        let count = self.strides.filter(|(before, _)| *before == side).map_or(0, |(_, count)| count);
        let share = self.target.width * GROWTH.powi(count);
        match side {
            Side::Down => (bound as f64 * (1.0 - share)).max(0.0).ceil() as u64,
            Side::Up => (bound as f64 * (1.0 + share)) as u64,
        }
    }

    /// An earlier load close to the wanted one, or the wanted one.
    fn near(&self, view: &View<'_>, wanted: u64, inside: &impl Fn(u64) -> bool) -> u64 {
        let distance = |load: u64| load.abs_diff(wanted);
        let close = (NEAR * self.target.width * wanted as f64) as u64;
        loads(view.steps)
            .into_iter()
            .filter(|load| inside(*load) && distance(*load) <= close)
            .filter(|load| classify(&self.target, trials_at(view.steps, *load)) == Class::Undecided)
            .min_by_key(|load| distance(*load))
            .unwrap_or(wanted)
    }
}

/// The geometric mean of two loads.
fn middle(low: u64, high: u64) -> u64 {
    (low as f64 * high as f64).sqrt() as u64
}
