//! A plan as it is written in TOML: its tables, keys and words. Types are checked when it is read, sense by `check`.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::search::{SearchGoalSpec, SearchSpec};
pub use super::settings::{DpdkSpec, EventSpec, SettingsSpec};
use super::shape::shape;
use super::tuning::{PciState, Ring, VfState};
use super::value::choices;
use crate::bed::network::BedNetwork;
use crate::bed::spec::BedType;
use crate::data_ports::DataPorts;
use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;
use crate::units::{BitRate, Nanos, Percent};
use crate::word::word;
pub use crate::workload::WorkloadType;
use crate::workload::setting::ppm;
pub use crate::workload::terms::Side;

shape! {
    /// A netduel plan: hosts, arms, workloads and the design of the comparison.
    pub struct PlanSpec {
        /// Short name; runs are named after it. 1 to 40 of a-z A-Z 0-9 . _ -, beginning with a letter or a digit.
        required name: String,
        /// The question in one sentence; every report begins with it.
        required question: String,
        /// A publication whose figures the report shows beside the results, also where they are of another machine size: `azure-stress-2018`,
        /// `azure-latency-test`, `azure-dpdk-2025`, `azure-dual-stack` or `linux-hyper-v`. Default: the published figures of the machine
        /// size of the hosts, if there are any.
        optional published: String,
        /// The type of bed that the plan is for. `netduel azure run` and `netduel plan check --bed` refuse a bed of another type; a bed whose
        /// type is not known passes. Only for plans whose hosts have `bed`. Default: any type with the VMs and networks of the plan.
        optional bed_type: BedType,
        /// Words of the author for a report that is published.
        optional report: ReportSpec,
        /// A local lab that is built for the run and removed after it.
        optional lab: LabSpec,
        /// The hosts, by name. Names of hosts, arms and workloads follow the rules of `name`.
        required hosts: BTreeMap<String, HostSpec>,
        /// The arms: the configurations under test. One of them is the baseline: the first, or the one with `baseline = true`.
        required arms: Vec<ArmSpec>,
        /// The workloads: the traffic that runs on every arm.
        required workloads: Vec<WorkloadSpec>,
        /// The design of the comparison.
        optional design: DesignSpec,
    }
}

shape! {
    /// What the author adds to reports. It changes no result. The options of `netduel run` and `netduel report` have precedence.
    pub struct ReportSpec {
        /// Title of the report. Default: `--title` of the run, or the question of the plan.
        optional title: String,
        /// The author, for the cover.
        optional author: String,
        /// The author's organization, for the cover.
        optional organization: String,
        /// The purpose of the report, one paragraph.
        optional purpose: String,
        /// The readers that the report is for, and what they should know.
        optional audience: String,
        /// The author's commentary, Markdown: headings, paragraphs, lists, code, emphasis and links. HTML is shown as text.
        optional commentary: String,
        /// A PNG file of at most 128 KiB, relative to the folder of the plan. It is stored with the run.
        optional logo: String,
        /// The accent colour, for example `"#0b5fa5"`. Where its contrast with the page is below 4.5 netduel adjusts it, with a message.
        optional accent: String,
    }
}

