//! Estimates the offset of a server's clock to the client's over a trial, with its error, from exchanges of messages only.
//!
//! Each exchange bounds the offset: the server cannot receive before the client sent, nor the client before the server sent. The
//! estimate is a line through the middle of the exchanges with the least delay (the clock filter of RFC 5905 section 10), because
//! over a trial two clocks drift at a constant rate. Every line that no exchange contradicts could be the true offset: the error
//! is the distance to the farthest of them, about half of the least delay. No exchange can show how that delay is divided between
//! the two directions.

/// Minimum number of exchanges.
pub const EXCHANGES_MIN: usize = 10;
/// Maximum number of parts of the trial; the exchanges with the least delay of each count.
const PARTS_MOST: usize = 32;
/// Minimum number of exchanges in each part.
const PART_EXCHANGES_MIN: usize = 4;
/// Maximum relative drift, as a fraction: a kernel slews by at most 500 ppm (adjtimex(2)), and an oscillator that is off by
/// another 500 ppm is faulty.
const DRIFT_MAX: f64 = 1e-3;
/// Tolerance for rounding of sums, nanoseconds.
const ROUNDING_NS: f64 = 1e-3;

/// A request and its response, with the times of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Send time of the client, nanoseconds of its clock. Exchanges are in this order.
    pub at_ns: u64,
    /// Receive time of the server minus send time of the client, nanoseconds: one-way delay plus offset.
    pub up_ns: i64,
    /// Receive time of the client minus send time of the server, nanoseconds: one-way delay minus offset.
    pub down_ns: i64,
}

/// The offset of the server's clock to the client's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockOffset {
    from_ns: u64,
    /// Subtracted from all offsets before conversion to floating point: clocks that count from the boot of a machine may be years
    /// apart.
    shift_ns: i64,
    at_from: f64,
    per_ns: f64,
    error_ns: u64,
}

impl ClockOffset {
    /// Two programs with one clock: no offset and no error. Absent when an exchange contradicts that.
    pub fn of_one_clock(exchanges: &[Exchange]) -> Option<Self> {
        let same = exchanges.iter().all(|exchange| exchange.up_ns >= 0 && exchange.down_ns >= 0);
        (same && !exchanges.is_empty()).then_some(Self {
            from_ns: 0,
            shift_ns: 0,
            at_from: 0.0,
            per_ns: 0.0,
            error_ns: 0,
        })
    }

    /// The estimate from the exchanges; absent with fewer than [`EXCHANGES_MIN`].
    pub fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let (first, last) = (exchanges.first()?, exchanges.last()?);
        if exchanges.len() < EXCHANGES_MIN {
            return None;
        }
        let shift_ns = middle(first);
        let span = last.at_ns.saturating_sub(first.at_ns) as f64;
        let parts: Vec<Part> = (0..parts_of(exchanges.len()))
            .filter_map(|index| {
                Part::of(&exchanges[part_range(exchanges.len(), index)], first.at_ns, shift_ns)
            })
            .collect();
        let (at_from, per_ns) = line(&parts, span);
        let mut offset = Self { from_ns: first.at_ns, shift_ns, at_from, per_ns, error_ns: 0 };
        // Clocks that were slewed during the trial may contradict every line. All bounds are then widened by the deviation of the
        // estimate.
        let missed = exchanges.iter().map(|exchange| offset.misses(exchange)).fold(0.0, f64::max);
        offset.error_ns = farthest(&parts, span, missed, (at_from, at_from + per_ns * span)).ceil() as u64;
        Some(offset)
    }

    /// The offset at the client's time `at_ns`, nanoseconds.
    pub fn at(&self, at_ns: u64) -> i64 {
        let since = if at_ns >= self.from_ns {
            (at_ns - self.from_ns) as f64
        } else {
            -((self.from_ns - at_ns) as f64)
        };
        self.shift_ns.saturating_add((self.at_from + self.per_ns * since).round() as i64)
    }

    /// Maximum error of [`Self::at`] in either direction, nanoseconds.
    pub fn error_ns(&self) -> u64 {
        self.error_ns
    }

    /// Drift of the server's clock against the client's, parts per billion.
    pub fn drift_ppb(&self) -> f64 {
        self.per_ns * 1e9
    }

    /// Distance of the line from the bounds of an exchange, nanoseconds.
    fn misses(&self, exchange: &Exchange) -> f64 {
        let offset = self.at(exchange.at_ns);
        let above = i128::from(offset) - i128::from(exchange.up_ns);
        let below = -i128::from(exchange.down_ns) - i128::from(offset);
        above.max(below).max(0) as f64
    }
}

