//! The settings and events of a failover in words.
use netduel_model::failover::{PathEvent, PathEventKind};
use netduel_model::plan::spec::Side;
use netduel_model::workload::Failover;

use super::run::{engine_words, plural, way};
use super::text::plain;

/// The workload as it was set, in parts.
pub(super) fn settings(failover: &Failover) -> Vec<String> {
    let mut parts = vec![format!("probes of {} at {} each way", failover.size, failover.rate)];
    if failover.streams > 0 {
        parts.push(format!("{} {}", plural(failover.streams, "TCP stream"), way(failover.direction)));
        parts.push(engine_words(failover.engine).to_owned());
        parts.extend(failover.congestion.iter().cloned());
    }
    parts.push(failover.events.iter().map(event).collect::<Vec<_>>().join(", "));
    parts
}

/// An event in words, for example `remove at 1 s (client)`.
pub fn event(event: &PathEvent) -> String {
    let on = match event.on {
        Side::Client => "client",
        Side::Server => "server",
        Side::Both => "both",
    };
    let interface = event.interface.as_ref().map(|name| format!(" {}", plain(name))).unwrap_or_default();
    format!("{} at {} ({on}{interface})", event.kind, event.at)
}

/// What an event is.
pub fn meaning(kind: PathEventKind) -> &'static str {
    match kind {
        PathEventKind::Remove => "the virtual function is deleted while it carries traffic",
        PathEventKind::Graceful => "traffic is moved first, then the virtual function is deleted",
        PathEventKind::Carrier => "the far end of the virtual function loses its carrier",
        PathEventKind::Down => "the host sets the interface down",
        PathEventKind::Return => "what was taken is given back",
        PathEventKind::AddNic => "a second network interface is plugged in",
        PathEventKind::RemoveNic => "the second network interface is taken away",
    }
}

/// How outages are counted.
pub(super) fn rule() -> String {
    "The longest time between two arrivals of probes that began with an event, less their pace, and less what the sender was late in \
     between by its own schedule, so that a late sender is no outage. Told to the pace of the probes and the receiver's wake-up: what \
     is seen without an event stands beside it. Lost is sent less received, to the probe. Recovery is the time until 50 ms of the \
     streams give 90 % of what they gave before, or of what the path then gives when that is less, and no 10 ms less than half of that."
        .to_owned()
}

/// A time of the axis, without digits that it does not need.
pub fn seconds(value: f64) -> String {
    format!("{} s", (value * 100.0).round() / 100.0)
}
