//! One client of a standing server: the agent's protocol with less power. Nothing of this host is changed, the data goes
//! through the server's one port, and what exceeds the server's rules is refused before a byte is sent.
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use netduel_control::agent::{FailureKind, Waker, Work, WorkError};
use netduel_load::Port;
use netduel_model::ids::{RunId, Token};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::units::{BitRate, Nanos};
use netduel_model::workload::{Traffic, Workload};

use super::log::Log;
use crate::agent::{AgentWork, Monotonic, traffic_error};
use crate::exit::chain;
use crate::program;

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Longest test.
    pub longest: Nanos,
    /// Highest payload rate of a test of bulk traffic.
    pub fastest: Option<BitRate>,
    /// Connections or flows of a test.
    pub streams: u32,
}

impl Rules {
    /// Why a workload is not allowed.
    fn refusal(&self, workload: &Workload) -> Option<String> {
        let (streams, rate) = match &workload.traffic {
            Traffic::TcpStream { streams, .. } => (*streams, Some(rate_of(&workload.traffic))),
            Traffic::UdpStream { flows, .. } => (*flows, Some(rate_of(&workload.traffic))),
            Traffic::LoadedLatency(settings) => (settings.streams, Some(None)),
            Traffic::TcpRr(settings) | Traffic::UdpRr(settings) => (settings.outstanding, None),
            Traffic::TcpCrr(settings) => (settings.outstanding, None),
        };
        if workload.timing.duration > self.longest {
            let (asked, most) = (workload.timing.duration, self.longest);
            return Some(format!(
                "a test of {asked} was asked for, and this server allows {most} (--max-duration)"
            ));
        }
        if streams > self.streams {
            let most = self.streams;
            return Some(format!(
                "{streams} connections were asked for, and this server allows {most} (--max-streams)"
            ));
        }
        match (self.fastest, rate) {
            (Some(most), Some(None)) => Some(format!(
                "a test without a rate was asked for, and this server allows {most} (--max-rate): ask for a rate with -b"
            )),
            (Some(most), Some(Some(asked))) if asked > most => {
                Some(format!("{asked} was asked for, and this server allows {most} (--max-rate)"))
            }
            _ => None,
        }
    }
}

/// The payload rate that bulk traffic asks for.
fn rate_of(traffic: &Traffic) -> Option<BitRate> {
    match traffic {
        Traffic::TcpStream { rate, .. } | Traffic::UdpStream { rate, .. } => *rate,
        _ => None,
    }
}

/// A client's session.
pub struct Session {
    work: AgentWork,
    port: Arc<Port>,
    rules: Rules,
    peer: SocketAddr,
    log: Arc<Log>,
    /// Tests under way on this server, of all sessions.
    tests: Arc<AtomicUsize>,
    /// The test of this session, and the most of others that ran beside it.
    current: Option<(Workload, usize)>,
    had_test: bool,
}

impl Session {
    /// For a paired client.
    pub fn new(
        port: Arc<Port>,
        rules: Rules,
        peer: SocketAddr,
        log: Arc<Log>,
        tests: Arc<AtomicUsize>,
    ) -> Self {
        Self { work: AgentWork::new(), port, rules, peer, log, tests, current: None, had_test: false }
    }

    /// Serves until the client or the server ends it.
    pub fn serve(&mut self, stream: UnixStream) -> Result<(), String> {
        let input = stream.try_clone().map_err(|error| error.to_string())?;
        netduel_control::agent::serve(input, stream, self, &program::name_and_version(), &Monotonic)
            .map_err(|error| chain(&error))
    }

    /// Whether a test was run in it.
    pub fn had_test(&self) -> bool {
        self.had_test
    }

    fn begin(&mut self) {
        let others = self.tests.fetch_add(1, Ordering::SeqCst);
        if let Some((_, seen)) = &mut self.current {
            *seen = others;
        }
        self.had_test = true;
    }

    /// Tests of others that are under way now, kept when they are more than before.
    fn look_around(&mut self) {
        let others = self.tests.load(Ordering::SeqCst).saturating_sub(1);
        if let Some((_, seen)) = &mut self.current {
            *seen = (*seen).max(others);
        }
    }

    fn end(&mut self) -> Option<(Workload, usize)> {
        self.look_around();
        let ended = self.current.take()?;
        self.tests.fetch_sub(1, Ordering::SeqCst);
        Some(ended)
    }
}

fn refused(message: String) -> WorkError {
    WorkError { kind: FailureKind::Usage, message }
}

impl Work for Session {
    fn snapshot(&mut self) -> Result<HostSnapshot, WorkError> {
        self.work.snapshot()
    }

    /// Several clients are served at a time, so a run does not get this host for itself; the result says who else was there.
    fn lock(&mut self, _run: &RunId) -> Result<(), WorkError> {
        Ok(())
    }

    fn apply(&mut self, _treatments: &[TreatmentAction]) -> Result<(), WorkError> {
        let what = "a standing server changes nothing of its host: start an agent there with launch = \"command\", or make the change there by hand";
        Err(refused(what.to_owned()))
    }

    fn undo(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn prepare_server(
        &mut self,
        workload: &Workload,
        _bind: IpAddr,
        token: Token,
    ) -> Result<Vec<u16>, WorkError> {
        if let Some(why) = self.rules.refusal(workload) {
            self.log.refused(self.peer, &why);
            return Err(refused(why));
        }
        let end = self.port.prepare_server(workload, token).map_err(traffic_error)?;
        let ports = end.ports().to_vec();
        self.work.hold_server(end);
        self.current = None;
        self.current = Some((workload.clone(), 0));
        Ok(ports)
    }

    fn prepare_client(
        &mut self,
        _workload: &Workload,
        _peer: IpAddr,
        _ports: &[u16],
        _token: Token,
        _deadline: Duration,
    ) -> Result<(), WorkError> {
        // Else whoever is paired could have this host connect to any other.
        Err(refused("a standing server connects to nobody: make it the server of the pair".to_owned()))
    }

    fn start(&mut self, waker: Waker) -> Result<(), WorkError> {
        self.work.start(waker)?;
        self.begin();
        Ok(())
    }

    fn live(&self) -> LiveFigures {
        self.work.live()
    }

    fn finish(&mut self) {
        self.look_around();
        self.work.finish();
    }

    fn is_done(&self) -> bool {
        self.work.is_done()
    }

    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        let ended = self.end();
        let mut result = self.work.take_result()?;
        if let Some((workload, others)) = ended {
            result.observation.concurrent_tests = others as u32;
            self.log.tested(self.peer, &workload, &result.report);
        }
        Ok(result)
    }

    fn abort(&mut self) {
        if self.work.is_running() && self.end().is_some() {
            self.log.refused(self.peer, "a result: the client went away, or stopped its test");
        }
        self.current = None;
        self.work.abort();
    }
}
