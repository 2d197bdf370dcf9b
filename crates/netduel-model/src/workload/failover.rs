//! `failover`: probes each way and TCP streams while the path is removed and restored.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_hand::{ByHand, Part};
use super::facts::{self, Demand, Descriptors, Facts, Sockets, TcpFacts, Threads};
use super::given::{Given, Places};
use super::particular::Particular;
use super::setting::{self, Range, Setting};
use super::tcp_stream::{self, StreamTuning, TcpStream};
use super::terms::{Direction, Side, TcpEngine, UdpOffload};
use super::timing::Timing;
use super::udp_stream::{self, FlowTuning, UdpStream};
use crate::failover::{PROBE_RATE, PROBES_MAX, PathEvent, PathEventKind};
use crate::metric::Metric;
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::settings::EventSpec;
use crate::units::{BitRate, Bytes, Nanos, PerSecond, plural};

/// A probe is the size of a small request.
const PROBE: Bytes = Bytes(64);
/// Probes that have to come after an event: with fewer an outage is not seen.
const PROBES_AFTER: u64 = 10;

/// Settings of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failover {
    /// TCP connections that carry bulk data meanwhile; 0 is none.
    pub streams: u32,
    /// The ends that send the bulk data. Probes go both ways in any case.
    pub direction: Direction,
    /// Bytes of bulk data handed to the kernel in one call.
    pub block: Bytes,
    /// How bulk data is moved in and out of the kernel.
    pub engine: TcpEngine,
    /// Congestion control of the streams, as the kernel names it; `null` leaves the host's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// UDP payload of a probe.
    pub size: Bytes,
    /// Probes a second, each way.
    pub rate: PerSecond,
    /// What is done to the path, in the order of time.
    pub events: Vec<PathEvent>,
}

impl Particular for Failover {
    fn events_mut(&mut self) -> &mut [PathEvent] {
        &mut self.events
    }
}

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    // Each has a thread at both ends, which must not delay the probes; an outage is seen by one stream as by many.
    Setting::within("streams", Range::count(0, 64)).described("connections beside the probes, default 1"),
    Setting::free("direction")
        .described("direction of the streams, default `up`; probes go in both directions"),
    setting::BLOCK,
    Setting::free("engine"),
    Setting::free("congestion"),
    Setting::within("size", Range::bytes(setting::DATAGRAM_LEAST, setting::PROBE_MOST))
        .described_by(|| format!("bytes of a probe, default {PROBE}")),
    // Every probe is stored: 10 k/s for 100 s are the most that a trial keeps. Below 10 /s an outage is not seen.
    Setting::within("request_rate", Range::per_second(10, 10_000))
        .described_by(|| {
            format!(
                "rate of the probes in each direction, default {PROBE_RATE}; a trial has at most {PROBES_MAX} of them in a direction"
            )
        }),
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
            // A changed run file may have any number.
            counters: streams.saturating_add(1),
            bulk: streams,
            accounted: streams,
            ..Sockets::default()
        },
        // A ring or a pipe for each.
        descriptors: Descriptors { fixed: u64::from(streams) * 2, shared: (0, 0) },
        // The streams and the probes.
        threads: Threads::Bulk(streams.saturating_add(1)),
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
        probes: Some(settings.rate),
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

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> Failover {
    let settings = given.settings;
    let engine = settings.engine.unwrap_or_default();
    Failover {
        streams: settings.streams.unwrap_or(1),
        direction: settings.direction.unwrap_or_default(),
        block: settings.block.unwrap_or(engine.default_block()),
        engine,
        congestion: settings.congestion.clone(),
        size: settings.size.unwrap_or(PROBE),
        rate: settings.request_rate.unwrap_or(PROBE_RATE),
        events: settings.events.iter().flatten().filter_map(event).collect(),
    }
}

fn event(spec: &EventSpec) -> Option<PathEvent> {
    Some(PathEvent {
        at: spec.at?,
        kind: spec.kind?,
        on: spec.on.unwrap_or(Side::Client),
        interface: spec.interface.clone(),
        command: spec.command.clone().unwrap_or_default(),
        undo: spec.undo.clone().unwrap_or_default(),
    })
}

/// Notes missing events, and those that come at a wrong time or in a wrong order.
pub(super) fn check(
    failover: &Failover,
    given: &Given<'_>,
    places: &Places<'_>,
    problems: &mut Problems<'_>,
) {
    let path = places.at("events");
    let Some(written) = given.settings.events.as_ref().filter(|written| !written.is_empty()) else {
        let allowed = "write at least one, for example events = [{ at = \"2 s\", do = \"remove\" }, { at = \"4 s\", do = \"return\" }]";
        return problems.add(&path, "has no event, and a failover is about one", allowed);
    };
    if written.len() != failover.events.len() {
        return;
    }
    let duration = given.duration;
    let probes = u128::from(duration.0) * u128::from(failover.rate.0) / 1_000_000_000;
    if probes > u128::from(PROBES_MAX) {
        let wrong = format!("is \"{duration}\", in which {probes} probes are sent each way");
        let allowed =
            format!("every one is kept, and {PROBES_MAX} is the most: lower `request_rate` or `duration`");
        problems.add(&places.at("duration"), wrong, allowed);
    }
    check_times(failover, duration, &path, problems);
    check_order(&failover.events, &path, problems);
}

