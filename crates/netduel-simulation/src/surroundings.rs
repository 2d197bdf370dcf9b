//! The surroundings of the simulated coordinator: its traits, implemented by the [`World`] and the [`Ledger`]. Each call is a step, at
//! which the coordinator may be interrupted, paused or killed.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::Duration;

use netduel_control::coordinator::{
    Clock, KnownRun, Lab, NoProvider, Policy, RunError, Store, StoreProblem, Surroundings, run_over,
};
use netduel_control::launcher::{AgentId, Agents, Arrival, Ended, LaunchError};
use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{ArmName, HostName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Pair, ResolvedPlan};
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;

use crate::fault::{CoordinatorFault, Fault, LocalCall, StartFault};
use crate::ledger::Ledger;
use crate::sabotage::{Sabotage, records};
use crate::work::token_of;
use crate::world::World;

/// Agents of a part are numbered from its number times this.
const AGENTS_OF_A_PART: u64 = 1_000;
/// Delay of a coordinator that is slow to notice an interrupt, nanoseconds.
const LATE_NS: u64 = 1_000_000_000_000;

/// The coordinator is killed.
pub struct Killed;
/// The run does not end.
pub struct Endless;

/// The world and the ledger, with the faults of the coordinator.
pub struct SimulatedSurroundings {
    /// The world.
    pub world: World,
    /// The record of the run.
    pub ledger: Ledger,
    /// Index of this part of the run, from 0.
    pub part: u64,
    steps: u64,
    events_started: bool,
}

impl SimulatedSurroundings {
    /// Of a run that has not started.
    pub fn new(world: World, ledger: Ledger) -> Self {
        Self { world, ledger, part: 0, steps: 0, events_started: false }
    }

    /// Begins a part of the run with its faults.
    pub fn begin_part(&mut self, part: u64, faults: Vec<Fault>) {
        (self.part, self.steps, self.events_started) = (part, 0, false);
        self.world.begin_part(faults);
        self.world.truth.borrow_mut().first_agent = part * AGENTS_OF_A_PART;
        self.ledger.begin_part();
    }

    fn fails(&mut self, call: LocalCall) -> bool {
        let fails = self.world.truth.borrow_mut().fails(call, self.world.now_ns);
        if fails {
            self.world.note(format_args!("{call:?} fails"));
        }
        fails
    }

    fn has(&self, sabotage: Sabotage) -> bool {
        self.world.truth.borrow().has(sabotage)
    }

    fn agent(&self, id: AgentId) -> AgentId {
        self.part * AGENTS_OF_A_PART + id
    }
}

/// A handle for the coordinator.
#[derive(Clone)]
pub struct Handle(pub Rc<RefCell<SimulatedSurroundings>>);

impl Handle {
    /// A call of the coordinator. Its faults at this step occur now.
    fn step(&self) {
        let mut outside = self.0.borrow_mut();
        let at = outside.steps;
        outside.steps += 1;
        let truth = outside.world.truth.clone();
        let of_step = |fault: &&Fault| matches!(fault, Fault::Coordinator { step, .. } if *step == at);
        let found = truth.borrow().faults.iter().find(of_step).cloned();
        if let Some(fault) = &found {
            truth.borrow_mut().hit.push((outside.world.now_ns, fault.clone()));
        }
        match found {
            Some(Fault::Coordinator { fault: CoordinatorFault::Interrupt, .. }) => {
                outside.world.note("the user interrupts the run");
                let now_ns = outside.world.now_ns;
                outside.ledger.interrupted_ns.get_or_insert(now_ns);
            }
            Some(Fault::Coordinator { fault: CoordinatorFault::Pause(time_ns), .. }) => {
                outside.world.pause(time_ns);
            }
            Some(Fault::Coordinator { fault: CoordinatorFault::Kill, .. }) => {
                outside.world.note("the coordinator is killed");
                drop(outside);
                resume_unwind(Box::new(Killed));
            }
            _ => {
                if outside.world.is_endless() {
                    drop(outside);
                    resume_unwind(Box::new(Endless));
                }
            }
        }
    }

    fn local(&self, call: LocalCall) -> Result<(), String> {
        self.step();
        if self.0.borrow_mut().fails(call) { Err(format!("the simulation fails {call:?}")) } else { Ok(()) }
    }

    fn stored(&self, call: LocalCall) -> Result<(), StoreProblem> {
        self.local(call).map_err(|message| StoreProblem { message })
    }
}

