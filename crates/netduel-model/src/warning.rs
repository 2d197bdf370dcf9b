//! Warnings about a result. They are stored with the run and printed by every report, each with its remedy.
//!
//! Long because: it is one enum with one sentence for each of its variants.
mod counts_cause;
mod damage;
mod lower_bound;
mod subject;

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;
use crate::units::{count, human_bit_rate, human_nanos, human_share, human_si, plural, three_digits};
use crate::workload::WorkUnit;

pub use counts_cause::CountsCause;

/// A larger share of a host's CPU time that its hypervisor withheld in a trial causes a warning.
pub const STEAL_SHARE_MAX: f64 = 0.01;

/// A larger share of a host's CPU time that other processes used in a trial causes a warning.
pub const OTHERS_SHARE_MAX: f64 = 0.05;

/// A warning about a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// A metric rose or fell over the blocks.
    Drift {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The metric.
        metric: Metric,
        /// Change from the first to the last block, as a fraction of the median.
        change: f64,
    },
    /// Successive blocks are correlated: the confidence interval is too narrow.
    Autocorrelation {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The metric.
        metric: Metric,
        /// Lag-1 autocorrelation of the paired comparison.
        lag1: f64,
    },
    /// Trials of one arm fall into two groups.
    Bimodal {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The metric.
        metric: Metric,
        /// Centre of the lower group.
        low: f64,
        /// Centre of the upper group.
        high: f64,
    },
    /// A block lies far from the others.
    OutlierBlock {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The metric.
        metric: Metric,
        /// The block, from 0.
        block: u32,
        /// Its value divided by the median of the other blocks.
        ratio_to_median: f64,
    },
    /// The hypervisor withheld CPU time from this host (steal time).
    StealTime {
        /// The host.
        host: HostName,
        /// Largest share of a trial's CPU time, a fraction.
        share_max: f64,
        /// Trials with so large a share that it causes the warning.
        trials: u32,
    },
    /// Other processes used the host's cores during trials.
    CpuContention {
        /// The host.
        host: HostName,
        /// Largest share of a trial's CPU time that other processes used, a fraction.
        share_max: f64,
        /// Trials with so large a share that it causes the warning.
        trials: u32,
    },
    /// A standing server ran tests of other clients during trials.
    ConcurrentTests {
        /// The host.
        host: HostName,
        /// Most other tests at one moment of a trial.
        others_max: u32,
        /// Number of trials with other tests.
        trials: u32,
    },
    /// The wall clock was stepped in a trial. Figures do not depend on it; logs might.
    ClockStep {
        /// The host.
        host: HostName,
        /// Size of the step, nanoseconds.
        step_ns: i64,
    },
    /// The bytes of trials used another path than the arm names.
    PathChanged {
        /// The arm.
        arm: ArmName,
        /// Number of trials.
        trials: u32,
        /// The reason of the first.
        detail: String,
    },
    /// A host changed between blocks: it was moved, rebooted, or has another NIC. Trials before and after are not compared.
    PlacementChanged {
        /// The host.
        host: HostName,
        /// First block after the change, from 0.
        block: u32,
        /// What changed.
        detail: String,
    },
    /// A guest of a bed contradicts what the provider claims of a VM or NIC that an arm depends on, and the user let the run go on.
    BedDisagrees {
        /// The host.
        host: HostName,
        /// The contradictions.
        detail: String,
    },
    /// An arm names no interface, so the path of its bytes is not verified.
    ArmNotProven {
        /// The arm.
        arm: ArmName,
    },
    /// Throughput is constant at a limit while CPU is idle.
    RateCapped {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The plateau, bit/s.
        rate_bps: f64,
    },
    /// Throughput falls from one level to another in most trials of an arm, as behind a token bucket.
    TokenBucketBurst {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Level before, bit/s.
        before_bps: f64,
        /// Level after, bit/s.
        after_bps: f64,
    },
    /// Both hosts run on one machine: they share its cores, and no packet leaves it.
    SharedMachine {
        /// The client host.
        client: HostName,
        /// The server host.
        server: HostName,
    },
    /// A NAT between the hosts: the server sees another source address than the client's own.
    AddressTranslated {
        /// The client host.
        client: HostName,
        /// The server host.
        server: HostName,
        /// The client's own address.
        local: IpAddr,
        /// The source address that the server sees.
        seen: IpAddr,
    },
    /// The receiver was the bottleneck: its socket dropped datagrams that the path had delivered.
    ReceiverOverrun {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Datagrams dropped at the socket, all trials.
        datagrams: u64,
        /// Lost datagrams in total, all trials; absent in runs of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    /// Datagrams and packets differ in number: the rate of datagrams is not a rate of packets.
    DatagramsNotPackets {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Datagrams per packet of the interface, median of the trials; below 1 when IP fragmented them.
        datagrams_per_packet: f64,
    },
    /// The kernel copied zero-copy sends.
    ZeroCopyFellBack {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Sends that the kernel copied, all trials.
        copied: u64,
        /// Sends with a completion, all trials.
        sends: u64,
    },
    /// Transactions failed: a call failed, or they timed out.
    TransactionsFailed {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Transactions that failed, all trials.
        failed: u64,
        /// Transactions that were started, all trials.
        attempted: u64,
        /// Errors that the client counted, by call, the most frequent first.
        cause: String,
    },
    /// Requests, or probes of `loaded-latency`, had no response in time: no percentile contains them.
    RequestsLost {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Requests without a response in time, all trials.
        lost: u64,
        /// Requests that were sent, all trials.
        requests: u64,
    },
    /// An open loop could not keep its schedule.
    ScheduleMissed {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// 99th percentile of the pacing error in the worst trial, nanoseconds.
        pacing_error_p99_ns: u64,
    },
    /// The counts of both programs and of an interface between them disagree.
    CountsDisagree {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The host of the interface.
        host: HostName,
        /// The interface that the arm names, or the busiest one when it names none.
        interface: String,
        /// Whether it is about bytes that the interface sent; otherwise about bytes that it received.
        sent: bool,
        /// Bytes that the interface counted in the worst trial.
        counted_bytes: u64,
        /// Least bytes that the interface must have counted by the figures of both programs, with headers.
        expected_min_bytes: u64,
        /// Most bytes that it can have counted by these figures.
        expected_max_bytes: u64,
        /// Payload that the sender sent, bytes.
        sender_bytes: u64,
        /// Payload that the receiver received, bytes.
        receiver_bytes: u64,
        /// The cause that fits the figures.
        cause: CountsCause,
        /// Number of trials.
        trials: u32,
    },
    /// TCP connections of a workload on an arm did not have the same congestion control or MSS in all trials.
    ConnectionsDiffered {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The host that sent on them.
        host: HostName,
        /// The values, each with its blocks.
        detail: String,
    },
    /// Streams with a `rate` sent less.
    RateMissed {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Payload rate of the plan, each direction, bit/s.
        requested_bps: f64,
        /// Payload rate sent over the whole duration in the slower direction, median of the trials, bit/s.
        sent_bps: f64,
    },
    /// Busy polling is set, but the device has no NAPI instance that can be polled.
    NoNapiInstance {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Trials in which one end or both had no NAPI instance.
        trials: u32,
    },
    /// The round trips of only one of arm and baseline are time-stamped.
    TimestampsDiffer {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
    },
    /// Many stamped round trips lack a stamp, or have parts that do not add up: the table of parts does not contain them.
    TimestampsIncomplete {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Share of the stamped round trips that could not be split, a fraction.
        share: f64,
        /// Round trips whose parts do not add up.
        inconsistent: u64,
    },
    /// The end of an effect was not observed: the value is a lower bound.
    LowerBound {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// The metric.
        metric: Metric,
        /// Trials in which it is a lower bound.
        trials: u32,
        /// Trials with the metric.
        trials_total: u32,
    },
    /// Trials had no round trip in the steady window; they count with the length of the window, as a bound.
    NoRoundTrips {
        /// The arm.
        arm: ArmName,
        /// The workload.
        workload: WorkloadName,
        /// Trials without a round trip in the steady window.
        trials: u32,
        /// Valid trials.
        trials_total: u32,
    },
    /// A host refused the treatments of an arm repeatedly, or could not be restored, and the run continued without the arm.
    ArmDropped {
        /// The arm.
        arm: ArmName,
        /// The error of the host.
        reason: String,
    },
    /// Trials failed or were invalid and are excluded from verdicts.
    TrialsExcluded {
        /// The arm.
        arm: ArmName,
        /// Number of trials.
        trials: u32,
        /// The first reason.
        reason: String,
    },
    /// An earlier run's agent and its guard were killed together on a host, and this run's agent restored the settings they left.
    SettingsRestored {
        /// The host.
        host: HostName,
        /// The restored settings, in words.
        settings: Vec<String>,
    },
    /// A treatment could not be undone.
    UndoFailed {
        /// The host.
        host: HostName,
        /// The treatment, and how to undo it by hand.
        detail: String,
        /// How often the same was reported: each agent that finds it tries again to undo it.
        #[serde(default = "once", skip_serializing_if = "is_once")]
        reports: u32,
    },
    /// Records of the run file are not as they were written, and were left out.
    RecordsDamaged {
        /// Their lines in the file, from 1.
        lines: Vec<u64>,
        /// How the first is known to be damaged.
        detail: String,
    },
    /// The last record of the run file is incomplete, and was left out.
    RecordIncomplete {
        /// Bytes of it in the file.
        bytes: u64,
    },
    /// A block that the run began was not finished, so the hosts were not compared after it, and it was left out.
    BlockIncomplete {
        /// The block, from 0.
        block: u32,
        /// Its trials.
        trials: u32,
    },
    /// A host differed from the start of the run after a block: for a while and without a cause in the plan, or where it is not known to concern
    /// the path. The block counts.
    HostDiffered {
        /// The host.
        host: HostName,
        /// The block, from 0; of a difference that lasts, the first.
        block: u32,
        /// The differences, with both values.
        detail: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(WorkUnit::Byte))
    }
}

