//! Queues: their number, the cores that serve their interrupts, and how receive side scaling and steering distribute packets.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::plan::tuning::core_mask;
use netduel_model::shell;
use netduel_model::snapshot::{HostSnapshot, Interface, QueueInterrupt};

use super::finding::{Finding, Severity};
use super::nic::{carriers, queue_count};
use crate::words::ranges;

/// A machine with fewer cores loses little with one queue.
const MANY_CORES: u32 = 4;
/// Some drivers use at most this many queues for RSS (ixgbe's `ixgbe_rss_indir_tbl_max`).
const RSS_QUEUES_MAX: u32 = 16;
/// Rings with fewer descriptors than this drop bursts; a finding only if the device supports more.
const RING_SMALL: u32 = 512;

pub(super) fn find(host: &HostSnapshot) -> Vec<Finding> {
    carriers(host).flat_map(|interface| of_interface(host, interface)).collect()
}

fn of_interface(host: &HostSnapshot, interface: &Interface) -> Vec<Finding> {
    let found = [
        number(host, interface),
        spread(host, interface),
        node_of_interrupts(host, interface),
        scaling(interface),
        steering(interface),
        rings(interface),
        irqbalance(host, interface),
    ];
    found.into_iter().flatten().collect()
}

fn more_queues(interface: &Interface, wanted: u32) -> String {
    let combined = interface.device.channels.is_none_or(|channels| channels.combined.1 > 0);
    format!(
        "ethtool -L {} {} {wanted}",
        shell::word(&interface.name),
        if combined { "combined" } else { "rx" }
    )
}

fn number(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let (now, most) = queue_count(interface)?;
    let name = &interface.name;
    // A driver without channels has no setting for its queues.
    let wanted = host.cores.min(most.unwrap_or(now));
    // Hardware threads share a physical core, so one queue per physical core suffices (Documentation/networking/scaling.rst).
    let physical = host.processor.as_ref().map(|processor| processor.physical_cores.len() as u32);
    let enough = physical.filter(|physical| *physical > 0).unwrap_or(host.cores).min(host.cores);
    if host.cores < 2 || now > 1 && now >= enough || now >= host.cores {
        return None;
    }
    let evidence = match most {
        Some(most) => format!("{now} of at most {most} queues, {} cores", host.cores),
        None => format!("{now} queues, {} cores", host.cores),
    };
    if now == 1 {
        let severity = if host.cores >= MANY_CORES { Severity::Warning } else { Severity::Note };
        let finding =
            Finding::new("one-queue", severity, format!("{name} has one queue for {} cores", host.cores))
                .on(name)
                .seen(evidence)
                .why("one core processes every received packet and is the limit before the path");
        return Some(if wanted > 1 {
            finding.remedy("use more queues").command(more_queues(interface, wanted))
        } else {
            let remedy = match most {
                Some(_) => {
                    "the device has no more queues: configure them in the hypervisor (QEMU: mq=on,queues=N), or distribute received packets \
                     with RPS where there are many flows"
                }
                None => {
                    "the driver has no more queues, and no setting for them: distribute received packets with RPS where there are many flows"
                }
            };
            finding.remedy(remedy).command(format!(
                "echo {} > /sys/class/net/{}/queues/rx-0/rps_cpus",
                core_mask(&(0..host.cores as u16).collect::<Vec<_>>()),
                shell::word(name)
            ))
        });
    }
    (now < wanted).then(|| {
        // Many drivers default to half of the cores: one queue per pair of hardware threads.
        let severity = if now.saturating_mul(2) < wanted { Severity::Warning } else { Severity::Note };
        Finding::new("few-queues", severity, format!("{name} uses {now} of {wanted} possible queues"))
            .on(name)
            .seen(evidence)
            .why(
                "cores without a queue receive no packets, so many streams stay below the rate of the device",
            )
            .remedy("use one queue per core or per physical core")
            .command(more_queues(interface, wanted))
    })
}

/// The interrupts of queues whose cores are known.
fn of_queues(interface: &Interface) -> Vec<&QueueInterrupt> {
    let has = |interrupt: &&QueueInterrupt| interrupt.queue.is_some() && !interrupt.cores.is_empty();
    interface.device.interrupts.iter().filter(has).collect()
}

