//! One client of a standing server: the agent's protocol with fewer rights. Nothing on this host is changed, data goes through
//! the server's only port, and a test that violates the server's rules is rejected before any byte is sent.
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use netduel_agent::{AgentWork, DataAddress, HostChanges, Monotonic, foreign_program, server_by};
use netduel_control::agent::{Bounds, FailureKind, Waker, Work, WorkError};
use netduel_load::Port;
use netduel_model::PROGRAM;
use netduel_model::data_ports::{ListenAt, PortNeeds, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::workload::{Role, Workload};
use netduel_sys::clock;
use netduel_sys::local_bind::LocalBind;

use super::concurrency::{Test, Tests};
use super::log::Log;
use super::rules::Rules;
use crate::exit::chain;

/// State shared by all sessions of a server.
#[derive(Clone)]
pub struct ServerContext {
    /// The limits of tests.
    pub rules: Rules,
    /// The limits of time and line length.
    pub bounds: Bounds,
    /// The log.
    pub log: Arc<Log>,
    /// Running tests.
    pub tests: Arc<Tests>,
}

/// Ends a session from another thread, with a message to its client.
#[derive(Clone, Default)]
pub struct Stop {
    is_asked: Arc<AtomicBool>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Stop {
    /// Fails the running test with the reason, and prevents further ones.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::SeqCst);
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake();
        }
    }

    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }
}

/// A client's session.
pub struct Session {
    work: AgentWork,
    port: Arc<Port>,
    context: ServerContext,
    peer: SocketAddr,
    stop: Stop,
    /// The reason for rejecting this client.
    rejected: Option<String>,
    /// The prepared or running end.
    workload: Option<Workload>,
    /// Present while traffic runs.
    test: Option<Test>,
    /// Start of the traffic.
    begun_ns: u64,
    had_test: bool,
}

impl Session {
    /// A session for a paired client.
    pub fn new(port: Arc<Port>, context: ServerContext, peer: SocketAddr, stop: Stop) -> Self {
        Self {
            work: AgentWork::new(),
            port,
            context,
            peer,
            stop,
            rejected: None,
            workload: None,
            test: None,
            begun_ns: 0,
            had_test: false,
        }
    }

    /// A session that rejects a paired client with a reason.
    pub fn rejecting(mut self, why: String) -> Self {
        self.rejected = Some(why);
        self
    }

    /// Serves until the client or the server ends the session, then closes the stream in both directions.
    pub fn serve(&mut self, stream: &UnixStream) -> Result<(), String> {
        let input = stream.try_clone().map_err(|error| error.to_string())?;
        let bounds = self.context.bounds;
        let result = netduel_control::agent::serve_within(bounds, input, stream, self, PROGRAM, &Monotonic);
        // The reading thread holds a copy and sleeps until it ends. The stream may already be closed.
        let _ = stream.shutdown(Shutdown::Both);
        result.map_err(|error| chain(&error))
    }

    /// Whether the session had a test.
    pub fn had_test(&self) -> bool {
        self.had_test
    }

    /// Ends the test: it is no longer counted as running, and printed if it has no result.
    fn end_without_result(&mut self, why: &str) {
        if self.test.take().is_some()
            && let Some(workload) = &self.workload
        {
            self.context.log.failed(self.peer, workload, why);
        }
    }

    fn check_served(&self) -> Result<(), WorkError> {
        if self.stop.is_asked() {
            return Err(not_served(STOPPED.to_owned()));
        }
        self.rejected.clone().map_or(Ok(()), |why| Err(not_served(why)))
    }
}

/// The reason sent to clients when the server ends.
const STOPPED: &str =
    "the server was stopped on its host; start `netduel serve` there again, and repeat the test";

/// The reason for an early end of traffic: a killed client closes its connections like one that has finished.
fn ended_early(workload: &Workload, elapsed_ns: u64) -> Option<String> {
    let planned_ns = workload.timing.duration.0;
    (workload.traffic.facts().volume().is_none() && elapsed_ns < planned_ns).then(|| {
        let (elapsed, planned) = (elapsed_ns as f64 / 1e9, planned_ns as f64 / 1e9);
        format!("the client's traffic ended after {elapsed:.1} s of {planned:.1} s: it was stopped, or its connections broke")
    })
}

/// A valid test that this server does not serve, now or by its rules. [`FailureKind::Usage`] is that of what no rule of a server
/// allows, as a treatment, and of settings that do not fit this host, as a core that it lacks.
fn not_served(message: String) -> WorkError {
    WorkError { kind: FailureKind::Busy, message }
}

