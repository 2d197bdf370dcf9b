//! Which threads an end needs for a workload, and what each of them takes along and brings back.
use std::net::TcpStream;
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_model::sample::RoundTripReport;
use netduel_model::workload::{Direction, Role, Traffic, Workload};

use crate::control::{Control, Sockets};
use crate::datagram::Kind;
use crate::error::LoadError;
use crate::lane::Lane;
use crate::supervisor::directions;
use crate::tally::Tally;
use crate::tcp_stream::TcpSettings;
use crate::udp_receive::FlowCount;
use crate::udp_send::{SendCount, UdpSettings};
use crate::{peer, round_trip, tcp_stream, udp_jobs};

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
    /// Fruitless asks since the last message, when spinning.
    fruitless: u32,
}

/// Fruitless asks after which a spinning thread lets others of its core run: some 20 us, more than a round trip between
/// two cores takes. Where both ends were put on one core, each would otherwise spin for the whole of its time slice while the
/// other has the message: 8 ms instead of 10 us for a round trip were seen.
const FRUITLESS_MOST: u32 = 64;

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
    Ok(match (&workload.traffic, sockets) {
        (Traffic::TcpStream { direction, block, engine, .. }, Sockets::Tcp(connections)) => {
            let settings = TcpSettings {
                engine: *engine,
                block: block.0 as usize,
                duration_ns: workload.timing.duration.0,
                both: *direction == Direction::Both,
            };
            tcp_jobs(directions(&workload.traffic, role), settings, connections)
        }
        (Traffic::UdpStream { flows, size, rate, offload, .. }, Sockets::Udp(connections)) => {
            let (size, rate_bps) = (size.0 as usize, rate.map(|rate| rate.0));
            let settings =
                UdpSettings { size, rate_bps, flows: *flows, offload: *offload, timing: workload.timing };
            let directions = directions(&workload.traffic, role);
            if directions.0 {
                udp_jobs::check_mtu(settings, connections)?;
            }
            udp_jobs::jobs(directions, settings, role, token, peer::pins(workload, role), connections)
        }
        (Traffic::TcpRr(settings), Sockets::Tcp(connections)) => {
            round_trip::tcp_jobs(settings, workload.timing, role, &connections[0])
        }
        (Traffic::UdpRr(settings), Sockets::Udp(connections)) => {
            round_trip::udp_jobs(settings, workload.timing, role, token, &connections[0])
        }
        // The same workload chose the sockets.
        _ => unreachable!("sockets are of the workload's protocol"),
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
