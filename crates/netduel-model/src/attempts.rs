//! Attempts at the blocks of a run: which trials count, which blocks are complete, and which were not finished. Pure.
use std::collections::{BTreeMap, BTreeSet};

use crate::run::RunEnd;
use crate::trial::{Slot, Trial};

/// The last attempt at a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its number, from 0.
    pub attempt: u32,
    /// Whether it has a trial of every slot.
    pub is_complete: bool,
}

/// The trials that count for their slots: those of the highest attempt at their block. Where a slot has two of them, as in a run that an
/// earlier version resumed after a record was damaged, the later one counts.
pub fn counting(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    let mut attempts: BTreeMap<u32, u32> = BTreeMap::new();
    for trial in trials {
        let highest = attempts.entry(trial.slot.block).or_default();
        *highest = (*highest).max(trial.attempt);
    }
    let mut last: BTreeMap<&Slot, usize> = BTreeMap::new();
    for (index, trial) in trials.iter().enumerate() {
        if attempts.get(&trial.slot.block) == Some(&trial.attempt) {
            last.insert(&trial.slot, index);
        }
    }
    trials
        .iter()
        .enumerate()
        .filter(move |(index, trial)| last.get(&trial.slot) == Some(index))
        .map(|(_, trial)| trial)
}

/// The last attempts at the blocks that have a trial, by block. `per_block`: the slots of a block.
pub fn by_block(trials: &[Trial], per_block: u32) -> BTreeMap<u32, LastAttempt> {
    let mut blocks: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for trial in counting(trials) {
        let (_, slots) = blocks.entry(trial.slot.block).or_insert((trial.attempt, 0));
        *slots += 1;
    }
    blocks
        .into_iter()
        .map(|(block, (attempt, slots))| (block, LastAttempt { attempt, is_complete: slots >= per_block }))
        .collect()
}

/// The counting trials of complete blocks: those that a resumed run does not repeat.
pub fn of_complete_blocks(trials: &[Trial], per_block: u32) -> impl Iterator<Item = &Trial> {
    let blocks = by_block(trials, per_block);
    counting(trials).filter(move |trial| blocks.get(&trial.slot.block).is_some_and(|last| last.is_complete))
}

/// A block that a run began and did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// The block, from 0.
    pub block: u32,
    /// Its slots with a trial, of any attempt.
    pub trials: u32,
}

/// The blocks that a run began and did not finish, ascending, when it has no regular end: hosts are compared at the end of a block, so a
/// change of them in one of these was not noticed, or it ended the run. They are the highest block and the block of the last trial, where
/// they are not complete: a resumed run repeats a lower block first, and may end before it returns to the highest one. Any other block that
/// is not complete was finished, and lost a record later. `per_block`: the slots of a block. `end`: absent while the run is in progress, or
/// when its coordinator was killed.
pub fn unfinished(trials: &[Trial], per_block: u32, end: Option<&RunEnd>) -> Vec<Unfinished> {
    if end.is_some_and(RunEnd::is_regular) {
        return Vec::new();
    }
    let last = trials.last().map(|trial| trial.slot.block);
    let highest = trials.iter().map(|trial| trial.slot.block).max();
    let begun: BTreeSet<u32> = last.into_iter().chain(highest).collect();
    let blocks = by_block(trials, per_block);
    begun
        .into_iter()
        .filter(|block| blocks.get(block).is_none_or(|last| !last.is_complete))
        .map(|block| {
            let slots = trials.iter().map(|trial| &trial.slot).filter(|slot| slot.block == block);
            Unfinished { block, trials: slots.collect::<BTreeSet<_>>().len() as u32 }
        })
        .collect()
}

/// The counting trials that a result contains: those of finished blocks.
pub fn in_result<'a>(trials: &'a [Trial], unfinished: &[Unfinished]) -> impl Iterator<Item = &'a Trial> {
    counting(trials).filter(move |trial| left_out(trial, unfinished).is_none())
}

