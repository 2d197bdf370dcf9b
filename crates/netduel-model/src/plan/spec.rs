//! A plan as it is written in TOML: its tables, keys and words. Types are checked when it is read, sense by `check`.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.
pub(crate) mod search;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
pub use search::{SearchGoalSpec, SearchSpec};
use serde::{Deserialize, Serialize};
pub use settings::{DpdkSpec, EventSpec, SettingsSpec};

use super::shape::shape;
use super::tuning::{PciState, Ring, VfState};
use super::value::choices;
use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;
use crate::units::{BitRate, Nanos, Percent};
pub use crate::workload::WorkloadType;
pub use crate::workload::terms::Side;

shape! {
    /// A netduel plan: hosts, arms, workloads and the design of the comparison.
    pub struct PlanSpec {
        /// Short name; runs are named after it. 1 to 40 of a-z A-Z 0-9 . _ -, beginning with a letter or a digit.
        required name: String,
        /// The question in one sentence, printed at the head of every report.
        required question: String,
        /// A local lab that is built for the run and removed after it.
        optional lab: LabSpec,
        /// The hosts, by name. Names of hosts, arms and workloads follow the rules of `name`.
        required hosts: BTreeMap<String, HostSpec>,
        /// The arms: what is compared. One of them is the baseline (the first, unless another says `baseline = true`).
        required arms: Vec<ArmSpec>,
        /// The workloads: what traffic runs on every arm.
        required workloads: Vec<WorkloadSpec>,
        /// How the comparison is made.
        optional design: DesignSpec,
    }
}

shape! {
    /// The local lab: two guests, and three paths between them.
    pub struct LabSpec {
        /// Policy rules that the synthetic path evaluates one by one for every packet; the accelerated path meets the same
        /// policy as one hashed lookup. Default 600.
        optional rules: u32,
        /// Emulated rate limit of the wire between the hosts, for the synthetic and the accelerated path. Default: none.
        optional cap: BitRate,
        /// MTU of the guests, default 1500.
        optional mtu: u32,
        /// Transmit and receive queues of each end of the direct path, default 1. Each receive queue is served by itself.
        optional queues: u32,
    }
}

impl LabSpec {
    /// A quantity by its key, in the unit of its range.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match key {
            "rules" => self.rules.map(u64::from),
            "cap" => self.cap.map(|cap| cap.0),
            "mtu" => self.mtu.map(u64::from),
            "queues" => self.queues.map(u64::from),
            _ => None,
        }
    }
}

shape! {
    /// A host: a machine or a network namespace that runs an agent.
    pub struct HostSpec {
        /// How its agent is started.
        required launch: LaunchKind,
        /// For `launch = "lab"`: which guest of the lab, `a` or `b`. Default: the host's own name.
        optional guest: String,
        /// For `launch = "netns"`: the named network namespace (`ip netns`).
        optional netns: String,
        /// For `launch = "command"`: the words that are put before `netduel agent`.
        optional command: Vec<String>,
        /// For `launch = "paired"`: where `netduel serve` runs, as HOST or HOST:PORT of the pairing (default port 5210). The
        /// secret is not written in a plan: `netduel pair STRING` keeps it for you.
        optional serve: String,
        /// Addresses that the other hosts reach it under; a server needs one of each IP version that is used. Hosts of the lab
        /// have those of the lab (IPv4 and IPv6), so none are written for them.
        optional addresses: Vec<IpAddr>,
        /// The size of the cloud machine as its provider names it, for example `Standard_DS4_v2`: its bandwidth is looked up.
        /// Default: what the host itself finds out.
        optional size: String,
        /// What the host can send at most, Mbit/s, 1 to 10000000; goes before `size`. Default: what the table of sizes says.
        optional expect_mbps: u32,
    }
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
    /// A `netduel serve` that this user is paired with. It makes no treatments.
    Paired,
}

