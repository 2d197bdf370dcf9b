//! Terms that several types of workload share: directions, engines, ways to wait, IP versions, the two ends. A leaf: it
//! imports no other module of the crate.
use std::fmt;

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
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
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
    /// The sender copies nothing (`vmsplice` and `splice` from memory), the receiver discards in the kernel (`MSG_TRUNC`): the path
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
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Lean => "lean engine",
            Self::Copy => "copy engine",
            Self::Zerocopy => "zerocopy engine",
            Self::IoUring => "io-uring engine",
        }
    }

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
    /// Asks again and again; a core is busy for as long as the trial runs.
    Spin,
    /// Has the kernel poll the NIC's queue for 50 us before it sleeps (`SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`). Devices without
    /// NAPI cannot be polled, and the result says so. Needs CAP_NET_ADMIN, or `net.core.busy_read` of 50.
    BusyPoll,
}

impl Wait {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Block => "blocking",
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

/// What a probe travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeProtocol {
    /// UDP datagrams: one that is lost is lost.
    #[default]
    Udp,
    /// A TCP connection of their own: one that is lost is sent again, and those behind it wait.
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