impl Agents for Handle {
    fn start(&mut self, id: AgentId, host: &str, _argv: &[String]) -> Result<(), LaunchError> {
        self.step();
        let mut outside = self.0.borrow_mut();
        let id = outside.agent(id);
        let host =
            HostName::new(host.to_owned()).map_err(|_| LaunchError::Empty { host: host.to_owned() })?;
        outside.world.start(id, &host)
    }

    fn send(&mut self, id: AgentId, line: &str) {
        self.step();
        let mut outside = self.0.borrow_mut();
        let id = outside.agent(id);
        outside.world.send(id, line);
        if outside.has(Sabotage::RepeatsLines) {
            outside.world.send(id, line);
        }
        if outside.has(Sabotage::GivesUpAgents) && line.contains("\"type\":\"prepare-server\"") {
            outside.world.end(id, 0);
        }
    }

    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)> {
        self.step();
        let mut outside = self.0.borrow_mut();
        let base = outside.part * AGENTS_OF_A_PART;
        let (id, arrival) = outside.world.next_arrival(timeout.as_nanos() as u64)?;
        // Output of an earlier coordinator's agents is dropped.
        Some((id.checked_sub(base)?, arrival))
    }

    fn end(&mut self, id: AgentId, patience: Duration) -> Ended {
        self.step();
        let mut outside = self.0.borrow_mut();
        if outside.has(Sabotage::LeavesAgents) {
            return Ended { is_over: true, ..Ended::default() };
        }
        let id = outside.agent(id);
        outside.world.end(id, patience.as_nanos() as u64)
    }

    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool {
        self.step();
        let mut outside = self.0.borrow_mut();
        let id = outside.agent(id);
        outside.world.is_over(id, patience.as_nanos() as u64)
    }
}

impl Handle {
    /// Runs the plan of the setting over the simulated agents.
    pub fn run(&self, plan: &ResolvedPlan) -> Result<RunEnd, RunError> {
        let [mut store, mut lab, mut policy] = [self.clone(), self.clone(), self.clone()];
        let surroundings = Surroundings {
            clock: self,
            launcher: &mut |name, _host| self.launcher(name),
            listener: &mut |event| self.event(&event),
            tokens: &mut || self.token(),
            store: &mut store,
            lab: &mut lab,
            provider: &mut NoProvider,
            policy: &mut policy,
        };
        run_over(plan, surroundings, Box::new(self.clone()))
    }

    fn launcher(&self, name: &HostName) -> Result<Vec<String>, String> {
        self.step();
        let outside = self.0.borrow_mut();
        let mut truth = outside.world.truth.borrow_mut();
        let number = truth.host(name).starts();
        let none = |fault: &&Fault| matches!(fault, Fault::Start { host, nth, fault: StartFault::NoLauncher } if host == name && *nth == number);
        if let Some(fault) = truth.faults.iter().find(none).cloned() {
            truth.hit.push((outside.world.now_ns, fault));
            truth.host(name).not_started();
            return Err("the simulation has no launcher".to_owned());
        }
        Ok(vec!["agent".to_owned()])
    }

    fn event(&self, event: &Event) {
        self.step();
        let outside = &mut *self.0.borrow_mut();
        match event {
            Event::TrialStarted { slot, .. } => {
                outside.world.note(format_args!("trial: {slot:?}"));
                outside.world.judge_locks();
            }
            Event::AgentRestarting { host, number, reason, .. } => {
                outside.world.note(format_args!("restart {number} on {host}: {reason}"));
            }
            Event::RunFinished { end } => outside.world.note(format_args!("the run ends: {end:?}")),
            Event::Warned { .. } if outside.has(Sabotage::HidesWarnings) => return,
            Event::Warned { warning } => outside.world.note(format_args!("warning: {warning:?}")),
            _ => {}
        }
        let now_ns = outside.world.now_ns;
        outside.ledger.event(event, now_ns, &mut outside.world.truth.borrow_mut());
    }

    fn token(&self) -> Result<Token, String> {
        self.local(LocalCall::Token)?;
        let outside = &mut *self.0.borrow_mut();
        Ok(token_of(outside.ledger.serial(&mut outside.world.truth.borrow_mut())))
    }
}

impl Clock for Handle {
    fn now_ns(&self) -> u64 {
        self.0.borrow().world.now_ns
    }

    fn unix_ms(&self) -> u64 {
        self.now_ns() / 1_000_000
    }