/// The middle of the bounds of an exchange.
fn middle(exchange: &Exchange) -> i64 {
    ((i128::from(exchange.up_ns) - i128::from(exchange.down_ns)) / 2) as i64
}

fn parts_of(count: usize) -> usize {
    (count / PART_EXCHANGES_MIN).clamp(1, PARTS_MOST)
}

fn part_range(count: usize, index: usize) -> std::ops::Range<usize> {
    let parts = parts_of(count);
    count * index / parts..count * (index + 1) / parts
}

/// A value at a time, both relative.
#[derive(Debug, Clone, Copy)]
struct Point {
    after_ns: f64,
    value: f64,
}

/// The bounds from one part of the trial.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The middle and the delay of the exchange with the least delay.
    middle: Point,
    delay: f64,
    /// Upper bound of the offset.
    upper: Point,
    /// Lower bound of the offset.
    lower: Point,
}

impl Part {
    fn of(exchanges: &[Exchange], from_ns: u64, shift_ns: i64) -> Option<Self> {
        let delay =
            |exchange: &Exchange| (i128::from(exchange.up_ns) + i128::from(exchange.down_ns)).max(1) as f64;
        let point = |exchange: &Exchange, value: i128| Point {
            after_ns: exchange.at_ns.saturating_sub(from_ns) as f64,
            value: (value - i128::from(shift_ns)) as f64,
        };
        let tightest = exchanges.iter().min_by(|a, b| delay(a).total_cmp(&delay(b)))?;
        let up = exchanges.iter().min_by_key(|exchange| exchange.up_ns)?;
        let down = exchanges.iter().min_by_key(|exchange| exchange.down_ns)?;
        Some(Self {
            middle: point(tightest, i128::from(middle(tightest))),
            delay: delay(tightest),
            upper: point(up, i128::from(up.up_ns)),
            lower: point(down, -i128::from(down.down_ns)),
        })
    }
}

/// The least-squares line through the middles, weighted by their certainty: value at the start, and slope.
fn line(parts: &[Part], span: f64) -> (f64, f64) {
    let weighted = |of: &dyn Fn(&Part) -> f64| {
        parts.iter().map(|part| of(part) / (part.delay * part.delay)).sum::<f64>()
    };
    let total = weighted(&|_| 1.0);
    let (time, value) =
        (weighted(&|part| part.middle.after_ns) / total, weighted(&|part| part.middle.value) / total);
    let spread = weighted(&|part| (part.middle.after_ns - time).powi(2));
    let common = weighted(&|part| (part.middle.after_ns - time) * (part.middle.value - value));
    let slope = if spread > 0.0 && span > 0.0 { (common / spread).clamp(-DRIFT_MAX, DRIFT_MAX) } else { 0.0 };
    (value - slope * time, slope)
}

/// `start * at the start + end * at the end <= most`.
#[derive(Debug, Clone, Copy)]
struct Bound {
    start: f64,
    end: f64,
    most: f64,
}

