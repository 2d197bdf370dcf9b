//! What is known of a trial's own packets and bytes, and of the traffic beside it: enough to prove a path that carries little. It reads
//! no counter.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::observation::ControlTraffic;
use crate::path_proof::PATH_SHARE_MIN;
use crate::sample::EndReport;
use crate::workload::{Facts, Wire, WorkUnit};

/// With few round trips, background traffic is more than 1 % of the bytes. The trial's own packets are then counted: of so many, at most
/// one may have used another path, even if other interfaces carried nothing but packets of the trial. The same holds for bytes.
const OWN_PER_STRAY: u64 = 10;
/// Bytes of the shortest IP header (IPv4 without options).
const IP_HEADER_BYTES: u64 = 20;
/// Bytes of a UDP header, and of the header of an ICMP echo message.
const DATAGRAM_HEADER_BYTES: u64 = 8;
/// What a message of the agent's connection adds to its bytes on an interface over ssh, at most: an SSH packet has 14 bytes before the
/// data, padding and MAC of up to 48; the segment and its acknowledgement have 98 each (Ethernet, IPv6, TCP with options).
const CONTROL_MESSAGE_BYTES: u64 = 14 + 48 + 2 * 98;
/// Background traffic of the host that a trial may have beside it, bytes: neighbour discovery, ARP, multicast membership, spanning tree.
const BACKGROUND_BYTES_MAX: u64 = 4096;

/// Background traffic that is allowed for beside this many bytes of a host in a trial, bytes.
pub(crate) fn background_bytes(bytes: u64) -> u64 {
    BACKGROUND_BYTES_MAX.min(bytes / OWN_PER_STRAY)
}

/// The trial's own packets at one end, and the packets that the interfaces counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnPackets {
    /// Packets that the trial sent and received at this end, at least: two for each completed round trip.
    pub packets: u64,
    /// Packets that the expected interface counted, sent and received.
    pub expected: u64,
    /// Packets of other interfaces that are long enough to belong to the trial, at most. Those of the agent's own connection are left out.
    pub elsewhere_max: u64,
}

/// Bytes of a trial at one end, and of the traffic beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherTraffic {
    /// Bytes that the trial sent and received at this end, at least: the payload that both ends received.
    pub own_bytes: u64,
    /// Bytes of the agent's own connection to the coordinator, with its headers, at most; 0 when it does not use the network.
    pub control_bytes: u64,
    /// Background traffic of the host that is allowed for, bytes.
    pub background_bytes: u64,
}

/// Traffic of a trial, as far as it is known from the counts of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTraffic {
    packets: Option<PacketsMin>,
    /// Bytes at each end, at least.
    bytes: u64,
    control: ControlTraffic,
}

/// The packets of a trial's round trips, as far as they can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacketsMin {
    /// Packets at each end, at least.
    packets: u64,
    /// Bytes of the shortest of them, from the IP header on.
    packet_bytes_min: u64,
    /// Whether there can be no fewer: late requests of an open loop over TCP share packets.
    is_certain: bool,
}

impl PacketsMin {
    /// Of round trips that the client completed; absent for other workloads, whose packets are many or of unknown number.
    fn of(facts: &Facts<'_>, client: &EndReport) -> Option<Self> {
        let requests = facts.requests?;
        // Outstanding requests of a TCP connection may share a packet. Those of an open loop do so only where they are late.
        let is_certain = matches!(facts.wire, Wire::Datagrams { .. })
            || requests.rate.is_none() && requests.outstanding == 1;
        if facts.unit != WorkUnit::RoundTrip || facts.bulk.is_some() || !is_certain && requests.rate.is_none()
        {
            return None;
        }
        let packet_bytes_min = match facts.wire {
            Wire::Datagrams { size, .. } => size.0.saturating_add(IP_HEADER_BYTES + DATAGRAM_HEADER_BYTES),
            _ => IP_HEADER_BYTES,
        };
        let responses = client.round_trips.as_ref()?.responses;
        (responses > 0).then_some(Self { packets: responses.saturating_mul(2), packet_bytes_min, is_certain })
    }
}

