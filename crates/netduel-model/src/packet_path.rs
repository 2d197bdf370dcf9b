//! How the packets of a `pps` workload are made and taken: by sockets, by kernel bypass, or in the kernel itself.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dpdk::DpdkSettings;
use crate::search::Search;
use crate::units::Bytes;
use crate::word::word;
use crate::workload::setting::MESSAGE_LEAST;
use crate::workload::terms::{Family, Role};

/// Ethernet's check sequence, bytes: part of a frame's size as RFC 2544 counts it, never seen by a program.
pub const CHECK_SEQUENCE: u32 = 4;
/// Ethernet's header without a VLAN tag, bytes.
const ETHERNET_HEADER: u32 = 14;
/// Ethernet's least frame with its check sequence, bytes (IEEE 802.3).
pub const FRAME_LEAST: u32 = 64;
/// The longest frame of an ordinary interface, with its check sequence, bytes (RFC 2544 section 9.1).
pub const FRAME_MOST: u32 = 1518;
/// Flows of the kernel's generator at most: each has a thread that never leaves its core.
pub const KERNEL_FLOWS_MOST: u64 = 64;

/// Why the driver of the sender's interface rejects all frames of a generator that gets no error for them
/// ([`PacketEngine::is_dropped_silently`]).
pub const FRAMES_REJECTED: &str = "the driver of the sender's interface does not accept frames from XDP programs (`ndo_xdp_xmit`); a veth \
    accepts them only while its peer has an XDP program or GRO";

/// Generator of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketEngine {
    /// UDP sockets, a batch in one system call: what a program has without privilege.
    #[default]
    Socket,
    /// AF_XDP: frames from the program's memory to the driver (kernel bypass).
    Xdp,
    /// The kernel generates the frames in the driver's context (BPF test run with live frames): the upper bound of the path.
    Kernel,
    /// DPDK's testpmd, run as a program of its own.
    Dpdk,
}

/// Receiver of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketReceiver {
    /// UDP sockets.
    #[default]
    Socket,
    /// AF_XDP: a program gets each frame from the driver (kernel bypass).
    Xdp,
    /// An XDP program counts each packet in the driver and drops it.
    Count,
    /// DPDK's testpmd, run as a program of its own. It counts all packets that reach its port.
    Dpdk,
}

impl PacketEngine {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// Whether it generates outside the threads of the program, in the kernel or in a process of its own: unpaced, and at full load
    /// all the time.
    pub fn is_external(self) -> bool {
        match self {
            Self::Socket | Self::Xdp => false,
            Self::Kernel | Self::Dpdk => true,
        }
    }

    /// Whether it keeps to a rate. What cannot refuses one.
    pub fn keeps_a_rate(self) -> bool {
        !self.is_external()
    }

    /// Whether it generates in system calls of the program, whose CPU time is that of the generator.
    pub fn is_in_system_calls(self) -> bool {
        match self {
            Self::Kernel => true,
            Self::Socket | Self::Xdp | Self::Dpdk => false,
        }
    }

    /// Whether a driver that accepts none of its frames drops them without an error.
    pub fn is_dropped_silently(self) -> bool {
        match self {
            Self::Kernel => true,
            Self::Socket | Self::Xdp | Self::Dpdk => false,
        }
    }

    /// The default receiver of the packets of this engine.
    pub fn receiver(self) -> PacketReceiver {
        match self {
            Self::Socket => PacketReceiver::Socket,
            Self::Xdp => PacketReceiver::Xdp,
            Self::Kernel => PacketReceiver::Count,
            Self::Dpdk => PacketReceiver::Dpdk,
        }
    }
}

impl PacketReceiver {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }

    /// Whether it polls its rings all the time, also when no packet arrives.
    pub fn busy_polls(self) -> bool {
        match self {
            Self::Xdp | Self::Dpdk => true,
            Self::Socket | Self::Count => false,
        }
    }
}

