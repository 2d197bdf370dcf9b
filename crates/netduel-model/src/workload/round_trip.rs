//! What workloads of requests and responses have in common. It knows no protocol.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_hand;
use super::facts::{Demand, Facts, Requests, Threads};
use super::given::{Given, Places};
use super::particular::Particular;
use super::terms::{Direction, Wait};
use super::timing::Timing;
use super::work_unit::WorkUnit;
use crate::metric::Metric;
use crate::plan::problem::{Problems, one_of};
use crate::shell;
use crate::units::{Bytes, Nanos, PerSecond};

/// The metrics that requests and responses can yield.
pub(super) const METRICS: &[Metric] = &[
    Metric::LatencyP50,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::RoundTripRate,
    Metric::CpuPerRoundTrip,
];

/// The metrics that they can yield in datagrams, which a path may lose.
pub(super) const DATAGRAM_METRICS: &[Metric] = &[
    Metric::LatencyP50,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::RoundTripRate,
    Metric::Loss,
    Metric::CpuPerRoundTrip,
];

/// Bytes of a request when the plan does not say.
pub(super) const REQUEST: Bytes = Bytes(64);

/// What `size` is where request and response are of the same size.
pub(super) fn size_text() -> String {
    format!("bytes of a request, and of its response; default {REQUEST}")
}

/// Settings of a request-response workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// Bytes of a request, and of its response.
    pub size: Bytes,
    /// Requests in flight in a closed loop.
    pub outstanding: u32,
    /// How both ends wait for a message.
    pub wait: Wait,
    /// `null`: closed loop, the next request follows a response. Otherwise an open loop: requests leave on a schedule of
    /// this rate and each round trip is counted from its scheduled time.
    pub rate: Option<PerSecond>,
    /// Whether some of the requests are time-stamped by the kernels, which splits their round trips into parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timestamps: bool,
    /// Congestion control of the connection of `tcp-rr`, as the kernel names it; `null` leaves the host's default (which is recorded).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

impl RoundTrip {
    /// Bytes of a request, and of its response, when the plan does not say.
    pub const SIZE: Bytes = REQUEST;

    /// A request in a datagram counts as lost without a response within this time. Longer than any terrestrial round trip (about 0.3 s) and than
    /// the stalls of a host without free cores, so late responses do not count as lost.
    pub const TIMEOUT: Nanos = Nanos(500_000_000);
}

impl Particular for RoundTrip {}

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &RoundTrip, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "size" => Some(settings.size.0),
        "outstanding" => Some(settings.outstanding.into()),
        "request_rate" => settings.rate.map(|rate| rate.0),
        _ => None,
    }
}

/// The facts of requests and responses, whatever carries them.
pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    let requests = Requests {
        rate: settings.rate,
        outstanding: settings.outstanding,
        size: settings.size,
        are_probes: false,
    };
    // An open loop that blocks has a thread for each direction.
    let threads = if settings.rate.is_some() && settings.wait != Wait::Spin { 2 } else { 1 };
    Facts {
        threads: Threads::RoundTrips(threads),
        concurrency: settings.outstanding,
        payload: Some(Direction::Both),
        has_round_trips: true,
        unit: WorkUnit::RoundTrip,
        demand: Demand::of_requests(requests),
        requests: Some(requests),
        is_stamped: settings.timestamps,
        wait: settings.wait,
        default_metrics: vec![Metric::LatencyP50, Metric::LatencyP99],
        possible_metrics: METRICS,
        ..Facts::default()
    }
}

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> RoundTrip {
    let settings = given.settings;
    RoundTrip {
        size: settings.size.unwrap_or(REQUEST),
        outstanding: settings.outstanding.unwrap_or(1),
        wait: settings.wait.unwrap_or_default(),
        rate: settings.request_rate,
        timestamps: settings.timestamps.unwrap_or_default(),
        congestion: settings.congestion.clone(),
    }
}

/// Notes a workload that is an open and a closed loop at once.
pub(super) fn check(_: &RoundTrip, given: &Given<'_>, places: &Places<'_>, problems: &mut Problems<'_>) {
    const KEYS: [&str; 2] = ["outstanding", "request_rate"];
    if given.settings.outstanding.is_none() || given.settings.request_rate.is_none() {
        return;
    }
    // What the arm overrides is what made it so.
    let key = KEYS.into_iter().find(|key| places.is_overridden(key)).unwrap_or(KEYS[0]);
    let wrong = "makes a closed loop (`outstanding`) and an open one (`request_rate`) of one workload";
    problems.add(&places.at(key), wrong, format!("set one of {}", one_of(KEYS)));
}

/// The options of their quick test.
pub(super) fn options(settings: &RoundTrip) -> Vec<String> {
    let mut options = by_hand::of_requests(settings.size, settings.outstanding, settings.rate);
    options.push(format!("--wait {}", settings.wait.word()));
    options.extend(settings.congestion.as_ref().map(|name| format!("-C {}", shell::word(name))));
    if settings.timestamps {
        options.push("--timestamps".to_owned());
    }
    options
}

/// The settings for people.
pub(super) fn words(settings: &RoundTrip) -> Vec<String> {
    let mut words = vec![format!("{} messages", settings.size)];
    words.push(match settings.rate {
        Some(rate) => format!("open loop at {rate}"),
        None => format!("closed loop, {} outstanding", settings.outstanding),
    });
    words.push(settings.wait.words().to_owned());
    if settings.timestamps {
        words.push("some of them time-stamped".to_owned());
    }
    words.extend(settings.congestion.iter().cloned());
    words
}
