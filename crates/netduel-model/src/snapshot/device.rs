//! The device behind an interface: its place, its queues and how their work is spread.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::word::word;

/// Properties of an interface's device, from its driver and bus. A field is absent when it was not reported or the device has no such
/// property.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Where on the bus, for example `0000:00:04.0` or a vmbus channel's GUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_address: Option<String>,
    /// The PCI function at that place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciFunction>,
    /// Firmware version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// NUMA node; absent when the machine reports none (-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// Queues (`ethtool -l`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Channels>,
    /// Descriptor rings (`ethtool -g`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<Rings>,
    /// Interrupt coalescing (`ethtool -c`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Coalescing>,
    /// Receive side scaling (`ethtool -x`): how many entries of the indirection table point to each queue, by queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rss_entries: Vec<u32>,
    /// Receive queues in order: the cores that RPS spreads their work to, and the size of its flow table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receive_steering: Vec<ReceiveSteering>,
    /// Transmit queues in order: the cores whose packets they take (XPS); empty for one that takes any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transmit_steering: Vec<Vec<u16>>,
    /// The interrupts of the queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<QueueInterrupt>,
    /// Kinds of qdiscs, the root's first and then those below it, each once: `mq`, `fq_codel`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qdiscs: Vec<String>,
    /// XDP features of its driver at present; absent when the kernel does not report them (before Linux 6.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<Vec<XdpFeature>>,
    /// Driver counters of a virtual function's traffic or a provider's limit, since the driver was loaded, by their own
    /// names; of a name that a driver has for each queue the sum.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

impl Device {
    /// Whether nothing is known of it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a driver can do with XDP: a bit of `enum netdev_xdp_act` (include/uapi/linux/netdev.h, Linux 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum XdpFeature {
    /// Runs programs itself, that may drop, pass and send back.
    Basic,
    /// Also redirects frames: to AF_XDP sockets, other interfaces or other CPUs.
    Redirect,
    /// Takes frames that others redirect to it, such as the kernel makes (`ndo_xdp_xmit`).
    NdoXmit,
    /// Shares frames with AF_XDP sockets without a copy.
    XskZerocopy,
    /// Runs programs on the device.
    HwOffload,
    /// Receives frames of several buffers.
    RxSg,
    /// Takes frames of several buffers that others redirect to it.
    NdoXmitSg,
}

impl XdpFeature {
    /// All, in the order of their bits.
    pub const ALL: [Self; 7] = [
        Self::Basic,
        Self::Redirect,
        Self::NdoXmit,
        Self::XskZerocopy,
        Self::HwOffload,
        Self::RxSg,
        Self::NdoXmitSg,
    ];

    /// As the kernel's own tools name it.
    pub fn word(self) -> &'static str {
        word(&self)
    }
}

/// A PCI function of a network device, whether or not a driver took it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PciFunction {
    /// Domain, bus, device and function: `0000:00:04.0`.
    pub slot: String,
    /// Vendor, for example 0x15b3.
    pub vendor: u16,
    /// Device, for example 0x1016.
    pub device: u16,
    /// The driver that took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Whether it is a virtual function, as far as the host can know: it has a `physfn`, or its name says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_function: Option<bool>,
    /// Names of the interfaces that it has in this network namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

/// Numbers of queues: now and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// For receiving alone, and the most.
    pub rx: (u32, u32),
    /// For sending alone, and the most.
    pub tx: (u32, u32),
    /// For both, and the most.
    pub combined: (u32, u32),
}

/// Descriptors of each ring: now and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rings {
    /// Receive, and the most.
    pub rx: (u32, u32),
    /// Transmit, and the most.
    pub tx: (u32, u32),
}

/// When a device interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Coalescing {
    /// After so long, microseconds.
    pub rx_usecs: u32,
    /// Or after so many packets; 0 when it does not count.
    pub rx_frames: u32,
    /// After sending, microseconds.
    pub tx_usecs: u32,
    /// Or after so many packets.
    pub tx_frames: u32,
    /// Whether it adapts the receive values to the load.
    pub adaptive_rx: bool,
    /// Whether it adapts the transmit values.
    pub adaptive_tx: bool,
}

/// Receive packet steering of one queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveSteering {
    /// Cores; empty when it is off.
    pub cores: Vec<u16>,
    /// Flows (RFS); 0 when it is off.
    pub flows: u32,
}

/// An interrupt (or channel) that serves a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueInterrupt {
    /// Number of the interrupt or of the vmbus channel.
    pub number: u32,
    /// As `/proc/interrupts` names it; empty for a vmbus channel.
    pub name: String,
    /// The queue, when the name contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Cores that serve it (effective affinity).
    pub cores: Vec<u16>,
    /// Number of interrupts since boot, all cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}
