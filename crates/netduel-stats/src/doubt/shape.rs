//! Warnings about the shape of a set: two separated groups (bimodal), and outliers.
use super::values::{finite, sorted};
use crate::summary::{median, quantile_of_sorted};

/// Minimum number of values for two groups.
const FEWEST_FOR_GROUPS: usize = 8;

/// Minimum share of the values in a group, and at least three; smaller groups are outliers.
const SMALLEST_GROUP: f64 = 0.15;

/// Minimum distance of the groups in root-mean-square spreads of the two (Ashman, Bird and Zepf 1994 use 2 for known groups).
/// Split at the best place, a normal distribution has 2.6 and a uniform one 3.5. Small samples reach more by chance, hence the
/// term that decreases with their number. Calibrated by simulation of whole runs, because a report tests every arm and metric.
fn apart_at_least(n: usize) -> f64 {
    5.3 + 38.0 / n as f64
}

/// Minimum ratio of the upper to the lower group. Closer groups may be real, but do not change a conclusion.
const APART_TIMES: f64 = 1.2;

/// Maximum share of the values in the middle half of the range between the groups' medians.
const VALLEY_AT_MOST: f64 = 0.05;

/// Minimum number of values of another set at each level: a single one can be an outlier.
const FEWEST_AT_A_LEVEL: usize = 2;

/// Minimum distance of an outlier in robust standard deviations. Calibrated by simulation of whole runs: skewed and heavy-tailed
/// noise, as of latencies, reaches 20 in one run of 20 without a cause.
const FAR_DEVIATIONS: f64 = 26.0;

/// Minimum ratio of an outlier to the median of the others, or its inverse. A closer block does not change an estimate, which is
/// a median of pairs. Trials of one path on a virtual machine were up to 1.6 times the median (`cargo xtask bench aa`).
const FAR_TIMES: f64 = 2.0;

/// A value so many times the median of the others, or its inverse, is also an outlier by its logarithm: the distance of a small
/// value from the median is never more than the median itself, whatever the spread.
const VERY_FAR_TIMES: f64 = 10.0;

/// How many robust standard deviations of the logarithms that takes. Among 8 values of exponential noise 0.5 % reach it.
const FAR_LOG_DEVIATIONS: f64 = 13.0;

/// Factor from the median absolute deviation to the standard deviation of a normal distribution.
const PER_MEDIAN_DEVIATION: f64 = 1.482_6;

/// Factor from the mean absolute deviation to the standard deviation.
const PER_MEAN_DEVIATION: f64 = 1.253_3;

/// Minimum number of values for outliers.
const FEWEST_FOR_OUTLIERS: usize = 5;

/// The medians of two groups, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Median of the lower group.
    pub low: f64,
    /// Median of the upper group.
    pub high: f64,
}

impl Modes {
    /// Whether other values are at both levels too: some within a quarter of the distance of the groups from each, or beyond it.
    #[must_use]
    pub fn are_also_of(self, values: &[f64]) -> bool {
        let quarter = (self.high - self.low) / 4.0;
        values.iter().any(|&value| value <= self.low + quarter)
            && values.iter().any(|&value| value >= self.high - quarter)
    }

    /// Whether the other values of pairs `(own, other)` form two groups at these levels, when they are multiplied by the median ratio of the
    /// pairs: two of them or more at each level, or beyond it, and almost none between. A state of a machine changes both values by
    /// about one factor, whatever their levels are.
    #[must_use]
    pub fn are_levels_of_pairs(self, pairs: &[(f64, f64)]) -> bool {
        let ratios: Vec<f64> = pairs.iter().map(|(own, other)| own / other).collect();
        let Some(factor) = median(&ratios).filter(|factor| factor.is_finite() && *factor > 0.0) else {
            return false;
        };
        let quarter = (self.high - self.low) / 4.0;
        let scaled = || pairs.iter().map(|(_, other)| other * factor);
        let low = scaled().filter(|value| *value <= self.low + quarter).count();
        let high = scaled().filter(|value| *value >= self.high - quarter).count();
        let between = pairs.len().saturating_sub(low + high);
        low.min(high) >= FEWEST_AT_A_LEVEL && between as f64 <= VALLEY_AT_MOST * pairs.len() as f64
    }
}

/// An outlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its index.
    pub index: usize,
    /// Its ratio to the median of the others.
    pub ratio_to_median: f64,
}

