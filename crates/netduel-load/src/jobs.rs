//! Which threads an end needs for a workload, and what each of them takes along and brings back.
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_model::packet_path::PacketReport;
use netduel_model::sample::{IntervalSample, RoundTripReport, UnderLoad, ZeroCopyReport};
use netduel_model::stamps::StampReport;
use netduel_model::workload::{Direction, Role, Traffic, Workload};
use netduel_sys::{clock, socket};

use crate::control::{Control, Sockets};
use crate::datagram::Kind;
use crate::error::LoadError;
use crate::lane::Lane;
use crate::packets::Raw;
use crate::supervisor::directions;
use crate::tally::Tally;
use crate::tcp_stream::TcpSettings;
use crate::udp_receive::FlowCount;
use crate::udp_send::{SendCount, UdpSettings};
use crate::{failover, loaded, peer, round_trip, tcp_crowd, tcp_stream, transaction, udp_jobs};

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
    /// What it sent or took past the network stack.
    pub packets: Option<PacketReport>,
    /// Why there is no traffic that could be counted.
    pub failure: Option<LoadError>,
    pub round_trips: Option<RoundTripReport>,
    /// What this thread measured under load beside them.
    pub under_load: Option<UnderLoad>,
    /// What the streams received, at short intervals, by the thread that looks at them.
    pub fine_series: Vec<IntervalSample>,
    /// Its stamped round trips.
    pub stamps: Option<StampReport>,
    /// What became of its sends that were to copy nothing.
    pub zero_copy: Option<ZeroCopyReport>,
    /// Where its packets came from, when it was to busy-poll.
    pub napi_id: Option<u32>,
    /// How long its thread ran and waited for a core, nanoseconds.
    pub run_and_wait: Option<(u64, u64)>,
    sharing: Sharing,
}

/// Fruitless asks after which a spinning thread lets others of its core run, at most: some 20 us, more than a round trip
/// between two cores takes. Where both ends were put on one core, each would otherwise spin for the whole of its time slice while
/// the other has the message: 8 ms instead of 10 us for a round trip were seen.
const FRUITLESS_MOST: u32 = 64;
/// Letting others run and coming back takes this long when it was the peer that ran, nanoseconds: less is a system call alone,
/// more is another program that used its time slice.
const PEER_RAN_NS: std::ops::Range<u64> = 1_000..100_000;

/// How a spinning thread shares its core. Each end learns whether the other is on the same core: then the message is there
/// after the others ran, and they took no longer than a peer does.
#[derive(Debug)]
struct Sharing {
    /// Fruitless asks since the last message, or since others ran.
    fruitless: u32,
    /// Fruitless asks after which others may run.
    patience: u32,
    /// How long they ran, when nothing was asked since; 0 otherwise.
    ran_ns: u64,
}

impl Sharing {
    const fn new() -> Self {
        Self { fruitless: 0, patience: FRUITLESS_MOST, ran_ns: 0 }
    }

    /// Nothing was there; true when it is time to let others run.
    #[inline]
    fn is_time(&mut self) -> bool {
        if self.ran_ns > 0 {
            // The others had nothing for us: it was no peer that ran.
            self.ran_ns = 0;
            self.wait_longer();
        }
        self.fruitless += 1;
        self.fruitless >= self.patience
    }

    /// The others ran for this long.
    fn ran(&mut self, ns: u64) {
        self.fruitless = 0;
        self.ran_ns = ns.max(1);
    }

    /// A message was there.
    #[inline]
    fn was_served(&mut self) {
        self.fruitless = 0;
        if self.ran_ns > 0 {
            if PEER_RAN_NS.contains(&self.ran_ns) {
                self.patience = (self.patience / 2).max(1);
            } else {
                self.wait_longer();
            }
            self.ran_ns = 0;
        }
    }

