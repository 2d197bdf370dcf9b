//! Warnings about the order of the blocks: drift, and autocorrelation of successive blocks.
use std::borrow::Cow;

use super::values::{finite, sorted};
use crate::normal;
use crate::summary::median;

/// Significance level. 5 % would cause false warnings in every report with a dozen values.
const LEVEL: f64 = 0.01;

/// A smaller drift over the whole run, as a share of the median, does no harm within blocks, and would print as 0 %.
const MATERIAL_DRIFT: f64 = 0.01;

/// Maximum number of values for Kendall's exact distribution.
const EXACT_UP_TO: usize = 60;

/// Maximum number of values of which each is compared with each: time and memory grow with their square. Of more, as in a run file with any number
/// of blocks, successive ones are joined.
const COMPARED_MAX: usize = 1000;

/// Minimum number of values for a test of autocorrelation at this level.
const FEWEST_FOR_LIKENESS: usize = 10;

/// A drift over the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Change from the first to the last block along the Theil-Sen line, as a fraction of the median; negative for a fall.
    pub change: f64,
    /// Two-sided p value of no trend.
    pub p_value: f64,
}

/// Drift of values in their order: the Mann-Kendall test at 1 %, exact up to 60 values, and a change of at least 1 % of the
/// median. Ties count in neither direction, which makes the exact test conservative. Of more than 1000 values it is that of the medians of
/// groups of successive ones.
pub fn drift(values: &[f64]) -> Option<Drift> {
    if values.len() < 3 || !finite(values) {
        return None;
    }
    let values: &[f64] = &compared(values);
    let (mut score, mut slopes) = (0_i64, Vec::with_capacity(values.len() * (values.len() - 1) / 2));
    for (first, early) in values.iter().enumerate() {
        for (second, late) in values.iter().enumerate().skip(first + 1) {
            score += i64::from(late > early) - i64::from(late < early);
            slopes.push((late - early) / (second - first) as f64);
        }
    }
    let p_value = kendall_p_value(values, score.unsigned_abs() as usize);
    let centre = median(values)?;
    let change = median(&slopes)? * (values.len() - 1) as f64 / centre.abs();
    (p_value <= LEVEL && change.is_finite() && change.abs() >= MATERIAL_DRIFT)
        .then_some(Drift { change, p_value })
}

/// The values, or of too many the medians of groups of successive ones.
fn compared(values: &[f64]) -> Cow<'_, [f64]> {
    let size = values.len().div_ceil(COMPARED_MAX);
    if size > 1 { values.chunks(size).filter_map(median).collect() } else { Cow::Borrowed(values) }
}

/// Probability that concordant pairs outnumber discordant pairs, or the reverse, by at least `excess` in a random order.
fn kendall_p_value(values: &[f64], excess: usize) -> f64 {
    let n = values.len();
    let pairs = n * (n - 1) / 2;
    if n <= EXACT_UP_TO {
        // Each of n values is inserted before 0 to n - 1 of the others with equal probability; the inversions add up.
        let mut inversions = vec![1.0];
        for others in 1..n {
            let mut next = vec![0.0; inversions.len() + others];
            for (count, probability) in inversions.iter().enumerate() {
                for further in 0..=others {
                    next[count + further] += probability / (others + 1) as f64;
                }
            }
            inversions = next;
        }
        let most = (pairs - excess.min(pairs)) / 2;
        return (2.0 * inversions.iter().take(most + 1).sum::<f64>()).min(1.0);
    }
    let spread = |size: usize| (size * (size - 1) * (2 * size + 5)) as f64;
    // In ascending order, "not less" is "equal".
    let ties: f64 = sorted(values).chunk_by(|one, other| one >= other).map(|group| spread(group.len())).sum();
    let deviation = ((spread(n) - ties) / 18.0).sqrt();
    if deviation > 0.0 { 2.0 * normal::cumulative(-(excess as f64 - 1.0).max(0.0) / deviation) } else { 1.0 }
}

