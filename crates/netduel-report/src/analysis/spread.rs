//! Which queues and cores of an end had a workload's packets, how evenly, and where they stand in the machine.
use std::collections::BTreeMap;

use netduel_model::packet_path::{PacketPath, XdpMode};
use netduel_model::trial::Trial;
use netduel_model::workload::Role;
use serde::Serialize;

use super::packets::{Surroundings, interface_of};

/// A queue or core with so many times its even share, or more, is an uneven spread. Hashes of few flows stay below it on hardware:
/// receive queues of a 200 Gbit/s NIC differ by 4 %.
const UNEVEN: f64 = 1.25;
/// Fewer packets say nothing of how they are spread.
const PACKETS_MIN: u64 = 1000;

/// Packets of one end by queue and core, all valid trials together.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketSpread {
    /// Which end.
    pub role: Role,
    /// Whether it sent.
    pub is_sender: bool,
    /// The host.
    pub host: String,
    /// Its interface.
    pub interface: String,
    /// Packets by queue, those without any too where the end drove them; empty where nobody counts by queue.
    pub queues: BTreeMap<u32, u64>,
    /// Queues that the plan asks for; absent where it does not say.
    pub asked: Option<u32>,
    /// Flows that the packets are in: no more cores than that can share them at a time.
    pub flows: u32,
    /// Packets by core; empty where nobody counts by core.
    pub cores: BTreeMap<u16, u64>,
    /// Cores that the end's threads were pinned to.
    pub pinned: Vec<u16>,
    /// Threads that moved the packets; absent where the kernel keeps no account of them.
    pub threads: Option<u32>,
    /// Share of its time that each of the cores above was busy with anything.
    pub busy: BTreeMap<u16, f64>,
    /// NUMA node of the interface; absent where it has none.
    pub interface_node: Option<u32>,
    /// NUMA node of each of the cores above, on a machine with several.
    pub core_nodes: BTreeMap<u16, u32>,
    /// Where a receiver's XDP program ran; absent elsewhere, and where the kernel does not tell.
    pub mode: Option<XdpMode>,
    /// DPDK's version, its port and the command line of testpmd, where that was the end.
    pub dpdk: Option<DpdkEnd>,
    /// Whether frames were shared with the driver without a copy, at an AF_XDP end.
    pub zero_copy: Option<bool>,
}

/// testpmd as it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DpdkEnd {
    /// DPDK's version.
    pub version: String,
    /// DPDK's name of the port.
    pub port: String,
    /// The command line, word by word.
    pub command: Vec<String>,
}

/// The most loaded of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uneven<K> {
    /// Which.
    pub most: K,
    /// Its share of the packets.
    pub share: f64,
    /// What each would have of an even spread.
    pub even: f64,
}

impl PacketSpread {
    /// A queue with far more than its share.
    pub fn uneven_queue(&self) -> Option<Uneven<u32>> {
        uneven(&self.queues, self.asked)
    }

    /// A core with far more than its share.
    pub fn uneven_core(&self) -> Option<Uneven<u16>> {
        uneven(&self.cores, Some(self.flows))
    }
}

/// `asked`: how many were to be used, where that was said.
fn uneven<K: Ord + Copy>(packets: &BTreeMap<K, u64>, asked: Option<u32>) -> Option<Uneven<K>> {
    let all: u64 = packets.values().sum();
    let (most, count) = packets.iter().max_by_key(|(_, count)| **count)?;
    let several = asked.map_or(packets.len(), |asked| packets.len().min(asked as usize)).max(1);
    let (share, even) = (*count as f64 / all.max(1) as f64, 1.0 / several as f64);
    (several > 1 && all >= PACKETS_MIN && share >= even * UNEVEN).then_some(Uneven {
        most: *most,
        share,
        even,
    })
}

