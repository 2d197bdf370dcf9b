//! Which way the bytes of a trial went: by interface, and by a virtual function against the synthetic NIC above it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab;
use crate::observation::{InterfaceDelta, Observation};
use crate::plan::spec::PathKind;
use crate::sample::EndReport;
use crate::snapshot::LOOPBACK;
use crate::workload::{Facts, Role, Wire, WorkUnit};

/// A virtual function is a function on this bus.
const VF_BUS: &str = "pci";

/// The smallest share of a trial's bytes that must have gone through the expected interface. The rest allows for background traffic
/// of the host: neighbour discovery, multicast membership, other programs.
pub const PATH_SHARE_MIN: f64 = 0.99;

/// With few round trips, background traffic is more than 1 % of the bytes. The trial's own packets are then counted: of so many, at most
/// one may have used another path, even if other interfaces carried nothing but packets of the trial.
const OWN_PACKETS_PER_STRAY: u64 = 10;

/// Bytes of the shortest IP header (IPv4 without options).
const IP_HEADER_BYTES: u64 = 20;
/// Bytes of a UDP header, and of the header of an ICMP echo message.
const DATAGRAM_HEADER_BYTES: u64 = 8;

/// A counter of interfaces: of `IFLA_STATS64`, and of what `hv_netvsc` counts of its VF (`ethtool -S`).
struct Counter {
    of_interface: fn(&InterfaceDelta) -> u64,
    of_driver: [&'static str; 2],
}

const BYTES: Counter = Counter {
    of_interface: |interface| interface.rx_bytes.saturating_add(interface.tx_bytes),
    of_driver: ["vf_rx_bytes", "vf_tx_bytes"],
};

const PACKETS: Counter = Counter {
    of_interface: |interface| interface.rx_packets.saturating_add(interface.tx_packets),
    of_driver: ["vf_rx_packets", "vf_tx_packets"],
};

/// Interfaces that carried the bytes of a trial at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathProof {
    /// Which end.
    pub role: Role,
    /// The interface that the arm expects.
    pub expected: String,
    /// Bytes, sent and received, by interface, largest first. Masters are excluded: their bytes are counted below them.
    pub bytes: Vec<(String, u64)>,
    /// The share of the expected interface; absent when no byte was seen at all.
    pub share: Option<f64>,
    /// Devices that appeared or disappeared during the trial.
    pub changed: Vec<String>,
    /// The kind of path that the arm expects, when it names one and no interface: `expected` and `bytes` then name kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PathKind>,
    /// The trial's own packets, which decide when background traffic is more than 1 % of the bytes; absent when the trial's packets
    /// are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_packets: Option<OwnPackets>,
}

/// The trial's own packets at one end, and the packets that the interfaces counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnPackets {
    /// Packets that the trial sent and received at this end, at least: two for each completed round trip.
    pub packets: u64,
    /// Packets that the expected interface counted, sent and received.
    pub expected: u64,
    /// Packets of other interfaces that are long enough to belong to the trial, at most.
    pub elsewhere_max: u64,
}

/// Why the path of a trial is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathFailure {
    /// Bytes of the trial used another path.
    WrongPath(String),
    /// The counters cannot distinguish the trial's packets from background traffic.
    TooFewPackets(String),
}

impl PathFailure {
    /// What was seen.
    pub fn reason(&self) -> &str {
        match self {
            Self::WrongPath(reason) | Self::TooFewPackets(reason) => reason,
        }
    }
}

/// The packets of a trial's round trips, as far as they can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTraffic {
    /// Packets at each end, at least.
    packets: u64,
    /// Bytes of the shortest of them, from the IP header on.
    packet_bytes_min: u64,
}

