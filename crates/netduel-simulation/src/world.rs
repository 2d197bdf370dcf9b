//! The simulated world: virtual time, links, agent processes and their faults. The coordinator calls it from outside.
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::rc::Rc;

use netduel_control::agent::{Input, Progress};
use netduel_control::launcher::{AgentId, Arrival};
use netduel_model::ids::HostName;
use netduel_model::plan::ResolvedPlan;

use crate::agent::{Agent, Life};
use crate::fault::{Fault, HostFault, LineFault};
use crate::random::Random;
use crate::sabotage::Sabotage;
use crate::setting::{Reach, Setting};
use crate::truth::Truth;

/// A millisecond, nanoseconds.
pub const MS: u64 = 1_000_000;
/// Exit status of a killed process, as in wait(2).
const SIGKILL: i32 = 9;
/// Limit of events, more than any run has: a world that reaches it never ends.
const EVENTS_MAX: u64 = 2_000_000;

/// A scheduled event.
#[derive(Debug)]
pub enum WorldEvent {
    /// Bytes reach an agent.
    Reaches(AgentId, Input),
    /// An agent processes its inputs and the time.
    Runs(AgentId),
    /// The end of an agent's traffic wakes it.
    Wakes(AgentId),
    /// Bytes reach the coordinator.
    Arrives(AgentId, Arrival),
    /// The guard of an agent ends.
    Restored(AgentId),
    /// A fault of a host occurs.
    HostFault(HostName, HostFault),
}

/// The world.
pub struct World {
    /// The setting.
    pub setting: Rc<Setting>,
    /// The truth.
    pub truth: Rc<RefCell<Truth>>,
    /// The time, nanoseconds.
    pub now_ns: u64,
    /// The trace, if requested.
    pub trace: Option<Vec<String>>,
    /// Its plan.
    pub plan: Rc<ResolvedPlan>,
    /// Random numbers of the links.
    pub wire: Random,
    /// Scheduled events, by time and number.
    queue: BTreeMap<(u64, u64), WorldEvent>,
    events: u64,
    /// All agents that were ever started.
    pub agents: BTreeMap<AgentId, Agent>,
    /// Output that the coordinator has not received yet.
    pub arrived: VecDeque<(AgentId, Arrival)>,
    /// Time until which no bytes reach a host, nanoseconds.
    pub partitions: BTreeMap<HostName, u64>,
}

impl World {
    /// A world without agents.
    pub fn new(setting: Rc<Setting>, wire: Random, traced: bool) -> Self {
        let mut truth = Truth::default();
        for (index, name) in setting.plan.hosts.keys().enumerate() {
            truth.host(name).network = if setting.shares_network { 0 } else { index as u64 };
        }
        Self {
            plan: Rc::new(setting.plan.clone()),
            setting,
            truth: Rc::new(RefCell::new(truth)),
            now_ns: 0,
            trace: traced.then(Vec::new),
            wire,
            queue: BTreeMap::new(),
            events: 0,
            agents: BTreeMap::new(),
            arrived: VecDeque::new(),
            partitions: BTreeMap::new(),
        }
    }

