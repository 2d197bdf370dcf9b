//! The bottleneck of a trial, from the records of both ends: the cause and its evidence. Without a clear cause the answer is
//! "unknown", with the numbers.
//!
//! The order of the checks matters: a configured rate is not a limit of the path; counters of the kernel or the provider come
//! before inference; a saturated thread explains a full window or an empty send buffer; these explain a path that is not full.
mod configured_rate;
mod cores;
mod evidence;
mod packets;
mod path;

use netduel_model::trial::Trial;
use netduel_model::workload::Workload;
use schemars::JsonSchema;
use serde::Serialize;

use super::expected::Expected;
use super::halves::Halves;
use super::machine::Machines;
use evidence::Evidence;

pub use configured_rate::{missed_rate, missed_schedule};

/// The cause of a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The configured rate was reached.
    ConfiguredRate,
    /// No round trip in the steady window: the path or a host stalled.
    Stalled,
    /// An open loop sent requests later than its schedule.
    LateRequests,
    /// The sending thread, or the core it was pinned to, was saturated.
    SenderCore,
    /// A generator outside netduel (the kernel's, testpmd) ran at its maximum rate.
    Generator,
    /// The sender's interface accepted no frame of the generator.
    FramesRejected,
    /// The ring or queue of the sender's interface was full: the device is slower than the sender.
    BackPressure,
    /// The receiving thread, or the core it was pinned to, was saturated.
    ReceiverCore,
    /// The thread of the client, or the core it was pinned to, was saturated: in a workload of round trips both ends send and receive.
    ClientCore,
    /// The thread of the server, or the core it was pinned to, was saturated: in a workload of round trips.
    ServerCore,
    /// The core to which both ends of one machine were pinned was saturated.
    SharedCore,
    /// CPU contention: threads waited for cores, and other processes used CPU time.
    CpuContention,
    /// The kernel's packet processing saturated one core.
    SoftirqCore,
    /// One receive queue, and so one core, processed all packets.
    SingleQueue,
    /// All cores of a machine were busy.
    AllCores,
    /// The receiver's window was full.
    ReceiveWindow,
    /// The receiver's program did not read a large buffer in time.
    ReceiverProgram,
    /// The send buffer was too small for the data in flight.
    SendBuffer,
    /// The sender's program had no data to send.
    Application,
    /// A rate cap: a known limit was reached, a counter of the provider rose, or the rate was flat with CPU time to spare.
    RateCap,
    /// A rate cap with a burst allowance: the rate fell to a lower level within the trial.
    TokenBucket,
    /// Packets were lost between the two hosts.
    Switch,
    /// An interface or queue of one of the two hosts dropped packets.
    HostDrops,
    /// Packets were lost without a counter of the two hosts.
    LostUncounted,
    /// A queue on the path was full, and TCP reduced its rate.
    Congestion,
    /// Segments were lost, and TCP reduced its rate.
    Loss,
    /// The receiver's program read its ring (AF_XDP, DPDK) too slowly.
    ReceiverRing,
    /// The receiver's program read its socket too slowly.
    ReceiverSocket,
    /// Requests in datagrams had no response: in a closed loop each takes the place of others until its timeout, in an open loop it is missing.
    RequestsLost,
    /// Latency-bound: in a closed loop each request waits for a response.
    RoundTrip,
    /// The evidence points to no single cause.
    Unknown,
}

impl Cause {
    /// Whether the evidence of this cause also speaks for another one: an idle core says nothing of a rate cap, but a busy one tells why a
    /// receiver reads too slowly.
    fn supports(self, cause: Self) -> bool {
        let of_cores = matches!(self, Self::AllCores | Self::CpuContention | Self::SoftirqCore);
        let of_loss = matches!(
            self,
            Self::Congestion | Self::Loss | Self::Switch | Self::HostDrops | Self::LostUncounted
        );
        match cause {
            _ if self == cause => true,
            Self::LateRequests => of_cores || self.is_core_of_an_end(),
            Self::SenderCore => of_cores || self.is_core_of_an_end() || self == Self::Generator,
            Self::Generator => of_cores || self == Self::SenderCore,
            Self::ReceiverCore
            | Self::ClientCore
            | Self::ServerCore
            | Self::SharedCore
            | Self::CpuContention
            | Self::AllCores => of_cores || self.is_core_of_an_end() || self == Self::SingleQueue,
            Self::SoftirqCore | Self::SingleQueue => {
                of_cores || self == Self::SingleQueue || self.is_core_of_a_receiver()
            }
            Self::ReceiveWindow | Self::ReceiverProgram | Self::ReceiverRing | Self::ReceiverSocket => {
                of_cores
                    || self.is_core_of_a_receiver()
                    || matches!(
                        self,
                        Self::SingleQueue
                            | Self::ReceiveWindow
                            | Self::ReceiverProgram
                            | Self::ReceiverRing
                            | Self::ReceiverSocket
                    )
            }
            // A cap fills a queue, and a full queue loses packets.
            Self::RateCap | Self::TokenBucket | Self::Congestion | Self::Loss => {
                of_loss || matches!(self, Self::RateCap | Self::TokenBucket)
            }
            Self::Switch | Self::HostDrops | Self::LostUncounted => of_loss,
            Self::SendBuffer | Self::Application => matches!(self, Self::SendBuffer | Self::Application),
            Self::ConfiguredRate
            | Self::Stalled
            | Self::FramesRejected
            | Self::BackPressure
            | Self::RequestsLost
            | Self::RoundTrip
            | Self::Unknown => false,
        }
    }

