//! Comparison of two arms within blocks: one estimate with its interval from pairs of values.
//!
//! A pair is the values of baseline and arm in the same block, so that influences on both cancel out. This module does not judge;
//! see [`crate::verdict`].
//!
//! Zeros and ties: a pair without a difference, and Walsh averages exactly at "no difference", count against a difference on both
//! sides. The interval is closed and so covers at least its nominal level (Noether 1967: with ties broken at random by an
//! arbitrarily small amount, the interval lies within this one).
use netduel_model::metric::Scale;

use crate::rank_interval::RankStatistic;
use crate::signed_rank::Walsh;

/// Log ratios closer to a bound than this are equal to it: the resolution of floating-point logarithms.
const LOG_RESOLUTION: f64 = 1e-12;

/// The value that means no difference: 1 or 0.
pub(crate) fn no_difference(scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => 1.0,
        Scale::Difference => 0.0,
    }
}

/// Contributions to a rank statistic closer to a point than this are equal to it.
pub(crate) fn resolution(scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => LOG_RESOLUTION,
        Scale::Difference => 0.0,
    }
}

/// The difference of a pair on the scale that is symmetric under exchange of the arms; absent when it has none.
fn symmetric(scale: Scale, (baseline, arm): (f64, f64)) -> Option<f64> {
    let difference = match scale {
        Scale::Ratio if baseline <= 0.0 || arm <= 0.0 => return None,
        // Not the logarithm of the quotient: this changes only its sign when the arms are exchanged.
        Scale::Ratio => arm.ln() - baseline.ln(),
        Scale::Difference => arm - baseline,
    };
    difference.is_finite().then_some(difference)
}

/// From the symmetric scale back to ratios or differences.
fn shown(scale: Scale, symmetric: f64) -> f64 {
    match scale {
        Scale::Ratio => symmetric.exp(),
        Scale::Difference => symmetric,
    }
}

/// An effect with its interval: ratios for [`Scale::Ratio`], the unit of the values for [`Scale::Difference`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Number of pairs; for two samples the size of the smaller one.
    pub n: usize,
    /// Hodges-Lehmann estimate: the median of the means of all pairs of differences; for two samples the median of the differences
    /// between all values of one and the other.
    pub centre: f64,
    /// Lower end of the interval, inclusive; 0 (ratio) or negative infinity when there are too few values.
    pub low: f64,
    /// Upper end, inclusive; infinity when there are too few values.
    pub high: f64,
    /// Coverage probability of the interval, a fraction, at least the requested one. Ranks are discrete: with 8 pairs and a
    /// requested level of 0.95 it is 0.961.
    pub confidence: f64,
    /// Two-sided p value: one minus the largest confidence at which the interval excludes "no difference".
    pub p_value: f64,
}

impl Estimate {
    /// Whether the interval excludes "no difference".
    pub fn excludes_no_difference(&self, scale: Scale) -> bool {
        self.low > no_difference(scale) || self.high < no_difference(scale)
    }

    /// Whether the interval lies strictly within the margin: between 1/(1 + margin) and 1 + margin for a ratio, which is
    /// symmetric for logarithms; between -margin and +margin for a difference.
    pub fn lies_within(&self, scale: Scale, margin: f64) -> bool {
        match scale {
            Scale::Ratio => self.low > 1.0 / (1.0 + margin) && self.high < 1.0 + margin,
            Scale::Difference => self.low > -margin && self.high < margin,
        }
    }
}

/// A rank statistic on the symmetric scale, for more than one interval.
pub(crate) struct Evidence<S> {
    pub(crate) statistic: S,
    pub(crate) scale: Scale,
}

impl Evidence<Walsh> {
    /// Of pairs `(baseline, arm)`.
    pub(crate) fn of_pairs(pairs: &[(f64, f64)], scale: Scale) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().filter_map(|&pair| symmetric(scale, pair)).collect();
        Some(Self { statistic: Walsh::new(&differences, resolution(scale))?, scale })
    }
}

impl<S: RankStatistic> Evidence<S> {
    pub(crate) fn p_value(&self) -> f64 {
        (2.0 * self.statistic.evidence_above(0.0).min(self.statistic.evidence_below(0.0))).min(1.0)
    }

    /// Evidence for "no difference larger than the margin": the larger of the two one-sided p values. `margin` is on the
    /// symmetric scale.
    pub(crate) fn equivalence_p_value(&self, margin: f64) -> f64 {
        self.statistic.evidence_above(-margin).max(self.statistic.evidence_below(margin))
    }

    pub(crate) fn estimate(&self, confidence: f64) -> Estimate {
        let (low, high) = self.statistic.interval((1.0 - confidence) / 2.0);
        Estimate {
            n: self.statistic.n(),
            centre: shown(self.scale, self.statistic.centre()),
            low: shown(self.scale, low),
            high: shown(self.scale, high),
            confidence,
            p_value: self.p_value(),
        }
    }
}

/// The effect of the arm against the baseline from pairs `(baseline, arm)`, one per block: Hodges-Lehmann estimate and Wilcoxon
/// signed-rank interval, on logarithms for a ratio. A pair that is not finite, or for a ratio not positive, is excluded; see
/// [`dropped`]. Absent when no pair is left or `confidence` is not between 0 and 1.
pub fn estimate(pairs: &[(f64, f64)], scale: Scale, confidence: f64) -> Option<Estimate> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    Some(Evidence::of_pairs(pairs, scale)?.estimate(confidence))
}

