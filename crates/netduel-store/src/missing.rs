//! Which trials of a run its file lacks, although the run stored them: a person or a program removed their lines, so that all checksums fit. It
//! reads no file and judges no value.
use std::collections::BTreeSet;

use netduel_model::attempts;
use netduel_model::run::{Run, RunEnd};

/// Most ranges of blocks that a sentence names.
const RANGES_MAX: usize = 4;

/// First and last block of a range, from 1 as for readers.
type Range = (u64, u64);

/// What the file of a run lacks, in words; absent without anything. `has_checksums`: whether all of its records have one. In files of older
/// formats only a block before a later one is missed, as before.
pub(crate) fn words(run: &Run, has_checksums: bool) -> Option<String> {
    let (before_later, blocks) = gaps(run);
    let mut faults = Vec::new();
    if let Some(blocks) = named(&before_later) {
        faults.push(format!("it has no trial of block {blocks}, although it has trials of a later block"));
    }
    if has_checksums {
        let required = u64::from(blocks_at_end(run));
        let at_end = if blocks < required { vec![(blocks + 1, required)] } else { Vec::new() };
        if let Some(blocks) = named(&at_end) {
            faults.push(format!(
                "it has no trial of block {blocks}, although its end requires {required} blocks"
            ));
        }
        if let Some(blocks) = named(&incomplete(run)) {
            faults.push(format!("it lacks trials of block {blocks}, although the run stored them"));
        }
    }
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// The blocks without a trial before one with a trial, and the number of the last block with one: a run has its blocks in order.
fn gaps(run: &Run) -> (Vec<Range>, u64) {
    let blocks: BTreeSet<u32> = run.trials.iter().map(|trial| trial.slot.block).collect();
    let mut ranges = Vec::new();
    let mut next = 0;
    for block in blocks.into_iter().map(u64::from) {
        if block > next {
            ranges.push((next + 1, block));
        }
        next = block + 1;
    }
    (ranges, next)
}

/// The least number of blocks of a run with this end.
fn blocks_at_end(run: &Run) -> u32 {
    let design = &run.header.plan.design;
    match &run.end {
        Some(RunEnd::BlockLimitReached) => design.blocks_max,
        Some(RunEnd::PrecisionReached) => design.blocks_min.min(design.blocks_max),
        Some(RunEnd::BudgetReached | RunEnd::Interrupted | RunEnd::Failed { .. }) | None => 0,
    }
}

/// The blocks with some of the trials that the run stored. A finished block has every slot, also those of dropped arms, whose trials fail. A
/// block that the run did not finish has the first ones of its order.
fn incomplete(run: &Run) -> Vec<Range> {
    let per_block = run.header.plan.trials_per_block();
    let unfinished = attempts::unfinished(&run.trials, per_block, run.end.as_ref());
    let mut ranges: Vec<Range> = Vec::new();
    for (block, last) in attempts::by_block(&run.trials, per_block) {
        let is_whole = last.is_complete
            || unfinished
                .iter()
                .any(|one| one.block == block && one.trials == slots_up_to_the_last(run, block));
        if is_whole {
            continue;
        }
        let number = u64::from(block) + 1;
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// Number of slots of a block up to the last one with a trial, of any attempt.
fn slots_up_to_the_last(run: &Run, block: u32) -> u32 {
    let slots = run.trials.iter().map(|trial| &trial.slot).filter(|slot| slot.block == block);
    slots.map(|slot| slot.position.saturating_add(1)).max().unwrap_or(0)
}

/// Ranges of blocks in words; absent without any.
fn named(ranges: &[Range]) -> Option<String> {
    let words = ranges
        .iter()
        .take(RANGES_MAX)
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") });
    let words: Vec<String> = words.collect();
    let more = if ranges.len() > RANGES_MAX { " and others" } else { "" };
    (!words.is_empty()).then(|| format!("{}{more}", words.join(", ")))
}