impl OwnTraffic {
    /// Of round trips that the client completed; absent for other workloads, whose packets are many or of unknown number.
    pub fn of(facts: &Facts<'_>, client: &EndReport) -> Option<Self> {
        let requests = facts.requests?;
        // Outstanding requests of a TCP connection may share a packet.
        let is_one_a_packet = match facts.wire {
            Wire::Datagrams { .. } => true,
            _ => requests.rate.is_some() || requests.outstanding == 1,
        };
        if facts.unit != WorkUnit::RoundTrip || facts.bulk.is_some() || !is_one_a_packet {
            return None;
        }
        let packet_bytes_min = match facts.wire {
            Wire::Datagrams { size, .. } => IP_HEADER_BYTES + DATAGRAM_HEADER_BYTES + size.0,
            _ => IP_HEADER_BYTES,
        };
        let responses = client.round_trips.as_ref()?.responses;
        (responses > 0).then_some(Self { packets: 2 * responses, packet_bytes_min })
    }

    /// Compares it with the interfaces. `bytes` and `packets` are by interface or kind.
    fn compare(self, expected: &str, bytes: &[(String, u64)], packets: &[(String, u64)]) -> OwnPackets {
        let of = |counts: &[(String, u64)], name: &str| {
            counts.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count)
        };
        let others = bytes.iter().filter(|(name, _)| name != expected);
        let elsewhere_max = others
            .map(|(name, bytes)| of(packets, name).min(bytes / self.packet_bytes_min))
            .fold(0, u64::saturating_add);
        OwnPackets { packets: self.packets, expected: of(packets, expected), elsewhere_max }
    }
}

impl OwnPackets {
    /// Whether enough of the trial's packets used the expected path, even if all other packets were of the trial.
    fn is_proof(self) -> bool {
        self.expected >= self.packets && self.elsewhere_max <= self.packets / OWN_PACKETS_PER_STRAY
    }
}

impl PathProof {
    /// Computes the shares from the interface counters of one end.
    pub fn from_interfaces(
        role: Role,
        expected: &str,
        interfaces: &[InterfaceDelta],
        own: Option<OwnTraffic>,
    ) -> Self {
        use crate::observation::Presence;
        let by_interface = |counter: &Counter| {
            let ports = interfaces.iter().filter(|interface| !interface.is_master);
            sorted(ports.map(|port| (port.name.clone(), (counter.of_interface)(port))).collect())
        };
        let bytes = by_interface(&BYTES);
        let own_packets = own.map(|own| own.compare(expected, &bytes, &by_interface(&PACKETS)));
        let share = share_of(&bytes, expected);
        let changed = interfaces
            .iter()
            .filter(|interface| interface.presence != Presence::Unchanged)
            .map(|interface| interface.name.clone())
            .collect();
        Self { role, expected: expected.to_owned(), bytes, share, changed, kind: None, own_packets }
    }

    /// Computes the shares of a VF and of the synthetic NIC above it, whatever they are called. A VF may come back under
    /// another name, so it is found by what lies above it.
    pub fn from_kinds(
        role: Role,
        kind: PathKind,
        observation: &Observation,
        own: Option<OwnTraffic>,
    ) -> Self {
        let bytes = by_kind(observation, &BYTES);
        let expected = kind_word(kind);
        let own_packets = own.map(|own| own.compare(expected, &bytes, &by_kind(observation, &PACKETS)));
        let share = share_of(&bytes, expected);
        let (expected, changed) = (expected.to_owned(), Vec::new());
        Self { role, expected, bytes, share, changed, kind: Some(kind), own_packets }
    }

