//! `loaded-latency`: round trips of small probes, first on an idle path and then while TCP streams run.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_hand::{ByHand, Part, QuickTest, of_requests, over_udp};
use super::facts::{Descriptors, Facts, Requests, Sockets, TcpFacts, Threads};
use super::given::Given;
pub(super) use super::given::unchecked as check;
use super::particular::Particular;
use super::round_trip::REQUEST;
use super::setting::{self, Range, Setting, ppm};
use super::tcp_stream::{self, StreamTuning, TcpStream};
use super::terms::{Direction, ProbeProtocol, TcpEngine};
use super::timing::Timing;
use crate::metric::Metric;
use crate::units::{Bytes, Nanos, PerSecond, Percent, plural};

/// As many as draft-ietf-ippm-responsiveness has at most (MNP): together they fill a queue whichever of them backs off.
const STREAMS: u32 = 16;
/// Enough for a 99th percentile in some seconds, and 0.2 Mbit/s of load.
const PROBE_RATE: PerSecond = PerSecond(200);
const IDLE_SHARE: Percent = Percent(25.0);

/// Settings of round trips on a path that is idle first and then loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedLatency {
    /// TCP connections that make the load; one more carries round trips in its own stream of data.
    pub streams: u32,
    /// The ends that send the load.
    pub direction: Direction,
    /// Bytes of the load handed to the kernel in one call.
    pub block: Bytes,
    /// How the load is moved in and out of the kernel.
    pub engine: TcpEngine,
    /// Congestion control of the load, as the kernel names it; `null` leaves the host's default (which is recorded).
    pub congestion: Option<String>,
    /// What the probes travel in.
    pub probe: ProbeProtocol,
    /// Bytes of a probe, and of its response.
    pub size: Bytes,
    /// The schedule of the probes; each counts from its scheduled time.
    pub rate: PerSecond,
    /// How long the path is idle before the load begins.
    pub idle: Nanos,
}

impl LoadedLatency {
    /// New connections under load that may be in flight, each with a thread at both ends.
    pub const FOREIGN_CONNECTIONS: u32 = 32;

    /// The steady window of the idle part, nanoseconds after the start. Warm-up and cool-down are cut from each part.
    pub fn idle_window(&self, timing: &Timing) -> std::ops::Range<u64> {
        facts(self).idle_window(timing).unwrap_or_default()
    }

    /// The steady window of the loaded part, nanoseconds after the start.
    pub fn loaded_window(&self, timing: &Timing) -> std::ops::Range<u64> {
        facts(self).steady_window(timing)
    }
}

impl Particular for LoadedLatency {}

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    Setting::within("streams", Range::count(1, setting::THREADS_MOST)).described_by(|| {
        format!(
            "connections of the load, default {STREAMS}; one further connection carries load and round trips"
        )
    }),
    Setting::free("direction").described("direction of the load, default `both`"),
    setting::BLOCK,
    Setting::free("engine"),
    Setting::free("congestion"),
    Setting::free("probe"),
    Setting::within("size", Range::bytes(setting::MESSAGE_LEAST, setting::PROBE_MOST))
        .described_by(|| format!("bytes of a probe and of its response, default {REQUEST}")),
    // At 10 k/s probes of 64 B are 5 Mbit/s: more would be load themselves.
    Setting::within("request_rate", Range::per_second(1, 10_000))
        .described_by(|| format!("rate of the probes, default {PROBE_RATE}")),
    // Each part has to be long enough to be measured.
    Setting::within("idle_share", Range::share(5, 90)),
];

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &LoadedLatency, key: &str, timing: &Timing) -> Option<u64> {
    match key {
        "streams" => Some(settings.streams.into()),
        "block" => Some(settings.block.0),
        "size" => Some(settings.size.0),
        "request_rate" => Some(settings.rate.0),
        "idle_share" => {
            let duration = timing.duration.0.max(1) as f64;
            Some(ppm(Percent(settings.idle.0 as f64 * 100.0 / duration)))
        }
        _ => None,
    }
}

