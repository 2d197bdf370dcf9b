//! What workloads of requests and responses have in common. It knows no protocol.
use serde::{Deserialize, Serialize};

use super::facts::{Demand, Facts, Requests, Threads, WorkUnit};
use super::terms::{Direction, Wait};
use super::timing::Timing;
use crate::metric::Metric;
use crate::units::{Bytes, PerSecond};

/// The metrics that requests and responses can yield.
pub(super) const METRICS: &[Metric] = &[
    Metric::LatencyP50,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::RoundTripRate,
    Metric::CpuPerRoundTrip,
];

/// Settings of a request-response workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Bytes of a request, and of its response.
    pub size: Bytes,
    /// Requests in flight in a closed loop.
    pub outstanding: u32,
    /// How both ends wait for a message.
    pub wait: Wait,
    /// `None`: closed loop, the next request follows a response. Otherwise an open loop: requests leave on a schedule of
    /// this rate and each round trip is counted from its scheduled time.
    pub rate: Option<PerSecond>,
    /// Whether some of the requests are time-stamped by the kernels, which splits their round trips into parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timestamps: bool,
    /// Congestion control of the connection of `tcp-rr`, as the kernel names it; `None` leaves the host's default (which is recorded).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

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
    let requests = Requests { rate: settings.rate, outstanding: settings.outstanding, are_probes: false };
    // An open loop that blocks has a thread for each direction.
    let threads = if settings.rate.is_some() && settings.wait != Wait::Spin { 2 } else { 1 };
    Facts {
        threads: Threads::RoundTrips(threads),
        concurrency: settings.outstanding,
        payload: Some(Direction::Both),
        has_round_trips: true,
        unit: WorkUnit::RoundTrip,
        demand: Demand::of_requests(requests, settings.size),
        requests: Some(requests),
        is_stamped: settings.timestamps,
        wait: settings.wait,
        default_metrics: vec![Metric::LatencyP50, Metric::LatencyP99],
        possible_metrics: METRICS,
        ..Facts::default()
    }
}
