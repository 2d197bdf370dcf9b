//! What a host is, as far as it bears on a network measurement. Raw facts; what they mean is decided elsewhere.
use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The facts of a host at the beginning of a run. What a host does not tell is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostSnapshot {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// Machine architecture.
    pub machine: Option<String>,
    /// Distribution (`PRETTY_NAME` of os-release).
    pub os: Option<String>,
    /// Hypervisor or cloud that DMI names.
    pub platform: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`: two agents with the same one share a machine.
    pub boot_id: Option<String>,
    /// Inode of the network namespace: two agents with the same one and the same boot share a network stack.
    pub netns: Option<u64>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Interfaces.
    pub interfaces: Vec<Interface>,
    /// Sysctls that bear on results, by name.
    pub sysctls: BTreeMap<String, String>,
}

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index.
    pub index: u32,
    /// `IFLA_INFO_KIND`, for example `veth` or `bridge`; absent for hardware.
    pub kind: Option<String>,
    /// Driver (`ethtool -i`).
    pub driver: Option<String>,
    /// Link-layer address.
    pub mac: Option<String>,
    /// Bytes.
    pub mtu: Option<u32>,
    /// Whether it is up.
    pub up: bool,
    /// Whether it has carrier.
    pub carrier: Option<bool>,
    /// Link speed, Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Interface above.
    pub master: Option<String>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Queueing discipline.
    pub qdisc: Option<String>,
    /// Offload features that are on (`ethtool -k`).
    pub features_on: Vec<String>,
}

impl HostSnapshot {
    /// Whether two agents run on one machine, so that CPU time must not be counted twice.
    pub fn same_machine(&self, other: &Self) -> bool {
        self.boot_id.is_some() && self.boot_id == other.boot_id
    }
    /// Whether two agents run in one network namespace of one machine.
    pub fn same_network(&self, other: &Self) -> bool {
        self.same_machine(other) && self.netns.is_some() && self.netns == other.netns
    }
}