shape! {
    /// One setting under test: a pair of hosts and what is changed on them.
    pub struct ArmSpec {
        /// Its name in every table.
        required name: ArmName,
        /// The host that connects.
        required client: HostName,
        /// The host that listens; another one than the client.
        required server: HostName,
        /// Whether the other arms are compared with this one. Default: the first arm is the baseline.
        optional baseline: bool,
        /// Changes made for this arm and undone after each of its trials. Default: none.
        optional treatments: Vec<TreatmentSpec>,
        /// Workload settings that this arm overrides, in every workload whose type has them. Default: none.
        optional set: SettingsSpec,
        /// The interface that must carry the bytes on the client and the server. Set by itself when a `path` treatment is
        /// used, but not beside `vf` or `pci`, which take the path away. Default: nothing is proven, and the report says so.
        optional expect_interface: ExpectSpec,
        /// The path that must carry the bytes at both ends, whatever its interfaces are called: `vf` through the virtual
        /// function beneath a synthetic NIC, `synthetic` past it. For a cloud's accelerated networking, whose VF comes back under
        /// another name. Default: nothing is proven by it.
        optional expect_path: PathKind,
        /// What the smaller of the two hosts can give at most, Mbit/s, 1 to 10000000: a known cap that goes before the hosts'
        /// `expect_mbps` and `size`. Results then show the share of it. Default: those of the hosts.
        optional expect_mbps: u32,
    }
}

/// What carries the bytes beneath a NIC that may have a virtual function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// The virtual function.
    Vf,
    /// The synthetic NIC itself, through the host's switch.
    Synthetic,
}

shape! {
    /// The interfaces that must carry an arm's bytes; a trial whose bytes went elsewhere is invalid.
    pub struct ExpectSpec {
        /// On the client host. Default: not proven there.
        optional client: String,
        /// On the server host. Default: not proven there.
        optional server: String,
    }
}

shape! {
    /// A change. Exactly one of `path`, `offload`, `mtu`, `sysctl`, `vf`, `pci`, `queues`, `rss`, `ring`, `coalesce`, `rps`, `xps`,
    /// `irq_affinity`, `command` says what is changed. All but `path`, `sysctl` and `command` need `interface`.
    pub struct TreatmentSpec {
        /// The lab's path beneath the guests' address, for both guests; needs hosts of the lab at both ends.
        optional path: LabPath,
        /// An offload feature or group of them as `ethtool -k` names it, for example `tx-tcp-segmentation`, `tso`, `tx` (checksums of
        /// what is sent; segmentation goes and comes back with it) or `rx`; needs `value`.
        optional offload: String,
        /// An MTU, 68 to 65535 bytes.
        optional mtu: u32,
        /// A sysctl by its dotted name; needs `value`. The host's congestion control is `net.ipv4.tcp_congestion_control`; that of the
        /// test's own connections alone is the workload's `congestion`.
        optional sysctl: String,
        /// `down`: the link of a virtual function is set down, so that traffic takes the synthetic path. `interface` is the VF or the
        /// interface above it. Refused without a device above it (bridges and bonds are none): it may be the only way to the host.
        optional vf: VfState,
        /// `removed`: the PCI function is removed from the bus, and found again by a new scan of the bus. `interface` is an
        /// interface of the function or the one above it. Refused as with `vf`.
        optional pci: PciState,
        /// Queues of the interface, 1 to 1024: its combined channels, or its receive and its transmit queues.
        optional queues: u32,
        /// How flows are spread over receive queues: `equal 4` over the first four, `weights 6 2` in proportion, `default` as the
        /// driver does.
        optional rss: String,
        /// The ring of each queue, for receiving (`rx`) or sending (`tx`); needs `value`, its descriptors.
        optional ring: Ring,
        /// A parameter of interrupt coalescing as `ethtool -C` names it, for example `rx-usecs` or `adaptive-rx`; needs `value`.
        optional coalesce: String,
        /// The cores to which each receive queue hands packets for their protocol work (RPS), for example `0-1`, or `off`.
        optional rps: String,
        /// The cores that send through each transmit queue (XPS): `spread` deals the cores out, a list is for every queue, or `off`.
        optional xps: String,
        /// The cores on which the interface's interrupts are served: `spread` deals the cores out, a list such as `0-3` is for
        /// every interrupt. Refused while irqbalance runs, which would move them again.
        optional irq_affinity: String,
        /// A command that makes the change; needs `undo`, the command that undoes it.
        optional command: Vec<String>,
        /// Where the change is made. Default: both hosts. Not for `path`, which is always at both.
        optional on: Side,
        /// The interface that the change is about.
        optional interface: String,
        /// `on` or `off` for an offload and for `adaptive-rx` and `adaptive-tx`, the number for other parameters and for a ring,
        /// the text for a sysctl.
        optional value: String,
        /// The command that undoes `command`.
        optional undo: Vec<String>,
    }
}