shape! {
    /// The local lab: two guests with three paths between them.
    pub struct LabSpec {
        /// Policy rules that the synthetic path evaluates one by one per packet (per GSO packet with segmentation offload); the
        /// accelerated path evaluates the same policy as one hashed lookup. Default 600.
        optional rules: u32,
        /// Emulated rate limit of the wire between the hosts, for the synthetic and the accelerated path, in each direction by itself. It
        /// counts frames with their Ethernet, IP and TCP or UDP headers, so the payload rate is lower; `docs/limits.md` has the size of its
        /// bursts. Default: none.
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
        /// How netduel starts the agent of this host. A host has either this key or `bed`.
        optional launch: LaunchKind,
        /// The VM of an Azure bed that this host is, for example `"vm1"`. `netduel azure run` knows its address, its size and the
        /// addresses of its data, and reaches it by ssh.
        optional bed: String,
        /// For `launch = "lab"`: the guest of the lab, `a` or `b`. Default: the name of the host.
        optional guest: String,
        /// For `launch = "netns"`: the named network namespace (`ip netns`).
        optional netns: String,
        /// For `launch = "command"`: the command that runs its last arguments on the host, for example
        /// `["kubectl", "exec", "-i", "pod-1", "--"]`. netduel adds `netduel agent`, so netduel must be installed there.
        optional command: Vec<String>,
        /// For `launch = "ssh"`: the destination as `ssh` takes it: a name of your ssh configuration, HOST or USER@HOST.
        optional host: String,
        /// For `launch = "ssh"`: the user on the host. Default: as your ssh configuration says.
        optional user: String,
        /// For `launch = "ssh"`: the port of the ssh server. Default: as your ssh configuration says.
        optional port: u16,
        /// For `launch = "ssh"` and `bed`: whether the agent runs as root by `sudo -n`, which never asks for a password. Default `false`;
        /// with `bed` it is `true`.
        optional sudo: bool,
        /// For `launch = "ssh"` and `bed`: the folder on the host into which netduel copies its program, absolute or beginning with `~/`. Default
        /// `~/.cache/netduel`.
        optional folder: String,
        /// For `launch = "paired"`: the address of `netduel serve`, as HOST or HOST:PORT of the pairing (default port 5210). A plan
        /// does not contain the secret; `netduel pair -` stores it on this machine.
        optional serve: String,
        /// Addresses at which the other hosts reach this host. A server needs one of each IP version that a workload uses. Lab
        /// guests have the addresses of the lab (IPv4 and IPv6), VMs of a bed those of the bed; do not write any for them.
        optional addresses: Vec<IpAddr>,
        /// The ports on which this host listens for data as a server, TCP and UDP: one, `"5210"`, or a range, `"5210-5219"`. A firewall
        /// rule can be written for them. TCP needs one port, UDP one for each flow; the same numbers serve both. Not for
        /// `launch = "paired"`. Default: ports that the kernel chooses (`net.ipv4.ip_local_port_range`).
        optional data_ports: DataPorts,
        /// The size of the cloud VM as its provider names it, for example `Standard_DS4_v2`; netduel looks up its bandwidth limit in its table of
        /// sizes, and refuses a size that is not there. Default: the size that the cloud's metadata service reports on the host.
        optional size: String,
        /// Bandwidth limit of the host, Mbit/s; overrides the limit of `size`. Default: the table of sizes.
        optional expect_mbps: u32,
        /// Price of the host for an hour, for example `"0.40 USD"`. The report then shows the cost of the run, and what each difference
        /// saves or costs. One currency for all hosts. Not for VMs of a bed, whose price netduel looks up. Default: unknown.
        optional price_per_hour: String,
    }
}

/// How netduel starts an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchKind {
    /// A process on this machine.
    Local,
    /// A guest of the plan's lab.
    Lab,
    /// A process on this machine in a named network namespace.
    Netns,
    /// A command that runs its last arguments on the host, for example `kubectl exec -i`.
    Command,
    /// Your own OpenSSH. netduel copies its program to the host when the same build is not there yet.
    Ssh,
    /// A `netduel serve` that this user is paired with. It accepts no treatments.
    Paired,
}

