//! Events on a path while the traffic of `failover` runs, and the records of both ends and of the lab about them.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recorded::IntervalSample;
use crate::shell;
use crate::units::{Nanos, PerSecond};
use crate::word::word;
use crate::workload::terms::Side;

/// Interval of the series of a failover's streams, nanoseconds: ten times as fine as that of other workloads.
pub const FINE_INTERVAL_NS: u64 = 10_000_000;

/// Probes per second of each direction where the plan sets no rate: an outage is known to a millisecond, for 0.5 Mbit/s.
pub const PROBE_RATE: PerSecond = PerSecond(1000);

/// Probes of one direction of a trial at most: all of them are kept.
pub const PROBES_MAX: u64 = 1_000_000;

/// How long an agent waits at most for an interface that it removes or restores, nanoseconds: a NIC negotiates its link for some
/// seconds. The coordinator waits for the agent by this.
pub const RETURN_DEADLINE_NS: u64 = 20_000_000_000;

/// Something that is done to a path at a time of the trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathEvent {
    /// When, after the start of the traffic.
    pub at: Nanos,
    /// The event.
    pub kind: PathEventKind,
    /// To whose interface.
    pub on: Side,
    /// The interface, on a host that is not a guest of the lab; a guest's is the lab's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The program of the kind `command`, with its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The program that undoes it, with its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
}

/// What can be done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathEventKind {
    /// The virtual function is deleted while it carries traffic.
    Remove,
    /// Traffic is moved to the synthetic path, and then the virtual function is deleted. In the lab only.
    Graceful,
    /// The far end of the virtual function loses its carrier. In the lab only.
    Carrier,
    /// The host sets its interface down.
    Down,
    /// The removed path is restored, and traffic is moved to it.
    Return,
    /// A second network interface is plugged into the host. In the lab only.
    AddNic,
    /// The second network interface is removed. In the lab only.
    RemoveNic,
    /// A program of the plan changes the path, or asks another program to. Not in the lab.
    Command,
}

impl PathEventKind {
    /// Whether it takes the accelerated path away. A command may.
    pub fn takes(self) -> bool {
        matches!(self, Self::Remove | Self::Graceful | Self::Carrier | Self::Down | Self::Command)
    }

    /// The word in a plan.
    pub fn key(self) -> &'static str {
        word(&self)
    }
}

/// For people: `remove at 1 s (client)`, ``command `az network nic update` at 1 s (client eth0)``.
impl fmt::Display for PathEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = word(&self.on);
        let interface = self.interface.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let command = if self.command.is_empty() {
            String::new()
        } else {
            format!(" `{}`", shell::line(&self.command))
        };
        write!(f, "{}{command} at {} ({on}{interface})", self.kind, self.at)
    }
}

impl fmt::Display for PathEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// What one end of a failover recorded: the probes that it received, one by one, and a fine series of bulk data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FailoverReport {
    /// The start of this end, nanoseconds of its host's monotonic clock: hosts on one machine share it.
    pub started_ns: u64,
    /// Probes that this end handed to its kernel.
    pub probes_sent: u64,
    /// Probes that arrived here, in the order of their arrival, duplicates with them.
    pub arrivals: ProbeArrivals,
    /// Bulk data received here, about 10 ms apart; empty when this end receives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<IntervalSample>,
    /// What this end did to its own interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<PathEventRecord>,
}

/// Arrivals in columns of differences: most are small, so ten thousand arrivals are some 150 kB. All columns are equally long.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProbeArrivals {
    /// Sequence number, less the one before and 1; the first less 0. 0 where nothing is lost, duplicated or reordered.
    pub skips: Vec<i64>,
    /// Time of arrival after the one before, nanoseconds; the first after the start of this end.
    pub gaps_ns: Vec<i64>,
    /// Time of arrival on this host's clock, less the time of sending on the sender's, nanoseconds. One-way delay where both share
    /// a clock; with an unknown constant otherwise.
    pub delays_ns: Vec<i64>,
}

/// One arrival of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeArrival {
    /// Sequence number, from 0.
    pub number: u64,
    /// When it arrived, nanoseconds after the receiver's start.
    pub arrived_ns: i64,
    /// Time of arrival on the receiver's clock, less that of sending on the sender's, nanoseconds.
    pub delay_ns: i64,
}