    /// Why this is no proof, or `None` when it is one.
    pub fn failure(&self) -> Option<PathFailure> {
        let Self { role, expected, kind, .. } = self;
        let wrong = |reason: String| Some(PathFailure::WrongPath(reason));
        if !self.changed.is_empty() {
            return wrong(format!(
                "at the {role} {} appeared or disappeared during the trial",
                self.changed.join(", ")
            ));
        }
        let Some(share) = self.share else {
            return wrong(match kind {
                Some(PathKind::Vf) => format!(
                    "at the {role} no interface has a virtual function below it, or none counted a byte"
                ),
                _ => format!("at the {role} no interface counted a byte"),
            });
        };
        if share >= PATH_SHARE_MIN || self.own_packets.is_some_and(OwnPackets::is_proof) {
            return None;
        }
        let seen: Vec<String> = self.bytes.iter().map(|(name, bytes)| format!("{name} {bytes} B")).collect();
        let seen = seen.join(", ");
        match self.own_packets {
            Some(own) if own.expected >= own.packets => Some(PathFailure::TooFewPackets(format!(
                "at the {role} too few packets to prove the path: the trial has {} packets, {expected} carried {}, and up to {} others may \
                 belong to the trial; seen: {seen}; raise the request rate or the duration",
                own.packets, own.expected, own.elsewhere_max
            ))),
            _ => wrong(format!(
                "at the {role} {:.1} % of the bytes went through {expected}, {:.0} % are needed; seen: {seen}",
                // Rounded down, so that it never looks like enough.
                (share * 1000.0).floor() / 10.0,
                PATH_SHARE_MIN * 100.0,
            )),
        }
    }
}

/// Counts by name, without zeros, largest first.
fn sorted(mut counts: Vec<(String, u64)>) -> Vec<(String, u64)> {
    counts.retain(|(_, count)| *count > 0);
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

/// The word of a kind in proofs.
fn kind_word(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Vf => "vf",
        PathKind::Synthetic => "synthetic",
    }
}

/// The share of one name; absent when no byte was counted.
fn share_of(bytes: &[(String, u64)], expected: &str) -> Option<f64> {
    let total: u64 = bytes.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    let through: u64 = bytes
        .iter()
        .filter(|(name, _)| name == expected)
        .map(|(_, bytes)| *bytes)
        .fold(0, u64::saturating_add);
    (total > 0).then(|| through as f64 / total as f64)
}

/// Whether an interface is a virtual function beneath a synthetic NIC: a PCI function under a master that is a device itself
/// (`hv_netvsc` on the VMBus, `net_failover` on virtio), or the one that the local lab emulates.
fn is_vf(interface: &InterfaceDelta, all: &[InterfaceDelta]) -> bool {
    let Some(master) = interface.master.as_deref() else { return false };
    let above_is_device = || all.iter().any(|other| other.name == master && other.bus.is_some());
    let beside =
        |name: &str| all.iter().any(|other| other.name == name && other.master.as_deref() == Some(master));
    (interface.bus.as_deref() == Some(VF_BUS) && above_is_device())
        || (interface.name == lab::ACCELERATED_INTERFACE && beside(lab::SYNTHETIC_INTERFACE))
}

