//! Median and maximum of the round trips of one interval: small, and emptied in a few microseconds, so that the thread
//! which measures can do it between two round trips. The trial's own figures come from the full histogram instead.
use netduel_model::sample::LiveRoundTrips;

/// Buckets in each power of two.
const STEPS: u64 = LiveRoundTrips::STEPS;
const STEPS_BITS: u32 = STEPS.trailing_zeros();
/// Powers of two beyond the first bucket row: 128 ns x 2^33 are 18 minutes.
const ROWS: usize = 34;

/// Counts of one interval.
#[derive(Debug)]
pub(crate) struct IntervalMedian {
    counts: Vec<u32>,
    count: u64,
    max: u64,
    lowest: usize,
    highest: usize,
}

/// The figures of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    pub count: u64,
    pub median: u64,
    pub max: u64,
}

fn bucket(value: u64) -> usize {
    let row = (64 - (value >> STEPS_BITS).leading_zeros()) as usize;
    let row = row.min(ROWS - 1);
    if row == 0 {
        return value as usize;
    }
    // In row r values have STEPS_BITS + r bits; the upper STEPS_BITS + 1 of them choose the step, the first is always set.
    let step = (value >> (row - 1)).min(2 * STEPS - 1) - STEPS;
    row * STEPS as usize + step as usize
}

fn upper_edge(bucket: usize) -> u64 {
    let (row, step) = (bucket / STEPS as usize, (bucket % STEPS as usize) as u64);
    if row == 0 { step } else { ((STEPS + step + 1) << (row - 1)) - 1 }
}

impl IntervalMedian {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; ROWS * STEPS as usize], count: 0, max: 0, lowest: usize::MAX, highest: 0 }
    }

    /// Counts a value.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        let bucket = bucket(value);
        self.counts[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(value);
        self.lowest = self.lowest.min(bucket);
        self.highest = self.highest.max(bucket);
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for index in other.lowest..=other.highest {
            self.counts[index] += other.counts[index];
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
    }

    /// The percentile of the values; absent without values.
    pub(crate) fn percentile(&self, percent: u64) -> Option<u64> {
        let mut below = 0;
        let enough = |below: u64| below * 100 >= self.count * percent;
        let index = (self.lowest..=self.highest).find(|&index| {
            below += u64::from(self.counts[index]);
            enough(below)
        })?;
        Some(upper_edge(index).min(self.max))
    }

    /// The figures since the last call; absent without values.
    pub(crate) fn take(&mut self) -> Option<Summary> {
        if self.count == 0 {
            return None;
        }
        let mut below = 0;
        let mut median = None;
        for index in self.lowest..=self.highest {
            below += u64::from(std::mem::take(&mut self.counts[index]));
            if median.is_none() && below * 2 >= self.count {
                median = Some(upper_edge(index).min(self.max));
            }
        }
        let summary = Summary { count: self.count, median: median.unwrap_or(self.max), max: self.max };
        (self.count, self.max, self.lowest, self.highest) = (0, 0, usize::MAX, 0);
        Some(summary)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_interval_has_no_median() {
        assert_eq!(IntervalMedian::new().take(), None);
    }

    #[test]
    fn taking_the_summary_empties_it() {
        let mut median = IntervalMedian::new();
        median.record(5);
        assert_eq!(median.take(), Some(Summary { count: 1, median: 5, max: 5 }));
        assert_eq!(median.take(), None);
        median.record(u64::MAX);
        assert_eq!(median.take().map(|summary| summary.max), Some(u64::MAX));
    }

    #[test]
    fn percentiles_of_merged_intervals_are_computed() {
        let mut whole = IntervalMedian::new();
        assert_eq!(whole.percentile(50), None);
        for part in [0..60, 60..100] {
            let mut one = IntervalMedian::new();
            part.for_each(|value| one.record(value));
            whole.add(&one);
        }
        whole.add(&IntervalMedian::new());
        assert_eq!((whole.percentile(50), whole.percentile(99)), (Some(49), Some(98)));
        assert_eq!(whole.take(), Some(Summary { count: 100, median: 49, max: 99 }));
        assert_eq!(whole.percentile(99), None);
    }

    proptest! {
        #[test]
        fn the_median_is_within_a_bucket_of_the_true_one(mut values in prop::collection::vec(0u64..1 << 38, 1..200)) {
            let mut median = IntervalMedian::new();
            for value in &values {
                median.record(*value);
            }
            values.sort_unstable();
            let truth = values[(values.len() - 1) / 2];
            let summary = median.take().unwrap();
            prop_assert_eq!(summary.count, values.len() as u64);
            prop_assert_eq!(summary.max, values[values.len() - 1]);
            prop_assert!(summary.median >= truth, "{} < {truth}", summary.median);
            prop_assert!(summary.median as f64 <= truth as f64 * (1.0 + 1.0 / STEPS as f64) + 1.0);
        }
    }
}