/// Two separated groups of at least 8 values: split where the sum of squares within the groups is minimal, each group with at
/// least 15 % of the values and three values, the groups separated relative to their spread and by 20 %, and almost no values
/// between them.
pub fn bimodal(values: &[f64]) -> Option<Modes> {
    let n = values.len();
    if n < FEWEST_FOR_GROUPS || !finite(values) {
        return None;
    }
    let sorted = sorted(values);
    let smallest = ((n as f64 * SMALLEST_GROUP).ceil() as usize).max(3);
    let cut = best_cut(&sorted, smallest)?;
    let (lower, upper) = sorted.split_at(cut);
    let ((low_mean, low_squares), (high_mean, high_squares)) = (moments(lower), moments(upper));
    let (low_variance, high_variance) =
        (low_squares / (lower.len() - 1) as f64, high_squares / (upper.len() - 1) as f64);
    let spread = f64::midpoint(low_variance, high_variance).sqrt();
    let modes = Modes { low: quantile_of_sorted(lower, 0.5), high: quantile_of_sorted(upper, 0.5) };
    let quarter = (modes.high - modes.low) / 4.0;
    let between =
        sorted.iter().filter(|&&value| value > modes.low + quarter && value < modes.high - quarter).count();
    let apart = high_mean - low_mean > apart_at_least(n) * spread && modes.high >= APART_TIMES * modes.low;
    (apart && between as f64 <= VALLEY_AT_MOST * n as f64).then_some(modes)
}

/// The split of sorted values with the minimal sum of squares within the parts.
fn best_cut(sorted: &[f64], smallest: usize) -> Option<usize> {
    let lower = squares_of_first(sorted.iter().copied());
    let upper = squares_of_first(sorted.iter().rev().copied());
    let squares = lower.iter().zip(upper.iter().rev()).map(|(lower, upper)| lower + upper);
    let cuts = squares.enumerate().take(sorted.len().checked_sub(smallest)? + 1).skip(smallest);
    cuts.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(cut, _)| cut)
}

/// The sum of squared deviations from their mean of the first values, by their number from 0 (Welford 1962).
fn squares_of_first(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut all = vec![squares];
    for value in values {
        count += 1.0;
        let from_former: f64 = value - mean;
        mean += from_former / count;
        squares += from_former * (value - mean);
        all.push(squares);
    }
    all
}

/// Mean, and sum of squared deviations from it.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum())
}

/// Values further from the median than 26 robust standard deviations (1.4826 times the median absolute deviation, or when more
/// than half of the values are equal 1.2533 times the mean one) that are also twice the median of the others, or less than
/// its inverse; of at least 5 values. So are positive values 10 times the median of the others, or a tenth of it, that are further than 13
/// robust standard deviations by their logarithms.
pub fn outliers(values: &[f64]) -> Vec<Outlier> {
    let n = values.len();
    let Some(centre) = median(values).filter(|_| n >= FEWEST_FOR_OUTLIERS) else { return Vec::new() };
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let typical = median(&distances).filter(|&typical| typical > 0.0).map_or_else(
        || PER_MEAN_DEVIATION * distances.iter().sum::<f64>() / n as f64,
        |typical| PER_MEDIAN_DEVIATION * typical,
    );
    let by_logarithm = far_by_logarithm(values);
    let is_far = |index: usize| distances[index] > FAR_DEVIATIONS * typical;
    let is_beyond = |times: f64, ratio: f64| !(1.0 / times..=times).contains(&ratio);
    let ascending = sorted(values);
    (0..n)
        .filter(|index| is_far(*index) || by_logarithm[*index])
        .filter_map(|index| {
            let value = *values.get(index)?;
            let place = ascending.partition_point(|other| other.total_cmp(&value).is_lt());
            Some(Outlier { index, ratio_to_median: value / median_of_others(&ascending, place)? })
        })
        .filter(|one| {
            let times = if is_far(one.index) { FAR_TIMES } else { VERY_FAR_TIMES };
            is_beyond(times, one.ratio_to_median)
        })
        .collect()
}

/// The median of ascending values without the one at a place; absent without others.
fn median_of_others(ascending: &[f64], place: usize) -> Option<f64> {
    let other = |index: usize| ascending.get(index + usize::from(index >= place)).copied();
    let last = ascending.len().checked_sub(2)?;
    Some(f64::midpoint(other(last / 2)?, other(last.div_ceil(2))?))
}

