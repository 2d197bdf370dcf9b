//! Documents of `netduel lab`.
use netduel_model::plan::spec::LabPath;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope};
use super::plan::PlanLab;

/// Labs: `netduel lab up`, `path`, `status` and `down` with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabsDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// With `status` every lab of this user; with `up` and `path` the lab as it is now; with `down` none.
    pub labs: Vec<Lab>,
    /// Names of the labs that `down` removed; empty for other commands.
    pub removed: Vec<String>,
}

impl Document for LabsDocument {
    const NAME: &'static str = "netduel.labs";
    // A bare array or object, before documents had versions, was 1.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

/// A lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lab {
    /// Name.
    pub name: String,
    /// What was built.
    pub spec: PlanLab,
    /// Path that was set last.
    pub path: LabPath,
    /// Path that the interfaces and forwarding entries show; null when they are not those of one path.
    pub observed_path: Option<LabPath>,
    /// Process id of the keeper; when it ends, the lab ends.
    pub keeper_pid: i32,
    /// Whether the lab stays until `lab down`; otherwise it ends with the run that built it.
    pub standing: bool,
    /// Whether it has a user namespace of its own: built without root.
    pub user_namespace: bool,
    /// Interfaces of the guests.
    pub interfaces: Vec<LabInterface>,
    /// Policies of the machines.
    pub policies: Vec<LabPolicy>,
}

/// An interface of a guest, with its counters since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabInterface {
    /// Guest, `a` or `b`.
    pub guest: String,
    /// Name of the interface.
    pub interface: String,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// The policy of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabPolicy {
    /// Machine, `h1` or `h2`.
    pub machine: String,
    /// Rules that the kernel evaluates per IPv4 packet.
    pub ipv4_rules: u32,
    /// Rules that the kernel evaluates per IPv6 packet.
    pub ipv6_rules: u32,
}
