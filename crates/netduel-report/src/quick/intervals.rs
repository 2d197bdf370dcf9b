//! Intervals of a running test, from the figures that both ends send.
use netduel_model::sample::{LiveFigures, LiveRoundTrips};
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::{Direction, Role, Traffic, Wire};

/// The rest of a test is merged into the last interval when it is shorter than this share of an interval. An interval that ends so
/// close to the end of the test waits for the rest.
const REST_SHARE_MIN: f64 = 0.5;
/// No rate is shown over less than this share of an interval.
pub(super) const INTERVAL_SHARE_MIN: f64 = 0.1;
/// An interval of which this share came after the end of the test began at that end: the end that reports wakes a little early or late.
const DRAIN_SHARE_MIN: f64 = 0.9;
/// Intervals that a line of TCP streams waits at most for the sender's figures.
const WAIT_MAX: f64 = 1.5;

/// One interval of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its start, seconds after the test's.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Payload bytes received, sum of both directions.
    pub bytes: u64,
    /// The parts of a bidirectional test: payload bytes that the server and the client received.
    pub by_direction: Option<[u64; 2]>,
    /// Datagrams received, or round trips completed.
    pub messages: u64,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Congestion window of the senders' connections together at the end, bytes.
    pub cwnd_bytes: Option<u64>,
    /// Lost datagrams. A reordered one counts as lost in its interval and reduces the count of a later interval.
    pub lost: Option<u64>,
    /// Interarrival jitter at the end, nanoseconds: the larger of both directions. Absent for datagrams with one send time.
    pub jitter_ns: Option<u64>,
    /// Round trips.
    pub round_trips: Option<LiveRoundTrips>,
    /// Whether the test was over when the interval began: what was received then was in buffers and on the path.
    pub is_drain: bool,
}

/// Builds intervals from the figures of the receiver; with bidirectional traffic their times are the client's.
#[derive(Debug)]
pub struct Intervals {
    receivers: &'static [Role],
    /// Whether a line shows figures of the sender, too.
    has_sender_figures: bool,
    /// Whether the jitter means something: that of datagrams with one send time is their spacing.
    has_jitter: bool,
    length_s: f64,
    /// When the test is to end, seconds after its start.
    end_s: f64,
    /// The last interval, until it is known what comes after it.
    held: Option<Interval>,
    /// The figures at the end of the last interval, by role.
    last: [LiveFigures; 2],
    /// The latest figures, by role.
    newest: [LiveFigures; 2],
    /// Round trips since the last interval.
    round_trips: Option<LiveRoundTrips>,
}

