//! The agent's work: traffic from `load`, readings from `host`, treatments with their guard. `control` speaks the protocol.
#![forbid(unsafe_code)]

pub mod dpdk;
mod dpdk_host;
mod error_chain;
mod lock;
mod past_stack;
mod path_events;
mod placement;
pub mod treatment;
mod ways;

use std::net::IpAddr;
use std::time::Duration;

use netduel_control::agent::{Clock, FailureKind, Waker, Work, WorkError};
use netduel_host::{Before, HostError, Observer, Sources};
use netduel_load::{ClientEnd, LoadError, Running, ServerEnd};
use netduel_model::failover::PathEvent;
use netduel_model::ids::{RunId, Token};
use netduel_model::observation::Placement;
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::workload::{Role, Workload};

pub use error_chain::chain;
pub use past_stack::server_over;
use path_events::PathEvents;
pub use placement::{DataAddress, placed};

use crate::treatment::{GuardCommand, Treatments};

/// The clock of the agent's limits.
pub struct Monotonic;

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        netduel_sys::clock::monotonic_ns()
    }
}

/// What a trial has come to on this host.
#[derive(Default)]
enum Stage {
    /// Nothing is prepared.
    #[default]
    Idle,
    /// Sockets are bound; the client may come.
    Server(ServerEnd),
    /// Connected, and both ends have shown the token.
    Client(ClientEnd),
    /// Traffic runs.
    Running(Running, Before, Option<PathEvents>),
    /// The client may come, and testpmd is started when it has at the latest.
    DpdkServer(ServerEnd, Box<dpdk::Waiting>),
    /// The server has been greeted, and testpmd is at its prompt.
    DpdkClient(Box<dpdk::Launched>),
    /// Traffic of testpmd runs.
    DpdkRunning(Box<dpdk::Flowing>, Before),
}

/// This host's part in a run.
pub struct AgentWork {
    stage: Stage,
    observer: Option<Observer>,
    treatments: Treatments,
    lock: Option<lock::HostLock>,
    /// The cores that were chosen for what is prepared.
    placement: Option<Placement>,
    /// A testpmd of the last trial, which goes before the next one.
    lingering: Option<dpdk::Lingering>,
    /// What is done to this host's interfaces while the prepared traffic runs, by place in the plan.
    path_events: Vec<(u32, PathEvent)>,
}

impl Default for AgentWork {
    fn default() -> Self {
        Self::new()
    }
}

impl AgentWork {
    /// With nothing prepared.
    pub fn new() -> Self {
        Self {
            stage: Stage::Idle,
            observer: None,
            treatments: Treatments::new(guard()),
            lock: None,
            placement: None,
            path_events: Vec::new(),
            lingering: None,
        }
    }

    /// Takes a server's end that was prepared elsewhere, and the cores that were chosen for it.
    pub fn hold_server(&mut self, end: ServerEnd, placement: Option<Placement>) {
        self.stage = Stage::Server(end);
        self.placement = placement;
    }

    /// Ends what is left of the last trial.
    fn end_lingering(&mut self) -> Result<(), WorkError> {
        self.lingering.take().map_or(Ok(()), dpdk::Lingering::end)
    }

    fn start_dpdk(&mut self, waker: Waker) -> Result<(), WorkError> {
        let deadline_ns = dpdk::step_deadline_ns();
        let (launched, greeter) = match std::mem::take(&mut self.stage) {
            Stage::DpdkServer(end, waiting) => (waiting.launched(deadline_ns)?, Some(end)),
            Stage::DpdkClient(launched) => (*launched, None),
            _ => return Err(misplaced("start", "a trial was prepared")),
        };
        let before = self.observer()?.before().map_err(environment)?;
        let flowing = launched.begin(greeter, deadline_ns, Box::new(move || waker.wake()))?;
        self.stage = Stage::DpdkRunning(Box::new(flowing), before);
        Ok(())
    }

    fn dpdk_result(&mut self, flowing: dpdk::Flowing, before: Before) -> Result<TrialEnd, WorkError> {
        let observe = || before.after(self.observer()?).map_err(environment);
        let (report, mut observation, testpmd) = flowing.join(observe)?;
        self.lingering = testpmd;
        observation.placement = self.placement.take();
        Ok(TrialEnd { report, observation })
    }

