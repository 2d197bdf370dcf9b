//! The true state of the simulated hosts and of all traffic. The coordinator's records are checked against it.
use std::collections::{BTreeMap, BTreeSet};

use netduel_control::launcher::AgentId;
use netduel_model::ids::{HostName, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{ResolvedPlan, TreatmentAction};
use netduel_model::trial::Slot;
use netduel_model::workload::Role;

use crate::fault::{CoordinatorFault, Fault, LocalCall, Task, TaskFault};
use crate::sabotage::Sabotage;

/// Number of the traffic of a trial, which its token carries. The steps of a search have one each.
pub type Serial = u64;

/// A treatment that is in place.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The agent that applied it.
    pub agent: AgentId,
    /// The treatment.
    pub action: TreatmentAction,
    /// Its undoing has failed.
    pub is_stuck: bool,
    /// It outlived a boot of its host, and no process undoes it.
    pub is_orphan: bool,
}

/// A host.
#[derive(Debug, Default)]
pub struct HostTruth {
    /// Its network stack.
    pub network: u64,
    /// Its treatments.
    pub applied: Vec<Applied>,
    /// Whether another run has locked it.
    pub is_busy: bool,
    /// How often it was rebooted.
    pub boots: u32,
    /// When it was described last, nanoseconds.
    pub described_ns: u64,
    tasks: BTreeMap<Task, u32>,
    lines: u32,
    starts: u32,
}

/// One end of the traffic of a trial.
#[derive(Debug, Clone)]
pub struct EndTruth {
    /// Its agent.
    pub agent: AgentId,
    /// Its host.
    pub host: HostName,
    /// Whether traffic runs.
    pub is_running: bool,
    /// Whether the result was taken.
    pub is_done: bool,
    /// A wrong state of the host at some time of the traffic.
    pub flaw: Option<String>,
}

/// The traffic of a trial.
#[derive(Debug)]
pub struct TrafficTruth {
    /// The slot of its trial.
    pub slot: Slot,
    /// Its ends, the client's first.
    pub ends: [Option<EndTruth>; 2],
}

/// The truth.
#[derive(Debug, Default)]
pub struct Truth {
    /// The hosts.
    pub hosts: BTreeMap<HostName, HostTruth>,
    /// All traffic.
    pub traffic: BTreeMap<Serial, TrafficTruth>,
    /// The prepared or running traffic of each agent.
    pub current: BTreeMap<AgentId, Serial>,
    /// The ports that an agent has open for a probe: the token that they answer.
    pub open_ports: BTreeMap<AgentId, Token>,
    /// The agent that holds the lock of a network stack.
    pub locks: BTreeMap<u64, AgentId>,
    /// The path of the lab.
    pub path: Option<LabPath>,
    /// Hosts with a stored warning about remaining treatments.
    pub warned: BTreeSet<HostName>,
    /// The lowest number of an agent of this part of the run. Tasks of agents of earlier parts, which still clean up, have no faults and
    /// are not counted: faults name the nth task of this part, and a part begins when the guards of earlier ones have ended, so that a
    /// crash of such an agent would start a guard that no part waits for. The faults of the earlier part strike such an agent until this
    /// part begins.
    pub first_agent: AgentId,
    /// The faults of this part of the run.
    pub faults: Vec<Fault>,
    /// Those that occurred, with the time.
    pub hit: Vec<(u64, Fault)>,
    /// In what way the product is broken.
    pub sabotage: Option<Sabotage>,
    /// The broken promises.
    pub violations: Vec<String>,
    /// Trials that were stored as failed, over all parts.
    pub failed: usize,
    /// Faults that occurred in earlier parts.
    pub hits_of_all_parts: usize,
    calls: BTreeMap<LocalCall, u32>,
}

impl HostTruth {
    /// Starts of an agent on this host in this part.
    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// Counts a start for which there was no launcher.
    pub fn not_started(&mut self) {
        next(&mut self.starts);
    }
}