/// Pairs that [`estimate`] excludes.
pub fn dropped(pairs: &[(f64, f64)], scale: Scale) -> usize {
    pairs.iter().filter(|&&pair| symmetric(scale, pair).is_none()).count()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the expected figures are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratios_and_differences_match_a_manual_calculation() {
        let doubled: Vec<_> = (1..=6).map(|block| (f64::from(block), 2.0 * f64::from(block))).collect();
        let ratio = estimate(&doubled, Scale::Ratio, 0.95).unwrap();
        for value in [ratio.centre, ratio.low, ratio.high] {
            assert!((value - 2.0).abs() < 1e-12, "{ratio:?}");
        }
        assert_eq!((ratio.n, ratio.p_value), (6, 2.0 / 64.0));
        // Differences 1 to 6: averages from 1 to 6 with median 3.5, and one of 21 may lie outside each end.
        let difference = estimate(&doubled, Scale::Difference, 0.95).unwrap();
        assert_eq!((difference.centre, difference.low, difference.high), (3.5, 1.0, 6.0));
    }

    #[test]
    fn few_pairs_have_an_estimate_without_an_interval() {
        let pairs = [(1.0, 2.0); 5];
        let ratio = estimate(&pairs, Scale::Ratio, 0.95).unwrap();
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
        assert!((ratio.centre - 2.0).abs() < 1e-12);
        let difference = estimate(&pairs, Scale::Difference, 0.95).unwrap();
        assert_eq!(
            (difference.low, difference.centre, difference.high),
            (f64::NEG_INFINITY, 1.0, f64::INFINITY)
        );
        // 15 in 16 is the highest confidence of five pairs.
        assert_eq!(estimate(&pairs, Scale::Difference, 0.9375).unwrap().low, 1.0);
    }

    #[test]
    fn pairs_without_a_ratio_are_dropped_and_counted() {
        let pairs = [(1.0, 2.0), (0.0, 1.0), (1.0, 0.0), (-1.0, -2.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)];
        assert_eq!(estimate(&pairs, Scale::Ratio, 0.5).unwrap().n, 1);
        assert_eq!((dropped(&pairs, Scale::Ratio), dropped(&pairs, Scale::Difference)), (5, 2));
        assert_eq!(estimate(&pairs[1..], Scale::Ratio, 0.95), None);
        assert_eq!(estimate(&[], Scale::Difference, 0.95), None);
        for confidence in [0.0, 1.0, f64::NAN] {
            assert_eq!(estimate(&pairs, Scale::Ratio, confidence), None);
        }
    }

    #[test]
    fn two_thousand_pairs_are_supported() {
        // Odd multiples of an irrational step fill the unit interval evenly: symmetric about one half.
        let pairs: Vec<_> =
            (0..2000).map(|index| (1.0, (f64::from(index) * 0.618_033_988_75).fract())).collect();
        let estimate = estimate(&pairs, Scale::Difference, 0.95).unwrap();
        // For a uniform distribution the standard error is that of the mean.
        let half_width = 1.96 * (1.0 / 12.0_f64 / 2000.0).sqrt();
        assert!((estimate.centre + 0.5).abs() < 0.001, "{estimate:?}");
        assert!(((estimate.high - estimate.low) / 2.0 / half_width - 1.0).abs() < 0.1, "{estimate:?}");
    }

    fn figures() -> impl Strategy<Value = Vec<(f64, f64)>> {
        proptest::collection::vec((0.5..2.0_f64, 0.5..2.0_f64), 1..40)
    }

    proptest! {
        #[test]
        fn changing_places_turns_the_effect_over(pairs in figures()) {
            let turned: Vec<_> = pairs.iter().map(|&(baseline, arm)| (arm, baseline)).collect();
            let (one, other) = (estimate(&pairs, Scale::Ratio, 0.9).unwrap(), estimate(&turned, Scale::Ratio, 0.9).unwrap());
            prop_assert!((one.centre * other.centre - 1.0).abs() < 1e-12);
            prop_assert!(one.low == 0.0 || (one.low * other.high - 1.0).abs() < 1e-12);
            prop_assert_eq!(one.p_value, other.p_value);
        }

        #[test]
        fn the_unit_does_not_matter_to_a_ratio_nor_the_order_of_blocks(pairs in figures(), unit in 1e-9..1e9_f64) {
            let mut scaled: Vec<_> = pairs.iter().map(|&(baseline, arm)| (baseline * unit, arm * unit)).collect();
            scaled.reverse();
            let (one, other) = (estimate(&pairs, Scale::Ratio, 0.95).unwrap(), estimate(&scaled, Scale::Ratio, 0.95).unwrap());
            prop_assert!((one.centre / other.centre - 1.0).abs() < 1e-9);
            prop_assert!(one.low == 0.0 && other.low == 0.0 || (one.low / other.low - 1.0).abs() < 1e-9);
        }

        #[test]
        fn p_value_and_interval_agree(pairs in figures(), scale in prop_oneof![Just(Scale::Ratio), Just(Scale::Difference)], confidence in 0.5..0.999_f64) {
            let estimate = estimate(&pairs, scale, confidence).unwrap();
            prop_assert!(estimate.low <= estimate.centre && estimate.centre <= estimate.high);
            prop_assert_eq!(estimate.excludes_no_difference(scale), estimate.p_value <= 1.0 - confidence);
        }
    }
}
