//! Causes on the path: caps that are known, counted or seen in the course of the rate, windows and buffers, loss.
use netduel_model::observation::Observation;
use netduel_model::units::{human_nanos, human_si};
use netduel_model::workload::{RoundTrip, Wire};
use netduel_stats::doubt;

use super::super::queues::carrier;
use super::super::requests::RequestCount;
use super::Cause;
use super::evidence::{Connections, Evidence, Finding, HELD_UP};
use crate::findings::is_limit;
use crate::words::percent;

/// From this share of lost segments or datagrams on, loss limits the sender.
const LOSSY: f64 = 0.001;
/// From this share of datagrams lost on the path on, the sender exceeds the capacity of the path; from this share of requests without a
/// response on, they are what an open loop lacks.
const DATAGRAMS_LOSSY: f64 = 0.01;
/// A payload rate within these shares of a known limit has reached it: the limit includes headers of 4 % and more.
const AT_LIMIT: std::ops::RangeInclusive<f64> = 0.90..=1.05;
/// A round trip this many times the minimum, and longer by this many microseconds, includes queueing delay.
const QUEUED: (f64, f64) = (2.0, 500.0);
/// A qdisc that delayed packets at least this often enforces a rate.
const HELD_BACK_MIN: u64 = 100;
/// A qdisc that delayed as many packets as this share of those that it sent is the limit, whatever the load of the cores: a delay that
/// bursts alone cause is rarer.
const HELD_BACK_OFTEN: f64 = 0.1;
/// A window below this can be too small for a path; a larger one is full because the receiver does not read in time.
const WINDOW_LARGE: f64 = 512.0 * 1024.0;
/// From this share of the busy time on, a window was never open.
const WINDOW_SHUT: f64 = 0.9;
/// A window this many times the data in flight is not the limit.
const WINDOW_SPARE: f64 = 4.0;
/// With data in flight for this share of the time, a sender always had data to send.
const BUSY_ALL: f64 = 0.9;
/// A congestion window this many times the data in flight is not the limit.
const WINDOW_UNUSED: f64 = 1.5;
/// A buffer with this share of its size in flight is full, because the kernel also counts its own bookkeeping.
const BUFFER_FULL: f64 = 0.3;
/// With data in flight for less than this share of the time, a sender had too little to send.
const BUSY_LITTLE: f64 = 0.7;
/// Intervals merged at most: the mean of many is flat in any case.
const MERGED_MAX: usize = 2;
/// Minimum number of intervals, after merging, to detect a level, and a fall between two levels.
const INTERVALS_OF_LEVEL: usize = 10;
const INTERVALS_OF_FALL: usize = 8;
/// From this share of delayed packets or bytes on, the provider's limit is the bottleneck. Many paths delay bursts of less than a
/// millisecond without being the limit.
const HELD_BACK_SHARE: f64 = 0.001;

impl Connections {
    /// Whether segments wait in a queue on the path.
    fn is_queued(&self) -> bool {
        match (self.rtt_us, self.min_rtt_us) {
            (Some(rtt), Some(least)) => rtt >= least * QUEUED.0 && rtt >= least + QUEUED.1,
            _ => false,
        }
    }

    fn round_trips(&self) -> String {
        match (self.rtt_us, self.min_rtt_us) {
            (Some(rtt), Some(least)) => {
                format!("round trip {}, min {}", human_nanos(rtt * 1e3), human_nanos(least * 1e3))
            }
            _ => "round trip unknown".to_owned(),
        }
    }
}

/// Traffic of the interface that the provider's limit delayed or dropped.
struct HeldBack {
    /// Whether it is enough to be the bottleneck.
    is_cause: bool,
    words: String,
}

fn held_back(observation: &Observation) -> Option<HeldBack> {
    let carrier = carrier(observation)?;
    let counters = observation.driver.get(&carrier.name)?;
    let (mut is_cause, mut words) = (false, Vec::new());
    for (name, change) in counters.iter().filter(|(name, change)| is_limit(name) && **change > 0) {
        let all = if name.ends_with("_bytes") {
            carrier.rx_bytes.saturating_add(carrier.tx_bytes)
        } else {
            carrier.rx_packets.saturating_add(carrier.tx_packets)
        };
        is_cause |= *change as f64 >= all as f64 * HELD_BACK_SHARE;
        words.push(format!("{name} of {} rose by {change}", carrier.name));
    }
    (!words.is_empty()).then(|| HeldBack { is_cause, words: words.join(", ") })
}

