//! Intervals of a running test, from the figures that both ends send, and their lines.
use netduel_model::sample::{LiveFigures, LiveRoundTrips};
use netduel_model::trial::Trial;
use netduel_model::units::{human_bit_rate, human_nanos, human_si};
use netduel_model::workload::{Direction, Role, Traffic, Wire};

use crate::words;

/// A shorter last interval is merged into the one before it; a share of the interval length.
const LAST_SHARE_MIN: f64 = 0.1;

/// One interval of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its start, seconds after the test's.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Payload bytes received, sum of both directions.
    pub bytes: u64,
    /// Datagrams received, or round trips completed.
    pub messages: u64,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Congestion window of the senders' connections together at the end, bytes.
    pub cwnd_bytes: Option<u64>,
    /// Lost datagrams. A reordered one counts as lost in its interval and reduces the count of a later interval.
    pub lost: Option<u64>,
    /// Interarrival jitter at the end, nanoseconds: the larger of both directions.
    pub jitter_ns: Option<u64>,
    /// Round trips.
    pub round_trips: Option<LiveRoundTrips>,
}

/// Builds intervals from the figures of the receiver; with bidirectional traffic their times are the client's.
#[derive(Debug)]
pub struct Intervals {
    receivers: &'static [Role],
    length_s: f64,
    /// The figures at the end of the last interval, by role.
    last: [LiveFigures; 2],
    /// The latest figures, by role.
    newest: [LiveFigures; 2],
    /// Round trips since the last interval.
    round_trips: Option<LiveRoundTrips>,
}

impl Intervals {
    /// For a test with this traffic; intervals are at least `length_s` seconds long.
    pub fn new(traffic: &Traffic, length_s: f64) -> Self {
        let facts = traffic.facts();
        let receivers: &'static [Role] = match facts.bulk.filter(|_| facts.is_stream()) {
            Some(Direction::Up) => &[Role::Server],
            Some(Direction::Both) => &[Role::Client, Role::Server],
            Some(Direction::Down) | None => &[Role::Client],
        };
        let none = [LiveFigures::default(); 2];
        Self { receivers, length_s, last: none, newest: none, round_trips: None }
    }

    /// Adds the figures of an end; returns the interval that they complete.
    pub fn take(&mut self, role: Role, figures: LiveFigures) -> Option<Interval> {
        let before = self.newest[role as usize];
        self.newest[role as usize] = figures;
        // Figures sent after the connections were closed lack those of connections.
        let newest = &mut self.newest[role as usize];
        newest.retransmits = figures.retransmits.or(before.retransmits);
        newest.cwnd_bytes = figures.cwnd_bytes.or(before.cwnd_bytes);
        self.round_trips = match (self.round_trips, figures.round_trips) {
            (Some(before), Some(now)) => Some(both(before, now)),
            (before, now) => now.or(before),
        };
        // The reporting thread may wake slightly late, never early. With bidirectional traffic the line waits for both ends, so
        // that it has both directions.
        let is_over = |role: &Role| {
            let (newest, last) = (self.newest[*role as usize], self.last[*role as usize]);
            newest.elapsed_ns.saturating_sub(last.elapsed_ns) as f64 / 1e9 >= self.length_s * 0.98
        };
        (self.receivers.contains(&role) && self.receivers.iter().all(is_over)).then(|| self.cut())
    }

    /// The remaining interval after the test: totals come from the results.
    pub fn finish(&mut self, trial: &Trial) -> Option<Interval> {
        for role in [Role::Client, Role::Server] {
            let (Some(end), newest) = (trial.end(role), &mut self.newest[role as usize]) else { return None };
            if let Some(flow) = &end.report.received {
                newest.received_bytes = flow.bytes;
                newest.messages = flow.messages;
                newest.elapsed_ns = newest.elapsed_ns.max(flow.last_ns.unwrap_or(0));
            }
        }
        let first = self.receivers[0] as usize;
        let rest = self.newest[first].elapsed_ns.saturating_sub(self.last[first].elapsed_ns) as f64 / 1e9;
        // The lines add up to the totals, so the last one is printed even if it is short.
        let unprinted = self.receivers.iter().any(|role| {
            let (newest, last) = (self.newest[*role as usize], self.last[*role as usize]);
            newest.received_bytes > last.received_bytes || newest.messages > last.messages
        });
        (rest > 0.0 && (unprinted || rest >= self.length_s * LAST_SHARE_MIN)).then(|| self.cut())
    }

    fn cut(&mut self) -> Interval {
        let first = self.receivers[0] as usize;
        let (newest, last) = (self.newest, self.last);
        let sum = |field: fn(&LiveFigures) -> u64| -> u64 {
            let of =
                |role: &Role| field(&newest[*role as usize]).saturating_sub(field(&last[*role as usize]));
            self.receivers.iter().map(of).sum()
        };
        let senders =
            |field: fn(&LiveFigures) -> Option<u64>| newest.iter().filter_map(field).reduce(|a, b| a + b);
        let before: u64 = last.iter().filter_map(|figures| figures.retransmits).sum();
        let lost_before: u64 = last.iter().filter_map(|figures| figures.lost).sum();
        let interval = Interval {
            start_s: last[first].elapsed_ns as f64 / 1e9,
            end_s: newest[first].elapsed_ns as f64 / 1e9,
            bytes: sum(|figures| figures.received_bytes),
            messages: sum(|figures| figures.messages),
            retransmits: senders(|figures| figures.retransmits).map(|now| now.saturating_sub(before)),
            cwnd_bytes: senders(|figures| figures.cwnd_bytes),
            lost: senders(|figures| figures.lost).map(|now| now.saturating_sub(lost_before)),
            jitter_ns: newest.iter().filter_map(|figures| figures.jitter_ns).max(),
            round_trips: self.round_trips.take(),
        };
        self.last = newest;
        interval
    }
}

