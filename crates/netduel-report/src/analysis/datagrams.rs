//! Datagrams of a `udp-stream` by trial and direction: sent, received, the number of packets that carried them, and lost
//! datagrams by the counter that has them.
//!
//! A datagram is what programs send; a packet is what an interface counts. With segmentation offload one packet may carry many
//! datagrams. A datagram longer than the MTU is several packets.
use std::net::SocketAddr;

use netduel_model::observation::InterfaceDelta;
use netduel_model::sample::{DatagramReport, DatagramSendReport, ErrorCount};
use netduel_model::snapshot::LOOPBACK;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::{Direction, Role, UdpOffload, UdpStream, Workload};
use netduel_stats::histogram::Histogram;
use netduel_stats::summary;

use super::counted::rate_on_its_clock;
use super::figures;
use super::machine::Machines;

/// An interface with fewer bytes than this share of the payload did not carry the datagrams, or does not count them.
const BYTES_SHARE_MIN: f64 = 0.9;
/// From this number of datagrams per packet on, the two differ. Smaller differences are other traffic of the hosts.
const PER_PACKET_MIN: f64 = 1.1;

/// One direction of one trial.
#[derive(Debug, Clone)]
pub struct DatagramDirection {
    /// Block of the trial.
    pub block: u32,
    /// The sending end.
    pub sender: Role,
    /// Datagrams that the sender's kernel accepted.
    pub sent: u64,
    /// Datagrams that the receiver's program received, without duplicates.
    pub received: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Reordered datagrams.
    pub reordered: u64,
    /// Lost datagrams; absent when the record has more received than sent.
    pub lost: Option<Lost>,
    /// Packets that the sender's interface sent; absent when no interface is known to have carried the datagrams.
    pub packets_sent: Option<Packets>,
    /// Packets that the receiver's interface received.
    pub packets_received: Option<Packets>,
    /// Datagrams per packet at the receiver's interface, or else at the sender's.
    pub datagrams_per_packet: Option<f64>,
    /// Whether IP fragmented datagrams, by the counters of the hosts.
    pub is_fragmented: bool,
    /// Maximum number of datagrams per send call; absent in runs of earlier versions.
    pub burst: Option<u32>,
    /// Send calls that the kernel refused because a queue or buffer was full: back-pressure, not loss.
    pub refused: Option<u64>,
    /// The configured rate and how the sender kept it; absent without a rate.
    pub pacing: Option<Pacing>,
    /// Errors of calls at the sender, then at the receiver.
    pub errors: [Vec<ErrorCount>; 2],
    /// The flows.
    pub flows: Vec<FlowPorts>,
}

/// Datagrams that did not reach the receiver's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Total: sent minus received, exact.
    pub all: u64,
    /// Dropped at the receiver's socket because its program was too slow: a limit of netduel. With `gso-gro` the kernel counts
    /// buffers; this is buffers times the mean number of datagrams per buffer.
    pub at_socket: u64,
    /// Of the others, dropped by an interface or qdisc of the two hosts, by their counters.
    pub at_interface: u64,
}

impl Lost {
    /// Lost on the path: without a counter at either host.
    pub fn elsewhere(self) -> u64 {
        self.all - self.at_socket - self.at_interface
    }
}

/// Packets of an interface in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packets {
    /// Name of the interface.
    pub interface: String,
    /// Number of packets.
    pub packets: u64,
    /// Bytes as counted by the interface, with the Ethernet header.
    pub bytes: u64,
}

impl Packets {
    /// Mean length, bytes.
    pub fn bytes_per_packet(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.bytes as f64 / self.packets as f64)
    }
}

/// The schedule of a sender in the steady window.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// Configured payload rate of this direction, bit/s.
    pub requested_bps: f64,
    /// Sent payload rate, bit/s; absent when the series does not reach the steady window.
    pub sent_bps: Option<f64>,
    /// Lateness of each burst, nanoseconds; absent in runs of earlier versions.
    pub late: Option<Histogram>,
}

/// A flow with its addresses, from the sender's side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPorts {
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Address and port of the receiver.
    pub to: SocketAddr,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Core of the receiver's host that processed its packets.
    pub incoming_core: Option<u16>,
}

/// Both directions of each trial, ordered by block; empty for other traffic.
pub(super) fn ways(workload: &Workload, trials: &[&Trial], machines: &Machines) -> Vec<DatagramDirection> {
    let mut all: Vec<DatagramDirection> =
        trials.iter().flat_map(|trial| of_trial(workload, trial, machines.shared(trial))).collect();
    all.sort_by_key(|way| (way.block, way.sender));
    all
}

