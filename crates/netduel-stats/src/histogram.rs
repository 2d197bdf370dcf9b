//! A histogram with high dynamic range: every sample, three significant digits, merged without loss.
//!
//! Values are nanoseconds everywhere in the program, but nothing here depends on that. [`Histogram::record`] runs in the hot loop
//! of every request-response workload and must not allocate.
use std::fmt;

use netduel_model::sample::HistogramRecord;
use thiserror::Error;

/// Largest value that keeps its three digits: one hour in nanoseconds, up to the top of its bucket of 2^31 ns. A round trip
/// beyond it is a hung path, not a latency.
pub const HIGHEST: u64 = (3_600_000_000_000 / BUCKET_AT_HOUR + 1) * BUCKET_AT_HOUR - 1;

/// Width of the buckets from 2^41 to 2^42, of which there are 1024.
const BUCKET_AT_HOUR: u64 = 1 << 31;

/// The bucket of larger values. One hour needs buckets up to 2^42 anyway, so the last bucket is free to mean "more than an hour".
/// A percentile there is the exact maximum: never too small, so reports need no mark for it.
const CLAMPED: u64 = (1 << 42) - 1;

/// Significant decimal digits of a value: buckets are at most 0.1 % wide.
const DIGITS: u8 = 3;

/// Samples of a stored record at most: a million a second for nine years. The sum of any number of records that fit a file or a message
/// can be counted.
const SAMPLES_MAX: u64 = 1 << 48;

/// Errors of a stored record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// Values do not ascend from bucket to bucket.
    #[error(
        "rebuild a histogram: value {value} stands after {previous} and does not ascend to another bucket"
    )]
    NotAscending {
        /// Value of the previous pair.
        previous: u64,
        /// Value that should be larger.
        value: u64,
    },
    /// A bucket without a sample is never stored.
    #[error("rebuild a histogram: the bucket of value {value} has no samples")]
    EmptyBucket {
        /// Value of the bucket.
        value: u64,
    },
    /// A value outside the range of the histogram.
    #[error("rebuild a histogram: value {value} is beyond the highest, {HIGHEST}")]
    OutOfRange {
        /// The value.
        value: u64,
    },
    /// The stored number of samples differs from the sum of the pairs.
    #[error("rebuild a histogram: the pairs hold {sum} samples where {count} were announced")]
    CountMismatch {
        /// Stored number.
        count: u64,
        /// Sum over the pairs.
        sum: u64,
    },
    /// More samples than a histogram is made for.
    #[error("rebuild a histogram: it has {count} samples, and {SAMPLES_MAX} are allowed")]
    TooMany {
        /// Stored number.
        count: u64,
    },
    /// Minimum or maximum is outside the first or last bucket.
    #[error(
        "rebuild a histogram: minimum {min} and maximum {max} do not lie in the first and the last bucket"
    )]
    BoundsMismatch {
        /// Stored minimum.
        min: u64,
        /// Stored maximum.
        max: u64,
    },
}