/// Whether the logarithm of each value is far from that of the median; none is where a value is not positive.
fn far_by_logarithm(values: &[f64]) -> Vec<bool> {
    if values.iter().any(|value| *value <= 0.0) {
        return vec![false; values.len()];
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let centre = median(&logarithms).unwrap_or_default();
    let distances: Vec<f64> = logarithms.iter().map(|value| (value - centre).abs()).collect();
    let typical = median(&distances).unwrap_or_default() * PER_MEDIAN_DEVIATION;
    distances.iter().map(|distance| typical > 0.0 && *distance > FAR_LOG_DEVIATIONS * typical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bimodal_groups_have_their_medians() {
        let placed = [5.9, 2.1, 6.0, 2.0, 6.1, 6.0, 1.9, 5.8, 6.2, 2.0];
        assert_eq!(bimodal(&placed), Some(Modes { low: 2.0, high: 6.0 }));
        let constant = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0];
        assert_eq!(bimodal(&constant), Some(Modes { low: 1.0, high: 3.0 }));
    }

    #[test]
    fn levels_are_shared_with_values_at_both_of_them() {
        // Round trips of two arms on one virtual machine, us.
        let one = [60.9, 60.7, 60.8, 61.5, 86.3, 91.7, 80.9, 61.0];
        let modes = bimodal(&[60.5, 60.6, 60.7, 60.5, 83.1, 82.9, 83.0, 60.4]).unwrap();
        assert!(modes.are_also_of(&one));
        for other in [[60.7; 8], [85.0; 8], [70.0; 8], [20.0; 8], [200.0; 8]] {
            assert!(!modes.are_also_of(&other), "{other:?}");
        }
    }

    #[test]
    fn levels_of_pairs_are_compared_relative_to_their_ratio() {
        // Round trips of two paths through one virtual machine, us: it was slow in blocks 1, 4, 5 and 6.
        let one = [60.9, 44.1, 44.0, 64.9, 66.6, 63.2, 44.2, 45.9, 44.6, 43.8];
        let modes = bimodal(&one).unwrap();
        let with = |other: [f64; 10]| {
            let pairs: Vec<(f64, f64)> = one.into_iter().zip(other).collect();
            modes.are_levels_of_pairs(&pairs)
        };
        let other = [18.0, 11.1, 11.0, 11.1, 15.8, 16.8, 11.6, 11.5, 11.1, 11.0];
        assert!(with(other) && !modes.are_also_of(&other));
        assert!(!with([11.1; 10]), "one level");
        assert!(!with([11.1, 11.0, 11.2, 11.1, 11.0, 18.0, 11.1, 11.2, 11.0, 11.1]), "an outlier");
        assert!(!with([11.0, 11.7, 12.4, 13.1, 13.8, 14.5, 15.2, 15.9, 16.6, 17.3]), "a wide spread");
        assert!(!with([0.0; 10]) && !modes.are_levels_of_pairs(&[]));
    }

    #[test]
    fn close_groups_are_not_bimodal() {
        let near = [1.00, 1.01, 1.0, 1.01, 1.15, 1.16, 1.15, 1.16];
        assert_eq!(bimodal(&near), None);
        assert_eq!(
            bimodal(&near.map(|value| if value > 1.1 { value + 0.1 } else { value })),
            Some(Modes { low: 1.005, high: 1.255 })
        );
    }

    #[test]
    fn outliers_and_few_values_are_not_bimodal() {
        let even: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(
            (bimodal(&even), bimodal(&[4.0; 30]), bimodal(&[1.0, 1.0, 1.0, 3.0, 3.0, 3.0])),
            (None, None, None)
        );
        assert_eq!(bimodal(&[1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.02, 9.0, 9.1]), None);
    }

    #[test]
    fn outlier_is_reported_with_index_and_ratio() {
        let mut values = vec![10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 10.1, 9.9];
        assert_eq!(outliers(&values), []);
        values[5] = 16.0;
        assert_eq!(outliers(&values), [], "a block 1.6 times the median is not far from it");
        values[5] = 2.0;
        assert_eq!(outliers(&values), [Outlier { index: 5, ratio_to_median: 0.2 }]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 9.0]), []);
    }

    #[test]
    fn very_many_values_have_groups_and_outliers() {
        let groups: Vec<f64> = (0..200_000).map(|block| f64::from(block % 2 * 4 + 2)).collect();
        assert_eq!(bimodal(&groups), Some(Modes { low: 2.0, high: 6.0 }));
        let far: Vec<f64> = (0..200_000)
            .map(|block| if block % 5 == 0 { 900.0 } else { 9.0 + f64::from(block % 3) })
            .collect();
        let found = outliers(&far);
        assert_eq!(found.len(), 40_000);
        let is_expected =
            |one: &Outlier| one.index.is_multiple_of(5) && (one.ratio_to_median - 90.0).abs() < 1e-9;
        assert!(found.iter().all(is_expected), "{:?}", found[0]);
    }

    #[test]
    fn median_of_others_is_that_without_the_value() {
        let ascending = [1.0, 2.0, 4.0, 8.0, 16.0];
        let medians = [6.0, 6.0, 5.0, 3.0, 3.0];
        for (place, expected) in medians.into_iter().enumerate() {
            assert_eq!(median_of_others(&ascending, place), Some(expected), "without {}", ascending[place]);
        }
        assert_eq!(median_of_others(&ascending[..4], 0), Some(4.0));
        assert_eq!(median_of_others(&[1.0], 0), None);
    }

    #[test]
    fn small_value_is_an_outlier_among_values_with_a_wide_spread() {
        let mut values = vec![2.9, 2.4, 3.4, 2.7, 3.1, 2.2, 3.6, 2.8, 3.0, 2.5];
        assert_eq!(outliers(&values), []);
        values[7] = 0.0051;
        let found = outliers(&values);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].index == 7 && found[0].ratio_to_median < 0.002, "{found:?}");
        values[7] = 0.9;
        assert_eq!(outliers(&values), [], "a third of the others is within the noise of such values");
    }

    #[test]
    fn one_different_value_among_enough_equal_ones_is_an_outlier() {
        let mut values = vec![3.0; 40];
        assert_eq!(outliers(&values), []);
        values[7] = 7.5;
        assert_eq!(outliers(&values), [Outlier { index: 7, ratio_to_median: 2.5 }]);
    }
}