fn refused(message: String) -> WorkError {
    WorkError { kind: FailureKind::Usage, message }
}

impl Work for Session {
    fn snapshot(&mut self, metadata: bool) -> Result<HostSnapshot, WorkError> {
        self.check_served()?;
        self.work.snapshot(metadata)
    }

    /// Several clients are served concurrently, so a run has no exclusive use of this host; the result contains the number of
    /// other tests.
    fn lock(&mut self, _run: &RunId) -> Result<(), WorkError> {
        self.check_served()
    }

    fn apply(&mut self, _treatments: &[TreatmentAction]) -> Result<(), WorkError> {
        let what = "netduel serve applies no treatments to its host; start an agent there with launch = \"command\", or make the change there by hand";
        Err(refused(what.to_owned()))
    }

    fn undo(&mut self) -> Vec<String> {
        self.work.undo()
    }

    fn open_ports(
        &mut self,
        _listen: ListenAt,
        _needs: PortNeeds,
        _token: Token,
    ) -> Result<[Vec<u16>; 2], WorkError> {
        Err(refused("netduel serve opens no other port than its own".to_owned()))
    }

    fn probe_ports(
        &mut self,
        _peer: IpAddr,
        _ports: [&[u16]; 2],
        _token: Token,
        _timeout: Duration,
    ) -> Result<Vec<ProbedPort>, WorkError> {
        Err(refused("netduel serve makes no connections to other hosts".to_owned()))
    }

    fn close_ports(&mut self) -> Vec<ProbeSource> {
        Vec::new()
    }

    fn prepare_server(
        &mut self,
        workload: &Workload,
        _listen: ListenAt,
        token: Token,
    ) -> Result<Vec<u16>, WorkError> {
        self.check_served()?;
        if let Some(why) = self.context.rules.refusal(workload) {
            self.context.log.refused(self.peer, &why);
            return Err(not_served(why));
        }
        if let Some(program) = foreign_program(workload, Role::Server) {
            // The client's program and arguments.
            return Err(not_served(format!(
                "netduel serve starts no {program} for its clients; use a plan, whose agents start it"
            )));
        }
        let towards = DataAddress::Towards(self.peer.ip().to_canonical(), &LocalBind::ANY);
        let prepare = |workload: &Workload| self.port.prepare_server(workload, token);
        let prepared = server_by(workload, towards, HostChanges::None, prepare)?;
        self.workload = Some(workload.clone());
        Ok(self.work.hold(prepared))
    }

    fn prepare_client(
        &mut self,
        _workload: &Workload,
        _peer: IpAddr,
        _ports: &[u16],
        _token: Token,
        _deadline: Duration,
    ) -> Result<(), WorkError> {
        // Otherwise a paired client could make this host connect to any other host.
        Err(refused(
            "netduel serve makes no connections to other hosts; make it the server of the pair".to_owned(),
        ))
    }

    fn start(&mut self, waker: Waker) -> Result<(), WorkError> {
        self.check_served()?;
        *self.stop.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.work.start(waker)?;
        self.test = Some(self.context.tests.begin());
        self.begun_ns = clock::monotonic_ns();
        self.had_test = true;
        Ok(())
    }

    fn live(&self) -> LiveFigures {
        self.work.live()
    }

    fn finish(&mut self) {
        self.work.finish();
    }

    fn is_done(&self) -> bool {
        self.work.is_done() || self.stop.is_asked()
    }

    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        if !self.work.is_done() {
            self.work.abort();
            self.end_without_result("this server was stopped");
            return Err(WorkError { kind: FailureKind::Traffic, message: STOPPED.to_owned() });
        }
        match self.work.take_result() {
            Ok(mut result) => {
                let others = self.test.take().map_or(0, |test| test.others());
                result.observation.concurrent_tests = others;
                let elapsed_ns = clock::monotonic_ns() - self.begun_ns;
                if let Some(workload) = self.workload.take() {
                    match ended_early(&workload, elapsed_ns) {
                        Some(why) => self.context.log.failed(self.peer, &workload, &why),
                        None => self.context.log.tested(self.peer, &workload, &result.report, others),
                    }
                }
                Ok(result)
            }
            Err(error) => {
                self.end_without_result(&error.message);
                Err(error)
            }
        }
    }

    fn abort(&mut self) {
        self.end_without_result("the client disconnected, or stopped the test");
        self.workload = None;
        self.work.abort();
    }
}
