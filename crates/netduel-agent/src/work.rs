//! The agent's work as the protocol requests it: one trial after the other, treatments around it, readings of the host. It knows ends of
//! trials by their traits alone.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use netduel_control::agent::{Clock, FailureKind, Waker, Work, WorkError};
use netduel_control::protocol::{LOCK_TIMEOUT_NS, Recovery, STEP_TIMEOUT_NS};
use netduel_host::{
    Before, DRAIN_PATIENCE, HostError, IrqbalanceSearch, Observer, Sources, wait_for_drained_queues,
};
use netduel_load::OpenPorts;
use netduel_model::data_ports::{ListenAt, PortNeeds, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::observation::{Observation, Placement};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::workload::{Role, Workload};
use netduel_sys::local_bind::LocalBind;

use crate::error_chain::chain;
use crate::failure::{environment, misplaced, traffic};
use crate::installed::{Installed, foreign_program};
use crate::lock::{HostLock, await_guards};
use crate::treatment::{GuardCommand, Recovered, TreatmentError, Treatments, left_behind, recover_others};
use crate::trial_end::{Ends, Lingering, Prepared, PreparedEnd, RunningEnd, ServerAddress};

/// The clock of the agent's limits.
pub struct Monotonic;

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        netduel_sys::clock::monotonic_ns()
    }
}

/// How long a former agent of the same run, whose connection was lost, may take to undo its changes before the run is refused: it runs, and an
/// interface may take 20 s to return.
const FORMER_PATIENCE: Duration = Duration::from_secs(85);
/// How long the guard of a killed run may take for it.
const RESTORE_PATIENCE: Duration = Duration::from_secs(25);
// The agent waits while the coordinator waits for the lock of the host.
const _: () = assert!(FORMER_PATIENCE.as_nanos() + RESTORE_PATIENCE.as_nanos() < LOCK_TIMEOUT_NS as u128);

// The agent waits while the coordinator waits for the end to be prepared, and for its result.
const _: () = assert!(DRAIN_PATIENCE.as_nanos() < STEP_TIMEOUT_NS as u128);

/// How far a trial has come on this host.
#[derive(Default)]
enum Stage {
    /// Nothing is prepared.
    #[default]
    Idle,
    /// Ready to start.
    Prepared(Box<dyn PreparedEnd>),
    /// Traffic runs.
    Running(Box<dyn RunningEnd>),
}

/// The readings of the host around a trial.
#[derive(Default)]
struct Readings {
    observer: Option<Observer>,
    before: Option<Before>,
    observation: Option<Observation>,
}

impl Readings {
    fn observer(observer: &mut Option<Observer>) -> Result<&mut Observer, WorkError> {
        if observer.is_none() {
            *observer = Some(Observer::new().map_err(environment)?);
        }
        observer.as_mut().ok_or_else(|| misplaced("an observer", "one was made"))
    }

    fn before(&mut self) -> Result<(), WorkError> {
        self.before = Some(Self::observer(&mut self.observer)?.before().map_err(environment)?);
        Ok(())
    }

    fn after(&mut self) -> Result<(), WorkError> {
        let before = self.before.take().ok_or_else(|| misplaced("the reading after", "the one before"))?;
        let observer = Self::observer(&mut self.observer)?;
        self.observation = Some(before.after(observer).map_err(environment)?);
        Ok(())
    }
}

/// This host's part in a run.
pub struct AgentWork {
    ends: Box<dyn Ends>,
    /// What the sockets of client ends are bound to.
    bind: LocalBind,
    stage: Stage,
    readings: Readings,
    treatments: Treatments,
    /// Whether its interfaces must still have their treatments after the traffic of what is prepared.
    keeps_interfaces: bool,
    /// What a trial could not restore, until an undo reports it.
    not_restored: Vec<String>,
    lock: Option<HostLock>,
    /// Journals of earlier runs whose problems are reported.
    left_journals: BTreeSet<PathBuf>,
    /// Settings of earlier runs that were restored when this host was locked, until they are reported.
    restored: Vec<String>,
    /// The cores that were chosen for what is prepared.
    placement: Option<Placement>,
    /// What is left of the last trial, which ends before the next one.
    lingering: Option<Box<dyn Lingering>>,
    /// Ports that a probe may find.
    open_ports: Option<OpenPorts>,
    /// What earlier descriptions of this host found.
    irqbalance: IrqbalanceSearch,
}

impl Default for AgentWork {
    fn default() -> Self {
        Self::new()
    }
}

impl AgentWork {
    /// With nothing prepared, and the ends that this program has.
    pub fn new() -> Self {
        Self::with_ends(Box::new(Installed))
    }