impl Intervals {
    /// For a test with this traffic for `end_s` seconds; intervals are at least `length_s` seconds long.
    pub fn new(traffic: &Traffic, length_s: f64, end_s: f64) -> Self {
        let facts = traffic.facts();
        let receivers: &'static [Role] = match facts.bulk.filter(|_| facts.is_stream()) {
            Some(Direction::Up) => &[Role::Server],
            Some(Direction::Both) => &[Role::Client, Role::Server],
            Some(Direction::Down) | None => &[Role::Client],
        };
        let none = [LiveFigures::default(); 2];
        Self {
            receivers,
            has_sender_figures: facts.is_stream() && facts.wire == Wire::Segments,
            has_jitter: !facts.has_shared_send_times(),
            length_s,
            end_s,
            held: None,
            last: none,
            newest: none,
            round_trips: None,
        }
    }

    /// Adds the figures of an end; returns the interval that they complete. The last one comes with [`Self::finish`].
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
        // The end that reports is a thread that may wake late by a little, never early. With traffic both ways the line waits for
        // both, or it would lack what the other received; a line of TCP streams waits for the sender's retransmits.
        let has_lasted = |role: &Role, intervals: f64| {
            let (newest, last) = (self.newest[*role as usize], self.last[*role as usize]);
            newest.elapsed_ns.saturating_sub(last.elapsed_ns) as f64 / 1e9 >= self.length_s * intervals
        };
        let receivers_have_lasted = |intervals| self.receivers.iter().all(|role| has_lasted(role, intervals));
        let waits = self.has_sender_figures
            && ![Role::Client, Role::Server].iter().all(|role| has_lasted(role, 0.98))
            && !receivers_have_lasted(WAIT_MAX);
        if !receivers_have_lasted(0.98) || waits {
            return None;
        }
        let interval = self.cut();
        if interval.end_s > self.end_s - self.length_s * REST_SHARE_MIN {
            return self.held.replace(interval);
        }
        Some(interval)
    }

    /// The remaining intervals after the test: totals come from the results.
    pub fn finish(&mut self, trial: &Trial) -> Vec<Interval> {
        let rest = self.rest(trial);
        match (self.held.take(), rest) {
            (Some(held), Some(rest)) if rest.end_s - rest.start_s < self.length_s * REST_SHARE_MIN => {
                vec![merged(held, rest)]
            }
            (held, rest) => held.into_iter().chain(rest).collect(),
        }
    }

    fn rest(&mut self, trial: &Trial) -> Option<Interval> {
        let (mut has_late_retransmits, mut has_late_losses) = (false, false);
        for role in [Role::Client, Role::Server] {
            let (Some(end), newest) = (trial.end(role), &mut self.newest[role as usize]) else { return None };
            // The last figures of a running test are older than its end.
            let total = retransmits(end).filter(|_| newest.retransmits.is_some());
            has_late_retransmits |= total > newest.retransmits;
            newest.retransmits = newest.retransmits.max(total);
            // What is lost after the last datagram that arrives is seen in the counts of both ends only.
            let lost = lost(end, trial.end(role.opposite())).filter(|_| newest.lost.is_some());
            has_late_losses |= lost > newest.lost;
            // They were lost until the sender's last datagram.
            let until = if lost > newest.lost { last_sent_ns(trial, role.opposite()) } else { 0 };
            newest.lost = newest.lost.max(lost);
            if let Some(flow) = &end.report.received {
                newest.received_bytes = flow.bytes;
                newest.messages = flow.messages;
                newest.elapsed_ns = newest.elapsed_ns.max(flow.last_ns.unwrap_or(0)).max(until);
            }
            // The time of an end that is done is that of its last data, which may have come before the last line.
            newest.elapsed_ns = newest.elapsed_ns.max(self.last[role as usize].elapsed_ns);
        }
        let first = self.receivers[0] as usize;
        let rest = self.newest[first].elapsed_ns.saturating_sub(self.last[first].elapsed_ns) as f64 / 1e9;
        // The lines add up to the totals, so the last one is printed even if it is short.
        let unprinted = self.receivers.iter().any(|role| {
            let (newest, last) = (self.newest[*role as usize], self.last[*role as usize]);
            newest.received_bytes > last.received_bytes || newest.messages > last.messages
        });
        let has_rest = rest > 0.0 && (unprinted || rest >= self.length_s * INTERVAL_SHARE_MIN);
        (has_rest || has_late_retransmits || has_late_losses).then(|| self.cut())
    }

    fn cut(&mut self) -> Interval {
        let first = self.receivers[0] as usize;
        let (newest, last) = (self.newest, self.last);
        let sum = |field: fn(&LiveFigures) -> u64| -> u64 {
            let of =
                |role: &Role| field(&newest[*role as usize]).saturating_sub(field(&last[*role as usize]));
            self.receivers.iter().map(of).fold(0, u64::saturating_add)
        };
        let received = |role: Role| {
            let field = |all: &[LiveFigures; 2]| all[role as usize].received_bytes;
            field(&newest).saturating_sub(field(&last))
        };
        let senders = |field: fn(&LiveFigures) -> Option<u64>| {
            newest.iter().filter_map(field).reduce(u64::saturating_add)
        };
        let before: u64 = last.iter().filter_map(|figures| figures.retransmits).fold(0, u64::saturating_add);
        let lost_before: u64 = last.iter().filter_map(|figures| figures.lost).fold(0, u64::saturating_add);
        let [start_s, end_s] = [last, newest].map(|figures| figures[first].elapsed_ns as f64 / 1e9);
        let interval = Interval {
            start_s,
            end_s,
            bytes: sum(|figures| figures.received_bytes),
            by_direction: (self.receivers.len() == 2).then(|| [Role::Server, Role::Client].map(received)),
            messages: sum(|figures| figures.messages),
            retransmits: senders(|figures| figures.retransmits).map(|now| now.saturating_sub(before)),
            cwnd_bytes: senders(|figures| figures.cwnd_bytes),
            lost: senders(|figures| figures.lost).map(|now| now.saturating_sub(lost_before)),
            jitter_ns: newest
                .iter()
                .filter_map(|figures| figures.jitter_ns)
                .filter(|_| self.has_jitter)
                .max(),
            round_trips: self.round_trips.take(),
            is_drain: end_s > self.end_s && end_s - self.end_s >= (end_s - start_s) * DRAIN_SHARE_MIN,
        };
        self.last = newest;
        // A late datagram is not lost after all; the lines have counted it.
        for (figures, before) in self.last.iter_mut().zip(last) {
            figures.lost = figures.lost.max(before.lost);
        }
        interval
    }
}

