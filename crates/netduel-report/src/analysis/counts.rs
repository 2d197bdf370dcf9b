//! Consistency check: the bytes that programs moved plus packet headers, against the byte counters of the interfaces. Traffic of
//! unknown shape is not checked.
//!
//! Interfaces count in two ways. Most count frames as on the wire, each with its headers. A virtual interface that accepts
//! segments of 64 KiB counts such a segment as one packet with one header. So for P bytes of payload in N packets with H bytes of
//! headers each, P + N * H must match either with the interface's own N, or with that of TCP or UDP.
use std::collections::BTreeMap;

use netduel_model::ids::HostName;
use netduel_model::observation::{InterfaceDelta, Presence};
use netduel_model::packet_path::PacketPath;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::sample::EndReport;
use netduel_model::snapshot::LOOPBACK;
use netduel_model::trial::Trial;
use netduel_model::warning::{CountsCause, Warning};
use netduel_model::workload::{Family, Role, Wire, Workload};

use super::datagrams;

/// Tolerance, as a fraction: the first and last packets of a trial, and other traffic of the hosts.
const TOLERANCE: f64 = 0.01;
/// Tolerance in bytes, for trials with little traffic.
const SLACK_BYTES: f64 = 64.0 * 1024.0;
/// Ethernet header.
const LINK_HEADER: f64 = 14.0;
/// Two VLAN tags and the frame check sequence, which some drivers count.
const LINK_EXTRA: f64 = 12.0;
/// Time stamps option (RFC 7323), used when the kernel does not report the segment size: every segment has it unless it is
/// disabled.
const TIME_STAMPS: f64 = 12.0;
/// TCP payload per segment when the kernel does not report it: the smallest common value, so that the number of packets is not
/// underestimated.
const SEGMENT_BYTES: f64 = 1208.0;

/// The expected byte count of an interface, as a range.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    min: f64,
    max: f64,
}

impl Range {
    fn holds(self, counted: f64) -> bool {
        self.distance(counted) <= 0.0
    }

    /// Distance to the range with its tolerance, bytes; 0 or less inside.
    fn distance(self, counted: f64) -> f64 {
        let low = self.min * (1.0 - TOLERANCE) - SLACK_BYTES;
        let high = self.max * (1.0 + TOLERANCE) + SLACK_BYTES;
        (low - counted).max(counted - high)
    }
}

/// Traffic in one direction, as counted by both programs.
#[derive(Debug, Clone, Copy)]
struct DirectionCounts {
    /// Bytes that the sender's program sent.
    sent: f64,
    /// Bytes that the receiver's program received.
    received: f64,
    /// Upper bound of the bytes at the receiver's socket, including duplicates and drops.
    arrived: f64,
    /// Upper bound of the bytes that left the sender, including retransmits.
    left: f64,
    /// Packets on the wire.
    packets: f64,
    /// Minimum and maximum header size of a packet, bytes.
    headers: (f64, f64),
}

impl DirectionCounts {
    /// From `sender` to `receiver`; absent without traffic in this direction, or for traffic of unknown shape.
    fn of(workload: &Workload, sender: &EndReport, receiver: &EndReport) -> Option<Self> {
        let (sent, received) = (sender.sent.as_ref()?, receiver.received.as_ref()?);
        if sent.bytes == 0 || received.bytes == 0 {
            return None;
        }
        let network = if workload.family == Family::Ipv4 { 20.0 } else { 40.0 };
        let (sent_bytes, received_bytes) = (sent.bytes as f64, received.bytes as f64);
        let below = LINK_HEADER + network;
        let facts = workload.traffic.facts();
        match facts.wire {
            Wire::Segments => {
                let tcp = || sender.streams.iter().filter_map(|stream| stream.tcp.as_ref());
                let mss = tcp().filter_map(|tcp| tcp.snd_mss).min().map_or(SEGMENT_BYTES, f64::from);
                let retransmits: u64 = tcp().filter_map(|tcp| tcp.retransmits).map(u64::from).sum();
                let segments = tcp().map(|tcp| tcp.segs_out.map(f64::from)).sum::<Option<f64>>();
                // A message is at least one segment; a stream has no messages.
                let fewest = (sent_bytes / mss).max(sent.messages as f64) + retransmits as f64;
                let packets = segments.filter(|sum| *sum > 0.0).unwrap_or(fewest);
                let left = sent_bytes + retransmits as f64 * mss;
                // When the kernel reports MTU and segment size, their difference is headers and options.
                let reported = tcp().find_map(|tcp| Some((tcp.pmtu?, tcp.snd_mss?)));
                let options = reported
                    .map(|(mtu, mss)| f64::from(mtu) - network - 20.0 - f64::from(mss))
                    .filter(|options| (0.0..=40.0).contains(options));
                let (least, most) = options.map_or((0.0, TIME_STAMPS), |options| (options, options));
                let headers = (below + 20.0 + least, below + 20.0 + most + LINK_EXTRA);
                Some(Self {
                    sent: sent_bytes,
                    received: received_bytes,
                    arrived: left,
                    left,
                    packets,
                    headers,
                })
            }
            Wire::Datagrams { size, offload } => {
                let count = receiver.datagrams.as_ref();
                if count.is_none() && facts.is_datagram_stream() {
                    return None;
                }
                let beyond = count.map_or(0.0, |count| {
                    count.duplicates.saturating_add(count.outside_window) as f64
                        + datagrams::dropped_at_socket(offload, count)
                });
                Some(Self {
                    sent: sent_bytes,
                    received: received_bytes,
                    // Request-response: everything sent has arrived, because a lost request has no response.
                    arrived: if count.is_some() {
                        received_bytes + beyond * size.0 as f64
                    } else {
                        sent_bytes
                    },
                    left: sent_bytes,
                    packets: sent.messages as f64 * fragments(size.0, network),
                    headers: (below - uncounted(workload), below + 8.0 + LINK_EXTRA),
                })
            }
            // Not checked: handshakes dominate the bytes, or probes and load share the interface.
            Wire::Mixed => None,
        }
    }

