//! Calls of the coordinator to the world: starting and ending agents, sending, receiving and waiting.
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use netduel_control::agent::Input;
use netduel_control::launcher::{AgentId, Arrival, Ended, LaunchError};
use netduel_control::protocol::{FromAgent, PROTOCOL, encode};
use netduel_model::ids::HostName;

use crate::agent::{Agent, Life};
use crate::fault::StartFault;
use crate::setting::Reach;
use crate::world::{MS, World, WorldEvent, short, shown};

/// Time for which the launcher waits for the guard of a killed process, nanoseconds.
const KILL_PATIENCE_NS: u64 = 1_000 * MS;

impl World {
    /// Starts an agent.
    pub fn start(&mut self, id: AgentId, name: &HostName) -> Result<(), LaunchError> {
        let fault = self.truth.borrow_mut().start(name, self.now_ns);
        self.note(format_args!("agent {id} is started on {name}{}", shown(fault.as_ref())));
        if fault == Some(StartFault::NotRun) {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            let (host, program) = (name.to_string(), "agent".to_owned());
            return Err(LaunchError::Spawn { host, command: program.clone(), program, source });
        }
        let living = self.agents.iter().find(|(_, agent)| agent.host == *name && !agent.is_ended);
        if let Some((other, _)) = living {
            let what = format!("agent {id} is started on {name} beside agent {other}");
            self.broken(what);
        }
        let start_ns = match self.setting.reach {
            Reach::Near => 5 * MS,
            Reach::Far => 100 * MS + 4 * self.latency_ns(),
        };
        let times = (self.now_ns, self.now_ns + start_ns);
        self.agents.insert(id, Agent::new((id, name), times, fault, &self.truth, &self.plan));
        match fault {
            Some(StartFault::OtherVersion) => {
                let hello = FromAgent::Hello { protocol: PROTOCOL + 1, program: "netduel 9.9".into() };
                self.emit(id, self.now_ns + start_ns, encode(&hello).as_bytes());
            }
            Some(StartFault::Banner(lines)) => {
                self.emit(id, self.now_ns + start_ns, &b"Welcome\n".repeat(lines));
            }
            Some(StartFault::EndsAtOnce) => self.leave(id, 255),
            Some(StartFault::Busy) => self.truth.borrow_mut().host(name).is_busy = true,
            _ => self.run_at(id, self.now_ns + start_ns),
        }
        Ok(())
    }

    /// The coordinator sends a line.
    pub fn send(&mut self, id: AgentId, line: &str) {
        self.note(format_args!("-> agent {id}: {}", short(line)));
        let latency_ns = self.latency_ns();
        let now_ns = self.now_ns;
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.outstanding.requested(line, now_ns);
        if agent.is_cut {
            return;
        }
        let partition_ns = self.partitions.get(&agent.host).copied().unwrap_or_default();
        agent.to_agent_ns = agent.to_agent_ns.max(now_ns.max(partition_ns) + latency_ns);
        let at_ns = agent.to_agent_ns;
        // Sometimes in two pieces: received bytes need not end at a line end.
        let bytes = line.as_bytes();
        let cut = if self.wire.once_in(8) { self.wire.below(bytes.len() as u64) as usize } else { 0 };
        for piece in [&bytes[..cut], &bytes[cut..]].into_iter().filter(|piece| !piece.is_empty()) {
            self.schedule(at_ns, WorldEvent::Reaches(id, Input::Bytes(piece.to_vec())));
        }
    }

    /// The next arrival at the coordinator, which waits for `timeout_ns` at most.
    pub fn next_arrival(&mut self, timeout_ns: u64) -> Option<(AgentId, Arrival)> {
        let until_ns = self.now_ns.saturating_add(timeout_ns);
        self.pass(until_ns, |world| !world.arrived.is_empty());
        let late = self.agents.iter().find_map(|(id, agent)| {
            let overdue = agent.outstanding.overdue(self.now_ns)?;
            (!agent.is_ended).then(|| format!("agent {id} on {} is still waited for: {overdue}", agent.host))
        });
        if let Some(late) = late {
            self.broken(late);
        }
        let next = self.arrived.pop_front();
        if let Some((id, arrival)) = &next
            && self.trace.is_some()
        {
            let what = match arrival {
                Arrival::Bytes(bytes) => short(&String::from_utf8_lossy(bytes)),
                Arrival::End => "the end of its output".to_owned(),
            };
            self.note(format_args!("<- agent {id}: {what}"));
        }
        next
    }