impl Evidence<'_> {
    /// A documented cap: a counter of the provider, or a known limit that was reached.
    pub(super) fn known_cap(&self) -> Vec<Finding> {
        let held = self.held_back().filter(|(_, held)| held.is_cause);
        let mut found: Vec<Finding> =
            held.map(|(end, held)| (Cause::RateCap, format!("at the {end} {}", held.words))).collect();
        if let (Some(expected), Some(rate)) = (self.expected, self.rate_bps)
            && AT_LIMIT.contains(&(rate / expected.bps))
        {
            found.push((Cause::RateCap, expected.share_words(rate)));
            return found;
        }
        // Of traffic both ways one direction alone may be at its limit.
        for (sender, limit, rate) in &self.limits_by_sender {
            if AT_LIMIT.contains(&(rate / limit.bps)) {
                let words = format!("of the {}'s data {}", sender.word(), limit.share_words(*rate));
                found.push((Cause::RateCap, words));
            }
        }
        found
    }

    fn held_back(&self) -> impl Iterator<Item = (&'static str, HeldBack)> {
        [self.sender, self.receiver]
            .into_iter()
            .filter_map(|end| Some((end.report.role.word(), held_back(&end.observation)?)))
    }

    /// Packets that the provider's limit delayed, too few to be the cause.
    pub(super) fn little_held_back(&self) -> Vec<String> {
        let little = self.held_back().filter(|(_, held)| !held.is_cause);
        let share = percent(HELD_BACK_SHARE);
        little
            .map(|(end, held)| {
                format!("at the {end} {}: less than {share} of its traffic, so not the cause", held.words)
            })
            .collect()
    }

    /// A qdisc of the sender that enforces a rate most of the time.
    pub(super) fn cap_of_queue(&self) -> Vec<Finding> {
        let often = carrier(&self.sender.observation).is_some_and(|carrier| {
            let held = carrier.qdisc_overlimits.unwrap_or(0);
            held as f64 >= carrier.tx_packets as f64 * HELD_BACK_OFTEN
        });
        if often { self.queue_held_back() } else { Vec::new() }
    }

    /// A qdisc of the sender that enforces a rate.
    pub(super) fn queue_held_back(&self) -> Vec<Finding> {
        let Some(carrier) = carrier(&self.sender.observation) else { return Vec::new() };
        let held = carrier.qdisc_overlimits.filter(|held| *held >= HELD_BACK_MIN);
        let dropped = carrier.qdisc_dropped.filter(|dropped| *dropped > 0);
        let words = held.map(|held| {
            let dropped =
                dropped.map(|dropped| format!(" and dropped {dropped} packets")).unwrap_or_default();
            format!("the qdisc of {} delayed packets {held} times (overlimits){dropped}", carrier.name)
        });
        let fell = self.fall().map(|(cause, fall)| {
            (cause, format!("{fall}{}", words.as_ref().map(|w| format!("; {w}")).unwrap_or_default()))
        });
        match (fell, words) {
            (Some(fell), Some(_)) => vec![fell],
            (_, words) => words.into_iter().map(|words| (Cause::RateCap, words)).collect(),
        }
    }

    /// The rate over time with neighbouring intervals merged, finest first.
    fn courses(&self, least: usize) -> impl Iterator<Item = Vec<f64>> {
        let most = (self.course.len() / least).clamp(1, MERGED_MAX);
        (1..=most).map(|merged| {
            let exact = self.course.chunks_exact(merged);
            exact.map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
        })
    }

    /// A fall from one level to another within the trial.
    fn fall(&self) -> Option<Finding> {
        let fall = self.courses(INTERVALS_OF_FALL).find_map(|course| doubt::burst(&course))?;
        let words = format!(
            "the rate fell from {} to {} within the trial",
            self.human_rate(fall.before),
            self.human_rate(fall.after)
        );
        Some((Cause::TokenBucket, words))
    }

    /// A rate that falls once to a lower level, or stands flat while packets wait or are lost. A flat rate alone may be that of a
    /// window.
    pub(super) fn shape(&self) -> Vec<Finding> {
        let Some(tcp) = &self.tcp else { return Vec::new() };
        let presses = tcp.is_queued() || tcp.lost >= LOSSY;
        // A small window cannot fill a queue: round trips are long because another part is slow.
        let is_small = self.receive_window().is_some_and(|window| window < WINDOW_LARGE);
        let window_closed = tcp.window >= HELD_UP && (is_small || !tcp.is_queued());
        if !self.is_unpaced() || !presses || window_closed {
            return Vec::new();
        }
        let why = format!("{}, {} retransmits", tcp.round_trips(), tcp.retransmits);
        if let Some((cause, words)) = self.fall() {
            return vec![(cause, format!("{words} ({why})"))];
        }
        let level = self.courses(INTERVALS_OF_LEVEL).find_map(|course| doubt::plateau(&course));
        let words = level.map(|level| {
            format!(
                "the rate was flat at {} although the sender had more data ({why})",
                self.human_rate(level)
            )
        });
        words.into_iter().map(|words| (Cause::RateCap, words)).collect()
    }

    /// Whether the traffic has no configured rate.
    fn is_unpaced(&self) -> bool {
        self.workload.traffic.facts().paced.is_none()
    }

    /// Bandwidth-delay product of each connection, bytes: its rate times its minimum round trip.
    fn bandwidth_delay(&self) -> Option<f64> {
        let streams = &self.sender.report.streams;
        let connections = streams.iter().map(|stream| stream.members).fold(0, u32::saturating_add);
        let (rate, rtt) = self.received_bps.zip(self.tcp?.min_rtt_us)?;
        Some(rate / 8.0 * rtt / 1e6 / f64::from(connections.max(1)))
    }

    /// A full send buffer: the connection was always busy, and its data in flight filled the buffer while the congestion window
    /// allowed more. The kernel counts the buffer as the limit only when a write waits at the right moment.
    fn full_buffer(&self) -> Option<String> {
        let (tcp, in_flight) = (self.tcp?, self.bandwidth_delay()?);
        let (window, buffer) = (tcp.congestion_window?, tcp.send_buffer?);
        let held =
            tcp.busy >= BUSY_ALL && in_flight * WINDOW_UNUSED <= window && in_flight >= buffer * BUFFER_FULL;
        held.then(|| {
            format!(
                "{} in flight, the capacity of a send buffer of {}; the congestion window allowed {}",
                human_si(in_flight, "B"),
                human_si(buffer, "B"),
                human_si(window, "B")
            )
        })
    }

    /// Whether the window was small and almost always full, although the receiver had CPU time to read: the kernel does not enlarge the
    /// window of a receiver that reads late.
    pub(super) fn is_shut(&self) -> bool {
        let is_small = self.receive_window().is_some_and(|window| window < WINDOW_LARGE);
        is_small && self.tcp.is_some_and(|tcp| tcp.window >= WINDOW_SHUT) && !self.receiver_is_starved()
    }

    /// The smallest receive window over the connections at the end, bytes.
    fn receive_window(&self) -> Option<f64> {
        let streams = self.receiver.report.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.rcv_wnd);
        streams.min().map(f64::from)
    }

    /// A full window: too small, or full because the receiver's program did not read in time.
    pub(super) fn window(&self) -> Vec<Finding> {
        let Some(tcp) = self.tcp.filter(|tcp| tcp.window >= HELD_UP) else { return Vec::new() };
        let words = format!("the receive window was full {} of the time", percent(tcp.window));
        let window = self.receive_window();
        let in_flight = self.bandwidth_delay();
        let found = match (window, in_flight) {
            (Some(window), Some(in_flight))
                if window >= WINDOW_LARGE && window >= in_flight * WINDOW_SPARE =>
            {
                (
                    Cause::ReceiverProgram,
                    format!(
                        "{words}; the window is {}, the path needs {}: the receiver did not read in time",
                        human_si(window, "B"),
                        human_si(in_flight, "B")
                    ),
                )
            }
            (Some(window), _) => {
                (Cause::ReceiveWindow, format!("{words}; {} at the end", human_si(window, "B")))
            }
            _ => (Cause::ReceiveWindow, words),
        };
        vec![found]
    }

    /// Lost segments: between the hosts, in a full queue, or at an unknown location.
    pub(super) fn segments_lost(&self) -> Vec<Finding> {
        let Some(tcp) = self.tcp.filter(|tcp| tcp.lost >= LOSSY) else { return Vec::new() };
        let words = format!("{} retransmits, {} of all segments", tcp.retransmits, percent(tcp.lost));
        let between = self.lost_between();
        if let Some((bytes, location)) = between.filter(|(bytes, _)| *bytes >= tcp.retransmitted_bytes / 2.0)
        {
            return vec![(Cause::Switch, format!("{location}, {}; {words}", human_si(bytes, "B")))];
        }
        let cause = if tcp.is_queued() { Cause::Congestion } else { Cause::Loss };
        vec![(cause, format!("{words}; {}", tcp.round_trips()))]
    }

    /// Bytes that the sender's interface counted and the receiver's did not.
    fn lost_between(&self) -> Option<(f64, String)> {
        let (from, to) = (carrier(&self.sender.observation)?, carrier(&self.receiver.observation)?);
        let missing = from.tx_bytes.checked_sub(to.rx_bytes).filter(|bytes| *bytes > 0)?;
        let words = format!(
            "{} of the {} sent {} packets and {} of the {} received {}",
            from.name,
            self.sender.report.role.word(),
            from.tx_packets,
            to.name,
            self.receiver.report.role.word(),
            to.rx_packets
        );
        Some((missing as f64, words))
    }

    /// Datagrams lost on the path: at a cap, at the interfaces of the hosts, or between them.
    pub(super) fn datagrams_lost(&self) -> Vec<Finding> {
        let elsewhere = self.lost.all.saturating_sub(self.lost.at_socket);
        if self.sent == 0 || (elsewhere as f64) < self.sent as f64 * DATAGRAMS_LOSSY {
            return Vec::new();
        }
        let between = self.lost.at_interface.saturating_mul(2) < elsewhere;
        let carrier = carrier(&self.receiver.observation);
        let place = match carrier {
            _ if !between => "at an interface or qdisc of the two hosts".to_owned(),
            Some(carrier) if carrier.rx_packets.saturating_add(elsewhere / 2) >= self.sent => format!(
                "behind {} of the {}, which received them: by a firewall or the network stack there",
                carrier.name,
                self.receiver.report.role.word()
            ),
            _ => "on the path".to_owned(),
        };
        let share = percent(elsewhere as f64 / self.sent as f64);
        let words = format!("{elsewhere} of {} {} ({share}) were lost {place}", self.sent, self.noun());
        if let Some((cause, fall)) = self.fall() {
            return vec![(cause, format!("{fall}; {words}"))];
        }
        if let Some(level) = self.courses(INTERVALS_OF_LEVEL).find_map(|course| doubt::plateau(&course)) {
            return vec![(
                Cause::RateCap,
                format!("the received rate was flat at {}; {words}", self.human_rate(level)),
            )];
        }
        if !between {
            return vec![(Cause::HostDrops, words)];
        }
        if let Some((_, between)) = self.lost_between() {
            return vec![(Cause::Switch, format!("{words}; {between}"))];
        }
        vec![(Cause::LostUncounted, words)]
    }

    /// Requests in datagrams without a response: in a closed loop each takes the place of others until its timeout, in an open loop it is missing
    /// from the rate.
    pub(super) fn requests_lost(&self) -> Option<Finding> {
        let count = self.requests.filter(|count| count.lost > 0)?;
        let RequestCount { sent, lost } = count;
        let share = count.share()?;
        let words = format!("{lost} of {sent} requests ({}) had no response", percent(share));
        let Some(outstanding) = self.outstanding else {
            return (share >= DATAGRAMS_LOSSY).then_some((Cause::RequestsLost, words));
        };
        let loop_ns = self.workload.timing.duration.0.max(1) as f64 * f64::from(outstanding.max(1));
        let waited = (lost as f64 * RoundTrip::TIMEOUT.0 as f64 / loop_ns).min(1.0);
        let words = format!(
            "{words} within {}: {} of the time of the closed loop",
            RoundTrip::TIMEOUT,
            percent(waited)
        );
        (waited >= HELD_UP).then_some((Cause::RequestsLost, words))
    }

    /// A send buffer that is too small, or a program without data to send.
    pub(super) fn buffer_and_program(&self) -> Vec<Finding> {
        let Some(tcp) = &self.tcp else { return Vec::new() };
        let mut found = Vec::new();
        if tcp.buffer >= HELD_UP {
            let words = format!("the send buffer was the limit {} of the time", percent(tcp.buffer));
            found.push((Cause::SendBuffer, words));
        } else if let Some(words) = self.full_buffer() {
            found.push((Cause::SendBuffer, words));
        }
        let facts = self.workload.traffic.facts();
        let is_whole = facts.volume().is_none();
        if tcp.busy < BUSY_LITTLE
            && is_whole
            && self.is_unpaced()
            && facts.is_stream()
            && facts.wire == Wire::Segments
        {
            let words = format!(
                "data was in flight {} of the time; for the rest the sender's threads supplied no data",
                percent(tcp.busy)
            );
            found.push((Cause::Application, words));
        }
        found
    }
}
