//! Packets and datagrams in JSON: each direction of an arm of a packet workload, and each direction of each trial of datagrams.
use std::net::SocketAddr;

use netduel_model::packet_path::{PacketEngine, PacketReceiver, XdpMode};
use netduel_model::workload::Role;
use netduel_stats::histogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

use super::parts::{CorePackets, Point, QueuePackets};
use crate::analysis::{self, ArmPackets, DatagramDirection, PacketSpread};

/// Direction of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathDirection {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl PathDirection {
    fn from(sender: Role) -> Self {
        match sender {
            Role::Client => Self::Up,
            Role::Server => Self::Down,
        }
    }
}

/// Packets of one direction of an arm. Counts are sums over all valid trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PacketDirection {
    /// Direction.
    pub direction: PathDirection,
    /// Generator of the packets.
    pub generator: PacketEngine,
    /// Receiver of the packets.
    pub receiver: PacketReceiver,
    /// Length of a frame with its check sequence.
    pub frame_bytes: u32,
    /// Rate sent; null when no trial has one.
    pub sent_pps: Option<PacketRates>,
    /// Rate received.
    pub received_pps: Option<PacketRates>,
    /// Packets sent.
    pub sent: u64,
    /// Packets received, each once.
    pub received: u64,
    /// Share of the packets that did not arrive; null when none was sent or more arrived.
    pub loss_ratio: Option<f64>,
    /// Lost packets by the counter that counted them; null when more arrived than were sent.
    pub lost: Option<Vec<LostPackets>>,
    /// Times that the sender waited because the ring or queue of its interface was full; null where the generator cannot know.
    pub back_pressure: Option<u64>,
    /// Packets that the device of testpmd refused because its ring was full; null for other generators.
    pub device_rejected: Option<u64>,
    /// Packets that the sender's interface counted; null when the packets bypass its counters.
    pub interface_sent: Option<InterfacePackets>,
    /// Packets that the receiver's interface counted.
    pub interface_received: Option<InterfacePackets>,
    /// Share of the line rate; null for an interface without a wire or of unknown speed.
    pub line: Option<Line>,
    /// Rate sent over the time of a trial.
    pub sent_series_pps: Vec<Point>,
    /// Rate received over the time of a trial.
    pub received_series_pps: Vec<Point>,
    /// Queues and cores of each end, the sender's first.
    pub spread: Vec<Spread>,
}

/// Packet rates of an end, packets per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PacketRates {
    /// Valid trials.
    pub trials: u32,
    /// Median over the trials of the rates of their steady windows.
    pub median: f64,
    /// Intervals that min and max are of: about 100 ms, longer where the sampler was delayed.
    pub intervals: u32,
    /// Minimum interval; null without intervals. Not above the median.
    pub min: Option<f64>,
    /// Maximum interval. Not below the median.
    pub max: Option<f64>,
}

/// Lost packets of one counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LostPackets {
    /// The counter; null for packets that no counter of the two hosts names.
    pub counted_as: Option<String>,
    /// Packets.
    pub packets: u64,
}

/// Packets that an interface counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterfacePackets {
    /// Name of the interface.
    pub interface: String,
    /// Packets.
    pub packets: u64,
}

/// Use of a wire.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Line {
    /// The sender's interface.
    pub interface: String,
    /// Its speed.
    pub speed_bps: f64,
    /// Share of the speed that the received frames take, with preambles and gaps.
    pub used_ratio: f64,
}

/// Packets of an end by queue and core.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Which end.
    pub role: Role,
    /// Host.
    pub host: String,
    /// Interface.
    pub interface: String,
    /// NUMA node of the interface; null where it has none.
    pub interface_node: Option<u32>,
    /// Packets by queue; empty where no counter counts by queue.
    pub queues: Vec<QueuePackets>,
    /// Packets by core; empty where no counter counts by core.
    pub cores: Vec<CorePackets>,
    /// Cores that the threads were pinned to.
    pub pinned: Vec<u16>,
    /// Threads that moved the packets; null where the kernel moved them.
    pub threads: Option<u32>,
    /// How busy cores were.
    pub busy: Vec<BusyCore>,
    /// Where the receiver's XDP program ran; null without one.
    pub mode: Option<XdpMode>,
    /// The DPDK process; null without one.
    pub dpdk: Option<Dpdk>,
    /// Whether an AF_XDP end shared frames with the driver without a copy; null for other ends.
    pub zero_copy: Option<bool>,
}

