//! Texts about packets: loss by location, queue and CPU distribution, commentary.
use netduel_model::published;
use netduel_model::shell;
use netduel_model::snapshot::Interface;
use netduel_model::units::{human_bit_rate, human_nanos};
use netduel_model::workload::{Role, SAMPLE_INTERVAL_NS, Workload};

use super::limits::{QueueRow, spread};
use super::metric::packet_rate;
use super::text::{end_and_host, percent};
use crate::analysis::{Analysis, ArmAnalysis, ArmPackets, LostPackets, PacketSpread, WorkloadAnalysis};
use crate::total::Total;

/// With a smaller share of lost packets the sender, not the path, is the limit.
const LOSS_OF_CAPACITY: f64 = 0.001;
/// A received rate that exceeds the sent one by this fraction is explained.
const RECEIVED_MORE: f64 = 0.01;

/// How packets are counted.
pub(super) const RULE: &str = "Workloads of type pps count every packet at both ends; each datagram is a packet. Loss is packets sent \
    minus unique packets received. Each lost packet is assigned to one drop counter, in order from the receiver's program to the sender. \
    Packets that waited for a full ring were sent later and are not lost. pps is packets per second.";

/// How medians, min and max are counted.
pub(crate) fn rule(settings: &Workload) -> String {
    let intervals = format!(
        "intervals of about {} (longer where the sampler was delayed)",
        human_nanos(SAMPLE_INTERVAL_NS as f64)
    );
    if settings.traffic.facts().search().is_some() {
        return format!(
            "rates and counts of one step of each search; min and max over its {intervals}, without its warm-up and cool-down"
        );
    }
    let timing = &settings.timing;
    format!(
        "median over the steady windows of the trials (trials of {}, of which {} warm-up and {} cool-down are excluded); min and max over \
         the {intervals} of these windows; counts are totals of all valid trials",
        timing.duration,
        human_nanos(timing.warmup.0 as f64),
        human_nanos(timing.cooldown.0 as f64)
    )
}

/// Loss of one direction by location, back-pressure and share of the line rate.
pub(crate) fn of_way(way: &ArmPackets) -> Vec<String> {
    let mut notes = vec![lost(way)];
    notes.extend(received_more(way));
    notes.extend(way.back_pressure.filter(|times| *times > 0).map(|times| {
        format!(
            "the {} waited {times} times for a full ring or queue of its interface: back-pressure, not loss",
            way.sender
        )
    }));
    notes.extend(
        way.device_rejected.filter(|packets| *packets > 0).map(|packets| {
            format!("the device rejected {packets} packets of testpmd: back-pressure, not loss")
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

/// The reason for a received rate above the sent rate.
fn received_more(way: &ArmPackets) -> Option<String> {
    let (sent, received) = (way.sent?.median, way.received?.median);
    (received > sent * (1.0 + RECEIVED_MORE)).then(|| {
        "the received rate exceeds the sent rate because each end measures a steady window from its own start, and packets that waited \
         in buffers count when they are read; the totals are exact"
            .to_owned()
    })
}

/// Loss by location.
fn lost(way: &ArmPackets) -> String {
    let (sent, received) = (way.sent_count, way.received_count);
    let (Some(missing), Some(places)) = (sent.checked_sub(received), &way.lost) else {
        return format!("{received} packets received of {sent} sent: the record is inconsistent");
    };
    if missing == 0 {
        return format!("lost in total: 0 of {sent} packets");
    }
    let share = percent(missing as f64 / sent.max(1) as f64);
    let places: Vec<String> = places
        .iter()
        .map(|lost| match &lost.place {
            Some(place) => format!("{} counted as {place}", lost.packets),
            None => format!("{} not counted by either host", lost.packets),
        })
        .collect();
    format!("lost in total: {missing} of {sent} packets ({share}): {}", places.join(", "))
}

/// Queue and CPU distribution of an arm's packets at each end; empty for other workloads.
pub(super) fn spreads(arm: &ArmAnalysis) -> Vec<QueueRow> {
    arm.packets.iter().flat_map(|way| &way.spread).map(|end| of_end(arm, end)).collect()
}

fn of_end(arm: &ArmAnalysis, end: &PacketSpread) -> QueueRow {
    QueueRow {
        arm: arm.arm.to_string(),
        end: end_and_host(end.role, &end.host),
        interface: end.interface.clone(),
        queues: spread(&end.queues),
        cores: spread(&end.cores),
        remarks: remarks(end),
    }
}

/// How an AF_XDP end had its frames, and why it had copies.
fn frames(is_zero_copy: bool, driver_shares_frames: Option<bool>) -> &'static str {
    match (is_zero_copy, driver_shares_frames) {
        (true, _) => "zero copy",
        (false, None) => "frames copied between driver and program",
        (false, Some(false)) => {
            "frames copied between driver and program, because the driver has no zero copy (feature xsk-zerocopy)"
        }
        (false, Some(true)) => {
            "frames copied between driver and program, because the driver refused zero copy on these queues"
        }
    }
}

fn remarks(end: &PacketSpread) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(end.uneven_queue().map(|uneven| {
        let what = if end.is_sender { "transmit" } else { "receive" };
        let (share, even) = (percent(uneven.share), percent(uneven.even));
        format!("uneven: {what} queue {} had {share} of the packets (even share {even})", uneven.most)
    }));
    parts.extend(end.uneven_core().filter(|_| !end.cores.is_empty()).map(|uneven| {
        let (share, even) = (percent(uneven.share), percent(uneven.even));
        format!("uneven: core {} had {share} of the packets (even share {even})", uneven.most)
    }));
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
        parts.push(format!("busy cores: {}", busy.join(", ")));
    }
    parts.extend(away(end));
    parts.extend(end.mode.map(|mode| format!("XDP in {} mode", mode.word())));
    parts.extend(
        end.dpdk.as_ref().map(|dpdk| format!("testpmd of DPDK {}, port {}", dpdk.version, dpdk.port)),
    );
    parts.extend(end.zero_copy.map(|zero| frames(zero, end.driver_shares_frames).to_owned()));
    parts
}

/// What the received rate is the capacity of: the part that dropped most of the lost packets. Absent below [`LOSS_OF_CAPACITY`].
fn capacity_of(way: &ArmPackets) -> Option<String> {
    way.loss().filter(|loss| *loss >= LOSS_OF_CAPACITY)?;
    if let Some(faulty) = way.spread.iter().find(|end| end.is_sender && end.splits_datagrams == Some(true))
        && way.received_count == 0
    {
        let interface = &faulty.interface;
        return Some(format!(
            "No packet arrived. The {} joins datagrams, because its interface {interface} was seen to split them into packets; if packets \
             arrive after `ethtool -K {} tx-udp-segmentation off` on it, the segmentation offload of the interface is faulty",
            end_and_host(faulty.role, &faulty.host),
            shell::word(interface)
        ));
    }
    let lost = way.lost.as_ref()?;
    let all: u64 = lost.iter().map(|lost| lost.packets).total();
    let dropped_by = |end: Option<Role>| -> u64 {
        lost.iter().filter(|lost| lost.end == end).map(|lost| lost.packets).total()
    };
    let parts = [None, Some(way.sender), Some(way.sender.opposite())].map(|end| (end, dropped_by(end)));
    let (end, packets) = parts.into_iter().max_by_key(|(_, packets)| *packets)?;
    let share = percent(packets as f64 / all.max(1) as f64);
    Some(match end {
        None if lost.iter().any(LostPackets::are_counted_as_buffers) => format!(
            "{share} of the lost packets were not counted by either host. The qdisc of the sender dropped buffers and counts each as one \
             packet, although a segmented buffer holds several: the sent rate contains packets that never left the sender"
        ),
        None => format!(
            "{share} of the lost packets were not counted by either host: the received rate is the capacity of the path between them"
        ),
        Some(end) if end == way.sender => format!(
            "{share} of the lost packets were dropped at the sender: the received rate is the capacity of the sender's interface, not \
             of the path"
        ),
        Some(_) => format!(
            "{share} of the lost packets were dropped at the receiver: the received rate is the capacity of the receiver, not of the path"
        ),
    })
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
            format!("all cores on NUMA node {node} of the interface")
        } else {
            format!("interface on NUMA node {node}, but core {}", far.join(", core "))
        }
    })
}

