//! Distribution of a workload's packets over the queues and cores of an end, and the NUMA nodes of these.
use std::collections::BTreeMap;

use netduel_model::dpdk::DpdkReport;
use netduel_model::packet_path::{PacketPath, XdpMode};
use netduel_model::snapshot::{HostSnapshot, XdpFeature};
use netduel_model::trial::Trial;
use netduel_model::workload::Role;

use super::halves::Halves;
use super::machine::{CoreShare, Machine};
use super::packets::{Surroundings, interface_of};
use super::queues::PACKETS_MIN;
use crate::total::{self, Total};

/// A queue or core with at least this multiple of its even share makes a distribution uneven. Hashing of few flows on hardware
/// stays below it: receive queues of a 200 Gbit/s NIC differ by 4 %.
const UNEVEN: f64 = 1.25;
/// Most queues of an interface that count for the even share without a packet. A run file may say any number.
const IDLE_QUEUES_MAX: u32 = 4096;

/// Packets of one end by queue and core, over all valid trials.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketSpread {
    /// The end.
    pub role: Role,
    /// Whether the end is the sender.
    pub is_sender: bool,
    /// The host; in a crossover those of both halves, `vm1, then vm3`.
    pub host: String,
    /// The interface.
    pub interface: String,
    /// Packets by queue, including idle queues that the end used; empty without counters by queue.
    pub queues: BTreeMap<u32, u64>,
    /// Number of queues in the plan; absent when the plan leaves it open.
    pub planned_queues: Option<u32>,
    /// Number of flows: at most as many cores can share the packets at a time.
    pub flows: u32,
    /// Packets by core; empty without counters by core.
    pub cores: BTreeMap<u16, u64>,
    /// Cores that the end's threads were pinned to.
    pub pinned: Vec<u16>,
    /// Number of threads that moved the packets; absent where the kernel does not account for them.
    pub threads: Option<u32>,
    /// Busy fraction of each of the cores above, from any work: all classes of CPU time except steal and idle.
    pub busy: BTreeMap<u16, f64>,
    /// NUMA node of the interface; absent where it has none.
    pub interface_node: Option<u32>,
    /// NUMA node of each of the cores above; empty on a machine with one node.
    pub core_nodes: BTreeMap<u16, u32>,
    /// XDP mode of a receiver; absent for other receivers, and where the kernel does not report it.
    pub mode: Option<XdpMode>,
    /// What testpmd reported of itself in the first trial that has it; absent for other ends.
    pub dpdk: Option<DpdkReport>,
    /// Whether an AF_XDP end ran in zero-copy mode; absent for other ends.
    pub zero_copy: Option<bool>,
    /// Whether the interface was seen to split the joined datagrams of a sender in a trial; absent at other ends.
    pub splits_datagrams: Option<bool>,
    /// Whether the driver of the interface can share frames with AF_XDP sockets; absent where the kernel does not report it.
    pub driver_shares_frames: Option<bool>,
}

/// The entry with the largest share of an uneven distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uneven<K> {
    /// The queue or core.
    pub most: K,
    /// Its share of the packets.
    pub share: f64,
    /// The share in an even distribution.
    pub even: f64,
}

impl PacketSpread {
    /// The queue with far more than its share.
    pub fn uneven_queue(&self) -> Option<Uneven<u32>> {
        uneven(&self.queues, self.planned_queues)
    }

    /// The core with far more than its share.
    pub fn uneven_core(&self) -> Option<Uneven<u16>> {
        uneven(&self.cores, Some(self.flows))
    }
}

/// `expected`: the number of queues or cores in use, when it is known.
fn uneven<K: Ord + Copy>(packets: &BTreeMap<K, u64>, expected: Option<u32>) -> Option<Uneven<K>> {
    let all: u64 = packets.values().total();
    let (most, count) = packets.iter().max_by_key(|(_, count)| **count)?;
    let several = expected.map_or(packets.len(), |expected| packets.len().min(expected as usize)).max(1);
    let (share, even) = (*count as f64 / all.max(1) as f64, 1.0 / several as f64);
    (several > 1 && all >= PACKETS_MIN && share >= even * UNEVEN).then_some(Uneven {
        most: *most,
        share,
        even,
    })
}

/// What the snapshot of a host has of the interface and the cores of an end.
#[derive(Debug, Clone, PartialEq, Default)]
struct Facts {
    /// Number of queues in the direction of the packets.
    queues: Option<u32>,
    interface_node: Option<u32>,
    /// NUMA node of each core; empty on a machine with one node.
    core_nodes: BTreeMap<u16, u32>,
    driver_shares_frames: Option<bool>,
}

impl Facts {
    fn of(host: &HostSnapshot, interface: &str, is_sender: bool) -> Self {
        let device = host.interfaces.iter().find(|device| device.name == interface);
        let nodes = if host.numa_nodes.len() > 1 { host.numa_nodes.as_slice() } else { &[] };
        let features = device.and_then(|device| device.device.xdp.as_ref());
        Self {
            queues: device.and_then(|device| if is_sender { device.tx_queues } else { device.rx_queues }),
            interface_node: device.and_then(|device| device.device.numa_node),
            // A run file may have a core in several nodes: the first counts.
            core_nodes: nodes
                .iter()
                .rev()
                .flat_map(|node| node.cores.iter().map(|core| (*core, node.number)))
                .collect(),
            driver_shares_frames: features.map(|features| features.contains(&XdpFeature::XskZerocopy)),
        }
    }
}