    fn is_core_of_a_receiver(self) -> bool {
        matches!(self, Self::ReceiverCore | Self::ClientCore | Self::ServerCore | Self::SharedCore)
    }

    fn is_core_of_an_end(self) -> bool {
        self == Self::SenderCore || self.is_core_of_a_receiver()
    }

    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::ConfiguredRate => "the configured rate",
            Self::Stalled => "a stall: no round trip in the steady window",
            Self::LateRequests => "the client: it sent requests later than their schedule",
            Self::SenderCore => "the sender's core",
            Self::Generator => "the generator: its cores are saturated",
            Self::FramesRejected => "the sender's interface: it rejects the frames of the generator",
            Self::BackPressure => "the sender's interface: its ring or queue was full (back-pressure)",
            Self::ReceiverCore => "the receiver's core",
            Self::ClientCore => "the client's core",
            Self::ServerCore => "the server's core",
            Self::SharedCore => "the core that both ends share",
            Self::CpuContention => "CPU contention from other processes",
            Self::SoftirqCore => "softirq processing on one core",
            Self::SingleQueue => "a single receive queue: one core does all packet processing",
            Self::AllCores => "all cores of one machine",
            Self::ReceiveWindow => "the receive window",
            Self::ReceiverProgram => "the receiver's program: it reads too slowly",
            Self::SendBuffer => "the send buffer",
            Self::Application => "the sender's program: it has no data to send",
            Self::RateCap => "a rate cap",
            Self::TokenBucket => "a rate cap with a burst (token bucket)",
            Self::Switch => "the path: it drops packets between the hosts",
            Self::HostDrops => "an interface or qdisc of the two hosts: it drops packets",
            Self::LostUncounted => "loss that no counter of the two hosts shows",
            Self::Congestion => "congestion: a queue on the path is full",
            Self::Loss => "loss: TCP reduced its rate",
            Self::ReceiverRing => "the receiver's program: its ring is full",
            Self::ReceiverSocket => "the receiver's program: its socket overflows",
            Self::RequestsLost => "loss: requests without a response",
            Self::RoundTrip => "latency-bound",
            Self::Unknown => "unknown",
        }
    }
}

/// A cause with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// The cause.
    pub cause: Cause,
    /// The evidence in words, the decisive number first.
    pub evidence: Vec<String>,
}

/// The bottleneck of a trial; absent when an end is missing. `shared_machine`: both hosts are one machine, with the same cores.
/// `expected`: the known rate limit of the sending hosts.
pub fn limit_of(
    workload: &Workload,
    trial: &Trial,
    shared_machine: bool,
    expected: Option<&Expected>,
) -> Option<Limit> {
    let (client, server) = (trial.client.as_ref()?, trial.server.as_ref()?);
    let evidence = Evidence::gather(workload, trial, [client, server], shared_machine, expected);
    let found = evidence.findings();
    let cause = found.first().map_or(Cause::Unknown, |(cause, _)| *cause);
    let supporting = found.into_iter().filter(|(of, _)| of.supports(cause));
    let mut words: Vec<String> = supporting.map(|(_, words)| words).collect();
    if matches!(cause, Cause::Unknown | Cause::Stalled) {
        words.extend(evidence.background());
    }
    words.extend(evidence.little_held_back());
    match cause {
        Cause::CpuContention => drop(words.splice(..0, evidence.other_processes())),
        Cause::Stalled
        | Cause::LateRequests
        | Cause::RequestsLost
        | Cause::RoundTrip
        | Cause::ConfiguredRate
        | Cause::SenderCore
        | Cause::ReceiverCore
        | Cause::ClientCore
        | Cause::ServerCore
        | Cause::SharedCore
        | Cause::AllCores => words.extend(evidence.other_processes()),
        _ => {}
    }
    Some(Limit { cause, evidence: words })
}

