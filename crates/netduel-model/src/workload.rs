//! Workloads as they are run: resolved, checked, with every default written out.
mod round_trip;

use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failover::Failover;
use crate::ids::WorkloadName;
use crate::metric::Metric;
use crate::packet_path::PacketPath;
use crate::units::{BitRate, Bytes, Nanos, PerSecond};

pub use round_trip::{LoadedLatency, ProbeProtocol, RoundTrip, Transaction};

/// Interval between two samples of a series, nanoseconds.
pub const SAMPLE_INTERVAL_NS: u64 = 100_000_000;

/// What traffic runs in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name in the plan.
    pub name: WorkloadName,
    /// What is sent, and how.
    pub traffic: Traffic,
    /// How long, and what is cut at both ends.
    pub timing: Timing,
    /// IPv4 or IPv6.
    pub family: Family,
    /// Cores for the client's threads; empty leaves placement to the kernel. Thread `i` gets core `i mod len`.
    pub pin_client: Vec<u16>,
    /// Cores for the server's threads; as `pin_client`.
    pub pin_server: Vec<u16>,
    /// Ends that choose cores themselves when they prepare; their lists are empty.
    #[serde(default, skip_serializing_if = "PinAuto::is_none")]
    pub pin_auto: PinAuto,
    /// The metrics that the verdict is about.
    pub metrics: Vec<Metric>,
}

/// Which ends choose the cores of their threads by what they know of the interface that carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PinAuto {
    /// The client.
    #[serde(default)]
    pub client: bool,
    /// The server.
    #[serde(default)]
    pub server: bool,
}

impl PinAuto {
    /// Whether neither does.
    pub fn is_none(&self) -> bool {
        !self.client && !self.server
    }
    /// Whether the end of the given role does.
    pub fn of(self, role: Role) -> bool {
        match role {
            Role::Client => self.client,
            Role::Server => self.server,
        }
    }
}

/// When traffic runs and which part counts. The steady window is `warmup..duration - cooldown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// From the first to the last send.
    pub duration: Nanos,
    /// Cut from the beginning.
    pub warmup: Nanos,
    /// Cut from the end.
    pub cooldown: Nanos,
}

/// The traffic of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Traffic {
    /// Bulk data over TCP.
    TcpStream {
        /// Connections, each with a thread of its own.
        streams: u32,
        /// Who sends.
        direction: Direction,
        /// Bytes handed to the kernel in one call.
        block: Bytes,
        /// How bytes are moved in and out of the kernel.
        engine: TcpEngine,
        /// Congestion control, as the kernel names it; `None` leaves the host's default (which is recorded).
        congestion: Option<String>,
        /// Payload rate of all streams together, in each direction that is used; `None` sends as fast as it can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<BitRate>,
        /// When it ends before its time, and what its sockets are given.
        #[serde(default, skip_serializing_if = "StreamTuning::is_default")]
        tuning: StreamTuning,
    },
    /// Datagrams, counted one by one at both ends.
    UdpStream {
        /// Source ports. They share as many threads as there are cores to run on.
        flows: u32,
        /// Who sends.
        direction: Direction,
        /// UDP payload of each datagram.
        size: Bytes,
        /// Payload rate of all flows together, in each direction that is used; `None` sends as fast as it can.
        rate: Option<BitRate>,
        /// Who cuts and joins datagrams.
        #[serde(default, skip_serializing_if = "UdpOffload::is_none")]
        offload: UdpOffload,
        /// What most flows leave to the clock and the program.
        #[serde(default, skip_serializing_if = "FlowTuning::is_default")]
        tuning: FlowTuning,
        /// How packets of a size are made and taken, when they are what it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packets: Option<PacketPath>,
    },
    /// Requests and responses over one TCP connection.
    TcpRr(RoundTrip),
    /// Requests and responses as UDP datagrams.
    UdpRr(RoundTrip),
    /// Transactions over TCP, each on a connection of its own: connect, request, response, close.
    TcpCrr(Transaction),
    /// Round trips of small probes, first on an idle path and then while TCP streams run.
    LoadedLatency(LoadedLatency),
    /// Probes each way and TCP streams while the path is taken away and given back.
    Failover(Failover),
}

/// What most UDP flows leave to the clock and the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowTuning {
    /// Each direction ends after this much payload of all flows together, rounded up to whole datagrams, at the end of the duration
    /// at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Bytes>,
    /// `SO_SNDBUF` and `SO_RCVBUF` at both ends (socket(7)); `None` is a share of 64 MiB for receiving, and the kernel's default for
    /// sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
}