/// Samples in buckets of at most 0.1 % of their value, from 0 to [`HIGHEST`]. About 260 kB, all of it allocated by `new`.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        let buckets = hdrhistogram::Histogram::new_with_bounds(1, CLAMPED, DIGITS)
            .expect("the bounds are constants that the histogram accepts");
        Self { buckets, min: u64::MAX, max: 0 }
    }

    /// Records one sample. Above [`HIGHEST`] it counts as clamped: minimum and maximum stay exact, and percentiles among clamped
    /// samples are reported as the maximum. Never allocates.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.buckets.saturating_record(if value > HIGHEST { CLAMPED } else { value });
    }

    /// Adds all samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.add(&other.buckets).expect("all histograms of this type have the same buckets");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.min = u64::MAX;
        self.max = 0;
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Minimum, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }

    /// Maximum, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// Mean from the middles of the buckets, so that it is the same before and after storing: within 0.05 % of the mean of the
    /// samples, unless some were clamped.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.buckets.mean().clamp(self.min as f64, self.max as f64))
    }

    /// Trimmed mean: mean of the smallest samples, `share` of all (0.95 excludes the largest 5 %). From the middles of the
    /// buckets, as [`Self::mean`]. Absent when the share is less than one sample.
    pub fn trimmed_mean(&self, share: f64) -> Option<f64> {
        let wanted = (self.count() as f64 * share.clamp(0.0, 1.0)).floor() as u64;
        let mut left = wanted;
        let mut sum = 0.0;
        for bucket in self.buckets.iter_recorded() {
            let taken = bucket.count_at_value().min(left);
            let value = bucket.value_iterated_to();
            let middle = if value == CLAMPED { self.max } else { self.buckets.median_equivalent(value) };
            sum += taken as f64 * middle.clamp(self.min, self.max) as f64;
            left -= taken;
        }
        (wanted > 0).then(|| sum / wanted as f64)
    }

    /// Percentile by nearest rank: the smallest recorded value with at least `p` per cent of the samples at or below it, rounded
    /// up to the top of its bucket and never above the exact maximum. 0 is the exact minimum. Absent when empty or when `p` is
    /// not within 0 to 100.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        if self.count() == 0 || !(0.0..=100.0).contains(&p) {
            return None;
        }
        if p <= 0.0 {
            return Some(self.min);
        }
        let count = self.count() as f64;
        // 99.9 % of 1000 is rank 999; rounding errors of the product would make it 1000.
        let rank = (p / 100.0 * count * (1.0 - 1e-12)).ceil().clamp(1.0, count);
        // The library rounds a quantile up to a rank, so a quantile half a rank lower selects exactly this rank.
        let value = self.buckets.value_at_quantile((rank - 0.5) / count);
        Some(if value == CLAMPED { self.max } else { value.clamp(self.min, self.max) })
    }

    /// [`Self::percentile`] where the samples resolve it ([`Self::samples_to_resolve`]). With fewer it would be the maximum. Minimum (0) and
    /// maximum (100) are always resolved.
    pub fn resolved_percentile(&self, p: f64) -> Option<u64> {
        self.percentile(p).filter(|_| p >= 100.0 || self.count() >= Self::samples_to_resolve(p))
    }

    /// The number of samples from which on at least one lies beyond a percentile below 100: 1 / (1 - p / 100), so 100 for p99.
    pub fn samples_to_resolve(p: f64) -> u64 {
        // 1 of 1000 is beyond 99.9 %; rounding errors of the quotient would make it 1 of 1001.
        (100.0 / (100.0 - p) * (1.0 - 1e-9)).ceil() as u64
    }

    /// Value and count of each non-empty bucket, ascending; the value is the highest of the bucket.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        self.buckets
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect()
    }

    /// The stored form. An empty record has no pairs, and its minimum and maximum are 0.
    pub fn to_record(&self) -> HistogramRecord {
        HistogramRecord {
            count: self.count(),
            min: self.min().unwrap_or(0),
            max: self.max().unwrap_or(0),
            pairs: self.pairs(),
        }
    }

    /// The histogram of a stored record.
    ///
    /// # Errors
    /// The first inconsistency of a record.
    pub fn from_record(record: &HistogramRecord) -> Result<Self, HistogramError> {
        let &HistogramRecord { count, min, max, ref pairs } = record;
        if count > SAMPLES_MAX {
            return Err(HistogramError::TooMany { count });
        }
        let mut histogram = Self::new();
        let mut previous: Option<u64> = None;
        let mut sum = 0_u64;
        for &(value, samples) in pairs {
            if value > HIGHEST && value != CLAMPED {
                return Err(HistogramError::OutOfRange { value });
            }
            if samples == 0 {
                return Err(HistogramError::EmptyBucket { value });
            }
            if let Some(previous) = previous
                && histogram.bucket(previous) >= histogram.bucket(value)
            {
                return Err(HistogramError::NotAscending { previous, value });
            }
            previous = Some(value);
            sum = sum.saturating_add(samples);
            histogram.buckets.saturating_record_n(value, samples);
        }
        if sum != count {
            return Err(HistogramError::CountMismatch { count, sum });
        }
        if let (Some(&(first, _)), Some(&(last, _))) = (pairs.first(), pairs.last()) {
            let at_home = |exact: u64, value: u64| histogram.bucket(exact) == histogram.bucket(value);
            if min > max || !at_home(min, first) || !at_home(max, last) {
                return Err(HistogramError::BoundsMismatch { min, max });
            }
            (histogram.min, histogram.max) = (min, max);
        }
        Ok(histogram)
    }

    /// The cumulative distribution for an axis that spreads the tail: percentile and value, ascending. Percentiles are 0, 10,
    /// 20, ... 90, 91, ... 99, 99.1, ... and so on as long as a tenth of a decade is still a sample, then 100.
    pub fn cdf_tail(&self) -> Vec<(f64, u64)> {
        let count = self.count();
        let mut points = Vec::new();
        let mut scale = 1_u64;
        // A nine in the thirteenth place is beyond the precision of a floating-point percentile.
        'decades: while count > 0 && scale < 1_000_000_000_000 {
            for beyond in (2..=10).rev() {
                // Whole numbers of tenths of a per cent of a decade, so that 99.9 is exact.
                let share = beyond as f64 / (10 * scale) as f64;
                if share * (count as f64) < 1.0 {
                    break 'decades;
                }
                let percentile = (1000 * scale - 100 * beyond) as f64 / (10 * scale) as f64;
                points.extend(self.percentile(percentile).map(|value| (percentile, value)));
            }
            scale *= 10;
        }
        points.extend(self.max().map(|value| (100.0, value)));
        points
    }

    /// Highest value of the bucket of `value`.
    fn bucket(&self, value: u64) -> u64 {
        if value > HIGHEST { CLAMPED } else { self.buckets.highest_equivalent(value) }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("p50", &self.percentile(50.0))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentile_is_resolved_by_one_sample_beyond_it() {
        for (samples, p, resolved) in [
            (10, 50.0, true),
            (10, 90.0, true),
            (9, 90.0, false),
            (10, 99.0, false),
            (99, 99.0, false),
            (100, 99.0, true),
            (999, 99.9, false),
            (1000, 99.9, true),
            (1, 100.0, true),
            (1, 0.0, true),
            (0, 50.0, false),
        ] {
            let mut histogram = Histogram::new();
            (0..samples).for_each(|value| histogram.record(value));
            assert_eq!(histogram.resolved_percentile(p).is_some(), resolved, "p{p} of {samples}");
        }
    }

    /// A record is an agent's or a run file's: its sum must not exceed a number, neither alone nor merged with others.
    #[test]
    fn record_of_more_samples_than_can_be_counted_is_an_error() {
        let record = |pairs: Vec<(u64, u64)>, count| HistogramRecord { count, min: 1, max: 2_000, pairs };
        let rebuilt = |record: &HistogramRecord| {
            let one = Histogram::from_record(record)?;
            let mut both = one.clone();
            both.merge(&one);
            for histogram in [&one, &both] {
                histogram.percentile(50.0);
                histogram.percentile(99.0);
            }
            both.trimmed_mean(0.95);
            Ok(both.pairs().len())
        };
        let too_many = |count| Err(HistogramError::TooMany { count });
        let most = u64::MAX;
        let more_than_half = most / 2 + 10;
        let pairs = vec![(1, more_than_half), (2_000, more_than_half)];
        assert_eq!(rebuilt(&record(pairs, most)), too_many(most));
        assert_eq!(rebuilt(&record(vec![(1, most / 2), (2_000, most / 2)], most - 1)), too_many(most - 1));
        assert_eq!(
            rebuilt(&record(vec![(1, SAMPLES_MAX / 2), (2_000, SAMPLES_MAX / 2)], SAMPLES_MAX)),
            Ok(2)
        );
    }

    #[test]
    fn trimmed_mean_excludes_the_largest_samples() {
        let mut histogram = Histogram::new();
        for value in 1..=100 {
            histogram.record(value * 10);
        }
        histogram.record(u64::MAX);
        // 95 of 101: 10 to 950.
        assert_eq!(histogram.trimmed_mean(0.95), Some(480.0));
        assert!(histogram.trimmed_mean(1.0) > Some(1e17));
        assert_eq!(histogram.trimmed_mean(0.0), None);
        assert_eq!(Histogram::new().trimmed_mean(0.95), None);
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.record(value);
        }
        histogram
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        let any_magnitude = (0_u32..45, 0_u64..1 << 20).prop_map(|(shift, bits)| bits << shift >> 20);
        proptest::collection::vec(any_magnitude, 1..200)
    }

    #[test]
    fn empty_histogram_has_no_values() {
        let empty = Histogram::new();
        assert_eq!(
            (empty.count(), empty.min(), empty.max(), empty.mean(), empty.percentile(50.0)),
            (0, None, None, None, None)
        );
        assert_eq!((empty.pairs(), empty.cdf_tail()), (vec![], vec![]));
        assert_eq!(Histogram::from_record(&HistogramRecord::default()), Ok(empty));
    }

    #[test]
    fn percentiles_are_nearest_ranks_without_rounding_errors() {
        let histogram = of(&(1..=1000).collect::<Vec<_>>());
        for (p, value) in
            [(0.0, 1), (0.1, 1), (0.11, 2), (50.0, 500), (99.0, 990), (99.9, 999), (100.0, 1000)]
        {
            assert_eq!(histogram.percentile(p), Some(value), "p{p}");
        }
        for p in [-0.1, 100.1, f64::NAN] {
            assert_eq!(histogram.percentile(p), None, "p{p}");
        }
    }

    #[test]
    fn values_beyond_an_hour_count_as_the_maximum_which_stays_exact() {
        let day = 24 * HIGHEST;
        let histogram = of(&[0, 5, HIGHEST, HIGHEST + 1, day]);
        assert_eq!(histogram.count(), 5);
        assert_eq!((histogram.min(), histogram.max()), (Some(0), Some(day)));
        assert_eq!((histogram.percentile(80.0), histogram.percentile(100.0)), (Some(day), Some(day)));
        assert!(histogram.percentile(60.0).unwrap().abs_diff(HIGHEST) < HIGHEST / 1000);
        let again =
            Histogram::from_record(&HistogramRecord { count: 5, min: 0, max: day, pairs: histogram.pairs() })
                .unwrap();
        assert_eq!(again, histogram);
    }

    #[test]
    fn invalid_records_are_rejected() {
        use HistogramError as E;
        for (count, min, max, pairs, error) in [
            (3, 5, 9, vec![(5, 1), (9, 1)], E::CountMismatch { count: 3, sum: 2 }),
            (2, 5, 9, vec![(9, 1), (5, 1)], E::NotAscending { previous: 9, value: 5 }),
            (2, 5, 5, vec![(5, 1), (5, 1)], E::NotAscending { previous: 5, value: 5 }),
            (1, 5, 9, vec![(5, 1), (9, 0)], E::EmptyBucket { value: 9 }),
            (2, 4, 9, vec![(5, 1), (9, 1)], E::BoundsMismatch { min: 4, max: 9 }),
            (2, 5, 8, vec![(5, 1), (9, 1)], E::BoundsMismatch { min: 5, max: 8 }),
            (1, 1 << 43, 1 << 43, vec![(1 << 43, 1)], E::OutOfRange { value: 1 << 43 }),
        ] {
            assert_eq!(Histogram::from_record(&HistogramRecord { count, min, max, pairs }), Err(error));
        }
    }

    #[test]
    fn the_tail_axis_has_the_round_percentiles_exactly_and_ends_at_the_maximum() {
        let tail = of(&(1..=100_000).collect::<Vec<_>>()).cdf_tail();
        for p in [0.0_f64, 50.0, 90.0, 99.0, 99.9, 99.99] {
            assert!(
                tail.iter().any(|&(percentile, _)| percentile.to_bits() == p.to_bits()),
                "p{p} is missing: {tail:?}"
            );
        }
        assert!(tail.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(tail.last(), Some(&(100.0, 100_000)));
        assert!(
            tail.len() < 60,
            "one point per tenth of a decade, and none beyond the samples: {}",
            tail.len()
        );
    }

    proptest! {
        #[test]
        fn merging_equals_recording_everything_in_one(one in latencies(), other in latencies()) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            prop_assert_eq!(merged, of(&[one, other].concat()));
        }

        #[test]
        fn a_round_trip_through_pairs_changes_nothing(values in latencies()) {
            let histogram = of(&values);
            let again = Histogram::from_record(&histogram.to_record()).unwrap();
            for p in [0.0, 1.0, 50.0, 99.0, 99.9, 100.0] {
                prop_assert_eq!(again.percentile(p), histogram.percentile(p));
            }
            prop_assert_eq!(again.mean(), histogram.mean());
            prop_assert_eq!(again, histogram);
        }

        #[test]
        fn every_percentile_is_within_a_thousandth_of_the_sample_at_its_rank(mut values in latencies(), p in 0.0..100.0_f64) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = ((p / 100.0 * values.len() as f64 * (1.0 - 1e-12)).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let seen = histogram.percentile(p).unwrap();
            let fits = seen >= exact && seen - exact <= exact / 1000 || exact > HIGHEST && Some(seen) == histogram.max();
            prop_assert!(fits || p <= 0.0, "{} for {}", seen, exact);
            prop_assert_eq!(histogram.min(), values.first().copied());
            prop_assert_eq!(histogram.max(), values.last().copied());
        }

        #[test]
        fn the_mean_is_within_half_a_thousandth(values in proptest::collection::vec(1_u64..HIGHEST, 1..100)) {
            let exact = values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((of(&values).mean().unwrap() / exact - 1.0).abs() <= 0.0005);
        }
    }
}
