//! What repeats a workload by hand: quick tests or another program, with the options that are of the workload. Who prints them adds the hosts,
//! the address, and the options that every test has. It knows no type: the file of each type makes its own.
use super::terms::Direction;
use crate::units::{BitRate, Bytes, Nanos, PerSecond};

/// What repeats a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByHand {
    /// A quick test.
    Test(QuickTest),
    /// Quick tests at the same time, each in a terminal of its own.
    Parts(Vec<Part>),
    /// ping(8).
    Ping(Ping),
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// A quick test of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickTest {
    /// The subcommand of `netduel`.
    pub name: &'static str,
    /// Options with their values, as written in a shell.
    pub options: Vec<String>,
}

impl QuickTest {
    /// One that its time ends.
    pub(super) fn timed(name: &'static str, duration: Nanos, options: Vec<String>) -> Self {
        let time = format!("-t {}", seconds(duration));
        Self { name, options: [time].into_iter().chain(options).collect() }
    }
}

/// One of several quick tests at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is, and where it runs.
    pub title: String,
    /// How much later than the first one it begins.
    pub delay: Nanos,
    /// The test.
    pub test: QuickTest,
}

/// ping(8) of iputils.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    /// Options with their values.
    pub options: Vec<String>,
    /// Whether only root gets the pace of the requests.
    pub needs_root: bool,
}

/// The options of a test that has UDP in place of TCP.
pub(super) fn over_udp(options: Vec<String>) -> Vec<String> {
    ["-u".to_owned()].into_iter().chain(options).collect()
}

/// Size and pace of requests.
pub(super) fn of_requests(size: Bytes, outstanding: u32, rate: Option<PerSecond>) -> Vec<String> {
    let mut options = vec![format!("-l {}", size.0)];
    match rate {
        Some(rate) => options.push(format!("--rate {}", rate.0)),
        None if outstanding != 1 => options.push(format!("-P {outstanding}")),
        None => {}
    }
    options
}

/// The direction of a stream.
pub(super) fn way(direction: Direction) -> Option<String> {
    match direction {
        Direction::Up => None,
        Direction::Down => Some("-R".to_owned()),
        Direction::Both => Some("--bidir".to_owned()),
    }
}

/// The rate of each stream, as quick tests and iperf3 have it; a plan has that of all streams together.
pub(super) fn rate(all: Option<BitRate>, streams: u32) -> Option<String> {
    all.map(|rate| format!("-b {}", rate.0 / u64::from(streams.max(1))))
}

/// Seconds where they are whole, else with the unit: `10`, `500ms`.
pub(super) fn seconds(duration: Nanos) -> String {
    const SECOND: u64 = 1_000_000_000;
    if duration.0.is_multiple_of(SECOND) {
        (duration.0 / SECOND).to_string()
    } else {
        duration.to_string().replace(' ', "")
    }
}