/// The packet path of a workload: generator, receiver, frame size and queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacketPath {
    /// Their generator.
    pub engine: PacketEngine,
    /// Their receiver.
    pub receiver: PacketReceiver,
    /// Size of a frame with its check sequence, as RFC 2544 counts it, bytes.
    pub frame: u32,
    /// Queues that either end drives by kernel bypass, from the first on; absent: all that its interface has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// A trial is a search for the highest rate; absent: a trial sends at the rate of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Whether the receiver `xdp` has the kernel poll the driver in its own thread (`SO_PREFER_BUSY_POLL`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy_poll: bool,
    /// Interface that the client uses by kernel bypass; absent: the one that leads to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_interface: Option<String>,
    /// The server's; absent: the one with the address of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_interface: Option<String>,
    /// How testpmd is run at the ends that are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpdk: Option<DpdkSettings>,
}

impl PacketPath {
    /// Whether the end of the given role uses kernel bypass; the client sends.
    pub fn is_raw(&self, role: Role) -> bool {
        match role {
            Role::Client => self.engine != PacketEngine::Socket,
            Role::Server => self.receiver != PacketReceiver::Socket,
        }
    }

    /// Whether either end does.
    pub fn is_any_raw(&self) -> bool {
        self.is_raw(Role::Client) || self.is_raw(Role::Server)
    }

    /// How testpmd is run at an end, when it is testpmd's.
    pub fn dpdk(&self, role: Role) -> Option<&DpdkSettings> {
        let is_its = match role {
            Role::Client => self.engine == PacketEngine::Dpdk,
            Role::Server => self.receiver == PacketReceiver::Dpdk,
        };
        self.dpdk.as_ref().filter(|_| is_its)
    }

    /// The interface that the plan names for an end.
    pub fn interface(&self, role: Role) -> Option<&str> {
        match role {
            Role::Client => self.client_interface.as_deref(),
            Role::Server => self.server_interface.as_deref(),
        }
    }

    /// Payload of the datagram in a frame of this size; `None` when no datagram of ours fits.
    pub fn payload(frame: u32, family: Family) -> Option<Bytes> {
        frame.checked_sub(overhead(family)).map(|bytes| Bytes(bytes.into()))
    }

    /// The IP packet in a frame, bytes: without Ethernet header and check sequence.
    pub fn ip_packet(frame: u32) -> u32 {
        frame.saturating_sub(ETHERNET_HEADER + CHECK_SEQUENCE)
    }

    /// The least frame that carries a datagram with its magic and its number.
    pub fn frame_least(family: Family) -> u32 {
        FRAME_LEAST.max(overhead(family) + MESSAGE_LEAST as u32)
    }
}

/// Bytes of a frame that are not payload of its datagram: Ethernet, IP, UDP and the check sequence.
fn overhead(family: Family) -> u32 {
    ETHERNET_HEADER + family.udp_headers() + CHECK_SEQUENCE
}

/// Where an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// In the driver, before the kernel makes a socket buffer of the frame.
    Native,
    /// Behind the driver, which has no XDP: each frame becomes a socket buffer of the kernel first.
    Generic,
}

impl XdpMode {
    /// One word.
    pub fn word(self) -> &'static str {
        word(&self)
    }
}

/// The report of an end on packets that it sent or received by kernel bypass.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PacketReport {
    /// The interface that it used.
    pub interface: String,
    /// Each queue that it drove, or each core on which its counting program ran.
    pub queues: Vec<QueuePackets>,
    /// Whether driver and program shared the frames without a copy, in AF_XDP's sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<bool>,
    /// Whether the interface was seen to cut joined datagrams into packets, so that the sender's sockets handed over joined ones; absent
    /// at other ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmentation: Option<bool>,
    /// Where a receiver's XDP program runs; absent for a sender, and when the kernel does not report it (before Linux 6.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<XdpMode>,
    /// Packets that this end counted as lost before its program had them, by the name of the counter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drops: BTreeMap<String, u64>,
}

/// Packets of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueuePackets {
    /// The interface's number of the queue; absent where a core is counted whichever queue it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// The core that did the work, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u16>,
    /// Packets sent or taken there.
    pub packets: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_frame_has_room_for_magic_and_number() {
        assert_eq!(PacketPath::frame_least(Family::Ipv4), 64);
        assert_eq!(PacketPath::payload(64, Family::Ipv4), Some(Bytes(18)));
        assert_eq!(PacketPath::frame_least(Family::Ipv6), 82);
        assert_eq!(PacketPath::payload(82, Family::Ipv6), Some(Bytes(16)));
        assert_eq!(PacketPath::payload(40, Family::Ipv4), None);
    }
}
