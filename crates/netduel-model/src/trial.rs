//! A trial: one workload on one arm, once, with everything that both ends and their observers recorded.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failover::LabEvents;
use crate::ids::{ArmName, WorkloadName};
use crate::observation::Observation;
use crate::sample::EndReport;
use crate::search::SearchReport;
use crate::workload::Role;

pub use crate::own_traffic::{OtherTraffic, OwnPackets, OwnTraffic};
pub use crate::path_proof::{PATH_SHARE_MIN, PathFailure, PathProof};

/// Where a trial stands in the schedule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Interfaces that carried the bytes, at each end for which the arm states an expectation.
    pub proofs: Vec<PathProof>,
    /// What the lab did to the path meanwhile, in a `failover` between its guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab_events: Option<LabEvents>,
    /// What was searched for and found, when the trial was a search. The ends are then those of one of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
}

/// One end of a trial: traffic and observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialEnd {
    /// What the load measured.
    pub report: EndReport,
    /// What the observer saw.
    pub observation: Observation,
}

impl Trial {
    /// A trial that has measured nothing yet.
    pub fn new(slot: Slot, attempt: u32, started_unix_ms: u64) -> Self {
        Self {
            slot,
            attempt,
            started_unix_ms,
            validity: Validity::Valid,
            client: None,
            server: None,
            proofs: Vec::new(),
            lab_events: None,
            search: None,
        }
    }
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

impl Validity {
    /// Why the trial enters no verdict; absent for a valid trial.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Valid => None,
            Self::WrongPath { reason } | Self::PathUnproven { reason } | Self::Failed { reason } => {
                Some(reason)
            }
        }
    }

    /// That of a trial whose path has these failures: a wrong path outweighs one that is unproven.
    pub fn of_path(failures: &[PathFailure]) -> Self {
        let reasons: Vec<&str> = failures.iter().map(PathFailure::reason).collect();
        let reason = reasons.join("; ");
        if failures.is_empty() {
            Self::Valid
        } else if failures.iter().any(|failure| matches!(failure, PathFailure::WrongPath(_))) {
            Self::WrongPath { reason }
        } else {
            Self::PathUnproven { reason }
        }
    }
}

/// Whether a trial enters a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Validity {
    /// It does.
    Valid,
    /// The bytes did not use the path that the arm names.
    WrongPath {
        /// What was seen.
        reason: String,
    },
    /// The counters cannot tell which path the bytes used: the trial has too few packets beside background traffic.
    PathUnproven {
        /// What was seen.
        reason: String,
    },
    /// Something failed: the trial has no figures.
    Failed {
        /// The operation that failed, and the reason.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_path_outweighs_too_few_packets() {
        let few = PathFailure::TooFewPackets("few".to_owned());
        let wrong = PathFailure::WrongPath("wrong".to_owned());
        assert_eq!(Validity::of_path(&[]), Validity::Valid);
        assert_eq!(
            Validity::of_path(std::slice::from_ref(&few)),
            Validity::PathUnproven { reason: "few".to_owned() }
        );
        let both = Validity::of_path(&[few, wrong]);
        assert_eq!(both.reason(), Some("few; wrong"));
        assert!(matches!(both, Validity::WrongPath { .. }));
    }
}