    fn observer(&mut self) -> Result<&mut Observer, WorkError> {
        if self.observer.is_none() {
            self.observer = Some(Observer::new().map_err(environment)?);
        }
        self.observer.as_mut().ok_or_else(|| misplaced("an observer", "one was made"))
    }
}

/// How a guard is started.
fn guard() -> GuardCommand {
    GuardCommand { program: "/proc/self/exe".into(), words: vec!["undo-guard".to_owned()] }
}

/// The facts of this host; `metadata`: also those that only a cloud's metadata service tells.
///
/// # Errors
/// When links or addresses cannot be listed.
pub fn snapshot(metadata: bool) -> Result<HostSnapshot, HostError> {
    let mut sources = Sources::live()?;
    if !metadata {
        sources.metadata = None;
    }
    netduel_host::snapshot_of(&mut sources)
}

/// Errors of the rooms below complete "failed to ...".
fn environment(error: impl std::error::Error) -> WorkError {
    WorkError { kind: FailureKind::Environment, message: format!("failed to {}", chain(&error)) }
}

/// Why traffic did not come about.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub fn traffic_error(error: LoadError) -> WorkError {
    WorkError { kind: FailureKind::Traffic, message: format!("failed to {}", chain(&error)) }
}

/// The coordinator asked for something out of order: a bug in one of the two programs.
fn misplaced(what: &str, needs: &str) -> WorkError {
    WorkError { kind: FailureKind::Internal, message: format!("{what} was asked for before {needs}") }
}

impl Work for AgentWork {
    fn snapshot(&mut self, metadata: bool) -> Result<HostSnapshot, WorkError> {
        snapshot(metadata).map_err(environment)
    }

    fn lock(&mut self, run: &RunId) -> Result<(), WorkError> {
        self.lock = Some(lock::HostLock::take(run)?);
        Ok(())
    }

    fn apply(&mut self, treatments: &[TreatmentAction]) -> Result<(), WorkError> {
        self.treatments.apply(treatments).map_err(environment)
    }

    fn undo(&mut self) -> Vec<String> {
        let lingered = self.end_lingering().err().map(|problem| problem.message);
        let problems = self.treatments.undo_all().err().unwrap_or_default();
        // A guard that was lost while everything was undone is nothing that a user has to mend.
        let left = problems.iter().filter(|problem| problem.is_left_behind());
        lingered.into_iter().chain(left.map(|problem| format!("failed to {}", chain(problem)))).collect()
    }

    fn prepare_server(
        &mut self,
        workload: &Workload,
        bind: IpAddr,
        token: Token,
    ) -> Result<Vec<u16>, WorkError> {
        self.end_lingering()?;
        if dpdk::settings(workload, Role::Server).is_some() {
            let deadline_ns = dpdk::step_deadline_ns();
            let ready = dpdk::Ready::new(workload, Role::Server, DataAddress::Own(bind), token)?;
            let end = netduel_load::prepare_server(workload, bind, token).map_err(traffic_error)?;
            let ports = end.ports().to_vec();
            self.placement.clone_from(&ready.placement);
            self.stage = Stage::DpdkServer(end, Box::new(ready.early(deadline_ns)?));
            return Ok(ports);
        }
        let (workload, placement) = placed(workload, Role::Server, DataAddress::Own(bind))?;
        let end = netduel_load::prepare_server(&workload, bind, token).map_err(traffic_error)?;
        let end = server_over(end, &workload, DataAddress::Own(bind))?;
        let ports = end.ports().to_vec();
        self.path_events = path_events::of(&workload, Role::Server);
        self.hold_server(end, placement);
        Ok(ports)
    }

