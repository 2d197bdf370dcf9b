//! DPDK as the generator or receiver of a `pps` workload: how testpmd is run, and what it reported.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::workload::terms::Role;

/// The device that testpmd gets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DpdkDevice {
    /// A packet socket on the interface of the data (`net_af_packet`).
    #[default]
    AfPacket,
    /// AF_XDP on the interface of the data (`net_af_xdp`).
    AfXdp,
    /// Memory shared by the two ends, which have to be on one machine (`net_memif`).
    Memif,
    /// No network at all (`net_null`): what testpmd itself can do.
    Null,
    /// Hyper-V's synthetic NIC with its virtual function (`netvsc`).
    Netvsc,
    /// Azure's MANA (`mana`).
    Mana,
    /// DPDK's failsafe device over Hyper-V's synthetic NIC, which stays the kernel's (`failsafe`).
    Failsafe,
    /// A function of the PCI bus, by its place: `0000:00:05.0`.
    Pci(String),
}

impl DpdkDevice {
    /// Those with a name.
    const NAMED: [Self; 7] =
        [Self::AfPacket, Self::AfXdp, Self::Memif, Self::Null, Self::Netvsc, Self::Mana, Self::Failsafe];

    /// As it is written in a plan.
    pub fn word(&self) -> &str {
        match self {
            Self::AfPacket => "net_af_packet",
            Self::AfXdp => "net_af_xdp",
            Self::Memif => "net_memif",
            Self::Null => "net_null",
            Self::Netvsc => "netvsc",
            Self::Mana => "mana",
            Self::Failsafe => "failsafe",
            Self::Pci(slot) => slot,
        }
    }

    /// Whether the interface of the data stays the kernel's.
    pub fn keeps_the_interface(&self) -> bool {
        !matches!(self, Self::Netvsc | Self::Mana | Self::Pci(_))
    }

    /// Whether the interface of the data counts what it sends and receives.
    pub fn is_counted_by_the_interface(&self) -> bool {
        matches!(self, Self::AfPacket | Self::AfXdp)
    }

    /// Whether it has to do with an interface at all.
    pub fn has_interface(&self) -> bool {
        !matches!(self, Self::Memif | Self::Null)
    }
}

impl TryFrom<String> for DpdkDevice {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        if let Some(device) = Self::NAMED.iter().find(|device| device.word() == word) {
            return Ok(device.clone());
        }
        if is_pci_slot(&word) {
            return Ok(Self::Pci(word));
        }
        Err(format!(
            "`{word}` is no device: net_af_packet, net_af_xdp, net_memif, net_null, netvsc, mana, failsafe, or the place of a PCI \
             function as `0000:00:05.0`"
        ))
    }
}

impl From<DpdkDevice> for String {
    fn from(device: DpdkDevice) -> Self {
        device.word().to_owned()
    }
}

impl JsonSchema for DpdkDevice {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "DpdkDevice".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let named: Vec<&str> = Self::NAMED.iter().map(Self::word).collect();
        let slot = "^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\\.[0-9A-Fa-f]$";
        json_schema!({ "anyOf": [
            { "enum": named },
            { "type": "string", "pattern": slot, "examples": ["0000:00:05.0"] },
        ] })
    }
}

impl fmt::Display for DpdkDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Domain, bus, device and function in hexadecimal digits: `0000:00:05.0`.
fn is_pci_slot(word: &str) -> bool {
    let hex = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let Some((place, function)) = word.rsplit_once('.') else { return false };
    let parts: Vec<&str> = place.split(':').collect();
    matches!(parts[..], [domain, bus, device] if hex(domain, 4..=8) && hex(bus, 2..=2) && hex(device, 2..=2))
        && hex(function, 1..=1)
}

/// How testpmd is run at the ends that it is at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DpdkSettings {
    /// The program: a name to be looked for in PATH, or a path.
    pub program: String,
    /// What it gets.
    pub device: DpdkDevice,
    /// Queues in either direction at the sender.
    pub queues: u32,
    /// At the receiver.
    pub receive_queues: u32,
    /// Descriptors of each queue; absent: as many as the driver likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u32>,
    /// Whether its buffers are huge pages with a device that needs none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub huge_pages: bool,
    /// Further words for testpmd, at the end of its command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

impl DpdkSettings {
    /// The program that DPDK's packages install.
    pub const PROGRAM: &'static str = "dpdk-testpmd";

    /// Whether the plan chose the program, or gave it arguments, which can make it load code.
    pub fn is_chosen_by_plan(&self) -> bool {
        self.program != Self::PROGRAM || !self.args.is_empty()
    }

    /// Queues of an end: the client sends.
    pub fn queues(&self, role: Role) -> u32 {
        match role {
            Role::Client => self.queues,
            Role::Server => self.receive_queues,
        }
    }
}

/// What varies between the packets of testpmd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DpdkFlows {
    /// Nothing: they are of one flow.
    #[default]
    One,
    /// The source port, 64 for each core (DPDK 23.11 and newer).
    SourcePorts,
    /// The source address, 256 of them (DPDK before 23.11): addresses that are not the sender's, which clouds drop.
    SourceAddresses,
}

/// testpmd's report of itself and its port after a trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DpdkReport {
    /// DPDK's version.
    pub version: String,
    /// Version of the rdma-core whose `libibverbs` testpmd had loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma_core: Option<String>,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// DPDK's name of the port.
    pub port: String,
    /// NUMA node of the port, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// What varied between the packets that it generated.
    pub flows: DpdkFlows,
    /// Its counters between start and stop.
    pub counts: DpdkCounts,
    /// The driver's own counters (xstats) that are not zero, from the start of the program, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub xstats: BTreeMap<String, u64>,
    /// The cores that forwarded, by DPDK's numbers, in the order of their streams: at most one for each queue.
    pub cores: Vec<u16>,
}

/// The counters of a port between start and stop, packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DpdkCounts {
    /// Taken by the device (`TX-packets`).
    pub tx_packets: u64,
    /// Not taken by the device because its ring was full (`TX-dropped`): back-pressure, no loss.
    pub tx_dropped: u64,
    /// Received (`RX-packets`), with whatever else reached the port.
    pub rx_packets: u64,
    /// Dropped by the device because its receive queues were full (`RX-missed`).
    pub rx_missed: u64,
    /// Received with an error.
    pub rx_errors: u64,
    /// Receptions without a buffer to put them into (`RX-nombuf`).
    pub rx_nombuf: u64,
    /// Failed to be sent.
    pub tx_errors: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for word in [
            "net_af_packet",
            "net_af_xdp",
            "net_memif",
            "net_null",
            "netvsc",
            "mana",
            "failsafe",
            "7870:00:00.0",
        ] {
            let device = DpdkDevice::try_from(word.to_owned()).unwrap();
            assert_eq!(device.to_string(), word);
            assert_eq!(serde_json::to_string(&device).unwrap(), format!("\"{word}\""));
        }
        for word in ["", "eth0", "00:05.0", "0000:00:05", "0000:00:05.x", "net_af_xdp0", "0000:00:05.0,mac=1"]
        {
            assert!(DpdkDevice::try_from(word.to_owned()).unwrap_err().contains(&format!("`{word}`")));
        }
    }
}