/// Merges two parts of an interval. An interval has one part unless figures come early; then the percentiles are those of the
/// larger part.
fn both(a: LiveRoundTrips, b: LiveRoundTrips) -> LiveRoundTrips {
    let larger = if a.count > b.count { a } else { b };
    LiveRoundTrips { count: a.count + b.count, max_ns: a.max_ns.max(b.max_ns), ..larger }
}

/// The heading of the interval lines: measured quantity, time base, and column titles.
pub fn heading(traffic: &Traffic) -> String {
    let facts = traffic.facts();
    let counted = match (facts.bulk.filter(|_| facts.is_stream()), facts.is_of_packets()) {
        (Some(_), true) => "packets received",
        (Some(_), false) => "payload received",
        (None, _) => "round trips completed",
    };
    let rest = match facts.wire {
        Wire::Segments if facts.is_stream() => {
            format!("{:>12}{:>16}{:>13}{:>12}", "transfer", "rate", "retransmits", "cwnd")
        }
        _ if facts.is_datagram_stream() => {
            format!("{:>10}{:>14}{:>12}{:>16}{:>9}", "transfer", "rate", "per second", "lost", "jitter")
        }
        _ => format!("{:>13}{:>13}{:>10}{:>10}{:>10}", "round trips", "per second", "p50", "p99", "max"),
    };
    format!("  per interval: {counted}, warm-up included\n{:<19}{rest}", "  interval")
}

/// The line of an interval.
pub fn line(traffic: &Traffic, interval: &Interval) -> String {
    let seconds = (interval.end_s - interval.start_s).max(f64::MIN_POSITIVE);
    let rate = human_bit_rate(interval.bytes as f64 * 8.0 / seconds);
    let transfer = human_si(interval.bytes as f64, "B");
    let unit = if words::is_of_packets(traffic) { words::PPS } else { "/s" };
    let per_second = human_si(interval.messages as f64 / seconds, unit);
    let known = |value: Option<u64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| "-".to_owned(), |value| show(value as f64))
    };
    let facts = traffic.facts();
    let rest = match facts.wire {
        Wire::Segments if facts.is_stream() => format!(
            "{transfer:>12}{rate:>16}{:>13}{:>12}",
            known(interval.retransmits, &|value| format!("{value:.0}")),
            known(interval.cwnd_bytes, &|value| human_si(value, "B"))
        ),
        _ if facts.is_datagram_stream() => {
            let all = interval.messages + interval.lost.unwrap_or(0);
            let lost = known(interval.lost, &|value| {
                format!("{value:.0} ({:.2} %)", if all > 0 { value * 100.0 / all as f64 } else { 0.0 })
            });
            let jitter = known(interval.jitter_ns, &human_nanos);
            format!("{transfer:>10}{rate:>14}{per_second:>12}{lost:>16}{jitter:>9}")
        }
        _ => {
            let time =
                |field: fn(LiveRoundTrips) -> u64| known(interval.round_trips.map(field), &human_nanos);
            let (p50, p99, max) =
                (time(|trips| trips.p50_ns), time(|trips| trips.p99_ns), time(|trips| trips.max_ns));
            format!("{:>13}{per_second:>13}{p50:>10}{p99:>10}{max:>10}", interval.messages)
        }
    };
    format!("{:>6.2} - {:>6.2} s  {rest}", interval.start_s, interval.end_s)
}