impl FlowTuning {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What most TCP streams leave to the clock and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamTuning {
    /// Each direction ends after this much payload of all streams together, at the end of the duration at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Bytes>,
    /// `SO_SNDBUF` and `SO_RCVBUF` at both ends (socket(7)); `None` lets the kernel grow them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// `TCP_MAXSEG` of the client's sockets, which bounds the segments of both ends (tcp(7)), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
}

impl StreamTuning {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Workload {
    /// The steady window, nanoseconds after the start: of the loaded part where there is an idle one before it.
    pub fn steady_window(&self) -> Range<u64> {
        match &self.traffic {
            Traffic::LoadedLatency(settings) => settings.loaded_window(&self.timing),
            _ => self.timing.warmup.0..self.timing.duration.0.saturating_sub(self.timing.cooldown.0),
        }
    }
}

impl Traffic {
    /// The type's name in a plan, for example `tcp-stream`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::TcpStream { .. } => "tcp-stream",
            Self::UdpStream { packets: Some(_), .. } => "pps",
            Self::UdpStream { .. } => "udp-stream",
            Self::TcpRr(_) => "tcp-rr",
            Self::UdpRr(_) => "udp-rr",
            Self::TcpCrr(_) => "tcp-crr",
            Self::LoadedLatency(_) => "loaded-latency",
            Self::Failover(_) => "failover",
        }
    }

    /// The payload after which each direction ends before the end of the duration; absent when the duration alone ends it.
    pub fn volume(&self) -> Option<Bytes> {
        match self {
            Self::TcpStream { tuning, .. } => tuning.volume,
            Self::UdpStream { tuning, .. } => tuning.volume,
            _ => None,
        }
    }

    /// How its packets are made and taken, when they are what it is about.
    pub fn packets(&self) -> Option<&PacketPath> {
        match self {
            Self::UdpStream { packets, .. } => packets.as_ref(),
            _ => None,
        }
    }

    /// Who sends bulk data; absent when all of it is requests and responses.
    pub fn bulk(&self) -> Option<Direction> {
        match self {
            Self::TcpStream { direction, .. } | Self::UdpStream { direction, .. } => Some(*direction),
            Self::LoadedLatency(settings) => Some(settings.direction),
            Self::Failover(settings) => (settings.streams > 0).then_some(settings.direction),
            Self::TcpRr(_) | Self::UdpRr(_) | Self::TcpCrr(_) => None,
        }
    }

    /// The schedule of its requests, when they are sent on one.
    pub fn request_rate(&self) -> Option<PerSecond> {
        match self {
            Self::TcpStream { .. } | Self::UdpStream { .. } | Self::Failover(_) => None,
            Self::TcpRr(settings) | Self::UdpRr(settings) => settings.rate,
            Self::TcpCrr(settings) => settings.rate,
            Self::LoadedLatency(settings) => Some(settings.rate),
        }
    }

    /// Whether it yields round trips, beside bulk data or alone.
    pub fn has_round_trips(&self) -> bool {
        !matches!(self, Self::TcpStream { .. } | Self::UdpStream { .. } | Self::Failover(_))
    }

    /// What a verdict is about when the plan does not say.
    pub fn default_metrics(&self) -> Vec<Metric> {
        match self {
            Self::TcpStream { .. } => vec![Metric::Throughput, Metric::CpuPerGigabyte],
            Self::UdpStream { packets: Some(PacketPath { search: Some(search), .. }), .. } => {
                search.metrics()
            }
            Self::UdpStream { packets: Some(_), .. } => {
                vec![Metric::DatagramRate, Metric::Loss, Metric::CpuPerDatagram]
            }
            Self::UdpStream { .. } => vec![Metric::DatagramRate, Metric::Loss, Metric::CpuPerDatagram],
            Self::LoadedLatency(_) => {
                vec![Metric::LatencyLoadedP50, Metric::LatencyLoadedP99, Metric::Responsiveness]
            }
            Self::Failover(settings) if settings.streams == 0 => vec![Metric::Outage, Metric::LostInOutage],
            Self::Failover(_) => vec![Metric::Outage, Metric::LostInOutage, Metric::RecoveryTime],
            Self::TcpRr(_) | Self::UdpRr(_) | Self::TcpCrr(_) => vec![Metric::LatencyP50, Metric::LatencyP99],
        }
    }