/// Remarks on a run's packets: uneven distribution, cores on another NUMA node than the interface, virtual interfaces.
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
                format!("{whose}, {what} queue {queue} of {host} had {share} of the packets; an even share is {even}.")
            }));
            let away = end.interface_node.filter(|node| end.core_nodes.values().any(|own| own != node));
            sentences.extend(away.map(|node| {
                format!("{whose}, cores of {} were not on NUMA node {node} of their interface.", end.host)
            }));
        }
    }
    for (workload, arm) in arms() {
        let ends = arm.packets.iter().filter_map(|way| {
            let what = capacity_of(way)?;
            Some(format!("In {} of {}, {what}.", workload.name, arm.arm))
        });
        sentences.extend(ends);
    }
    let ends = || arms().flat_map(|(_, arm)| &arm.packets).flat_map(|way| &way.spread);
    let is_veth = |interface: &Interface| {
        interface.kind.as_deref() == Some("veth") && ends().any(|end| end.interface == interface.name)
    };
    if analysis.inspection.hosts.iter().flat_map(|host| &host.snapshot.interfaces).any(is_veth) {
        sentences.push(
            "The packets crossed virtual Ethernet pairs (veth) within one machine. The sending core also does much of the receiver's \
             work, and no cable or NIC takes part. The figures describe the software of this machine, not hardware."
                .to_owned(),
        );
    }
    sentences
}

/// Rates published for the same machine size beside the measured ones; empty where none is known.
pub fn published(workload: &WorkloadAnalysis, size: Option<&str>) -> Vec<String> {
    let Some(size) = size else { return Vec::new() };
    let figures = published::packets_of_size(size);
    let mut sentences = Vec::new();
    for arm in &workload.arms {
        for (way, figure) in arm.packets.iter().flat_map(|way| figures.iter().map(move |one| (way, one))) {
            let is_alike = way.path.frame == figure.frame && arm.search.is_none();
            let Some(received) = way.received.filter(|_| is_alike) else { continue };
            sentences.push(format!(
                "{} of {}: {} received, {} of the published {} for {} ({}; sent {}; {})",
                workload.name,
                arm.arm,
                packet_rate(received.median),
                percent(received.median / figure.receiver_pps),
                packet_rate(figure.receiver_pps),
                figure.size,
                figure.publication.source(),
                packet_rate(figure.sender_pps),
                figure.conditions
            ));
        }
    }
    sentences
}
