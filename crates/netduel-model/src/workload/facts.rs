//! What the rest of the program needs to know of a workload: the coordinator, the store, servers, placement, the load engines and the
//! analysis read these facts. They must not match on the type of a workload where a fact says the same.
use std::ops::Range;

use super::terms::{Direction, Role, TcpEngine, UdpOffload, Wait};
use super::timing::Timing;
use super::udp_stream::UdpStream;
use super::work_unit::WorkUnit;
use crate::data_ports::PortNeeds;
use crate::failover::PathEvent;
use crate::metric::Metric;
use crate::packet_path::PacketPath;
use crate::search::Search;
use crate::units::{BitRate, Bytes, Nanos, PerSecond};

/// The facts of a workload with given settings. Defaults are those of a workload that needs nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts<'a> {
    /// Sockets and counters of each end.
    pub sockets: Sockets,
    /// Descriptors that its threads open besides the sockets.
    pub descriptors: Descriptors,
    /// Threads of each end.
    pub threads: Threads,
    /// Streams, flows or requests in flight: what the limit of a server counts.
    pub concurrency: u32,
    /// Direction of the payload that the ends count; absent when an end counts none.
    pub payload: Option<Direction>,
    /// Direction of bulk data; absent when it moves none.
    pub bulk: Option<Direction>,
    /// Whether it yields round trips, beside bulk data or alone.
    pub has_round_trips: bool,
    /// The end that starts first.
    pub starts_first: Role,
    /// The ends that end by themselves. When they have ended, the coordinator ends the other.
    pub deciders: &'static [Role],
    /// Whether the end of a trial shuts down the sockets of the server, which may be waiting for a message that never comes.
    pub finish_shuts_down: bool,
    /// What ends it.
    pub end: End<'a>,
    /// What its costs and counters are divided by.
    pub unit: WorkUnit,
    /// How its payload becomes packets.
    pub wire: Wire,
    /// The payload rate that it may reach, in each direction.
    pub demand: Demand,
    /// The payload rate of bulk data, when the plan sets one.
    pub paced: Option<PacedRate>,
    /// Its requests, when they are what it sends, or a part of it.
    pub requests: Option<Requests>,
    /// Whether some of its round trips are time-stamped by the kernels.
    pub is_stamped: bool,
    /// Events on the path while traffic runs.
    pub events: &'a [PathEvent],
    /// Probes a second of each direction, sent by the clock of each end, that show the effect of the events; absent without events.
    pub probes: Option<PerSecond>,
    /// Arrivals a second, both directions together, that are stored one by one.
    pub arrivals_stored: u64,
    /// When the load begins on a path that was idle until then, after the start.
    pub load_begins: Option<Nanos>,
    /// Settings of its TCP sockets.
    pub tcp: TcpFacts<'a>,
    /// How both ends wait for messages.
    pub wait: Wait,
    /// How its packets are made and received, when it is about packets: sockets or kernel bypass.
    pub packets: Option<&'a PacketPath>,
    /// Its flows, when it is a stream of datagrams or of packets.
    pub flows: Option<&'a UdpStream>,
    /// The metrics of its verdicts when the plan names none.
    pub default_metrics: Vec<Metric>,
    /// The metrics that it can yield.
    pub possible_metrics: &'static [Metric],
}

impl Default for Facts<'_> {
    fn default() -> Self {
        Self {
            sockets: Sockets::default(),
            descriptors: Descriptors::default(),
            threads: Threads::RoundTrips(1),
            concurrency: 1,
            payload: None,
            bulk: None,
            has_round_trips: false,
            starts_first: Role::Server,
            deciders: &[Role::Client],
            finish_shuts_down: false,
            end: End::Duration,
            unit: WorkUnit::Byte,
            wire: Wire::Mixed,
            demand: Demand::Unlimited,
            paced: None,
            requests: None,
            is_stamped: false,
            events: &[],
            probes: None,
            arrivals_stored: 0,
            load_begins: None,
            tcp: TcpFacts::default(),
            wait: Wait::Block,
            packets: None,
            flows: None,
            default_metrics: Vec::new(),
            possible_metrics: &[],
        }
    }
}