/// The directions of a trial. `shared_machine`: a drop that both ends of a virtual link count is one drop.
pub fn of_trial(workload: &Workload, trial: &Trial, shared_machine: bool) -> Vec<DatagramDirection> {
    let Some(UdpStream { direction, .. }) = workload.traffic.facts().flows else { return Vec::new() };
    let (Some(client), Some(server)) = (&trial.client, &trial.server) else { return Vec::new() };
    let both = *direction == Direction::Both;
    [(client, Role::Client, server, Role::Server), (server, Role::Server, client, Role::Client)]
        .into_iter()
        .filter_map(|(sender, role, receiver, receiver_role)| {
            let interfaces = [
                carrier(trial, sender, (role, true), both),
                carrier(trial, receiver, (receiver_role, false), both),
            ];
            way(workload, trial.slot.block, (sender, role), receiver, interfaces, shared_machine)
        })
        .collect()
}

fn way(
    workload: &Workload,
    block: u32,
    (sender, role): (&TrialEnd, Role),
    receiver: &TrialEnd,
    [leaving, coming]: [Option<&InterfaceDelta>; 2],
    shared_machine: bool,
) -> Option<DatagramDirection> {
    let UdpStream { offload, rate, .. } = workload.traffic.facts().flows?;
    let sent = sender.report.sent.as_ref()?;
    let count = receiver.report.datagrams.as_ref()?;
    let handed = sender.report.datagrams_sent.as_ref();
    let dropped_at_socket = dropped_at_socket(*offload, count);
    let arrived = count.unique.saturating_add(count.duplicates).saturating_add(count.outside_window) as f64
        + dropped_at_socket;
    let packets_sent = leaving.map(|interface| Packets {
        interface: interface.name.clone(),
        packets: interface.tx_packets,
        bytes: interface.tx_bytes,
    });
    let packets_received = coming.map(|interface| Packets {
        interface: interface.name.clone(),
        packets: interface.rx_packets,
        bytes: interface.rx_bytes,
    });
    let ratio = |datagrams: f64, packets: &Option<Packets>| {
        packets.as_ref().filter(|seen| seen.packets > 0).map(|seen| datagrams / seen.packets as f64)
    };
    let datagrams_per_packet =
        ratio(arrived, &packets_received).or_else(|| ratio(sent.messages as f64, &packets_sent));
    let refused = handed.map(|handed| handed.refused);
    let lost = sent.messages.checked_sub(count.unique).map(|all| {
        let at_socket = (dropped_at_socket.round() as u64).min(all);
        let again = handed.map_or(0, |handed| refused_packets(leaving, handed));
        let packets = dropped_packets([leaving, coming], again, shared_machine);
        // One packet less is at least one datagram less: one lost fragment loses its datagram.
        let datagrams = packets as f64 * datagrams_per_packet.unwrap_or(1.0).max(1.0);
        Lost { all, at_socket, at_interface: (datagrams.round() as u64).min(all - at_socket) }
    });
    Some(DatagramDirection {
        block,
        sender: role,
        sent: sent.messages,
        received: count.unique,
        duplicates: count.duplicates,
        reordered: count.reordered,
        lost,
        is_fragmented: fragments(receiver, sender) > arrived.max(1.0),
        packets_sent,
        packets_received,
        datagrams_per_packet,
        burst: handed.map(|handed| handed.burst_max),
        refused,
        pacing: rate.map(|rate| Pacing {
            requested_bps: rate.0 as f64,
            sent_bps: sent_bps(workload, sender),
            late: handed.and_then(|handed| figures::of_record(handed.pacing_error.as_ref()?)),
        }),
        errors: [sender.report.errors.clone(), receiver.report.errors.clone()],
        flows: flows(sender, receiver),
    })
}

/// Datagrams that the receiver's socket dropped. The kernel counts merged datagrams as one buffer; dropped buffers are assumed to
/// hold as many datagrams as received ones.
pub(super) fn dropped_at_socket(offload: UdpOffload, count: &DatagramReport) -> f64 {
    let per_buffer = match (offload, count.buffers) {
        (UdpOffload::GsoGro, Some(buffers)) if buffers > 0 => count.unique as f64 / buffers as f64,
        _ => 1.0,
    };
    count.socket_drops.unwrap_or(0) as f64 * per_buffer
}

/// Packets that a qdisc counted as dropped and the sender got as an error: it sent these again, or did not count them as sent. A qdisc
/// that segments GSO packets counts each datagram of a refused call, and any other one counts a call once.
fn refused_packets(leaving: Option<&InterfaceDelta>, handed: &DatagramSendReport) -> u64 {
    let dropped = leaving.and_then(|interface| interface.qdisc_dropped).unwrap_or(0);
    let datagrams = handed.refused.saturating_mul(u64::from(handed.burst_max));
    if dropped >= datagrams { datagrams } else { handed.refused }
}

