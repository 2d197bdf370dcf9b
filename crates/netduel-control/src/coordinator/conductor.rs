//! The loop of a run: starts agents, runs blocks, handles failures, and ends all agents in every case.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::event::Event;
use netduel_model::ids::{ArmName, HostName, RunId};
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::warning::Warning;

use super::conditions::Translated;
use super::conversation::Hosts;
use super::error::{PlanFault, RunError, TrialError};
use super::restarts::{Loss, RESTARTS_MAX, Restarts};
use super::surroundings::{Lab, Policy, Provider, Store, Surroundings, Tokens};
use super::timing::agent_limits;
use crate::launcher::Agents;
use crate::protocol::{DESCRIBE_TIMEOUT_NS, ToAgent, TrialNumber};

/// Consecutive failed trials of one arm that end the run.
const FAILURES_IN_A_ROW_MAX: u32 = 3;
/// A comparison needs two arms.
const ARMS_MIN: usize = 2;

/// A run in progress.
pub(super) struct Conductor<'a> {
    pub(super) hosts: Hosts<'a>,
    pub(super) tokens: &'a mut Tokens<'a>,
    pub(super) lab: &'a mut dyn Lab,
    pub(super) store: &'a mut dyn Store,
    pub(super) provider: &'a mut dyn Provider,
    /// Hosts whose guests did not show a change that was made while their machines ran.
    pub(super) stops: BTreeSet<HostName>,
    pub(super) policy: &'a mut dyn Policy,
    pub(super) trial_number: TrialNumber,
    names: BTreeSet<HostName>,
    /// The descriptions of the hosts at the start, since they are locked.
    pub(super) snapshots: BTreeMap<HostName, HostSnapshot>,
    restarts: Restarts,
    failures: BTreeMap<ArmName, u32>,
    /// Dropped arms, each with the reason.
    pub(super) dropped: BTreeMap<ArmName, String>,
    pub(super) trials: Vec<Trial>,
    /// Pairs of client and server with a NAT between them.
    pub(super) translated: Translated,
    /// Differences of hosts that are not known to concern the path and were stated.
    pub(super) doubted: BTreeSet<(HostName, String)>,
    run: Option<RunId>,
    /// Budget that a resumed run used before it was resumed, nanoseconds.
    pub(super) used_before_ns: u64,
    /// Time for which the user paused the run, nanoseconds.
    pub(super) paused_ns: u64,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        plan: &'a ResolvedPlan,
        surroundings: Surroundings<'a>,
        agents: Box<dyn Agents + 'a>,
    ) -> Self {
        let Surroundings { clock, launcher, listener, tokens, store, lab, provider, policy } = surroundings;
        let limits = agent_limits(plan, policy.progress_interval());
        let pairs = plan.arms.iter().map(|arm| &arm.pair);
        Self {
            hosts: Hosts::new(plan, agents, (clock, launcher, listener), limits),
            tokens,
            lab,
            store,
            provider,
            stops: BTreeSet::new(),
            policy,
            trial_number: 0,
            names: pairs.flat_map(|pair| [pair.client.clone(), pair.server.clone()]).collect(),
            snapshots: BTreeMap::new(),
            restarts: Restarts::default(),
            failures: BTreeMap::new(),
            dropped: BTreeMap::new(),
            trials: Vec::new(),
            translated: BTreeSet::new(),
            doubted: BTreeSet::new(),
            run: None,
            used_before_ns: 0,
            paused_ns: 0,
        }
    }

    /// Shows an event to the user.
    pub(super) fn tell(&mut self, event: Event) {
        (self.hosts.listener)(event);
    }

    /// Stores and shows the warnings about hosts.
    pub(super) fn warn(&mut self) {
        for warning in self.hosts.take_warnings() {
            self.warned(warning);
        }
    }

    pub(super) fn warned(&mut self, warning: Warning) {
        self.note_translation(&warning);
        if self.run.is_some() {
            self.store.warning(&warning);
        }
        self.tell(Event::Warned { warning });
    }

    fn note_translation(&mut self, warning: &Warning) {
        if let Warning::AddressTranslated { client, server, .. } = warning {
            self.translated.insert((client.clone(), server.clone()));
        }
    }

    /// Runs the plan and closes every agent.
    pub(super) fn run_and_close(mut self) -> Result<RunEnd, RunError> {
        let result = self.run();
        self.hosts.end_all();
        for text in self.hosts.lost_commands() {
            self.tell(Event::ProblemFound { text });
        }
        for (host, problem) in self.provider.restore() {
            self.hosts.not_undone(&host, vec![problem]);
        }
        self.warn();
        let end = match &result {
            Ok(end) => end.clone(),
            Err(error) => RunEnd::Failed { detail: error.to_string() },
        };
        if self.run.is_some() {
            self.store.end(&end);
            self.tell(Event::RunFinished { end });
        }
        // However complete the run is: a host stays changed.
        let left = self.hosts.not_restored.error();
        result.and_then(|end| left.map_or(Ok(end), Err))
    }

    fn run(&mut self) -> Result<RunEnd, RunError> {
        let snapshots = match self.hosts.open(&self.names) {
            Ok(snapshots) => snapshots,
            Err(error) => return Self::end_of(error),
        };
        for text in self.policy.problems(&snapshots) {
            self.tell(Event::ProblemFound { text });
        }
        let known = self.store.open(&snapshots)?;
        self.run = Some(known.id.clone());
        self.warn();
        if self.policy.locks_hosts()
            && let Err(error) = self.lock(&snapshots)
        {
            return Self::end_of(error);
        }
        for warning in &known.warnings {
            self.note_translation(warning);
        }
        let mut doubts = Vec::new();
        if known.is_resumed {
            match self.compare(&known.hosts, &snapshots) {
                Ok(found) => doubts = found,
                Err(error) => return Self::end_of(error),
            }
        } else {
            self.warn_of_shared_machines(&snapshots);
        }
        let begun = self.begun_blocks(known.trials)?;
        for (host, detail) in doubts {
            self.warned(Warning::HostDiffered { host, block: begun.first_open(), detail });
        }
        self.snapshots = snapshots;
        // A guard may have been restoring a host when it was described. The lock waits for it.
        if self.policy.locks_hosts()
            && let Err(error) = self.describe_locked()
        {
            return Self::end_of(error);
        }
        let per_block = self.hosts.plan.trials_per_block();
        if let Err(error) = self.reach(&known.warnings) {
            return Self::end_of(error);
        }
        self.tell(Event::RunStarted {
            id: known.id,
            trials_max: self.hosts.plan.design.blocks_max.saturating_mul(per_block),
            trials_done: begun.complete().saturating_mul(per_block),
        });
        self.blocks(known.seed, &begun)
    }

    /// Describes the locked hosts: with these settings they are compared after each block. A lost agent is restarted.
    fn describe_locked(&mut self) -> Result<(), TrialError> {
        loop {
            match self.describe_again() {
                Err(error @ TrialError::Lost { .. }) => self.restart_lost_agents(error)?,
                other => {
                    self.snapshots = other?;
                    return Ok(());
                }
            }
        }
    }

    /// Probes the ports of all pairs. A lost agent is restarted, and the probe is repeated. `known`: the stored warnings.
    fn reach(&mut self, known: &[Warning]) -> Result<(), TrialError> {
        loop {
            match self.probe_ports(known) {
                Err(error @ TrialError::Lost { .. }) => self.restart_lost_agents(error)?,
                other => return other,
            }
        }
    }

    /// Runs the trial of a slot and stores it; the last one of a block when the block is finished. The inner error ends the run.
    pub(super) fn slot(
        &mut self,
        slot: Slot,
        attempt: u32,
        is_last: bool,
    ) -> Result<Result<(), TrialError>, RunError> {
        let plan = self.hosts.plan;
        let found = plan.arm(&slot.arm).and_then(|arm| Some((arm, arm.workload(&slot.workload)?)));
        let Some((arm, workload)) = found else {
            return Ok(Err(PlanFault::NoWorkload { workload: slot.workload, arm: slot.arm }.into()));
        };
        let in_block = plan.arm_in(arm, slot.block);
        let arm = in_block.as_ref();
        if let Some(error) = self.drop_arms_of_unrestored_hosts() {
            return Ok(Err(error));
        }
        if let Some(reason) = self.dropped.get(&arm.name) {
            let validity = Validity::Failed { reason: format!("the arm was dropped: {reason}") };
            let trial = Trial { validity, ..self.blank(slot, attempt) };
            return if is_last { self.finish_block(trial, Ok(())) } else { self.keep(trial).map(Ok) };
        }
        let (trial, error) = self.trial(arm, workload, slot, attempt);
        if let Some(TrialError::Interrupted) = error {
            // An interrupted trial is not a failure of the arm; a resumed run repeats its block.
            return Ok(Err(TrialError::Interrupted));
        }
        if trial.is_valid() {
            self.restarts.forget_losses([&arm.pair.client, &arm.pair.server]);
        }
        let failed = matches!(trial.validity, Validity::Failed { .. });
        if is_last {
            let outcome = self.after_trial(arm, failed, error);
            return self.finish_block(trial, outcome);
        }
        self.keep(trial)?;
        Ok(self.after_trial(arm, failed, error))
    }

    /// Replaces agents that a trial lost, and drops an arm that fails repeatedly. The error ends the run.
    fn after_trial(&mut self, arm: &Arm, failed: bool, error: Option<TrialError>) -> Result<(), TrialError> {
        if !failed {
            self.failures.remove(&arm.name);
        }
        let Some(error) = error else { return Ok(()) };
        if error.is_of_provider() {
            // The next attempt would meet the same refusal, after minutes in which machines start and stop.
            return Err(error);
        }
        if failed {
            let failures = self.failures.entry(arm.name.clone()).or_default();
            *failures += 1;
            let is_enough = *failures >= FAILURES_IN_A_ROW_MAX;
            if is_enough && !self.end_refusing_agents(arm, &error) && !self.drop_arm(arm, &error) {
                return Err(error);
            }
        }
        self.restart_lost_agents(error)
    }

    /// Stores a trial and reports it.
    pub(super) fn keep(&mut self, trial: Trial) -> Result<(), RunError> {
        self.store.trial(&trial)?;
        self.trials.push(trial.clone());
        self.tell(Event::TrialFinished { trial: Box::new(trial) });
        Ok(())
    }

    /// Drops an arm whose treatments are refused, for the rest of the run: its trials fail without an attempt. `false` when that is
    /// not the cause, or when fewer than two arms, the baseline among them, would remain.
    fn drop_arm(&mut self, arm: &Arm, error: &TrialError) -> bool {
        let TrialError::NotTreated(refused) = error else { return false };
        self.drop_arms(vec![(arm.name.clone(), refused.to_string())])
    }

    /// Drops the arms with a host on a machine that has a change which could not be undone: no later trial there is valid. Returns why the
    /// run ends, when too few arms would remain.
    fn drop_arms_of_unrestored_hosts(&mut self) -> Option<TrialError> {
        let error = self.hosts.not_restored.error()?;
        let plan = self.hosts.plan;
        let arms = plan.arms.iter().filter(|arm| !self.dropped.contains_key(&arm.name));
        let arms: Vec<(ArmName, String)> = arms
            .filter_map(|arm| {
                let changed = plan.hosts_of(arm).find_map(|host| self.unrestored_beside(host))?;
                let reason = format!("host {changed} is not restored after a treatment could not be undone");
                Some((arm.name.clone(), reason))
            })
            .collect();
        if arms.is_empty() || self.drop_arms(arms) { None } else { Some(error.into()) }
    }

    /// The host with a change that could not be undone, if it is this one or on its machine.
    pub(super) fn unrestored_beside(&self, host: &HostName) -> Option<&HostName> {
        let own = self.snapshots.get(host);
        let is_beside = |changed: &HostName| {
            own.zip(self.snapshots.get(changed)).is_some_and(|(own, other)| own.same_machine(other))
        };
        self.hosts.not_restored.hosts().find(|changed| *changed == host || is_beside(changed))
    }

    /// Drops arms, each for a reason. `false`, and none is dropped, when fewer than two arms, the baseline among them, would remain.
    fn drop_arms(&mut self, arms: Vec<(ArmName, String)>) -> bool {
        let plan = self.hosts.plan;
        let left = plan.arms.len().saturating_sub(self.dropped.len() + arms.len());
        let is_baseline =
            |(name, _): &(ArmName, String)| plan.baseline().is_some_and(|baseline| baseline.name == *name);
        if left < ARMS_MIN || arms.iter().any(is_baseline) {
            return false;
        }
        for (arm, reason) in arms {
            self.warned(Warning::ArmDropped { arm: arm.clone(), reason: reason.clone() });
            self.dropped.insert(arm, reason);
        }
        true
    }

    /// Ends the agents of an arm that were not restarted yet: a new agent may succeed where the old one refuses repeatedly. `false` when there
    /// is no such agent, or when the cause is not a refusal.
    fn end_refusing_agents(&mut self, arm: &Arm, error: &TrialError) -> bool {
        let (TrialError::Refused { .. } | TrialError::NotTreated(_)) = error else { return false };
        let hosts = [&arm.pair.client, &arm.pair.server];
        let old: Vec<&HostName> = hosts.into_iter().filter(|host| !self.restarts.has(host)).collect();
        for host in &old {
            self.hosts.end_agent(host);
        }
        self.failures.remove(&arm.name);
        !old.is_empty()
    }

    /// Restarts lost agents, each at most [`RESTARTS_MAX`] times without a valid trial of its host between. Other failures affect the trial only.
    pub(super) fn restart_lost_agents(&mut self, mut error: TrialError) -> Result<(), TrialError> {
        // An agent may be lost again while it is started, and so may another one.
        loop {
            let gone: BTreeSet<HostName> =
                self.names.iter().filter(|host| !self.hosts.is_running(host)).cloned().collect();
            if gone.is_empty() {
                return Ok(());
            }
            // An interrupt while agents were lost: new ones would have nothing to do.
            if self.hosts.clock.interrupted() {
                return Err(TrialError::Interrupted);
            }
            if !self.policy.restarts_agents() {
                return Err(error);
            }
            if self.note_losses(&gone, &error)? {
                // A link that is down for a moment, or an ssh server that restarts, refuses several connections at once.
                self.pause()?;
            }
            let restarted = self.hosts.restart(&gone);
            self.warn();
            if let Some(other) = restarted? {
                error = other;
            }
        }
    }

    /// Notes why hosts have no agent, and shows each restart that follows. Returns whether it is not the first one of a host. `error`: the reason
    /// for a host whose agent the coordinator ended.
    ///
    /// # Errors
    /// When a host lost its agent too often.
    fn note_losses(&mut self, gone: &BTreeSet<HostName>, error: &TrialError) -> Result<bool, TrialError> {
        let mut is_repeated = false;
        for host in gone {
            let loss = self.hosts.take_loss(host).unwrap_or_else(|| Loss::of(error));
            let reason = loss.reason.clone();
            let lost = |error| TrialError::Lost { host: host.clone(), error: Box::new(error) };
            let number = self.restarts.note(host, loss).map_err(lost)?;
            is_repeated |= number > 1;
            let host = host.clone();
            self.tell(Event::AgentRestarting { host, reason, number, number_max: RESTARTS_MAX });
        }
        Ok(is_repeated)
    }

    pub(super) fn end_of(error: TrialError) -> Result<RunEnd, RunError> {
        error.into_run_error().map_or(Ok(RunEnd::Interrupted), Err)
    }

    /// Locks every network stack of the plan. Hosts that share one are locked once.
    fn lock(&mut self, snapshots: &BTreeMap<HostName, HostSnapshot>) -> Result<(), TrialError> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        let mut locked: Vec<&HostSnapshot> = Vec::new();
        for (host, snapshot) in snapshots {
            if locked.iter().any(|other| other.same_network(snapshot)) {
                continue;
            }
            locked.push(snapshot);
            self.hosts.lock_host(host, &run)?;
        }
        Ok(())
    }

    /// The descriptions of all hosts now.
    fn describe_again(&mut self) -> Result<BTreeMap<HostName, HostSnapshot>, TrialError> {
        let request = ToAgent::Describe { without_metadata: true };
        let mut snapshots = BTreeMap::new();
        for host in &self.names {
            let answer = self.hosts.ask_despite_other_losses(host, &request, DESCRIBE_TIMEOUT_NS)?;
            snapshots.insert(host.clone(), self.hosts.described(host, answer)?);
        }
        Ok(snapshots)
    }

    fn warn_of_shared_machines(&mut self, snapshots: &BTreeMap<HostName, HostSnapshot>) {
        let mut seen = BTreeSet::new();
        for arm in &self.hosts.plan.arms {
            let (client, server) = (arm.pair.client.clone(), arm.pair.server.clone());
            let shared = match (snapshots.get(&client), snapshots.get(&server)) {
                (Some(one), Some(other)) => one.same_machine(other),
                _ => false,
            };
            if shared && seen.insert((client.clone(), server.clone())) {
                self.warned(Warning::SharedMachine { client, server });
            }
        }
    }
}

/// Duration of the traffic of all stored trials, superseded attempts included, nanoseconds: the budget that a resumed run has already used.
/// The time between trials is not stored, so the run took longer.
pub fn traffic_ns(plan: &ResolvedPlan, trials: &[Trial]) -> u64 {
    let of = |trial: &Trial| {
        let workload = plan.arm(&trial.slot.arm)?.workload(&trial.slot.workload)?;
        // A trial that failed before its traffic has no ends.
        trial.client.as_ref().map(|_| workload.timing.duration.0)
    };
    trials.iter().filter_map(of).fold(0, u64::saturating_add)
}