/// Lag-1 autocorrelation of the ranks of successive values, from 0 to 1, when it is positive at the 1 % level and there are at
/// least 10 values. Ranks, so that one outlier block neither causes nor hides it. Negative autocorrelation only makes an interval
/// too wide and causes no warning.
pub fn autocorrelation(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < FEWEST_FOR_LIKENESS || !finite(values) {
        return None;
    }
    let ranks = centred_ranks(values);
    let total: f64 = ranks.iter().map(|rank| rank * rank).sum();
    if total == 0.0 {
        return None;
    }
    let lag1 = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / total;
    // Mean and variance for a random order (Moran 1948).
    let count = n as f64;
    let deviation = (count - 2.0) / (count * (count - 1.0).sqrt());
    let p_value = normal::cumulative(-(lag1 + 1.0 / count) / deviation);
    (p_value <= LEVEL && lag1 > 0.0).then_some(lag1)
}

/// Ranks minus their mean; equal values share their mean rank (in ascending order, "not less" is "equal").
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&one, &other| values[one].total_cmp(&values[other]));
    let middle = (values.len() - 1) as f64 / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for group in order.chunk_by(|&one, &other| values[one] >= values[other]) {
        for &index in group {
            ranks[index] = below as f64 + (group.len() - 1) as f64 / 2.0 - middle;
        }
        below += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kendalls_distribution_matches_the_tables() {
        // P(S >= s), Kendall 1970, table 1: n = 4, s = 6 and 4; n = 5, s = 8; n = 8, s = 16; n = 10, s = 21.
        for (n, excess, one_sided) in
            [(4, 6, 0.042), (4, 4, 0.167), (5, 8, 0.042), (8, 16, 0.031), (10, 21, 0.036)]
        {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            assert!(
                (kendall_p_value(&values, excess) / 2.0 - one_sided).abs() < 0.000_6,
                "n = {n}, s = {excess}"
            );
        }
        let sixty: Vec<f64> = (0..60).map(f64::from).collect();
        let more: Vec<f64> = (0..61).map(f64::from).collect();
        assert!((kendall_p_value(&more, 410) / kendall_p_value(&sixty, 400) - 1.0).abs() < 0.05);
    }

    #[test]
    fn drift_is_robust_to_one_outlier() {
        let mut rising: Vec<f64> = (0..11).map(|block| 100.0 + f64::from(block)).collect();
        let drifting = drift(&rising).unwrap();
        assert!((drifting.change - 10.0 / 105.0).abs() < 1e-12 && drifting.p_value < 1e-6, "{drifting:?}");
        rising[2] = 900.0;
        assert!((drift(&rising).unwrap().change - 0.095).abs() < 0.01);
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert!(drift(&falling).unwrap().change < 0.0);
        let slight: Vec<f64> = (0..11).map(|block| 100.0 + 0.01 * f64::from(block)).collect();
        assert_eq!(
            (drift(&slight), drift(&[1.0, 2.0, 3.0]), drift(&[5.0; 20]), drift(&[])),
            (None, None, None, None)
        );
    }

    #[test]
    fn drift_of_very_many_values_is_that_of_their_groups() {
        let rising: Vec<f64> = (0..200_001).map(|block| 1e6 + f64::from(block)).collect();
        let drifting = drift(&rising).unwrap();
        assert!((drifting.change - 0.2 / 1.1).abs() < 0.002 && drifting.p_value < 1e-6, "{drifting:?}");
        let turns: Vec<f64> = (0..200_001).map(|block| f64::from(block % 2)).collect();
        assert_eq!(drift(&turns), None);
    }

    #[test]
    fn slow_waves_are_autocorrelated_and_alternation_is_not() {
        let wave: Vec<f64> = (0..40).map(|block| (f64::from(block) / 4.0).sin()).collect();
        assert!(autocorrelation(&wave).unwrap() > 0.7);
        let turns: Vec<f64> = (0..40).map(|block| f64::from(block % 2)).collect();
        assert_eq!(
            (autocorrelation(&turns), autocorrelation(&[1.0; 40]), autocorrelation(&wave[..9])),
            (None, None, None)
        );
    }

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(centred_ranks(&[7.0, 5.0, 7.0, 9.0]), [0.0, -1.5, 0.0, 1.5]);
    }
}
