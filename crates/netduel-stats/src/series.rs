//! Functions of series within a trial: steady window and jitter.
//!
//! No clock: times are arguments. [`Jitter::update`] runs in the hot loop of receivers.

/// Amount moved by a series of intervals within a window, and the time covered: `(amount, length in seconds)`.
///
/// A sample is the end of an interval in nanoseconds, its length in nanoseconds, and the amount moved in it. An interval that
/// crosses an edge of the window counts in proportion, as if the amount had been moved evenly; with intervals of 100 ms and a
/// window of a second, the error is at most the variation within one interval. The length is the time that the intervals cover
/// within the window, so a series that ends early does not look slower. The intervals must not overlap. An interval of length 0
/// counts when its end is after `from_ns` and not after `to_ns`. Absent when the series covers no time of the window.
pub fn steady_window(samples: &[(u64, u64, u64)], from_ns: u64, to_ns: u64) -> Option<(f64, f64)> {
    let (from, to) = (i128::from(from_ns), i128::from(to_ns));
    let mut amount_inside = 0.0;
    let mut covered_ns = 0_i128;
    for &(end_ns, length_ns, amount) in samples {
        let (end, length) = (i128::from(end_ns), i128::from(length_ns));
        if length == 0 {
            amount_inside += if from < end && end <= to { amount as f64 } else { 0.0 };
            continue;
        }
        let overlap = end.min(to) - (end - length).max(from);
        if overlap > 0 {
            covered_ns += overlap;
            amount_inside += amount as f64 * (overlap as f64 / length as f64);
        }
    }
    (covered_ns > 0).then(|| (amount_inside, covered_ns as f64 / 1e9))
}

/// The running estimate of interarrival jitter of [RFC 3550, section 6.4.1](https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1):
/// J += (|D| - J) / 16, where D is how much the transit time changed from one packet to the next in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jitter {
    previous_ns: Option<i64>,
    estimate_ns: Option<f64>,
}

impl Jitter {
    /// Adds the next packet: arrival minus sending time in nanoseconds. The two clocks may have an offset, but no drift.
    #[inline]
    pub fn update(&mut self, transit_ns: i64) {
        if let Some(previous) = self.previous_ns {
            let change = transit_ns.abs_diff(previous) as f64;
            let before = self.estimate_ns.unwrap_or(0.0);
            self.estimate_ns = Some(before + (change - before) / 16.0);
        }
        self.previous_ns = Some(transit_ns);
    }

    /// The current estimate, nanoseconds; absent before the second packet.
    #[inline]
    pub fn nanoseconds(&self) -> Option<f64> {
        self.estimate_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn intervals_at_the_window_edge_count_in_proportion() {
        let series = [(SECOND, SECOND, 100), (2 * SECOND, SECOND, 200), (3 * SECOND, SECOND, 400)];
        for (from, to, expected) in [
            (0, 3 * SECOND, Some((700.0, 3.0))),
            (SECOND, 2 * SECOND, Some((200.0, 1.0))),
            (SECOND / 2, 2 * SECOND + SECOND / 4, Some((50.0 + 200.0 + 100.0, 1.75))),
            (2 * SECOND, 9 * SECOND, Some((400.0, 1.0))),
            (3 * SECOND, 4 * SECOND, None),
            (2 * SECOND, 2 * SECOND, None),
            (2 * SECOND, SECOND, None),
        ] {
            assert_eq!(steady_window(&series, from, to), expected, "from {from} to {to}");
        }
        assert_eq!(steady_window(&[], 0, SECOND), None);
    }

    #[test]
    fn interval_without_length_adds_amount_but_no_time() {
        let series = [(SECOND, SECOND, 100), (SECOND, 0, 7)];
        assert_eq!(steady_window(&series, 0, SECOND), Some((107.0, 1.0)));
        assert_eq!(steady_window(&series[1..], 0, SECOND), None);
    }

    #[test]
    fn jitter_follows_the_recurrence_of_the_rfc_by_hand() {
        let mut jitter = Jitter::default();
        jitter.update(1_000);
        assert_eq!(jitter.nanoseconds(), None);
        jitter.update(1_160);
        assert_eq!(jitter.nanoseconds(), Some(10.0));
        jitter.update(1_000);
        assert_eq!(jitter.nanoseconds(), Some(10.0 + (160.0 - 10.0) / 16.0));
        jitter.update(1_000);
        assert_eq!(jitter.nanoseconds(), Some(19.375 - 19.375 / 16.0));
        let mut extremes = Jitter::default();
        extremes.update(i64::MIN);
        extremes.update(i64::MAX);
        assert_eq!(extremes.nanoseconds(), Some(u64::MAX as f64 / 16.0));
    }

    proptest! {
        #[test]
        fn windows_that_meet_hold_together_what_the_whole_holds(
            intervals in proptest::collection::vec((1_u64..1_000, 0_u64..1_000_000), 1..30),
            cut in 0.0..1.0_f64,
        ) {
            let mut end = 0;
            let series: Vec<_> = intervals.iter().map(|&(length, amount)| { end += length; (end, length, amount) }).collect();
            let cut = (cut * end as f64) as u64;
            let (amount, seconds) = steady_window(&series, 0, end).unwrap();
            let left = steady_window(&series, 0, cut).unwrap_or((0.0, 0.0));
            let right = steady_window(&series, cut, end).unwrap_or((0.0, 0.0));
            prop_assert!((left.0 + right.0 - amount).abs() <= 1e-9 * amount.max(1.0));
            prop_assert!((left.1 + right.1 - seconds).abs() <= 1e-12);
        }

        #[test]
        fn jitter_lies_between_nothing_and_the_largest_change(transits in proptest::collection::vec(-1_000_000_i64..1_000_000, 2..100)) {
            let mut jitter = Jitter::default();
            for &transit in &transits {
                jitter.update(transit);
            }
            let largest = transits.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap();
            prop_assert!((0.0..=largest as f64).contains(&jitter.nanoseconds().unwrap()));
        }
    }
}