/// Distance of the farthest line that no part contradicts from the estimate, at the start or at the end, where it is largest.
/// Each bound is widened by `missed`. A line is its values at both ends, so all possible lines are a polygon; the farthest is at
/// a corner.
fn farthest(parts: &[Part], span: f64, missed: f64, (start, end): (f64, f64)) -> f64 {
    let mut bounds = Vec::with_capacity(parts.len() * 2 + 2);
    let slack = missed + ROUNDING_NS;
    for part in parts {
        for (point, sign) in [(part.upper, 1.0), (part.lower, -1.0)] {
            let share = if span > 0.0 { point.after_ns / span } else { 0.0 };
            let most = sign * point.value + slack;
            bounds.push(Bound { start: sign * (1.0 - share), end: sign * share, most });
        }
    }
    let apart = DRIFT_MAX * span + ROUNDING_NS;
    bounds.push(Bound { start: 1.0, end: -1.0, most: apart });
    bounds.push(Bound { start: -1.0, end: 1.0, most: apart });
    let holds = |x: f64, y: f64| {
        bounds.iter().all(|bound| {
            let scale = 1.0 + bound.most.abs();
            bound.start * x + bound.end * y <= bound.most + ROUNDING_NS + scale * 1e-9
        })
    };
    let mut farthest = missed;
    for (index, one) in bounds.iter().enumerate() {
        for other in &bounds[index + 1..] {
            let determinant = one.start * other.end - one.end * other.start;
            if determinant.abs() < 1e-12 {
                continue;
            }
            let x = (one.most * other.end - one.end * other.most) / determinant;
            let y = (one.start * other.most - one.most * other.start) / determinant;
            if holds(x, y) {
                farthest = farthest.max((x - start).abs()).max((y - end).abs());
            }
        }
    }
    farthest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP_NS: u64 = 1_000_000;

    /// Exchanges one millisecond apart, with this offset and drift and the given one-way delays.
    fn exchanges(offset: i64, drift: f64, ways: &[(i64, i64)]) -> Vec<Exchange> {
        let at = |index: usize| 5_000_000_000 + index as u64 * STEP_NS;
        ways.iter()
            .enumerate()
            .map(|(index, (there, back))| {
                let true_offset = truth(offset, drift, index);
                Exchange { at_ns: at(index), up_ns: there + true_offset, down_ns: back - true_offset }
            })
            .collect()
    }

    fn truth(offset: i64, drift: f64, index: usize) -> i64 {
        offset + (drift * (index as u64 * STEP_NS) as f64).round() as i64
    }

    #[test]
    fn symmetric_delay_gives_offset_and_drift_within_half_the_delay() {
        let ways = vec![(10_000, 10_000); 1000];
        let all = exchanges(-77_000_000_000_000, 3e-6, &ways);
        let offset = ClockOffset::estimate(&all).unwrap();
        assert!((offset.drift_ppb() - 3000.0).abs() < 1.0, "{offset:?}");
        for (index, exchange) in all.iter().enumerate() {
            let wrong = offset.at(exchange.at_ns) - truth(-77_000_000_000_000, 3e-6, index);
            assert!(wrong.abs() <= 1, "{wrong}");
        }
        // Every line between two parallels 20 us apart is possible, and the crossing ones are a little farther at the ends.
        assert!((10_000..=11_500).contains(&offset.error_ns()), "{offset:?}");
    }

    #[test]
    fn asymmetric_delay_stays_within_the_error() {
        let all = exchanges(1_000, 0.0, &vec![(15_000, 1_000); 100]);
        let offset = ClockOffset::estimate(&all).unwrap();
        let wrong = (offset.at(all[50].at_ns) - 1_000).unsigned_abs();
        assert_eq!(wrong, 7_000);
        assert!((8_000..9_000).contains(&offset.error_ns()), "{offset:?}");
    }

    #[test]
    fn slewed_clocks_widen_the_error() {
        let mut all = exchanges(0, 0.0, &vec![(2_000, 2_000); 400]);
        for exchange in &mut all[200..] {
            (exchange.up_ns, exchange.down_ns) = (exchange.up_ns + 50_000, exchange.down_ns - 50_000);
        }
        let offset = ClockOffset::estimate(&all).unwrap();
        for (index, exchange) in all.iter().enumerate() {
            let wrong = offset.at(exchange.at_ns).abs_diff(if index < 200 { 0 } else { 50_000 });
            assert!(wrong <= offset.error_ns() + 2_000, "{wrong} {offset:?}");
        }
    }

    #[test]
    fn shared_clock_is_rejected_if_an_exchange_contradicts_it() {
        let mut all = exchanges(0, 0.0, &[(2_000, 3_000); 20]);
        let one = ClockOffset::of_one_clock(&all).unwrap();
        assert_eq!((one.at(123), one.error_ns()), (0, 0));
        all[7].down_ns = -1;
        assert_eq!(ClockOffset::of_one_clock(&all), None);
        assert_eq!(ClockOffset::of_one_clock(&[]), None);
    }

    #[test]
    fn few_exchanges_yield_no_estimate_and_simultaneous_ones_no_drift() {
        let all = exchanges(5, 0.0, &[(1_000, 1_000); EXCHANGES_MIN]);
        assert_eq!(ClockOffset::estimate(&all[1..]), None);
        let mut same = all;
        for exchange in &mut same {
            exchange.at_ns = 9;
        }
        let offset = ClockOffset::estimate(&same).unwrap();
        assert_eq!((offset.at(9), offset.error_ns()), (5, 1_001));
    }

    proptest! {
        #[test]
        fn the_truth_is_never_farther_than_the_error(
            offset in -1_000_000_000_000_000i64..1_000_000_000_000_000,
            drift in -1e-4..1e-4,
            ways in proptest::collection::vec((100i64..200_000, 100i64..2_000_000), EXCHANGES_MIN..300),
        ) {
            let all = exchanges(offset, drift, &ways);
            let estimate = ClockOffset::estimate(&all).unwrap();
            for (index, exchange) in all.iter().enumerate() {
                let wrong = estimate.at(exchange.at_ns).abs_diff(truth(offset, drift, index));
                prop_assert!(wrong <= estimate.error_ns() + 1, "{} {:?}", wrong, estimate);
            }
        }
    }
}