/// Sockets and counters of each end of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sockets {
    /// TCP connections that are made and authenticated before the start, all to one port.
    pub tcp: u32,
    /// UDP flows that are authenticated before the start, each to a port of its own.
    pub udp: u32,
    /// ICMP sockets of the client. The kernel of the server's host answers them, without a port.
    pub echo: u32,
    /// TCP connections that may be open at a time beside these, made to the same port while traffic runs.
    pub runtime_tcp: u32,
    /// Counters of each direction, one for each thread that adds to it.
    pub counters: u32,
    /// Of these, the first count payload; the others count probes.
    pub bulk: u32,
    /// Of the connections before the start, the first of this number have the counter of the same index, and their `TCP_INFO` is reported.
    pub accounted: u32,
}

impl Sockets {
    /// Counters of a direction: all, and those of payload.
    pub fn counters(self) -> (usize, usize) {
        (self.counters as usize, self.bulk as usize)
    }

    /// Ports that the server reports to the client: that of TCP comes first, then those of the flows.
    pub fn ports(self) -> usize {
        usize::from(self.tcp > 0) + self.udp as usize
    }

    /// The ports that the server needs.
    pub fn port_needs(self) -> PortNeeds {
        PortNeeds { tcp: self.tcp > 0, udp: self.udp }
    }

    /// Total number of sockets.
    pub fn count(self) -> u64 {
        [self.tcp, self.udp, self.echo, self.runtime_tcp].map(u64::from).iter().sum()
    }
}

/// Descriptors that threads open besides the workload's sockets: pipes, rings, sets of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Descriptors {
    /// Those of threads of their own.
    pub fixed: u64,
    /// Streams or flows that share a thread for each core, and the descriptors of such a thread.
    pub shared: (u32, u32),
}

impl Descriptors {
    /// How many, on so many cores.
    pub fn count(self, cores: u64) -> u64 {
        let (streams, each) = self.shared;
        self.fixed + u64::from(streams).min(cores) * u64::from(each)
    }
}

/// The threads of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// So many move data as fast as they can.
    Bulk(u32),
    /// So many wait for one message after the other.
    RoundTrips(u32),
}

/// What ends a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End<'a> {
    /// Its duration.
    Duration,
    /// This payload of each direction, or the duration.
    Volume(Bytes),
    /// The result of a search for a rate, or the duration.
    Search(&'a Search),
}

/// How payload becomes packets, as far as the analysis can predict the bytes of an interface from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Segments of TCP connections that last for the trial.
    Segments,
    /// Datagrams of one size, behind a header of 8 bytes (UDP, ICMP).
    Datagrams {
        /// Payload of each.
        size: Bytes,
        /// Who segments and joins them.
        offload: UdpOffload,
    },
    /// Not predicted: connections are made and closed, or traffic of several kinds shares the path.
    Mixed,
}

/// The payload rate that a workload may reach, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// What hosts and path carry.
    Unlimited,
    /// This.
    Rate(BitRate),
    /// What follows from the requests in flight and the round trip.
    ClosedLoop {
        /// Requests in flight.
        outstanding: u32,
        /// The larger of request and response.
        size: Bytes,
    },
}

impl Demand {
    /// That of these requests.
    pub(super) fn of_requests(requests: Requests) -> Self {
        match requests.rate {
            Some(rate) => Self::of_messages(rate, requests.size),
            None => Self::ClosedLoop { outstanding: requests.outstanding, size: requests.size },
        }
    }

    /// That of messages of this size at a rate.
    pub(super) fn of_messages(rate: PerSecond, size: Bytes) -> Self {
        Self::Rate(BitRate(rate.0.saturating_mul(size.0).saturating_mul(8)))
    }
}

/// A payload rate that a plan sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacedRate {
    /// Of all streams or flows, in each direction.
    pub rate: BitRate,
    /// Bytes that a direction may lack at its end because streams send whole bytes, and flows whole datagrams.
    pub grain: u64,
    /// Bytes that leave at a time at most.
    pub burst: u64,
}

/// Requests of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// Their schedule in an open loop; absent in a closed loop.
    pub rate: Option<PerSecond>,
    /// Requests in flight: of a closed loop all the time, of an open loop at most.
    pub outstanding: u32,
    /// The larger of request and response.
    pub size: Bytes,
    /// Whether they only measure: the load is other traffic.
    pub are_probes: bool,
}

