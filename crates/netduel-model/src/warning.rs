//! Doubts about a result, typed. They are stored with the run and printed by every report, with what to do about them.
//!
//! Long because: it is one enum with one sentence for each of its variants.
mod at_least;
mod counts_cause;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;
use crate::units::{human_bit_rate, human_nanos, three_digits};

pub use counts_cause::CountsCause;

/// A doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// A metric rose or fell over the blocks.
    Drift {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Which metric.
        metric: Metric,
        /// Change from the first to the last block, as a fraction of the median.
        change: f64,
    },
    /// Successive blocks resemble each other: the interval is narrower than it should be.
    Autocorrelation {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Which metric.
        metric: Metric,
        /// Lag-1 autocorrelation of the paired comparison.
        lag1: f64,
    },
    /// Trials of one arm fall into two groups.
    Bimodal {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Which metric.
        metric: Metric,
        /// Centre of the lower group.
        low: f64,
        /// Centre of the upper group.
        high: f64,
    },
    /// A block lies far from the others.
    OutlierBlock {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Which metric.
        metric: Metric,
        /// Which block, from 0.
        block: u32,
        /// Its value over the median of the others.
        times_median: f64,
    },
    /// The hypervisor gave this host's CPU time to somebody else.
    StolenTime {
        /// Which host.
        host: HostName,
        /// Largest share of a trial's CPU time, a fraction.
        share_max: f64,
        /// Trials with more than one per cent.
        trials: u32,
    },
    /// Something else than this program and its network work used the host's cores during trials.
    BusyHost {
        /// Which host.
        host: HostName,
        /// Largest share of a trial's CPU time that was somebody else's, a fraction.
        share_max: f64,
        /// Trials with more than five per cent.
        trials: u32,
    },
    /// A standing server ran tests of others beside trials.
    OtherTests {
        /// Which host.
        host: HostName,
        /// Most others at a moment of a trial.
        others_max: u32,
        /// How many trials had any.
        trials: u32,
    },
    /// The wall clock was stepped in a trial. Figures do not depend on it; logs might.
    ClockStep {
        /// Which host.
        host: HostName,
        /// How far, nanoseconds.
        step_ns: i64,
    },
    /// The bytes of a trial took another path than the label says.
    PathChanged {
        /// Which arm.
        arm: ArmName,
        /// How many trials.
        trials: u32,
        /// What was seen in the first.
        detail: String,
    },
    /// A host was another one than in the blocks before: moved, started anew, or with another NIC. Trials before are not compared
    /// with trials after.
    PlacementChanged {
        /// Which host.
        host: HostName,
        /// First block in which it was another, from 0.
        block: u32,
        /// What changed.
        detail: String,
    },
    /// An arm says nothing of the interface that it should use, so nothing is proven.
    ArmNotProven {
        /// Which arm.
        arm: ArmName,
    },
    /// Throughput stands flat at a limit while CPU is to spare.
    RateCapped {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// The plateau, bit/s.
        rate_bps: f64,
    },
    /// Throughput falls from one level to another in most trials of an arm, as behind a token bucket.
    TokenBucketBurst {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Level before, bit/s.
        before_bps: f64,
        /// Level after, bit/s.
        after_bps: f64,
    },
    /// Both hosts are one machine: they share its cores, and nothing crosses a wire.
    SharedMachine {
        /// The client host.
        client: HostName,
        /// The server host.
        server: HostName,
    },
    /// The receiver's program was the bottleneck: its socket dropped datagrams that the path had delivered.
    ReceiverOverrun {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Datagrams dropped at the socket, all trials.
        datagrams: u64,
        /// Datagrams that were lost at all, all trials; absent in runs of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    /// Datagrams and packets are not the same number: what the label calls a rate of datagrams is not one of packets.
    DatagramsNotPackets {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Datagrams that one packet of the interface carried, median of the trials; less than 1 when IP cut them.
        datagrams_per_packet: f64,
    },
    /// Sends that were to copy nothing were copied by the kernel.
    CopiedAllTheSame {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Sends that the kernel copied, all trials.
        copied: u64,
        /// Sends that the kernel told of, all trials.
        sends: u64,
    },
    /// Transactions came to nothing: a call failed, or they were given up.
    TransactionsFailed {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Transactions that failed, all trials.
        failed: u64,
        /// Transactions that were begun, all trials.
        begun: u64,
        /// What the client counted, by call, the most frequent first.
        cause: String,
    },
    /// An open loop could not keep its schedule.
    ScheduleMissed {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// 99th percentile of the lateness, nanoseconds, in the worst trial.
        late_p99_ns: u64,
    },
    /// What both programs counted and what an interface between them counted do not add up.
    CountsDisagree {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// The host of the interface.
        host: HostName,
        /// The interface: that of the label, or the busiest one when the arm names none.
        interface: String,
        /// Whether it is about what the interface sent; otherwise about what it received.
        sent: bool,
        /// What the interface counted in the worst trial, bytes.
        counted_bytes: u64,
        /// What it had to count by the figures of both programs, with headers: at least, bytes.
        expected_min_bytes: u64,
        /// The same: at most, bytes.
        expected_max_bytes: u64,
        /// Payload that the sender's program sent, bytes.
        sender_bytes: u64,
        /// Payload that the receiver's program received, bytes.
        receiver_bytes: u64,
        /// What fits the figures.
        cause: CountsCause,
        /// How many trials.
        trials: u32,
    },
    /// Streams that were asked for a rate sent less.
    RateMissed {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Payload rate asked for, each direction, bit/s.
        asked_bps: f64,
        /// Payload rate sent over the whole duration in the slower direction, median of the trials, bit/s.
        sent_bps: f64,
    },
    /// Busy polling was asked for, but the device has no NAPI instance that could be polled.
    NothingToPoll {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Trials in which it was so at one end at least.
        trials: u32,
    },
    /// An arm's round trips are time-stamped and the baseline's are not, or the other way round.
    StampsDiffer {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
    },
    /// Many stamped round trips lack a stamp, or have parts that do not add up, so what is said of parts is said of the others.
    StampsIncomplete {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Share of the stamped round trips that could not be split, a fraction.
        share: f64,
        /// Those whose parts do not add up.
        inconsistent: u64,
    },
    /// What an event cost was not over when the traffic ended or the next event came: the time until then was counted.
    AtLeast {
        /// Which arm.
        arm: ArmName,
        /// Which workload.
        workload: WorkloadName,
        /// Which metric.
        metric: Metric,
        /// How many trials.
        trials: u32,
        /// Of how many.
        of: u32,
    },
    /// A host refused the treatments of an arm again and again, and the run went on without the arm.
    ArmDropped {
        /// Which arm.
        arm: ArmName,
        /// What the host said.
        reason: String,
    },
    /// Trials failed or were invalid and do not enter a verdict.
    TrialsLeftOut {
        /// Which arm.
        arm: ArmName,
        /// How many.
        trials: u32,
        /// The first reason.
        reason: String,
    },
    /// An earlier run's agent and its guard were killed together on a host, and this run's agent restored the settings they left.
    Restored {
        /// Which host.
        host: HostName,
        /// What was changed, in words.
        settings: Vec<String>,
    },
    /// A treatment could not be undone.
    NotUndone {
        /// Which host.
        host: HostName,
        /// What, and how to undo it by hand.
        detail: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.about_figures().or_else(|| self.about_treatments());
        f.write_str(&sentence.unwrap_or_else(|| self.about_the_run()))
    }
}