/// Whether at most half of the possible cores serve the interrupts of all queues. An interrupt that several cores may serve counts
/// for each of them, because the kernel or irqbalance chooses one.
fn spread(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let interrupts = of_queues(interface);
    let queues: BTreeSet<u32> = interrupts.iter().filter_map(|interrupt| interrupt.queue).collect();
    let cores: BTreeSet<u16> =
        interrupts.iter().flat_map(|interrupt| interrupt.cores.iter().copied()).collect();
    let possible = queues.len().min(host.cores as usize);
    if possible < 2 || cores.len() * 2 > possible {
        return None;
    }
    let name = &interface.name;
    let mut by_core: BTreeMap<u16, u32> = BTreeMap::new();
    for interrupt in &interrupts {
        for core in &interrupt.cores {
            *by_core.entry(*core).or_default() += 1;
        }
    }
    let counts: Vec<String> =
        by_core.iter().map(|(core, count)| format!("core {core}: {count} interrupts")).collect();
    let (id, what) = match cores.len() {
        1 => {
            let core = ranges(cores.iter().copied());
            (
                "interrupts-on-one-core",
                format!("core {core} serves the interrupts of all {} queues of {name}", queues.len()),
            )
        }
        count => (
            "interrupts-crowded",
            format!("only {count} cores serve the interrupts of {} queues of {name}", queues.len()),
        ),
    };
    let usable: Vec<u16> = node_cores(host, interface).unwrap_or_else(|| (0..host.cores as u16).collect());
    let commands: Vec<String> = interrupts
        .iter()
        .zip(usable.iter().cycle())
        .filter_map(|(interrupt, core)| serve(interface, interrupt, *core))
        .collect();
    let remedy = if interrupts.iter().all(|interrupt| is_channel(interrupt)) {
        "assign each queue to its own core"
    } else {
        "assign each queue to its own core; stop irqbalance first, because it moves interrupts"
    };
    let finding = Finding::new(id, Severity::Warning, what)
        .on(name)
        .seen(counts.join(", "))
        .seen(format!("{} queues, {} cores online", queues.len(), host.cores))
        .why("the other cores process no received packets, so more streams do not raise throughput")
        .remedy(remedy);
    Some(with_commands(finding, &commands))
}

/// The cores of the device's own node, when the machine has several.
fn node_cores(host: &HostSnapshot, interface: &Interface) -> Option<Vec<u16>> {
    let number = interface.device.numa_node.filter(|_| host.numa_nodes.len() > 1)?;
    let node = host.numa_nodes.iter().find(|node| node.number == number)?;
    (!node.cores.is_empty()).then(|| node.cores.clone())
}

fn node_of_interrupts(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let near = node_cores(host, interface)?;
    let node = interface.device.numa_node?;
    let interrupts = of_queues(interface);
    let far: Vec<&&QueueInterrupt> = interrupts
        .iter()
        .filter(|interrupt| interrupt.cores.iter().all(|core| !near.contains(core)))
        .collect();
    if far.is_empty() {
        return None;
    }
    // Queues beyond the number of cores of the node need other cores. If no queue is local, the assignment is a mistake.
    let severity = if far.len() == interrupts.len() { Severity::Warning } else { Severity::Note };
    let name = &interface.name;
    let cores = ranges(far.iter().flat_map(|interrupt| interrupt.cores.iter().copied()));
    let what =
        format!("cores of other NUMA nodes serve {} of {} queues of {name}", far.len(), interrupts.len());
    let own = ranges(near.iter().copied());
    let commands: Vec<String> = far
        .iter()
        .zip(near.iter().cycle())
        .filter_map(|(interrupt, core)| serve(interface, interrupt, *core))
        .collect();
    let finding = Finding::new("interrupts-on-other-node", severity, what)
        .on(name)
        .seen(format!("{name} is on node {node} (cores {own}); cores {cores} serve these queues"))
        .why("received packets cross between NUMA nodes before a program reads them")
        .remedy("assign them to cores of the device's node, if it has free cores");
    Some(with_commands(finding, &commands))
}

fn with_commands(finding: Finding, commands: &[String]) -> Finding {
    if commands.is_empty() { finding } else { finding.command(commands.join("; ")) }
}

/// Whether it is a channel of the vmbus, whose number is not that of an interrupt.
fn is_channel(interrupt: &QueueInterrupt) -> bool {
    interrupt.name.is_empty()
}

/// The command that assigns an interrupt or a channel (Documentation/ABI/stable/sysfs-bus-vmbus) to a core; absent for a channel
/// whose device is unknown.
fn serve(interface: &Interface, interrupt: &QueueInterrupt, core: u16) -> Option<String> {
    let number = interrupt.number;
    if !is_channel(interrupt) {
        return Some(format!("echo {core} > /proc/irq/{number}/smp_affinity_list"));
    }
    let device = interface.device.bus_address.as_deref()?;
    let file = format!("/sys/bus/vmbus/devices/{device}/channels/{number}/cpu");
    Some(format!("echo {core} > {}", shell::word(&file)))
}

