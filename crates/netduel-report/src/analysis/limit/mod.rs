//! What limited a trial, from what both ends recorded of it: the cause, and the numbers that led to it. Where they do not
//! lead to one cause the answer is "unknown", with the numbers.
//!
//! The order of the questions matters: a rate that was asked for is no limit of the path; what the kernel or the provider counted
//! goes before what is inferred; a thread that had no time left explains a closed window or an empty send buffer; these explain
//! a path that is not full.
mod asked;
mod cores;
mod evidence;
mod packets;
mod path;

use netduel_model::trial::Trial;
use netduel_model::workload::Workload;
use serde::Serialize;

use super::expected::Expected;
use evidence::Evidence;

pub use asked::missed_rate;

/// What held the traffic back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The rate that was asked for was reached.
    AskedRate,
    /// The sending thread, or the core it was pinned to, had no CPU time left.
    SenderCore,
    /// A generator that is not ours (the kernel's, testpmd) made packets as fast as it can.
    Generator,
    /// The sender's interface took no frame of the generator.
    NotTaken,
    /// The ring or queue of the sender's interface was full: what takes the packets from it is slower than the sender.
    BackPressure,
    /// The receiving thread, or the core it was pinned to, had no CPU time left.
    ReceiverCore,
    /// Threads waited for a core that other programs had for longer than they ran.
    OtherPrograms,
    /// The kernel's packet processing had no time left on one core.
    SoftirqCore,
    /// One receive queue, and so one core, had all packets to process.
    SingleQueue,
    /// All cores of a machine were busy.
    AllCores,
    /// The receiver's window was full.
    ReceiveWindow,
    /// The receiver's program left a large buffer full.
    ReceiverProgram,
    /// The send buffer was too small for what was under way.
    SendBuffer,
    /// The sender's program had nothing to send.
    Application,
    /// A cap on the rate: a known limit was reached, a counter of the provider rose, or the rate stood flat with CPU to spare.
    RateCap,
    /// A cap that lets a burst pass first: the rate fell to a lower level within the trial.
    TokenBucket,
    /// Packets that one host sent never came to the other.
    Switch,
    /// An interface or queue of one of the two hosts dropped packets that it had no room for.
    HostDrops,
    /// Packets were lost where no counter of the two hosts tells.
    LostUncounted,
    /// A queue on the path grew, and TCP sent less.
    Congestion,
    /// Segments were lost, and TCP sent less.
    Loss,
    /// The receiver's program did not take frames out of its ring (AF_XDP, DPDK) as fast as they came.
    ReceiverRing,
    /// The receiver's program did not take datagrams as fast as they came.
    ReceiverSocket,
    /// Each request waited for the response before it: a closed loop is as fast as its round trip.
    RoundTrip,
    /// The evidence points to no single cause.
    Unknown,
}

impl Cause {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::AskedRate => "the configured rate",
            Self::SenderCore => "the sender's core",
            Self::Generator => "the generator: its cores make no more packets",
            Self::NotTaken => "the sender's interface: it accepts no frames of the generator",
            Self::BackPressure => "the sender's interface: its ring or queue was full (back-pressure)",
            Self::ReceiverCore => "the receiver's core",
            Self::OtherPrograms => "CPU contention from other processes",
            Self::SoftirqCore => "softirq processing on one core",
            Self::SingleQueue => "a single receive queue: one core does all packet processing",
            Self::AllCores => "all cores of one machine",
            Self::ReceiveWindow => "the receive window",
            Self::ReceiverProgram => "the receiver's program: it reads too slowly",
            Self::SendBuffer => "the send buffer",
            Self::Application => "the sender's program: it has nothing to send",
            Self::RateCap => "a rate cap",
            Self::TokenBucket => "a rate cap with a burst (token bucket)",
            Self::Switch => "the path: it drops packets between the hosts",
            Self::HostDrops => "an interface or qdisc of the two hosts: it drops packets",
            Self::LostUncounted => "loss that no counter of the two hosts shows",
            Self::Congestion => "congestion: a queue on the path is full",
            Self::Loss => "loss: TCP reduced its rate",
            Self::ReceiverRing => "the receiver's program: its ring is full",
            Self::ReceiverSocket => "the receiver's program: its socket overflows",
            Self::RoundTrip => "latency-bound",
            Self::Unknown => "unknown",
        }
    }
}

/// A cause with what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What held the traffic back.
    pub cause: Cause,
    /// The numbers, each in words; the one that decided is first.
    pub evidence: Vec<String>,
}

/// What limited a trial; absent when an end is missing. `shared_machine`: both hosts are one machine, with the same cores.
/// `expected`: what the sending hosts can give at most, as far as that is known.
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
    let mut words: Vec<String> = found.into_iter().map(|(_, words)| words).collect();
    if cause == Cause::Unknown {
        words = evidence.background();
    }
    words.extend(evidence.little_held_back());
    Some(Limit { cause, evidence: words })
}

/// What limited the trials of an arm in one workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArmLimit {
    /// What limited most trials.
    pub cause: Cause,
    /// How many of them.
    pub trials: u32,
    /// Of how many.
    pub of: u32,
    /// The numbers of the trial in the middle of those, in the order of the schedule.
    pub evidence: Vec<String>,
    /// What limited the others, most frequent first.
    pub others: Vec<(Cause, u32)>,
}

/// What limited the valid trials of an arm; absent without one.
pub(super) fn of_arm(
    workload: &Workload,
    trials: &[&Trial],
    shared_machine: bool,
    expected: Option<&Expected>,
) -> Option<ArmLimit> {
    let limits: Vec<Limit> =
        trials.iter().filter_map(|trial| limit_of(workload, trial, shared_machine, expected)).collect();
    let count = |cause: Cause| limits.iter().filter(|limit| limit.cause == cause).count() as u32;
    let mut causes: Vec<Cause> = limits.iter().map(|limit| limit.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    // A stable sort: of two causes with as many trials the more certain one, which stands first, is named.
    causes.sort_by_key(|cause| std::cmp::Reverse(count(*cause)));
    let (cause, others) = causes.split_first()?;
    let own: Vec<&Limit> = limits.iter().filter(|limit| limit.cause == *cause).collect();
    Some(ArmLimit {
        cause: *cause,
        trials: own.len() as u32,
        of: limits.len() as u32,
        evidence: own.get(own.len() / 2)?.evidence.clone(),
        others: others.iter().map(|cause| (*cause, count(*cause))).collect(),
    })
}

fn percent(share: f64) -> String {
    crate::words::percent(share)
}
