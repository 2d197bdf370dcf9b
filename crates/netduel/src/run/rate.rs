//! The rate of a running trial, from the figures that an agent sends while traffic runs. Pure.
use netduel_model::sample::LiveFigures;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::Facts;
use netduel_report::words;

/// A live rate is over at least so many seconds: half of the interval between the figures of an agent.
const LIVE_MIN_S: f64 = 0.25;
/// No live rate begins in this last share of a trial.
const LIVE_REST_SHARE: f64 = 0.1;

/// The rates of a trial, one after the other.
#[derive(Debug, Clone, Default)]
pub struct LiveRate {
    previous: LiveFigures,
    /// Payload of a packet, bytes, for packet workloads.
    packet_bytes: Option<u64>,
    /// Whether its rate is that of round trips, also while none is completed.
    has_round_trips: bool,
    /// Duration of the trial, nanoseconds.
    duration_ns: u64,
}

/// A rate with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Packets per second.
    Packets(f64),
    /// Requests, transactions or datagrams per second.
    Messages(f64),
    /// Bits per second.
    Bits(f64),
}

impl Rate {
    /// The rate with its unit.
    pub fn words(self) -> String {
        match self {
            Self::Packets(rate) => words::packet_rate(rate),
            Self::Messages(rate) => human_si(rate, "/s"),
            Self::Bits(rate) => human_bit_rate(rate),
        }
    }

    /// The number per second.
    pub fn per_second(self) -> f64 {
        let (Self::Packets(rate) | Self::Messages(rate) | Self::Bits(rate)) = self;
        rate
    }
}

impl LiveRate {
    /// For a trial of this duration, nanoseconds, of a workload with these facts.
    pub fn new(facts: Option<&Facts<'_>>, duration_ns: u64) -> Self {
        Self {
            previous: LiveFigures::default(),
            packet_bytes: facts.and_then(Facts::packet_bytes),
            has_round_trips: facts.is_some_and(|facts| facts.has_round_trips),
            duration_ns,
        }
    }

    /// Begins anew, with another step of a search.
    pub fn restart(&mut self) {
        self.previous = LiveFigures::default();
    }

    /// The rate since the last figures; absent where it would be none of the path. What comes at the end of a trial is of a short time, or
    /// of a time in which buffers drain. A trial of round trips has no bit rate, also while no response arrives.
    pub fn next(&mut self, figures: LiveFigures) -> Option<Rate> {
        let seconds = figures.elapsed_ns.saturating_sub(self.previous.elapsed_ns) as f64 / 1e9;
        let is_rest = seconds < LIVE_MIN_S
            || self.previous.elapsed_ns as f64 > self.duration_ns as f64 * (1.0 - LIVE_REST_SHARE);
        if is_rest {
            return None;
        }
        let bytes = |figures: &LiveFigures| figures.received_bytes.max(figures.sent_bytes);
        let rate = bytes(&figures).saturating_sub(bytes(&self.previous)) as f64 / seconds;
        let messages = figures.messages.saturating_sub(self.previous.messages) as f64 / seconds;
        self.previous = figures;
        Some(if let Some(packet) = self.packet_bytes {
            Rate::Packets(rate / packet as f64)
        } else if messages > 0.0 || self.has_round_trips {
            Rate::Messages(messages)
        } else {
            Rate::Bits(rate * 8.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(elapsed_ms: u64, bytes: u64, messages: u64) -> LiveFigures {
        LiveFigures {
            elapsed_ns: elapsed_ms * 1_000_000,
            received_bytes: bytes,
            messages,
            ..LiveFigures::default()
        }
    }

    fn of_two_seconds() -> LiveRate {
        LiveRate { duration_ns: 2_000_000_000, ..LiveRate::default() }
    }

    #[test]
    fn rate_is_that_since_the_last_figures() {
        let mut rate = of_two_seconds();
        assert_eq!(rate.next(figures(500, 500, 0)), Some(Rate::Bits(8000.0)));
        assert_eq!(rate.next(figures(600, 10_000, 0)), None, "too short a time");
        assert_eq!(rate.next(figures(1000, 1000, 0)), Some(Rate::Bits(8000.0)));
        assert_eq!(rate.next(figures(1900, 1900, 90)), Some(Rate::Messages(100.0)));
        assert_eq!(rate.next(figures(2400, 9000, 900)), None, "buffers drain");
        rate.restart();
        assert_eq!(rate.next(figures(500, 500, 0)), Some(Rate::Bits(8000.0)));
        let mut packets = LiveRate { packet_bytes: Some(64), ..of_two_seconds() };
        assert_eq!(packets.next(figures(500, 640, 10)), Some(Rate::Packets(20.0)));
    }

    #[test]
    fn trial_of_round_trips_has_no_bit_rate() {
        let facts = Facts { has_round_trips: true, ..Facts::default() };
        let mut rate = LiveRate::new(Some(&facts), 2_000_000_000);
        // Requests were sent, and no response has arrived.
        let silent = rate.next(figures(500, 640, 0)).expect("a rate");
        assert_eq!((silent, silent.words()), (Rate::Messages(0.0), "0 /s".to_owned()));
        assert_eq!(rate.next(figures(1000, 1280, 10)), Some(Rate::Messages(20.0)));
        let silent_stream = of_two_seconds().next(figures(500, 0, 0));
        assert_eq!(silent_stream, Some(Rate::Bits(0.0)));
    }
}