/// How busy a core was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BusyCore {
    /// Number of the core.
    pub core: u16,
    /// Share of its time, with any work.
    pub busy_ratio: f64,
    /// NUMA node of the core; null on a machine with one.
    pub node: Option<u32>,
}

/// testpmd as it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Dpdk {
    /// Version of DPDK.
    pub version: String,
    /// Version of the rdma-core whose library testpmd had loaded; null without one, and in runs of older versions.
    pub rdma_core: Option<String>,
    /// Name of the port.
    pub port: String,
    /// Command line, word by word.
    pub command: Vec<String>,
}

impl PacketDirection {
    pub(super) fn of(way: &ArmPackets) -> Self {
        let rates = |rates: analysis::PacketRates| PacketRates {
            trials: rates.trials,
            median: rates.median,
            intervals: rates.intervals,
            min: rates.min,
            max: rates.max,
        };
        let interface = |seen: &Option<(String, u64)>| {
            let (interface, packets) = seen.clone()?;
            Some(InterfacePackets { interface, packets })
        };
        let lost = |lost: &analysis::LostPackets| LostPackets {
            counted_as: lost.place.clone(),
            packets: lost.packets,
        };
        Self {
            direction: PathDirection::from(way.sender),
            generator: way.path.engine,
            receiver: way.path.receiver,
            frame_bytes: way.path.frame,
            sent_pps: way.sent.map(rates),
            received_pps: way.received.map(rates),
            sent: way.sent_count,
            received: way.received_count,
            loss_ratio: way.loss(),
            lost: way.lost.as_ref().map(|places| places.iter().map(lost).collect()),
            back_pressure: way.back_pressure,
            device_rejected: way.device_rejected,
            interface_sent: interface(&way.interface_sent),
            interface_received: interface(&way.interface_received),
            line: way.line.as_ref().map(|line| Line {
                interface: line.interface.clone(),
                speed_bps: line.bps,
                used_ratio: line.share,
            }),
            sent_series_pps: Point::all(&way.sent_series),
            received_series_pps: Point::all(&way.received_series),
            spread: way.spread.iter().map(Spread::of).collect(),
        }
    }
}

impl Spread {
    fn of(end: &PacketSpread) -> Self {
        let busy = |(core, share): (&u16, &f64)| BusyCore {
            core: *core,
            busy_ratio: *share,
            node: end.core_nodes.get(core).copied(),
        };
        Self {
            role: end.role,
            host: end.host.clone(),
            interface: end.interface.clone(),
            interface_node: end.interface_node,
            queues: QueuePackets::all(&end.queues),
            cores: CorePackets::all(&end.cores),
            pinned: end.pinned.clone(),
            threads: end.threads,
            busy: end.busy.iter().map(busy).collect(),
            mode: end.mode,
            dpdk: end.dpdk.as_ref().map(|dpdk| Dpdk {
                version: dpdk.version.clone(),
                rdma_core: dpdk.rdma_core.clone(),
                port: dpdk.port.clone(),
                command: dpdk.command.clone(),
            }),
            zero_copy: end.zero_copy,
        }
    }
}

/// One direction of one trial of datagrams.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Datagrams {
    /// Block of the trial, from 1.
    pub block: u32,
    /// Direction.
    pub direction: PathDirection,
    /// Datagrams that the sender's kernel accepted.
    pub sent: u64,
    /// Datagrams that the receiver's program received, each once.
    pub received: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Lost datagrams by location; null when more arrived than were sent.
    pub lost: Option<LostDatagrams>,
    /// Packets that the sender's interface sent; null when no interface is known to have carried the datagrams.
    pub packets_sent: Option<CarriedPackets>,
    /// Packets that the receiver's interface received.
    pub packets_received: Option<CarriedPackets>,
    /// Datagrams per packet of an interface; null when it is not known.
    pub datagrams_per_packet: Option<f64>,
    /// Datagrams handed to the kernel in one call at most; null in runs of old versions.
    pub burst: Option<u32>,
    /// Calls that the kernel refused for lack of room: back-pressure, no loss.
    pub refused: Option<u64>,
    /// The schedule of a sender with a rate; null without a rate.
    pub pacing: Option<Pacing>,
    /// Failed calls of the sender.
    pub sender_errors: Vec<CallError>,
    /// Failed calls of the receiver.
    pub receiver_errors: Vec<CallError>,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// Lost datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LostDatagrams {
    /// All.
    pub total: u64,
    /// Dropped at the receiver's socket, because its program was too slow.
    pub at_receiver_socket: u64,
    /// Dropped by an interface or qdisc of the two hosts.
    pub at_interface: u64,
    /// The others: lost on the path, or not counted by the two hosts.
    pub elsewhere: u64,
}

