//! A plan as it is written in TOML: its tables, keys and words. Types are checked when it is read, sense by `check`.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.
mod search;

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
pub use search::{SearchGoalSpec, SearchSpec};
use serde::{Deserialize, Serialize};

use super::cores::CoresSpec;
use super::shape::shape;
use super::tuning::{PciState, Ring, VfState};
use crate::dpdk::DpdkDevice;
use crate::failover::PathEventKind;
use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;
use crate::packet_path::{PacketEngine, PacketReceiver};
use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent};
pub use crate::workload::WorkloadType;
pub use crate::workload::terms::Side;
use crate::workload::terms::{Direction, Family, ProbeProtocol, TcpEngine, UdpOffload, Wait};
use crate::workload::{ppm, share};

shape! {
    /// A netduel plan: hosts, arms, workloads and the design of the comparison.
    pub struct PlanSpec {
        /// Short name; runs are named after it. 1 to 40 of a-z A-Z 0-9 . _ -, beginning with a letter or a digit.
        required name: String,
        /// The question in one sentence, printed at the head of every report.
        required question: String,
        /// A local lab that is built for the run and removed after it.
        optional lab: LabSpec,
        /// The hosts, by name. What is allowed in the name of a host, an arm or a workload is what is allowed in `name`.
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
        /// Policy rules that the synthetic path walks one by one for every packet; the accelerated path meets the same
        /// policy as one hashed lookup. 0 to 10000, default 600.
        optional rules: u32,
        /// Emulated rate cap on the wire between the hosts, for the synthetic and the accelerated path, 1 bit/s at least. Default: none.
        optional cap: BitRate,
        /// MTU of the guests in bytes, 1280 to 9000, default 1500.
        optional mtu: u32,
        /// Transmit and receive queues of each end of the direct path, 1 to 64, default 1. Each receive queue is served by itself.
        optional queues: u32,
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
    /// What traffic runs. Which settings a type has is said at each.
    pub struct WorkloadSpec {
        /// Its name in every table.
        required name: WorkloadName,
        /// What kind of traffic.
        required kind as "type": WorkloadType,
        /// From the first to the last send, 100 ms to 24 h, default `"10 s"`.
        optional duration: Nanos,
        /// Cut from the beginning before figures are taken; with `cooldown` shorter than the duration. Default: a tenth of
        /// the duration, 100 ms at least, but never more than half of it. loaded-latency: cut from the idle and from the loaded
        /// part, by default never more than a third of the shorter one.
        optional warmup: Nanos,
        /// Cut from the end. Default: a twentieth of the duration. loaded-latency: cut from the end of both parts, by default never more
        /// than a tenth of the shorter one.
        optional cooldown: Nanos,
        /// The metrics that the verdict is about. Default: throughput and cpu-per-gigabyte for tcp-stream; datagram-rate, loss
        /// and cpu-per-datagram for udp-stream; datagram-rate, loss and cpu-per-datagram for pps, where each datagram is a packet; no-drop-rate, partial-drop-rate or both for a search; latency-p50 and latency-p99 for tcp-rr, udp-rr and tcp-crr;
        /// latency-loaded-p50, latency-loaded-p99 and responsiveness for loaded-latency; outage, lost-in-outage and recovery-time for
        /// failover.
        optional metrics: Vec<Metric>,
        /// pps: sizes of frames, each as `frame`: one workload for each of them, named after this one and its size
        /// (`name-64`, `name-128` ...). Default: the one size of `frame`.
        optional frames: Vec<u32>,
        /// pps: have each trial search for the highest rate without loss, or with little, by many short trials (RFC 9971): `"no-drop"`
        /// (2 s), `"partial-drop"` (2 s, 0.5 % may be lost), `"rfc2544"` (60 s), `"tst009"` (60 s, one of two may lose), a list of
        /// these, or a list of tables (goals of your own). `duration` is then the most that a search may take, default: ten times
        /// the duration sums of the goals and a minute; nothing is cut as warm-up. The generator `kernel` keeps no rate, so it has no
        /// search, and `packet_rate` is the search's to choose. `window` is 256 KiB by default, because large buffers hide a loss.
        optional search: SearchSpec,
    }
    flat settings: SettingsSpec
}

shape! {
    /// Settings of a workload that an arm may override.
    pub struct SettingsSpec {
        /// All types: IP version, default `ipv4`.
        optional family: Family,
        /// All types: cores for the client's threads, in order and from the first again; or `"auto"`: the client chooses those near the
        /// interface that carries the data, and the result says which and why. Default: the kernel places them.
        optional pin_client: CoresSpec,
        /// All types: cores for the server's threads; as `pin_client`.
        optional pin_server: CoresSpec,
        /// All types but pps: DSCP (RFC 2474) of the data packets of both ends, for example 46 for expedited forwarding. Default: the
        /// kernel's, 0.
        optional dscp: u32,
        /// tcp-stream: connections (1024 at most with the engines `zerocopy` and `io-uring`), default 1; they share a thread for each
        /// core, but for these two, and `copy` up to 128. loaded-latency: connections that make the load, beside one that also
        /// carries round trips, default 16. failover: connections beside the probes, default 1.
        optional streams: u32,
        /// tcp-stream, udp-stream, pps: who sends, default `up` (client to server). With `both` rates are the sum of the two
        /// directions, and loss is that of all datagrams. pps: sockets alone have other directions than `up`. loaded-latency: who sends the load, default `both`. failover: who sends on its streams;
        /// probes go both ways.
        optional direction: Direction,
        /// tcp-stream, loaded-latency, failover: bytes a call, default 1 MiB with the `lean` engine, 128 KiB with
        /// `copy` and 256 KiB with `zerocopy` and `io-uring`.
        optional block: Bytes,
        /// tcp-stream, loaded-latency, failover: how bytes are moved, default `lean`.
        optional engine: TcpEngine,
        /// tcp-stream, tcp-rr, tcp-crr, loaded-latency, failover: congestion control as the kernel names it, 15 letters at most; default:
        /// the host's.
        optional congestion: String,
        /// udp-stream: payload of a datagram, default 1448 B (1428 B over IPv6). tcp-rr, udp-rr: bytes of a
        /// request and of its response, default 64 B. tcp-crr: bytes of a
        /// request, default 64 B. loaded-latency: bytes of a probe and of its response, default 64 B. failover: payload of a probe, the same.
        optional size: Bytes,
        /// tcp-crr: bytes of a response, default: as the request (`size`).
        optional response_size: Bytes,
        /// tcp-stream, udp-stream: payload rate of all streams or flows together, in each direction that is used; default: as fast as it can. Datagrams leave in bursts of what falls due in
        /// 100 us, 16 at most.
        optional rate: BitRate,
        /// tcp-stream, udp-stream: each direction ends after this much payload of all streams or flows together, or with
        /// `duration`, whichever comes first; default: with `duration` alone. Flows send whole datagrams, the last one, too.
        optional volume: Bytes,
        /// tcp-stream, udp-stream, pps: send and receive buffer of each socket at both ends, as far as net.core.wmem_max and
        /// rmem_max allow; default: the kernel grows those of TCP, and flows share 64 MiB for receiving.
        optional window: Bytes,
        /// tcp-stream: largest segment, bytes; default: that of the path's MTU.
        optional mss: u32,
        /// udp-stream, pps: source ports, default 1 for udp-stream and 16 for pps (1 with the generator `kernel`, where each has
        /// a thread that keeps a core, 64 at most; with `dpdk` more than 1 means as many as testpmd makes, default 1 for a receiver of one queue). They share as many threads as there are cores or queues, or as `pin_client` and
        /// `pin_server` name.
        optional flows: u32,
        /// udp-stream: who cuts and joins datagrams. Default: `gso` without a `rate` when `size` is at most its default, for then
        /// a core is the limit; `none` otherwise, for a rate asks for even spacing and a longer datagram may not fit the MTU,
        /// which `gso` needs. Where a path carries the 128 datagrams of a buffer as one packet, every report says so.
        optional offload: UdpOffload,
        /// tcp-rr, udp-rr: outstanding requests in a closed loop, default 1. tcp-crr: outstanding transactions, each in a thread at both ends, default 1; with `request_rate` at most, default 64.
        optional outstanding: u32,
        /// tcp-rr, udp-rr, tcp-crr: how both ends wait, default `block`. pps: how the receiver `xdp` does, `spin` (default) or `busy-poll`.
        optional wait: Wait,
        /// tcp-rr, udp-rr, tcp-crr: an open loop at this rate, measured from the scheduled time; excludes
        /// `outstanding` but for tcp-crr. Default: a closed loop. loaded-latency: the rate of the probes, which always are an open
        /// loop, default 200 /s. failover: probes each way, default 1 k/s.
        optional request_rate: PerSecond,
        /// loaded-latency: what the probes travel in, default `udp`.
        optional probe: ProbeProtocol,
        /// loaded-latency: share of the duration in which the path is idle, before the load begins, default 25 %.
        optional idle_share: Percent,
        /// tcp-rr, udp-rr: have the kernels (and NICs whose stamping is enabled) time-stamp some of the requests, which splits
        /// their round trips into network, kernel and program at both ends, and gives one-way delay with its error. Responses
        /// smaller than 48 B (tcp-rr) or 64 B (udp-rr) cannot carry the server's times: then network and server are one part.
        /// What it costs is measured; compare with runs that do the same. Default `false`.
        optional timestamps: bool,
        /// pps: who makes the packets, default `socket`.
        optional generator: PacketEngine,
        /// pps: who takes the packets. Default: `socket`, `xdp`, `count` or `dpdk` for the generator `socket`, `xdp`, `kernel` or `dpdk`.
        optional receiver: PacketReceiver,
        /// pps: size of a frame with its check sequence, bytes (82 at least over IPv6), default 64 (82). What a socket sends
        /// is filled up by the interface when it is shorter than Ethernet's least frame.
        optional frame: u32,
        /// pps: packets a second of all flows together; default: as fast as it can. The generators `kernel` and `dpdk` keep
        /// no rate.
        optional packet_rate: PerSecond,
        /// pps: queues that the generator `xdp` sends by and the receiver `xdp` has threads for, from the first on, default: all
        /// that the interface has (for sending: no more than cores or flows).
        optional queues: u32,
        /// pps: how testpmd is run, with the generator or receiver `dpdk`.
        optional dpdk: DpdkSpec,
        /// failover: what is done to the path while traffic runs, in the order of time; at least one, and each within the duration.
        optional events: Vec<EventSpec>,
    }
}

impl SettingsSpec {
    /// A quantity by its key, in the unit of its range.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match key {
            "streams" => self.streams.map(u64::from),
            "flows" => self.flows.map(u64::from),
            "outstanding" => self.outstanding.map(u64::from),
            "mss" => self.mss.map(u64::from),
            "dscp" => self.dscp.map(u64::from),
            "frame" => self.frame.map(u64::from),
            "queues" => self.queues.map(u64::from),
            "block" => self.block.map(|block| block.0),
            "size" => self.size.map(|size| size.0),
            "response_size" => self.response_size.map(|size| size.0),
            "volume" => self.volume.map(|volume| volume.0),
            "window" => self.window.map(|window| window.0),
            "rate" => self.rate.map(|rate| rate.0),
            "request_rate" => self.request_rate.map(|rate| rate.0),
            "packet_rate" => self.packet_rate.map(|rate| rate.0),
            "idle_share" => self.idle_share.map(ppm),
            _ => None,
        }
    }

    /// Sets a quantity by its key, in the unit of its range; false when there is no such quantity.
    pub fn set_number(&mut self, key: &str, value: u64) -> bool {
        let count = u32::try_from(value).ok();
        match key {
            "streams" => self.streams = count,
            "flows" => self.flows = count,
            "outstanding" => self.outstanding = count,
            "mss" => self.mss = count,
            "dscp" => self.dscp = count,
            "frame" => self.frame = count,
            "queues" => self.queues = count,
            "block" => self.block = Some(Bytes(value)),
            "size" => self.size = Some(Bytes(value)),
            "response_size" => self.response_size = Some(Bytes(value)),
            "volume" => self.volume = Some(Bytes(value)),
            "window" => self.window = Some(Bytes(value)),
            "rate" => self.rate = Some(BitRate(value)),
            "request_rate" => self.request_rate = Some(PerSecond(value)),
            "packet_rate" => self.packet_rate = Some(PerSecond(value)),
            "idle_share" => self.idle_share = Some(share(value)),
            _ => return false,
        }
        true
    }
}