impl Warning {
    /// The sentence of a doubt about the figures of one workload.
    fn about_figures(&self) -> Option<String> {
        Some(match self {
            Self::Drift { arm, workload, metric, change } => format!(
                "drift: {} of {arm} in {workload} moved by {:.2} times its median {} over the blocks; something else on \
                 the hosts changed, look at the series over blocks and repeat",
                metric.title(),
                change.abs(),
                if *change < 0.0 { "downwards" } else { "upwards" }
            ),
            Self::Autocorrelation { arm, workload, metric, lag1 } => format!(
                "autocorrelation: successive blocks resemble each other in {} of {arm} in {workload} (lag 1: {lag1:.2}); the \
                 interval is too narrow, run longer blocks",
                metric.title()
            ),
            Self::Bimodal { arm, workload, metric, low, high } => format!(
                "bimodal: {} of {arm} in {workload} falls into two groups, about {} and {}; placement on cores is the usual \
                 cause, pin the threads",
                metric.title(),
                metric.human(*low),
                metric.human(*high)
            ),
            Self::OutlierBlock { arm, workload, metric, block, times_median } => format!(
                "outlier block: {} of {arm} in {workload} was {times_median:.2} times the median in block {}; it stays in the \
                 result, look at what else ran then",
                metric.title(),
                block + 1
            ),
            Self::RateCapped { arm, workload, rate_bps } => format!(
                "rate capped: {arm} in {workload} stands flat at {} with CPU to spare; the limit is a cap, not the path",
                human_bit_rate(*rate_bps)
            ),
            Self::TokenBucketBurst { arm, workload, before_bps, after_bps } => format!(
                "token-bucket burst: {arm} in {workload} falls from {} to {} within a trial; run longer than the burst, or set \
                 a longer warm-up",
                human_bit_rate(*before_bps),
                human_bit_rate(*after_bps)
            ),
            Self::ReceiverOverrun { .. } | Self::DatagramsNotPackets { .. } => return self.about_datagrams(),
            Self::CopiedAllTheSame { arm, workload, copied, sends } => format!(
                "copied all the same: {copied} of {sends} sends that asked for no copy in {workload} of {arm} were copied by the \
                 kernel; veth, loopback and NICs without scatter-gather have no zero copy, so its figures are of a copy and of the \
                 work to avoid it: set `engine = \"lean\"` or `\"copy\"`"
            ),
            Self::TransactionsFailed { arm, workload, failed, begun, cause } => format!(
                "transactions failed: {failed} of {begun} in {workload} of {arm} came to nothing and are in no round trip: {cause}"
            ),
            Self::ScheduleMissed { arm, workload, late_p99_ns } => format!(
                "schedule missed: the open loop of {workload} in {arm} sent up to {} late (p99); lower the rate or pin the client",
                human_nanos(*late_p99_ns as f64)
            ),
            Self::CountsDisagree { .. } => self.about_counts(),
            Self::RateMissed { arm, workload, asked_bps, sent_bps } => format!(
                "rate missed: {arm} in {workload} sent {} of the {} asked for ({:.1} % less); the path or a core is the limit, \
                 so this is not a comparison at one rate",
                human_bit_rate(*sent_bps),
                human_bit_rate(*asked_bps),
                (1.0 - sent_bps / asked_bps) * 100.0
            ),
            _ => return self.about_polling_and_stamps(),
        })
    }