    /// The metrics that this traffic can yield.
    pub fn possible_metrics(&self) -> &'static [Metric] {
        match self {
            Self::UdpStream { packets: Some(PacketPath { search: Some(search), .. }), .. } => {
                search.possible_metrics()
            }
            Self::TcpStream { .. } => {
                &[Metric::Throughput, Metric::CpuPerGigabyte, Metric::RetransmitsPerGigabyte]
            }
            Self::UdpStream { .. } => &[
                Metric::Throughput,
                Metric::DatagramRate,
                Metric::PacketRate,
                Metric::Loss,
                Metric::Jitter,
                Metric::CpuPerDatagram,
                Metric::CpuPerGigabyte,
            ],
            Self::LoadedLatency(_) => &[
                Metric::Throughput,
                Metric::LatencyIdleP50,
                Metric::LatencyLoadedP50,
                Metric::LatencyLoadedP99,
                Metric::Responsiveness,
            ],
            Self::Failover(_) => {
                &[Metric::Outage, Metric::LostInOutage, Metric::RecoveryTime, Metric::Throughput]
            }
            Self::TcpRr(_) | Self::UdpRr(_) | Self::TcpCrr(_) => &[
                Metric::LatencyP50,
                Metric::LatencyP99,
                Metric::LatencyP999,
                Metric::RoundTripRate,
                Metric::CpuPerRoundTrip,
            ],
        }
    }
}

/// Which end sends bulk data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Client to server.
    #[default]
    Up,
    /// Server to client.
    Down,
    /// Both ways at once, on each stream or flow.
    Both,
}

impl Direction {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
    /// Whether the client sends.
    pub fn client_sends(self) -> bool {
        self != Self::Down
    }
    /// Whether the server sends.
    pub fn server_sends(self) -> bool {
        self != Self::Up
    }
}

/// How a TCP stream moves bytes in and out of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpEngine {
    /// The sender copies nothing (`sendfile` from memory), the receiver discards in the kernel (`MSG_TRUNC`): the path
    /// is the limit for longer.
    #[default]
    Lean,
    /// `write` and `read`, as applications do.
    Copy,
    /// The sender asks the kernel to send from its memory without a copy (`MSG_ZEROCOPY`), and counts how often that copied all the
    /// same; the receiver is that of `lean`.
    Zerocopy,
    /// Through io_uring(7): the sender keeps up to eight sends under way and asks for no copy as `zerocopy` does (`SEND_ZC`); the
    /// receiver is one request that fills buffers until the stream ends (multishot `RECV`).
    IoUring,
}

impl TcpEngine {
    /// Whether each stream has a thread of its own for either direction, which bounds how many there can be.
    pub fn has_thread_each(self) -> bool {
        matches!(self, Self::Zerocopy | Self::IoUring)
    }
}

/// Where datagrams are cut out of a sender's buffer and joined for the receiver. Each of them is numbered, dated and counted by
/// itself in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UdpOffload {
    /// By the program: every datagram goes through the kernel by itself, 64 a call (`sendmmsg`).
    #[default]
    None,
    /// The sender hands over up to 128 datagrams as one buffer (`UDP_SEGMENT`), which is cut by the NIC, by the kernel before the
    /// NIC, or by the receiver when nothing on the path cuts it.
    Gso,
    /// As `gso`, and the receiver takes datagrams that arrive together as one buffer (`UDP_GRO`).
    GsoGro,
}

impl UdpOffload {
    /// Whether every datagram goes through the kernel by itself.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How a thread waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Sleeps in the kernel; the wake-up is part of the round trip.
    #[default]
    Block,
    /// Asks again and again; a core is busy for as long as the trial runs.
    Spin,
    /// Has the kernel poll the NIC's queue for 50 us before it sleeps (`SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`). Devices without
    /// NAPI cannot be polled, and the result says so. Needs CAP_NET_ADMIN, or `net.core.busy_read` of 50.
    BusyPoll,
}

impl Wait {
    /// How long the kernel polls before it sleeps, with [`Wait::BusyPoll`]: the kernel's own recommendation
    /// (Documentation/admin-guide/sysctl/net.rst, `busy_read`).
    pub const BUSY_POLL: std::time::Duration = std::time::Duration::from_micros(50);
}

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

/// One of the two ends of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Connects.
    Client,
    /// Listens.
    Server,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}