impl Warning {
    /// The warning in a sentence, with the titles that metrics have in a workload with this unit of work.
    #[expect(clippy::too_many_lines, reason = "one exhaustive match: no variant can lack its sentence")]
    pub fn words(&self, unit: WorkUnit) -> String {
        let title = |metric: &Metric| metric.title_in(unit);
        match self {
            Self::Drift { arm, workload, metric, change } => format!(
                "drift: {} of {arm} in {workload} {} over the blocks: the line through them changes by {:.0} % of the median from the \
                 first to the last; conditions changed during the run: look at the series over blocks and repeat the run",
                title(metric),
                if *change < 0.0 { "fell" } else { "rose" },
                (change.abs() * 100.0).max(1.0)
            ),
            Self::Autocorrelation { arm, workload, metric, lag1 } => format!(
                "autocorrelation: {} of {arm} in {workload} is correlated between successive blocks (lag 1: {lag1:.2}), so its \
                 confidence interval is too narrow; run longer trials",
                title(metric)
            ),
            Self::Bimodal { arm, workload, metric, low, high } => format!(
                "bimodal: {} of {arm} in {workload} falls into two groups, about {} and {}; the usual cause is the placement of threads \
                 on cores: set `pin_client` and `pin_server`",
                title(metric),
                metric.human(*low),
                metric.human(*high)
            ),
            Self::OutlierBlock { arm, workload, metric, block, ratio_to_median } => format!(
                "outlier block: {} of {arm} in {workload} was {} the median of the other blocks in block {}; \
                 it stays in the result: check for other load at that time",
                title(metric),
                multiple(*ratio_to_median),
                block.saturating_add(1)
            ),
            Self::RateCapped { arm, workload, rate_bps } => format!(
                "rate capped: the throughput of {arm} in {workload} is constant at {} while CPU is idle; a rate limit is the bottleneck, not the path",
                human_bit_rate(*rate_bps)
            ),
            Self::TokenBucketBurst { arm, workload, before_bps, after_bps } => format!(
                "token-bucket burst: {arm} in {workload} falls from {} to {} within a trial; set a `duration` longer than the burst, or a \
                 longer `warmup`",
                human_bit_rate(*before_bps),
                human_bit_rate(*after_bps)
            ),
            Self::ReceiverOverrun { arm, workload, datagrams, lost } => format!(
                "receiver overrun: the receiver of {arm} in {workload} dropped {datagrams} datagrams{} because its socket buffer was \
                 full; the receiver is the bottleneck for them, not the path: set `pin_server`, more `flows`, `offload = \"gso-gro\"` \
                 or a `rate`",
                lost.map(|lost| format!(" ({})", part_of_loss(*datagrams, lost))).unwrap_or_default()
            ),
            Self::DatagramsNotPackets { arm, workload, datagrams_per_packet }
                if *datagrams_per_packet > 1.0 =>
            {
                format!(
                    "datagrams are not packets: in {workload} of {arm} {} datagrams arrived as one packet at the receiver's interface; \
                 nothing on this path segments them, so the figures do not contain the cost of single packets; to send each datagram as a packet, \
                 set `offload = \"none\"`, or switch `tx-udp-segmentation` of the sender's interface off by a treatment",
                    three_digits(*datagrams_per_packet)
                )
            }
            Self::DatagramsNotPackets { arm, workload, datagrams_per_packet } => format!(
                "datagrams are not packets: in {workload} of {arm} each datagram arrived as {} packets at the receiver's interface: \
                 it is longer than the MTU, and the loss of one fragment loses the datagram; set a smaller `size`",
                three_digits(datagrams_per_packet.recip())
            ),
            Self::ZeroCopyFellBack { arm, workload, copied, sends } => format!(
                "zero copy fell back: the kernel copied {copied} of {sends} zero-copy sends in {workload} of {arm}; veth, \
                 loopback and NICs without scatter-gather cannot send without a copy, so the figures include the copy and the attempt \
                 to avoid it: set `engine = \"lean\"` or `\"copy\"`"
            ),
            Self::TransactionsFailed { arm, workload, failed, attempted, cause } => format!(
                "transactions failed: {failed} of {attempted} transactions in {workload} of {arm} failed and are in no latency figure: {cause}"
            ),
            Self::RequestsLost { arm, workload, lost, requests } => format!(
                "requests lost: {lost} of {requests} requests ({}) in {workload} of {arm} had no response in time and are in no percentile; \
                 the latency is that of the other requests only: compare the share of lost requests of the arms as well, and look for drops \
                 on the path",
                human_share(*lost as f64 / (*requests).max(1) as f64)
            ),
            Self::ScheduleMissed { arm, workload, pacing_error_p99_ns } => format!(
                "schedule missed: the open loop of {workload} in {arm} sent requests {} late (p99); set a lower `request_rate` or `pin_client`",
                human_nanos(*pacing_error_p99_ns as f64)
            ),
            Self::CountsDisagree {
                arm,
                workload,
                host,
                interface,
                sent,
                counted_bytes,
                expected_min_bytes,
                expected_max_bytes,
                sender_bytes,
                receiver_bytes,
                cause,
                trials,
            } => {
                let [counted, min, max, sender, receiver] =
                    [counted_bytes, expected_min_bytes, expected_max_bytes, sender_bytes, receiver_bytes]
                        .map(|bytes| human_si(*bytes as f64, "B"));
                format!(
                    "counts disagree: in {workload} of {arm} interface {interface} of host {host} {} {counted}, expected are {min} to {max} \
                     ({sender} of payload sent, {receiver} received, and headers), in {}; {}",
                    if *sent { "sent" } else { "received" },
                    trials_in_words(*trials),
                    cause.advice()
                )
            }
            Self::ConnectionsDiffered { arm, workload, host, detail } => format!(
                "connections differed: host {host} sent {workload} of {arm} with {detail}; these are trials of different configurations, and \
                 all of them count: look for a program that changes routes, sysctls or tunnels on the hosts or on the path, and repeat the run"
            ),
            Self::RateMissed { arm, workload, requested_bps, sent_bps } => format!(
                "rate missed: {arm} in {workload} sent {} instead of the {} of the plan ({} less); the path or a core is the bottleneck, \
                 so the arms are not compared at the same rate",
                human_bit_rate(*sent_bps),
                human_bit_rate(*requested_bps),
                human_share(1.0 - sent_bps / requested_bps)
            ),
            Self::NoNapiInstance { arm, workload, trials } => format!(
                "no NAPI instance: in {workload} of {arm} the packets came from a device without NAPI (veth, loopback) in {}, so \
                 the kernel could not busy-poll and waited as with `wait = \"block\"`",
                trials_in_words(*trials)
            ),
            Self::TimestampsDiffer { arm, workload } => format!(
                "time stamps differ: in {workload} only one of {arm} and the baseline has time stamps; they cost time for every \
                 packet of a host: set `timestamps` alike for both"
            ),
            Self::TimestampsIncomplete { arm, workload, share, inconsistent } => format!(
                "time stamps incomplete: {} of the stamped round trips of {workload} in {arm} could not be split ({inconsistent} \
                 with parts that do not add up) and are not in the table of parts; over TCP set `outstanding = 1`",
                human_share(*share)
            ),
            Self::LowerBound { arm, workload, metric, trials, trials_total } => {
                lower_bound::words((*metric, title(metric)), arm, workload, [*trials, *trials_total])
            }
            Self::NoRoundTrips { arm, workload, trials, trials_total } => {
                lower_bound::of_round_trips(arm, workload, [*trials, *trials_total])
            }
            Self::ArmDropped { arm, reason } => {
                format!("arm dropped: the run continued without {arm}: {reason}")
            }
            Self::SettingsRestored { host, settings } => format!(
                "restored settings on host {host} that an earlier run left behind: {}; results of other programs since then may be affected",
                settings.join(", ")
            ),
            Self::UndoFailed { host, detail, reports: 0 | 1 } => {
                format!("not undone on host {host}: {detail}")
            }
            Self::UndoFailed { host, detail, reports } => {
                format!("not undone on host {host} (reported {reports} times): {detail}")
            }
            Self::RecordsDamaged { lines, detail } => damage::words(lines, detail),
            Self::RecordIncomplete { bytes } => damage::of_incomplete(*bytes),
            Self::BlockIncomplete { block, trials } => format!(
                "incomplete block: block {} was not finished, so its {} {} in no value, verdict or count: hosts are compared with the start of \
                 the run after each whole block; let the run finish the block, or repeat it with `netduel run --resume`",
                block.saturating_add(1),
                plural(*trials, "trial"),
                if *trials == 1 { "is" } else { "are" }
            ),
            Self::HostDiffered { host, block, detail } => format!(
                "host differed: after block {} host {host} differed from the start of the run: {detail}; the difference was temporary, or may \
                 not concern the path, so the block counts: compare its trials with those of other blocks, and repeat the run if they differ",
                block.saturating_add(1)
            ),
            Self::StealTime { host, share_max, trials } => format!(
                "steal time: the hypervisor withheld up to {} of the CPU time of host {host}, more than {} % in {}; use a dedicated or \
                 larger machine for absolute figures",
                human_share(*share_max),
                count(STEAL_SHARE_MAX * 100.0),
                trials_in_words(*trials)
            ),
            Self::CpuContention { host, share_max, trials } => format!(
                "CPU contention: other processes used up to {} of the CPU time of host {host}, more than {} % in {}; CPU costs \
                 are overstated and rates are disturbed: stop the other processes",
                human_share(*share_max),
                count(OTHERS_SHARE_MAX * 100.0),
                trials_in_words(*trials)
            ),
            Self::ConcurrentTests { host, others_max, trials } => {
                let tests = plural(*others_max, "other test");
                format!(
                    "concurrent tests: the server of host {host} ran up to {tests} at the same time, in {}; they shared its path, cores and \
                     CPU time: repeat the test when the server is free",
                    trials_in_words(*trials)
                )
            }
            Self::ClockStep { host, step_ns } => format!(
                "clock step: the wall clock of host {host} was stepped by {} during a trial; figures do not depend on it",
                human_nanos(*step_ns as f64)
            ),
            Self::PathChanged { arm, trials, detail } => format!(
                "path changed: {} of {arm} excluded because of another path than the arm names: {detail}",
                trials_in_words(*trials)
            ),
            Self::PlacementChanged { host, block, detail } => format!(
                "placement changed: from block {} on, host {host} was another machine or configuration: {detail}; trials before and after are not \
                 compared: repeat the run on hosts that do not change",
                block.saturating_add(1)
            ),
            Self::BedDisagrees { host, detail } => format!(
                "bed disagrees: host {host} is not as Azure claims: {detail}; the names of its arms may be wrong: correct the bed and repeat \
                 the run"
            ),
            Self::ArmNotProven { arm } => format!(
                "arm not proven: the arm {arm} names no interface, so the path of its bytes is not verified; set `expect_interface` or \
                 `expect_path`"
            ),
            Self::SharedMachine { client, server } => format!(
                "shared machine: hosts {client} and {server} are one machine, and figures hold for it only; they share its cores, and CPU time is \
                 counted once"
            ),
            Self::AddressTranslated { client, server, local, seen } => format!(
                "NAT: host {server} sees host {client} as {seen} instead of {local}; figures include the translation, so compare arms with \
                 the same NAT only, or use addresses that are routed"
            ),
            Self::TrialsExcluded { arm, trials, reason } => {
                format!("trials excluded: {} of {arm}: {reason}", trials_in_words(*trials))
            }
        }
    }
}

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_once(reports: &u32) -> bool {
    *reports == once()
}

/// The drops of a receiver as a part of all lost datagrams or packets: `all lost ones`, `12 % of the lost ones`.
pub fn part_of_loss(dropped: u64, lost: u64) -> String {
    match dropped as f64 / lost.max(1) as f64 * 100.0 {
        _ if dropped >= lost => "all lost ones".to_owned(),
        percent if percent >= 99.0 => "more than 99 % of the lost ones".to_owned(),
        percent if percent < 1.0 => "less than 1 % of the lost ones".to_owned(),
        percent => format!("{percent:.0} % of the lost ones"),
    }
}

/// A multiple of the median: `51 times`, `1/560 of`.
fn multiple(ratio: f64) -> String {
    match ratio {
        r if r >= 9.95 => format!("{r:.0} times"),
        r if r > 0.1 => format!("{r:.2} times"),
        r if r > 0.0 => format!("1/{:.0} of", r.recip()),
        _ => "0 times".to_owned(),
    }
}

fn trials_in_words(trials: u32) -> String {
    if trials == 1 { "1 trial".to_owned() } else { format!("{trials} trials") }
}
