//! `tcp-crr`: transactions over TCP, each on a connection of its own: connect, request, response, close.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_hand::{self, ByHand, QuickTest};
use super::facts::{Demand, Facts, Requests, Sockets, TcpFacts, Threads};
use super::given::{Given, Places};
use super::particular::Particular;
use super::round_trip::{self, REQUEST};
use super::setting::{self, Range, Setting};
use super::terms::{Direction, Wait};
use super::timing::Timing;
use super::work_unit::WorkUnit;
use crate::metric::Metric;
use crate::plan::problem::Problems;
use crate::shell;
use crate::units::{Bytes, Nanos, PerSecond};

/// Transactions of an open loop that may be in flight when the plan does not say: beyond it the schedule is missed, and the report says
/// so.
const OUTSTANDING_OPEN: u32 = 64;

/// Settings of transactions that each have a connection of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transaction {
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of a response.
    pub response: Bytes,
    /// Transactions in flight; in an open loop at most.
    pub outstanding: u32,
    /// How both ends wait.
    pub wait: Wait,
    /// `null`: closed loop, the next transaction follows the end of one. Otherwise an open loop: transactions begin on a
    /// schedule of this rate, and each is counted from its scheduled time.
    pub rate: Option<PerSecond>,
    /// Congestion control of its TCP connections, as the kernel names it; `null` leaves the host's default (which is recorded).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

impl Transaction {
    /// A transaction that takes longer is given up. The kernel retransmits a lost SYN after 1 s and after 2 s more, so slow transactions
    /// are measured.
    pub const TIMEOUT: Nanos = Nanos(4_000_000_000);
    /// The ways to wait that it has.
    pub const WAITS: [Wait; 2] = [Wait::Block, Wait::Spin];
}

impl Particular for Transaction {}

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    // A request on a connection of its own begins with what proves that it is the trial's.
    Setting::within("size", Range::bytes(48, setting::MESSAGE_MOST)).described_by(|| format!("bytes of a request, default {REQUEST}")),
    // The response begins with a proof of the trial.
    Setting::within("response_size", Range::bytes(setting::MESSAGE_LEAST, setting::MESSAGE_MOST)),
    setting::OUTSTANDING.described_by(|| {
        format!("transactions, each in a thread at both ends, default 1; with `request_rate` the most in flight, default {OUTSTANDING_OPEN}")
    }),
    Setting::free("wait").described("both ends, default `block`; not `busy-poll`"),
    setting::REQUEST_RATE.described("default: a closed loop"),
    Setting::free("congestion"),
];

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &Transaction, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "size" => Some(settings.request.0),
        "response_size" => Some(settings.response.0),
        "outstanding" => Some(settings.outstanding.into()),
        "request_rate" => settings.rate.map(|rate| rate.0),
        _ => None,
    }
}

pub(super) fn facts(settings: &Transaction) -> Facts<'_> {
    let threads = settings.outstanding;
    let size = settings.request.max(settings.response);
    let requests = Requests { rate: settings.rate, outstanding: threads, size, are_probes: false };
    Facts {
        // The first connection carries no payload: its end tells the server that the client has ended.
        sockets: Sockets {
            tcp: 1,
            runtime_tcp: threads,
            counters: threads,
            bulk: threads,
            ..Sockets::default()
        },
        threads: Threads::RoundTrips(threads),
        concurrency: threads,
        payload: Some(Direction::Both),
        has_round_trips: true,
        finish_shuts_down: true,
        unit: WorkUnit::Transaction,
        demand: Demand::of_requests(requests),
        requests: Some(requests),
        tcp: TcpFacts { congestion: settings.congestion.as_deref(), ..TcpFacts::default() },
        wait: settings.wait,
        default_metrics: vec![Metric::LatencyP50, Metric::LatencyP99],
        possible_metrics: round_trip::METRICS,
        ..Facts::default()
    }
}

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> Transaction {
    let settings = given.settings;
    let request = settings.size.unwrap_or(REQUEST);
    let outstanding = if settings.request_rate.is_some() { OUTSTANDING_OPEN } else { 1 };
    Transaction {
        request,
        response: settings.response_size.unwrap_or(request),
        outstanding: settings.outstanding.unwrap_or(outstanding),
        wait: settings.wait.unwrap_or_default(),
        rate: settings.request_rate,
        congestion: settings.congestion.clone(),
    }
}

/// Notes a way to wait that it does not have.
pub(super) fn check(settings: &Transaction, _: &Given<'_>, places: &Places<'_>, problems: &mut Problems<'_>) {
    if !Transaction::WAITS.contains(&settings.wait) {
        let wrong = format!("is \"{}\", which tcp-crr does not have", settings.wait.word());
        let waits = Transaction::WAITS.map(|wait| format!("`{}`", wait.word())).join(" or ");
        let allowed =
            format!("allowed: {waits}; a connection has one response only, too few to busy-poll for");
        problems.add(&places.at("wait"), wrong, allowed);
    }
}

/// What repeats it by hand.
pub(super) fn by_hand(settings: &Transaction, timing: &Timing) -> ByHand {
    let mut options = by_hand::of_requests(settings.request, settings.outstanding, settings.rate);
    if settings.response != settings.request {
        options.push(format!("--response-length {}", settings.response.0));
    }
    options.push(format!("--wait {}", settings.wait.word()));
    options.extend(settings.congestion.as_ref().map(|name| format!("-C {}", shell::word(name))));
    ByHand::Test(QuickTest::timed("crr", timing.duration, options))
}

/// The settings for people.
pub(super) fn words(settings: &Transaction) -> Vec<String> {
    let Transaction { request, response, outstanding, wait, rate, congestion } = settings;
    let mut words = vec!["one connection per transaction".to_owned()];
    words.push(format!("{request} requests, {response} responses"));
    words.push(match rate {
        Some(rate) => format!("open loop at {rate}, at most {outstanding} in flight"),
        None => format!("closed loop, {outstanding} in flight"),
    });
    words.push(wait.words().to_owned());
    words.extend(congestion.iter().cloned());
    words
}
