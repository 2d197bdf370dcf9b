//! The blocks of a run: which of them a resumed run repeats, and whether the hosts had the settings of its start at the end of each. It runs no
//! trial itself. The rules are in docs/design/0006-control.md.
use std::collections::BTreeMap;

use netduel_model::attempts;
use netduel_model::event::Event;
use netduel_model::run::RunEnd;
use netduel_model::trial::{Trial, Validity};
use netduel_model::warning::Warning;

use super::conductor::{Conductor, traffic_ns};
use super::error::{RunError, TrialError};
use super::pause;
use super::surroundings::StoreProblem;
use crate::schedule;

/// The blocks that were begun before a run was resumed, each with the number of its next attempt; `None` for a complete one.
#[derive(Debug)]
pub(super) struct BegunBlocks(BTreeMap<u32, Option<u32>>);

impl BegunBlocks {
    /// Number of complete blocks.
    pub(super) fn complete(&self) -> u32 {
        self.0.values().filter(|next| next.is_none()).count() as u32
    }

    /// The first block that is not complete.
    pub(super) fn first_open(&self) -> u32 {
        let is_open = |block: &u32| self.0.get(block) != Some(&None);
        (0..u32::MAX).find(is_open).unwrap_or(u32::MAX)
    }

    /// Whether this block, or a later one, was begun: all records of a block can be damaged.
    fn reaches(&self, block: u32) -> bool {
        self.0.last_key_value().is_some_and(|(last, _)| block <= *last)
    }
}

/// The number of the attempt after one.
///
/// # Errors
/// When no number is left. Only a run file that was changed by hand has such a number.
fn attempt_after(block: u32, attempt: u32) -> Result<u32, StoreProblem> {
    attempt.checked_add(1).ok_or_else(|| StoreProblem {
        message: format!(
            "block {} of the run file has attempt {attempt}, the largest number: the file was changed; start a new run",
            u64::from(block) + 1
        ),
    })
}

impl Conductor<'_> {
    /// Takes over the stored trials of a resumed run. Trials of incomplete blocks will be superseded, so they do not decide whether to stop.
    pub(super) fn begun_blocks(&mut self, done: Vec<Trial>) -> Result<BegunBlocks, StoreProblem> {
        let plan = self.hosts.plan;
        self.used_before_ns = traffic_ns(plan, &done);
        let mut begun = BTreeMap::new();
        for (block, last) in attempts::by_block(&done, plan.trials_per_block()) {
            let next = if last.is_complete { None } else { Some(attempt_after(block, last.attempt)?) };
            begun.insert(block, next);
        }
        self.trials = done.into_iter().filter(|trial| begun.get(&trial.slot.block) == Some(&None)).collect();
        Ok(BegunBlocks(begun))
    }

    /// Runs the blocks that are not complete.
    pub(super) fn blocks(&mut self, seed: u64, begun: &BegunBlocks) -> Result<RunEnd, RunError> {
        let started_ns = self.hosts.clock.now_ns();
        for block in 0..self.hosts.plan.design.blocks_max {
            let attempt = match begun.0.get(&block) {
                Some(None) => continue,
                Some(Some(attempt)) => *attempt,
                None => 0,
            };
            // A block that was begun is repeated in any case: it began within the budget, and before the precision was reached.
            if !begun.reaches(block)
                && let Some(end) = self.end_before(block, started_ns)
            {
                return Ok(end);
            }
            let slots = schedule::block(self.hosts.plan, seed, block);
            let last = slots.len().saturating_sub(1);
            for (index, slot) in slots.into_iter().enumerate() {
                let paused_ns = pause::wait(self.hosts.clock, self.policy);
                self.paused_ns = self.paused_ns.saturating_add(paused_ns);
                if self.hosts.clock.interrupted() {
                    return Ok(RunEnd::Interrupted);
                }
                self.store.reserve()?;
                if let Err(error) = self.slot(slot, attempt, index == last)? {
                    return Self::end_of(error);
                }
            }
            self.tell(Event::BlockFinished { block });
        }
        match self.policy.stop_after_block(&self.trials, &self.dropped) {
            Some(end) => Ok(end),
            None => Ok(RunEnd::BlockLimitReached),
        }
    }

    /// Why the run ends before a block that was never begun.
    fn end_before(&mut self, block: u32, started_ns: u64) -> Option<RunEnd> {
        let design = &self.hosts.plan.design;
        if block >= design.blocks_min
            && let Some(end) = self.policy.stop_after_block(&self.trials, &self.dropped)
        {
            return Some(end);
        }
        let own_ns = self.hosts.clock.now_ns().saturating_sub(started_ns).saturating_sub(self.paused_ns);
        let used_ns = self.used_before_ns.saturating_add(own_ns);
        design.budget.is_some_and(|budget| used_ns >= budget.0).then_some(RunEnd::BudgetReached)
    }

    /// Finishes a block: stores its last trial, which was held back, when every host has the settings of the start of the run, and a warning for
    /// each host that differed for a while, or where that is not known to concern the path. Otherwise stores the trial as the failed one of the
    /// next attempt, so that no trial of the block counts and a resumed run repeats the block. `outcome`: that of the trial. The inner error ends
    /// the run.
    pub(super) fn finish_block(
        &mut self,
        trial: Trial,
        outcome: Result<(), TrialError>,
    ) -> Result<Result<(), TrialError>, RunError> {
        if matches!(outcome, Err(TrialError::Interrupted)) {
            // Without agents there is nothing to compare, so the trial would complete the block.
            return Ok(outcome);
        }
        let moving = self.moving_hosts(&trial);
        let block = trial.slot.block;
        let error = match self.compare_with_start(&moving) {
            Ok(doubts) => {
                self.keep(trial)?;
                for (host, detail) in doubts {
                    self.warned(Warning::HostDiffered { host, block, detail });
                }
                return Ok(outcome);
            }
            // An interrupted block is repeated.
            Err(TrialError::Interrupted) => return Ok(outcome.and(Err(TrialError::Interrupted))),
            Err(error) => error,
        };
        let attempt = attempt_after(trial.slot.block, trial.attempt)?;
        let validity = Validity::Failed { reason: format!("the block does not count: {error}") };
        let superseding = Trial { validity, ..self.blank(trial.slot, attempt) };
        self.keep(superseding)?;
        Ok(outcome.and(Err(error)))
    }
}
