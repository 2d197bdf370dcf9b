//! Queues: how many, on which cores their interrupts are served, how receive side scaling and steering spread the work.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::plan::tuning::core_mask;
use netduel_model::snapshot::{HostSnapshot, Interface, QueueInterrupt};

use super::finding::{Finding, Severity};
use super::nic::{carriers, queue_count};
use crate::words::ranges;

/// A machine of fewer cores loses little by one queue.
const MANY_CORES: u32 = 4;
/// Some drivers spread over so many queues at most, however many there are (ixgbe's `ixgbe_rss_indir_tbl_max`).
const SPREAD_MOST: u32 = 16;
/// Rings shorter than this drop bursts; a device that has no longer ones cannot be helped.
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
        moved(host, interface),
    ];
    found.into_iter().flatten().collect()
}

fn more_queues(interface: &Interface, wanted: u32) -> String {
    let combined = interface.device.channels.is_none_or(|channels| channels.combined.1 > 0);
    format!("ethtool -L {} {} {wanted}", interface.name, if combined { "combined" } else { "rx" })
}

fn number(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let (now, most) = queue_count(interface)?;
    let name = &interface.name;
    let wanted = host.cores.min(most.unwrap_or(host.cores));
    // The threads of a physical core share its time: a queue for each core is as good (Documentation/networking/scaling.rst).
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
                .why("one core receives every packet, and is the limit before the path is");
        return Some(if wanted > 1 {
            finding.remedy("use more queues").command(more_queues(interface, wanted))
        } else {
            finding
                .remedy(
                    "the device has no more: ask its hypervisor for queues (QEMU: mq=on,queues=N), or spread received packets by RPS where \
                     many flows are processed",
                )
                .command(format!("echo {} > /sys/class/net/{name}/queues/rx-0/rps_cpus", core_mask(&(0..host.cores as u16).collect::<Vec<_>>())))
        });
    }
    (now < wanted).then(|| {
        // Half of the cores is the default of many drivers, one for each pair of threads.
        let severity = if now * 2 < wanted { Severity::Warning } else { Severity::Note };
        Finding::new("few-queues", severity, format!("{name} uses {now} queues and could use {wanted}"))
            .on(name)
            .seen(evidence)
            .why("cores without a queue take no packets, so many streams reach less than the device can")
            .remedy("use as many queues as there are cores, or physical cores")
            .command(more_queues(interface, wanted))
    })
}

/// The interrupts of queues, each with the cores that serve it.
fn of_queues(interface: &Interface) -> Vec<&QueueInterrupt> {
    let has = |interrupt: &&QueueInterrupt| interrupt.queue.is_some() && !interrupt.cores.is_empty();
    interface.device.interrupts.iter().filter(has).collect()
}

/// Whether all queues are served by fewer cores than could. An interrupt that may go to several cores goes to one of them at a
/// time, and which is the kernel's or irqbalance's choice: such are counted for all of theirs.
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
        by_core.iter().map(|(core, count)| format!("core {core} serves {count}")).collect();
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
            format!("{count} cores serve the interrupts of {} queues of {name}", queues.len()),
        ),
    };
    let usable: Vec<u16> = node_cores(host, interface).unwrap_or_else(|| (0..host.cores as u16).collect());
    let commands: Vec<String> = interrupts
        .iter()
        .zip(usable.iter().cycle())
        .filter_map(|(interrupt, core)| serve(interface, interrupt, *core))
        .collect();
    let remedy = if interrupts.iter().all(|interrupt| is_channel(interrupt)) {
        "serve each queue on a core of its own"
    } else {
        "serve each queue on a core of its own (stop irqbalance first, or it moves them again)"
    };
    let finding = Finding::new(id, Severity::Warning, what)
        .on(name)
        .seen(counts.join(", "))
        .seen(format!("{} queues, {} cores online", queues.len(), host.cores))
        .why("the other cores receive nothing, so more streams give no more throughput")
        .remedy(remedy);
    Some(with_commands(finding, &commands))
}

/// The cores of the device's own node, when the machine has several.
fn node_cores(host: &HostSnapshot, interface: &Interface) -> Option<Vec<u16>> {
    let number = interface.device.node.filter(|_| host.nodes.len() > 1)?;
    let node = host.nodes.iter().find(|node| node.number == number)?;
    (!node.cores.is_empty()).then(|| node.cores.clone())
}

fn node_of_interrupts(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let near = node_cores(host, interface)?;
    let node = interface.device.node?;
    let interrupts = of_queues(interface);
    let far: Vec<&&QueueInterrupt> = interrupts
        .iter()
        .filter(|interrupt| interrupt.cores.iter().all(|core| !near.contains(core)))
        .collect();
    if far.is_empty() {
        return None;
    }
    // More queues than the node has cores have to be served elsewhere; when none is near, nobody meant it so.
    let severity = if far.len() == interrupts.len() { Severity::Warning } else { Severity::Note };
    let name = &interface.name;
    let cores = ranges(far.iter().flat_map(|interrupt| interrupt.cores.iter().copied()));
    let what = format!(
        "{} of {} queues of {name} are served away from its node {node}",
        far.len(),
        interrupts.len()
    );
    let own = ranges(near.iter().copied());
    let commands: Vec<String> = far
        .iter()
        .zip(near.iter().cycle())
        .filter_map(|(interrupt, core)| serve(interface, interrupt, *core))
        .collect();
    let finding = Finding::new("interrupts-on-other-node", severity, what)
        .on(name)
        .seen(format!("{name} is on node {node} (cores {own}); they are served by cores {cores}"))
        .why("received packets cross between the nodes once more before a program reads them")
        .remedy("serve them on the device's own node, as long as that has cores to spare");
    Some(with_commands(finding, &commands))
}

