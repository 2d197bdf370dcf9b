//! Comparison of two independent samples: one estimate with its interval from values that no block pairs, such as the trials of two
//! runs.
//!
//! The samples may differ in size. This module does not judge; see [`crate::verdict`].
//!
//! Ties: values of the two samples that are equal, and differences exactly at "no difference", count against a difference on both
//! sides, as in [`crate::paired`].
use netduel_model::metric::Scale;

use crate::paired::{Estimate, Evidence, resolution};
use crate::rank_sum::{self, Shifts};

/// A value on the scale on which the samples differ by a shift; absent when it has none there.
fn symmetric(scale: Scale, value: f64) -> Option<f64> {
    let value = match scale {
        Scale::Ratio if value <= 0.0 => return None,
        Scale::Ratio => value.ln(),
        Scale::Difference => value,
    };
    value.is_finite().then_some(value)
}

impl Evidence<Shifts> {
    /// Of two samples.
    pub(crate) fn of_samples(baseline: &[f64], arm: &[f64], scale: Scale) -> Option<Self> {
        let [baseline, arm] = [baseline, arm]
            .map(|values| values.iter().filter_map(|&value| symmetric(scale, value)).collect::<Vec<f64>>());
        Some(Self { statistic: Shifts::new(&baseline, &arm, resolution(scale))?, scale })
    }
}

/// The effect of the arm against the baseline from two independent samples: two-sample Hodges-Lehmann estimate and the interval of the
/// Mann-Whitney test, on logarithms for a ratio. A value that is not finite, or for a ratio not positive, is excluded; see
/// [`dropped`]. Absent when a sample has no value left or `confidence` is not between 0 and 1.
pub fn estimate(baseline: &[f64], arm: &[f64], scale: Scale, confidence: f64) -> Option<Estimate> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    Some(Evidence::of_samples(baseline, arm, scale)?.estimate(confidence))
}

/// The number of values that each of two samples needs at least before [`estimate`] has an interval with ends at this confidence: with fewer,
/// not even samples of which one lies wholly above the other differ significantly. A sample that has more keeps them. Absent when the sizes are
/// enough, and for a confidence that 100 values do not reach.
pub fn values_needed(sizes: [usize; 2], confidence: f64) -> Option<usize> {
    rank_sum::values_needed(sizes, (1.0 - confidence) / 2.0)
}

