//! The events of a failover in words.
use netduel_model::failover::{PathEvent, PathEventKind};

use super::text::plain;

/// An event in words, for example `remove at 1 s (client)`.
pub fn event(event: &PathEvent) -> String {
    plain(&event.to_string())
}

/// An event without its host, for example `remove at 1 s`.
pub fn moment(event: &PathEvent) -> String {
    format!("{} at {}", event.kind, event.at)
}

/// The directions of the figures of an event, in their order.
pub(crate) const DIRECTIONS: [&str; 2] = ["to server", "to client"];

/// The kind of an event.
pub fn meaning(kind: PathEventKind) -> &'static str {
    match kind {
        PathEventKind::Remove => "surprise removal: the virtual function is deleted while it carries traffic",
        PathEventKind::Graceful => {
            "graceful removal: traffic is moved first, then the virtual function is deleted"
        }
        PathEventKind::Carrier => "carrier loss: the far end of the virtual function loses its carrier",
        PathEventKind::Down => "the host sets the interface down",
        PathEventKind::Return => "the removed path is restored",
        PathEventKind::AddNic => "a second network interface is added",
        PathEventKind::RemoveNic => "the second network interface is removed",
        PathEventKind::Command => "a command of the plan changes the path",
    }
}

/// Which values of a trial with several events get a verdict.
pub(crate) const JUDGED: &str = "Verdicts compare, of each trial, the longest outage and the longest recovery over all events and both \
    directions, and all lost probes.";

/// How outages are counted.
pub(super) fn rule() -> String {
    "Outage: the longest gap between two arriving probes that begins with an event, minus the probe interval and minus the time by which \
     the sender was behind its own schedule. Its resolution is the probe interval plus the wake-up time of the receiver; the no-event \
     baseline is the same figure without an event. Lost: probes sent minus probes received. Recovery: the time until the streams reach, \
     over 50 ms, 90 % of their rate before the event (or of the steady state after it, if that is lower), with no 10 ms below half of it, \
     and no outage of 50 ms begins later, up to 0.5 s after the end of the event. Steady state: the second half of the time from the end \
     of the event to the next one. "
        .to_owned()
        + JUDGED
}

/// A time on the axis, without trailing zeros.
pub fn seconds(value: f64) -> String {
    format!("{} s", (value * 100.0).round() / 100.0)
}
