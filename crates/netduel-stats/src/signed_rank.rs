//! Wilcoxon's signed-rank statistic: its null distribution, and the Walsh averages that turn it into an interval.
//!
//! Interval and test use the same count, so they cannot disagree. Differences here have no scale; [`crate::paired`] interprets
//! them.
use crate::normal;
use crate::rank_interval::RankStatistic;

/// Maximum number of differences with an exact null distribution; above, normal with continuity correction. There the
/// approximation is within 2 % of any tail probability from 0.02 to 0.5, and conservative further out: 1.2 times too large at
/// 0.001.
const EXACT_UP_TO: usize = 60;

/// The distribution of the sum of the ranks of positive differences when both signs are equally likely.
enum Null {
    /// Probability that the sum is at most the index.
    Exact(Vec<f64>),
    /// Mean and standard deviation of the sum.
    Normal { mean: f64, deviation: f64 },
}

impl Null {
    fn new(n: usize) -> Self {
        let sums = n * (n + 1) / 2;
        if n > EXACT_UP_TO {
            let deviation = ((sums * (2 * n + 1)) as f64 / 12.0).sqrt();
            return Self::Normal { mean: sums as f64 / 2.0, deviation };
        }
        let mut probability = vec![0.0; sums + 1];
        probability[0] = 1.0;
        for rank in 1..=n {
            // Each rank is in the sum with probability one half. Downwards, so that a rank is added once.
            for sum in (0..=rank * (rank + 1) / 2).rev() {
                let with = if sum >= rank { probability[sum - rank] } else { 0.0 };
                probability[sum] = f64::midpoint(probability[sum], with);
            }
        }
        let mut total = 0.0;
        for value in &mut probability {
            total += *value;
            *value = total;
        }
        Self::Exact(probability)
    }

    /// Probability that the sum is at most `sum`.
    fn at_most(&self, sum: usize) -> f64 {
        match self {
            Self::Exact(cumulative) => cumulative.get(sum).map_or(1.0, |probability| probability.min(1.0)),
            Self::Normal { mean, deviation } => normal::cumulative((sum as f64 + 0.5 - mean) / deviation),
        }
    }
}

/// Differences with their Walsh averages: the means of all pairs, and each difference itself.
pub(crate) struct Walsh {
    /// Halves of the differences, ascending: a Walsh average is the sum of two of them, and cannot overflow.
    halves: Vec<f64>,
    null: Null,
    /// Averages closer to a point than this are equal to it.
    resolution: f64,
}

impl Walsh {
    /// At least one difference, all finite. Averages within `resolution` of 0 become 0.
    pub(crate) fn new(differences: &[f64], resolution: f64) -> Option<Self> {
        if differences.is_empty() || differences.iter().any(|difference| !difference.is_finite()) {
            return None;
        }
        // Adding 0 turns a negative zero into a positive one, so that the order of the bits is the numeric order.
        let mut halves: Vec<f64> = differences.iter().map(|difference| difference / 2.0 + 0.0).collect();
        halves.sort_unstable_by(f64::total_cmp);
        let null = Null::new(halves.len());
        Some(Self { halves, null, resolution })
    }

    /// Standard error of the centre times the square root of the number of differences. From the width of the interval of about
    /// 90 %; absent for a single difference.
    pub(crate) fn spread(&self) -> Option<f64> {
        if self.n() < 2 {
            return None;
        }
        let n = self.n() as f64;
        let place = self.critical(0.05).max(1);
        let width = self.ordered(self.total() + 1 - place) - self.ordered(place);
        // The normal score of the achieved level, not of the requested one: few differences have few levels.
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let score = (n * (n + 1.0) / 4.0 - (place as f64 - 0.5)) / deviation;
        Some(width / 2.0 * n.sqrt() / score)
    }
}

/// The contributions are the Walsh averages.
impl RankStatistic for Walsh {
    fn n(&self) -> usize {
        self.halves.len()
    }

    fn total(&self) -> usize {
        self.n() * (self.n() + 1) / 2
    }

    fn ends(&self) -> (f64, f64) {
        (2.0 * self.halves[0], 2.0 * self.halves[self.n() - 1])
    }