fn check_times(failover: &Failover, duration: Nanos, path: &str, problems: &mut Problems<'_>) {
    let mut last: Option<Nanos> = None;
    let pace = Nanos(1_000_000_000 / failover.rate.0.max(1));
    let room = Nanos(pace.0.saturating_mul(PROBES_AFTER));
    for (index, event) in failover.events.iter().enumerate() {
        let path = key_path(&element_path(path, index), "at");
        if event.at >= duration {
            let wrong = format!("is \"{}\", and the traffic is over after \"{duration}\"", event.at);
            problems.add(&path, wrong, "an event is earlier than the end of `duration`");
        } else if duration.0 - event.at.0 < room.0 {
            let wrong = format!("is \"{}\", and fewer than {PROBES_AFTER} probes come after it", event.at);
            let allowed = format!(
                "probes go every {pace}: leave {room} before the end of `duration`, or raise `request_rate`"
            );
            problems.add(&path, wrong, allowed);
        } else if event.at.0 == 0 {
            problems.add(
                &path,
                "is 0, so there is nothing before it",
                "leave time before it, for example \"1 s\"",
            );
        } else if let Some(last) = last.filter(|last| event.at <= *last) {
            let wrong = format!("is \"{}\", not later than the event before at \"{last}\"", event.at);
            problems.add(&path, wrong, "write events in the order of time");
        }
        last = last.max(Some(event.at));
    }
}

/// Notes what is removed or restored twice.
fn check_order(events: &[PathEvent], path: &str, problems: &mut Problems<'_>) {
    use PathEventKind::{AddNic, Return};
    for side in [Side::Client, Side::Server] {
        let (mut taken, mut added) = (false, false);
        for (index, event) in events.iter().enumerate() {
            if event.on != side && event.on != Side::Both {
                continue;
            }
            let wrong = match event.kind {
                kind if kind.takes() && taken => Some("changes a path that is changed already"),
                Return if !taken => Some("restores a path that was not changed"),
                AddNic if added => Some("adds a second interface that is there already"),
                PathEventKind::RemoveNic if !added => Some("removes a second interface that was not added"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                let path = key_path(&element_path(path, index), "do");
                let wrong = format!("is \"{}\", which {wrong}", event.kind);
                let allowed = "each event that changes the path is followed by \"return\", and \"add-nic\" by \"remove-nic\", before the next of its kind";
                problems.add(&path, wrong, allowed);
            }
            taken = event.kind.takes() || (taken && event.kind != Return);
            added = event.kind == AddNic || (added && event.kind != PathEventKind::RemoveNic);
        }
    }
}

/// What repeats it by hand, beside its events: the probes, and the streams where it has some.
pub(super) fn by_hand(settings: &Failover, timing: &Timing) -> ByHand {
    let Failover { streams, direction, block, engine, ref congestion, size, rate, events: _ } = *settings;
    let bits = size.0.saturating_mul(8);
    let probes = UdpStream {
        flows: 1,
        direction: Direction::Both,
        size,
        rate: Some(BitRate(rate.0.saturating_mul(bits))),
        offload: UdpOffload::None,
        tuning: FlowTuning::default(),
    };
    let mut parts = vec![Part {
        title: format!(
            "the probes, {rate} each way, in one terminal: the number lost, divided by the rate, is about the outage"
        ),
        delay: Nanos(0),
        test: udp_stream::quick_test(&probes, timing.duration),
    }];
    if streams > 0 {
        let congestion = congestion.clone();
        let tuning = StreamTuning::default();
        let load = TcpStream { streams, direction, block, engine, congestion, rate: None, tuning };
        parts.push(Part {
            title: "the streams, at the same time in another terminal".to_owned(),
            delay: Nanos(0),
            test: tcp_stream::quick_test(&load, timing.duration),
        });
    }
    ByHand::Parts(parts)
}

/// The settings for people.
pub(super) fn words(settings: &Failover) -> Vec<String> {
    let Failover { streams, direction, engine, congestion, size, rate, events, block: _ } = settings;
    let mut words = vec![format!("probes of {size} at {rate} each way")];
    if *streams > 0 {
        words.push(format!("{} {}", plural(*streams, "TCP stream"), direction.words()));
        words.push(engine.words().to_owned());
        words.extend(congestion.iter().cloned());
    }
    words.push(events.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    words
}