shape! {
    /// DPDK's testpmd as the generator or receiver of a `pps` workload. Its cores are `pin_client` and `pin_server`: that of its prompt first,
    /// then those that forward; without them each end chooses, as with `auto`.
    pub struct DpdkSpec {
        /// The program, to be looked for in PATH unless it is a path. Default `dpdk-testpmd`.
        optional program: String,
        /// The device: `net_af_packet` (default) or `net_af_xdp` on the interface of the data, `net_memif` between ends on one machine,
        /// `net_null` for no network at all, `netvsc`, `mana` or `failsafe` on Azure, or the place of a PCI function,
        /// for example `0000:00:05.0`.
        optional device: DpdkDevice,
        /// Queues in either direction, each with a core of its own while there are enough, 1 to 128, default 1.
        optional queues: u32,
        /// Queues of the receiver, when it has others, 1 to 128. Default: `queues`.
        optional receive_queues: u32,
        /// Descriptors of each queue, 32 to 32768. Default: as many as the driver likes.
        optional descriptors: u32,
        /// Whether its buffers are huge pages with one of the devices `net_...`, too; the others need them in any case. What lacks is
        /// reserved for the trial. Default `false`.
        optional huge_pages: bool,
        /// Further words for testpmd, at the end of its command line, for example `["--burst=64"]`.
        optional args: Vec<String>,
    }
}

