//! `failover`: probes each way and TCP streams while the path is taken away and restored.
use serde::{Deserialize, Serialize};

use super::facts::{self, Demand, Descriptors, Facts, Sockets, TcpFacts, Threads};
use super::setting::{self, Range, Setting};
use super::terms::{Direction, TcpEngine};
use super::timing::Timing;
use crate::failover::PathEvent;
use crate::metric::Metric;
use crate::units::{Bytes, PerSecond};

/// Settings of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failover {
    /// TCP connections that carry bulk data meanwhile; 0 is none.
    pub streams: u32,
    /// Who sends the bulk data. Probes go both ways in any case.
    pub direction: Direction,
    /// Bytes of bulk data handed to the kernel in one call.
    pub block: Bytes,
    /// How bulk data is moved in and out of the kernel.
    pub engine: TcpEngine,
    /// Congestion control of the streams, as the kernel names it; `None` leaves the host's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// UDP payload of a probe.
    pub size: Bytes,
    /// Probes a second, each way.
    pub rate: PerSecond,
    /// What is done to the path, in the order of time.
    pub events: Vec<PathEvent>,
}

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    // Each has a thread at both ends, which must not delay the probes; an outage is seen by one stream as by many.
    Setting::within("streams", Range::count(0, 64)),
    Setting::free("direction"),
    setting::BLOCK,
    Setting::free("engine"),
    Setting::free("congestion"),
    Setting::within("size", Range::bytes(setting::DATAGRAM_LEAST, setting::PROBE_MOST)),
    // Every probe is stored: 10 k/s for 100 s are the most that a trial keeps. Below 10 /s an outage is not seen.
    Setting::within("request_rate", Range::per_second(10, 10_000)),
    Setting::free("events"),
];

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &Failover, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "streams" => Some(settings.streams.into()),
        "block" => Some(settings.block.0),
        "size" => Some(settings.size.0),
        "request_rate" => Some(settings.rate.0),
        _ => None,
    }
}

pub(super) fn facts(settings: &Failover) -> Facts<'_> {
    let streams = settings.streams;
    let direction = (streams > 0).then_some(settings.direction);
    Facts {
        sockets: Sockets {
            tcp: streams,
            udp: 1,
            later: 0,
            lanes: streams + 1,
            bulk: streams,
            accounted: streams,
        },
        // A ring or a pipe for each.
        descriptors: Descriptors { fixed: u64::from(streams) * 2, shared: (0, 0) },
        // The streams and the probes.
        threads: Threads::Bulk(streams + 1),
        concurrency: streams,
        payload: direction,
        bulk: direction,
        // Both send probes by their own clocks.
        deciders: facts::both(),
        demand: match direction {
            Some(_) => Demand::Unlimited,
            None => Demand::of_messages(settings.rate, settings.size),
        },
        events: &settings.events,
        arrivals_stored: settings.rate.0.saturating_mul(2),
        tcp: TcpFacts {
            congestion: settings.congestion.as_deref(),
            mss: None,
            engine: Some(settings.engine),
        },
        default_metrics: match direction {
            Some(_) => vec![Metric::Outage, Metric::LostInOutage, Metric::RecoveryTime],
            None => vec![Metric::Outage, Metric::LostInOutage],
        },
        possible_metrics: &[Metric::Outage, Metric::LostInOutage, Metric::RecoveryTime, Metric::Throughput],
        ..Facts::default()
    }
}