impl OwnTraffic {
    /// Of the reports of both ends, the client first; absent when neither packets nor bytes are known.
    pub fn of(facts: &Facts<'_>, ends: [&EndReport; 2]) -> Option<Self> {
        let [client, _] = ends;
        let received = ends.iter().filter_map(|end| end.received.as_ref());
        let payload: u64 = received.map(|flow| flow.bytes).fold(0, u64::saturating_add);
        let messages = match (facts.requests, &client.round_trips) {
            (Some(requests), Some(round_trips)) if !requests.are_probes => {
                round_trips.responses.saturating_mul(requests.size.0)
            }
            _ => 0,
        };
        let packets = PacketsMin::of(facts, client);
        let own = Self { packets, bytes: payload.max(messages), control: ControlTraffic::default() };
        (own.packets.is_some() || own.bytes > 0).then_some(own)
    }

    /// Beside this connection of the agent to its coordinator, when that uses the network.
    #[must_use]
    pub fn beside(self, control: Option<ControlTraffic>) -> Self {
        Self { control: control.unwrap_or_default(), ..self }
    }

    /// Compares its packets with the interfaces. `bytes` and `packets` are by interface or kind, the one with the most bytes first.
    pub(crate) fn packets(
        self,
        expected: &str,
        bytes: &[(String, u64)],
        packets: &[(String, u64)],
    ) -> Option<OwnPackets> {
        let own = self.packets?;
        let of = |name: &str| packets.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count);
        let others = bytes.iter().filter(|(name, _)| name != expected);
        let control = self.control;
        let elsewhere_max = others
            .enumerate()
            .map(|(rank, (name, bytes))| {
                // Each message is a packet at least, which is acknowledged. Its connection has the bytes of one interface.
                let (messages, data) = if rank == 0 { (control.messages, control.bytes) } else { (0, 0) };
                let longest = bytes.saturating_sub(data) / own.packet_bytes_min;
                of(name).saturating_sub(messages.saturating_mul(2)).min(longest)
            })
            .fold(0, u64::saturating_add);
        Some(OwnPackets { packets: own.packets, expected: of(expected), elsewhere_max })
    }

    /// Its bytes and those beside it; absent when its packets are known for certain, which say more.
    pub(crate) fn other(self) -> Option<OtherTraffic> {
        let Self { packets, bytes, control } = self;
        if packets.is_some_and(|own| own.is_certain) {
            return None;
        }
        let headers = control.messages.saturating_mul(CONTROL_MESSAGE_BYTES);
        Some(OtherTraffic {
            own_bytes: bytes,
            control_bytes: control.bytes.saturating_add(headers),
            background_bytes: background_bytes(bytes),
        })
    }
}

impl OwnPackets {
    /// Whether enough of the trial's packets used the expected path, even if all other packets were of the trial.
    pub(crate) fn is_proof(self) -> bool {
        self.expected >= self.packets && self.elsewhere_max <= self.packets / OWN_PER_STRAY
    }
}