/// When an end sent its last data, nanoseconds after its start.
fn last_sent_ns(trial: &Trial, role: Role) -> u64 {
    let sent = trial.end(role).and_then(|end| end.report.sent.as_ref());
    sent.and_then(|flow| flow.last_ns).unwrap_or(0)
}

/// Datagrams of a receiving end that did not arrive, by the count of the sender.
fn lost(receiver: &TrialEnd, sender: Option<&TrialEnd>) -> Option<u64> {
    let arrived = receiver.report.datagrams.as_ref()?.unique;
    Some(sender?.report.sent.as_ref()?.messages.saturating_sub(arrived))
}

/// Retransmitted segments of a sending end; absent when a connection lacks the counter.
fn retransmits(end: &TrialEnd) -> Option<u64> {
    end.report.sent.as_ref()?;
    let connections = end.report.streams.iter().filter_map(|stream| stream.tcp.as_ref());
    connections.map(|tcp| tcp.retransmits.map(u64::from)).reduce(|a, b| Some(a? + b?)).flatten()
}

/// An interval with the one after it.
fn merged(held: Interval, rest: Interval) -> Interval {
    let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a.saturating_add(b.unwrap_or(0))));
    let round_trips = match (held.round_trips, rest.round_trips) {
        (Some(a), Some(b)) => Some(both(a, b)),
        (a, b) => a.or(b),
    };
    Interval {
        end_s: rest.end_s,
        bytes: held.bytes.saturating_add(rest.bytes),
        by_direction: match (held.by_direction, rest.by_direction) {
            (Some(a), Some(b)) => Some([a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]),
            (a, b) => a.or(b),
        },
        messages: held.messages.saturating_add(rest.messages),
        retransmits: sum(held.retransmits, rest.retransmits),
        cwnd_bytes: rest.cwnd_bytes.or(held.cwnd_bytes),
        lost: sum(held.lost, rest.lost),
        jitter_ns: rest.jitter_ns.or(held.jitter_ns),
        round_trips,
        ..held
    }
}

/// Merges two parts of an interval. An interval has one part unless figures come early; then the percentiles are those of the
/// larger part.
fn both(a: LiveRoundTrips, b: LiveRoundTrips) -> LiveRoundTrips {
    let larger = if a.count > b.count { a } else { b };
    LiveRoundTrips { count: a.count.saturating_add(b.count), max_ns: a.max_ns.max(b.max_ns), ..larger }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures are an agent's: wrong ones must not end the program.
    #[test]
    fn figures_beyond_the_range_of_a_number_are_the_largest() {
        let plan = netduel_model::plan::parse(include_str!("../../../../plans/streams.toml"), "streams.toml");
        let mut traffic = plan.expect("a valid plan").arms[0].workloads[0].traffic.clone();
        if let Traffic::TcpStream(settings) = &mut traffic {
            settings.direction = Direction::Both;
        }
        let mut intervals = Intervals::new(&traffic, 1.0, 10.0);
        let most = u64::MAX;
        let round_trips = LiveRoundTrips { count: most, p50_ns: 1, p99_ns: 1, max_ns: 1 };
        let figures = LiveFigures {
            elapsed_ns: 1_000_000_000,
            sent_bytes: most,
            received_bytes: most,
            messages: most,
            retransmits: Some(most),
            cwnd_bytes: Some(most),
            lost: Some(most),
            round_trips: Some(round_trips),
            ..LiveFigures::default()
        };
        assert!(intervals.take(Role::Client, figures).is_none());
        let interval = intervals.take(Role::Server, figures).expect("a whole interval");
        assert_eq!((interval.bytes, interval.messages, interval.retransmits), (most, most, Some(most)));
        let again = merged(interval, interval);
        assert_eq!((again.bytes, again.lost, again.by_direction), (most, Some(most), Some([most, most])));
    }
}
