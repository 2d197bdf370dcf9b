//! Intervals of a test under way, from the figures that both ends send, and their lines.
use netduel_model::sample::LiveFigures;
use netduel_model::trial::Trial;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::{Direction, Role, Traffic};

/// A shorter rest at the end is added to the interval before it, a share of the interval.
const REST_LEAST: f64 = 0.1;

/// One interval of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its start, seconds after the test's.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Payload bytes that receivers took, both ways together.
    pub bytes: u64,
    /// Datagrams received, or round trips completed.
    pub messages: u64,
    /// Segments that senders sent again.
    pub retransmits: Option<u64>,
    /// Congestion window of the senders' connections together at the end, bytes.
    pub cwnd_bytes: Option<u64>,
}

/// Makes intervals of figures. The receiver's count; with traffic both ways the intervals are the client's.
#[derive(Debug)]
pub struct Intervals {
    receivers: &'static [Role],
    length_s: f64,
    /// What the last interval ended with, by role.
    last: [LiveFigures; 2],
    /// The newest figures, by role.
    newest: [LiveFigures; 2],
}

impl Intervals {
    /// For a test that runs this traffic; intervals are at least `length_s` seconds long.
    pub fn new(traffic: &Traffic, length_s: f64) -> Self {
        let receivers: &'static [Role] = match traffic {
            Traffic::TcpStream { direction, .. } | Traffic::UdpStream { direction, .. } => match direction {
                Direction::Up => &[Role::Server],
                Direction::Down => &[Role::Client],
                Direction::Both => &[Role::Client, Role::Server],
            },
            _ => &[Role::Client],
        };
        Self { receivers, length_s, last: [LiveFigures::default(); 2], newest: [LiveFigures::default(); 2] }
    }

    /// Takes the figures of an end; gives the interval that they end.
    pub fn take(&mut self, role: Role, figures: LiveFigures) -> Option<Interval> {
        self.newest[role as usize] = figures;
        let first = self.receivers[0];
        let gone = figures.elapsed_ns.saturating_sub(self.last[first as usize].elapsed_ns) as f64 / 1e9;
        // The end that reports is a thread that may wake late by a little, never early.
        (role == first && gone >= self.length_s * 0.98).then(|| self.cut())
    }

    /// What is left when the test is over: totals come from the results.
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
        (rest >= self.length_s * REST_LEAST).then(|| self.cut())
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
        let interval = Interval {
            start_s: last[first].elapsed_ns as f64 / 1e9,
            end_s: newest[first].elapsed_ns as f64 / 1e9,
            bytes: sum(|figures| figures.received_bytes),
            messages: sum(|figures| figures.messages),
            retransmits: senders(|figures| figures.retransmits).map(|now| now.saturating_sub(before)),
            cwnd_bytes: senders(|figures| figures.cwnd_bytes),
        };
        self.last = newest;
        interval
    }
}

/// The heading over the lines.
pub fn heading(traffic: &Traffic) -> String {
    let rest = match traffic {
        Traffic::TcpStream { .. } => {
            format!("{:>12}{:>16}{:>13}{:>12}", "transfer", "rate", "retransmits", "cwnd")
        }
        Traffic::UdpStream { .. } => {
            format!("{:>12}{:>16}{:>13}{:>14}", "transfer", "rate", "datagrams", "per second")
        }
        _ => format!("{:>13}{:>13}", "round trips", "per second"),
    };
    format!("{:<19}{rest}", "  interval")
}

/// The line of an interval.
pub fn line(traffic: &Traffic, interval: &Interval) -> String {
    let seconds = (interval.end_s - interval.start_s).max(f64::MIN_POSITIVE);
    let rate = human_bit_rate(interval.bytes as f64 * 8.0 / seconds);
    let transfer = human_si(interval.bytes as f64, "B");
    let per_second = human_si(interval.messages as f64 / seconds, "/s");
    let known = |value: Option<u64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| "-".to_owned(), |value| show(value as f64))
    };
    let rest = match traffic {
        Traffic::TcpStream { .. } => format!(
            "{transfer:>12}{rate:>16}{:>13}{:>12}",
            known(interval.retransmits, &|value| format!("{value:.0}")),
            known(interval.cwnd_bytes, &|value| human_si(value, "B"))
        ),
        Traffic::UdpStream { .. } => {
            format!("{transfer:>12}{rate:>16}{:>13}{per_second:>14}", interval.messages)
        }
        _ => format!("{:>13}{per_second:>13}", interval.messages),
    };
    format!("{:>6.2} - {:>6.2} s  {rest}", interval.start_s, interval.end_s)
}