impl ProbeArrivals {
    /// The columns of arrivals.
    pub fn of(arrivals: impl IntoIterator<Item = ProbeArrival>) -> Self {
        let mut columns = Self::default();
        let (mut next, mut last_ns) = (0_i64, 0_i64);
        for arrival in arrivals {
            let number = arrival.number.cast_signed();
            columns.skips.push(number.wrapping_sub(next));
            columns.gaps_ns.push(arrival.arrived_ns.wrapping_sub(last_ns));
            columns.delays_ns.push(arrival.delay_ns);
            (next, last_ns) = (number.wrapping_add(1), arrival.arrived_ns);
        }
        columns
    }

    /// The arrivals, as far as all columns reach.
    pub fn iter(&self) -> impl Iterator<Item = ProbeArrival> + '_ {
        let (mut next, mut last_ns) = (0_i64, 0_i64);
        self.skips.iter().zip(&self.gaps_ns).zip(&self.delays_ns).map(move |((skip, gap), delay)| {
            let number = next.wrapping_add(*skip);
            last_ns = last_ns.wrapping_add(*gap);
            next = number.wrapping_add(1);
            ProbeArrival { number: number.cast_unsigned(), arrived_ns: last_ns, delay_ns: *delay }
        })
    }

    /// Arrivals, duplicates with them.
    pub fn len(&self) -> usize {
        self.skips.len().min(self.gaps_ns.len()).min(self.delays_ns.len())
    }

    /// Whether nothing arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An event as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathEventRecord {
    /// Its place in the plan's list, from 0.
    pub index: u32,
    /// What was done.
    pub kind: PathEventKind,
    /// To whose interface.
    pub on: Side,
    /// Before the first call to the kernel, nanoseconds of the monotonic clock of the machine that did it.
    pub began_ns: u64,
    /// After the last one.
    pub ended_ns: u64,
    /// Bytes by interface of the guests just before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<LinkBytes>,
    /// And just after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<LinkBytes>,
    /// Why it could not be done; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an interface had carried at a moment, since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkBytes {
    /// The guest, `a` or `b`.
    pub guest: String,
    /// The interface.
    pub interface: String,
    /// Bytes received and sent.
    pub bytes: u64,
}

/// What the lab did to the path of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LabEvents {
    /// Bytes by interface when the traffic began.
    pub start: Vec<LinkBytes>,
    /// The events in the order in which they were made, those that failed with them.
    pub events: Vec<PathEventRecord>,
    /// Bytes by interface when the traffic was over, before the path was restored.
    pub end: Vec<LinkBytes>,
}

/// The smallest share of the bytes between two events that must have gone through the interface that the events leave in use. The
/// rest is room for packets in flight when a counter was read.
pub const MOVED_SHARE_MIN: f64 = 0.9;

impl LabEvents {
    /// Where the bytes of a guest went between the events. `side` is its end of the trial, `expected` the interface that it uses
    /// while nothing is taken from it, `fallback` the one that it is left with.
    pub fn moves(&self, guest: &str, side: Side, expected: &str, fallback: &str) -> Vec<Move> {
        let mut moves = Vec::new();
        let (mut from, mut taken) = (&self.start, false);
        let ends = self.events.iter().map(|event| (&event.before, Some(event)));
        for (to, event) in ends.chain([(&self.end, None)]) {
            let interface = if taken { fallback } else { expected };
            moves.push(Move::between(guest, interface, from, to));
            let Some(event) = event else { break };
            from = &event.after;
            if event.error.is_none() && (event.on == side || event.on == Side::Both) {
                taken = event.kind.takes() || (taken && event.kind != PathEventKind::Return);
            }
        }
        moves
    }
}

/// The bytes of a guest between two events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The interface that ought to have carried them.
    pub interface: String,
    /// What it carried.
    pub through: u64,
    /// What all of them carried.
    pub total: u64,
}

impl Move {
    fn between(guest: &str, interface: &str, from: &[LinkBytes], to: &[LinkBytes]) -> Self {
        let of_guest = |link: &&LinkBytes| link.guest == guest;
        let (mut through, mut total) = (0_u64, 0_u64);
        for link in to.iter().filter(of_guest) {
            let before = from.iter().filter(of_guest).find(|other| other.interface == link.interface);
            // Less than before: it is a new interface of the same name.
            let bytes = match before {
                Some(before) if before.bytes <= link.bytes => link.bytes - before.bytes,
                _ => link.bytes,
            };
            total = total.saturating_add(bytes);
            if link.interface == interface {
                through = through.saturating_add(bytes);
            }
        }
        Self { interface: interface.to_owned(), through, total }
    }

