//! Sequential stop: when an interval is narrow enough to stop adding blocks.
//!
//! The rule reads widths, so it does not stop because a difference happens to appear. The level of an interval is that of its verdict,
//! and the width of a ratio is relative to the estimate: the rule is not independent of the effects. Blocks that agree by chance stop
//! early with an interval that is too narrow: misses become up to 1.4 times as frequent. The confidence of a design that may stop
//! early compensates for it (`Design::tested_confidence`). Both were simulated; see `docs/design/0002-statistics.md`.
use netduel_model::metric::Scale;

use crate::paired::Estimate;

/// Half the width of the interval: as a fraction of the centre for a ratio, in the unit of the values for a difference. Infinite
/// when the pairs allow no interval.
pub fn half_width(estimate: &Estimate, scale: Scale) -> f64 {
    let half = estimate.high / 2.0 - estimate.low / 2.0;
    match scale {
        Scale::Ratio => half / estimate.centre,
        Scale::Difference => half,
    }
}

/// Whether the interval is narrow enough: half its width at most `precision`, a fraction of the centre for a ratio, in the unit
/// of the values for a difference.
pub fn precise_enough(estimate: &Estimate, scale: Scale, precision: f64) -> bool {
    half_width(estimate, scale) <= precision
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, centre: f64, high: f64) -> Estimate {
        Estimate { n: 8, centre, low, high, confidence: 0.95, p_value: 0.5 }
    }

    #[test]
    fn width_is_relative_for_a_ratio_and_absolute_for_a_difference() {
        let wide = interval(1.9, 2.0, 2.1);
        assert!(precise_enough(&wide, Scale::Ratio, 0.051) && !precise_enough(&wide, Scale::Ratio, 0.049));
        assert!(
            precise_enough(&wide, Scale::Difference, 0.11) && !precise_enough(&wide, Scale::Difference, 0.09)
        );
        let none = interval(f64::NEG_INFINITY, 0.0, f64::INFINITY);
        assert!(!precise_enough(&none, Scale::Difference, 1e300));
        assert!(!precise_enough(&interval(0.0, 1.0, f64::INFINITY), Scale::Ratio, 1e300));
        assert!(!precise_enough(&wide, Scale::Ratio, f64::NAN));
    }
}
