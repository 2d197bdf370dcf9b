//! The work of a simulated agent: it changes only the [`Truth`], takes virtual time, and fails according to the faults.
use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use netduel_control::agent::{Clock, FailureKind, Waker, Work, WorkError};
use netduel_control::launcher::AgentId;
use netduel_control::protocol::Recovery;
use netduel_model::data_ports::{ListenAt, PortAnswer, PortNeeds, PortProtocol, ProbeSource, ProbedPort};
use netduel_model::ids::{HostName, RunId, Token};
use netduel_model::observation::{InterfaceDelta, Observation};
use netduel_model::plan::{ResolvedPlan, TreatmentAction};
use netduel_model::sample::{DatagramReport, EndReport, Flow, LiveFigures};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::workload::{Role, Workload};

use crate::fault::{Task, TaskFault};
use crate::sabotage::Sabotage;
use crate::truth::{Applied, EndTruth, Serial, Truth};

/// Duration of a task without faults, nanoseconds.
const TASK_NS: u64 = 200_000;
/// Time in which an end finishes after the other, nanoseconds.
const DRAIN_NS: u64 = 2_000_000;
/// The port of every server.
const PORT: u16 = 40_000;

/// An agent's process.
#[derive(Debug)]
pub struct Body {
    /// Its number.
    pub id: AgentId,
    /// Its host.
    pub host: HostName,
    /// Its time, which is ahead of the world's while it works.
    pub local_ns: u64,
    /// Whether it was killed: it does not clean up at its end.
    pub is_dead: bool,
    /// The task in which it is killed.
    pub dies_in: Option<Task>,
    /// Scheduled end of its traffic.
    pub done_ns: Option<u64>,
    /// Whether the other end of its traffic has ended.
    pub is_reset: bool,
    /// Its output, each line with its time.
    pub output: Vec<(u64, Vec<u8>)>,
}

/// A handle of an agent's process.
#[derive(Debug, Clone)]
pub struct Process(pub Rc<RefCell<Body>>);

impl Clock for Process {
    fn now_ns(&self) -> u64 {
        self.0.borrow().local_ns
    }
}