pub(super) fn facts(settings: &LoadedLatency) -> Facts<'_> {
    // A changed run file may have any number.
    let bulk = settings.streams.saturating_add(1);
    let (tcp, udp) = match settings.probe {
        ProbeProtocol::Udp => (0, 1),
        ProbeProtocol::Tcp => (1, 0),
    };
    let runtime_tcp = LoadedLatency::FOREIGN_CONNECTIONS;
    Facts {
        sockets: Sockets {
            tcp: bulk.saturating_add(1 + tcp),
            udp,
            runtime_tcp,
            counters: bulk.saturating_add(1 + runtime_tcp),
            bulk,
            accounted: bulk,
            ..Sockets::default()
        },
        descriptors: Descriptors { fixed: u64::from(settings.streams) * 2, shared: (0, 0) },
        // The streams, the one that also carries round trips, and the probes.
        threads: Threads::Bulk(settings.streams.saturating_add(2)),
        concurrency: settings.streams,
        payload: Some(settings.direction),
        bulk: Some(settings.direction),
        has_round_trips: true,
        finish_shuts_down: true,
        requests: Some(Requests {
            rate: Some(settings.rate),
            outstanding: 1,
            size: settings.size,
            are_probes: true,
        }),
        load_begins: Some(settings.idle),
        tcp: TcpFacts {
            congestion: settings.congestion.as_deref(),
            mss: None,
            engine: Some(settings.engine),
        },
        default_metrics: vec![Metric::LatencyLoadedP50, Metric::LatencyLoadedP99, Metric::Responsiveness],
        possible_metrics: &[
            Metric::Throughput,
            Metric::LatencyIdleP50,
            Metric::LatencyLoadedP50,
            Metric::LatencyLoadedP99,
            Metric::Responsiveness,
        ],
        ..Facts::default()
    }
}

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> LoadedLatency {
    let settings = given.settings;
    let engine = settings.engine.unwrap_or_default();
    let idle_share = settings.idle_share.unwrap_or(IDLE_SHARE).fraction();
    LoadedLatency {
        streams: settings.streams.unwrap_or(STREAMS),
        direction: settings.direction.unwrap_or(Direction::Both),
        block: settings.block.unwrap_or(engine.default_block()),
        engine,
        congestion: settings.congestion.clone(),
        probe: settings.probe.unwrap_or_default(),
        size: settings.size.unwrap_or(REQUEST),
        rate: settings.request_rate.unwrap_or(PROBE_RATE),
        idle: Nanos((given.duration.0 as f64 * idle_share) as u64),
    }
}

/// What repeats it by hand: the probes, and the load beside them.
pub(super) fn by_hand(settings: &LoadedLatency, timing: &Timing) -> ByHand {
    let LoadedLatency { streams, direction, block, engine, ref congestion, probe, size, rate, idle } =
        *settings;
    let congestion = congestion.clone();
    let load = TcpStream {
        streams,
        direction,
        block,
        engine,
        congestion,
        rate: None,
        tuning: StreamTuning::default(),
    };
    let probes = of_requests(size, 1, Some(rate));
    let probes = match probe {
        ProbeProtocol::Udp => over_udp(probes),
        ProbeProtocol::Tcp => probes,
    };
    let loaded = Nanos(timing.duration.0.saturating_sub(idle.0));
    ByHand::Parts(vec![
        Part {
            title: "the probes, in one terminal".to_owned(),
            delay: Nanos(0),
            test: QuickTest::timed("rr", timing.duration, probes),
        },
        Part {
            title: format!("the load, at the same time in another terminal: it begins after {idle}"),
            delay: idle,
            test: tcp_stream::quick_test(&load, loaded),
        },
    ])
}

/// The settings for people.
pub(super) fn words(settings: &LoadedLatency) -> Vec<String> {
    let LoadedLatency { streams, direction, engine, congestion, probe, size, rate, idle, block: _ } =
        settings;
    let mut words = vec![format!("{} probes of {size} at {rate}", probe.words())];
    words.push(format!("idle for {idle}"));
    // One more stream carries round trips in its data.
    words.push(format!("then {} {}", plural(streams.saturating_add(1), "TCP stream"), direction.words()));
    words.push(engine.words().to_owned());
    words.extend(congestion.iter().cloned());
    words
}