shape! {
    /// One configuration under test: a pair of hosts, and the treatments and settings that apply to it.
    pub struct ArmSpec {
        /// Name in tables and reports.
        required name: ArmName,
        /// The client host, which connects.
        required client: HostName,
        /// The server host, which listens; not the client host.
        required server: HostName,
        /// Addresses of the server for this arm, for servers with several NICs. The client uses the interface that its routes choose;
        /// `expect_interface` proves both ends. Not for guests of the lab and VMs of a bed. Default: `addresses` of the server host.
        optional server_addresses: Vec<IpAddr>,
        /// Whether this arm is the baseline of the comparisons. Default: the first arm is the baseline.
        optional baseline: bool,
        /// Changes of the hosts that apply to this arm; each is undone after each trial. Default: none.
        optional treatments: Vec<TreatmentSpec>,
        /// Workload settings that this arm overrides, in every workload whose type has them. Default: none.
        optional set: SettingsSpec,
        /// The interfaces that must carry the bytes: `{ client = "eth0", server = "eth0" }`. An arm with a `path` treatment has those of
        /// the path; beside a `vf` or `pci` treatment, which takes the path away, name them yourself. Default: no proof of path, and the
        /// report states this.
        optional expect_interface: ExpectSpec,
        /// The path that must carry the bytes at both ends, without interface names: `vf` is the virtual function below a synthetic
        /// NIC, `synthetic` is the synthetic NIC itself. Use it for accelerated networking of a cloud, where the VF can return under
        /// another name. Default: no proof of path.
        optional expect_path: PathKind,
        /// The network of the bed that carries the traffic, for hosts with `bed`. The address of the server follows from it, and the
        /// path that must carry the bytes, unless the arm has `expect_interface` or `expect_path`. Default `test`.
        optional network: BedNetwork,
        /// Bandwidth limit of the pair, Mbit/s; overrides `expect_mbps` and `size` of the hosts. Results show the
        /// share of the limit. Default: the lower limit of the two hosts.
        optional expect_mbps: u32,
    }
}

/// The path that carries the bytes of a NIC that may have a virtual function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// The virtual function.
    Vf,
    /// The synthetic NIC itself, through the host's switch.
    Synthetic,
}

shape! {
    /// The interfaces that must carry the bytes of an arm; a trial whose bytes used another interface is invalid.
    pub struct ExpectSpec {
        /// Interface of the client host. Default: no proof at the client.
        optional client: String,
        /// Interface of the server host. Default: no proof at the server.
        optional server: String,
    }
}

