//! What is said of packets: both ends beside each other, where the missing ones went, which queues and cores had them.
use netduel_model::snapshot::Interface;
use netduel_model::units::{human_bit_rate, human_nanos};
use netduel_model::workload::Workload;

use super::limits::spread;
use super::metric::packet_rate;
use super::text::percent;
use crate::analysis::{Analysis, ArmAnalysis, ArmPackets, PacketSpread, WorkloadAnalysis};
use crate::published;

/// How packets are counted, for people who check.
pub(super) const RULE: &str = "Workloads of type pps count packets one by one at both ends, and each datagram is one. Loss is what was \
    sent less what arrived, each packet once; drops are given to the counter that names them, from the receiver's program outwards, and \
    none to two. What a full ring made a sender wait for was sent later and is no loss. pps is packets per second.";

/// How medians, min and max are counted.
pub(crate) fn rule(settings: &Workload) -> String {
    if settings.traffic.facts().search().is_some() {
        return "a search is many trials: these are the rates and counts of one trial of each search; min and max are of its 100 ms \
                intervals, and its first and last moments are cut"
            .to_owned();
    }
    let timing = &settings.timing;
    format!(
        "median of the trials' steady windows ({} of warm-up and {} of cool-down are cut from each trial of {}); min and max are of \
         the 100 ms intervals within them; counts are totals of all valid trials",
        human_nanos(timing.warmup.0 as f64),
        human_nanos(timing.cooldown.0 as f64),
        timing.duration
    )
}

/// Where an arm's missing packets went, and what else is known of one direction.
pub(crate) fn of_way(way: &ArmPackets) -> Vec<String> {
    let mut notes = vec![lost(way)];
    notes.extend(way.back_pressure.filter(|times| *times > 0).map(|times| {
        format!(
            "the {} waited {times} times for a full ring or queue of its interface: back-pressure, not loss",
            way.sender
        )
    }));
    notes.extend(
        way.not_taken.filter(|packets| *packets > 0).map(|packets| {
            format!("the device refused {packets} packets of testpmd: back-pressure, not loss")
        }),
    );
    notes.extend(way.line.as_ref().map(|line| {
        format!(
            "the received packets used {} of the {} of {}, each {} B frame with 20 B of preamble and gap",
            percent(line.share),
            human_bit_rate(line.bps),
            line.interface,
            way.path.frame
        )
    }));
    notes
}

/// Loss from both ends, and who counted it.
fn lost(way: &ArmPackets) -> String {
    let (sent, received) = (way.sent_count, way.received_count);
    let (Some(missing), Some(places)) = (sent.checked_sub(received), &way.lost) else {
        return format!("{received} packets received of {sent} sent: the record is inconsistent");
    };
    if missing == 0 {
        return format!("0 of {sent} packets lost");
    }
    let share = percent(missing as f64 / sent.max(1) as f64);
    let places: Vec<String> = places
        .iter()
        .map(|lost| match &lost.place {
            Some(place) => format!("{} counted as {place}", lost.packets),
            None => format!("{} not counted by either host", lost.packets),
        })
        .collect();
    format!("{missing} of {sent} packets lost ({share}): {}", places.join(", "))
}

/// Which queues and cores of each end had an arm's packets; empty where it is not about packets.
pub(super) fn spreads(arm: &ArmAnalysis) -> Vec<String> {
    arm.packets.iter().flat_map(|way| &way.spread).map(|end| of_end(arm, end)).collect()
}

fn of_end(arm: &ArmAnalysis, end: &PacketSpread) -> String {
    let verb = if end.is_sender { "sent" } else { "received" };
    let mut parts = Vec::new();
    parts.extend(spread(&end.queues).map(|said| format!("{verb} by queue {said}")));
    parts.extend(end.uneven_queue().map(|uneven| {
        let what = if end.is_sender { "transmit" } else { "receive" };
        let (share, even) = (percent(uneven.share), percent(uneven.even));
        format!("unevenly: {what} queue {} had {share} of the packets, an even share is {even}", uneven.most)
    }));
    if end.cores.is_empty() {
        let softnet = arm.queues.iter().find(|seen| seen.role == end.role && !end.is_sender);
        parts.extend(
            softnet.and_then(|seen| spread(&seen.cores)).map(|said| format!("processed by core {said}")),
        );
    } else {
        parts.extend(spread(&end.cores).map(|said| format!("{verb} on core {said}")));
        parts.extend(end.uneven_core().map(|uneven| {
            let (share, even) = (percent(uneven.share), percent(uneven.even));
            format!("unevenly: core {} had {share} of the packets, an even share is {even}", uneven.most)
        }));
    }
    let list = |cores: &[u16]| cores.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    if !end.pinned.is_empty() {
        parts.push(format!("threads pinned to core {}", list(&end.pinned)));
    } else if let Some(threads) = end.threads {
        parts.push(match threads {
            1 => "1 thread, placed by the kernel".to_owned(),
            threads => format!("{threads} threads, placed by the kernel"),
        });
    }
    if !end.busy.is_empty() {
        let busy: Vec<String> =
            end.busy.iter().map(|(core, share)| format!("{core} {}", percent(*share))).collect();
        parts.push(format!("busy share of core {}", busy.join(", ")));
    }
    parts.extend(away(end));
    parts.extend(end.mode.map(|mode| format!("XDP in {} mode", mode.word())));
    parts.extend(
        end.dpdk.as_ref().map(|dpdk| format!("by testpmd of DPDK {} as port {}", dpdk.version, dpdk.port)),
    );
    parts.extend(end.zero_copy.map(|zero| {
        if zero {
            "frames shared with the driver (zero copy)"
        } else {
            "frames copied between driver and program"
        }
        .to_owned()
    }));
    let PacketSpread { role, host, interface, .. } = end;
    format!("{}: {interface} of {role} {host}: {}", arm.arm, parts.join("; "))
}

