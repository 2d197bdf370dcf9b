//! The rank-sum statistic of Mann and Whitney: its null distribution, and the differences of two samples that turn it into an interval.
//!
//! Interval and test use the same count, so they cannot disagree. Values here have no scale; [`crate::unpaired`] interprets them.
use crate::normal;
use crate::rank_interval::{ROUNDING, RankStatistic};

/// Maximum number of values of both samples together with an exact null distribution; above, normal with corrections for continuity
/// and ties. Between two samples of 50 the approximation is within 2 % of any tail probability from 0.02 to 0.5, and conservative
/// further out: up to 1.2 times too large at 0.001. Between samples of different sizes it is more conservative there.
const EXACT_UP_TO: usize = 100;

/// The distribution of the number of differences at or below the true shift when the samples differ by that shift only.
enum Null {
    /// Probability that the number is at most the index.
    Exact(Vec<f64>),
    /// Mean and standard deviation of the number.
    Normal { mean: f64, deviation: f64 },
}

impl Null {
    /// Of two samples in ascending order, neither empty.
    fn new(samples: [&[f64]; 2]) -> Self {
        let [few, many] = samples.map(<[f64]>::len);
        let (few, many) = (few.min(many), few.max(many));
        if few + many > EXACT_UP_TO {
            return Self::normal(samples);
        }
        Self::Exact(exact(few, many))
    }

    /// Ties within a sample remain under every shift and reduce the variance. Ties between the samples depend on the shift; without
    /// them the variance is an upper bound for all shifts, so that one deviation serves test and interval.
    fn normal(samples: [&[f64]; 2]) -> Self {
        Self::approximate(samples.map(<[f64]>::len), samples.into_iter().map(ties).sum())
    }

    /// `ties`: the sum of [`ties`] of both samples.
    fn approximate(sizes: [usize; 2], ties: f64) -> Self {
        let [one, other] = sizes.map(|size| size as f64);
        let (pairs, all) = (one * other, one + other);
        let variance = pairs / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        Self::Normal { mean: pairs / 2.0, deviation: variance.sqrt() }
    }

    /// Probability that the number is at most `count`.
    fn at_most(&self, count: usize) -> f64 {
        match self {
            Self::Exact(cumulative) => cumulative.get(count).map_or(1.0, |probability| probability.min(1.0)),
            Self::Normal { mean, deviation } => normal::cumulative((count as f64 + 0.5 - mean) / deviation),
        }
    }
}

/// Sum of `t^3 - t` over groups of `t` equal values in ascending order.
fn ties(sample: &[f64]) -> f64 {
    let groups = sample.chunk_by(|one, next| one.total_cmp(next).is_eq());
    groups.map(|group| (group.len() as f64).powi(3) - group.len() as f64).sum()
}

/// Cumulative probabilities of the number of differences below the true shift, without ties.
fn exact(few: usize, many: usize) -> Vec<f64> {
    // The number of orders of the values with each count: the coefficients of the Gaussian binomial (few + many over few), a product
    // of (1 - q^(many + factor)) / (1 - q^factor). Integers: the sum for 50 and 50 values is 1e29.
    let mut orders = vec![0_i128; few * many + 1];
    orders[0] = 1;
    for factor in 1..=few {
        for count in (many + factor..orders.len()).rev() {
            orders[count] -= orders[count - many - factor];
        }
        for count in factor..orders.len() {
            orders[count] += orders[count - factor];
        }
    }
    let all: i128 = orders.iter().sum();
    let mut below = 0;
    let cumulative = orders.into_iter().map(|own| {
        below += own;
        below as f64 / all as f64
    });
    cumulative.collect()
}

/// Number of values of each sample from which on the interval that misses with at most `tail` on each side has ends, when the sizes are
/// below it; a sample that has more keeps them. Absent when the sizes are enough, and when 100 values are not.
pub(crate) fn values_needed(sizes: [usize; 2], tail: f64) -> Option<usize> {
    let fewest = sizes[0].min(sizes[1]);
    let is_enough = |count: &usize| {
        let [one, other] = sizes.map(|size| size.max(*count));
        smallest_probability(one.min(other), one.max(other)) <= tail * (1.0 + ROUNDING)
    };
    (fewest..=EXACT_UP_TO).find(is_enough).filter(|needed| *needed > fewest)
}

/// Probability that all values of one sample are below those of the other when they do not differ: no data have less. Without ties one
/// of all orders of the values.
fn smallest_probability(few: usize, many: usize) -> f64 {
    if few + many > EXACT_UP_TO {
        return Null::approximate([few, many], 0.0).at_most(0);
    }
    (1..=few).map(|place| place as f64 / (many + place) as f64).product()
}

/// Two samples with the differences of all their pairs of values: the arm's minus the baseline's.
pub(crate) struct Shifts {
    /// Ascending.
    baseline: Vec<f64>,
    /// Ascending.
    arm: Vec<f64>,
    null: Null,
    /// Differences closer to a point than this are equal to it.
    resolution: f64,
}

