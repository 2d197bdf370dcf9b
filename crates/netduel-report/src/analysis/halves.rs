//! What the hosts of an arm determine, in each half of a crossover: in the second one the arm has other hosts. Nothing of a trial is read here.
use netduel_model::plan::{Arm, Pair, ResolvedPlan};
use netduel_model::trial::Trial;

/// A fact of the hosts of an arm. Without a crossover both halves have the same hosts.
#[derive(Debug, Clone)]
pub(super) struct Halves<T> {
    first: T,
    second: T,
    /// The first block of the second half; absent without a crossover.
    half: Option<u32>,
}

impl<T> Halves<T> {
    /// The fact by the hosts of each half.
    pub(super) fn new(plan: &ResolvedPlan, arm: &Arm, of: impl Fn(&Pair) -> T) -> Self {
        let crossed = plan.counterpart(arm).map_or(&arm.pair, |other| &other.pair);
        Self { first: of(&arm.pair), second: of(crossed), half: plan.crossover_at() }
    }

    /// The fact of the hosts of a trial.
    pub(super) fn of_trial(&self, trial: &Trial) -> &T {
        if self.half.is_some_and(|half| trial.slot.block >= half) { &self.second } else { &self.first }
    }
}

impl<T: PartialEq> Halves<T> {
    /// The fact of the hosts of all these trials; absent where the facts of the two halves differ.
    pub(super) fn of_all(&self, trials: &[&Trial]) -> Option<&T> {
        let mut each = trials.iter().map(|trial| self.of_trial(trial));
        let first = each.next().unwrap_or(&self.first);
        each.all(|other| other == first).then_some(first)
    }
}