/// The bottleneck of an arm in one workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArmLimit {
    /// The cause in most trials; absent when several causes share the largest number of trials.
    pub cause: Option<Cause>,
    /// Number of trials with this cause, or with each of these causes.
    pub trials: u32,
    /// Number of valid trials.
    pub of: u32,
    /// The evidence of the median one of these trials, by the first metric of the workload (of two middle ones the lower); without a
    /// single cause that of the first of the causes.
    pub evidence: Vec<String>,
    /// The block of that trial.
    pub evidence_block: u32,
    /// The causes in other trials, most frequent first; without a single cause all of them.
    pub others: Vec<(Cause, u32)>,
}

impl ArmLimit {
    /// Words for people.
    pub fn words(&self) -> &'static str {
        self.cause.map_or("no single cause", Cause::words)
    }
}

/// The bottleneck of an arm's valid trials; absent without one. `expected`: the known rate limit of the sending hosts of each.
pub(super) fn of_arm(
    workload: &Workload,
    trials: &[&Trial],
    machines: &Machines,
    expected: &Halves<Option<Expected>>,
) -> Option<ArmLimit> {
    let value = |trial: &Trial| {
        let first = workload.metrics.first()?;
        super::figures::value_of(*first, workload, trial, machines.shared(trial))
    };
    let mut by_value: Vec<(f64, &Trial)> =
        trials.iter().map(|trial| (value(trial).unwrap_or_default(), *trial)).collect();
    by_value.sort_by(|a, b| a.0.total_cmp(&b.0));
    let limits: Vec<(u32, Limit)> = by_value
        .iter()
        .filter_map(|(_, trial)| {
            let expected = expected.of_trial(trial).as_ref();
            Some((trial.slot.block, limit_of(workload, trial, machines.shared(trial), expected)?))
        })
        .collect();
    let count = |cause: Cause| limits.iter().filter(|(_, limit)| limit.cause == cause).count() as u32;
    let mut causes: Vec<Cause> = limits.iter().map(|(_, limit)| limit.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    // A stable sort: of two causes with the same count the more certain one comes first.
    causes.sort_by_key(|cause| std::cmp::Reverse(count(*cause)));
    let first = *causes.first()?;
    let is_tie = causes.get(1).is_some_and(|second| count(*second) == count(first));
    let others = causes.iter().skip(usize::from(!is_tie));
    let own: Vec<&(u32, Limit)> = limits.iter().filter(|(_, limit)| limit.cause == first).collect();
    // Of two middle trials the lower one: the upper one of two trials is the larger extreme.
    let (evidence_block, limit) = own.get(own.len().saturating_sub(1) / 2)?;
    Some(ArmLimit {
        cause: (!is_tie).then_some(first),
        trials: own.len() as u32,
        of: limits.len() as u32,
        evidence: limit.evidence.clone(),
        evidence_block: *evidence_block,
        others: others.map(|cause| (*cause, count(*cause))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn evidence_supports_its_own_cause_and_those_that_it_explains() {
        for (evidence, cause, supports) in [
            (Cause::SenderCore, Cause::SenderCore, true),
            (Cause::AllCores, Cause::CpuContention, true),
            (Cause::ReceiverCore, Cause::ReceiveWindow, true),
            (Cause::Loss, Cause::RateCap, true),
            (Cause::RateCap, Cause::SenderCore, false),
            (Cause::Loss, Cause::SenderCore, false),
            (Cause::CpuContention, Cause::RoundTrip, false),
            (Cause::AllCores, Cause::LateRequests, true),
            (Cause::ServerCore, Cause::ClientCore, true),
            (Cause::ClientCore, Cause::LateRequests, true),
            (Cause::ClientCore, Cause::RoundTrip, false),
            (Cause::SenderCore, Cause::RateCap, false),
            (Cause::SendBuffer, Cause::CpuContention, false),
            (Cause::AllCores, Cause::ConfiguredRate, false),
        ] {
            assert_eq!(evidence.supports(cause), supports, "{evidence:?} for {cause:?}");
        }
    }
}
