//! Terms that several types of workload share: directions, engines, ways to wait, IP versions, the two ends. A leaf: it
//! imports no other module of the crate.
use std::fmt;

use crate::word::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        word(&self)
    }
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Up => "client to server",
            Self::Down => "server to client",
            Self::Both => "both ways",
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
    /// Without copies: the sender uses `vmsplice` and `splice`, the receiver discards in the kernel (`MSG_TRUNC`), so that the ends
    /// are the bottleneck later than with other engines.
    #[default]
    Lean,
    /// `write` and `read`, as applications do.
    Copy,
    /// The sender uses `MSG_ZEROCOPY` and counts the sends that the kernel copied anyway (zero-copy fallback); the receiver is that
    /// of `lean`.
    Zerocopy,
    /// With io_uring(7): the sender keeps up to eight zero-copy sends in flight (`SEND_ZC`); the receiver is one multishot `RECV`
    /// request.
    IoUring,
}

/// How the streams of an engine are spread over threads, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamThreads {
    /// They share one thread per core.
    Shared,
    /// Up to this number each stream has a thread; more streams share one thread per core.
    EachUpTo(u32),
    /// Each stream has a thread, which bounds how many there can be.
    Each,
}

impl TcpEngine {
    /// All engines, in the order of the type.
    pub const ALL: [Self; 4] = [Self::Lean, Self::Copy, Self::Zerocopy, Self::IoUring];

    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Lean => "lean engine",
            Self::Copy => "copy engine",
            Self::Zerocopy => "zerocopy engine",
            Self::IoUring => "io-uring engine",
        }
    }

    /// How its streams are spread over threads. One lean stream is 1.07x and eight are 1.6x as fast in shared threads as with a thread
    /// each. Copying ones share threads in large numbers only, because applications with few connections use blocking calls.
    /// Completions of zero-copy sends arrive per connection.
    pub const fn stream_threads(self) -> StreamThreads {
        match self {
            Self::Lean => StreamThreads::Shared,
            Self::Copy => StreamThreads::EachUpTo(128),
            Self::Zerocopy | Self::IoUring => StreamThreads::Each,
        }
    }

    /// Whether each of so many streams has a thread for either direction.
    pub const fn has_thread_each(self, streams: u32) -> bool {
        match self.stream_threads() {
            StreamThreads::Shared => false,
            StreamThreads::EachUpTo(most) => streams <= most,
            StreamThreads::Each => true,
        }
    }

    /// The engines whose streams always have a thread each, as a plan has them: `` `zerocopy` and `io-uring` ``.
    pub(crate) fn with_thread_each() -> String {
        let each = Self::ALL.into_iter().filter(|engine| engine.stream_threads() == StreamThreads::Each);
        each.map(|engine| format!("`{}`", engine.word())).collect::<Vec<_>>().join(" and ")
    }
}

/// Segmentation offload of UDP. Each datagram has its own number, time and count in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UdpOffload {
    /// None: every datagram passes the kernel separately, 64 per call (`sendmmsg`).
    #[default]
    None,
    /// The sender passes up to 128 datagrams as one buffer (`UDP_SEGMENT`). The NIC segments it, or the kernel before the NIC, or the
    /// receiver when nothing on the path does.
    Gso,
    /// As `gso`; the receiver also gets datagrams that arrive together as one buffer (`UDP_GRO`).
    GsoGro,
}

impl UdpOffload {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "no segmentation offload",
            Self::Gso => "GSO",
            Self::GsoGro => "GSO and GRO",
        }
    }

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
    /// Polls the socket in user space without a pause; it keeps a core busy during the trial.
    Spin,
    /// The kernel polls the NIC's queue for 50 us before the thread sleeps (`SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`). Devices without
    /// NAPI cannot be polled; the report states this. Needs CAP_NET_ADMIN, or `net.core.busy_read` of 50.
    BusyPoll,
}

impl Wait {
    /// All ways, in the order of the type.
    pub const ALL: [Self; 3] = [Self::Block, Self::Spin, Self::BusyPoll];

    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Block => "threads sleep while they wait",
            Self::Spin => "spinning",
            Self::BusyPoll => "busy-polling",
        }
    }

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

impl Family {
    /// Bytes of the IP header, without options, and of the UDP header of a datagram.
    pub const fn udp_headers(self) -> u32 {
        match self {
            Self::Ipv4 => 20 + 8,
            Self::Ipv6 => 40 + 8,
        }
    }
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Connects.
    Client,
    /// Listens.
    Server,
}

impl Role {
    /// Both, the client first.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// `client` or `server`.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// The other end.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Which host of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Both.
    #[default]
    Both,
}

impl Side {
    /// Whether the host of a role is meant.
    pub fn includes(self, role: Role) -> bool {
        match self {
            Self::Client => role == Role::Client,
            Self::Server => role == Role::Server,
            Self::Both => true,
        }
    }
}

/// The protocol of probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeProtocol {
    /// UDP datagrams: a lost probe is not retransmitted.
    #[default]
    Udp,
    /// A TCP connection of their own: a lost probe is retransmitted and delays the probes behind it.
    Tcp,
}

impl ProbeProtocol {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}
