//! A trial: one workload on one arm, once, with everything that both ends and their observers recorded.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failover::LabEvents;
use crate::ids::{ArmName, WorkloadName};
use crate::observation::Observation;
use crate::sample::EndReport;
use crate::search::SearchReport;
use crate::workload::Role;

pub use crate::path_proof::{PATH_SHARE_MIN, PathProof};

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
    /// Which way the bytes went, at each end for which the arm says what is expected.
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

/// Whether a trial enters a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
