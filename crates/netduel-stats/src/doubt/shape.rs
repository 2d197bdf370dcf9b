//! Doubts about the shape of a set: two separated groups, single values far away.
use super::values::{finite, sorted};
use crate::summary::{median, quantile_of_sorted};

/// Minimum number of values for two groups.
const FEWEST_FOR_GROUPS: usize = 8;

/// A group has at least this share of the values, and three of them; fewer are outliers.
const SMALLEST_GROUP: f64 = 0.15;

/// How far apart the groups must be, in root-mean-square spreads of the two (Ashman, Bird and Zepf 1994 call 2 separated for
/// known groups). Cut at the best place a normal distribution has 2.6 and a uniform one 3.5; samples of few values
/// reach further by accident, hence the term that falls with their number. Set by simulation of whole runs: a report asks
/// this of every arm and metric.
fn apart_at_least(n: usize) -> f64 {
    5.3 + 38.0 / n as f64
}

/// The upper group must be at least this many times the lower one. Groups that are nearer are real at times, and change no
/// conclusion.
const APART_TIMES: f64 = 1.2;

/// At most this share of the values may lie in the middle half of the way between the groups' medians.
const VALLEY_AT_MOST: f64 = 0.05;

/// How many robust standard deviations make an outlier. Set by simulation of whole runs: skewed and heavy-tailed noise, as
/// latencies have it, reaches 20 in one run of twenty without any cause.
const FAR_DEVIATIONS: f64 = 26.0;

/// An outlier is at least this many times the median of the others, or at most its inverse. A block that is nearer moves no
/// estimate, which is a median of pairs.
const FAR_TIMES: f64 = 1.5;

/// From the median absolute deviation to the standard deviation of a normal distribution.
const PER_MEDIAN_DEVIATION: f64 = 1.482_6;

/// From the mean absolute deviation to the same.
const PER_MEAN_DEVIATION: f64 = 1.253_3;

/// Minimum number of values for outliers.
const FEWEST_FOR_OUTLIERS: usize = 5;

/// The medians of two groups, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Of the lower group.
    pub low: f64,
    /// Of the upper group.
    pub high: f64,
}

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its place in the values given.
    pub index: usize,
    /// The value over the median of the others.
    pub ratio_to_median: f64,
}

/// Whether at least 8 values fall into two separated groups: cut where the squares within the groups are least, each group with
/// 15 % of the values and three at least, the groups far apart for their spread and by 20 %, and next to nothing between
/// them. Takes the square of their number in time.
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

/// Where to cut sorted values in two so that the squares about the means of the parts are least.
fn best_cut(sorted: &[f64], smallest: usize) -> Option<usize> {
    let squares = |cut: usize| {
        let (lower, upper) = sorted.split_at(cut);
        moments(lower).1 + moments(upper).1
    };
    (smallest..=sorted.len().checked_sub(smallest)?)
        .min_by(|&one, &other| squares(one).total_cmp(&squares(other)))
}

/// Mean, and sum of squares about it.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum())
}

/// Values further from the median than 26 robust standard deviations (1.4826 times the median absolute deviation, or when more
/// than half of the values are equal 1.2533 times the mean one) that are also 1.5 times the median of the others, or less than
/// its inverse; of at least 5 values.
pub fn outliers(values: &[f64]) -> Vec<Outlier> {
    let n = values.len();
    let Some(centre) = median(values).filter(|_| n >= FEWEST_FOR_OUTLIERS) else { return Vec::new() };
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let typical = median(&distances).filter(|&typical| typical > 0.0).map_or_else(
        || PER_MEAN_DEVIATION * distances.iter().sum::<f64>() / n as f64,
        |typical| PER_MEDIAN_DEVIATION * typical,
    );
    let far = |&(_, distance): &(usize, &f64)| *distance > FAR_DEVIATIONS * typical;
    let material = |outlier: &Outlier| !(1.0 / FAR_TIMES..=FAR_TIMES).contains(&outlier.ratio_to_median);
    distances
        .iter()
        .enumerate()
        .filter(far)
        .filter_map(|(index, _)| {
            let others = [&values[..index], &values[index + 1..]].concat();
            Some(Outlier { index, ratio_to_median: values[index] / median(&others)? })
        })
        .filter(material)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_are_found_with_their_centres() {
        let placed = [5.9, 2.1, 6.0, 2.0, 6.1, 6.0, 1.9, 5.8, 6.2, 2.0];
        assert_eq!(bimodal(&placed), Some(Modes { low: 2.0, high: 6.0 }));
        let constant = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0];
        assert_eq!(bimodal(&constant), Some(Modes { low: 1.0, high: 3.0 }));
    }

    #[test]
    fn groups_that_are_near_for_their_size_are_one() {
        let near = [1.00, 1.01, 1.0, 1.01, 1.15, 1.16, 1.15, 1.16];
        assert_eq!(bimodal(&near), None);
        assert_eq!(
            bimodal(&near.map(|value| if value > 1.1 { value + 0.1 } else { value })),
            Some(Modes { low: 1.005, high: 1.255 })
        );
    }

    #[test]
    fn one_group_an_outlier_or_too_few_are_not_two_groups() {
        let even: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(
            (bimodal(&even), bimodal(&[4.0; 30]), bimodal(&[1.0, 1.0, 1.0, 3.0, 3.0, 3.0])),
            (None, None, None)
        );
        assert_eq!(bimodal(&[1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.02, 9.0, 9.1]), None);
    }

    #[test]
    fn an_outlier_is_named_with_its_place_and_size() {
        let mut values = vec![10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 10.1, 9.9];
        assert_eq!(outliers(&values), []);
        values[5] = 13.0;
        assert_eq!(outliers(&values), [], "a block 1.3 times the median is not far from it");
        values[5] = 2.0;
        assert_eq!(outliers(&values), [Outlier { index: 5, ratio_to_median: 0.2 }]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 9.0]), []);
    }

    #[test]
    fn equal_values_with_one_other_have_an_outlier_once_there_are_enough_of_them() {
        let mut values = vec![3.0; 40];
        assert_eq!(outliers(&values), []);
        values[7] = 6.0;
        assert_eq!(outliers(&values), [Outlier { index: 7, ratio_to_median: 2.0 }]);
    }
}