/// The block of a trial when it was not finished.
pub fn left_out(trial: &Trial, unfinished: &[Unfinished]) -> Option<Unfinished> {
    unfinished.iter().copied().find(|one| one.block == trial.slot.block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(block: u32, position: u32, attempt: u32, started_unix_ms: u64) -> Trial {
        let arm = if position == 0 { "one" } else { "other" };
        let (arm, workload) = (arm.parse().unwrap(), "w".parse().unwrap());
        Trial::new(Slot { block, position, arm, workload }, attempt, started_unix_ms)
    }

    #[test]
    fn block_is_complete_when_its_highest_attempt_has_every_slot() {
        let trials = vec![
            trial(0, 0, 0, 1),
            trial(0, 1, 0, 2),
            // Superseded by one trial of the next attempt.
            trial(1, 0, 0, 3),
            trial(1, 1, 0, 4),
            trial(1, 1, 1, 5),
            trial(3, 0, 0, 6),
            trial(3, 1, 0, 7),
        ];
        let blocks: Vec<(u32, u32, bool)> = by_block(&trials, 2)
            .into_iter()
            .map(|(block, last)| (block, last.attempt, last.is_complete))
            .collect();
        assert_eq!(blocks, [(0, 0, true), (1, 1, false), (3, 0, true)]);
        let counting: Vec<u64> = counting(&trials).map(|trial| trial.started_unix_ms).collect();
        assert_eq!(counting, [1, 2, 5, 6, 7]);
        let complete: Vec<u64> = of_complete_blocks(&trials, 2).map(|trial| trial.started_unix_ms).collect();
        assert_eq!(complete, [1, 2, 6, 7]);
    }

    #[test]
    fn later_of_two_trials_of_a_slot_counts_and_does_not_complete_its_block() {
        let trials = [trial(0, 0, 0, 1), trial(0, 0, 0, 2)];
        assert_eq!(counting(&trials).map(|trial| trial.started_unix_ms).collect::<Vec<_>>(), [2]);
        assert_eq!(by_block(&trials, 2)[&0], LastAttempt { attempt: 0, is_complete: false });
    }

    #[test]
    fn last_begun_block_is_left_out_when_neither_it_nor_the_run_has_its_end() {
        let failed = RunEnd::Failed { detail: "host b has other settings".to_owned() };
        let trials = vec![
            trial(0, 0, 0, 1),
            trial(0, 1, 0, 2),
            // Its other record was damaged later.
            trial(1, 0, 0, 3),
            trial(2, 0, 0, 4),
        ];
        for end in [None, Some(RunEnd::Interrupted), Some(failed)] {
            let left_out = unfinished(&trials, 2, end.as_ref());
            assert_eq!(left_out, [Unfinished { block: 2, trials: 1 }], "{end:?}");
            let counting: Vec<u64> =
                in_result(&trials, &left_out).map(|trial| trial.started_unix_ms).collect();
            assert_eq!(counting, [1, 2, 3], "{end:?}");
            // Stopped between two blocks.
            assert!(unfinished(&trials[..2], 2, end.as_ref()).is_empty(), "{end:?}");
            assert!(unfinished(&[], 2, end.as_ref()).is_empty(), "{end:?}");
        }
        for end in [RunEnd::PrecisionReached, RunEnd::BlockLimitReached, RunEnd::BudgetReached] {
            assert!(unfinished(&trials, 2, Some(&end)).is_empty(), "{end:?}");
        }
        assert_eq!(in_result(&trials, &[]).count(), 4);
    }

    #[test]
    fn block_that_a_changed_host_superseded_is_left_out_with_all_of_its_trials() {
        let trials = vec![trial(0, 0, 0, 1), trial(0, 1, 0, 2), trial(1, 0, 0, 3), trial(1, 1, 1, 4)];
        assert_eq!(unfinished(&trials, 2, None), [Unfinished { block: 1, trials: 2 }]);
    }

    #[test]
    fn block_that_a_resumed_run_repeats_is_the_one_that_it_began_last() {
        let mut trials = vec![trial(0, 0, 0, 1), trial(1, 0, 0, 2), trial(1, 1, 0, 3), trial(0, 0, 1, 4)];
        let left_out = unfinished(&trials, 2, Some(&RunEnd::Interrupted));
        assert_eq!(left_out, [Unfinished { block: 0, trials: 1 }]);
        trials.push(trial(0, 1, 1, 5));
        assert!(unfinished(&trials, 2, Some(&RunEnd::Interrupted)).is_empty());
    }

    #[test]
    fn block_that_a_resumed_run_did_not_reach_again_is_left_out() {
        let mut trials = vec![
            trial(0, 0, 0, 1),
            trial(0, 1, 0, 2),
            // Its other record was damaged later.
            trial(1, 0, 0, 3),
            // The run was killed here.
            trial(2, 0, 0, 4),
            trial(1, 0, 1, 5),
        ];
        let highest = Unfinished { block: 2, trials: 1 };
        let left_out = unfinished(&trials, 2, Some(&RunEnd::Interrupted));
        assert_eq!(left_out, [Unfinished { block: 1, trials: 1 }, highest]);
        trials.push(trial(1, 1, 1, 6));
        let left_out = unfinished(&trials, 2, Some(&RunEnd::Interrupted));
        assert_eq!(left_out, [highest]);
        let counting: Vec<u64> = in_result(&trials, &left_out).map(|trial| trial.started_unix_ms).collect();
        assert_eq!(counting, [1, 2, 5, 6]);
    }
}