    /// The coordinator is paused.
    pub fn pause(&mut self, time_ns: u64) {
        self.note(format_args!("the coordinator stands still for {} ms", time_ns / MS));
        self.pass(self.now_ns + time_ns, |_| false);
        self.postpone(time_ns);
    }

    /// Extends all deadlines by the time in which the coordinator did not listen.
    fn postpone(&mut self, time_ns: u64) {
        for agent in self.agents.values_mut() {
            agent.outstanding.postpone(time_ns);
        }
    }

    /// Waits for the end of an agent and its guard if they are on the coordinator's machine: a closed connection does not show whether
    /// remote processes still run.
    pub fn is_over(&mut self, id: AgentId, patience_ns: u64) -> bool {
        let from_ns = self.now_ns;
        let is_near = self.setting.reach == Reach::Near;
        let is_gone = |world: &Self| world.agents.get(&id).is_none_or(Agent::is_gone);
        if is_near {
            self.pass(self.now_ns + patience_ns, is_gone);
        }
        self.postpone(self.now_ns - from_ns);
        !is_near || is_gone(self)
    }

    /// The coordinator waits for a time.
    pub fn idle(&mut self, time_ns: u64) {
        self.pass(self.now_ns + time_ns, |_| false);
    }

    /// The coordinator ends an agent and waits for its end.
    pub fn end(&mut self, id: AgentId, patience_ns: u64) -> Ended {
        self.note(format_args!("the coordinator ends agent {id}"));
        self.judge_end(id);
        let from_ns = self.now_ns;
        self.close(id);
        let is_gone = |world: &Self| world.agents.get(&id).is_none_or(Agent::is_gone);
        self.pass(self.now_ns + patience_ns, is_gone);
        if !is_gone(self) && self.setting.reach == Reach::Near {
            self.crash(id);
            self.pass(self.now_ns + KILL_PATIENCE_NS, is_gone);
        }
        self.postpone(self.now_ns - from_ns);
        let is_over = self.setting.reach == Reach::Far || is_gone(self);
        let how = self.agents.get(&id).filter(|_| is_gone(self)).map(|agent| agent.status);
        Ended { status: how.map(ExitStatus::from_raw), is_over, ..Ended::default() }
    }

    /// The coordinator's end of a connection is closed.
    fn close(&mut self, id: AgentId) {
        let latency_ns = self.latency_ns();
        let now_ns = self.now_ns;
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if agent.is_ended {
            return;
        }
        agent.is_ended = true;
        if agent.session.is_none() {
            // A process that is not an agent ends with its input.
            let is_mute = agent.life == Life::Running;
            if is_mute && self.setting.reach == Reach::Far {
                self.gone(id);
            }
            return;
        }
        let partition_ns = self.partitions.get(&agent.host).copied().unwrap_or_default();
        agent.to_agent_ns = agent.to_agent_ns.max(now_ns.max(partition_ns) + latency_ns);
        let at_ns = agent.to_agent_ns;
        if !agent.is_cut {
            self.schedule(at_ns, WorldEvent::Reaches(id, Input::End));
        }
    }

    /// The coordinator has ended, regularly or by a fault: every connection is closed. After a regular end, agents that still run are a
    /// broken promise.
    pub fn coordinator_gone(&mut self, in_order: bool) {
        let left: Vec<AgentId> =
            self.agents.iter().filter(|(_, agent)| !agent.is_ended).map(|(id, _)| *id).collect();
        for id in left {
            if in_order {
                self.broken(format!("agent {id} is left behind at the end of the run"));
            }
            self.close(id);
        }
        self.arrived.clear();
    }
}