/// An end's queues and cores; absent when no trial has the end.
pub(super) fn at_end(
    role: Role,
    is_sender: bool,
    (path, flows): (&PacketPath, u32),
    trials: &[&Trial],
    around: Surroundings<'_>,
) -> Option<PacketSpread> {
    let ends: Vec<_> = trials.iter().filter_map(|trial| trial.end(role)).collect();
    let interface = ends.iter().find_map(|end| interface_of(end))?.to_owned();
    let (mut queues, mut cores) = (BTreeMap::new(), BTreeMap::new());
    for one in ends.iter().filter_map(|end| end.report.packets.as_ref()).flat_map(|report| &report.queues) {
        if let Some(queue) = one.queue {
            *queues.entry(queue).or_default() += one.packets;
        }
        if let Some(core) = one.core {
            *cores.entry(core).or_default() += one.packets;
        }
    }
    let name = around.arm.pair.host(role);
    let host = around.hosts.get(name);
    let told = host.and_then(|host| host.interfaces.iter().find(|told| told.name == interface));
    if queues.is_empty() {
        queues = by_driver(role, is_sender, &interface, around);
        // A counter that stood still is not told.
        let count = told.and_then(|told| if is_sender { told.tx_queues } else { told.rx_queues });
        if !queues.is_empty() {
            (0..count.unwrap_or(0)).for_each(|queue| _ = queues.entry(queue).or_default());
        }
    }
    let mut pinned: Vec<u16> =
        ends.iter().flat_map(|end| &end.report.streams).filter_map(|stream| stream.core).collect();
    pinned.sort_unstable();
    pinned.dedup();
    let named = || cores.keys().copied().chain(pinned.iter().copied());
    let nodes =
        host.map(|host| host.numa_nodes.as_slice()).filter(|nodes| nodes.len() > 1).unwrap_or_default();
    let node_of = |core: u16| nodes.iter().find(|node| node.cores.contains(&core)).map(|node| node.number);
    Some(PacketSpread {
        role,
        is_sender,
        host: name.to_string(),
        asked: path.queues,
        flows,
        busy: named().filter_map(|core| Some((core, busy(role, core, around)?))).collect(),
        interface_node: told.and_then(|told| told.device.numa_node),
        core_nodes: named().filter_map(|core| Some((core, node_of(core)?))).collect(),
        mode: ends.iter().find_map(|end| end.report.packets.as_ref()?.mode),
        dpdk: ends.iter().find_map(|end| end.report.dpdk.as_ref()).map(|told| DpdkEnd {
            version: told.version.clone(),
            port: told.port.clone(),
            command: told.command.clone(),
        }),
        zero_copy: ends.iter().find_map(|end| end.report.packets.as_ref()?.zero_copy),
        threads: ends.iter().filter_map(|end| end.report.thread_use).map(|told| told.threads).max(),
        interface,
        queues,
        cores,
        pinned,
    })
}

/// Packets by queue as the driver counts them, of an end that went through the network stack.
fn by_driver(role: Role, is_sender: bool, interface: &str, around: Surroundings<'_>) -> BTreeMap<u32, u64> {
    let seen = around.queues.iter().find(|seen| seen.role == role && seen.interface == interface);
    seen.map(|seen| if is_sender { seen.sent.clone() } else { seen.received.clone() }).unwrap_or_default()
}

/// The share of its time that a core of an end's machine worked.
fn busy(role: Role, core: u16, around: Surroundings<'_>) -> Option<f64> {
    let machine = match (around.shared, role) {
        (true, _) | (false, Role::Client) => around.machines.first()?,
        (false, Role::Server) => around.machines.get(1)?,
    };
    let core = machine.cores.iter().find(|one| one.core == core)?;
    Some(core.user + core.system + core.irq + core.softirq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_is_uneven_from_25_percent_above_the_even_share() {
        let spread = |packets: &[u64]| {
            let queues: BTreeMap<u32, u64> =
                packets.iter().enumerate().map(|(queue, count)| (queue as u32, *count)).collect();
            uneven(&queues, None)
        };
        assert_eq!(spread(&[2000, 1900, 2000, 4100]), Some(Uneven { most: 3, share: 0.41, even: 0.25 }));
        assert_eq!(spread(&[2500, 2600, 2400, 2500]), None);
        // A queue that stood idle counts for the even share.
        assert_eq!(spread(&[0, 5000]).map(|uneven| uneven.most), Some(1));
        assert_eq!(spread(&[5000]), None);
        // What was not to be used is no part of it.
        let one = BTreeMap::from([(0_u32, 5000_u64), (1, 0), (2, 0)]);
        assert_eq!(uneven(&one, Some(1)), None);
        assert_eq!(uneven(&one, Some(2)).map(|uneven| uneven.even), Some(0.5));
        assert_eq!(spread(&[0, 500]), None, "too few packets");
    }
}
