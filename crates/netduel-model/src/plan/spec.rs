//! A plan as it is written in TOML. Only syntax and types are checked here; `validate` checks sense and gives defaults.
//!
//! The doc comments of these types are the descriptions in the generated JSON Schema: they speak to the plan's author.
use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;
use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent};
use crate::workload::{Direction, Family, TcpEngine, Wait};

/// A netduel plan: hosts, arms, workloads and the design of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanSpec {
    /// Short name; runs are named after it.
    pub name: String,
    /// The question in one sentence, printed at the head of every report.
    pub question: String,
    /// A local lab that is built for the run and removed after it.
    #[serde(default)]
    pub lab: Option<LabSpec>,
    /// The hosts, by name.
    pub hosts: BTreeMap<HostName, HostSpec>,
    /// The arms: what is compared. One of them is the baseline (the first, unless another says `baseline = true`).
    pub arms: Vec<ArmSpec>,
    /// The workloads: what traffic runs on every arm.
    pub workloads: Vec<WorkloadSpec>,
    /// How the comparison is made.
    #[serde(default)]
    pub design: DesignSpec,
}

/// The local lab: two guests, and two paths between them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabSpec {
    /// Policy rules that the synthetic path walks one by one for every packet; the accelerated path meets the same
    /// policy as one hashed lookup. 0 to 10000, default 600.
    #[serde(default)]
    pub rules: Option<u32>,
    /// Emulated rate cap on the wire between the hosts, for both paths. Default: none.
    #[serde(default)]
    pub cap: Option<BitRate>,
    /// MTU of the guests in bytes, 1280 to 9000, default 1500.
    #[serde(default)]
    pub mtu: Option<u32>,
}

/// A host: a machine or a network namespace that runs an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// How its agent is started.
    pub launch: LaunchKind,
    /// For `launch = "lab"`: which guest of the lab, `a` or `b`. Default: the host's own name.
    #[serde(default)]
    pub guest: Option<String>,
    /// For `launch = "netns"`: the named network namespace (`ip netns`).
    #[serde(default)]
    pub netns: Option<String>,
    /// For `launch = "command"`: the words that are put before `netduel agent`.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Addresses that the other hosts reach it under. Not needed for hosts of the lab.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

/// How an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchKind {
    /// A process on this machine.
    Local,
    /// A guest of the plan's lab.
    Lab,
    /// A process on this machine in a named network namespace.
    Netns,
    /// Any command that runs what follows it elsewhere.
    Command,
}

/// One setting under test: a pair of hosts and what is changed on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmSpec {
    /// Its name in every table.
    pub name: ArmName,
    /// The host that connects.
    pub client: HostName,
    /// The host that listens.
    pub server: HostName,
    /// Whether the other arms are compared with this one.
    #[serde(default)]
    pub baseline: bool,
    /// Changes made for this arm and undone after each of its trials.
    #[serde(default)]
    pub treatments: Vec<TreatmentSpec>,
    /// Workload settings that this arm overrides.
    #[serde(default)]
    pub set: OverrideSpec,
    /// The interface that must carry the bytes on the client and the server. Set by itself when a `path` treatment is used.
    #[serde(default)]
    pub expect_interface: Option<ExpectSpec>,
}

/// The interfaces that must carry an arm's bytes; a trial whose bytes went elsewhere is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectSpec {
    /// On the client host.
    #[serde(default)]
    pub client: Option<String>,
    /// On the server host.
    #[serde(default)]
    pub server: Option<String>,
}

/// A change. Exactly one of `path`, `offload`, `mtu`, `sysctl`, `command` says what is changed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreatmentSpec {
    /// The lab's path beneath the guests' address.
    #[serde(default)]
    pub path: Option<LabPath>,
    /// An offload feature as `ethtool -k` names it, for example `tx-tcp-segmentation`; needs `interface` and `value`.
    #[serde(default)]
    pub offload: Option<String>,
    /// An MTU in bytes; needs `interface`.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// A sysctl by its dotted name; needs `value`.
    #[serde(default)]
    pub sysctl: Option<String>,
    /// A command that makes the change; needs `undo`, the command that undoes it.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Where the change is made. Default: both hosts.
    #[serde(default)]
    pub on: Option<Side>,
    /// The interface that `offload` and `mtu` are about.
    #[serde(default)]
    pub interface: Option<String>,
    /// `on` or `off` for an offload, the text for a sysctl.
    #[serde(default)]
    pub value: Option<String>,
    /// The command that undoes `command`.
    #[serde(default)]
    pub undo: Option<Vec<String>>,
}