    fn wait(&self, time: Nanos) {
        self.step();
        let outside = &mut *self.0.borrow_mut();
        // An interrupt ends the wait of a coordinator that notices it.
        if outside.ledger.interrupted_ns.is_none() || outside.has(Sabotage::IgnoresInterrupts) {
            outside.world.idle(time.0);
        }
    }

    fn interrupted(&self) -> bool {
        self.step();
        let outside = &mut *self.0.borrow_mut();
        let is_interrupted = outside.ledger.interrupted_ns.is_some();
        if is_interrupted && outside.has(Sabotage::StopsLate) {
            outside.world.idle(LATE_NS);
        }
        is_interrupted && !outside.has(Sabotage::IgnoresInterrupts)
    }
}

impl Lab for Handle {
    fn set_path(&mut self, path: LabPath) -> Result<(), String> {
        self.local(LocalCall::SetPath)?;
        let outside = self.0.borrow();
        let mut truth = outside.world.truth.borrow_mut();
        if truth.path.is_none() || !truth.has(Sabotage::KeepsPath) {
            truth.path = Some(path);
        }
        Ok(())
    }

    fn begin_events(&mut self, _pair: &Pair, _events: &[PathEvent]) -> Result<(), String> {
        self.local(LocalCall::BeginEvents)?;
        let outside = &mut *self.0.borrow_mut();
        outside.ledger.lab_events(true, &mut outside.world.truth.borrow_mut());
        outside.events_started = true;
        Ok(())
    }

    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        let failed = self.local(LocalCall::EndEvents);
        let outside = &mut *self.0.borrow_mut();
        outside.ledger.lab_events(false, &mut outside.world.truth.borrow_mut());
        let started = std::mem::take(&mut outside.events_started);
        failed?;
        Ok(started.then(|| LabEvents { start: Vec::new(), events: Vec::new(), end: Vec::new() }))
    }
}

impl Store for Handle {
    fn open(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem> {
        self.stored(LocalCall::HostsKnown)?;
        let outside = &mut *self.0.borrow_mut();
        if hosts.len() != outside.world.setting.plan.hosts.len() {
            outside.world.truth.borrow_mut().broken("the run is made before all hosts are known".to_owned());
        }
        outside.ledger.is_open = true;
        let id = RunId::new("simulated").map_err(|error| StoreProblem { message: error.to_string() })?;
        Ok(KnownRun {
            id,
            seed: outside.world.setting.schedule_seed,
            is_resumed: std::mem::replace(&mut outside.ledger.is_made, true),
            trials: outside.ledger.stored.clone(),
            // No host is behind a NAT.
            warnings: Vec::new(),
            // No fault of the simulation changes a setting of a host.
            hosts: BTreeMap::new(),
        })
    }

    fn reserve(&mut self) -> Result<(), StoreProblem> {
        self.stored(LocalCall::Reserve)
    }

    fn trial(&mut self, trial: &Trial) -> Result<(), StoreProblem> {
        self.stored(LocalCall::Store)?;
        let outside = &mut *self.0.borrow_mut();
        outside.world.note(format_args!("stored: {:?}, {:?}", trial.slot, trial.validity));
        let now_ns = outside.world.now_ns;
        let truth = &mut outside.world.truth.borrow_mut();
        for record in records(truth.sabotage, trial) {
            outside.ledger.store(&record, now_ns, truth);
        }
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) {
        self.step();
        self.0.borrow_mut().ledger.unshown.push(warning.clone());
    }

    fn end(&mut self, end: &RunEnd) {
        self.step();
        let outside = &mut *self.0.borrow_mut();
        outside.ledger.stored_end = Some(end.clone());
        if outside.has(Sabotage::LosesRecord) {
            outside.ledger.lose_last();
        }
    }
}

impl Policy for Handle {
    fn locks_hosts(&self) -> bool {
        !self.0.borrow().world.setting.is_quick
    }

    fn restarts_agents(&self) -> bool {
        let outside = self.0.borrow();
        !outside.world.setting.is_quick && !outside.has(Sabotage::RestartsNoAgents)
    }

    fn stop_after_block(&mut self, trials: &[Trial], dropped: &BTreeMap<ArmName, String>) -> Option<RunEnd> {
        self.step();
        let outside = &mut *self.0.borrow_mut();
        if outside.has(Sabotage::SkipsPrecision) {
            return None;
        }
        let is_enough =
            outside.ledger.check_precision(trials, dropped, &mut outside.world.truth.borrow_mut());
        (is_enough || outside.has(Sabotage::EndsEarly)).then_some(RunEnd::PrecisionReached)
    }
}