    fn about_polling_and_stamps(&self) -> Option<String> {
        Some(match self {
            Self::NothingToPoll { arm, workload, trials } => format!(
                "nothing to poll: in {workload} of {arm} the packets came from a device without NAPI (a veth pair, loopback) in {}, \
                 so the kernel could not busy-poll and waited as with `wait = \"block\"`",
                trials_in_words(*trials)
            ),
            Self::StampsDiffer { arm, workload } => format!(
                "stamps differ: in {workload} either {arm} or the baseline is time-stamped, and not both; hosts that stamp handle \
                 every packet a little slower, set `timestamps` alike"
            ),
            Self::StampsIncomplete { arm, workload, share, inconsistent } => format!(
                "stamps incomplete: {:.0} % of the stamped round trips of {workload} in {arm} could not be split ({inconsistent} have \
                 parts that do not add up); the parts are those of the others. Over TCP use one request at a time",
                share * 100.0
            ),
            Self::AtLeast { arm, workload, metric, trials, of } => {
                at_least::words(*metric, arm, workload, [*trials, *of])
            }
            _ => return None,
        })
    }

    /// The sentence of a doubt about datagrams.
    fn about_datagrams(&self) -> Option<String> {
        Some(match self {
            Self::ReceiverOverrun { arm, workload, datagrams, lost } => format!(
                "receiver overrun: in {workload} of {arm} {datagrams} datagrams{} reached the receiver's socket and were dropped \
                 there; that part of the loss is the receiver's, not the path's: it was the bottleneck, so pin the server, use more \
                 flows, `offload = \"gso-gro\"` or a `rate`",
                lost.map(|lost| format!(" of {lost} lost")).unwrap_or_default()
            ),
            Self::DatagramsNotPackets { arm, workload, datagrams_per_packet }
                if *datagrams_per_packet > 1.0 =>
            {
                format!(
                    "datagrams are not packets: in {workload} of {arm} {} datagrams travelled as one packet of the receiver's interface; \
                 nothing on this path cuts them, so its cost per packet is not in the figures: set `offload = \"none\"`, or treat \
                 `tx-udp-segmentation` of the sender's interface with `off`, to send each as a packet",
                    three_digits(*datagrams_per_packet)
                )
            }
            Self::DatagramsNotPackets { arm, workload, datagrams_per_packet } => format!(
                "datagrams are not packets: in {workload} of {arm} each datagram travelled as {} packets of the receiver's interface; it \
                 is longer than the MTU and IP cuts it, and one lost piece loses all: set a smaller `size`",
                three_digits(datagrams_per_packet.recip())
            ),
            _ => return None,
        })
    }

