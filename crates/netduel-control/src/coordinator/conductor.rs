//! The loop of a run: agents are started, blocks run, failures are handled, and everything is closed in every case.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use netduel_model::event::Event;
use netduel_model::ids::{ArmName, HostName, RunId};
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;

use super::error::{RunError, Trouble};
use super::host::HostLink;
use super::surroundings::Surroundings;
use crate::launcher::{AgentId, Agents};
use crate::peer::Heard;
use crate::protocol::{Limits, TrialNumber};
use crate::schedule;

/// The longest time of a trial beside its traffic, when every step ends just before its deadline, nanoseconds.
const TRIAL_MARGIN_NS: u64 = 300_000_000_000;
/// The longest time between two trials, nanoseconds: restarts, storing, judging.
const PAUSE_MAX_NS: u64 = 600_000_000_000;
/// Consecutive failed trials of one arm that end the run.
const FAILURES_IN_A_ROW_MAX: u32 = 3;
/// A comparison needs two arms.
const ARMS_MIN: usize = 2;

/// A run in progress.
pub(super) struct Conductor<'a> {
    pub(super) plan: &'a ResolvedPlan,
    pub(super) surroundings: &'a mut dyn Surroundings,
    pub(super) links: BTreeMap<HostName, HostLink>,
    pub(super) agents: &'a mut dyn Agents,
    pub(super) last_id: AgentId,
    /// Messages of agents that were not read yet.
    pub(super) heard: VecDeque<(HostName, Heard)>,
    /// Warnings that wait for a run to be stored with.
    pub(super) warnings: Vec<Warning>,
    /// When agents give up their coordinator.
    pub(super) limits: Limits,
    pub(super) trial_number: TrialNumber,
    hosts: BTreeSet<HostName>,
    restarted: BTreeSet<HostName>,
    /// The hosts whose agents hold the locks of their network stacks.
    pub(super) lockers: BTreeSet<HostName>,
    /// Killed agents whose guards may still run.
    pub(super) remains: BTreeMap<HostName, AgentId>,
    /// When the coordinator last listened, nanoseconds.
    pub(super) listened_ns: u64,
    failures: BTreeMap<ArmName, u32>,
    /// Arms that are not tried any more, each with the reason.
    dropped: BTreeMap<ArmName, String>,
    trials: Vec<Trial>,
    pub(super) run: Option<RunId>,
    /// Set while a trial is stopped and undone: interrupts are ignored meanwhile.
    pub(super) stopping: bool,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        plan: &'a ResolvedPlan,
        surroundings: &'a mut dyn Surroundings,
        agents: &'a mut dyn Agents,
    ) -> Self {
        let progress = surroundings.progress_interval();
        Self {
            plan,
            surroundings,
            links: BTreeMap::new(),
            agents,
            last_id: 0,
            heard: VecDeque::new(),
            warnings: Vec::new(),
            limits: limits(plan, progress),
            trial_number: 0,
            hosts: plan
                .arms
                .iter()
                .flat_map(|arm| [arm.pair.client.clone(), arm.pair.server.clone()])
                .collect(),
            restarted: BTreeSet::new(),
            lockers: BTreeSet::new(),
            remains: BTreeMap::new(),
            listened_ns: 0,
            failures: BTreeMap::new(),
            dropped: BTreeMap::new(),
            trials: Vec::new(),
            run: None,
            stopping: false,
        }
    }

    /// Runs the plan and closes every agent.
    pub(super) fn run_and_close(mut self) -> Result<RunEnd, RunError> {
        let result = self.run();
        self.part();
        let end = match &result {
            Ok(end) => end.clone(),
            Err(error) => RunEnd::Failed { detail: error.to_string() },
        };
        if self.run.is_some() {
            self.surroundings.event(Event::RunFinished { end });
        }
        result
    }

    fn run(&mut self) -> Result<RunEnd, RunError> {
        let snapshots = match self.open(&self.hosts.clone()) {
            Ok(snapshots) => snapshots,
            Err(trouble) => return Self::end_of(trouble),
        };
        let known = self.surroundings.hosts_known(&snapshots)?;
        self.run = Some(known.id.clone());
        self.warn();
        if self.surroundings.locks_hosts()
            && let Err(trouble) = self.lock(&snapshots)
        {
            return Self::end_of(trouble);
        }
        if !known.is_resumed {
            self.warn_of_shared_machines(&snapshots);
        }
        let (first_block, attempt) = self.resume_point(known.trials);
        let per_block = self.plan.trials_per_block();
        self.surroundings.event(Event::RunStarted {
            id: known.id,
            trials_max: self.plan.design.blocks_max * per_block,
            trials_done: first_block * per_block,
        });
        self.blocks(known.seed, first_block, attempt)
    }

    /// Where a resumed run continues: the first incomplete block, and the number of the next attempt at it.
    fn resume_point(&mut self, done: Vec<Trial>) -> (u32, u32) {
        let per_block = self.plan.trials_per_block() as usize;
        let (mut block, mut attempt) = (0, 0);
        loop {
            let own: Vec<&Trial> = done.iter().filter(|trial| trial.slot.block == block).collect();
            let Some(highest) = own.iter().map(|trial| trial.attempt).max() else { break };
            if own.iter().filter(|trial| trial.attempt == highest).count() < per_block {
                attempt = highest + 1;
                break;
            }
            block += 1;
        }
        // Trials of the incomplete block will be superseded, so they must not decide whether to stop.
        self.trials = done.into_iter().filter(|trial| trial.slot.block < block).collect();
        (block, attempt)
    }

    fn blocks(&mut self, seed: u64, first_block: u32, mut attempt: u32) -> Result<RunEnd, RunError> {
        let design = &self.plan.design;
        let started_ns = self.surroundings.now_ns();
        for block in first_block..design.blocks_max {
            if block >= design.blocks_min
                && let Some(end) = self.surroundings.stop_after_block(&self.trials)
            {
                return Ok(end);
            }
            let gone_ns = self.surroundings.now_ns().saturating_sub(started_ns);
            if design.budget.is_some_and(|budget| gone_ns >= budget.0) {
                return Ok(RunEnd::BudgetUsed);
            }
            for slot in schedule::block(self.plan, seed, block) {
                if self.surroundings.interrupted() {
                    return Ok(RunEnd::Interrupted);
                }
                self.surroundings.reserve()?;
                if let Err(trouble) = self.slot(slot, attempt)? {
                    return Self::end_of(trouble);
                }
            }
            self.surroundings.event(Event::BlockFinished { block });
            attempt = 0;
        }
        match self.surroundings.stop_after_block(&self.trials) {
            Some(end) => Ok(end),
            None => Ok(RunEnd::BlocksDone),
        }
    }

    /// Runs and stores the trial of a slot. The inner error ends the run.
    fn slot(&mut self, slot: Slot, attempt: u32) -> Result<Result<(), Trouble>, RunError> {
        let plan = self.plan;
        let found = plan.arm(&slot.arm).and_then(|arm| Some((arm, arm.workload(&slot.workload)?)));
        let Some((arm, workload)) = found else {
            return Ok(Err(Trouble::Local(format!("the plan has no {} in {}", slot.workload, slot.arm))));
        };
        if let Some(reason) = self.dropped.get(&arm.name) {
            let validity = Validity::Failed { reason: format!("the arm was dropped: {reason}") };
            let trial = Trial { validity, ..self.blank(slot, attempt) };
            return self.keep(trial).map(Ok);
        }
        let (trial, trouble) = self.trial(arm, workload, slot, attempt);
        if let Some(Trouble::Interrupted) = trouble {
            // An interrupted trial is not a failure of the arm; a resumed run repeats its block.
            return Ok(Err(Trouble::Interrupted));
        }
        let failed = matches!(trial.validity, Validity::Failed { .. });
        self.keep(trial)?;
        if !failed {
            self.failures.remove(&arm.name);
        }
        let Some(trouble) = trouble else { return Ok(Ok(())) };
        if failed {
            let failures = self.failures.entry(arm.name.clone()).or_default();
            *failures += 1;
            let is_enough = *failures >= FAILURES_IN_A_ROW_MAX;
            if is_enough && !self.give_up_agents(arm, &trouble) && !self.drop_arm(arm, &trouble) {
                return Ok(Err(trouble));
            }
        }
        Ok(self.mend(trouble))
    }

    /// Stores a trial and reports it.
    fn keep(&mut self, trial: Trial) -> Result<(), RunError> {
        self.surroundings.store(&trial)?;
        self.trials.push(trial.clone());
        self.surroundings.event(Event::TrialFinished { trial: Box::new(trial) });
        Ok(())
    }

    /// Drops an arm whose treatments are refused, for the rest of the run: its trials fail without being tried. `false` when that is
    /// not the trouble, or when too little would be left to compare: the baseline and another arm.
    fn drop_arm(&mut self, arm: &Arm, trouble: &Trouble) -> bool {
        let Trouble::NotTreated(refused) = trouble else { return false };
        let left = self.plan.arms.len() - self.dropped.len() - 1;
        let is_baseline = self.plan.baseline().is_some_and(|baseline| baseline.name == arm.name);
        if is_baseline || left < ARMS_MIN {
            return false;
        }
        let (name, reason) = (arm.name.clone(), refused.to_string());
        let warning = Warning::ArmDropped { arm: name.clone(), reason: reason.clone() };
        self.surroundings.event(Event::Warned { warning });
        self.dropped.insert(name, reason);
        true
    }

    /// Ends the agents of an arm that were not restarted yet: a new agent may succeed where one refuses again and again. `false` when there
    /// is none, or when the trouble is not a refusal.
    fn give_up_agents(&mut self, arm: &Arm, trouble: &Trouble) -> bool {
        let (Trouble::Refused { .. } | Trouble::NotTreated(_)) = trouble else { return false };
        let hosts = [&arm.pair.client, &arm.pair.server];
        let old: Vec<&HostName> = hosts.into_iter().filter(|host| !self.restarted.contains(*host)).collect();
        for host in &old {
            self.end_agent(host);
        }
        self.failures.remove(&arm.name);
        !old.is_empty()
    }

    /// Restarts lost agents, each once in a run. Other trouble concerned the trial alone.
    fn mend(&mut self, mut trouble: Trouble) -> Result<(), Trouble> {
        // Another agent may be lost while one is started.
        loop {
            let gone: BTreeSet<HostName> =
                self.hosts.iter().filter(|host| !self.links.contains_key(*host)).cloned().collect();
            if gone.is_empty() {
                return Ok(());
            }
            if !self.surroundings.restarts_agents() || gone.iter().any(|host| self.restarted.contains(host)) {
                return Err(trouble);
            }
            self.restarted.extend(gone.iter().cloned());
            if let Some(other) = self.restart(&gone)? {
                trouble = other;
            }
        }
    }

    fn end_of(trouble: Trouble) -> Result<RunEnd, RunError> {
        match trouble {
            Trouble::Interrupted => Ok(RunEnd::Interrupted),
            Trouble::Lost { error, .. } => Err(*error),
            Trouble::Refused { host, kind, message } => Err(RunError::Refused { host, kind, message }),
            Trouble::NotTreated(trouble) => Self::end_of(*trouble),
            Trouble::Local(detail) => Err(RunError::Local(detail)),
        }
    }

    /// Locks every network stack of the plan. Hosts that share one are locked once.
    fn lock(&mut self, snapshots: &BTreeMap<HostName, HostSnapshot>) -> Result<(), Trouble> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        let mut locked: Vec<&HostSnapshot> = Vec::new();
        for (host, snapshot) in snapshots {
            if locked.iter().any(|other| other.same_network(snapshot)) {
                continue;
            }
            locked.push(snapshot);
            self.lockers.insert(host.clone());
            self.lock_host(host, &run)?;
        }
        Ok(())
    }

    fn warn_of_shared_machines(&mut self, snapshots: &BTreeMap<HostName, HostSnapshot>) {
        let mut seen = BTreeSet::new();
        for arm in &self.plan.arms {
            let (client, server) = (arm.pair.client.clone(), arm.pair.server.clone());
            let shared = match (snapshots.get(&client), snapshots.get(&server)) {
                (Some(one), Some(other)) => one.same_machine(other),
                _ => false,
            };
            if shared && seen.insert((client.clone(), server.clone())) {
                self.surroundings.event(Event::Warned { warning: Warning::SharedMachine { client, server } });
            }
        }
    }
}

/// When agents give up their coordinator: later than any plan needs. A host may be idle for almost two blocks, when its arm comes first in
/// one and last in the next.
fn limits(plan: &ResolvedPlan, progress: Nanos) -> Limits {
    let block_ns = plan
        .arms
        .iter()
        .flat_map(|arm| &arm.workloads)
        .map(|workload| workload.timing.duration.0.saturating_add(TRIAL_MARGIN_NS))
        .fold(0, u64::saturating_add);
    let idle_ns = block_ns.saturating_mul(2).saturating_add(PAUSE_MAX_NS);
    let blocks_ns = block_ns.saturating_mul(u64::from(plan.design.blocks_max));
    Limits { total: Nanos(blocks_ns.saturating_add(idle_ns)), idle: Nanos(idle_ns), progress }
}