shape! {
    /// Something that is done to a path while traffic runs. Whatever it took is given back after the trial.
    pub struct EventSpec {
        /// When, after the start of the traffic: later than the event before, and before the end of the duration.
        required at: Nanos,
        /// What is done. Hosts that are not guests of the lab have `remove` (their PCI device), `down` and `return`.
        required kind as "do": PathEventKind,
        /// To whose interface. Default: the client's.
        optional on: Side,
        /// The interface, on a host that is not a guest of the lab. Guests have theirs: the virtual function `vf0`.
        optional interface: String,
    }
}

shape! {
    /// How the comparison is made.
    pub struct DesignSpec {
        /// Blocks that are run at least, 2 to 10000, default 8, more when the plan asks for more than four verdicts (or `blocks_max` when that is less). A block is every arm and workload once, in random order.
        optional blocks_min: u32,
        /// Blocks that are run at most, 2 to 10000 and not less than `blocks_min`, default 30 (or `blocks_min` when that is more).
        optional blocks_max: u32,
        /// No block is begun after this time, more than 0 s. Default: none.
        optional budget: Nanos,
        /// Stop when every interval is at most this wide to either side, relative to its ratio. More
        /// than 0 % to 100 %, default 5 %.
        optional precision: Percent,
        /// A difference smaller than this does not matter to you ("no difference larger than"). More than 0 % to
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