    /// With nothing prepared, and other ends.
    pub fn with_ends(ends: Box<dyn Ends>) -> Self {
        Self {
            ends,
            bind: LocalBind::ANY,
            stage: Stage::Idle,
            readings: Readings::default(),
            treatments: Treatments::new(GuardCommand::of_this_program()),
            keeps_interfaces: true,
            not_restored: Vec::new(),
            lock: None,
            left_journals: BTreeSet::new(),
            restored: Vec::new(),
            placement: None,
            lingering: None,
            open_ports: None,
            irqbalance: IrqbalanceSearch::default(),
        }
    }

    /// With every socket of client ends bound to this address or interface.
    #[must_use]
    pub fn bound_to(mut self, bind: LocalBind) -> Self {
        self.bind = bind;
        self
    }

    /// Takes an end that was prepared, here or elsewhere, and gives its ports.
    pub fn hold(&mut self, prepared: Prepared) -> Vec<u16> {
        let Prepared { end, ports, placement } = prepared;
        self.stage = Stage::Prepared(end);
        self.placement = placement;
        ports
    }

    /// Ends what is left of the last trial: its end, and then the packets that its sockets left in the queues of this host.
    fn end_last_trial(&mut self) -> Result<(), WorkError> {
        self.open_ports = None;
        let ended = self.end_lingering();
        self.kept(ended)?;
        let left = wait_for_drained_queues(DRAIN_PATIENCE).map_err(environment)?;
        if left.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = left.iter().map(|(name, packets)| format!("{name} {packets}")).collect();
        let message = format!(
            "failed to begin the trial: packets of earlier traffic still wait to be sent after {} s ({}); end other programs that send, or \
             lower the rate or the window of the workload before this one",
            DRAIN_PATIENCE.as_secs(),
            words.join(", ")
        );
        Err(WorkError { kind: FailureKind::Environment, message })
    }

    /// Ends what is left of the end of the last trial.
    fn end_lingering(&mut self) -> Result<(), WorkError> {
        self.lingering.take().map_or(Ok(()), Lingering::end)
    }

    /// Keeps a failure to restore for the next undo: an abort that the coordinator has sent meanwhile makes it pass over the answer with it.
    fn kept<T>(&mut self, result: Result<T, WorkError>) -> Result<T, WorkError> {
        result.inspect_err(|failed| {
            if failed.kind == FailureKind::NotRestored {
                self.not_restored.push(failed.message.clone());
            }
        })
    }
}

/// Whether a workload leaves the interfaces of this end as the treatments set them: its events and another program's driver do not.
fn keeps_interfaces(workload: &Workload, role: Role) -> bool {
    workload.traffic.facts().events.is_empty() && foreign_program(workload, role).is_none()
}

/// The trial does not count: its treatments were not in force until its end.
fn not_kept(lost: &[TreatmentError]) -> WorkError {
    let texts: Vec<String> = lost.iter().map(|error| format!("failed to {}", chain(error))).collect();
    WorkError { kind: FailureKind::Environment, message: texts.join("; ") }
}

/// The facts of this host; `metadata`: also those that only the metadata service of a cloud has.
///
/// # Errors
/// When links or addresses cannot be listed.
pub fn snapshot(metadata: bool) -> Result<HostSnapshot, HostError> {
    snapshot_again(metadata, &mut IrqbalanceSearch::default())
}

/// As [`snapshot`], after other descriptions by this process.
fn snapshot_again(metadata: bool, search: &mut IrqbalanceSearch) -> Result<HostSnapshot, HostError> {
    let mut sources = Sources::live()?;
    if !metadata {
        sources.metadata = None;
    }
    let seen = netduel_host::snapshot_again(&mut sources, search)?;
    Ok(HostSnapshot { build: crate::program::build(), ..seen })
}

impl Work for AgentWork {
    fn recover(&mut self) -> Recovery {
        let Recovered { recovery: Recovery { restored, problems }, left } = recover_others(&BTreeSet::new());
        self.left_journals = left;
        let mut all_restored = std::mem::take(&mut self.restored);
        all_restored.extend(restored);
        Recovery { restored: all_restored, problems }
    }

    fn snapshot(&mut self, metadata: bool) -> Result<HostSnapshot, WorkError> {
        snapshot_again(metadata, &mut self.irqbalance).map_err(environment)
    }

    fn lock(&mut self, run: &RunId) -> Result<(), WorkError> {
        let within = |patience: Duration| Monotonic.now_ns().saturating_add(patience.as_nanos() as u64);
        self.lock = Some(HostLock::take(run, within(FORMER_PATIENCE))?);
        await_guards(within(RESTORE_PATIENCE))?;
        // A guard that restored settings while this host was described may have failed since. What it could not restore is tried once more,
        // and is not measured with.
        let Recovered { recovery: Recovery { restored, problems }, left } =
            recover_others(&self.left_journals);
        self.restored.extend(restored);
        self.left_journals.extend(left);
        if problems.is_empty() {
            return Ok(());
        }
        let message = format!("failed to restore the settings of an earlier run: {}", problems.join("; "));
        Err(WorkError { kind: FailureKind::NotRestored, message })
    }