/// Nodes of the cores against that of the interface.
fn away(end: &PacketSpread) -> Option<String> {
    let node = end.interface_node?;
    let far: Vec<String> = end
        .core_nodes
        .iter()
        .filter(|(_, own)| **own != node)
        .map(|(core, own)| format!("{core} on node {own}"))
        .collect();
    (!end.core_nodes.is_empty()).then(|| {
        if far.is_empty() {
            format!("all of these cores are on the interface's node {node}")
        } else {
            format!("away from the interface, which is on node {node}: core {}", far.join(", "))
        }
    })
}

/// What is to be known of a run's packets beside its figures: uneven spreads, cores away from their interface, what virtual wires are.
pub fn packets_commentary(analysis: &Analysis) -> Vec<String> {
    let arms = || {
        analysis.workloads.iter().flat_map(|workload| workload.arms.iter().map(move |arm| (workload, arm)))
    };
    let mut sentences = Vec::new();
    for (workload, arm) in arms() {
        for end in arm.packets.iter().flat_map(|way| &way.spread) {
            let what = if end.is_sender { "transmit" } else { "receive" };
            let whose = format!("In {} of {}", workload.name, arm.arm);
            sentences.extend(end.uneven_queue().map(|uneven| {
                let (share, even) = (percent(uneven.share), percent(uneven.even));
                let (queue, host) = (uneven.most, &end.host);
                format!("{whose} {what} queue {queue} of {host} had {share} of the packets, where an even share is {even}.")
            }));
            let away = end.interface_node.filter(|node| end.core_nodes.values().any(|own| own != node));
            sentences.extend(away.map(|node| {
                format!("{whose} cores of {} worked away from their interface's NUMA node {node}.", end.host)
            }));
        }
    }
    if arms().flat_map(|(_, arm)| &arm.packets).any(|way| way.loss().is_some_and(|loss| loss > 0.0)) {
        sentences.push(
            "Where more was sent than received, what the receiver took is the measure of the path."
                .to_owned(),
        );
    }
    let ends = || arms().flat_map(|(_, arm)| &arm.packets).flat_map(|way| &way.spread);
    let is_veth = |interface: &Interface| {
        interface.kind.as_deref() == Some("veth") && ends().any(|end| end.interface == interface.name)
    };
    if analysis.inspection.hosts.iter().flat_map(|host| &host.snapshot.interfaces).any(is_veth) {
        sentences.push(
            "These packets crossed virtual Ethernet pairs (veth) within one machine: what sends does much of the receiver's work, too, \
             and no wire or NIC takes part. The figures are those of this machine's software and say nothing of hardware."
                .to_owned(),
        );
    }
    sentences
}

/// What others published of the same size of machine, beside what an arm reached; empty where nothing is known.
pub fn published(workload: &WorkloadAnalysis, size: Option<&str>) -> Vec<String> {
    let Some(size) = size else { return Vec::new() };
    let figures = published::of_size(size);
    let mut sentences = Vec::new();
    for arm in &workload.arms {
        for (way, figure) in arm.packets.iter().flat_map(|way| figures.iter().map(move |one| (way, one))) {
            let is_alike = way.path.frame == figure.frame && arm.search.is_none();
            let Some(received) = way.received.filter(|_| is_alike) else { continue };
            sentences.push(format!(
                "{} of {}: {} received here, {} of the {} that {} has for {} ({}; it sent {})",
                workload.name,
                arm.arm,
                packet_rate(received.median),
                percent(received.median / figure.receiver_pps),
                packet_rate(figure.receiver_pps),
                figure.source,
                figure.size,
                figure.conditions,
                packet_rate(figure.sender_pps)
            ));
        }
    }
    sentences
}
