//! Which threads an end needs for a workload, and what each of them takes along and brings back.
use std::net::TcpStream;
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_model::sample::{RoundTripReport, UnderLoad};
use netduel_model::workload::{Direction, Role, Traffic, Workload};
use netduel_sys::clock;

use crate::control::{Control, Sockets};
use crate::datagram::Kind;
use crate::error::LoadError;
use crate::lane::Lane;
use crate::supervisor::directions;
use crate::tally::Tally;
use crate::tcp_stream::TcpSettings;
use crate::udp_receive::FlowCount;
use crate::udp_send::{SendCount, UdpSettings};
use crate::{loaded, peer, round_trip, tcp_stream, transaction, udp_jobs};

/// What one thread does.
pub(crate) struct Job {
    /// The stream or flow that it works on, the first when there are several.
    pub stream: usize,
    /// Its number, by which it is pinned. Both threads of a stream that sends and receives have the stream's.
    pub thread: usize,
    pub work: Box<dyn FnOnce(&mut Worker) + Send>,
}

/// A thread's view of its end, and what it counted.
pub(crate) struct Worker {
    pub control: Arc<Control>,
    /// The stream that it works on, the first when there are several.
    pub stream: usize,
    /// The others, when there are several.
    pub others: Vec<usize>,
    /// Where it is to be pinned.
    pub core: Option<u16>,
    /// Where it was pinned.
    pub pinned: Option<u16>,
    pub tally: Tally,
    /// What its flows received.
    pub datagrams: Vec<FlowCount>,
    /// What its flows sent.
    pub datagrams_sent: Option<SendCount>,
    /// Why there is no traffic that could be counted.
    pub failure: Option<LoadError>,
    pub round_trips: Option<RoundTripReport>,
    /// What this thread measured under load beside them.
    pub under_load: Option<UnderLoad>,
    /// Fruitless asks since the last message, when spinning.
    fruitless: u32,
}

/// Fruitless asks after which a spinning thread lets others of its core run: some 20 us, more than a round trip between
/// two cores takes. Where both ends were put on one core, each would otherwise spin for the whole of its time slice while the
/// other has the message: 8 ms instead of 10 us for a round trip were seen.
const FRUITLESS_MOST: u32 = 64;

/// Longest sleep before something is due, so that an end can be cut.
const STEP_NS: u64 = 20_000_000;

impl Worker {
    pub(crate) fn new(control: Arc<Control>, stream: usize, core: Option<u16>) -> Self {
        Self {
            control,
            stream,
            others: Vec::new(),
            core,
            pinned: None,
            tally: Tally::new(),
            datagrams: Vec::new(),
            datagrams_sent: None,
            failure: None,
            round_trips: None,
            under_load: None,
            fruitless: 0,
        }
    }

    /// Nothing was there: spins, and now and then lets another thread run.
    #[inline]
    pub(crate) fn spin(&mut self) {
        self.fruitless += 1;
        if self.fruitless >= FRUITLESS_MOST {
            self.fruitless = 0;
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    /// A message was there.
    #[inline]
    pub(crate) fn was_served(&mut self) {
        self.fruitless = 0;
    }

    /// Waits until `due_ns`, asleep for most of it; false when the end is not running any more.
    pub(crate) fn wait_until(&self, due_ns: u64) -> bool {
        let is_running = self.sleep_until(due_ns.saturating_sub(STEP_NS));
        if is_running {
            clock::sleep_then_spin_until(due_ns);
        }
        is_running
    }

    /// Sleeps until `time_ns`, if that is not past; false when the end is not running any more.
    pub(crate) fn sleep_until(&self, time_ns: u64) -> bool {
        while self.control.is_running() {
            let now = clock::monotonic_ns();
            if now >= time_ns {
                return true;
            }
            clock::sleep_until(time_ns.min(now + STEP_NS / 2));
        }
        false
    }

    /// The counter of what this thread sends.
    #[inline]
    pub(crate) fn sent(&self) -> &Lane {
        &self.control.sent[self.stream]
    }

    /// The counter of what this thread receives.
    #[inline]
    pub(crate) fn received(&self) -> &Lane {
        &self.control.received[self.stream]
    }
}

/// The jobs of an end.
pub(crate) fn of(
    workload: &Workload,
    role: Role,
    token: Token,
    sockets: &Sockets,
) -> Result<Vec<Job>, LoadError> {
    Ok(match &workload.traffic {
        Traffic::TcpStream { streams, direction, block, engine, rate, tuning, .. } => {
            let settings = TcpSettings {
                engine: *engine,
                block: block.0 as usize,
                rate_bps: rate.map(|rate| rate.0),
                streams: *streams,
                volume: tuning.volume.map(|volume| volume.0),
                window: tuning.window.map(|window| window.0 as usize),
                duration_ns: workload.timing.duration.0,
                both: *direction == Direction::Both,
            };
            tcp_jobs(directions(&workload.traffic, role), settings, &sockets.tcp)
        }
        Traffic::UdpStream { flows, size, rate, offload, .. } => {
            let (size, rate_bps) = (size.0 as usize, rate.map(|rate| rate.0));
            let settings =
                UdpSettings { size, rate_bps, flows: *flows, offload: *offload, timing: workload.timing };
            let directions = directions(&workload.traffic, role);
            if directions.0 {
                udp_jobs::check_mtu(settings, &sockets.udp)?;
            }
            udp_jobs::jobs(directions, settings, role, token, peer::pins(workload, role), &sockets.udp)
        }
        Traffic::TcpRr(settings) => {
            let settings = round_trip::Settings::new(settings, workload.timing);
            round_trip::tcp_jobs(settings, role, &sockets.tcp[0])
        }
        Traffic::UdpRr(settings) => {
            let settings = round_trip::Settings::new(settings, workload.timing);
            round_trip::udp_jobs(settings, role, token, &sockets.udp[0])
        }
        Traffic::LoadedLatency(settings) => loaded::jobs(settings, workload.timing, role, token, sockets),
        Traffic::TcpCrr(settings) => transaction::jobs(settings, workload.timing, role, token, sockets),
    })
}

fn tcp_jobs(
    (sends, receives): (bool, bool),
    settings: TcpSettings,
    connections: &[Arc<TcpStream>],
) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (stream, connection) in connections.iter().enumerate() {
        if receives {
            let connection = Arc::clone(connection);
            let work =
                Box::new(move |worker: &mut Worker| tcp_stream::receive(worker, &connection, settings));
            jobs.push(Job { stream, thread: stream, work });
        }
        if sends {
            let connection = Arc::clone(connection);
            let work = Box::new(move |worker: &mut Worker| tcp_stream::send(worker, &connection, settings));
            jobs.push(Job { stream, thread: stream, work });
        }
    }
    jobs
}

/// What an end sends and what it expects: payload and end marker each.
pub(crate) fn kinds(role: Role) -> ((Kind, Kind), (Kind, Kind)) {
    let client = (Kind::FromClient, Kind::ClientEnds);
    let server = (Kind::FromServer, Kind::ServerEnds);
    match role {
        Role::Client => (client, server),
        Role::Server => (server, client),
    }
}
