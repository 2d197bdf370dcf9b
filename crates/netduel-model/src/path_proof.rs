//! Which way the bytes of a trial went: by interface, and by a virtual function against the synthetic NIC above it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab;
use crate::observation::{InterfaceDelta, Observation};
use crate::plan::spec::PathKind;
use crate::workload::Role;

/// The interface of a host's talk with itself.
const LOOPBACK: &str = "lo";
/// What begins the names of the counters that `hv_netvsc` keeps of what its VF carried.
const VF_BYTES: [&str; 2] = ["vf_rx_bytes", "vf_tx_bytes"];
/// A virtual function is a function on this bus.
const VF_BUS: &str = "pci";

/// The smallest share of a trial's bytes that must have gone through the expected interface. The rest is room for
/// neighbour discovery and other talk of the host.
pub const PATH_SHARE_MIN: f64 = 0.99;

/// Which way the bytes of a trial went at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathProof {
    /// Which end.
    pub role: Role,
    /// The interface that the arm expects.
    pub expected: String,
    /// Bytes, sent and received, by interface, largest first. Masters are left out: their bytes are counted below them.
    pub bytes: Vec<(String, u64)>,
    /// The share of the expected interface; absent when no byte was seen at all.
    pub share: Option<f64>,
    /// Devices that came or went during the trial.
    pub changed: Vec<String>,
    /// The kind of path that the arm expects, when it names one and no interface: `expected` and `bytes` then name kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PathKind>,
}

impl PathProof {
    /// Computes the shares from the interface counters of one end.
    pub fn from_interfaces(role: Role, expected: &str, interfaces: &[InterfaceDelta]) -> Self {
        use crate::observation::Presence;
        let mut bytes: Vec<(String, u64)> = interfaces
            .iter()
            .filter(|interface| !interface.is_master)
            .map(|interface| (interface.name.clone(), interface.rx_bytes + interface.tx_bytes))
            .filter(|(_, bytes)| *bytes > 0)
            .collect();
        bytes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let share = share_of(&bytes, expected);
        let changed = interfaces
            .iter()
            .filter(|interface| interface.presence != Presence::Unchanged)
            .map(|interface| interface.name.clone())
            .collect();
        Self { role, expected: expected.to_owned(), bytes, share, changed, kind: None }
    }

    /// Computes the shares of a VF and of the synthetic NIC above it, whatever they are called. A VF may come back under
    /// another name, so it is found by what lies above it.
    pub fn from_kinds(role: Role, kind: PathKind, observation: &Observation) -> Self {
        let bytes = bytes_by_kind(observation);
        let expected = kind_word(kind);
        let share = share_of(&bytes, expected);
        Self { role, expected: expected.to_owned(), bytes, share, changed: Vec::new(), kind: Some(kind) }
    }

