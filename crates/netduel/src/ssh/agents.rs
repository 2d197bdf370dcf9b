//! The agents of a run as processes, and what becomes of their ssh connections: several lost hosts are prepared at the same time, and a lost agent
//! gets the last line of its connection, because ssh leaves it to its master process to print why that ended. It interprets no output of agents.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netduel_control::launcher::{AgentId, Agents, Arrival, Ended, LaunchError, Processes};
use netduel_model::ids::HostName;
use netduel_model::plan::{Host, Launch};

use super::{OnFailure, SshHosts};

/// Exit code of ssh(1) when its connection is lost, and when a signal ends its command.
const LOST: i32 = 255;

/// Processes, of which some are sessions of the connections.
pub struct SshAgents<'a> {
    processes: Processes,
    hosts: BTreeMap<AgentId, HostName>,
    /// Those with output: their program has started.
    started: BTreeSet<AgentId>,
    connections: &'a RefCell<SshHosts>,
}

impl<'a> SshAgents<'a> {
    /// Without processes.
    pub fn new(connections: &'a RefCell<SshHosts>) -> Self {
        Self { processes: Processes::new(), hosts: BTreeMap::new(), started: BTreeSet::new(), connections }
    }
}

impl Agents for SshAgents<'_> {
    fn prepare(&mut self, hosts: &[(&HostName, &Host)]) {
        let by_ssh = hosts.iter().filter_map(|(name, host)| match &host.launch {
            Launch::Ssh(ssh) => Some((*name, ssh)),
            _ => None,
        });
        // Each failure is returned by `SshHosts::argv`.
        drop(self.connections.borrow_mut().prepare(by_ssh, OnFailure::Continue));
    }

    fn start(&mut self, id: AgentId, host: &str, argv: &[String]) -> Result<(), LaunchError> {
        self.processes.start(id, host, argv)?;
        self.hosts.extend(HostName::new(host).ok().map(|host| (id, host)));
        Ok(())
    }

    fn send(&mut self, id: AgentId, line: &str) {
        self.processes.send(id, line);
    }

    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)> {
        let arrived = self.processes.next_arrival(timeout)?;
        if let (id, Arrival::Bytes(_)) = &arrived {
            self.started.insert(*id);
        }
        Some(arrived)
    }

    fn end(&mut self, id: AgentId, patience: Duration) -> Ended {
        let ended = self.processes.end(id, patience);
        let host = self.hosts.remove(&id);
        if let Some(host) = &host
            && !self.started.remove(&id)
        {
            self.connections.borrow_mut().forget_program(host);
        }
        let is_lost = ended.status.and_then(|status| status.code()) == Some(LOST);
        let lost = host.filter(|_| is_lost);
        let connection = lost.and_then(|host| self.connections.borrow_mut().last_line(&host));
        Ended { connection, ..ended }
    }

    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool {
        self.processes.is_over(id, patience)
    }
}