impl Shifts {
    /// At least one value each, all finite and with finite differences. Differences within `resolution` of 0 become 0.
    pub(crate) fn new(baseline: &[f64], arm: &[f64], resolution: f64) -> Option<Self> {
        if baseline.iter().chain(arm).any(|value| !value.is_finite()) {
            return None;
        }
        let [baseline, arm] = [baseline, arm].map(sorted);
        let (lowest, highest) = (baseline.first()?.min(*arm.first()?), baseline.last()?.max(*arm.last()?));
        if !(highest - lowest).is_finite() {
            return None;
        }
        let null = Null::new([&baseline, &arm]);
        Some(Self { baseline, arm, null, resolution })
    }
}

/// In ascending order. Adding 0 turns a negative zero into a positive one, which is equal to it.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The contributions are the differences.
impl RankStatistic for Shifts {
    fn n(&self) -> usize {
        self.baseline.len().min(self.arm.len())
    }

    fn total(&self) -> usize {
        self.baseline.len() * self.arm.len()
    }

    fn ends(&self) -> (f64, f64) {
        let (baseline_last, arm_last) = (self.baseline.len() - 1, self.arm.len() - 1);
        (self.arm[0] - self.baseline[baseline_last], self.arm[arm_last] - self.baseline[0])
    }

    /// In one pass with two indices.
    fn count_at_most(&self, bound: f64) -> usize {
        let mut within = 0;
        let mut count = 0;
        for baseline in &self.baseline {
            // As the baseline's value grows, more values of the arm keep the difference within the bound.
            while within < self.arm.len() && self.arm[within] - baseline <= bound {
                within += 1;
            }
            count += within;
        }
        count
    }

    fn at_most(&self, count: usize) -> f64 {
        self.null.at_most(count)
    }