    /// The count of the loopback device, which removes the Ethernet header first (drivers/net/loopback.c, `loopback_xmit`).
    fn without_link_header(self) -> Self {
        Self { headers: (self.headers.0 - LINK_HEADER, self.headers.1 - LINK_HEADER), ..self }
    }

    /// The expected byte count of the interface at one end, for a number of packets.
    fn at(&self, place: Place, packets: f64) -> Range {
        let most = match place {
            Place::Sender => self.left,
            Place::Receiver => self.arrived,
        };
        Range { min: self.received + packets * self.headers.0, max: most + packets * self.headers.1 }
    }

    /// The number of packets of an interface that counts frames as on the wire.
    fn packets_at(&self, place: Place) -> f64 {
        match place {
            Place::Sender => self.packets,
            Place::Receiver => self.packets * (self.arrived / self.left).min(1.0),
        }
    }
}

/// Bytes of the Ethernet header that an interface may omit from its count: a veth omits it for frames of XDP or NAPI
/// (drivers/net/veth.c, `veth_xdp_rcv`).
fn uncounted(workload: &Workload) -> f64 {
    let is_past_stack = workload.traffic.facts().packets.is_some_and(PacketPath::is_any_raw);
    if is_past_stack { LINK_HEADER } else { 0.0 }
}

/// The end of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Sender,
    Receiver,
}

/// Number of frames of a datagram with an MTU of 1500; more than one with fragmentation.
fn fragments(size: u64, network: f64) -> f64 {
    ((size as f64 + 8.0) / (1500.0 - network)).ceil()
}

/// The byte count of one interface, or of several together, in one direction.
struct Counted<'a> {
    name: &'a str,
    bytes: f64,
    packets: f64,
}

fn counted(interface: &InterfaceDelta, place: Place) -> Counted<'_> {
    let (bytes, packets) = match place {
        Place::Sender => (interface.tx_bytes, interface.tx_packets),
        Place::Receiver => (interface.rx_bytes, interface.rx_packets),
    };
    Counted { name: &interface.name, bytes: bytes as f64, packets: packets as f64 }
}

/// The mismatch of an interface in a trial.
struct Disagreement {
    interface: String,
    sent: bool,
    counted: f64,
    range: Range,
    sender: f64,
    receiver: f64,
    cause: CountsCause,
    /// Distance to the range, as a fraction of it.
    share: f64,
}

/// The warnings of a workload on an arm: at most one per host, for the trial with the largest mismatch.
pub(super) fn disagreements(
    plan: &ResolvedPlan,
    arm: &Arm,
    workload: &Workload,
    trials: &[&Trial],
) -> Vec<Warning> {
    let by_host = [Role::Client, Role::Server].into_iter().flat_map(|role| {
        let mut by_host: BTreeMap<&HostName, Vec<Disagreement>> = BTreeMap::new();
        for trial in trials {
            let host = plan.pair_in(arm, trial.slot.block).host(role);
            by_host.entry(host).or_default().extend(at_end(arm, workload, trial, role));
        }
        by_host
    });
    let warning = |(host, all): (&HostName, Vec<Disagreement>)| {
        let count = all.len() as u32;
        let worst = all.into_iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
        Some(Warning::CountsDisagree {
            arm: arm.name.clone(),
            workload: workload.name.clone(),
            host: host.clone(),
            interface: worst.interface,
            sent: worst.sent,
            counted_bytes: worst.counted as u64,
            expected_min_bytes: worst.range.min as u64,
            expected_max_bytes: worst.range.max as u64,
            sender_bytes: worst.sender as u64,
            receiver_bytes: worst.receiver as u64,
            cause: worst.cause,
            trials: count,
        })
    };
    by_host.filter_map(warning).collect()
}

