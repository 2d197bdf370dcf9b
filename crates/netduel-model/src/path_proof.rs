//! Which way the bytes of a trial went: by interface, and by a virtual function against the synthetic NIC above it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab;
use crate::observation::{InterfaceDelta, Observation};
use crate::own_traffic::{OtherTraffic, OwnPackets, OwnTraffic};
use crate::plan::spec::PathKind;
use crate::snapshot::LOOPBACK;
use crate::word::word;
use crate::workload::Role;

/// A virtual function is a function on this bus.
const VF_BUS: &str = "pci";

/// The smallest share of a trial's bytes that must have gone through the expected interface. The rest allows for background traffic
/// of the host: neighbour discovery, multicast membership, other programs.
pub const PATH_SHARE_MIN: f64 = 0.99;

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
    /// Bytes of the trial and of other traffic, which decide for a trial whose packets are not known; absent when its bytes are not
    /// known either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_traffic: Option<OtherTraffic>,
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
        let own_packets = own.and_then(|own| own.packets(expected, &bytes, &by_interface(&PACKETS)));
        let other_traffic = own.and_then(OwnTraffic::other);
        let share = share_of(&bytes, expected);
        let changed = interfaces
            .iter()
            .filter(|interface| interface.presence != Presence::Unchanged)
            .map(|interface| interface.name.clone())
            .collect();
        let expected = expected.to_owned();
        Self { role, expected, bytes, share, changed, kind: None, own_packets, other_traffic }
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
        let expected = word(&kind);
        let own_packets = own.and_then(|own| own.packets(expected, &bytes, &by_kind(observation, &PACKETS)));
        let other_traffic = own.and_then(OwnTraffic::other);
        let share = share_of(&bytes, expected);
        let (expected, changed) = (expected.to_owned(), Vec::new());
        Self { role, expected, bytes, share, changed, kind: Some(kind), own_packets, other_traffic }
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
        let through = self.bytes.iter().find(|(name, _)| name == expected).map_or(0, |(_, bytes)| *bytes);
        let others = self.bytes.iter().filter(|(name, _)| name != expected);
        let elsewhere = others.map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
        if share >= PATH_SHARE_MIN
            || self.own_packets.is_some_and(OwnPackets::is_proof)
            || self.other_traffic.is_some_and(|other| other.is_proof(through, elsewhere))
        {
            return None;
        }
        let seen: Vec<String> = self.bytes.iter().map(|(name, bytes)| format!("{name} {bytes} B")).collect();
        let seen = seen.join(", ");
        if let Some(own) = self.own_packets.filter(|own| own.expected >= own.packets) {
            return Some(PathFailure::TooFewPackets(format!(
                "at the {role} too few packets to prove the path: the trial has {} packets, {expected} carried {}, and up to {} others may \
                 belong to the trial; seen: {seen}; raise the request rate or the duration",
                own.packets, own.expected, own.elsewhere_max
            )));
        }
        // Rounded down, so that it never looks like enough.
        let percent = (share * 1000.0).floor() / 10.0;
        let needed = PATH_SHARE_MIN * 100.0;
        let shares = format!(
            "at the {role} {percent:.1} % of the bytes went through {expected}, {needed:.0} % are needed; seen: {seen}"
        );
        match self.other_traffic.filter(|other| through >= other.own_bytes) {
            Some(other) => Some(PathFailure::TooFewPackets(format!(
                "{shares}; {expected} carried at least the {} B of the trial, so the rest may be other traffic; raise the rate or the \
                 duration, or stop that traffic",
                other.own_bytes
            ))),
            None => wrong(shares),
        }
    }
}

/// Counts by name, without zeros, largest first.
fn sorted(mut counts: Vec<(String, u64)>) -> Vec<(String, u64)> {
    counts.retain(|(_, count)| *count > 0);
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
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
        (!found.is_empty()).then(|| {
            found.iter().map(|count| u64::try_from(*count).unwrap_or(0)).fold(0, u64::saturating_add)
        })
    };
    let has_vf = |master: &InterfaceDelta| {
        count_of_driver(master).is_some()
            || all.iter().any(|below| below.master.as_deref() == Some(&master.name) && is_vf(below, &all))
    };
    let masters: Vec<&InterfaceDelta> = all.iter().filter(|interface| has_vf(interface)).collect();
    let (mut through_vf, mut synthetic, mut others) = (0_u64, 0_u64, Vec::new());
    for master in &masters {
        let below = || all.iter().filter(|below| below.master.as_deref() == Some(&master.name));
        let counted = below().filter(|below| is_vf(below, &all)).map(count).fold(0, u64::saturating_add);
        let of_vf = count_of_driver(master).unwrap_or(counted);
        through_vf = through_vf.saturating_add(of_vf);
        // A bridge counts what its ports count; a NIC counts what its VF carried and what bypassed the VF.
        let ports: u64 = below().filter(|below| !is_vf(below, &all)).map(count).fold(0, u64::saturating_add);
        let is_nic = master.bus.is_some() || count_of_driver(master).is_some();
        let beside = if is_nic { count(master).saturating_sub(of_vf) } else { ports };
        synthetic = synthetic.saturating_add(beside);
    }
    for interface in all.iter().filter(|interface| !interface.is_master) {
        let beneath = masters.iter().any(|master| interface.master.as_deref() == Some(&master.name));
        if beneath || masters.iter().any(|master| master.name == interface.name) {
            continue;
        }
        if masters.is_empty() {
            synthetic = synthetic.saturating_add(count(interface));
        } else if count(interface) > 0 {
            others.push((interface.name.clone(), count(interface)));
        }
    }
    let mut found = vec![
        (word(&PathKind::Vf).to_owned(), through_vf),
        (word(&PathKind::Synthetic).to_owned(), synthetic),
    ];
    found.extend(others);
    sorted(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Presence;
    use crate::own_traffic::tests::own;

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

    /// They are an agent's.
    #[test]
    fn counters_may_be_the_largest_numbers() {
        let all = ["eth0", "eth1"].map(|name| on_bus(name, None, "pci", u64::MAX)).to_vec();
        let proof = PathProof::from_kinds(Role::Client, PathKind::Vf, &seen(all, &[]), None);
        assert_eq!(proof.bytes, [("synthetic".to_owned(), u64::MAX)]);
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
