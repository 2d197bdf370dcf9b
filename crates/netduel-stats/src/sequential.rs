//! When to stop adding blocks: once every interval is as narrow as asked, or the budget ends.
//!
//! The rule looks at widths and never at effects, so it cannot stop because a difference happens to show. Still, blocks that
//! agree by chance stop early with an interval too narrow: misses become up to 1.4 times as frequent. [`guarded`] makes up
//! for it. Both were simulated; see `docs/design/0002-statistics.md`.
use crate::paired::{Estimate, Scale};

/// Fewest blocks before the rule may stop a run. Below 6 there is no 95 % interval at all; a few more blocks
/// keep the first looks, which are the risky ones, from being taken for luck.
pub const MINIMUM_BLOCKS: u32 = 8;

/// How much of the chance to miss is left to each interval of a run that may stop on width. By simulation: 3.5 % asked, 5.0 %
/// seen in the worst of six cases.
const GUARD: f64 = 0.7;

/// The confidence to ask of the intervals and verdicts of a run that may stop on width, so that they hold at `confidence`: 0.965
/// for 0.95. Costs about a sixth more blocks for the same width. A run of a fixed number of blocks does not need it.
pub fn guarded(confidence: f64) -> f64 {
    1.0 - GUARD * (1.0 - confidence)
}

/// Half the width of the interval: as a fraction of the centre for a ratio, in the unit of the figures for a difference.
/// Infinite when the pairs allow no interval.
pub fn half_width(estimate: &Estimate, scale: Scale) -> f64 {
    let half = estimate.high / 2.0 - estimate.low / 2.0;
    match scale {
        Scale::Ratio => half / estimate.centre,
        Scale::Difference => half,
    }
}

/// Whether the interval is as narrow as asked: half its width at most `precision`, a fraction of the centre for a ratio, in
/// the unit of the figures for a difference.
pub fn precise_enough(estimate: &Estimate, scale: Scale, precision: f64) -> bool {
    half_width(estimate, scale) <= precision
}

/// Bounds of the number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Never stop before; [`MINIMUM_BLOCKS`] is sound.
    pub minimum: u32,
    /// Always stop then.
    pub maximum: u32,
}

/// What to do after a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Run another block.
    GoOn,
    /// Every interval is as narrow as asked.
    Precise,
    /// The most blocks allowed have been run.
    BudgetSpent,
}

/// One comparison that must become precise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The estimate so far; absent without a usable pair, and then not precise.
    pub estimate: Option<Estimate>,
    /// Its scale.
    pub scale: Scale,
    /// Half-width asked: a fraction of the centre for a ratio, in the unit of the figures for a difference.
    pub precision: f64,
}

/// What to do after `done` blocks. Without goals only the maximum stops a run.
pub fn next(done: u32, blocks: Blocks, goals: &[Goal]) -> Next {
    let precise = |goal: &Goal| {
        goal.estimate.is_some_and(|estimate| precise_enough(&estimate, goal.scale, goal.precision))
    };
    if done >= blocks.minimum && !goals.is_empty() && goals.iter().all(precise) {
        Next::Precise
    } else if done >= blocks.maximum {
        Next::BudgetSpent
    } else {
        Next::GoOn
    }
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

    #[test]
    fn a_run_stops_when_all_are_precise_or_the_budget_ends() {
        let blocks = Blocks { minimum: 8, maximum: 20 };
        let narrow = Goal { estimate: Some(interval(0.99, 1.0, 1.01)), scale: Scale::Ratio, precision: 0.02 };
        let wide = Goal { precision: 0.001, ..narrow };
        let unknown = Goal { estimate: None, ..narrow };
        for (done, goals, expected) in [
            (7, &[narrow][..], Next::GoOn),
            (8, &[narrow], Next::Precise),
            (8, &[narrow, wide], Next::GoOn),
            (20, &[narrow, wide], Next::BudgetSpent),
            (20, &[narrow], Next::Precise),
            (19, &[narrow, unknown], Next::GoOn),
            (19, &[], Next::GoOn),
            (20, &[], Next::BudgetSpent),
        ] {
            assert_eq!(next(done, blocks, goals), expected, "after {done} with {goals:?}");
        }
    }
}
