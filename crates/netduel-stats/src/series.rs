//! Functions of series within a trial: steady window, its intervals, and jitter.
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
    let mut window = Part::default();
    parts(samples, from_ns, to_ns).for_each(|part| window.join(part));
    (window.inside_ns > 0).then(|| (window.amount, window.inside_ns as f64 / 1e9))
}

/// Amount per second of each interval of a window, for samples as those of [`steady_window`]. An interval that crosses an edge of the
/// window counts with its own rate. One shorter than `least_ns` is joined with the next, the last with the one before it: its rate would
/// depend on when the sampler woke. The intervals are all of the window that the series covers, so the mean of the window lies between
/// the smallest and the largest of these rates. Empty when the series covers no time of the window.
pub fn interval_rates(samples: &[(u64, u64, u64)], from_ns: u64, to_ns: u64, least_ns: u64) -> Vec<f64> {
    let (mut intervals, mut open) = (Vec::<Part>::new(), Part::default());
    for part in parts(samples, from_ns, to_ns) {
        open.join(part);
        if open.inside_ns > 0 && open.length_ns >= least_ns {
            intervals.push(std::mem::take(&mut open));
        }
    }
    match intervals.last_mut() {
        Some(last) => last.join(open),
        None => intervals.push(open),
    }
    let rate = |part: &Part| (part.inside_ns > 0).then(|| part.amount * 1e9 / part.inside_ns as f64);
    intervals.iter().filter_map(rate).collect()
}

/// The part of one or several samples that is within a window.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Length of the samples, also outside of the window.
    length_ns: u64,
    /// Time within the window.
    inside_ns: i128,
    /// Amount of that time.
    amount: f64,
}

impl Part {
    fn join(&mut self, next: Self) {
        self.length_ns = self.length_ns.saturating_add(next.length_ns);
        self.inside_ns += next.inside_ns;
        self.amount += next.amount;
    }
}

/// The samples that are within a window in whole or in part.
fn parts(samples: &[(u64, u64, u64)], from_ns: u64, to_ns: u64) -> impl Iterator<Item = Part> {
    let (from, to) = (i128::from(from_ns), i128::from(to_ns));
    samples.iter().filter_map(move |&(end_ns, length_ns, amount)| {
        let (end, length) = (i128::from(end_ns), i128::from(length_ns));
        if length == 0 {
            let is_inside = from < end && end <= to;
            return is_inside.then_some(Part { amount: amount as f64, ..Part::default() });
        }
        let inside_ns = end.min(to) - (end - length).max(from);
        let amount = amount as f64 * (inside_ns as f64 / length as f64);
        (inside_ns > 0).then_some(Part { length_ns, inside_ns, amount })
    })
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

    /// A sampler that was not scheduled makes one long interval, which ends beyond the window, and a short one after it.
    #[test]
    fn interval_of_a_stall_counts_with_its_own_rate_and_a_short_one_with_its_neighbour() {
        let series = [(100, 100, 1_000), (200, 100, 2_000), (1_000, 800, 800), (1_005, 5, 5)];
        let rates = |from, to| interval_rates(&series, from, to, 50);
        assert_eq!(rates(0, 1_100), [10e9, 20e9, 1e9]);
        assert_eq!(rates(0, 600), [10e9, 20e9, 1e9], "its rate is the same in a part of it");
        assert_eq!(rates(150, 200), [20e9]);
        assert_eq!(rates(1_000, 1_100), [1e9], "nothing is beside the short one");
        assert!(rates(1_005, 1_100).is_empty());
        let late = [(60, 60, 60), (90, 30, 90), (100, 10, 90), (100, 0, 20), (200, 100, 100)];
        assert_eq!(interval_rates(&late, 0, 200, 50), [1e9, 300.0 * 1e9 / 140.0]);
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
        fn mean_of_a_window_lies_between_the_extremes_of_its_intervals(
            intervals in proptest::collection::vec((0_u64..300, 0_u64..1_000_000), 0..30),
            from in 0_u64..4_000,
            to in 0_u64..6_000,
            least in 0_u64..200,
        ) {
            let mut end = 0;
            let series: Vec<_> = intervals.iter().map(|&(length, amount)| { end += length; (end, length, amount) }).collect();
            let rates = interval_rates(&series, from, to, least);
            let Some((amount, seconds)) = steady_window(&series, from, to) else {
                prop_assert!(rates.is_empty());
                return Ok(());
            };
            let mean = amount / seconds;
            let (low, high) = rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
            prop_assert!(low <= mean * (1.0 + 1e-9) && mean <= high * (1.0 + 1e-9), "{low} {mean} {high}");
        }

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