/// A path of the local lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabPath {
    /// Through the host's software switch, which walks its policy rule by rule.
    Synthetic,
    /// Past it, through a virtual function of the NIC.
    Accelerated,
    /// One veth pair straight between the guests, past both machines: a hand-over in the kernel's memory, without switch, policy or
    /// cap, with the lab's `queues`. What packet engines reach there is a figure of the kernel and its cores, of no NIC.
    Direct,
}

shape! {
    /// What traffic runs. Each setting names the types that have it.
    pub struct WorkloadSpec {
        /// Its name in every table.
        required name: WorkloadName,
        /// What kind of traffic.
        required kind as "type": WorkloadType,
        /// From the first to the last send, default `"10 s"`. With `search`: the longest that a search may take.
        optional duration: Nanos,
        /// Cut from the beginning before figures are taken; with `cooldown` shorter than the duration. Default: a tenth of
        /// the duration, at least 100 ms and at most half of it; 0 s with `search`. loaded-latency: cut from the idle and from the loaded
        /// part, by default at most a third of the shorter one.
        optional warmup: Nanos,
        /// Cut from the end. Default: a twentieth of the duration; 0 s with `search`. loaded-latency: cut from the end of both parts, by
        /// default at most a tenth of the shorter one.
        optional cooldown: Nanos,
        /// The metrics that the verdict is about. With `search`: no-drop-rate, partial-drop-rate or both, after its goals.
        optional metrics: Vec<Metric>,
        /// Sizes of frames, each as `frame`: one workload for each of them, named after this one and its size
        /// (`name-64`, `name-128` ...). Default: the one size of `frame`.
        optional frames: Vec<u32>,
        /// Each trial searches for the highest rate without loss, or with little, by many short trials (RFC 9971): `"no-drop"`
        /// (2 s), `"partial-drop"` (2 s, 0.5 % may be lost), `"rfc2544"` (60 s), `"tst009"` (60 s, one of two may lose), a list of
        /// these, or a list of tables (goals of your own). Default of `duration`: ten times the duration sums of the goals, and a
        /// minute. `packet_rate` is chosen by the search. The generators `kernel` and `dpdk` keep no rate and have no search.
        optional search: SearchSpec,
    }
    flat settings: SettingsSpec
}

shape! {
    /// How the comparison is made.
    pub struct DesignSpec {
        /// Blocks that are run at least, 2 to 10000, default 8, more when the plan asks for more than four verdicts (or
        /// `blocks_max` when that is less). A block is every arm and workload once, in random order.
        optional blocks_min: u32,
        /// Blocks that are run at most, 2 to 10000 and not less than `blocks_min`, default 30 (or `blocks_min` when that is more).
        optional blocks_max: u32,
        /// No block is begun after this time, more than 0 s. Default: none.
        optional budget: Nanos,
        /// Stop when every interval is at most this wide to either side, relative to its ratio. More
        /// than 0 % to 100 %, default 5 %.
        optional precision: Percent,
        /// A smaller difference does not matter to you; the verdict is then "no difference beyond" this share. More than 0 % to
        /// 100 %, default 5 %.
        optional equivalence: Percent,
        /// Confidence of the intervals, 80 % to 99.9 %, default 95 %.
        optional confidence: Percent,
        /// The seed of the order, a whole number. Default: drawn, and recorded.
        optional seed: u64,
        /// An A/A run: the baseline against a copy of itself. The verdict ought to be "no difference". Other
        /// arms are left out, and one arm is enough. Default `false`.
        optional aa: bool,
    }
}

choices!(LabPath, LaunchKind, PathKind, WorkloadType);