    fn wait_longer(&mut self) {
        self.patience = (self.patience * 2).min(FRUITLESS_MOST);
    }
}

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
            packets: None,
            failure: None,
            round_trips: None,
            under_load: None,
            fine_series: Vec::new(),
            stamps: None,
            zero_copy: None,
            napi_id: None,
            run_and_wait: None,
            sharing: Sharing::new(),
        }
    }

    /// Gives sockets the buffers that were asked for, bytes. What the host does not grant is said once, among the errors.
    pub(crate) fn set_buffers<S: AsFd>(
        &mut self,
        sockets: impl IntoIterator<Item = S>,
        asked: Option<usize>,
    ) {
        let Some(asked) = asked else { return };
        let mut least: Option<(usize, usize)> = None;
        for socket in sockets {
            match socket::set_buffers(socket, asked) {
                Ok((sending, receiving)) => {
                    let (s, r) = least.unwrap_or((sending, receiving));
                    least = Some((s.min(sending), r.min(receiving)));
                }
                Err(error) => self.tally.count("setsockopt SO_RCVBUF", &error),
            }
        }
        let Some((sending, receiving)) = least else { return };
        for (name, got) in [("SO_SNDBUF", sending), ("SO_RCVBUF", receiving)] {
            if got < asked {
                let text =
                    format!("got {got} of {asked} bytes: raise net.core.rmem_max and net.core.wmem_max");
                self.tally.remark(&format!("setsockopt {name}"), text);
            }
        }
    }

    /// Nothing was there: spins, and now and then lets another thread run.
    #[inline]
    pub(crate) fn spin(&mut self) {
        if self.sharing.is_time() {
            let before = clock::monotonic_ns();
            std::thread::yield_now();
            self.sharing.ran(clock::monotonic_ns() - before);
        } else {
            std::hint::spin_loop();
        }
    }

    /// A message was there.
    #[inline]
    pub(crate) fn was_served(&mut self) {
        self.sharing.was_served();
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
    (raw, sends_apart): (Option<Raw>, bool),
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
            let directions = directions(&workload.traffic, role);
            if tcp_crowd::serves(settings) {
                let threads = udp_jobs::threads(sockets.tcp.len(), peer::pins(workload, role));
                return tcp_crowd::jobs(directions, settings, &sockets.tcp, threads)
                    .map_err(|error| LoadError::system("make the connections non-blocking", error));
            }
            tcp_jobs(directions, settings, &sockets.tcp)
        }
        Traffic::UdpStream { flows, size, rate, offload, tuning, .. } => {
            let settings = UdpSettings {
                size: size.0 as usize,
                rate_bps: rate.map(|rate| rate.0),
                flows: *flows,
                offload: *offload,
                sends_apart,
                datagrams: tuning.volume.map(|volume| volume.0.div_ceil(size.0)),
                window: tuning.window.map(|window| window.0 as usize),
                timing: workload.timing,
                trace: 0,
            };
            if let Some(raw) = raw {
                return Ok(raw.jobs(settings, token, &sockets.udp));
            }
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
        Traffic::Failover(settings) => {
            failover::jobs(settings, workload.timing, role, token, peer::pins(workload, role), sockets)
        }
        Traffic::LoadedLatency(settings) => loaded::jobs(settings, workload.timing, role, token, sockets),
        Traffic::TcpCrr(settings) => transaction::jobs(settings, workload.timing, role, token, sockets),
    })
}

/// A thread for each direction of each connection.
pub(crate) fn tcp_jobs(
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks without fruit until others may run; how many it took.
    fn asks(sharing: &mut Sharing) -> u32 {
        let mut count = 1;
        while !sharing.is_time() {
            count += 1;
        }
        count
    }

    #[test]
    fn a_peer_on_the_same_core_is_let_run_at_once_after_a_few_round_trips() {
        let mut sharing = Sharing::new();
        let patience: Vec<u32> = (0..8)
            .map(|_| {
                let count = asks(&mut sharing);
                sharing.ran(8_000);
                sharing.was_served();
                count
            })
            .collect();
        assert_eq!(patience, [64, 32, 16, 8, 4, 2, 1, 1]);
        // Another program on the core takes its whole time slice: rather spin.
        sharing.ran(3_000_000);
        sharing.was_served();
        assert_eq!(asks(&mut sharing), 2);
    }

    #[test]
    fn a_core_with_nobody_else_is_kept() {
        let mut sharing = Sharing::new();
        for _ in 0..20 {
            // Nobody ran, and the message came by itself; or it did not come.
            assert_eq!(asks(&mut sharing), FRUITLESS_MOST);
            sharing.ran(300);
            sharing.was_served();
            assert_eq!(asks(&mut sharing), FRUITLESS_MOST);
            sharing.ran(20_000);
            assert!(!sharing.is_time());
            sharing.was_served();
        }
    }
}