/// Packets that carried datagrams.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CarriedPackets {
    /// Name of the interface.
    pub interface: String,
    /// Packets.
    pub packets: u64,
    /// Their bytes, with the Ethernet header.
    pub bytes: u64,
    /// Mean length of a packet; null without packets.
    pub bytes_per_packet: Option<f64>,
}

/// How a schedule was kept.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pacing {
    /// Payload rate that the plan sets.
    pub requested_bps: f64,
    /// Payload rate sent; null when the series does not reach the steady window.
    pub sent_bps: Option<f64>,
    /// Lateness of bursts; null in runs of old versions.
    pub late_ns: Option<Lateness>,
}

/// Lateness of bursts, nanoseconds; null without bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lateness {
    /// Bursts.
    pub count: u64,
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// Maximum.
    pub max: Option<u64>,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallError {
    /// System call.
    pub call: String,
    /// Error of the operating system.
    pub error: String,
    /// Number of times.
    pub count: u64,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flow {
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Address and port of the receiver.
    pub to: SocketAddr,
    /// Payload sent.
    pub sent_bytes: u64,
    /// Payload received.
    pub received_bytes: u64,
    /// Core of the receiver's host that processed its packets; null when it is not known.
    pub incoming_core: Option<u16>,
}

impl Datagrams {
    pub(super) fn of(way: &DatagramDirection) -> Self {
        let packets = |packets: &Option<analysis::Packets>| {
            packets.as_ref().map(|seen| CarriedPackets {
                interface: seen.interface.clone(),
                packets: seen.packets,
                bytes: seen.bytes,
                bytes_per_packet: seen.bytes_per_packet(),
            })
        };
        let errors = |end: usize| {
            let error = |error: &netduel_model::sample::ErrorCount| CallError {
                call: error.call.clone(),
                error: error.error.clone(),
                count: error.count,
            };
            way.errors[end].iter().map(error).collect()
        };
        let flow = |flow: &analysis::FlowPorts| Flow {
            from: flow.from,
            to: flow.to,
            sent_bytes: flow.sent_bytes,
            received_bytes: flow.received_bytes,
            incoming_core: flow.incoming_core,
        };
        Self {
            block: way.block.saturating_add(1),
            direction: PathDirection::from(way.sender),
            sent: way.sent,
            received: way.received,
            duplicates: way.duplicates,
            reordered: way.reordered,
            lost: way.lost.map(|lost| LostDatagrams {
                total: lost.all,
                at_receiver_socket: lost.at_socket,
                at_interface: lost.at_interface,
                elsewhere: lost.elsewhere(),
            }),
            packets_sent: packets(&way.packets_sent),
            packets_received: packets(&way.packets_received),
            datagrams_per_packet: way.datagrams_per_packet,
            burst: way.burst,
            refused: way.refused,
            pacing: way.pacing.as_ref().map(|pacing| Pacing {
                requested_bps: pacing.requested_bps,
                sent_bps: pacing.sent_bps,
                late_ns: pacing.late.as_ref().map(Lateness::of),
            }),
            sender_errors: errors(0),
            receiver_errors: errors(1),
            flows: way.flows.iter().map(flow).collect(),
        }
    }
}

impl Lateness {
    fn of(late: &Histogram) -> Self {
        let at = |percentile| late.percentile(percentile);
        Self { count: late.count(), p50: at(50.0), p99: at(99.0), p99_9: at(99.9), max: late.max() }
    }
}