shape! {
    /// A change. Exactly one of `path`, `offload`, `mtu`, `sysctl`, `vf`, `pci`, `queues`, `rss`, `ring`, `coalesce`, `rps`, `xps`,
    /// `irq_affinity`, `azure-nic`, `azure-placement` and `command` is required. All except `path`, `sysctl`, `azure-nic`, `azure-placement` and
    /// `command` need `interface`, which hosts with `bed` may leave out.
    pub struct TreatmentSpec {
        /// The path of the lab that both guests use. Both hosts must be lab guests.
        optional path: LabPath,
        /// An offload feature of the interface, or a group of features, as `ethtool -k` names it, for example `tx-tcp-segmentation`, `tso`,
        /// `rx` or `tx` (transmit checksums; segmentation offload depends on them and changes with them). Needs `value`. The setting
        /// `offload` of `udp-stream` is another one: it is about the buffers of the test.
        optional offload: String,
        /// MTU of the interface, bytes.
        optional mtu: u32,
        /// A sysctl by its dotted name; needs `value`. `net.ipv4.tcp_congestion_control` is the default of the host; the workload
        /// setting `congestion` changes only the connections of the test.
        optional sysctl: String,
        /// `down` sets the link of a virtual function down, so that traffic uses the synthetic path. `interface` is the VF or the
        /// interface above it. Refused when no interface is above the VF (bridges and other bonds do not count), because the VF may be
        /// the only management interface, and below `net_failover`, whose standby receives nothing while the VF is registered. For a bond in
        /// the mode active-backup it is the active port, while another port has carrier.
        optional vf: VfState,
        /// `removed` removes the PCI function from the bus; a rescan of the bus restores it. Its name, MTU, queues, RSS table, rings,
        /// interrupt coalescing, packet steering and offloads are then set as they were; the cores of its interrupts and its qdiscs are those of
        /// a new device. `interface` is an interface of the function or the interface above it. Refused in the same cases as `vf`, and for ports of a bond.
        optional pci: PciState,
        /// Number of queues of the interface: combined channels, or receive queues and transmit queues.
        optional queues: u32,
        /// RSS indirection table: `equal 4` spreads flows over the first four queues, `weights 6 2` spreads them in proportion,
        /// `default` spreads them over all queues in turn, as `ethtool -X eth0 default` does.
        optional rss: String,
        /// The receive ring (`rx`) or the transmit ring (`tx`) of each queue; needs `value`, the number of descriptors.
        optional ring: Ring,
        /// An interrupt coalescing parameter as `ethtool -C` names it, for example `rx-usecs` or `adaptive-rx`; needs `value`.
        optional coalesce: String,
        /// Receive packet steering: the cores that process the packets of each receive queue, for example `0-1`, or `off`.
        optional rps: String,
        /// Transmit packet steering: the cores that use each transmit queue. `spread` assigns the cores to the queues in turn, a list
        /// applies to every queue, `off` disables it.
        optional xps: String,
        /// The cores that handle the interrupts of the interface: `spread` assigns the cores to the interrupts in turn, a list such as
        /// `0-3` applies to every interrupt. Refused while irqbalance runs, because it would move the interrupts again.
        optional irq_affinity: String,
        /// The name of an Azure NIC whose accelerated networking is switched; needs `accelerated` and `on`. netduel switches it from this
        /// machine through your own `az` while the VM runs, and verifies in the VM that the virtual function came or went. With
        /// `--allow-deallocate` it stops the VM, switches the NIC and starts the VM where that has no effect. Consecutive trials that
        /// want the same state share it; the original state returns at the end of the run.
        optional azure_nic as "azure-nic": String,
        /// The name of a proximity placement group that a VM joins; needs `vm` and `on`. The VM is stopped for it, so the run needs
        /// `--allow-deallocate`. The VM leaves the group as `azure-nic` returns to its state.
        optional azure_placement as "azure-placement": String,
        /// For `azure-nic`: whether accelerated networking is on.
        optional accelerated: bool,
        /// For `azure-placement`: the name of the VM.
        optional vm: String,
        /// For `azure-nic` and `azure-placement`: the resource group. Default: that of the bed, for hosts with `bed`.
        optional resource_group as "resource-group": String,
        /// A command that applies the change, as a list of arguments without a shell; needs `undo`. Each of the two has 30 s.
        optional command: Vec<String>,
        /// The hosts that are changed. Default: both. `path` always applies to both. `azure-nic` and `azure-placement` need `client` or
        /// `server`.
        optional on: Side,
        /// The interface that is changed. Default for hosts with `bed`: that of the NIC in the `network` of the arm. There an interface that is
        /// neither that NIC nor its virtual function is refused: it carries no traffic of the arm. It is not compared at an end where the arm has
        /// `azure-nic` or `azure-placement`, after which the NIC can have another virtual function.
        optional interface: String,
        /// The new value: `on` or `off` for offloads, `adaptive-rx` and `adaptive-tx`; a number for other coalescing parameters and for
        /// rings; text for a sysctl.
        optional value: String,
        /// The command that undoes `command`, as a list of arguments without a shell.
        optional undo: Vec<String>,
    }
}

/// A path of the local lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabPath {
    /// Through the software switch of the host, which evaluates its policy rule by rule.
    Synthetic,
    /// Through a virtual function of the NIC, which bypasses the software switch.
    Accelerated,
    /// One veth pair directly between the guests: a transfer in the memory of the kernel, without switch, policy or cap, with the
    /// `queues` of the lab. Packet rates on it are properties of the kernel and the cores, not of a NIC.
    Direct,
}

impl LabPath {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        word(&self)
    }
}