    fn resolution(&self) -> f64 {
        self.resolution
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the expected figures are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shifts(baseline: &[f64], arm: &[f64]) -> Shifts {
        Shifts::new(baseline, arm, 0.0).unwrap()
    }

    /// Samples of these sizes; their values do not matter.
    fn sizes(one: usize, other: usize) -> Shifts {
        shifts(&vec![0.0; one], &vec![1.0; other])
    }

    #[test]
    fn critical_values_match_printed_tables() {
        // Largest U that is significant, two-sided 5 % and 1 % (Mann and Whitney 1947; Auble 1953), by both sizes.
        let five: [(usize, &[usize]); 6] = [
            (3, &[5, 0, 1, 1, 2, 2, 3]),
            (4, &[4, 0, 1, 2, 3, 4, 4, 5]),
            (5, &[5, 2, 3, 5, 6, 7, 8]),
            (6, &[6, 5, 6, 8, 10, 11]),
            (7, &[7, 8, 10, 12, 14]),
            (8, &[8, 13, 15, 17]),
        ];
        for (one, row) in five {
            let (first, table) = row.split_first().unwrap();
            for (offset, critical) in table.iter().enumerate() {
                let other = first + offset;
                assert_eq!(sizes(one, other).critical(0.025), critical + 1, "{one} and {other}");
                assert_eq!(sizes(other, one).critical(0.025), critical + 1, "{other} and {one}");
            }
        }
        for (n, five, one) in [(9, 17, 11), (10, 23, 16), (12, 37, 27), (15, 64, 51), (20, 127, 105)] {
            assert_eq!(sizes(n, n).critical(0.025), five + 1, "{n} and {n}");
            assert_eq!(sizes(n, n).critical(0.005), one + 1, "{n} and {n}");
        }
        for (one, other) in [(3, 3), (3, 4), (2, 7), (1, 38)] {
            assert_eq!(sizes(one, other).critical(0.025), 0, "{one} and {other} are too few");
        }
        assert_eq!(sizes(1, 39).critical(0.025), 1);
    }

    #[test]
    fn exact_distribution_matches_enumeration() {
        for few in 1..=5_usize {
            for many in few..=6_usize {
                let all = few + many;
                let mut counts = vec![0_u32; few * many + 1];
                let chosen = |bits: u32| (0..all).filter(move |place| bits >> place & 1 == 1);
                let subsets = (0..1_u32 << all).filter(|bits| bits.count_ones() as usize == few);
                for bits in subsets {
                    // Each chosen value is above the values that are before it and not chosen.
                    counts[chosen(bits).enumerate().map(|(before, place)| place - before).sum::<usize>()] +=
                        1;
                }
                let subsets: u32 = counts.iter().sum();
                let null = exact(few, many);
                let mut total = 0;
                for (count, probability) in counts.iter().zip(&null) {
                    total += count;
                    assert!((probability - f64::from(total) / f64::from(subsets)).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn normal_approximation_agrees_at_the_switch() {
        let distinct = |n: usize, from: f64| (0..n).map(|place| from + place as f64).collect::<Vec<_>>();
        let worst = |few: usize, many: usize, factor: f64| {
            let approximation = Null::normal([&distinct(few, 0.0), &distinct(many, 1000.0)]);
            let mut worst: f64 = 0.0;
            for (count, &probability) in exact(few, many).iter().enumerate() {
                let ratio = approximation.at_most(count) / probability;
                if (0.02..0.5).contains(&probability) {
                    worst = worst.max((ratio - 1.0).abs());
                } else if probability < 0.02 {
                    assert!(ratio > 1.0, "the approximation is on the safe side at {probability}: {ratio}");
                    assert!(probability < 0.001 || ratio < factor, "at {probability}: {ratio}");
                }
            }
            worst
        };
        assert!(worst(EXACT_UP_TO / 2, EXACT_UP_TO / 2, 1.2) < 0.02);
        assert!(worst(10, EXACT_UP_TO - 10, 2.0) < 0.05);
    }

    #[test]
    fn ties_within_a_sample_reduce_the_deviation() {
        // Each value twice: 60 groups of 2 among 120 values.
        let doubled = |from: f64| (0..60).map(|place| from + f64::from(place / 2)).collect::<Vec<_>>();
        let Null::Normal { mean, deviation } = shifts(&doubled(0.0), &doubled(0.5)).null else {
            panic!("120 values are not exact")
        };
        assert_eq!(mean, 1800.0);
        let expected = (300.0 * (121.0 - 360.0 / (120.0 * 119.0_f64))).sqrt();
        assert!((deviation - expected).abs() < 1e-9, "{deviation} {expected}");
        // Equal values only: the samples differ in nothing, and the deviation stays positive.
        let equal = shifts(&[1.0; 60], &[1.0; 60]);
        assert_eq!((equal.centre(), equal.interval(0.025)), (0.0, (0.0, 0.0)));
        assert!(equal.evidence_above(0.0) > 0.99 && equal.evidence_below(0.0) > 0.99);
    }

    #[test]
    fn centre_and_interval_match_a_published_example() {
        // Hollander and Wolfe, table 4.1: permeability of the chorioamnion, 12 to 26 weeks and at term. Estimate of at term minus
        // earlier 0.305, interval -0.15 to 0.76; R's wilcox.test has W = 35 and p = 0.1272.
        let earlier = [1.15, 0.88, 0.90, 0.74, 1.21];
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let example = shifts(&earlier, &at_term);
        assert_eq!(example.total() - example.count_at_most(0.0), 35);
        assert!((example.centre() - 0.305).abs() < 1e-12, "{}", example.centre());
        let (low, high) = example.interval(0.025);
        assert!((low + 0.15).abs() < 1e-12 && (high - 0.76).abs() < 1e-12, "{low} {high}");
        assert!(
            (example.evidence_above(0.0) - 382.0 / 3003.0).abs() < 1e-12,
            "{}",
            example.evidence_above(0.0)
        );
    }

    #[test]
    fn values_without_differences_are_rejected() {
        assert!(Shifts::new(&[], &[1.0], 0.0).is_none() && Shifts::new(&[1.0], &[], 0.0).is_none());
        assert!(Shifts::new(&[f64::NAN], &[1.0], 0.0).is_none());
        assert!(Shifts::new(&[1.0], &[f64::INFINITY], 0.0).is_none());
        assert!(Shifts::new(&[-1e308], &[1e308], 0.0).is_none(), "the difference is not finite");
        assert_eq!(shifts(&[0.0], &[-0.0]).centre().to_bits(), 0.0_f64.to_bits());
    }

    fn sample() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![-4_i32..4, -1000..1000].prop_map(|tenth| f64::from(tenth) / 10.0);
        proptest::collection::vec(value, 1..15)
    }

    proptest! {
        #[test]
        fn every_place_is_found_as_in_the_sorted_list(baseline in sample(), arm in sample()) {
            let shifts = shifts(&baseline, &arm);
            let mut differences: Vec<f64> =
                baseline.iter().flat_map(|baseline| arm.iter().map(move |arm| arm - baseline)).collect();
            differences.sort_unstable_by(f64::total_cmp);
            prop_assert_eq!(shifts.total(), differences.len());
            for (index, difference) in differences.iter().enumerate() {
                prop_assert_eq!(shifts.ordered(index + 1), *difference);
            }
            for bound in [-7.0, -0.05, 0.0, 0.3, 11.0] {
                let within = differences.iter().filter(|&&difference| difference <= bound).count();
                prop_assert_eq!(shifts.count_at_most(bound), within);
            }
        }

        #[test]
        fn the_interval_leaves_a_bound_out_exactly_when_the_evidence_reaches_the_tail(
            baseline in proptest::collection::vec(-10.0..10.0_f64, 1..70),
            arm in proptest::collection::vec(-10.0..10.0_f64, 1..70),
            bound in -5.0..5.0_f64,
            tail in 0.0001..0.5_f64,
        ) {
            let shifts = shifts(&baseline, &arm);
            let (low, high) = shifts.interval(tail);
            prop_assert!(low <= shifts.centre() && shifts.centre() <= high);
            prop_assert_eq!(low > bound, shifts.evidence_above(bound) <= tail);
            prop_assert_eq!(high < bound, shifts.evidence_below(bound) <= tail);
        }
    }
}
