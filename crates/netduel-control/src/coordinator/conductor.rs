//! The loop of a run: hosts are opened, blocks are run, trouble is answered, and everything is closed in every case.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use netduel_model::event::Event;
use netduel_model::ids::{ArmName, HostName};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::{Slot, Trial};
use netduel_model::warning::Warning;

use super::host::HostLink;
use super::{RunError, Surroundings, Trouble};
use crate::launcher::Arrival;
use crate::peer::{Heard, PeerError};
use crate::protocol::{FromAgent, ToAgent};
use crate::schedule;

/// How long describing or locking a host may take, nanoseconds.
const DESCRIBE_TIMEOUT_NS: u64 = 30_000_000_000;
/// Ctrl-C is looked for at least this often.
const INTERRUPT_INTERVAL_NS: u64 = 100_000_000;
/// Trials of one arm that may fail one after the other before the run ends.
const FAILURES_IN_A_ROW_MAX: u32 = 3;

/// A run under way.
pub(super) struct Conductor<'a> {
    pub(super) plan: &'a ResolvedPlan,
    pub(super) surroundings: &'a mut dyn Surroundings,
    pub(super) links: BTreeMap<HostName, HostLink>,
    arrivals: Receiver<(u64, Arrival)>,
    sender: Sender<(u64, Arrival)>,
    next_id: u64,
    heard: VecDeque<(HostName, Heard)>,
    restarted: BTreeSet<HostName>,
    failures: BTreeMap<ArmName, u32>,
    trials: Vec<Trial>,
    run: Option<netduel_model::ids::RunId>,
    /// While a trial is stopped and undone an interrupt has been heard already.
    pub(super) stopping: bool,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(plan: &'a ResolvedPlan, surroundings: &'a mut dyn Surroundings) -> Self {
        let (sender, arrivals) = channel();
        Self {
            plan,
            surroundings,
            links: BTreeMap::new(),
            arrivals,
            sender,
            next_id: 0,
            heard: VecDeque::new(),
            restarted: BTreeSet::new(),
            failures: BTreeMap::new(),
            trials: Vec::new(),
            run: None,
            stopping: false,
        }
    }

    /// Runs the plan and closes every agent.
    pub(super) fn run_and_close(mut self) -> Result<RunEnd, RunError> {
        let result = self.run();
        for (_, link) in std::mem::take(&mut self.links) {
            drop(link.end());
        }
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
        let hosts: BTreeSet<HostName> = self
            .plan
            .arms
            .iter()
            .flat_map(|arm| [arm.pair.client.clone(), arm.pair.server.clone()])
            .collect();
        let mut snapshots = BTreeMap::new();
        for host in &hosts {
            match self.open(host) {
                Ok(snapshot) => drop(snapshots.insert(host.clone(), snapshot)),
                Err(trouble) => return Self::end_of(trouble),
            }
        }
        let (run, seed, done) = self.surroundings.hosts_known(&snapshots)?;
        self.run = Some(run.clone());
        if let Err(trouble) = self.lock(&snapshots) {
            return Self::end_of(trouble);
        }
        self.warn_of_shared_machines(&snapshots);
        let (first_block, attempt) = self.resume_point(done);
        let per_block = self.plan.trials_per_block();
        self.surroundings.event(Event::RunStarted {
            id: run,
            trials_max: self.plan.design.blocks_max * per_block,
            trials_done: first_block * per_block,
        });
        self.blocks(seed, first_block, attempt)
    }

    /// Where a run goes on: the first block that is not complete, and which attempt at it this is.
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
        self.trials = done;
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

    /// Runs and keeps the trial of a slot. The inner error ends the run.
    fn slot(&mut self, slot: Slot, attempt: u32) -> Result<Result<(), Trouble>, RunError> {
        let plan = self.plan;
        let found = plan.arm(&slot.arm).and_then(|arm| Some((arm, arm.workload(&slot.workload)?)));
        let Some((arm, workload)) = found else {
            return Ok(Err(Trouble::Local(format!("the plan has no {} in {}", slot.workload, slot.arm))));
        };
        let (trial, trouble) = self.trial(arm, workload, slot, attempt);
        if let Some(Trouble::Interrupted) = trouble {
            // A trial that somebody stopped is no failure of the arm; its block is run again.
            return Ok(Err(Trouble::Interrupted));
        }
        self.surroundings.store(&trial)?;
        self.trials.push(trial.clone());
        self.surroundings.event(Event::TrialFinished { trial: Box::new(trial) });
        let Some(trouble) = trouble else {
            self.failures.remove(&arm.name);
            return Ok(Ok(()));
        };
        let failures = self.failures.entry(arm.name.clone()).or_default();
        *failures += 1;
        if *failures >= FAILURES_IN_A_ROW_MAX {
            return Ok(Err(trouble));
        }
        Ok(self.mend(trouble))
    }

    /// Starts a vanished agent again, once; other trouble was the trial's alone.
    fn mend(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        let Trouble::Lost { host, .. } = &trouble else { return Ok(()) };
        let host = host.clone();
        if !self.restarted.insert(host.clone()) {
            return Err(trouble);
        }
        self.open(&host)?;
        if let Some(run) = self.run.clone() {
            self.ask(&host, &ToAgent::LockHost { run }, DESCRIBE_TIMEOUT_NS)?;
        }
        Ok(())
    }

    fn end_of(trouble: Trouble) -> Result<RunEnd, RunError> {
        match trouble {
            Trouble::Interrupted => Ok(RunEnd::Interrupted),
            Trouble::Lost { error, .. } => Err(*error),
            Trouble::Refused { host, kind, message } => Err(RunError::Refused { host, kind, message }),
            Trouble::Local(detail) => Err(RunError::Local(detail)),
        }
    }

    /// Starts the agent of a host and has it describe the host.
    fn open(&mut self, name: &HostName) -> Result<HostSnapshot, Trouble> {
        let lost = |error: RunError| Trouble::Lost { host: name.clone(), error: Box::new(error) };
        let host = self
            .plan
            .hosts
            .get(name)
            .ok_or_else(|| Trouble::Local(format!("the plan has no host {name}")))?;
        let argv = self
            .surroundings
            .launcher(name, host)
            .map_err(|reason| lost(RunError::NoLauncher { host: name.clone(), reason }))?;
        self.next_id += 1;
        let now_ns = self.surroundings.now_ns();
        let link = HostLink::open(name, &argv, self.next_id, self.sender.clone(), now_ns)
            .map_err(|error| lost(RunError::Launch(error)))?;
        self.links.insert(name.clone(), link);
        self.answer(name)?;
        let FromAgent::Described { snapshot } = self.ask(name, &ToAgent::Describe, DESCRIBE_TIMEOUT_NS)?
        else {
            return Err(Trouble::Local(format!("host {name} did not describe itself")));
        };
        self.surroundings.event(Event::HostReady { host: name.clone() });
        Ok(*snapshot)
    }

    /// Keeps other runs from every network stack of the plan; two hosts that share one are locked once.
    fn lock(&mut self, snapshots: &BTreeMap<HostName, HostSnapshot>) -> Result<(), Trouble> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        let mut locked: Vec<&HostSnapshot> = Vec::new();
        for (host, snapshot) in snapshots {
            if locked.iter().any(|other| other.same_network(snapshot)) {
                continue;
            }
            locked.push(snapshot);
            self.ask(host, &ToAgent::LockHost { run: run.clone() }, DESCRIBE_TIMEOUT_NS)?;
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

    pub(super) fn link(&mut self, host: &HostName) -> Result<&mut HostLink, Trouble> {
        self.links
            .get_mut(host)
            .ok_or_else(|| Trouble::Local(format!("the agent of host {host} is not running")))
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(
        &mut self,
        host: &HostName,
        message: &ToAgent,
        timeout_ns: u64,
    ) -> Result<FromAgent, Trouble> {
        let now_ns = self.surroundings.now_ns();
        self.link(host)?.request(message, now_ns, timeout_ns);
        self.answer(host)
    }

    fn answer(&mut self, host: &HostName) -> Result<FromAgent, Trouble> {
        loop {
            match self.pump()? {
                Some((from, Heard::Answer(answer))) if from == *host => return Ok(answer),
                Some((from, Heard::Failed { kind, message })) => {
                    return Err(Trouble::Refused { host: from, kind, message });
                }
                // Figures, or the result of a trial that failed at the other end: nobody waits for them any more.
                _ => {}
            }
        }
    }

    /// Waits for the next thing that an agent says, or for an interrupt; `None` when time went by.
    pub(super) fn pump(&mut self) -> Result<Option<(HostName, Heard)>, Trouble> {
        if let Some(heard) = self.heard.pop_front() {
            return Ok(Some(heard));
        }
        if !self.stopping && self.surroundings.interrupted() {
            return Err(Trouble::Interrupted);
        }
        let now_ns = self.surroundings.now_ns();
        let deadlines = self.links.values().filter_map(HostLink::deadline_ns);
        let wait_ns = deadlines.min().map_or(INTERRUPT_INTERVAL_NS, |at| at.saturating_sub(now_ns));
        match self.arrivals.recv_timeout(Duration::from_nanos(wait_ns.min(INTERRUPT_INTERVAL_NS))) {
            Ok((id, arrival)) => self.arrived(id, arrival)?,
            Err(RecvTimeoutError::Timeout) => self.tick()?,
            Err(RecvTimeoutError::Disconnected) => unreachable!("this struct holds a sender"),
        }
        Ok(self.heard.pop_front())
    }

    fn arrived(&mut self, id: u64, arrival: Arrival) -> Result<(), Trouble> {
        // Bytes of an agent that was given up may still be in the channel.
        let Some(link) = self.links.values_mut().find(|link| link.id == id) else { return Ok(()) };
        let host = link.name.clone();
        match arrival {
            Arrival::Bytes(bytes) => match link.input(&bytes) {
                Ok(heard) => {
                    self.heard.extend(heard.into_iter().map(|heard| (host.clone(), heard)));
                    Ok(())
                }
                Err(source) => Err(self.lose(&host, Some(source))),
            },
            Arrival::End => Err(self.lose(&host, None)),
        }
    }

    fn tick(&mut self) -> Result<(), Trouble> {
        let now_ns = self.surroundings.now_ns();
        let silent = self.links.values_mut().find_map(|link| {
            let error = link.tick(now_ns).err()?;
            Some((link.name.clone(), error))
        });
        silent.map_or(Ok(()), |(host, error)| Err(self.lose(&host, Some(error))))
    }

    /// Gives up an agent: a protocol error, silence, or the end of its process.
    fn lose(&mut self, host: &HostName, error: Option<PeerError>) -> Trouble {
        let (how, last_words) = self.links.remove(host).map(HostLink::end).unwrap_or_default();
        let host = host.clone();
        let error = match error {
            Some(source) => RunError::Peer { host: host.clone(), source, last_words },
            None => RunError::Vanished { host: host.clone(), how, last_words },
        };
        Trouble::Lost { host, error: Box::new(error) }
    }
}