fn with_commands(finding: Finding, commands: &[String]) -> Finding {
    if commands.is_empty() { finding } else { finding.command(commands.join("; ")) }
}

/// Whether it is a channel of the vmbus: no interrupt has its number, or another device's has.
fn is_channel(interrupt: &QueueInterrupt) -> bool {
    interrupt.name.is_empty()
}

/// The command that has a core serve an interrupt or a channel (Documentation/ABI/stable/sysfs-bus-vmbus); absent for a channel whose
/// device is unknown.
fn serve(interface: &Interface, interrupt: &QueueInterrupt, core: u16) -> Option<String> {
    let number = interrupt.number;
    if !is_channel(interrupt) {
        return Some(format!("echo {core} > /proc/irq/{number}/smp_affinity_list"));
    }
    let device = interface.device.bus.as_deref()?;
    Some(format!("echo {core} > /sys/bus/vmbus/devices/{device}/channels/{number}/cpu"))
}

/// The indirection table of receive side scaling: a hash picks an entry, and the entry names a queue.
fn scaling(interface: &Interface) -> Option<Finding> {
    let entries = &interface.device.rss_entries;
    let (queues, _) = queue_count(interface)?;
    let all: u32 = entries.iter().sum();
    if all == 0 || queues < 2 {
        return None;
    }
    let share = |queue: u32| entries.get(queue as usize).copied().unwrap_or(0);
    let idle: Vec<u16> = (0..queues).filter(|queue| share(*queue) == 0).map(|queue| queue as u16).collect();
    let most = entries.iter().copied().max().unwrap_or(0);
    // A table whose size is no multiple of the queues gives some of them one entry more.
    let fair = all.div_ceil(queues);
    if idle.is_empty() && most <= fair + fair / 4 + 1 {
        return None;
    }
    let name = &interface.name;
    let seen = entries
        .iter()
        .enumerate()
        .map(|(queue, count)| format!("queue {queue}: {count}"))
        .collect::<Vec<_>>();
    // Even over the first 16 of more: that may be as far as the driver goes.
    let first = &entries[..entries.len().min(SPREAD_MOST as usize)];
    let even = first.iter().min().copied().unwrap_or(0) + 1 >= most && first.iter().sum::<u32>() == all;
    let is_drivers = queues > SPREAD_MOST && first.len() == SPREAD_MOST as usize && even;
    let (severity, what) = if is_drivers {
        (Severity::Note, format!("receive side scaling of {name} uses {SPREAD_MOST} of {queues} queues"))
    } else {
        (Severity::Warning, format!("receive side scaling of {name} favours some queues"))
    };
    let finding = Finding::new("rss-imbalance", severity, what)
        .on(name)
        .seen(format!("entries of the indirection table: {}; even were {fair} each", seen.join(", ")));
    let finding = if idle.is_empty() {
        finding
    } else {
        finding.seen(format!("queues without an entry: {}", ranges(idle)))
    };
    Some(
        finding
            .why("flows pile up on the favoured queues and their cores")
            .remedy(if is_drivers {
                "spread the table over all queues, as far as the driver allows: some take no more than 16, and refuse"
            } else {
                "spread the table evenly over the queues in use"
            })
            .command(format!("ethtool -X {name} equal {queues}")),
    )
}

/// RPS moves packets between cores in software, where the device could spread them itself.
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
        Finding::new("rps-beside-queues", Severity::Note, format!("RPS moves packets of {name} to other cores although it has {queues} queues"))
            .on(name)
            .seen(format!("RPS is on for queues {}", ranges(steered)))
            .why("each packet is handed to another core by an interrupt; with offloads on that costs throughput (35.6 to 25.1 Gbit/s in our lab)")
            .remedy("turn RPS off where the device spreads flows itself")
            .command(format!("for q in /sys/class/net/{name}/queues/rx-*; do echo 0 > $q/rps_cpus; done")),
    )
}

fn rings(interface: &Interface) -> Option<Finding> {
    // Those of the paravirtual driver of Hyper-V are sections of a buffer, not descriptors.
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
            .why("a burst that comes while the core is busy is dropped by the device")
            .remedy("lengthen them, and compare the drops")
            .command(format!("ethtool -G {name} rx {} tx {}", wanted(rings.rx), wanted(rings.tx))),
    )
}

/// Whether irqbalance may move interrupts while a trial runs. It knows nothing of the vmbus' channels.
fn moved(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
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
            "irqbalance runs and may move interrupts between and during trials",
        )
        .on(name)
        .seen(format!("{} interrupts of {name}, each on one core now", interrupts.len()))
        .why("a queue that moves to another core between two trials changes both, which looks like noise")
        .remedy("stop it while you measure")
        .command("systemctl stop irqbalance"),
    )
}