    /// Adds a line to the trace.
    pub fn note(&mut self, what: impl Display) {
        let now_ns = self.now_ns;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12.3} ms  {what}", now_ns as f64 / 1e6));
        }
    }

    pub(crate) fn broken(&mut self, what: String) {
        self.note(format_args!("BROKEN: {what}"));
        self.truth.borrow_mut().broken(what);
    }

    pub(crate) fn schedule(&mut self, at_ns: u64, event: WorldEvent) {
        self.events += 1;
        self.queue.insert((at_ns.max(self.now_ns), self.events), event);
    }

    /// Begins a part of the run and schedules the faults of its hosts.
    pub fn begin_part(&mut self, faults: Vec<Fault>) {
        for fault in &faults {
            if let Fault::Host { host, at_ns, fault } = fault {
                self.schedule(self.now_ns + at_ns, WorldEvent::HostFault(host.clone(), *fault));
            }
        }
        self.arrived.clear();
        self.truth.borrow_mut().begin_part(faults);
    }

    /// Whether the limit of events is reached.
    pub fn is_endless(&self) -> bool {
        self.events > EVENTS_MAX
    }

    pub(crate) fn latency_ns(&mut self) -> u64 {
        1_000 + self.wire.below(self.setting.latency_ns_max)
    }

    /// Sends bytes of an agent to the coordinator.
    pub(crate) fn emit(&mut self, id: AgentId, at_ns: u64, bytes: &[u8]) {
        let latency_ns = self.latency_ns();
        let is_cut_in_two = self.wire.once_in(8);
        let Some(agent) = self.agents.get_mut(&id) else { return };
        let partition_ns = self.partitions.get(&agent.host).copied().unwrap_or_default();
        agent.to_coordinator_ns = agent.to_coordinator_ns.max(at_ns.max(partition_ns) + latency_ns);
        let (at_ns, host) = (agent.to_coordinator_ns, agent.host.clone());
        if agent.is_cut {
            return;
        }
        let fault = self.truth.borrow_mut().line(&host, self.now_ns);
        if fault.is_some() {
            agent.is_hampered = true;
            self.note(format_args!("the next line of agent {id} is hit{}", shown(fault.as_ref())));
        }
        let arrives = |bytes: &[u8]| WorldEvent::Arrives(id, Arrival::Bytes(bytes.to_vec()));
        match fault {
            Some(LineFault::Lost) => {}
            Some(LineFault::Late(late_ns)) => self.schedule(at_ns + late_ns, arrives(bytes)),
            Some(LineFault::Repeat(later_ns)) => {
                self.schedule(at_ns, arrives(bytes));
                self.schedule(at_ns + later_ns, arrives(bytes));
            }
            Some(LineFault::Garbage) => {
                self.schedule(at_ns, arrives(b"\xff\x00 Segmentation fault\n"));
                self.schedule(at_ns, arrives(bytes));
            }
            Some(LineFault::Torn) => {
                self.schedule(at_ns, arrives(&bytes[..bytes.len() / 2]));
                self.leave(id, 1);
            }
            Some(LineFault::Endless) => {
                let piece = vec![b'x'; 1 << 20];
                for _ in 0..=64 {
                    self.schedule(at_ns, arrives(&piece));
                }
            }
            None => {
                let cut = if is_cut_in_two { bytes.len() / 3 } else { 0 };
                if cut > 0 {
                    self.schedule(at_ns, arrives(&bytes[..cut]));
                }
                self.schedule(at_ns, arrives(&bytes[cut..]));
            }
        }
    }

    pub(crate) fn run_at(&mut self, id: AgentId, at_ns: u64) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if at_ns < agent.next_run_ns {
            agent.next_run_ns = at_ns;
            self.schedule(at_ns, WorldEvent::Runs(id));
        }
    }

    /// Lets an agent process its inputs and the time.
    fn run_agent(&mut self, id: AgentId) {
        loop {
            let now_ns = self.now_ns;
            let Some(agent) = self.agents.get_mut(&id) else { return };
            let Some(session) = &mut agent.session else { return };
            if agent.free_ns > now_ns {
                let free_ns = agent.free_ns;
                return self.run_at(id, free_ns);
            }
            {
                let mut body = agent.body.borrow_mut();
                body.local_ns = body.local_ns.max(now_ns);
            }
            let progress = match agent.inbox.pop_front() {
                Some(input) => session.input(input),
                None if session.deadline_ns() <= now_ns => session.time_passed(),
                None => {
                    let deadline_ns = session.deadline_ns();
                    return self.run_at(id, deadline_ns);
                }
            };
            let (output, is_dead, local_ns, done_ns) = {
                let mut body = agent.body.borrow_mut();
                (std::mem::take(&mut body.output), body.is_dead, body.local_ns, body.done_ns)
            };
            agent.free_ns = local_ns;
            if let Some(done_ns) = done_ns.filter(|done_ns| agent.wake_ns != Some(*done_ns)) {
                agent.wake_ns = Some(done_ns);
                self.schedule(done_ns, WorldEvent::Wakes(id));
            }
            for (at_ns, line) in output {
                self.emit(id, at_ns, &line);
            }
            match progress {
                _ if is_dead => return self.crash(id),
                Ok(Progress::GoesOn) => {}
                Ok(Progress::Ended) => return self.leave(id, 0),
                Err(error) => {
                    self.judge_error(id, &error);
                    return self.leave(id, 1);
                }
            }
        }
    }

    /// An agent ends by itself and cleans up.
    pub(crate) fn leave(&mut self, id: AgentId, how: i32) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if agent.life != Life::Running {
            return;
        }
        // Dropping the session cleans up.
        drop(agent.session.take());
        if agent.body.borrow().is_dead {
            return self.crash(id);
        }
        let host = agent.host.clone();
        let is_stuck = self.truth.borrow().hosts[&host].applied.iter().any(|applied| applied.agent == id);
        if is_stuck {
            // It reports this on its standard error.
            self.truth.borrow_mut().warned.insert(host);
        }
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.status = how << 8;
        self.end_output(id);
        self.gone(id);
    }

    /// An agent is killed; its guard starts to restore the host.
    pub(crate) fn crash(&mut self, id: AgentId) {
        let guard_ns = self.setting.guard_ns;
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if agent.life != Life::Running {
            return;
        }
        agent.body.borrow_mut().is_dead = true;
        drop(agent.session.take());
        (agent.life, agent.status) = (Life::Killed, SIGKILL);
        self.note(format_args!("agent {id} is dead"));
        self.truth.borrow_mut().agent_gone(id);
        self.reset_others(id);
        self.end_output(id);
        let is_clean = {
            let truth = self.truth.borrow();
            let applied = truth.hosts.values().flat_map(|host| &host.applied);
            !applied.into_iter().any(|applied| applied.agent == id && !applied.is_orphan)
        };
        if is_clean { self.gone(id) } else { self.schedule(self.now_ns + guard_ns, WorldEvent::Restored(id)) }
    }

    fn end_output(&mut self, id: AgentId) {
        let latency_ns = self.latency_ns();
        let now_ns = self.now_ns;
        let Some(agent) = self.agents.get_mut(&id) else { return };
        let partition_ns = self.partitions.get(&agent.host).copied().unwrap_or_default();
        agent.to_coordinator_ns =
            agent.to_coordinator_ns.max(now_ns.max(partition_ns).max(agent.free_ns.min(now_ns)) + latency_ns);
        if !agent.is_cut {
            let at_ns = agent.to_coordinator_ns;
            self.schedule(at_ns, WorldEvent::Arrives(id, Arrival::End));
        }
    }

    /// An agent and its guard have ended.
    pub(crate) fn gone(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.life = Life::Gone;
        let was_killed = agent.status == SIGKILL;
        let host = agent.host.clone();
        self.truth.borrow_mut().agent_gone(id);
        self.reset_others(id);
        if was_killed {
            let mut truth = self.truth.borrow_mut();
            if !truth.has(Sabotage::RestoresNothing) {
                truth.restore(&host, id);
            }
            truth.look_at_traffic(&self.plan);
        }
        self.note(format_args!("agent {id} and its guard are gone"));
    }

    /// The traffic of the other end fails when an end is lost, in some settings.
    fn reset_others(&mut self, id: AgentId) {
        if !self.setting.resets {
            return;
        }
        let other = self.truth.borrow().traffic.values().rev().take(2).find_map(|traffic| {
            let ends: Vec<_> = traffic.ends.iter().flatten().collect();
            let is_own = ends.iter().any(|end| end.agent == id && !end.is_done);
            ends.iter().find(|end| is_own && end.agent != id && end.is_running).map(|end| end.agent)
        });
        let Some(other) = other else { return };
        if let Some(agent) = self.agents.get_mut(&other) {
            let at_ns = self.now_ns + MS;
            {
                let mut body = agent.body.borrow_mut();
                (body.is_reset, body.done_ns) = (true, Some(at_ns));
            }
            agent.wake_ns = Some(at_ns);
            self.schedule(at_ns, WorldEvent::Wakes(other));
        }
    }

    fn apply_fault(&mut self, name: &HostName, fault: HostFault) {
        let now_ns = self.now_ns;
        self.note(format_args!("host {name} is hit: {fault:?}"));
        let living = self.agents.iter_mut().rev().find(|(_, agent)| agent.host == *name && !agent.is_gone());
        let Some((id, agent)) = living else { return };
        // It may have been drawn for an earlier part of the run.
        self.truth.borrow_mut().hit.push((now_ns, Fault::Host { host: name.clone(), at_ns: now_ns, fault }));
        let id = *id;
        agent.is_hampered = true;
        match fault {
            HostFault::Crash => self.crash(id),
            HostFault::Freeze(time_ns) => agent.free_ns = agent.free_ns.max(now_ns + time_ns),
            HostFault::Partition(time_ns) if self.setting.reach == Reach::Near => {
                agent.free_ns = agent.free_ns.max(now_ns + time_ns);
            }
            HostFault::Partition(time_ns) => {
                self.partitions.insert(name.clone(), now_ns + time_ns);
            }
            HostFault::Cut => {
                agent.is_cut = true;
                self.schedule(now_ns + MS, WorldEvent::Arrives(id, Arrival::End));
                self.schedule(now_ns + MS, WorldEvent::Reaches(id, Input::End));
            }
        }
    }

    fn process(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Reaches(id, input) => {
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.inbox.push_back(input);
                    self.run_agent(id);
                }
            }
            WorldEvent::Runs(id) => {
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.next_run_ns = u64::MAX;
                }
                self.run_agent(id);
            }
            WorldEvent::Wakes(id) => {
                if let Some(agent) = self.agents.get_mut(&id).filter(|agent| agent.session.is_some()) {
                    agent.inbox.push_back(Input::Wake);
                    self.run_agent(id);
                }
            }
            WorldEvent::Arrives(id, arrival) => {
                if let Some(agent) = self.agents.get_mut(&id).filter(|agent| !agent.is_ended) {
                    agent.outstanding.received(&arrival, self.now_ns);
                    self.arrived.push_back((id, arrival));
                }
            }
            WorldEvent::Restored(id) => self.gone(id),
            WorldEvent::HostFault(host, fault) => self.apply_fault(&host, fault),
        }
    }

    /// Advances the time to `until_ns`, or until `is_enough` returns true.
    pub(crate) fn pass(&mut self, until_ns: u64, mut is_enough: impl FnMut(&Self) -> bool) {
        while !is_enough(self) && !self.is_endless() {
            let next_ns = self.queue.first_key_value().map_or(u64::MAX, |((at_ns, _), _)| *at_ns);
            if next_ns > until_ns {
                self.now_ns = self.now_ns.max(until_ns);
                return;
            }
            let Some(((at_ns, _), event)) = self.queue.pop_first() else { return };
            self.now_ns = self.now_ns.max(at_ns);
            self.process(event);
        }
    }

    /// Waits for the guards: they do not hold the lock of their host, so they would disturb a run that starts before their end.
    pub fn await_guards(&mut self) {
        let until_ns = self.now_ns.saturating_add(self.setting.guard_ns);
        self.pass(until_ns, |world| world.agents.values().all(|agent| agent.life != Life::Killed));
    }

    /// Processes all remaining events.
    pub fn settle(&mut self) {
        self.pass(u64::MAX, |_| false);
        if self.is_endless() {
            self.broken("the agents never come to rest".to_owned());
        }
    }
}

/// A fault as the end of a sentence.
pub fn shown(fault: Option<&impl std::fmt::Debug>) -> String {
    fault.map_or_else(String::new, |fault| format!(": {fault:?}"))
}

/// The start of a line.
pub fn short(line: &str) -> String {
    line.trim_end().chars().take(100).map(|c| if c.is_control() { '.' } else { c }).collect()
}