    /// Why the bytes did not go where the events left them; `None` when they did, or there were none.
    pub fn failure(&self) -> Option<String> {
        let share = self.through as f64 / self.total as f64;
        (self.total > 0 && share < MOVED_SHARE_MIN).then(|| {
            format!(
                "{:.1} % of {} B went through {}, {:.0} % are needed",
                // Rounded down, so that it never looks like enough.
                (share * 1000.0).floor() / 10.0,
                self.total,
                self.interface,
                MOVED_SHARE_MIN * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn even_arrivals_are_small_numbers() {
        let arrival =
            |number| ProbeArrival { number, arrived_ns: 1_000 * (number.cast_signed() + 1), delay_ns: 20 };
        let columns = ProbeArrivals::of([0, 1, 2, 4, 4].map(arrival));
        assert_eq!(columns.skips, [0, 0, 0, 1, -1]);
        assert_eq!(columns.gaps_ns, [1_000, 1_000, 1_000, 2_000, 0]);
        assert_eq!(columns.iter().map(|arrival| arrival.number).collect::<Vec<_>>(), [0, 1, 2, 4, 4]);
    }

    fn bytes(vf: Option<u64>, synthetic: u64) -> Vec<LinkBytes> {
        let link =
            |interface: &str, bytes| LinkBytes { guest: "a".into(), interface: interface.into(), bytes };
        vf.map(|bytes| link("vf0", bytes)).into_iter().chain([link("syn0", synthetic)]).collect()
    }

    fn event(kind: PathEventKind, before: Vec<LinkBytes>, after: Vec<LinkBytes>) -> PathEventRecord {
        PathEventRecord {
            index: 0,
            kind,
            on: Side::Client,
            began_ns: 0,
            ended_ns: 0,
            before,
            after,
            error: None,
        }
    }

    #[test]
    fn bytes_are_followed_from_the_function_to_the_synthetic_path_and_back() {
        let mut events = LabEvents {
            start: bytes(Some(100), 5),
            events: vec![
                event(PathEventKind::Remove, bytes(Some(1_100), 6), bytes(None, 10)),
                event(PathEventKind::Return, bytes(None, 510), bytes(Some(3), 600)),
            ],
            end: bytes(Some(903), 610),
        };
        let moves = events.moves("a", Side::Client, "vf0", "syn0");
        let seen: Vec<_> = moves.iter().map(|one| (one.interface.as_str(), one.through, one.total)).collect();
        assert_eq!(seen, [("vf0", 1_000, 1_001), ("syn0", 500, 500), ("vf0", 900, 910)]);
        assert!(moves.iter().all(|one| one.failure().is_none()));
        // The other end's interface was not taken, so nothing of it is expected on the synthetic path.
        assert_eq!(events.moves("a", Side::Server, "vf0", "syn0")[1].interface, "vf0");
        // A changed run file may have any number.
        events.end = bytes(Some(u64::MAX), u64::MAX);
        assert_eq!(events.moves("a", Side::Client, "vf0", "syn0")[2].total, u64::MAX);
        // Bytes that never came back are no proof.
        events.end = bytes(Some(3), 9_000);
        let failure = events.moves("a", Side::Client, "vf0", "syn0")[2].failure().unwrap();
        assert!(failure.contains("0.0 % of 8400 B went through vf0"), "{failure}");
    }

    proptest! {
        #[test]
        fn columns_give_the_arrivals_back(raw in proptest::collection::vec((any::<u32>(), any::<i32>(), any::<i64>()), 0..50)) {
            let arrivals: Vec<ProbeArrival> = raw
                .into_iter()
                .map(|(number, arrived, delay_ns)| ProbeArrival { number: u64::from(number), arrived_ns: i64::from(arrived), delay_ns })
                .collect();
            prop_assert_eq!(ProbeArrivals::of(arrivals.clone()).iter().collect::<Vec<_>>(), arrivals);
        }
    }
}