impl OtherTraffic {
    /// Whether the expected path carried all bytes of the trial, and nearly all that are not known to be other traffic.
    pub(crate) fn is_proof(self, expected: u64, elsewhere: u64) -> bool {
        let unknown = elsewhere.saturating_sub(self.control_bytes.saturating_add(self.background_bytes));
        let all = expected.saturating_add(unknown);
        expected >= self.own_bytes && all > 0 && expected as f64 >= PATH_SHARE_MIN * all as f64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::observation::InterfaceDelta;
    use crate::path_proof::{PathFailure, PathProof};
    use crate::sample::{Flow, HistogramRecord, RoundTripReport};
    use crate::units::Bytes;
    use crate::workload::{Direction, Role, RoundTrip, Traffic, Wait};

    fn interface(name: &str, bytes: u64) -> InterfaceDelta {
        InterfaceDelta { name: name.into(), tx_bytes: bytes, ..InterfaceDelta::default() }
    }

    fn counted(name: &str, packets: u64, bytes: u64) -> InterfaceDelta {
        InterfaceDelta { rx_packets: packets, rx_bytes: bytes, ..interface(name, 0) }
    }

    /// Of a client with this number of round trips of 64 bytes.
    pub(crate) fn own(round_trips: u64) -> Option<OwnTraffic> {
        own_of("udp-rr", round_trips)
    }

    /// The same of round trips of this type, in an open loop.
    fn own_of(workload: &str, round_trips: u64) -> Option<OwnTraffic> {
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\n\
                    addresses = [\"127.0.0.1\"]\n[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n[design]\naa = true\n\
                    [[workloads]]\nname = \"w\"\ntype = \"{workload}\"\nsize = \"64 B\"\nrequest_rate = \"2 /s\"\n"
        );
        let plan = crate::plan::parse(&text, "p").unwrap_or_else(|errors| panic!("{errors}"));
        own_in(&plan.arms[0].workloads[0].traffic, round_trips)
    }

    fn own_in(traffic: &Traffic, round_trips: u64) -> Option<OwnTraffic> {
        let mut client = EndReport::new(Role::Client);
        client.round_trips = Some(RoundTripReport {
            requests: round_trips,
            responses: round_trips,
            timeouts: 0,
            histogram: HistogramRecord::default(),
            pacing_error: None,
            series: Vec::new(),
            idle: None,
            parts: None,
        });
        OwnTraffic::of(&traffic.facts(), [&client, &EndReport::new(Role::Server)])
    }

    #[test]
    fn requests_of_a_changed_run_file_may_have_the_largest_size() {
        let traffic = Traffic::UdpRr(RoundTrip {
            size: Bytes(u64::MAX),
            outstanding: 1,
            wait: Wait::Block,
            rate: None,
            timestamps: false,
            congestion: None,
        });
        let seen = [counted("syn0", 4, 400), counted("vf0", 2, 200)];
        let proof = PathProof::from_interfaces(Role::Client, "syn0", &seen, own_in(&traffic, 2));
        assert_eq!(proof.own_packets, Some(OwnPackets { packets: 4, expected: 4, elsewhere_max: 0 }));
    }

    #[test]
    fn few_round_trips_beside_background_traffic_are_proof() {
        // 20 round trips in 10 seconds: 40 packets of 106 bytes; multicast of the host on two other interfaces.
        let seen = [counted("syn0", 45, 4640), counted("vf0", 2, 180), counted("dir0", 2, 180)];
        let proof = PathProof::from_interfaces(Role::Client, "syn0", &seen, own(20));
        assert!(proof.share.unwrap() < PATH_SHARE_MIN);
        assert_eq!(
            (proof.own_packets, proof.failure()),
            (Some(OwnPackets { packets: 40, expected: 45, elsewhere_max: 2 }), None)
        );
        // Packets shorter than those of the trial are not of the trial, however many they are.
        let seen = [counted("syn0", 45, 4640), counted("vf0", 100, 6000)];
        let elsewhere_max = PathProof::from_interfaces(Role::Client, "syn0", &seen, own(20)).own_packets;
        assert_eq!(elsewhere_max.map(|own| own.elsewhere_max), Some(6000 / 92));
    }

    #[test]
    fn too_few_packets_are_neither_proof_nor_a_wrong_path() {
        let seen = [counted("syn0", 13, 1300), counted("vf0", 3, 300)];
        let failure = PathProof::from_interfaces(Role::Client, "syn0", &seen, own(4)).failure();
        let Some(PathFailure::TooFewPackets(reason)) = failure else { panic!("{failure:?}") };
        assert!(reason.contains("the trial has 8 packets, syn0 carried 13, and up to 3 others"), "{reason}");
        // The expected interface carried fewer packets than the trial has, so some took another path.
        let seen = [counted("syn0", 7, 700), counted("vf0", 9, 900)];
        let failure = PathProof::from_interfaces(Role::Client, "syn0", &seen, own(4)).failure();
        assert!(matches!(failure, Some(PathFailure::WrongPath(_))), "{failure:?}");
        assert_eq!(own(0), None, "a trial without a round trip has no packets to count");
    }

    #[test]
    fn messages_of_the_agent_are_no_packets_of_the_trial() {
        let control = Some(ControlTraffic { bytes: 240, messages: 3 });
        let seen = [counted("syn0", 13, 1300), counted("mgmt", 3, 500)];
        let beside = |control| own(4).map(|own: OwnTraffic| own.beside(control));
        let proof = |control| PathProof::from_interfaces(Role::Client, "syn0", &seen, beside(control));
        assert_eq!(proof(control).failure(), None);
        assert!(proof(None).failure().is_some());
        // More packets than the agent's messages may be of the trial.
        let more = [counted("syn0", 13, 1300), counted("mgmt", 7, 900)];
        let proof = PathProof::from_interfaces(Role::Client, "syn0", &more, beside(control));
        assert!(matches!(proof.failure(), Some(PathFailure::TooFewPackets(_))), "{proof:?}");
    }

    #[test]
    fn late_requests_over_tcp_that_share_packets_are_no_wrong_path() {
        // 160 round trips on a busy machine, some in one packet: 311 packets instead of 320. Beside them ssh.
        let control = Some(ControlTraffic { bytes: 240, messages: 3 });
        let seen = [counted("virt0", 311, 40_000), counted("mgmt", 10, 1048)];
        let late = own_of("tcp-rr", 160).map(|own| own.beside(control));
        let proof = PathProof::from_interfaces(Role::Client, "virt0", &seen, late);
        assert!(proof.share.unwrap() < PATH_SHARE_MIN);
        assert_eq!(proof.failure(), None, "{proof:?}");
        // Datagrams share none: the rest took another path.
        let lost = own_of("udp-rr", 160).map(|own| own.beside(control));
        let failure = PathProof::from_interfaces(Role::Client, "virt0", &seen, lost).failure();
        assert!(matches!(failure, Some(PathFailure::WrongPath(_))), "{failure:?}");
        // So did these requests over TCP: the expected interface carried fewer bytes than they have.
        let seen = [counted("virt0", 70, 9000), counted("mgmt", 260, 32_000)];
        let failure = PathProof::from_interfaces(Role::Client, "virt0", &seen, late).failure();
        assert!(matches!(failure, Some(PathFailure::WrongPath(_))), "{failure:?}");
    }

    /// Of a `tcp-stream` on a slow path of which this many bytes arrived.
    fn slow_stream(arrived: u64, control: Option<ControlTraffic>) -> Option<OwnTraffic> {
        let facts = Facts { bulk: Some(Direction::Up), ..Facts::default() };
        let mut server = EndReport::new(Role::Server);
        server.received = Some(Flow { bytes: arrived, ..Flow::default() });
        OwnTraffic::of(&facts, [&EndReport::new(Role::Client), &server]).map(|own| own.beside(control))
    }

    #[test]
    fn slow_stream_beside_the_agents_own_connection_is_proven() {
        // 8 kbit/s for 10 s; ssh with a progress line each second beside it, and some neighbour discovery.
        let control = Some(ControlTraffic { bytes: 2600, messages: 12 });
        let seen = [interface("virt0", 11_200), interface("mgmt", 4300), interface("vf0", 70)];
        let proof = |own| PathProof::from_interfaces(Role::Client, "virt0", &seen, own);
        assert!(proof(None).share.unwrap() < PATH_SHARE_MIN);
        assert_eq!(proof(slow_stream(10_000, control)).failure(), None);
        // What is more than the agent's and some background traffic is named as what it may be.
        let unknown = proof(slow_stream(10_000, None)).failure();
        let Some(PathFailure::TooFewPackets(reason)) = unknown else { panic!("{unknown:?}") };
        assert!(reason.contains("virt0 carried at least the 10000 B of the trial"), "{reason}");
        assert!(reason.contains("other traffic"), "{reason}");
    }

    #[test]
    fn bytes_on_another_path_are_not_excused_as_other_traffic() {
        let control = Some(ControlTraffic { bytes: 2600, messages: 12 });
        // A third of the stream took the other path.
        let seen = [interface("virt0", 7500), interface("vf0", 3700)];
        let proof = PathProof::from_interfaces(Role::Client, "virt0", &seen, slow_stream(10_000, control));
        assert!(matches!(proof.failure(), Some(PathFailure::WrongPath(_))), "{proof:?}");
        // All of a fast one arrived by the expected path, and 5 % as much was seen elsewhere.
        let seen = [interface("virt0", 1_040_000), interface("vf0", 52_000)];
        let proof = PathProof::from_interfaces(Role::Client, "virt0", &seen, slow_stream(1_000_000, control));
        assert!(proof.failure().is_some(), "{proof:?}");
    }
}