/// A path of the local lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabPath {
    /// Through the host's software switch, which walks its policy rule by rule.
    Synthetic,
    /// Past it, through a virtual function of the NIC.
    Accelerated,
}

/// Which host of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Both.
    #[default]
    Both,
}

/// The type of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadType {
    /// Bulk data over TCP.
    TcpStream,
    /// Datagrams in one direction, counted at both ends.
    UdpStream,
    /// Round trips over a TCP connection.
    TcpRr,
    /// Round trips as UDP datagrams.
    UdpRr,
}

/// What traffic runs. Which settings a type has is said at each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Its name in every table.
    pub name: WorkloadName,
    /// What kind of traffic.
    #[serde(rename = "type")]
    pub kind: WorkloadType,
    /// From the first to the last send, 100 ms to 24 h, default `"10 s"`.
    #[serde(default)]
    pub duration: Option<Nanos>,
    /// Cut from the beginning before figures are taken. Default: a tenth of the duration, 100 ms at least.
    #[serde(default)]
    pub warmup: Option<Nanos>,
    /// Cut from the end. Default: a twentieth of the duration.
    #[serde(default)]
    pub cooldown: Option<Nanos>,
    /// The metrics that the verdict is about. Default: by type.
    #[serde(default)]
    pub metrics: Option<Vec<Metric>>,
    /// Cores for the client's threads, in order.
    #[serde(default)]
    pub pin_client: Vec<u16>,
    /// Cores for the server's threads, in order.
    #[serde(default)]
    pub pin_server: Vec<u16>,
    /// The settings that an arm may override.
    #[serde(flatten)]
    pub settings: OverrideSpec,
}

/// Settings of a workload that an arm may override.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverrideSpec {
    /// IP version, default `ipv4`.
    #[serde(default)]
    pub family: Option<Family>,
    /// tcp-stream: connections, 1 to 1024, default 1.
    #[serde(default)]
    pub streams: Option<u32>,
    /// tcp-stream, udp-stream: who sends, default `up` (client to server).
    #[serde(default)]
    pub direction: Option<Direction>,
    /// tcp-stream: bytes a call, 1 B to 64 MiB, default by engine.
    #[serde(default)]
    pub block: Option<Bytes>,
    /// tcp-stream: how bytes are moved, default `lean`.
    #[serde(default)]
    pub engine: Option<TcpEngine>,
    /// tcp-stream, tcp-rr: congestion control as the kernel names it; default: the host's.
    #[serde(default)]
    pub congestion: Option<String>,
    /// udp-stream: payload of a datagram, 32 B to 65507 B, default 1448 B (1428 B over IPv6). tcp-rr, udp-rr: bytes of a
    /// request and of its response, default 64 B.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// udp-stream: payload rate of all flows together; default: as fast as it can.
    #[serde(default)]
    pub rate: Option<BitRate>,
    /// udp-stream: source ports, 1 to 64, default 1.
    #[serde(default)]
    pub flows: Option<u32>,
    /// tcp-rr, udp-rr: requests under way at a time in a closed loop, 1 to 1024, default 1.
    #[serde(default)]
    pub outstanding: Option<u32>,
    /// tcp-rr, udp-rr: how both ends wait for a message, default `block`.
    #[serde(default)]
    pub wait: Option<Wait>,
    /// tcp-rr, udp-rr: an open loop at this rate, measured from the scheduled time; default: a closed loop.
    #[serde(default)]
    pub request_rate: Option<PerSecond>,
}

/// How the comparison is made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignSpec {
    /// Blocks that are run at least, 2 to 10000, default 8. A block is every arm and workload once, in random order.
    #[serde(default)]
    pub blocks_min: Option<u32>,
    /// Blocks that are run at most, default 30 (or `blocks_min` when that is more).
    #[serde(default)]
    pub blocks_max: Option<u32>,
    /// No block is begun after this time. Default: none.
    #[serde(default)]
    pub budget: Option<Nanos>,
    /// Stop when every interval is at most this wide to either side, relative to its ratio. Default 5 %.
    #[serde(default)]
    pub precision: Option<Percent>,
    /// A difference smaller than this does not matter to you ("no difference larger than"). Default 5 %.
    #[serde(default)]
    pub equivalence: Option<Percent>,
    /// Confidence of the intervals, 80 % to 99.9 %, default 95 %.
    #[serde(default)]
    pub confidence: Option<Percent>,
    /// The seed of the order. Default: drawn, and recorded.
    #[serde(default)]
    pub seed: Option<u64>,
    /// An A/A run: the baseline against a copy of itself. The verdict ought to be "no difference".
    #[serde(default)]
    pub aa: bool,
}