    /// The sentence of a doubt about treatments.
    fn about_treatments(&self) -> Option<String> {
        Some(match self {
            Self::ArmDropped { arm, reason } => {
                format!("arm dropped: {arm} could not be treated, and the run continued without it: {reason}")
            }
            Self::Restored { host, settings } => format!(
                "restored settings on host {host} that an earlier run left behind: {}; results of other programs since then may be affected",
                settings.join(", ")
            ),
            Self::NotUndone { host, detail } => format!("not undone on host {host}: {detail}"),
            _ => return None,
        })
    }

    /// The sentence of any other doubt.
    fn about_the_run(&self) -> String {
        match self {
            Self::StolenTime { host, share_max, trials } => format!(
                "stolen time: the hypervisor withheld up to {:.0} % of host {host}'s CPU time, more than 1 % in {}; \
                 use a dedicated or larger machine for absolute figures",
                share_max * 100.0,
                trials_in_words(*trials)
            ),
            Self::BusyHost { host, share_max, trials } => format!(
                "busy host: up to {:.0} % of the CPU time of host {host} was neither netduel's nor an interrupt's, more than \
                 5 % in {}; what CPU costs is overstated and rates are disturbed, stop what else runs",
                share_max * 100.0,
                trials_in_words(*trials)
            ),
            Self::OtherTests { host, others_max, trials } => {
                let tests = if *others_max == 1 { "test" } else { "tests" };
                format!(
                    "other tests: up to {others_max} other {tests} ran on the server of host {host} at the same time, in {}; they shared the path, its \
                     cores and what its process cost, so test again when it is free",
                    trials_in_words(*trials)
                )
            }
            Self::ClockStep { host, step_ns } => format!(
                "clock step: the wall clock of host {host} moved by {} in a trial; figures do not depend on it",
                human_nanos(*step_ns as f64)
            ),
            Self::PathChanged { arm, trials, detail } => format!(
                "path changed: {} of {arm} did not keep to the path of the label and did not count: {detail}",
                trials_in_words(*trials)
            ),
            Self::PlacementChanged { host, block, detail } => format!(
                "placement changed: in block {} host {host} was not what it was before: {detail}; trials before and after are not \
                 compared with each other, repeat the run on hosts that stay",
                block + 1
            ),
            Self::ArmNotProven { arm } => format!(
                "arm not proven: {arm} names no interface, so nothing proves which way its bytes went; set `expect_interface` or \
                 `expect_path`"
            ),
            Self::SharedMachine { client, server } => format!(
                "shared machine: hosts {client} and {server} share one machine's cores; CPU time is counted once, and figures \
                 hold for this machine only"
            ),
            Self::TrialsLeftOut { arm, trials, reason } => {
                format!("trials left out: {} of {arm} did not count: {reason}", trials_in_words(*trials))
            }
            Self::Drift { .. }
            | Self::Autocorrelation { .. }
            | Self::Bimodal { .. }
            | Self::OutlierBlock { .. }
            | Self::RateCapped { .. }
            | Self::TokenBucketBurst { .. }
            | Self::ReceiverOverrun { .. }
            | Self::DatagramsNotPackets { .. }
            | Self::CopiedAllTheSame { .. }
            | Self::TransactionsFailed { .. }
            | Self::CountsDisagree { .. }
            | Self::RateMissed { .. }
            | Self::ScheduleMissed { .. }
            | Self::NothingToPoll { .. }
            | Self::StampsDiffer { .. }
            | Self::StampsIncomplete { .. }
            | Self::AtLeast { .. }
            | Self::ArmDropped { .. }
            | Self::Restored { .. }
            | Self::NotUndone { .. } => unreachable!("this doubt has its sentence above"),
        }
    }
}

fn trials_in_words(trials: u32) -> String {
    if trials == 1 { "1 trial".to_owned() } else { format!("{trials} trials") }
}