shape! {
    /// The traffic. The text of each setting names the types that have it.
    pub struct WorkloadSpec {
        /// Name in tables and reports.
        required name: WorkloadName,
        /// The type of traffic.
        required kind as "type": WorkloadType,
        /// Time from the first to the last send, default `"10 s"`. With `search`: the time limit of a search.
        optional duration: Nanos,
        /// Time at the beginning that the steady window excludes; `warmup` and `cooldown` together are shorter than the duration.
        /// Default: a tenth of the duration, at least 100 ms and at most half of it; 0 s with `search`. loaded-latency: excluded from
        /// the idle and from the loaded part, by default at most a third of the shorter part.
        optional warmup: Nanos,
        /// Time at the end that the steady window excludes. Default: a twentieth of the duration; 0 s with `search`. loaded-latency:
        /// excluded from both parts, by default at most a tenth of the shorter part.
        optional cooldown: Nanos,
        /// The metrics that get a verdict. With `search`: no-drop-rate, partial-drop-rate or both, according to its goals.
        optional metrics: Vec<Metric>,
        /// A sweep of frame sizes: one workload for each size, named after this workload and the size (`name-64`, `name-128`, ...).
        /// Default: the one size of `frame`.
        optional frames: Vec<u32>,
        /// Each trial searches for the highest rate without loss, or with little loss (RFC 9971), in many short steps. The value is
        /// the name of a goal, a list of names, or a list of tables with goals of your own. `"no-drop"`: steps of 2 s, of which one
        /// of three may lose packets. `"partial-drop"`: the same with a loss of at most 0.5 % in each step. `"rfc2544"`: steps of 60
        /// s without loss. `"tst009"`: steps of 60 s, of which one of two may lose packets. Default of `duration`: ten times the
        /// duration sums of the goals, plus a minute. The search chooses `packet_rate`. The generators `kernel` and `dpdk` cannot
        /// keep a rate and have no search.
        optional search: SearchSpec,
    }
    flat settings: SettingsSpec
    where is_of_type
}

/// Whether a workload can have a key: a setting of other types is none of its type.
fn is_of_type(workload: &WorkloadSpec, key: &str) -> bool {
    let has = |kind: &WorkloadType| kind.settings().iter().any(|setting| setting.key == key);
    workload.kind.is_none_or(|kind| has(&kind) || !WorkloadType::ALL.iter().any(has))
}

shape! {
    /// How the comparison is made.
    pub struct DesignSpec {
        /// Minimum number of blocks. Default: 8, or the number that the verdicts of the plan need, when that is more (9 for five verdicts
        /// at a confidence of 95 %); not more than `blocks_max`. A block is one trial of every workload on every arm, in random order.
        optional blocks_min: u32,
        /// Maximum number of blocks, not less than `blocks_min`. Default: 30, or `blocks_min` when that is more.
        optional blocks_max: u32,
        /// Time limit: no block begins after it. Default: none.
        optional budget: Nanos,
        /// The run stops when the half-width of every interval is at most this share of its ratio, or at most the margin of a metric
        /// that is compared by difference. Default: 5 %.
        optional precision: Percent,
        /// The largest difference that does not matter to you; when it is shown, the verdict is "no difference beyond" this share.
        /// Default: 5 %.
        optional equivalence: Percent,
        /// Confidence of the intervals. Default: 95 %.
        optional confidence: Percent,
        /// Seed of the random order, a whole number. Default: a random seed; the run records it.
        optional seed: u64,
        /// An A/A run: the baseline against a copy of itself. The expected verdict is "no difference", or "inconclusive" with too few
        /// blocks. Other arms do not run, and one arm is sufficient. Default `false`.
        optional aa: bool,
        /// Each arm has a counterpart with the same workloads on other hosts, and the two exchange their hosts after half of the blocks; a
        /// value of a comparison is the mean of two blocks, one of each half, so that a difference between the hosts cancels out.
        /// Treatments `azure-nic` follow: an arm has its state of accelerated networking on the NICs that its counterpart names. The number of
        /// blocks is `blocks_max`, an even number, by default twice that of `blocks_min`. Not together with `aa` and `budget`. Default `false`.
        optional crossover: bool,
    }
}

impl DesignSpec {
    /// A quantity by its key, in the unit of its range.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match key {
            "blocks_min" => self.blocks_min.map(u64::from),
            "blocks_max" => self.blocks_max.map(u64::from),
            "budget" => self.budget.map(|budget| budget.0),
            "precision" => self.precision.map(ppm),
            "equivalence" => self.equivalence.map(ppm),
            "confidence" => self.confidence.map(ppm),
            _ => None,
        }
    }
}

choices!(LabPath, LaunchKind, Metric, PathKind, PciState, Ring, VfState, WorkloadType);