/// The larger mismatch of the two directions at one end.
fn at_end(arm: &Arm, workload: &Workload, trial: &Trial, role: Role) -> Option<Disagreement> {
    let (client, server) = (&trial.client.as_ref()?.report, &trial.server.as_ref()?.report);
    let (own, other) = if role == Role::Client { (client, server) } else { (server, client) };
    let interfaces = &trial.end(role)?.observation.interfaces;
    let ways = [
        (Place::Sender, DirectionCounts::of(workload, own, other)),
        (Place::Receiver, DirectionCounts::of(workload, other, own)),
    ];
    let expected = arm.expected(role);
    let judge = |(place, way): &(Place, Option<DirectionCounts>)| {
        let back = ways.iter().find(|(other, _)| other != place).and_then(|(_, way)| *way);
        judge(interfaces, expected, *place, way.as_ref()?, back, workload)
    };
    ways.iter().filter_map(judge).max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Compares one direction with the interface that the arm names, or else with the one that matches best.
fn judge(
    interfaces: &[InterfaceDelta],
    expected: Option<&str>,
    place: Place,
    way: &DirectionCounts,
    back: Option<DirectionCounts>,
    workload: &Workload,
) -> Option<Disagreement> {
    let known = |interface: &&InterfaceDelta| expected.is_none_or(|name| name == interface.name);
    let candidates: Vec<&InterfaceDelta> = interfaces.iter().filter(known).collect();
    if candidates.is_empty() || candidates.iter().any(|one| one.presence != Presence::Unchanged) {
        return None;
    }
    let one = |interface: &&InterfaceDelta| {
        let counted = counted(interface, place);
        // Loopback receives what it sends.
        let range = if interface.name == LOOPBACK {
            // Traffic of a host to itself is sent and received by the same interface.
            nearest(
                place,
                &way.without_link_header(),
                back.map(DirectionCounts::without_link_header),
                &counted,
            )
        } else {
            nearest(place, way, None, &counted)
        };
        (counted.name.to_owned(), counted.bytes, range)
    };
    let mut all: Vec<(String, f64, Range)> = candidates.iter().map(one).collect();
    let busiest = (0..all.len()).max_by(|a, b| all[*a].1.total_cmp(&all[*b].1))?;
    if expected.is_none() {
        // The traffic of a bond is spread over its ports.
        let ports = candidates.iter().filter(|one| !one.is_master && one.name != LOOPBACK);
        let together = ports.map(|one| counted(one, place)).fold(
            Counted { name: "all interfaces", bytes: 0.0, packets: 0.0 },
            |sum, next| Counted { bytes: sum.bytes + next.bytes, packets: sum.packets + next.packets, ..sum },
        );
        all.push((together.name.to_owned(), together.bytes, nearest(place, way, None, &together)));
    }
    if all.iter().any(|(_, bytes, range)| range.holds(*bytes)) {
        return None;
    }
    let (interface, counted, range) = all.swap_remove(busiest);
    let cause = cause(place, way, workload, counted, range);
    let share = range.distance(counted) / range.max;
    let (sender, receiver) = (way.sent, way.received);
    Some(Disagreement {
        interface,
        sent: place == Place::Sender,
        counted,
        range,
        sender,
        receiver,
        cause,
        share,
    })
}

/// The range nearest to the counter: with the interface's own number of packets, or with that on the wire.
fn nearest(
    place: Place,
    way: &DirectionCounts,
    back: Option<DirectionCounts>,
    counted: &Counted<'_>,
) -> Range {
    let with = |packets: f64, back_packets: f64| {
        let there = way.at(place, packets);
        let back = back.map_or(Range { min: 0.0, max: 0.0 }, |back| back.at(Place::Sender, back_packets));
        Range { min: there.min + back.min, max: there.max + back.max }
    };
    let own = with(counted.packets, 0.0);
    let on_wire = with(way.packets_at(place), back.map_or(0.0, |back| back.packets));
    if own.distance(counted.bytes) <= on_wire.distance(counted.bytes) { own } else { on_wire }
}

fn cause(
    place: Place,
    way: &DirectionCounts,
    workload: &Workload,
    counted: f64,
    range: Range,
) -> CountsCause {
    if counted < range.min {
        return CountsCause::NotCounted;
    }
    let is_udp = matches!(workload.traffic.facts().wire, Wire::Datagrams { .. });
    let all_came = DirectionCounts { arrived: way.left, ..*way };
    if is_udp && place == Place::Receiver && all_came.at(place, way.packets).distance(counted) <= 0.0 {
        return CountsCause::DroppedAfterInterface;
    }
    CountsCause::OtherTraffic
}
