//! The document of `netduel inspect --json`.
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, Origin};
use super::hosts::{Host, Pair};
use crate::findings::Severity;
use crate::inspect::Inspection;

/// Hosts, their facts and findings: `netduel inspect --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InspectDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Pairs of hosts that were compared.
    pub pairs: Vec<Pair>,
    /// Hosts that could not be read.
    pub failed: Vec<FailedHost>,
    /// Number of findings by severity.
    pub counts: FindingCounts,
}

/// A host that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedHost {
    /// Name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Number of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingCounts {
    /// Problems.
    pub problem: usize,
    /// Warnings.
    pub warning: usize,
    /// Notes.
    pub note: usize,
}

impl Document for InspectDocument {
    const NAME: &'static str = "netduel.inspect";
    // 1: `format` and `format_version`; facts as stored.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

impl InspectDocument {
    /// Of an inspection.
    pub fn of(inspection: &Inspection, origin: &Origin) -> Self {
        let count =
            |severity| inspection.findings().filter(|(_, finding)| finding.severity == severity).count();
        let failed =
            |(name, reason): &(String, String)| FailedHost { name: name.clone(), reason: reason.clone() };
        Self {
            envelope: Self::envelope(origin),
            hosts: inspection.hosts.iter().map(Host::of).collect(),
            pairs: inspection.pairs.iter().map(Pair::of).collect(),
            failed: inspection.failed.iter().map(failed).collect(),
            counts: FindingCounts {
                problem: count(Severity::Problem),
                warning: count(Severity::Warning),
                note: count(Severity::Note),
            },
        }
    }
}
