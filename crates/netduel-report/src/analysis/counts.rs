//! Whether the figures of both ends and of the interfaces between them add up: bytes that programs moved, and the headers that
//! their packets had, against what an interface counted. Says nothing of trials whose traffic it does not know.
//!
//! Interfaces count in two ways. Most count frames as they are on the wire, each with its headers. A virtual one that takes
//! segments of 64 KiB whole counts such a segment as one packet with one header. So for P bytes of payload in N packets
//! of H bytes of headers each, P + N * H has to come out either with the interface's own N, or with that of TCP or UDP.
use netduel_model::observation::{InterfaceDelta, Presence};
use netduel_model::packet_path::PacketPath;
use netduel_model::plan::Arm;
use netduel_model::sample::EndReport;
use netduel_model::trial::Trial;
use netduel_model::warning::{CountsCause, Warning};
use netduel_model::workload::{Family, Role, Wire, Workload};

use super::datagrams;

/// What may be missing or too much, as a fraction: the first and last packets of a trial, and small talk of the hosts.
const TOLERANCE: f64 = 0.01;
/// The same in bytes, for trials in which little was moved.
const SLACK_BYTES: f64 = 64.0 * 1024.0;
/// Ethernet header.
const LINK_HEADER: f64 = 14.0;
/// Two VLAN tags and the check sequence, which some drivers count.
const LINK_EXTRA: f64 = 12.0;
/// Time stamps (RFC 7323), the option that every segment has unless the host switched them off: when the kernel does not tell.
const TIME_STAMPS: f64 = 12.0;
/// TCP payload of a segment when the kernel did not tell: the smallest that is common, so that packets are not counted low.
const SEGMENT_BYTES: f64 = 1208.0;
/// The interface of a host's talk with itself. What it sends it also receives.
const LOOPBACK: &str = "lo";

/// Bytes that an interface has to have counted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    min: f64,
    max: f64,
}

impl Range {
    fn holds(self, counted: f64) -> bool {
        self.distance(counted) <= 0.0
    }

    /// How far outside of the range and its tolerance, bytes; 0 or less inside.
    fn distance(self, counted: f64) -> f64 {
        let low = self.min * (1.0 - TOLERANCE) - SLACK_BYTES;
        let high = self.max * (1.0 + TOLERANCE) + SLACK_BYTES;
        (low - counted).max(counted - high)
    }
}

/// Traffic in one direction, as both programs counted it.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// What the sender's program sent, bytes.
    sent: f64,
    /// What the receiver's program received, bytes.
    received: f64,
    /// What reached the receiver's socket, at most, bytes: duplicates and what was dropped there among it.
    arrived: f64,
    /// What left the sender at most, bytes: what TCP sent again among it.
    left: f64,
    /// Packets on a wire.
    packets: f64,
    /// Headers of a packet, bytes: the least and the most.
    headers: (f64, f64),
}

impl Way {
    /// From `sender` to `receiver`; absent when nothing went this way, or for traffic that is not known here.
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
                let again: u64 = tcp().filter_map(|tcp| tcp.retransmits).map(u64::from).sum();
                let segments = tcp().map(|tcp| tcp.segs_out.map(f64::from)).sum::<Option<f64>>();
                // A message is a segment at least; a stream has no messages.
                let fewest = (sent_bytes / mss).max(sent.messages as f64) + again as f64;
                let packets = segments.filter(|sum| *sum > 0.0).unwrap_or(fewest);
                let left = sent_bytes + again as f64 * mss;
                // Where the kernel tells MTU and segment, the options are what lies between.
                let told = tcp().find_map(|tcp| Some((tcp.pmtu?, tcp.snd_mss?)));
                let options = told
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
                    (count.duplicates + count.outside_window) as f64
                        + datagrams::dropped_at_socket(offload, count)
                });
                Some(Self {
                    sent: sent_bytes,
                    received: received_bytes,
                    // Of requests and responses, all that left has arrived: one that is lost is not answered.
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
            // Opening and closing is most of what goes over the wire, or probes and load share it: not told apart here.
            Wire::Mixed => None,
        }
    }

    /// As the loopback device counts: it takes the Ethernet header off first (drivers/net/loopback.c, `loopback_xmit`).
    fn without_link_header(self) -> Self {
        Self { headers: (self.headers.0 - LINK_HEADER, self.headers.1 - LINK_HEADER), ..self }
    }

    /// What the interface at one end has to have counted of this, with so many packets.
    fn at(&self, place: Place, packets: f64) -> Range {
        let most = match place {
            Place::Sender => self.left,
            Place::Receiver => self.arrived,
        };
        Range { min: self.received + packets * self.headers.0, max: most + packets * self.headers.1 }
    }

    /// Packets that the interface has seen when it counts those on a wire.
    fn packets_at(&self, place: Place) -> f64 {
        match place {
            Place::Sender => self.packets,
            Place::Receiver => self.packets * (self.arrived / self.left).min(1.0),
        }
    }
}