fn next(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

impl Truth {
    /// Whether the product is broken in this way.
    pub fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// A promise is broken.
    pub fn broken(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Begins a part of the run with its faults.
    pub fn begin_part(&mut self, faults: Vec<Fault>) {
        self.faults = faults;
        self.hits_of_all_parts += self.hit.len();
        self.hit.clear();
        self.calls.clear();
        for host in self.hosts.values_mut() {
            (host.lines, host.starts) = (0, 0);
            host.tasks.clear();
            host.is_busy = false;
        }
    }

    /// Time for which the coordinator was paused in this part, nanoseconds.
    pub fn paused_ns(&self) -> u64 {
        let pauses = self.hit.iter().map(|(_, fault)| match fault {
            Fault::Coordinator { fault: CoordinatorFault::Pause(time_ns), .. } => *time_ns,
            _ => 0,
        });
        pauses.sum()
    }

    /// Whether bytes used another path in this part.
    pub fn was_on_wrong_path(&self) -> bool {
        let wrong =
            |(_, fault): &(u64, Fault)| matches!(fault, Fault::Task { fault: TaskFault::WrongPath, .. });
        self.hit.iter().any(wrong)
    }

    /// Whether a host was not described since a time. Those on the machine of one that is not restored need not be.
    pub fn has_undescribed_host(&self, since_ns: u64) -> bool {
        let is_left = |(name, host): &(&HostName, &HostTruth)| {
            self.warned.contains(*name) || host.applied.iter().any(|applied| applied.is_stuck)
        };
        let left: BTreeSet<u64> = self.hosts.iter().filter(is_left).map(|(_, host)| host.network).collect();
        self.hosts.values().any(|host| host.described_ns < since_ns && !left.contains(&host.network))
    }

    /// The host with this name.
    pub fn host(&mut self, name: &HostName) -> &mut HostTruth {
        self.hosts.entry(name.clone()).or_default()
    }

    /// Records a fault that occurs, and returns it.
    fn strike(&mut self, now_ns: u64, found: Option<usize>) -> Option<Fault> {
        let fault = self.faults[found?].clone();
        self.hit.push((now_ns, fault.clone()));
        Some(fault)
    }

    /// The fault of the task that begins now.
    pub fn task(&mut self, name: &HostName, wanted: Task, now_ns: u64) -> Option<TaskFault> {
        let number = next(self.host(name).tasks.entry(wanted).or_default());
        let found = self.faults.iter().position(|fault| {
            matches!(fault, Fault::Task { host, task, nth, .. } if host == name && *task == wanted && *nth == number)
        });
        match self.strike(now_ns, found) {
            Some(Fault::Task { fault, .. }) => Some(fault),
            _ => None,
        }
    }

    /// The fault of the line that is sent now.
    pub fn line(&mut self, name: &HostName, now_ns: u64) -> Option<crate::fault::LineFault> {
        let number = next(&mut self.host(name).lines);
        let found = self.faults.iter().position(
            |fault| matches!(fault, Fault::Line { host, nth, .. } if host == name && *nth == number),
        );
        match self.strike(now_ns, found) {
            Some(Fault::Line { fault, .. }) => Some(fault),
            _ => None,
        }
    }

    /// The fault of the agent that is started now.
    pub fn start(&mut self, name: &HostName, now_ns: u64) -> Option<crate::fault::StartFault> {
        let number = next(&mut self.host(name).starts);
        let found = self.faults.iter().position(
            |fault| matches!(fault, Fault::Start { host, nth, .. } if host == name && *nth == number),
        );
        match self.strike(now_ns, found) {
            Some(Fault::Start { fault, .. }) => Some(fault),
            _ => None,
        }
    }

    /// Whether a call on the coordinator's machine fails.
    pub fn fails(&mut self, wanted: LocalCall, now_ns: u64) -> bool {
        let number = next(self.calls.entry(wanted).or_default());
        let found = self.faults.iter().position(
            |fault| matches!(fault, Fault::Local { call, nth } if *call == wanted && *nth == number),
        );
        self.strike(now_ns, found).is_some()
    }

    /// A remaining treatment of an earlier trial: of another agent, or one whose undoing failed.
    pub fn left_over(&self, host: &HostName, agent: AgentId) -> Option<String> {
        let of_host = &self.hosts.get(host)?.applied;
        let left = of_host.iter().find(|applied| applied.agent != agent || applied.is_stuck)?;
        Some(format!("{:?} of agent {} is in place on {host}", left.action, left.agent))
    }

    /// Why the state of a host is wrong for the traffic that runs there; absent when it is right.
    pub fn flaw(&self, plan: &ResolvedPlan, slot: &Slot, role: Role, host: &HostName) -> Option<String> {
        let arm = plan.arm(&slot.arm)?;
        let of_host = &self.hosts.get(host)?.applied;
        let actions: Vec<&TreatmentAction> = of_host.iter().map(|applied| &applied.action).collect();
        let wanted = arm.agent_treatments(role);
        if !wanted.iter().all(|action| actions.contains(&action)) || actions.len() > wanted.len() {
            return Some(format!("{host} has {actions:?} instead of {wanted:?}"));
        }
        let path = arm.treatments.iter().find_map(|treatment| match treatment.action {
            TreatmentAction::Path { path } => Some(path),
            _ => None,
        });
        (path.is_some() && path != self.path).then(|| format!("the lab is on {:?}", self.path))
    }

    /// Checks the hosts of running traffic again after a change of one of them.
    pub fn look_at_traffic(&mut self, plan: &ResolvedPlan) {
        let serials: Vec<Serial> = self.traffic.keys().rev().take(2).copied().collect();
        for serial in serials {
            let Some(traffic) = self.traffic.get(&serial) else { continue };
            let flaws = [Role::Client, Role::Server].map(|role| {
                let end = traffic.ends[role as usize].as_ref().filter(|end| end.is_running)?;
                self.flaw(plan, &traffic.slot, role, &end.host)
            });
            let Some(traffic) = self.traffic.get_mut(&serial) else { continue };
            for (end, flaw) in traffic.ends.iter_mut().zip(flaws) {
                if let Some(end) = end {
                    end.flaw = end.flaw.take().or(flaw);
                }
            }
        }
    }

    /// An agent has ended: its locks are released, and its traffic ends.
    pub fn agent_gone(&mut self, agent: AgentId) {
        self.locks.retain(|_, holder| *holder != agent);
        self.current.remove(&agent);
        self.open_ports.remove(&agent);
        let ends =
            self.traffic.values_mut().rev().take(3).flat_map(|traffic| traffic.ends.iter_mut().flatten());
        for end in ends.filter(|end| end.agent == agent) {
            end.is_running = false;
        }
    }

    /// The user restores by hand what could not be undone.
    pub fn restore_by_hand(&mut self) {
        for host in self.hosts.values_mut() {
            host.applied.retain(|applied| !applied.is_stuck && !applied.is_orphan);
        }
    }

    /// The changes of an agent are undone.
    pub fn restore(&mut self, host: &HostName, agent: AgentId) {
        self.host(host).applied.retain(|applied| applied.agent != agent || applied.is_orphan);
    }

    /// A host reboots: its settings return, and the effects of commands outlive the boot.
    pub fn reboot(&mut self, host: &HostName) {
        let host = self.host(host);
        host.boots += 1;
        host.applied.retain(|applied| matches!(applied.action, TreatmentAction::Command { .. }));
        host.applied.iter_mut().for_each(|applied| applied.is_orphan = true);
    }
}