/// The interface of an end that carried the datagrams: the one that the arm expects, or else the busiest in the direction
/// `sends`. Absent when its counters, with what its qdisc dropped, are too low.
fn carrier<'a>(
    trial: &Trial,
    end: &'a TrialEnd,
    (role, sends): (Role, bool),
    both: bool,
) -> Option<&'a InterfaceDelta> {
    let bytes = |interface: &InterfaceDelta| if sends { interface.tx_bytes } else { interface.rx_bytes };
    let expected = trial.proofs.iter().find(|proof| proof.role == role).map(|proof| &proof.expected);
    let interfaces = &end.observation.interfaces;
    let interface = match expected {
        Some(name) => interfaces.iter().find(|interface| interface.name == *name),
        None => interfaces.iter().filter(|interface| !interface.is_master).max_by_key(|one| bytes(one)),
    }?;
    let flow = if sends { &end.report.sent } else { &end.report.received };
    let (payload, messages) = flow.as_ref().map_or((0, 0), |flow| (flow.bytes, flow.messages.max(1)));
    let dropped = if sends { interface.qdisc_dropped.unwrap_or(0) } else { 0 };
    let dropped_bytes = dropped as f64 * payload as f64 / messages as f64;
    let carried = bytes(interface) as f64 + dropped_bytes >= payload as f64 * BYTES_SHARE_MIN;
    (carried && !(both && interface.name == LOOPBACK)).then_some(interface)
}

/// Packets that the interfaces of the hosts counted as dropped, without the drops `again` that the sender got as an error.
fn dropped_packets([leaving, coming]: [Option<&InterfaceDelta>; 2], again: u64, shared_machine: bool) -> u64 {
    let queue = leaving.and_then(|interface| interface.qdisc_dropped).unwrap_or(0).saturating_sub(again);
    let sent = leaving.map_or(0, |interface| interface.tx_dropped.saturating_add(interface.tx_errors));
    let ingress = coming.and_then(|interface| interface.ingress_dropped).unwrap_or(0);
    let received = coming.map_or(0, |interface| interface.rx_dropped.saturating_add(interface.rx_errors));
    // A veth counts packets that its peer had no room for as dropped at both ends.
    let interfaces = if shared_machine { sent.max(received) } else { sent.saturating_add(received) };
    queue.saturating_add(interfaces).saturating_add(ingress)
}

/// Fragments reassembled by the receiver's host, or else created by the sender's.
fn fragments(receiver: &TrialEnd, sender: &TrialEnd) -> f64 {
    let count = |end: &TrialEnd, name: &str| {
        let of = |group| end.observation.protocol.get(&format!("{group}.{name}")).copied().unwrap_or(0);
        of("Ip").saturating_add(of("Ip6")).max(0) as f64
    };
    count(receiver, "ReasmReqds").max(count(sender, "FragCreates"))
}

/// Payload sent in the steady window, bit/s.
fn sent_bps(workload: &Workload, sender: &TrialEnd) -> Option<f64> {
    let sent = sender.report.sent.as_ref()?;
    Some(rate_on_its_clock(sent, figures::steady_bounds(workload), |sample| sample.bytes)? * 8.0)
}

fn flows(sender: &TrialEnd, receiver: &TrialEnd) -> Vec<FlowPorts> {
    let pairs = sender.report.streams.iter().zip(&receiver.report.streams);
    pairs
        .filter_map(|(here, there)| {
            Some(FlowPorts {
                from: here.local?,
                to: here.peer?,
                sent_bytes: here.sent_bytes,
                received_bytes: there.received_bytes,
                incoming_core: there.incoming_core,
            })
        })
        .collect()
}

/// Packets per second at the receivers' interfaces between first and last arrival, sum of both directions.
pub(super) fn packet_rate(workload: &Workload, trial: &Trial) -> Option<f64> {
    let ways = of_trial(workload, trial, false);
    if ways.is_empty() {
        return None;
    }
    let mut rate = 0.0;
    for way in ways {
        let receiver = match way.sender {
            Role::Client => trial.server.as_ref()?,
            Role::Server => trial.client.as_ref()?,
        };
        let flow = receiver.report.received.as_ref()?;
        let span_ns = flow.last_ns?.checked_sub(flow.first_ns?).filter(|span| *span > 0)?;
        rate += way.packets_received?.packets as f64 / (span_ns as f64 / 1e9);
    }
    Some(rate)
}

/// Datagrams per packet, median over trials and directions, when it is not 1: merged datagrams, or fragments.
pub fn not_packets(ways: &[DatagramDirection]) -> Option<f64> {
    let ratios: Vec<f64> = ways.iter().filter_map(|way| way.datagrams_per_packet).collect();
    let median = summary::median(&ratios)?;
    let fragmented = ways.iter().filter(|way| way.is_fragmented).count() * 2 > ways.len();
    (median >= PER_PACKET_MIN || (fragmented && median < 1.0)).then_some(median)
}