    fn apply(&mut self, treatments: &[TreatmentAction]) -> Result<(), WorkError> {
        // What the last trial has on an interface can be in the way of a change of it.
        let ended = self.end_lingering();
        self.kept(ended)?;
        self.treatments.apply(treatments).map_err(environment)
    }

    fn undo(&mut self) -> Vec<String> {
        let lingered = self.end_lingering().err().map(|problem| problem.message);
        let journal = self.treatments.journal();
        let problems = self.treatments.undo_all().err().unwrap_or_default();
        // When everything was undone, the loss of the guard needs no action of the user.
        let left = problems.iter().filter(|problem| problem.is_left_behind());
        let aborted = std::mem::take(&mut self.not_restored);
        aborted
            .into_iter()
            .chain(lingered)
            .chain(left.map(|problem| left_behind(problem, journal.as_deref())))
            .collect()
    }

    fn open_ports(
        &mut self,
        listen: ListenAt,
        needs: PortNeeds,
        token: Token,
    ) -> Result<[Vec<u16>; 2], WorkError> {
        // Those of a probe whose client was lost have the same numbers.
        self.open_ports = None;
        let open = OpenPorts::open(listen, needs, token).map_err(traffic)?;
        let ports = open.ports().map(<[u16]>::to_vec);
        self.open_ports = Some(open);
        Ok(ports)
    }

    fn probe_ports(
        &mut self,
        peer: IpAddr,
        ports: [&[u16]; 2],
        token: Token,
        timeout: Duration,
    ) -> Result<Vec<ProbedPort>, WorkError> {
        netduel_load::probe_ports(peer, ports, token, timeout, &self.bind).map_err(traffic)
    }

    fn close_ports(&mut self) -> Vec<ProbeSource> {
        self.open_ports.take().map(OpenPorts::close).unwrap_or_default()
    }

    fn prepare_server(
        &mut self,
        workload: &Workload,
        listen: ListenAt,
        token: Token,
    ) -> Result<Vec<u16>, WorkError> {
        self.end_last_trial()?;
        let prepared = self.ends.server(workload, listen, token);
        let prepared = self.kept(prepared)?;
        self.keeps_interfaces = keeps_interfaces(workload, Role::Server);
        Ok(self.hold(prepared))
    }

    fn prepare_client(
        &mut self,
        workload: &Workload,
        peer: IpAddr,
        ports: &[u16],
        token: Token,
        deadline: Duration,
    ) -> Result<(), WorkError> {
        self.end_last_trial()?;
        let server = ServerAddress { peer, ports, token, deadline, bind: &self.bind };
        let prepared = self.ends.client(workload, &server);
        let prepared = self.kept(prepared)?;
        self.hold(prepared);
        self.keeps_interfaces = keeps_interfaces(workload, Role::Client);
        Ok(())
    }

    fn start(&mut self, waker: Waker) -> Result<(), WorkError> {
        let prepared = match std::mem::take(&mut self.stage) {
            Stage::Prepared(prepared) => prepared,
            other => {
                self.stage = other;
                return Err(misplaced("start", "a trial was prepared"));
            }
        };
        let running = prepared.start(&mut || self.readings.before(), Box::new(move || waker.wake()));
        let running = self.kept(running)?;
        self.stage = Stage::Running(running);
        Ok(())
    }

    fn live(&self) -> LiveFigures {
        match &self.stage {
            Stage::Running(running) => running.live(),
            _ => LiveFigures::default(),
        }
    }

    fn finish(&mut self) {
        if let Stage::Running(running) = &self.stage {
            running.finish();
        }
    }

    fn is_done(&self) -> bool {
        matches!(&self.stage, Stage::Running(running) if running.is_done())
    }

    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        let Stage::Running(running) = std::mem::take(&mut self.stage) else {
            return Err(misplaced("a result", "traffic was started"));
        };
        let result = running.result(&mut || self.readings.after());
        let result = self.kept(result)?;
        self.lingering = result.lingering;
        self.treatments.read_back(self.keeps_interfaces).map_err(|lost| not_kept(&lost))?;
        let missing = || misplaced("a result", "the host was read after the traffic");
        let mut observation = self.readings.observation.take().ok_or_else(missing)?;
        observation.placement = self.placement.take();
        Ok(TrialEnd { report: result.report, observation })
    }

    fn abort(&mut self) {
        let stage = std::mem::take(&mut self.stage);
        let aborted = match stage {
            Stage::Running(running) => running.abort(),
            Stage::Prepared(_) | Stage::Idle => Ok(()),
        };
        // The answer to an abort has no place for it; the answer to the next undo has.
        let problems = [self.end_lingering(), aborted].into_iter().filter_map(Result::err);
        self.not_restored.extend(problems.map(|problem| problem.message));
    }
}
