//! Tests and intervals by inversion of a rank statistic.
//!
//! Both use one count: how many contributions (Walsh averages of pairs, differences of two samples) are at or below a bound. So they
//! cannot disagree. This module knows no samples and no scale; [`crate::signed_rank`] and [`crate::rank_sum`] have the statistics.

/// Relative tolerance of probabilities, so that a level computed by subtraction from 1 still equals its nominal probability.
pub(crate) const ROUNDING: f64 = 1e-9;

/// A rank statistic that counts contributions, with its null distribution.
pub(crate) trait RankStatistic {
    /// Number of pairs, or of values of the smaller sample.
    fn n(&self) -> usize;

    /// Number of contributions.
    fn total(&self) -> usize;

    /// The smallest and the largest contribution.
    fn ends(&self) -> (f64, f64);

    /// Number of contributions at or below `bound`.
    fn count_at_most(&self, bound: f64) -> usize;

    /// Probability that at most `count` contributions are on one side of the true centre.
    fn at_most(&self, count: usize) -> f64;

    /// Contributions closer to a point than this are equal to it.
    fn resolution(&self) -> f64;

    /// The contribution with this rank in ascending order, from 1. Exact: bisection over floating-point numbers takes 64 passes for
    /// any values, so 2000 pairs cost as little as sorting them.
    fn ordered(&self, place: usize) -> f64 {
        let (smallest, largest) = self.ends();
        let (mut low, mut high) = (order_key(smallest), order_key(largest));
        while low < high {
            let middle = low.midpoint(high);
            if self.count_at_most(from_order_key(middle)) >= place {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let contribution = from_order_key(low);
        if contribution.abs() <= self.resolution() { 0.0 } else { contribution }
    }

    /// The Hodges-Lehmann estimate: the median of the contributions.
    fn centre(&self) -> f64 {
        let total = self.total();
        f64::midpoint(self.ordered(total.div_ceil(2)), self.ordered(total / 2 + 1))
    }

    /// Number of contributions outside each end of an interval that misses with at most `tail` on each side, plus one; 0 when there
    /// are too few values for such an interval.
    fn critical(&self, tail: f64) -> usize {
        let (mut fits, mut too_many) = (0, self.total() / 2 + 1);
        while too_many - fits > 1 {
            let middle = usize::midpoint(fits, too_many);
            if self.at_most(middle - 1) <= tail * (1.0 + ROUNDING) {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        fits
    }

    /// The closed interval that misses the true centre with probability at most `tail` on either side. Infinite when there are too
    /// few values.
    fn interval(&self, tail: f64) -> (f64, f64) {
        match self.critical(tail) {
            0 => (f64::NEG_INFINITY, f64::INFINITY),
            place => (self.ordered(place), self.ordered(self.total() + 1 - place)),
        }
    }

    /// One-sided p value of a centre at or below `bound`.
    fn evidence_above(&self, bound: f64) -> f64 {
        self.at_most(self.count_at_most(bound + self.resolution()))
    }

    /// One-sided p value of a centre at or above `bound`.
    fn evidence_below(&self, bound: f64) -> f64 {
        let below = self.count_at_most((bound - self.resolution()).next_down());
        self.at_most(self.total() - below)
    }
}

/// An integer key in the order of floating-point numbers: the sign bit is inverted, and for negative numbers all bits are.
fn order_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The floating-point number of a key.
fn from_order_key(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 0 { !key } else { key & !(1 << 63) })
}
