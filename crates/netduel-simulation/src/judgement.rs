//! Promises of the coordinator that the world can check: messages, abandoned agents, locks, and restored hosts.
use netduel_control::agent::AgentError;
use netduel_control::launcher::AgentId;
use netduel_control::peer::PeerError;
use netduel_model::ids::HostName;

use crate::fault::{CoordinatorFault, Fault};
use crate::world::{MS, World};

impl World {
    /// A trial begins: every network stack with running agents is locked by one of them.
    pub fn judge_locks(&mut self) {
        if self.setting.is_quick {
            return;
        }
        let mut truth = self.truth.borrow_mut();
        let hosts: Vec<(HostName, u64)> =
            truth.hosts.iter().map(|(name, host)| (name.clone(), host.network)).collect();
        for (_, network) in &hosts {
            let mut own = self.agents.values().filter(|agent| {
                !agent.is_ended && hosts.iter().any(|(name, of)| of == network && *name == agent.host)
            });
            if !truth.locks.contains_key(network) && own.all(|agent| agent.session.is_some() && !agent.is_cut)
            {
                truth.broken(format!("a trial begins on network {network}, which no host has locked"));
            }
        }
    }

    /// An agent without a fault is not abandoned before its deadline.
    pub fn judge_end(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get(&id) else { return };
        let truth = self.truth.borrow();
        // Agents with running traffic abandon a coordinator that is paused for a minute.
        let is_faulty = |(_, fault): &(u64, Fault)| fault.host() == Some(&agent.host);
        let is_faultless = !truth.hit.iter().any(is_faulty) && truth.paused_ns() < 60_000 * MS;
        if agent.session.is_some()
            && is_faultless
            && truth.hits_of_all_parts == 0
            && let Some(awaited) = agent.outstanding.of_an_agent()
        {
            let what = format!(
                "agent {id} on {} is given up while {awaited} is awaited, without any fault there",
                agent.host
            );
            drop(truth);
            return self.broken(what);
        }
        // The user who ends a run does not wait for a new agent: it has changed nothing before its first trial.
        let is_interrupt = |(_, fault): &(u64, Fault)| {
            matches!(fault, Fault::Coordinator { fault: CoordinatorFault::Interrupt, .. })
        };
        let may_leave_new_agents = truth.hit.iter().any(is_interrupt);
        drop(truth);
        let is_healthy = agent.session.is_some() && !agent.is_cut && !agent.is_hampered;
        if is_healthy
            && let Some(awaited) = agent.outstanding.has_time(self.now_ns)
            && !(may_leave_new_agents && awaited == "describe")
        {
            let what =
                format!("agent {id} on {} is given up, although it has time for {awaited}", agent.host);
            self.broken(what);
        }
    }

    /// An agent has abandoned its coordinator: a broken promise unless a fault explains it.
    pub fn judge_error(&mut self, id: AgentId, error: &AgentError) {
        self.note(format_args!("agent {id} gives up: {error}"));
        let host = self.agents[&id].host.clone();
        let is_silence = matches!(error, AgentError::Coordinator(PeerError::Silent { .. }));
        let excused = self.truth.borrow().hit.iter().any(|(_, fault)| match fault {
            Fault::Coordinator { .. } => true,
            _ => fault.host() == Some(&host),
        });
        if !(is_silence && (excused || self.agents[&id].is_ended)) {
            self.broken(format!(
                "agent {id} on {host} was sent what the protocol forbids, or nothing: {error}"
            ));
        }
    }

    /// Checks that all hosts are restored.
    pub fn judge_rest(&mut self) {
        let truth = self.truth.borrow();
        let left: Vec<String> = truth
            .hosts
            .keys()
            .filter(|host| !truth.warned.contains(*host))
            .filter_map(|host| truth.left_over(host, u64::MAX))
            .collect();
        drop(truth);
        for left in left {
            self.broken(format!("at the end {left}"));
        }
    }
}