/// Values of a sample that [`estimate`] excludes.
pub fn dropped(values: &[f64], scale: Scale) -> usize {
    values.iter().filter(|&&value| symmetric(scale, value).is_none()).count()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the expected figures are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratios_and_differences_match_a_manual_calculation() {
        // Differences 7, 8, 8, 9, 9, 9, 10, 10, 11. In one of 20 orders of the values none of them is below 0.
        let difference = estimate(&[1.0, 2.0, 3.0], &[10.0, 11.0, 12.0], Scale::Difference, 0.9).unwrap();
        assert_eq!((difference.n, difference.centre), (3, 9.0));
        assert_eq!((difference.low, difference.high, difference.p_value), (7.0, 11.0, 0.1));
        let ratio = estimate(&[1.0, 2.0, 4.0], &[10.0, 20.0, 40.0], Scale::Ratio, 0.9).unwrap();
        for (seen, expected) in [(ratio.centre, 10.0), (ratio.low, 2.5), (ratio.high, 40.0)] {
            assert!((seen / expected - 1.0).abs() < 1e-12, "{ratio:?}");
        }
        // One of the nine ratios is below 1; so few or fewer are in 2 of 20 orders.
        let near = estimate(&[1.0, 2.0, 11.0], &[10.0, 20.0, 40.0], Scale::Ratio, 0.5).unwrap();
        assert_eq!(near.p_value, 0.2);
    }

    #[test]
    fn few_values_have_an_estimate_without_an_interval() {
        let ratio = estimate(&[1.0; 3], &[2.0; 3], Scale::Ratio, 0.95).unwrap();
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
        assert!((ratio.centre - 2.0).abs() < 1e-12);
        let difference = estimate(&[1.0; 3], &[2.0; 3], Scale::Difference, 0.95).unwrap();
        assert_eq!(
            (difference.low, difference.centre, difference.high),
            (f64::NEG_INFINITY, 1.0, f64::INFINITY)
        );
        // 2 in 70 orders: four values each are enough.
        assert_eq!(estimate(&[1.0; 4], &[2.0; 4], Scale::Difference, 0.95).unwrap().low, 1.0);
    }

    #[test]
    fn needed_values_are_those_of_the_least_probable_order() {
        for (sizes, confidence, needed) in [
            // One sample is wholly above the other in 2 of 20, 70, 252 and 924 orders of twice 3, 4, 5 and 6 values.
            ([3, 3], 0.95, Some(4)),
            ([1, 2], 0.95, Some(4)),
            ([4, 4], 0.95, None),
            ([3, 3], 0.99, Some(5)),
            ([3, 3], 0.995, Some(6)),
            // Of 3 and 8 values in 2 of 165, of 4 and 8 in 2 of 495.
            ([3, 8], 0.95, None),
            ([8, 3], 0.99, Some(4)),
            // More than 100 values: the approximation does not have the exact 2 of 201.
            ([1, 200], 0.95, Some(2)),
            ([3, 3], 1.0, None),
        ] {
            assert_eq!(values_needed(sizes, confidence), needed, "{sizes:?} at {confidence}");
        }
    }

    #[test]
    fn values_without_a_ratio_are_dropped_and_counted() {
        let values = [1.0, 0.0, -1.0, f64::NAN, f64::INFINITY];
        assert_eq!((dropped(&values, Scale::Ratio), dropped(&values, Scale::Difference)), (4, 2));
        assert_eq!(estimate(&values, &[2.0, 2.0], Scale::Ratio, 0.5).unwrap().n, 1);
        assert_eq!(estimate(&values[1..], &[2.0], Scale::Ratio, 0.5), None);
        assert_eq!(estimate(&[1.0], &[], Scale::Difference, 0.5), None);
        for confidence in [0.0, 1.0, f64::NAN] {
            assert_eq!(estimate(&[1.0], &[2.0], Scale::Ratio, confidence), None);
        }
    }

    fn sample() -> impl Strategy<Value = Vec<f64>> {
        proptest::collection::vec(0.5..2.0_f64, 1..30)
    }

    proptest! {
        #[test]
        fn changing_places_turns_the_effect_over(baseline in sample(), arm in sample()) {
            let one = estimate(&baseline, &arm, Scale::Ratio, 0.9).unwrap();
            let other = estimate(&arm, &baseline, Scale::Ratio, 0.9).unwrap();
            prop_assert!((one.centre * other.centre - 1.0).abs() < 1e-12);
            prop_assert!(one.low == 0.0 || (one.low * other.high - 1.0).abs() < 1e-12);
            prop_assert_eq!(one.p_value, other.p_value);
        }

        #[test]
        fn the_unit_does_not_matter_to_a_ratio_nor_the_order_of_trials(baseline in sample(), arm in sample(), unit in 1e-9..1e9_f64) {
            let [scaled_baseline, scaled_arm] =
                [&baseline, &arm].map(|values| values.iter().rev().map(|value| value * unit).collect::<Vec<_>>());
            let one = estimate(&baseline, &arm, Scale::Ratio, 0.95).unwrap();
            let other = estimate(&scaled_baseline, &scaled_arm, Scale::Ratio, 0.95).unwrap();
            prop_assert!((one.centre / other.centre - 1.0).abs() < 1e-9);
            prop_assert!(one.low == 0.0 && other.low == 0.0 || (one.low / other.low - 1.0).abs() < 1e-9);
        }

        #[test]
        fn factor_on_one_sample_multiplies_the_effect(baseline in sample(), arm in sample(), factor in 0.1..10.0_f64) {
            let multiplied: Vec<f64> = arm.iter().map(|value| value * factor).collect();
            let one = estimate(&baseline, &arm, Scale::Ratio, 0.9).unwrap();
            let other = estimate(&baseline, &multiplied, Scale::Ratio, 0.9).unwrap();
            prop_assert!((one.centre * factor / other.centre - 1.0).abs() < 1e-9);
            prop_assert!(one.high.is_infinite() || (one.high * factor / other.high - 1.0).abs() < 1e-9);
        }

        #[test]
        fn interval_has_ends_from_the_needed_values_on(
            one in 1..70_usize,
            other in 1..70_usize,
            confidence in 0.5..0.9999_f64,
        ) {
            let is_bounded = |at_least: usize| {
                let values = |size: usize| (0..size.max(at_least)).map(|place| place as f64).collect::<Vec<_>>();
                estimate(&values(one), &values(other), Scale::Difference, confidence).unwrap().high.is_finite()
            };
            match values_needed([one, other], confidence) {
                None => prop_assert!(is_bounded(0)),
                Some(needed) => prop_assert!(is_bounded(needed) && !is_bounded(needed - 1)),
            }
        }

        #[test]
        fn p_value_and_interval_agree(
            baseline in sample(),
            arm in sample(),
            scale in prop_oneof![Just(Scale::Ratio), Just(Scale::Difference)],
            confidence in 0.5..0.999_f64,
        ) {
            let estimate = estimate(&baseline, &arm, scale, confidence).unwrap();
            prop_assert!(estimate.low <= estimate.centre && estimate.centre <= estimate.high);
            prop_assert_eq!(estimate.excludes_no_difference(scale), estimate.p_value <= 1.0 - confidence);
        }
    }
}