    fn prepare_client(
        &mut self,
        workload: &Workload,
        peer: IpAddr,
        ports: &[u16],
        token: Token,
        deadline: Duration,
    ) -> Result<(), WorkError> {
        self.end_lingering()?;
        if dpdk::settings(workload, Role::Client).is_some() {
            // Greets the server, which is all that its sockets are for.
            netduel_load::prepare_client(workload, peer, ports, token, deadline).map_err(traffic_error)?;
            // The coordinator gives connecting a time of its own.
            let deadline_ns = dpdk::step_deadline_ns();
            let ready = dpdk::Ready::new(workload, Role::Client, DataAddress::Towards(peer), token)?;
            self.placement.clone_from(&ready.placement);
            self.stage = Stage::DpdkClient(Box::new(ready.launch(deadline_ns)?));
            return Ok(());
        }
        let (workload, placement) = placed(workload, Role::Client, DataAddress::Towards(peer))?;
        let end =
            netduel_load::prepare_client(&workload, peer, ports, token, deadline).map_err(traffic_error)?;
        let end = past_stack::client_over(end, &workload, peer)?;
        self.path_events = path_events::of(&workload, Role::Client);
        self.stage = Stage::Client(end);
        self.placement = placement;
        Ok(())
    }

    fn start(&mut self, waker: Waker) -> Result<(), WorkError> {
        if matches!(self.stage, Stage::DpdkServer(..) | Stage::DpdkClient(_)) {
            return self.start_dpdk(waker);
        }
        let before = self.observer()?.before().map_err(environment)?;
        let notify = Box::new(move || waker.wake());
        let running = match std::mem::take(&mut self.stage) {
            Stage::Server(end) => end.start(notify),
            Stage::Client(end) => end.start(notify),
            other => {
                self.stage = other;
                return Err(misplaced("start", "a trial was prepared"));
            }
        };
        let events = std::mem::take(&mut self.path_events);
        let begun = if events.is_empty() {
            Ok(None)
        } else {
            PathEvents::begin(events, Treatments::new(guard())).map(Some)
        };
        let (events, result) = match begun {
            Ok(events) => (events, Ok(())),
            Err(error) => (None, Err(error)),
        };
        // Traffic that began without its events is stopped by the coordinator, who hears of them.
        self.stage = Stage::Running(running, before, events);
        result.map_err(|error| WorkError {
            kind: FailureKind::Environment,
            message: format!("failed to start a thread for the events of the path: {error}"),
        })
    }

    fn live(&self) -> LiveFigures {
        match &self.stage {
            Stage::Running(running, ..) => running.live(),
            Stage::DpdkRunning(flowing, _) => flowing.live(),
            _ => LiveFigures::default(),
        }
    }

    fn finish(&mut self) {
        match &self.stage {
            Stage::Running(running, ..) => running.finish(),
            Stage::DpdkRunning(flowing, _) => flowing.finish(),
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        match &self.stage {
            Stage::Running(running, ..) => running.is_done(),
            Stage::DpdkRunning(flowing, _) => flowing.is_done(),
            _ => false,
        }
    }

    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        let (running, before, events) = match std::mem::take(&mut self.stage) {
            Stage::Running(running, before, events) => (running, before, events),
            Stage::DpdkRunning(flowing, before) => return self.dpdk_result(*flowing, before),
            _ => return Err(misplaced("a result", "traffic was started")),
        };
        // Before the traffic's own result: whatever became of it, the interface is given back.
        let made = events.map(PathEvents::end);
        let mut report = running.join().map_err(traffic_error)?;
        if let Some((events, problems)) = made {
            if !problems.is_empty() {
                return Err(WorkError { kind: FailureKind::Environment, message: problems.join("; ") });
            }
            if let Some(failover) = &mut report.failover {
                failover.events = events;
            }
        }
        let mut observation = before.after(self.observer()?).map_err(environment)?;
        observation.placement = self.placement.take();
        Ok(TrialEnd { report, observation })
    }

    fn abort(&mut self) {
        let stage = std::mem::take(&mut self.stage);
        if let Err(problem) = self.end_lingering() {
            eprintln!("netduel: {}", problem.message);
        }
        if let Stage::DpdkRunning(flowing, _) = stage {
            if let Err(problem) = flowing.abort() {
                eprintln!("netduel: {}", problem.message);
            }
        } else if let Stage::Running(running, _, events) = stage {
            running.abort();
            for problem in events.map(PathEvents::end).into_iter().flat_map(|(_, problems)| problems) {
                eprintln!("netduel: {problem}");
            }
            // The report of an aborted trial is of no use, but its threads must be gone before the next trial.
            drop(running.join());
        }
    }
}