    /// Why this is no proof, or `None` when it is one.
    pub fn failure(&self) -> Option<String> {
        let Self { role, expected, kind, .. } = self;
        if !self.changed.is_empty() {
            return Some(format!("at the {role} {} came or went during the trial", self.changed.join(", ")));
        }
        match self.share {
            None if *kind == Some(PathKind::Vf) => Some(format!(
                "at the {role} no interface has a virtual function beneath it, or none counted a byte"
            )),
            None => Some(format!("at the {role} no interface counted a byte")),
            Some(share) if share < PATH_SHARE_MIN => {
                let seen: Vec<String> =
                    self.bytes.iter().map(|(name, bytes)| format!("{name} {bytes} B")).collect();
                Some(format!(
                    "at the {role} {:.1} % of the bytes went through {expected}, {:.0} % are needed; seen: {}",
                    share * 100.0,
                    PATH_SHARE_MIN * 100.0,
                    seen.join(", ")
                ))
            }
            Some(_) => None,
        }
    }
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
    let total: u64 = bytes.iter().map(|(_, bytes)| bytes).sum();
    let through: u64 = bytes.iter().filter(|(name, _)| name == expected).map(|(_, bytes)| bytes).sum();
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

/// Bytes, sent and received, through virtual functions, through the synthetic NICs above them, and through each other
/// interface, largest first. Where no interface has a virtual function, all that is not loopback is synthetic.
fn bytes_by_kind(observation: &Observation) -> Vec<(String, u64)> {
    let all: Vec<InterfaceDelta> =
        observation.interfaces.iter().filter(|interface| interface.name != LOOPBACK).cloned().collect();
    let bytes = |interface: &InterfaceDelta| interface.rx_bytes + interface.tx_bytes;
    let told_by_driver = |interface: &InterfaceDelta| -> Option<u64> {
        let counters = observation.driver.get(&interface.name)?;
        let found: Vec<i64> = VF_BYTES.iter().filter_map(|name| counters.get(*name).copied()).collect();
        (!found.is_empty()).then(|| found.iter().map(|bytes| u64::try_from(*bytes).unwrap_or(0)).sum())
    };
    let has_vf = |master: &InterfaceDelta| {
        told_by_driver(master).is_some()
            || all.iter().any(|below| below.master.as_deref() == Some(&master.name) && is_vf(below, &all))
    };
    let masters: Vec<&InterfaceDelta> = all.iter().filter(|interface| has_vf(interface)).collect();
    let (mut through_vf, mut synthetic, mut others) = (0, 0, Vec::new());
    for master in &masters {
        let below = || all.iter().filter(|below| below.master.as_deref() == Some(&master.name));
        let counted = below().filter(|below| is_vf(below, &all)).map(bytes).sum();
        let of_vf = told_by_driver(master).unwrap_or(counted);
        through_vf += of_vf;
        // A bridge's own bytes are its ports'; a NIC's own bytes are those of its VF and what went past it.
        let ports: u64 = below().filter(|below| !is_vf(below, &all)).map(bytes).sum();
        let is_nic = master.bus.is_some() || told_by_driver(master).is_some();
        synthetic += if is_nic { bytes(master).saturating_sub(of_vf) } else { ports };
    }
    for interface in all.iter().filter(|interface| !interface.is_master) {
        let beneath = masters.iter().any(|master| interface.master.as_deref() == Some(&master.name));
        if beneath || masters.iter().any(|master| master.name == interface.name) {
            continue;
        }
        if masters.is_empty() {
            synthetic += bytes(interface);
        } else if bytes(interface) > 0 {
            others.push((interface.name.clone(), bytes(interface)));
        }
    }
    let mut found = vec![
        (kind_word(PathKind::Vf).to_owned(), through_vf),
        (kind_word(PathKind::Synthetic).to_owned(), synthetic),
    ];
    found.extend(others);
    found.retain(|(_, bytes)| *bytes > 0);
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Presence;

    fn interface(name: &str, is_master: bool, bytes: u64) -> InterfaceDelta {
        InterfaceDelta { name: name.into(), is_master, tx_bytes: bytes, ..InterfaceDelta::default() }
    }

    #[test]
    fn bytes_of_a_master_are_not_counted_twice() {
        let seen =
            [interface("eth0", true, 1000), interface("vf0", false, 1000), interface("syn0", false, 5)];
        let proof = PathProof::from_interfaces(Role::Client, "vf0", &seen);
        assert_eq!(proof.share.map(|s| (s * 1000.0).round()), Some(995.0));
        assert_eq!(proof.failure(), None);
    }

    #[test]
    fn the_wrong_interface_is_refused_with_what_was_seen() {
        let seen = [interface("vf0", false, 10), interface("syn0", false, 990)];
        let failure = PathProof::from_interfaces(Role::Server, "vf0", &seen).failure().unwrap();
        assert!(failure.contains("1.0 %") && failure.contains("syn0 990 B"), "{failure}");
    }

    #[test]
    fn silence_and_a_device_that_went_are_no_proof() {
        assert!(
            PathProof::from_interfaces(Role::Client, "vf0", &[]).failure().unwrap().contains("no interface")
        );
        let mut gone = interface("vf0", false, 1000);
        gone.presence = Presence::Removed;
        assert!(
            PathProof::from_interfaces(Role::Client, "vf0", &[gone])
                .failure()
                .unwrap()
                .contains("came or went")
        );
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
        PathProof::from_kinds(Role::Client, kind, observation).share.map(|share| (share * 1000.0).round())
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
        let failure = PathProof::from_kinds(Role::Server, PathKind::Vf, &idle).failure().unwrap();
        assert!(failure.contains("0.0 %") && failure.contains("synthetic 1000 B"), "{failure}");
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
        let proof = PathProof::from_kinds(Role::Client, PathKind::Vf, &seen(other, &[]));
        assert_eq!(proof.bytes, [("eth1".to_owned(), 900), ("vf".to_owned(), 100)]);
        assert!(proof.failure().is_some());
        let nothing = PathProof::from_kinds(Role::Client, PathKind::Vf, &seen(Vec::new(), &[]));
        assert!(nothing.failure().unwrap().contains("no interface has a virtual function"));
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