/// The distribution at an end; absent when no trial has the end. Without facts of a host where they differ in the two halves of a crossover.
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
            total::add(queues.entry(queue).or_default(), one.packets);
        }
        if let Some(core) = one.core {
            total::add(cores.entry(core).or_default(), one.packets);
        }
    }
    let facts = Halves::new(around.plan, around.arm, |pair| {
        let host = around.hosts.get(pair.host(role));
        host.map(|host| Facts::of(host, &interface, is_sender)).unwrap_or_default()
    });
    let facts = facts.of_all(trials).cloned().unwrap_or_default();
    if queues.is_empty() {
        queues = by_driver(role, is_sender, &interface, around);
        // Drivers omit counters that are zero; idle queues count for the even share.
        if !queues.is_empty() {
            let count = facts.queues.unwrap_or(0).min(IDLE_QUEUES_MAX);
            (0..count).for_each(|queue| _ = queues.entry(queue).or_default());
        }
    }
    let mut pinned: Vec<u16> =
        ends.iter().flat_map(|end| &end.report.streams).filter_map(|stream| stream.core).collect();
    pinned.sort_unstable();
    pinned.dedup();
    // Without CPU time of its machines where they are one in some trials only.
    let is_shared = around.machines.shared_in_all(&around.arm.name, trials).unwrap_or_default();
    let busy_share = |core: u16| busy(role, core, (is_shared, around.shares));
    let [client, server] = around.host_words;
    let named = || cores.keys().copied().chain(pinned.iter().copied());
    Some(PacketSpread {
        role,
        is_sender,
        host: match role {
            Role::Client => client.clone(),
            Role::Server => server.clone(),
        },
        planned_queues: path.queues,
        flows,
        busy: named().filter_map(|core| Some((core, busy_share(core)?))).collect(),
        interface_node: facts.interface_node,
        core_nodes: named().filter_map(|core| Some((core, *facts.core_nodes.get(&core)?))).collect(),
        mode: ends.iter().find_map(|end| end.report.packets.as_ref()?.mode),
        dpdk: ends.iter().find_map(|end| end.report.dpdk.clone()),
        zero_copy: ends.iter().find_map(|end| end.report.packets.as_ref()?.zero_copy),
        splits_datagrams: ends.iter().filter_map(|end| end.report.packets.as_ref()?.segmentation).max(),
        driver_shares_frames: facts.driver_shares_frames,
        threads: ends.iter().filter_map(|end| end.report.thread_use).map(|used| used.threads).max(),
        interface,
        queues,
        cores,
        pinned,
    })
}

/// Packets by queue from the driver's counters, for an end that used the network stack.
fn by_driver(role: Role, is_sender: bool, interface: &str, around: Surroundings<'_>) -> BTreeMap<u32, u64> {
    let seen = around.queues.iter().find(|seen| seen.role == role && seen.interface == interface);
    seen.map(|seen| if is_sender { seen.sent.clone() } else { seen.received.clone() }).unwrap_or_default()
}

/// The busy fraction of a core of an end's machine; both ends may share it.
fn busy(role: Role, core: u16, (shared, machines): (bool, &[Machine])) -> Option<f64> {
    let machine = match (shared, role) {
        (true, _) | (false, Role::Client) => machines.first()?,
        (false, Role::Server) => machines.get(1)?,
    };
    machine.cores.iter().find(|one| one.core == core).map(CoreShare::busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_of_a_core_has_what_its_kernel_did_not_account_for() {
        let machine = |unaccounted| {
            let core = CoreShare { core: 3, system: 0.25, steal: 0.125, unaccounted, ..CoreShare::default() };
            Machine { title: String::new(), cores: vec![core] }
        };
        let machines = [machine(0.5), machine(0.0)];
        let busy = |role, core, shared| busy(role, core, (shared, machines.as_slice()));
        assert_eq!((busy(Role::Client, 3, false), busy(Role::Server, 3, false)), (Some(0.75), Some(0.25)));
        assert_eq!((busy(Role::Server, 3, true), busy(Role::Client, 4, false)), (Some(0.75), None));
    }

    #[test]
    fn distribution_is_uneven_from_25_percent_above_the_even_share() {
        let spread = |packets: &[u64]| {
            let queues: BTreeMap<u32, u64> =
                packets.iter().enumerate().map(|(queue, count)| (queue as u32, *count)).collect();
            uneven(&queues, None)
        };
        assert_eq!(spread(&[2000, 1900, 2000, 4100]), Some(Uneven { most: 3, share: 0.41, even: 0.25 }));
        assert_eq!(spread(&[2500, 2600, 2400, 2500]), None);
        // An idle queue counts for the even share.
        assert_eq!(spread(&[0, 5000]).map(|uneven| uneven.most), Some(1));
        assert_eq!(spread(&[5000]), None);
        // Queues beyond the expected number do not count.
        let one = BTreeMap::from([(0_u32, 5000_u64), (1, 0), (2, 0)]);
        assert_eq!(uneven(&one, Some(1)), None);
        assert_eq!(uneven(&one, Some(2)).map(|uneven| uneven.even), Some(0.5));
        assert_eq!(spread(&[0, 500]), None, "too few packets");
    }
}