/// Bytes or packets, sent and received, through virtual functions, through the synthetic NICs above them, and through each other
/// interface, largest first. Where no interface has a virtual function, all that is not loopback is synthetic.
fn by_kind(observation: &Observation, counter: &Counter) -> Vec<(String, u64)> {
    let all: Vec<InterfaceDelta> =
        observation.interfaces.iter().filter(|interface| interface.name != LOOPBACK).cloned().collect();
    let count = counter.of_interface;
    let count_of_driver = |interface: &InterfaceDelta| -> Option<u64> {
        let counters = observation.driver.get(&interface.name)?;
        let found: Vec<i64> =
            counter.of_driver.iter().filter_map(|name| counters.get(*name).copied()).collect();
        (!found.is_empty()).then(|| found.iter().map(|count| u64::try_from(*count).unwrap_or(0)).sum())
    };
    let has_vf = |master: &InterfaceDelta| {
        count_of_driver(master).is_some()
            || all.iter().any(|below| below.master.as_deref() == Some(&master.name) && is_vf(below, &all))
    };
    let masters: Vec<&InterfaceDelta> = all.iter().filter(|interface| has_vf(interface)).collect();
    let (mut through_vf, mut synthetic, mut others) = (0, 0, Vec::new());
    for master in &masters {
        let below = || all.iter().filter(|below| below.master.as_deref() == Some(&master.name));
        let counted = below().filter(|below| is_vf(below, &all)).map(count).fold(0, u64::saturating_add);
        let of_vf = count_of_driver(master).unwrap_or(counted);
        through_vf += of_vf;
        // A bridge counts what its ports count; a NIC counts what its VF carried and what bypassed the VF.
        let ports: u64 = below().filter(|below| !is_vf(below, &all)).map(count).fold(0, u64::saturating_add);
        let is_nic = master.bus.is_some() || count_of_driver(master).is_some();
        synthetic += if is_nic { count(master).saturating_sub(of_vf) } else { ports };
    }
    for interface in all.iter().filter(|interface| !interface.is_master) {
        let beneath = masters.iter().any(|master| interface.master.as_deref() == Some(&master.name));
        if beneath || masters.iter().any(|master| master.name == interface.name) {
            continue;
        }
        if masters.is_empty() {
            synthetic += count(interface);
        } else if count(interface) > 0 {
            others.push((interface.name.clone(), count(interface)));
        }
    }
    let mut found = vec![
        (kind_word(PathKind::Vf).to_owned(), through_vf),
        (kind_word(PathKind::Synthetic).to_owned(), synthetic),
    ];
    found.extend(others);
    sorted(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Presence;
    use crate::sample::{HistogramRecord, RoundTripReport};

    fn interface(name: &str, is_master: bool, bytes: u64) -> InterfaceDelta {
        InterfaceDelta { name: name.into(), is_master, tx_bytes: bytes, ..InterfaceDelta::default() }
    }

    #[test]
    fn bytes_of_a_master_are_not_counted_twice() {
        let seen =
            [interface("eth0", true, 1000), interface("vf0", false, 1000), interface("syn0", false, 5)];
        let proof = PathProof::from_interfaces(Role::Client, "vf0", &seen, None);
        assert_eq!(proof.share.map(|s| (s * 1000.0).round()), Some(995.0));
        assert_eq!(proof.failure(), None);
    }

    #[test]
    fn the_wrong_interface_is_refused_with_what_was_seen() {
        let seen = [interface("vf0", false, 10), interface("syn0", false, 990)];
        let failure = PathProof::from_interfaces(Role::Server, "vf0", &seen, None).failure().unwrap();
        assert!(failure.reason().contains("1.0 %") && failure.reason().contains("syn0 990 B"), "{failure:?}");
    }

    #[test]
    fn silence_and_a_device_that_went_are_no_proof() {
        let reason = |interfaces: &[InterfaceDelta]| {
            let proof = PathProof::from_interfaces(Role::Client, "vf0", interfaces, None);
            proof.failure().unwrap().reason().to_owned()
        };
        assert!(reason(&[]).contains("no interface"));
        let mut gone = interface("vf0", false, 1000);
        gone.presence = Presence::Removed;
        assert!(reason(&[gone]).contains("appeared or disappeared"));
    }

    fn counted(name: &str, packets: u64, bytes: u64) -> InterfaceDelta {
        InterfaceDelta { rx_packets: packets, rx_bytes: bytes, ..interface(name, false, 0) }
    }

    /// Of a client with this number of round trips of 64 bytes.
    fn own(round_trips: u64) -> Option<OwnTraffic> {
        let text = "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\n\
                    addresses = [\"127.0.0.1\"]\n[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n[design]\naa = true\n\
                    [[workloads]]\nname = \"w\"\ntype = \"udp-rr\"\nrequest_rate = \"2 /s\"\n";
        let plan = crate::plan::parse(text, "p").unwrap_or_else(|errors| panic!("{errors}"));
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
        OwnTraffic::of(&plan.arms[0].workloads[0].traffic.facts(), &client)
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
    fn packets_of_a_vf_are_counted_by_the_driver_of_its_master() {
        let packets = |interface: InterfaceDelta, count| InterfaceDelta { rx_packets: count, ..interface };
        let pair = vec![
            packets(on_bus("eth0", None, "vmbus", 2350), 23),
            packets(on_bus("enP1s1", Some("eth0"), "pci", 0), 0),
        ];
        let driver =
            [("vf_rx_bytes", 1060), ("vf_tx_bytes", 1060), ("vf_rx_packets", 10), ("vf_tx_packets", 10)];
        let proof = PathProof::from_kinds(Role::Client, PathKind::Vf, &seen(pair, &driver), own(10));
        assert_eq!(proof.own_packets, Some(OwnPackets { packets: 20, expected: 20, elsewhere_max: 2 }));
        assert_eq!(proof.failure(), None);
    }

    fn on_bus(name: &str, master: Option<&str>, bus: &str, bytes: u64) -> InterfaceDelta {
        let is_master = name == "eth0" && bus == "vmbus";
        InterfaceDelta {
            master: master.map(Into::into),
            bus: Some(bus.into()),
            ..interface(name, is_master, bytes)
        }
    }

    fn seen(interfaces: Vec<InterfaceDelta>, driver: &[(&str, i64)]) -> Observation {
        let counters = driver.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Observation { interfaces, driver: [("eth0".to_owned(), counters)].into(), ..Observation::default() }
    }

    fn share(kind: PathKind, observation: &Observation) -> Option<f64> {
        PathProof::from_kinds(Role::Client, kind, observation, None)
            .share
            .map(|share| (share * 1000.0).round())
    }

    #[test]
    fn a_vf_is_found_by_what_lies_above_it_and_not_by_its_name() {
        let pair = |vf: u64, all: u64| {
            vec![
                on_bus("eth0", None, "vmbus", all),
                on_bus("enP53s1", Some("eth0"), "pci", vf),
                interface("lo", false, 77),
            ]
        };
        let fast = seen(pair(995, 1000), &[]);
        assert_eq!((share(PathKind::Vf, &fast), share(PathKind::Synthetic, &fast)), (Some(995.0), Some(5.0)));
        let idle = seen(pair(0, 1000), &[]);
        assert_eq!(share(PathKind::Synthetic, &idle), Some(1000.0));
        let failure = PathProof::from_kinds(Role::Server, PathKind::Vf, &idle, None).failure().unwrap();
        assert!(
            failure.reason().contains("0.0 %") && failure.reason().contains("synthetic 1000 B"),
            "{failure:?}"
        );
        // The VF went and came back as another device: its own counters are lost, the driver's are not.
        let renamed = seen(pair(1, 1000), &[("vf_rx_bytes", 10), ("vf_tx_bytes", 985), ("tx_busy", 3)]);
        assert_eq!(share(PathKind::Vf, &renamed), Some(995.0));
    }

    #[test]
    fn without_a_vf_everything_is_synthetic_and_another_card_is_neither() {
        let card = InterfaceDelta { is_master: false, ..on_bus("eth0", None, "vmbus", 1000) };
        let alone = seen(vec![card], &[]);
        assert_eq!(
            (share(PathKind::Synthetic, &alone), share(PathKind::Vf, &alone)),
            (Some(1000.0), Some(0.0))
        );
        let other = vec![
            on_bus("eth0", None, "vmbus", 100),
            on_bus("enP1s1", Some("eth0"), "pci", 100),
            on_bus("eth1", None, "pci", 900),
        ];
        let proof = PathProof::from_kinds(Role::Client, PathKind::Vf, &seen(other, &[]), None);
        assert_eq!(proof.bytes, [("eth1".to_owned(), 900), ("vf".to_owned(), 100)]);
        assert!(proof.failure().is_some());
        let nothing = PathProof::from_kinds(Role::Client, PathKind::Vf, &seen(Vec::new(), &[]), None);
        assert!(nothing.failure().unwrap().reason().contains("no interface has a virtual function"));
    }

    #[test]
    fn the_labs_emulated_vf_is_one() {
        let port = |name: &str, bytes| InterfaceDelta {
            master: Some("eth0".into()),
            ..interface(name, false, bytes)
        };
        let lab = seen(vec![interface("eth0", true, 1000), port("vf0", 992), port("syn0", 8)], &[]);
        assert_eq!(share(PathKind::Vf, &lab), Some(992.0));
        let bridge = seen(vec![interface("eth0", true, 1000), port("vf0", 992)], &[]);
        assert_eq!(share(PathKind::Synthetic, &bridge), Some(1000.0), "a port of that name alone is none");
    }
}
