//! Warnings about the level within a trial: flat as under a rate cap, or one fall as behind a token bucket.
//!
//! A series is one rate per interval, in order, of intervals of about equal length.
use super::values::{finite, sorted};
use crate::summary::quantile_of_sorted;

/// Minimum number of intervals of a flat series.
const FEWEST_FOR_PLATEAU: usize = 10;

/// Share of the intervals of a flat series within [`FLAT_WITHIN`] of the median. The rest may be a stall or two.
const FLAT_SHARE: f64 = 0.9;

/// Tolerance as a fraction of the median. A policer with intervals of 100 ms stays within 1 %; TCP that fills a path exceeds 5 %.
const FLAT_WITHIN: f64 = 0.02;

/// Minimum number of intervals on each side of a fall.
const FEWEST_ASIDE: usize = 4;

/// Minimum ratio of the level before to the level after.
const LEAST_FALL: f64 = 1.2;

/// On either side, the middle 80 % of the rates span at most this share of the fall. A linear decline has 0.8.
const STEADY_ASIDE: f64 = 0.4;

/// A fall from one level to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Median rate before, in the unit of the series.
    pub before: f64,
    /// Median rate after.
    pub after: f64,
    /// Index of the first interval after the fall.
    pub at: usize,
}

/// The level of a flat series: the median of at least 10 rates if it is positive and 90 % of them are within 2 % of it.
pub fn plateau(series: &[f64]) -> Option<f64> {
    if series.len() < FEWEST_FOR_PLATEAU || !finite(series) {
        return None;
    }
    let level = quantile_of_sorted(&sorted(series), 0.5);
    let flat = series.iter().filter(|&&rate| (rate - level).abs() <= FLAT_WITHIN * level).count();
    (level > 0.0 && flat as f64 >= FLAT_SHARE * series.len() as f64).then_some(level)
}

/// One lasting fall of the level by at least a sixth, with steady rates of at least 4 intervals on both sides. A slow decline, a
/// dip that recovers and a rise do not count.
pub fn burst(series: &[f64]) -> Option<Burst> {
    if !finite(series) {
        return None;
    }
    let at = best_step(series)?;
    let (earlier, later) = (sorted(&series[..at]), sorted(&series[at..]));
    let (before, after) = (quantile_of_sorted(&earlier, 0.5), quantile_of_sorted(&later, 0.5));
    let steady = |side: &[f64]| {
        quantile_of_sorted(side, 0.9) - quantile_of_sorted(side, 0.1) <= STEADY_ASIDE * (before - after)
    };
    (after > 0.0 && before >= LEAST_FALL * after && steady(&earlier) && steady(&later)).then_some(Burst {
        before,
        after,
        at,
    })
}

/// The split at which the means before and after explain most of the variance.
fn best_step(series: &[f64]) -> Option<usize> {
    let total: f64 = series.iter().sum();
    let n = series.len() as f64;
    let mut best: Option<(f64, usize)> = None;
    let mut earlier = 0.0;
    for (index, rate) in series.iter().enumerate() {
        // The sum of squares between the sides, times n: the fall of the mean weighted with the lengths.
        let (left, right) = (index as f64, n - index as f64);
        let fall = earlier / left - (total - earlier) / right;
        let explained = left * right * fall * fall;
        let allowed = index >= FEWEST_ASIDE && series.len() - index >= FEWEST_ASIDE && fall > 0.0;
        if allowed && best.is_none_or(|(most, _)| explained > most) {
            best = Some((explained, index));
        }
        earlier += rate;
    }
    best.map(|(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_series_tolerates_a_stall() {
        let mut series: Vec<f64> = (0..30).map(|step| 1e9 + 5e6 * f64::from(step % 3)).collect();
        assert_eq!(plateau(&series), Some(1.005e9));
        series[4] = 0.0;
        series[20] = 2e9;
        assert!(plateau(&series).is_some());
        let uneven: Vec<f64> = (0..30).map(|step| 1e9 + 3e7 * f64::from(step % 3)).collect();
        assert_eq!((plateau(&uneven), plateau(&[0.0; 30]), plateau(&series[..9])), (None, None, None));
    }

    #[test]
    fn fall_to_a_lower_level_is_located() {
        let mut series = vec![10.0, 9.8, 10.1, 10.0, 9.9, 10.0, 5.0, 5.1, 4.9, 5.0, 5.0, 5.1, 5.0, 4.9];
        let fall = burst(&series).unwrap();
        assert_eq!((fall.at, fall.before, fall.after), (6, 10.0, 5.0));
        series.reverse();
        assert_eq!(burst(&series), None, "a rise is a start-up, not a bucket");
    }

    #[test]
    fn declines_dips_and_noise_are_not_a_burst() {
        let decline: Vec<f64> = (0..40).map(|step| 10.0 - 0.15 * f64::from(step)).collect();
        let dip: Vec<f64> = (0..40).map(|step| if (15..25).contains(&step) { 5.0 } else { 10.0 }).collect();
        let sawtooth: Vec<f64> = (0..40).map(|step| 5.0 + f64::from(step % 8)).collect();
        let slight: Vec<f64> = (0..40).map(|step| if step < 20 { 10.0 } else { 9.0 }).collect();
        for series in
            [&decline[..], &dip, &sawtooth, &slight, &[], &[10.0, 10.0, 10.0, 5.0, 5.0, 5.0], &[0.0; 20]]
        {
            assert_eq!(burst(series), None, "{series:?}");
        }
    }
}