/// The indirection table of receive side scaling: a hash selects an entry, the entry names a queue.
fn scaling(interface: &Interface) -> Option<Finding> {
    let entries = &interface.device.rss_entries;
    let (queues, _) = queue_count(interface)?;
    let all: u64 = entries.iter().copied().map(u64::from).sum();
    if all == 0 || queues < 2 {
        return None;
    }
    let share = |queue: u32| entries.get(queue as usize).copied().unwrap_or(0);
    let numbers = (0..=u16::MAX).take(queues as usize);
    let idle: Vec<u16> = numbers.filter(|queue| share(u32::from(*queue)) == 0).collect();
    let most = u64::from(entries.iter().copied().max().unwrap_or(0));
    // If its size is not a multiple of the number of queues, some queues have one entry more.
    let fair = all.div_ceil(u64::from(queues));
    if idle.is_empty() && most <= fair + fair / 4 + 1 {
        return None;
    }
    let name = &interface.name;
    let seen = entries
        .iter()
        .enumerate()
        .map(|(queue, count)| format!("queue {queue}: {count}"))
        .collect::<Vec<_>>();
    // Even over the first 16 queues: that can be the maximum of the driver.
    let first = &entries[..entries.len().min(RSS_QUEUES_MAX as usize)];
    let sum: u64 = first.iter().copied().map(u64::from).sum();
    let even = u64::from(first.iter().min().copied().unwrap_or(0)) + 1 >= most && sum == all;
    let is_driver_limit = queues > RSS_QUEUES_MAX && first.len() == RSS_QUEUES_MAX as usize && even;
    let (severity, what) = if is_driver_limit {
        (Severity::Note, format!("RSS of {name} uses {RSS_QUEUES_MAX} of {queues} queues"))
    } else {
        (Severity::Warning, format!("RSS of {name} is uneven"))
    };
    let finding = Finding::new("rss-imbalance", severity, what)
        .on(name)
        .seen(format!("entries of the indirection table: {}; an even share is {fair}", seen.join(", ")));
    let finding = if idle.is_empty() {
        finding
    } else {
        finding.seen(format!("queues without an entry: {}", ranges(idle)))
    };
    Some(
        finding
            .why("more flows share the queues with more entries, and their cores")
            .remedy(if is_driver_limit {
                "distribute the table over all queues; drivers with a maximum of 16 refuse this"
            } else {
                "distribute the table evenly over the queues in use"
            })
            .command(format!("ethtool -X {name} equal {queues}", name = shell::word(name))),
    )
}

/// RPS moves packets between cores in software, although the device can distribute them.
fn steering(interface: &Interface) -> Option<Finding> {
    let (queues, _) = queue_count(interface)?;
    let steered: Vec<u16> = interface
        .device
        .receive_steering
        .iter()
        .enumerate()
        .filter(|(_, steering)| !steering.cores.is_empty())
        .map(|(queue, _)| queue as u16)
        .collect();
    if queues < 2 || steered.is_empty() {
        return None;
    }
    let name = &interface.name;
    Some(
        Finding::new("rps-beside-queues", Severity::Note, format!("RPS is on for {name}, which has {queues} queues"))
            .on(name)
            .seen(format!("RPS is on for queues {}", ranges(steered)))
            .why("each packet moves to another core by an interrupt, which costs throughput (35.6 to 25.1 Gbit/s in netduel's lab, with offloads)")
            .remedy("turn RPS off where RSS distributes the flows")
            .command(format!("for q in /sys/class/net/{name}/queues/rx-*; do echo 0 > $q/rps_cpus; done", name = shell::word(name))),
    )
}

fn rings(interface: &Interface) -> Option<Finding> {
    // The rings of Hyper-V's paravirtual driver are sections of a buffer, not descriptors.
    let rings = interface.device.rings.filter(|_| interface.driver.as_deref() != Some("hv_netvsc"))?;
    let small = |(now, most): (u32, u32)| now > 0 && now < RING_SMALL && most >= now.saturating_mul(2);
    if !small(rings.rx) && !small(rings.tx) {
        return None;
    }
    let name = &interface.name;
    let wanted = |(now, most): (u32, u32)| if small((now, most)) { most.min(1024) } else { now };
    Some(
        Finding::new("small-rings", Severity::Note, format!("{name} has short descriptor rings"))
            .on(name)
            .seen(format!(
                "receive {} of at most {}, transmit {} of at most {}",
                rings.rx.0, rings.rx.1, rings.tx.0, rings.tx.1
            ))
            .why("the device drops bursts that arrive while the core is busy")
            .remedy("use longer rings, and compare the drop counters")
            .command(format!(
                "ethtool -G {name} rx {} tx {}",
                wanted(rings.rx),
                wanted(rings.tx),
                name = shell::word(name)
            )),
    )
}

/// Whether irqbalance can move interrupts during a trial. It does not manage channels of the vmbus.
fn irqbalance(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let mut interrupts = of_queues(interface);
    interrupts.retain(|interrupt| !is_channel(interrupt));
    let pinned = interrupts.iter().all(|interrupt| interrupt.cores.len() == 1);
    if host.irqbalance != Some(true) || interrupts.len() < 2 || !pinned {
        return None;
    }
    let name = &interface.name;
    Some(
        Finding::new(
            "irqbalance",
            Severity::Note,
            "irqbalance is running and can move interrupts between and during trials",
        )
        .on(name)
        .seen(format!("{} interrupts of {name}, each on one core", interrupts.len()))
        .why("a queue that moves to another core changes the result, which looks like noise")
        .remedy("stop it during measurements")
        .command("systemctl stop irqbalance"),
    )
}
