//! A known delay: the measured round trips lie within the bounds that the delaying hop records.
//!
//! For round trip i the hop records the time between request and response: `inside`. The client's round trip is longer by the
//! client's part: from its clock to the hop and from the hop back to its clock. The hop also knows an upper bound of that part:
//! the time between a response and the next request, `before` and `after`.
//!
//!     inside[i]  <=  read[i]  <=  before[i] + inside[i] + after[i]
//!
//! So each order statistic of the measured values, and each percentile, lies between those of the two bounds, on a busy machine
//! as on a quiet one; on a busy one the bounds are only further apart. One round trip's `after` is the next one's `before` and
//! contains a part of either, so the sum has a tighter bound: all `inside` plus each gap once.
//!
//! A request that timed out has bounds but no measured value. Without k of the values, the order statistic of a rank lies between
//! those of the same rank and of the rank k higher.
use netduel_model::sample::RoundTripReport;
use netduel_stats::histogram::Histogram;

use super::bed::{skipped_without_root, turn};
use super::hop::{Direction, Hop, Passed};
use crate::support::Bench;

/// Bytes of a request and of its response; no greeting or marker has this length.
const SIZE: usize = 200;
/// Timeout of a request over UDP or ICMP, nanoseconds.
pub const GIVEN_UP_NS: u64 = 500_000_000;
/// A histogram has three significant digits, and reports the upper end of a bucket.
const DIGITS: f64 = 1.001;

#[test]
fn measured_delay_lies_within_the_bounds_of_the_hop() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    // They sleep most of the time, so they run concurrently.
    std::thread::scope(|scope| {
        for traffic in ["udp-rr", "icmp-rr", "tcp-rr"] {
            for hold_ms in [1, 5, 20] {
                scope.spawn(move || check(traffic, hold_ms));
            }
        }
    });
}

fn check(traffic: &str, hold_ms: u64) {
    let bench = Bench::new();
    let (hosts, hop) = Hop::between_hosts(hold_ms * 1_000_000);
    let workload = format!(
        "[[workloads]]\nname = \"held\"\ntype = \"{traffic}\"\nsize = \"{SIZE} B\"\nduration = \"1 s\"\nwarmup = \"0 ms\"\n\
         cooldown = \"0 ms\""
    );
    let run = hosts.run(&bench, &workload, 2);
    let passed = hop.finish();
    let mut rest = passed.as_slice();
    for trial in &run.trials {
        let report = trial.client.as_ref().unwrap().report.round_trips.as_ref().unwrap();
        let what = format!("{traffic}, each frame held for {hold_ms} ms");
        assert_eq!(report.responses + report.timeouts, report.requests, "{what}");
        let (bounds, next) = bounds(rest, report.requests as usize);
        rest = &rest[next..];
        // A request times out when the machine stalls for so long; the hop must have recorded that.
        let slow = bounds.iter().filter(|trip| trip.most() >= GIVEN_UP_NS).count();
        assert!(
            slow as u64 >= report.timeouts,
            "{what}: {} timeouts, {slow} slow round trips",
            report.timeouts
        );
        judge(&what, report, &bounds);
    }
    bench.assert_nothing_left();
}

/// The hop's record of one round trip, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    before: u64,
    inside: u64,
    after: u64,
}

impl Bounds {
    fn most(&self) -> u64 {
        self.before + self.inside + self.after
    }
}

/// The bounds of the next `count` round trips, and the number of frames up to their end.
fn bounds(passed: &[Passed], count: usize) -> (Vec<Bounds>, usize) {
    let is = |way| move |frame: &Passed| frame.way == way && frame.payload == Some(SIZE);
    let trips: Vec<(usize, usize)> = {
        let all = |way| {
            let wanted = is(way);
            let found = passed.iter().enumerate().filter(move |(_, frame)| wanted(frame));
            found.map(|(index, _)| index).take(count).collect::<Vec<_>>()
        };
        all(Direction::ToServer).into_iter().zip(all(Direction::ToClient)).collect()
    };
    assert_eq!(trips.len(), count, "the hop saw every round trip that was reported");
    // The client got a frame for its connection before the first request; it closes the connection after the last response.
    let greeted = passed[..trips[0].0].iter().rfind(|frame| frame.way == Direction::ToClient).unwrap();
    let last = trips[count - 1].1;
    let ends =
        |frame: &&Passed| frame.way == Direction::ToServer && (frame.is_fin || frame.payload == Some(16));
    let ended = passed[last..].iter().find(ends).unwrap();
    // Since when the client may have sent the request.
    let mut free_ns = greeted.went_ns;
    let bounds = trips.iter().enumerate().map(|(index, (request, response))| {
        let (request, response) = (passed[*request], passed[*response]);
        let next = trips.get(index + 1).map_or(ended.came_ns, |(next, _)| passed[*next].came_ns);
        let before = request.came_ns.saturating_sub(free_ns);
        // A response after the timeout of its request crosses the next request.
        free_ns = response.went_ns.min(free_ns + GIVEN_UP_NS);
        let went = response.went_ns;
        Bounds { before, inside: went - request.came_ns, after: next.saturating_sub(went) }
    });
    (bounds.collect(), last + 1)
}

fn judge(what: &str, report: &RoundTripReport, bounds: &[Bounds]) {
    let record = &report.histogram;
    let read: Vec<u64> =
        record.pairs.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count as usize)).collect();
    let sorted = |value: fn(&Bounds) -> u64| {
        let mut values: Vec<u64> = bounds.iter().map(value).collect();
        values.sort_unstable();
        values
    };
    let timeouts = report.timeouts as usize;
    let (low, high) = (sorted(|trip| trip.inside), sorted(Bounds::most).split_off(timeouts));
    assert_eq!(read.len() + timeouts, low.len(), "{what}: every answered request is in the histogram");
    for ((read, low), high) in read.iter().zip(&low).zip(&high) {
        assert!(
            read >= low && *read as f64 <= *high as f64 * DIGITS,
            "{what}: {read} is not in {low} to {high}"
        );
    }
    let histogram = Histogram::from_record(record).unwrap();
    let ms = |ns: u64| ns as f64 / 1e6;
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("max", 100.0)] {
        // The nearest rank, as in the histogram.
        let rank = ((percent / 100.0 * read.len() as f64).ceil() as usize).max(1) - 1;
        let read = if name == "max" { record.max } else { histogram.percentile(percent).unwrap() };
        println!(
            "{what}: {name} of {} round trips: read {:.3} ms, the hop says {:.3} to {:.3}",
            low.len() - timeouts,
            ms(read),
            ms(low[rank]),
            ms(high[rank])
        );
        assert!(read >= low[rank] && read as f64 <= high[rank] as f64 * DIGITS, "{what}: {name}");
    }
    let sum: f64 = record.pairs.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
    let inside: u64 = low[..low.len() - timeouts].iter().sum();
    let all: u64 =
        bounds.iter().map(|trip| trip.before + trip.inside).sum::<u64>() + bounds.last().unwrap().after;
    assert!(sum >= inside as f64 && sum <= all as f64 * DIGITS, "{what}: the sum");
}
