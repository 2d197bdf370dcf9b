//! The blocks of a run: which of them a resumed run repeats, and whether the hosts had the settings of its start at the end of each. It runs no
//! trial itself. The rules are in docs/design/0006-control.md.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::attempts;
use netduel_model::event::Event;
use netduel_model::failover::RETURN_DEADLINE_NS;
use netduel_model::ids::HostName;
use netduel_model::plan::TreatmentAction;
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::{Trial, Validity};
use netduel_model::units::Nanos;
use netduel_model::workload::Role;

use super::conditions;
use super::conductor::{Conductor, traffic_ns};
use super::error::{RunError, TrialError};
use super::pause;
use super::surroundings::StoreProblem;
use crate::protocol::{DESCRIBE_TIMEOUT_NS, ToAgent};
use crate::schedule;

/// Time between two looks at a host that differs: the command that brings an interface back may not wait for it, and its settings follow.
const LOOK_INTERVAL: Nanos = Nanos(1_000_000_000);
/// Looks until a difference counts where an interface of the path moved: a NIC negotiates its link for seconds, and then follow LACP, the
/// rules of udev and the routes of a DHCP client.
const LOOKS: u64 = RETURN_DEADLINE_NS / LOOK_INTERVAL.0;
/// Looks until a difference counts elsewhere: a command can return before its effect, but without a movement nothing else sets a value back.
const LOOKS_WITHOUT_MOVEMENT: u64 = 3;

/// The blocks that were begun before a run was resumed, each with the number of its next attempt; `None` for a complete one.
#[derive(Debug)]
pub(super) struct BegunBlocks(BTreeMap<u32, Option<u32>>);

impl BegunBlocks {
    /// Number of complete blocks.
    pub(super) fn complete(&self) -> u32 {
        self.0.values().filter(|next| next.is_none()).count() as u32
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

    /// Finishes a block: stores its last trial, which was held back, when every host has the settings of the start of the run. Otherwise
    /// stores it as the failed trial of the next attempt, so that no trial of the block counts and a resumed run repeats the block.
    /// `outcome`: that of the trial. The inner error ends the run.
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
        let error = match self.compare_with_start(&moving) {
            Ok(()) => {
                self.keep(trial)?;
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

    /// Compares the hosts with their descriptions at the start of this process. An agent that is lost meanwhile is restarted. A quick test is
    /// one trial; its reader sees when it ran. `moving`: as of [`Self::moving_hosts`].
    fn compare_with_start(&mut self, moving: &BTreeSet<HostName>) -> Result<(), TrialError> {
        if !self.policy.locks_hosts() {
            return Ok(());
        }
        loop {
            match self.compare_hosts(moving) {
                Err(error @ TrialError::Lost { .. }) => self.restart_lost_agents(error)?,
                other => return other,
            }
        }
    }

    /// The hosts on which a link of the path changed in the block of this trial: while traffic ran, or by a treatment that takes an interface away.
    fn moving_hosts(&self, last: &Trial) -> BTreeSet<HostName> {
        let plan = self.hosts.plan;
        let block = last.slot.block;
        let mut moving = BTreeSet::new();
        for trial in self.trials.iter().filter(|trial| trial.slot.block == block).chain([last]) {
            let Some(arm) = plan.arm(&trial.slot.arm) else { continue };
            let arm = plan.arm_in(arm, block);
            for role in [Role::Client, Role::Server] {
                let has_event = trial
                    .end(role)
                    .is_some_and(|end| !end.observation.link_events_on_path(arm.expected(role)).is_empty());
                let takes_away = |action: &TreatmentAction| {
                    matches!(action, TreatmentAction::Vf { .. } | TreatmentAction::Pci { .. })
                };
                if has_event || arm.agent_treatments(role).iter().any(takes_away) {
                    moving.insert(arm.pair.host(role).clone());
                }
            }
        }
        moving
    }

    /// Compares every host, except those without an agent, because the run ends with its loss, and those on a machine with a change of the run
    /// that could not be undone, because their arms are dropped.
    fn compare_hosts(&mut self, moving: &BTreeSet<HostName>) -> Result<(), TrialError> {
        let then = self.snapshots.clone();
        for host in then.keys() {
            if self.hosts.is_running(host) && self.unrestored_beside(host).is_none() {
                self.compare_host(host, &then, moving.contains(host))?;
            }
        }
        Ok(())
    }

    /// Compares the hosts of a resumed run with those at its start: trials under other settings are not its trials.
    pub(super) fn compare(
        &mut self,
        then: &BTreeMap<HostName, HostSnapshot>,
        now: &BTreeMap<HostName, HostSnapshot>,
    ) -> Result<(), TrialError> {
        let plan = self.hosts.plan;
        for (host, now) in now {
            if !conditions::differences(plan, host, then, now).all.is_empty() {
                // A guard may have been restoring the host when it was described. The lock waits for it.
                self.compare_host(host, then, false)?;
            }
        }
        Ok(())
    }

    /// Describes a host again and compares it with its earlier description among all of those. A difference counts when the last look shows it.
    fn compare_host(
        &mut self,
        host: &HostName,
        then: &BTreeMap<HostName, HostSnapshot>,
        has_moved: bool,
    ) -> Result<(), TrialError> {
        let plan = self.hosts.plan;
        let request = ToAgent::Describe { without_metadata: true };
        let mut looks = if has_moved { LOOKS } else { LOOKS_WITHOUT_MOVEMENT };
        let mut look = 1;
        loop {
            let answer = self.hosts.ask_despite_other_losses(host, &request, DESCRIBE_TIMEOUT_NS)?;
            let now = self.hosts.described(host, answer)?;
            let differences = conditions::differences(plan, host, then, &now);
            if differences.all.is_empty() {
                return Ok(());
            }
            if differences.has_movement {
                looks = LOOKS;
            }
            if look >= looks {
                let (host, changes) = (host.clone(), differences.all.join(", "));
                return Err(RunError::HostChanged { host, changes }.into());
            }
            look += 1;
            self.hosts.clock.wait(LOOK_INTERVAL);
        }
    }
}