/// Settings of TCP sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFacts<'a> {
    /// Congestion control, as the kernel names it.
    pub congestion: Option<&'a str>,
    /// Largest segment, bytes.
    pub mss: Option<u32>,
    /// How streams move bytes; absent without streams.
    pub engine: Option<TcpEngine>,
}

impl Facts<'_> {
    /// Whether an end sends payload, and whether it receives payload.
    pub fn directions(&self, role: Role) -> (bool, bool) {
        let Some(direction) = self.payload else { return (false, false) };
        match role {
            Role::Client => (direction.client_sends(), direction.server_sends()),
            Role::Server => (direction.server_sends(), direction.client_sends()),
        }
    }

    /// Whether it is bulk data alone, from the start to the end.
    pub fn is_stream(&self) -> bool {
        self.bulk.is_some() && !self.has_round_trips && self.events.is_empty()
    }

    /// Whether it is a stream of datagrams, or of packets.
    pub fn is_datagram_stream(&self) -> bool {
        matches!(self.unit, WorkUnit::Datagram | WorkUnit::Packet)
    }

    /// Whether packets are what it is about, so that rates are shown as packets a second.
    pub fn is_of_packets(&self) -> bool {
        self.unit == WorkUnit::Packet
    }

    /// Whether a send call makes several datagrams, which then have one send time.
    pub fn has_shared_send_times(&self) -> bool {
        matches!(self.wire, Wire::Datagrams { offload, .. } if offload != UdpOffload::None)
    }

    /// Whether bulk data takes what the path gives, in the whole steady window.
    pub fn is_unpaced(&self) -> bool {
        self.bulk.is_some() && self.paced.is_none() && self.events.is_empty()
    }

    /// Payload of a packet, bytes, at least 1, where packets are what it is about.
    pub fn packet_bytes(&self) -> Option<u64> {
        match self.wire {
            Wire::Datagrams { size, .. } if self.is_of_packets() => Some(size.0.max(1)),
            _ => None,
        }
    }

    /// The search for a rate, when it is one.
    pub fn search(&self) -> Option<&Search> {
        match self.end {
            End::Search(search) => Some(search),
            End::Duration | End::Volume(_) => None,
        }
    }

    /// The payload after which each direction ends, when the plan sets one.
    pub fn volume(&self) -> Option<Bytes> {
        match self.end {
            End::Volume(bytes) => Some(bytes),
            End::Duration | End::Search(_) => None,
        }
    }

    /// The schedule of its requests in an open loop.
    pub fn request_rate(&self) -> Option<PerSecond> {
        self.requests?.rate
    }

    /// Number of requests that the schedule of an open loop makes due within a window, nanoseconds after the start; absent in a closed
    /// loop. Request i is due i intervals after the start.
    pub fn requests_due(&self, window: &Range<u64>) -> Option<u64> {
        let rate = u128::from(self.request_rate()?.0);
        let before = |ns: u64| (u128::from(ns) * rate).div_ceil(1_000_000_000);
        Some(u64::try_from(before(window.end).saturating_sub(before(window.start))).unwrap_or(u64::MAX))
    }

    /// The steady window of the idle part, nanoseconds after the start; absent without one.
    pub fn idle_window(&self, timing: &Timing) -> Option<Range<u64>> {
        Some(timing.warmup.0..self.load_begins?.0.saturating_sub(timing.cooldown.0))
    }

    /// The steady window, nanoseconds after the start: of the loaded part where the path is idle before it.
    pub fn steady_window(&self, timing: &Timing) -> Range<u64> {
        let from = self.load_begins.unwrap_or_default().0.saturating_add(timing.warmup.0);
        from..timing.duration.0.saturating_sub(timing.cooldown.0)
    }
}

/// The end that starts first, of streams in a direction: one that only receives, so that its counters are read before the first byte
/// arrives.
pub(super) fn starts_first(direction: Direction) -> Role {
    if direction == Direction::Down { Role::Client } else { Role::Server }
}

/// The ends that decide when streams in a direction are over: the senders.
pub(super) fn senders(direction: Direction) -> &'static [Role] {
    match direction {
        Direction::Up => &[Role::Client],
        Direction::Down => &[Role::Server],
        Direction::Both => &Role::ALL,
    }
}

/// Both ends.
pub(super) fn both() -> &'static [Role] {
    &Role::ALL
}