/// Bytes of the Ethernet header that an interface may leave out of its count: a veth does for frames that XDP or NAPI takes
/// (drivers/net/veth.c, `veth_xdp_rcv`).
fn uncounted(workload: &Workload) -> f64 {
    let is_past_stack = workload.traffic.packets().is_some_and(PacketPath::is_any_raw);
    if is_past_stack { LINK_HEADER } else { 0.0 }
}

/// Which end of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Sender,
    Receiver,
}

/// Frames of a datagram on a path of the usual MTU; more than one when IP cuts it.
fn fragments(size: u64, network: f64) -> f64 {
    ((size as f64 + 8.0) / (1500.0 - network)).ceil()
}

/// What one interface, or several together, counted in one direction.
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

/// One interface's disagreement in one trial.
struct Disagreement {
    interface: String,
    sent: bool,
    counted: f64,
    range: Range,
    sender: f64,
    receiver: f64,
    cause: CountsCause,
    /// How far from the range, as a fraction of it.
    share: f64,
}

/// The warnings about one workload of an arm: at most one per host, with the trial that deviates most.
pub(super) fn disagreements(arm: &Arm, workload: &Workload, trials: &[&Trial]) -> Vec<Warning> {
    [Role::Client, Role::Server]
        .into_iter()
        .filter_map(|role| {
            let all: Vec<Disagreement> =
                trials.iter().filter_map(|trial| at_end(arm, workload, trial, role)).collect();
            let count = all.len() as u32;
            let worst = all.into_iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
            Some(Warning::CountsDisagree {
                arm: arm.name.clone(),
                workload: workload.name.clone(),
                host: arm.pair.host(role).clone(),
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
        })
        .collect()
}

/// The larger disagreement of the two directions at one end.
fn at_end(arm: &Arm, workload: &Workload, trial: &Trial, role: Role) -> Option<Disagreement> {
    let (client, server) = (&trial.client.as_ref()?.report, &trial.server.as_ref()?.report);
    let (own, other) = if role == Role::Client { (client, server) } else { (server, client) };
    let interfaces = &trial.end(role)?.observation.interfaces;
    let ways =
        [(Place::Sender, Way::of(workload, own, other)), (Place::Receiver, Way::of(workload, other, own))];
    let expected = arm.expected(role);
    let judge = |(place, way): &(Place, Option<Way>)| {
        let back = ways.iter().find(|(other, _)| other != place).and_then(|(_, way)| *way);
        judge(interfaces, expected, *place, way.as_ref()?, back, workload)
    };
    ways.iter().filter_map(judge).max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Compares one direction with the interface that the arm names, or else with the one that fits best.
fn judge(
    interfaces: &[InterfaceDelta],
    expected: Option<&str>,
    place: Place,
    way: &Way,
    back: Option<Way>,
    workload: &Workload,
) -> Option<Disagreement> {
    let known = |interface: &&InterfaceDelta| expected.is_none_or(|name| name == interface.name);
    let candidates: Vec<&InterfaceDelta> = interfaces.iter().filter(known).collect();
    if candidates.is_empty() || candidates.iter().any(|one| one.presence != Presence::Unchanged) {
        return None;
    }
    let one = |interface: &&InterfaceDelta| {
        let counted = counted(interface, place);
        let range = if interface.name == LOOPBACK {
            // What a host sends to itself it receives on the same interface.
            nearest(place, &way.without_link_header(), back.map(Way::without_link_header), &counted)
        } else {
            nearest(place, way, None, &counted)
        };
        (counted.name.to_owned(), counted.bytes, range)
    };
    let mut all: Vec<(String, f64, Range)> = candidates.iter().map(one).collect();
    let busiest = (0..all.len()).max_by(|a, b| all[*a].1.total_cmp(&all[*b].1))?;
    if expected.is_none() {
        // A bond's traffic is spread over its ports.
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

/// The range that the counter is nearest to: with the interface's own number of packets, or with that on a wire.
fn nearest(place: Place, way: &Way, back: Option<Way>, counted: &Counted<'_>) -> Range {
    let with = |packets: f64, back_packets: f64| {
        let there = way.at(place, packets);
        let back = back.map_or(Range { min: 0.0, max: 0.0 }, |back| back.at(Place::Sender, back_packets));
        Range { min: there.min + back.min, max: there.max + back.max }
    };
    let own = with(counted.packets, 0.0);
    let on_wire = with(way.packets_at(place), back.map_or(0.0, |back| back.packets));
    if own.distance(counted.bytes) <= on_wire.distance(counted.bytes) { own } else { on_wire }
}

fn cause(place: Place, way: &Way, workload: &Workload, counted: f64, range: Range) -> CountsCause {
    if counted < range.min {
        return CountsCause::NotCounted;
    }
    let is_udp = matches!(workload.traffic.facts().wire, Wire::Datagrams { .. });
    let all_came = Way { arrived: way.left, ..*way };
    if is_udp && place == Place::Receiver && all_came.at(place, way.packets).distance(counted) <= 0.0 {
        return CountsCause::DroppedAfterInterface;
    }
    CountsCause::OtherTraffic
}