impl io::Write for Process {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut body = self.0.borrow_mut();
        // A dead process writes nothing.
        if !body.is_dead {
            let at_ns = body.local_ns;
            body.output.push((at_ns, bytes.to_vec()));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The work of one agent.
#[derive(Debug)]
pub struct SimulatedWork {
    /// Its process.
    pub process: Process,
    /// The world's truth.
    pub truth: Rc<RefCell<Truth>>,
    /// The plan.
    pub plan: Rc<ResolvedPlan>,
    /// Its prepared or running traffic.
    pub job: Option<Job>,
}

/// Prepared or running traffic of an agent.
#[derive(Debug)]
pub struct Job {
    serial: Serial,
    role: Role,
    workload: Workload,
}

fn refused(task: Task) -> WorkError {
    WorkError { kind: FailureKind::Environment, message: format!("the simulation refuses {task:?}") }
}

fn traffic_error(message: &str) -> WorkError {
    WorkError { kind: FailureKind::Traffic, message: message.to_owned() }
}

/// The number in a token.
fn serial_of(token: Token) -> Serial {
    token.0.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The token of a number.
pub fn token_of(serial: Serial) -> Token {
    let mut bytes = [0x5a; 16];
    bytes[..8].copy_from_slice(&serial.to_le_bytes());
    Token(bytes)
}

impl SimulatedWork {
    fn id(&self) -> AgentId {
        self.process.0.borrow().id
    }

    fn host(&self) -> HostName {
        self.process.0.borrow().host.clone()
    }

    fn is_dead(&self) -> bool {
        self.process.0.borrow().is_dead
    }

    /// Begins a task: time passes, and its fault occurs.
    fn begin(&self, task: Task) -> Option<TaskFault> {
        if self.is_dead() {
            return Some(TaskFault::CrashBefore);
        }
        if self.process.0.borrow().dies_in == Some(task) {
            self.process.0.borrow_mut().is_dead = true;
            return Some(TaskFault::CrashBefore);
        }
        let now_ns = self.process.now_ns();
        let is_of_this_part = self.id() >= self.truth.borrow().first_agent;
        let fault =
            if is_of_this_part { self.truth.borrow_mut().task(&self.host(), task, now_ns) } else { None };
        let mut body = self.process.0.borrow_mut();
        body.local_ns += TASK_NS;
        match fault {
            Some(TaskFault::Slow(time_ns)) => body.local_ns += time_ns,
            Some(TaskFault::CrashBefore) => body.is_dead = true,
            Some(TaskFault::Reboot) => {
                body.is_dead = true;
                self.truth.borrow_mut().reboot(&body.host);
                // What is left of the agent is as after a crash.
                return Some(TaskFault::CrashBefore);
            }
            _ => {}
        }
        fault
    }

    /// Does a task unless it is refused.
    fn perform<T>(
        &mut self,
        task: Task,
        action: impl FnOnce(&mut Self) -> Result<T, WorkError>,
    ) -> Result<T, WorkError> {
        let fault = self.begin(task);
        if matches!(fault, Some(TaskFault::Refuse | TaskFault::CrashBefore)) {
            return Err(refused(task));
        }
        let done = action(self);
        if fault == Some(TaskFault::CrashAfter) {
            self.process.0.borrow_mut().is_dead = true;
        }
        done
    }

    fn prepare(&mut self, role: Role, workload: &Workload, token: Token) -> Result<(), WorkError> {
        let (id, host, serial) = (self.id(), self.host(), serial_of(token));
        let mut truth = self.truth.borrow_mut();
        if let Some(left) = truth.left_over(&host, id) {
            truth.broken(format!("a trial is prepared although {left}"));
        }
        if truth.open_ports.contains_key(&id) {
            truth.broken(format!("a trial is prepared on {host} while the ports of a probe are open"));
        }
        truth.current.insert(id, serial);
        let Some(traffic) = truth.traffic.get_mut(&serial) else {
            truth.broken(format!("a trial is prepared on {host} with a token that was never drawn"));
            return Err(traffic_error("no such token"));
        };
        if role == Role::Client {
            let listens = traffic.ends[Role::Server as usize].as_ref().map(|server| server.agent);
            let listens = listens.is_some_and(|server| truth.current.get(&server) == Some(&serial));
            if !listens {
                return Err(traffic_error("connection refused"));
            }
        }
        let end = EndTruth { agent: id, host, is_running: false, is_done: false, flaw: None };
        if let Some(traffic) = truth.traffic.get_mut(&serial) {
            traffic.ends[role as usize] = Some(end);
        }
        drop(truth);
        self.process.0.borrow_mut().is_reset = false;
        self.job = Some(Job { serial, role, workload: workload.clone() });
        Ok(())
    }

    fn begin_traffic(&mut self) -> Result<(), WorkError> {
        let Some(job) = &self.job else { return Err(traffic_error("nothing is prepared")) };
        let (id, host) = (self.id(), self.host());
        let mut truth = self.truth.borrow_mut();
        let Some(traffic) = truth.traffic.get(&job.serial) else { return Err(traffic_error("no token")) };
        let slot = traffic.slot.clone();
        let other = traffic.ends[1 - job.role as usize].as_ref().map(|end| (end.agent, end.is_done));
        if let Some((other, false)) = other
            && truth.current.get(&other).is_some_and(|serial| *serial != job.serial)
        {
            truth.broken(format!("both ends hold different trials: agents {id} and {other}"));
        }
        let strangers = truth.traffic.iter().rev().take(3).filter(|(serial, _)| **serial != job.serial);
        let running = strangers
            .flat_map(|(_, traffic)| traffic.ends.iter().flatten())
            .find(|end| end.is_running)
            .map(|end| (end.agent, end.host.clone()));
        if let Some((agent, where_)) = running {
            truth.broken(format!(
                "traffic begins while agent {agent} on {where_} still runs that of another trial"
            ));
        }
        let flaw = truth.flaw(&self.plan, &slot, job.role, &host);
        let end =
            truth.traffic.get_mut(&job.serial).and_then(|traffic| traffic.ends[job.role as usize].as_mut());
        if let Some(end) = end {
            (end.is_running, end.flaw) = (true, flaw);
        }
        let mut body = self.process.0.borrow_mut();
        body.done_ns = job
            .workload
            .traffic
            .facts()
            .deciders
            .contains(&job.role)
            .then(|| body.local_ns + job.workload.timing.duration.0 + DRAIN_NS);
        Ok(())
    }

    fn stop(&mut self) {
        let id = self.id();
        let mut truth = self.truth.borrow_mut();
        truth.current.remove(&id);
        if let Some(job) = self.job.take()
            && let Some(traffic) = truth.traffic.get_mut(&job.serial)
            && let Some(end) = &mut traffic.ends[job.role as usize]
        {
            end.is_running = false;
        }
        self.process.0.borrow_mut().done_ns = None;
    }

    fn result(&mut self, interface: &str) -> Result<TrialEnd, WorkError> {
        if self.process.0.borrow().is_reset {
            self.stop();
            return Err(traffic_error("connection reset by peer"));
        }
        let Some(job) = self.job.take() else { return Err(traffic_error("no traffic ran")) };
        let mut truth = self.truth.borrow_mut();
        truth.current.remove(&self.id());
        if let Some(traffic) = truth.traffic.get_mut(&job.serial)
            && let Some(end) = &mut traffic.ends[job.role as usize]
        {
            (end.is_running, end.is_done) = (false, true);
        }
        self.process.0.borrow_mut().done_ns = None;
        Ok(trial_end(&job, interface))
    }
}

/// A result that carries the number of its trial in the CPU time, which the coordinator does not read.
fn trial_end(job: &Job, interface: &str) -> TrialEnd {
    let carried = InterfaceDelta { name: interface.into(), tx_bytes: 1_000_000, ..InterfaceDelta::default() };
    let observation = Observation { interfaces: vec![carried], ..Observation::default() };
    let mut report = EndReport { process_cpu_ns: (job.serial, job.role as u64), ..EndReport::new(job.role) };
    if job.workload.traffic.facts().packets.is_some() {
        let last_ns = Some(job.workload.timing.duration.0);
        let flow = Flow { messages: 100, first_ns: Some(0), last_ns, ..Flow::default() };
        match job.role {
            Role::Client => report.sent = Some(flow),
            Role::Server => {
                report.received = Some(flow);
                report.datagrams = Some(DatagramReport { unique: 100, ..DatagramReport::default() });
            }
        }
    }
    TrialEnd { report, observation }
}

impl Work for SimulatedWork {
    fn recover(&mut self) -> Recovery {
        let (id, host) = (self.id(), self.host());
        let truth = self.truth.borrow();
        let of_host = truth.hosts.get(&host).into_iter().flat_map(|host| &host.applied);
        // The journal with a command went with the boot in which it was written.
        let left = of_host.filter(|applied| applied.agent != id && applied.is_stuck && !applied.is_orphan);
        let problems = left.map(|applied| format!("{:?} is left", applied.action)).collect();
        Recovery { restored: Vec::new(), problems }
    }

    fn snapshot(&mut self, _metadata: bool) -> Result<HostSnapshot, WorkError> {
        self.perform(Task::Describe, |work| {
            let now_ns = work.process.now_ns();
            let mut truth = work.truth.borrow_mut();
            let is_once = truth.has(Sabotage::DescribesOnce);
            let host = truth.host(&work.host());
            if !is_once || host.described_ns == 0 {
                host.described_ns = now_ns;
            }
            let (network, boots) = (host.network, host.boots);
            let boot_id = Some(format!("machine {network}, reboot {boots}"));
            Ok(HostSnapshot { boot_id, netns: Some(network), cores: 1, ..HostSnapshot::default() })
        })
    }

    fn lock(&mut self, _run: &RunId) -> Result<(), WorkError> {
        self.perform(Task::Lock, |work| {
            let (id, name) = (work.id(), work.host());
            let mut truth = work.truth.borrow_mut();
            if truth.has(Sabotage::TakesNoLock) {
                return Ok(());
            }
            let host = truth.host(&name);
            let (network, is_busy) = (host.network, host.is_busy);
            let holder = truth.locks.get(&network).copied().filter(|holder| *holder != id);
            if is_busy || holder.is_some() {
                let message = format!("in use by {holder:?}");
                return Err(WorkError { kind: FailureKind::Busy, message });
            }
            truth.locks.insert(network, id);
            Ok(())
        })
    }

    fn apply(&mut self, treatments: &[TreatmentAction]) -> Result<(), WorkError> {
        self.perform(Task::Apply, |work| {
            let (agent, host) = (work.id(), work.host());
            let mut truth = work.truth.borrow_mut();
            if let Some(left) = truth.left_over(&host, agent) {
                truth.broken(format!("treatments are applied although {left}"));
            }
            let own = |applied: &Applied| applied.agent == agent;
            if truth.host(&host).applied.iter().any(own) {
                truth.broken(format!("treatments are applied twice on {host}"));
            }
            let applied = |action: &TreatmentAction| Applied {
                agent,
                action: action.clone(),
                is_stuck: false,
                is_orphan: false,
            };
            truth.host(&host).applied.extend(treatments.iter().map(applied));
            truth.look_at_traffic(&work.plan);
            Ok(())
        })
    }

    fn undo(&mut self) -> Vec<String> {
        let (agent, host) = (self.id(), self.host());
        let fault = self.begin(Task::Undo);
        let mut truth = self.truth.borrow_mut();
        let mut problems = Vec::new();
        match fault {
            Some(TaskFault::CrashBefore) => return Vec::new(),
            Some(TaskFault::Refuse) => {
                for applied in truth.host(&host).applied.iter_mut().filter(|applied| applied.agent == agent) {
                    applied.is_stuck = true;
                    problems.push(format!("{:?} is left", applied.action));
                }
            }
            _ if truth.has(Sabotage::KeepsTreatments) => {}
            _ => {
                truth.host(&host).applied.retain(|applied| applied.agent != agent || applied.is_stuck);
            }
        }
        truth.look_at_traffic(&self.plan);
        if fault == Some(TaskFault::CrashAfter) {
            self.process.0.borrow_mut().is_dead = true;
        }
        problems
    }

    fn open_ports(&mut self, _: ListenAt, _: PortNeeds, token: Token) -> Result<[Vec<u16>; 2], WorkError> {
        self.perform(Task::Probe, |work| {
            work.truth.borrow_mut().open_ports.insert(work.id(), token);
            Ok([vec![PORT], vec![PORT]])
        })
    }

    fn probe_ports(
        &mut self,
        peer: IpAddr,
        [tcp, udp]: [&[u16]; 2],
        token: Token,
        _: Duration,
    ) -> Result<Vec<ProbedPort>, WorkError> {
        let protocols = [PortProtocol::Tcp, PortProtocol::Udp].into_iter().zip([tcp, udp]);
        let each = protocols.flat_map(|(protocol, ports)| ports.iter().map(move |port| (protocol, *port)));
        self.perform(Task::Probe, |work| {
            let is_open = work.truth.borrow().open_ports.values().any(|open| *open == token);
            let answer = if is_open {
                PortAnswer::Open { local: peer }
            } else {
                // The agent of the server has ended.
                PortAnswer::Refused { error: "connection refused".to_owned() }
            };
            Ok(each.map(|(protocol, port)| ProbedPort { protocol, port, answer: answer.clone() }).collect())
        })
    }

    fn close_ports(&mut self) -> Vec<ProbeSource> {
        if !self.is_dead() {
            self.truth.borrow_mut().open_ports.remove(&self.id());
        }
        Vec::new()
    }

    fn prepare_server(
        &mut self,
        workload: &Workload,
        _: ListenAt,
        token: Token,
    ) -> Result<Vec<u16>, WorkError> {
        self.perform(Task::Prepare, |work| work.prepare(Role::Server, workload, token).map(|()| vec![PORT]))
    }

    fn prepare_client(
        &mut self,
        workload: &Workload,
        _: IpAddr,
        _: &[u16],
        token: Token,
        _: Duration,
    ) -> Result<(), WorkError> {
        self.perform(Task::Prepare, |work| work.prepare(Role::Client, workload, token))
    }

    fn start(&mut self, _: Waker) -> Result<(), WorkError> {
        self.perform(Task::Start, Self::begin_traffic)
    }

    fn live(&self) -> LiveFigures {
        if self.begin(Task::Live) == Some(TaskFault::CrashAfter) {
            self.process.0.borrow_mut().is_dead = true;
        }
        LiveFigures::default()
    }

    fn finish(&mut self) {
        let mut body = self.process.0.borrow_mut();
        if body.done_ns.is_none() {
            body.done_ns = Some(body.local_ns + DRAIN_NS);
        }
    }

    fn is_done(&self) -> bool {
        let body = self.process.0.borrow();
        body.done_ns.is_some_and(|done_ns| body.local_ns >= done_ns)
    }

    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        let fault = self.begin(Task::Result);
        if matches!(fault, Some(TaskFault::Refuse | TaskFault::CrashBefore)) {
            self.stop();
            return Err(refused(Task::Result));
        }
        let interface = if fault == Some(TaskFault::WrongPath) { "eth9" } else { "eth0" };
        let result = self.result(interface);
        if fault == Some(TaskFault::CrashAfter) {
            self.process.0.borrow_mut().is_dead = true;
        }
        result
    }

    fn abort(&mut self) {
        let fault = self.begin(Task::Abort);
        if !self.is_dead() {
            self.stop();
        }
        if fault == Some(TaskFault::CrashAfter) {
            self.process.0.borrow_mut().is_dead = true;
        }
    }
}
