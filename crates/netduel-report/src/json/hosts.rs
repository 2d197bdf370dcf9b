//! Hosts with their facts and findings in JSON, for reports and for `netduel inspect`.
use schemars::JsonSchema;
use serde::Serialize;

use super::facts::HostFacts;
use crate::findings::{self, Acceleration, Severity, accelerations};
use crate::inspect::{InspectedHost, InspectedPair};

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Host {
    /// Name in the plan or on the command line.
    pub name: String,
    /// Where a plan has it, in words; null without a plan.
    pub place: Option<String>,
    /// Facts.
    pub facts: HostFacts,
    /// State of accelerated networking of each paravirtual interface.
    pub accelerated_networking: Vec<AcceleratedNetworking>,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
}

/// Accelerated networking of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AcceleratedNetworking {
    /// The paravirtual interface.
    pub interface: String,
    /// State.
    pub state: AccelerationState,
    /// Interface of the virtual function; null when it has none.
    pub function: Option<String>,
    /// Place of the virtual function on the PCI bus, when it has no interface.
    pub slot: Option<String>,
    /// The state in words.
    pub text: String,
}

/// State of accelerated networking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccelerationState {
    /// The virtual function carries packets.
    Active,
    /// The virtual function is paired and up; no counter shows whether it carries packets.
    Paired,
    /// The virtual function is paired, but down or without any packet.
    Idle,
    /// The virtual function is not beneath the paravirtual interface.
    Unpaired,
    /// No driver is bound to the virtual function.
    NoDriver,
    /// The virtual function has no interface in this network namespace.
    PciOnly,
    /// There is no virtual function.
    SyntheticOnly,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Stable id.
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Interface; null for the host as a whole.
    pub interface: Option<String>,
    /// What was found.
    pub what: String,
    /// The facts that led to it.
    pub evidence: Vec<String>,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub remedy: String,
    /// Command that does it; null when no command of the host can.
    pub command: Option<String>,
}

/// A pair of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pair {
    /// Client.
    pub client: String,
    /// Server.
    pub server: String,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
}

impl Host {
    /// Of an inspected host.
    pub fn of(host: &InspectedHost) -> Self {
        let accelerated = |(interface, state): (&netduel_model::snapshot::Interface, Acceleration)| {
            AcceleratedNetworking::of(&interface.name, &state)
        };
        Self {
            name: host.name.clone(),
            place: host.place.clone(),
            facts: HostFacts::of(&host.snapshot),
            accelerated_networking: accelerations(&host.snapshot).into_iter().map(accelerated).collect(),
            findings: host.findings.iter().map(Finding::of).collect(),
        }
    }
}

impl Pair {
    /// Of an inspected pair.
    pub fn of(pair: &InspectedPair) -> Self {
        Self {
            client: pair.client.clone(),
            server: pair.server.clone(),
            findings: pair.findings.iter().map(Finding::of).collect(),
        }
    }
}

impl AcceleratedNetworking {
    fn of(interface: &str, state: &Acceleration) -> Self {
        let text = state.words();
        let interface = interface.to_owned();
        let (state, function, slot) = match state {
            Acceleration::Active { function } => (AccelerationState::Active, Some(function), None),
            Acceleration::Paired { function } => (AccelerationState::Paired, Some(function), None),
            Acceleration::Idle { function, .. } => (AccelerationState::Idle, Some(function), None),
            Acceleration::Unpaired { function } => (AccelerationState::Unpaired, Some(function), None),
            Acceleration::NoDriver { slot } => (AccelerationState::NoDriver, None, Some(slot)),
            Acceleration::PciOnly { slot } => (AccelerationState::PciOnly, None, Some(slot)),
            Acceleration::SyntheticOnly => (AccelerationState::SyntheticOnly, None, None),
        };
        Self { interface, state, function: function.cloned(), slot: slot.cloned(), text }
    }
}

impl Finding {
    fn of(finding: &findings::Finding) -> Self {
        Self {
            id: finding.id,
            severity: finding.severity,
            interface: finding.interface.clone(),
            what: finding.what.clone(),
            evidence: finding.evidence.clone(),
            why: finding.why.clone(),
            remedy: finding.remedy.clone(),
            command: finding.command.clone(),
        }
    }
}