    /// In one pass with two indices.
    fn count_at_most(&self, bound: f64) -> usize {
        let mut above = self.n();
        let mut count = 0;
        for (index, half) in self.halves.iter().enumerate() {
            // As the first half grows, fewer partners keep the sum within the bound.
            while above > index && half + self.halves[above - 1] > bound {
                above -= 1;
            }
            if above <= index {
                break;
            }
            count += above - index;
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

    fn walsh(differences: &[f64]) -> Walsh {
        Walsh::new(differences, 0.0).unwrap()
    }

    /// All averages, sorted, by definition.
    fn all_averages(differences: &[f64]) -> Vec<f64> {
        let mut averages = Vec::new();
        for (index, one) in differences.iter().enumerate() {
            averages.extend(differences[index..].iter().map(|other| one / 2.0 + other / 2.0));
        }
        averages.sort_unstable_by(f64::total_cmp);
        averages
    }

    #[test]
    fn critical_values_match_printed_tables() {
        // Largest rank sum that is significant, two-sided 5 % and 1 % (Wilcoxon 1947; McCornack 1965).
        let five = [0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52];
        let one = [0, 1, 3, 5, 7, 9, 12, 15, 19, 23, 27, 32, 37];
        for (tail, first, table) in [(0.025, 6, &five[..]), (0.005, 8, &one[..])] {
            for (offset, critical) in table.iter().enumerate() {
                let n = first + offset;
                assert_eq!(walsh(&vec![1.0; n]).critical(tail), critical + 1, "n = {n}, tail {tail}");
            }
            assert_eq!(walsh(&vec![1.0; first - 1]).critical(tail), 0, "too few for tail {tail}");
        }
    }

    #[test]
    fn exact_distribution_matches_enumeration() {
        for n in 1..=12_u32 {
            let null = Null::new(n as usize);
            let sums = (n * (n + 1) / 2) as usize;
            let mut counts = vec![0_u32; sums + 1];
            for signs in 0..1_u32 << n {
                counts[(0..n)
                    .filter(|bit| signs >> bit & 1 == 1)
                    .map(|bit| bit as usize + 1)
                    .sum::<usize>()] += 1;
            }
            let mut total = 0;
            for (sum, count) in counts.iter().enumerate() {
                total += count;
                assert!((null.at_most(sum) - f64::from(total) / f64::from(1_u32 << n)).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn normal_approximation_agrees_at_the_switch() {
        let n = EXACT_UP_TO;
        let Null::Exact(exact) = Null::new(n) else { panic!("60 differences are exact") };
        let sums = (n * (n + 1) / 2) as f64;
        let approximation =
            Null::Normal { mean: sums / 2.0, deviation: (sums * (2 * n + 1) as f64 / 12.0).sqrt() };
        let mut worst: f64 = 0.0;
        for (sum, &probability) in exact.iter().enumerate() {
            let ratio = approximation.at_most(sum) / probability;
            if (0.02..0.5).contains(&probability) {
                worst = worst.max((ratio - 1.0).abs());
            } else if probability < 0.02 {
                assert!(ratio > 1.0, "the approximation is on the safe side at {probability}: {ratio}");
                assert!(probability < 0.001 || ratio < 1.2, "and not too far at {probability}: {ratio}");
            }
        }
        assert!(worst < 0.02, "{worst}");
    }

    #[test]
    fn centre_and_interval_match_a_manual_calculation() {
        // Averages of 1, 2, 4: 1, 1.5, 2, 2.5, 3, 4.
        let three = walsh(&[4.0, 1.0, 2.0]);
        assert_eq!(three.centre(), 2.25);
        assert_eq!(three.interval(0.125), (1.0, 4.0));
        assert_eq!(three.interval(0.25), (1.5, 3.0));
        assert_eq!(three.interval(0.12), (f64::NEG_INFINITY, f64::INFINITY));
        // Hollander and Wolfe, table 3.1: depression factor before and after tranquiliser, estimate -0.46, 96 % interval.
        #[expect(clippy::approx_constant, reason = "3.14 is a measured value")]
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
        let hollander = walsh(&differences);
        assert!((hollander.centre() + 0.46).abs() < 1e-9, "{}", hollander.centre());
        let (low, high) = hollander.interval(0.02);
        assert!((low + 0.786).abs() < 1e-9 && (high + 0.010).abs() < 1e-9, "{low} {high}");
        // Rank sum of the two positive differences: 5 of 45, one-sided 10 in 512.
        assert!((hollander.evidence_below(0.0) - 10.0 / 512.0).abs() < 1e-15);
    }

    #[test]
    fn zeros_and_ties_count_against_a_difference() {
        let zeros = walsh(&[0.0; 10]);
        assert_eq!((zeros.centre(), zeros.interval(0.025)), (0.0, (0.0, 0.0)));
        assert_eq!((zeros.evidence_above(0.0), zeros.evidence_below(0.0)), (1.0, 1.0));
        let equal = walsh(&[0.5; 6]);
        assert_eq!((equal.centre(), equal.interval(0.025)), (0.5, (0.5, 0.5)));
        assert_eq!(equal.evidence_above(0.0), 1.0 / 64.0);
        assert_eq!(walsh(&[-0.5; 6]).evidence_below(0.0), 1.0 / 64.0);
    }

    proptest! {
        #[test]
        fn every_place_is_found_as_in_the_sorted_list(
            differences in proptest::collection::vec(prop_oneof![-4_i32..4, -1000..1000].prop_map(|tenth| f64::from(tenth) / 10.0), 1..25),
        ) {
            let walsh = walsh(&differences);
            let averages = all_averages(&differences);
            for (index, average) in averages.iter().enumerate() {
                prop_assert_eq!(walsh.ordered(index + 1), *average);
            }
            for bound in [-7.0, -0.05, 0.0, 0.3, 11.0] {
                prop_assert_eq!(walsh.count_at_most(bound), averages.iter().filter(|&&average| average <= bound).count());
            }
        }

        #[test]
        fn the_interval_leaves_a_bound_out_exactly_when_the_evidence_reaches_the_tail(
            differences in proptest::collection::vec(-10.0..10.0_f64, 1..80),
            bound in -5.0..5.0_f64,
            tail in 0.0001..0.5_f64,
        ) {
            let walsh = walsh(&differences);
            let (low, high) = walsh.interval(tail);
            prop_assert!(low <= walsh.centre() && walsh.centre() <= high);
            prop_assert_eq!(low > bound, walsh.evidence_above(bound) <= tail);
            prop_assert_eq!(high < bound, walsh.evidence_below(bound) <= tail);
        }
    }
}
