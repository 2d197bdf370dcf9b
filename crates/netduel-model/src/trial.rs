//! A trial: one workload on one arm, once, with everything that both ends and their observers recorded.
use serde::{Deserialize, Serialize};

use crate::failover::LabEvents;
use crate::ids::{ArmName, WorkloadName};
use crate::observation::{InterfaceDelta, Observation};
use crate::sample::EndReport;
use crate::workload::Role;

/// Where a trial stands in the schedule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// Block, from 0.
    pub block: u32,
    /// Position within the block, from 0.
    pub position: u32,
    /// Which arm.
    pub arm: ArmName,
    /// Which workload.
    pub workload: WorkloadName,
}

/// A finished trial as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Where it stood in the schedule.
    pub slot: Slot,
    /// 0 at first; higher when the block was run again after an interruption. Only the highest counts.
    pub attempt: u32,
    /// Wall clock at the start, milliseconds since the Unix epoch. For the eye; never used for an interval.
    pub started_unix_ms: u64,
    /// Whether it counts.
    pub validity: Validity,
    /// What both ends measured; absent when the trial failed before.
    pub client: Option<TrialEnd>,
    /// The server's.
    pub server: Option<TrialEnd>,
    /// Which way the bytes went, at each end for which the arm says what is expected.
    pub proofs: Vec<PathProof>,
    /// What the lab did to the path meanwhile, in a `failover` between its guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab_events: Option<LabEvents>,
}

/// One end of a trial: traffic and observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialEnd {
    /// What the load measured.
    pub report: EndReport,
    /// What the observer saw.
    pub observation: Observation,
}

impl Trial {
    /// The end of the given role.
    pub fn end(&self, role: Role) -> Option<&TrialEnd> {
        match role {
            Role::Client => self.client.as_ref(),
            Role::Server => self.server.as_ref(),
        }
    }
    /// Whether it enters verdicts.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }
}

/// Whether a trial enters a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Validity {
    /// It does.
    Valid,
    /// The bytes did not go where the label says.
    WrongPath {
        /// What was seen.
        reason: String,
    },
    /// Something failed: the trial has no figures.
    Failed {
        /// What, and why.
        reason: String,
    },
}

/// The smallest share of a trial's bytes that must have gone through the expected interface. The rest is room for
/// neighbour discovery and other talk of the host.
pub const PATH_SHARE_MIN: f64 = 0.99;

/// Which way the bytes of a trial went at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
        let total: u64 = bytes.iter().map(|(_, bytes)| bytes).sum();
        let through: u64 = bytes.iter().filter(|(name, _)| name == expected).map(|(_, bytes)| bytes).sum();
        let share = (total > 0).then(|| through as f64 / total as f64);
        let changed = interfaces
            .iter()
            .filter(|interface| interface.presence != Presence::Stayed)
            .map(|interface| interface.name.clone())
            .collect();
        Self { role, expected: expected.to_owned(), bytes, share, changed }
    }

    /// Why this is no proof, or `None` when it is one.
    pub fn failure(&self) -> Option<String> {
        let Self { role, expected, .. } = self;
        if !self.changed.is_empty() {
            return Some(format!("at the {role} {} came or went during the trial", self.changed.join(", ")));
        }
        match self.share {
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
        gone.presence = Presence::Vanished;
        assert!(
            PathProof::from_interfaces(Role::Client, "vf0", &[gone])
                .failure()
                .unwrap()
                .contains("came or went")
        );
    }
}
