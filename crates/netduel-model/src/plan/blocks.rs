//! How many blocks the verdicts of a plan need.
use crate::units::Percent;
use crate::workload::setting::BLOCKS_MOST;

/// Blocks of a plan that names none: enough for an interval.
pub(super) const BLOCKS_MIN: u32 = 8;

/// How much of the chance to miss is left to each interval of a run that may stop on width. By simulation: 3.5 % configured, 5.0 %
/// seen in the worst of six cases (`docs/design/0002-statistics.md`).
const GUARD: f64 = 0.7;

/// The confidence to require of the intervals and verdicts of a run that may stop on width, so that they hold at `confidence`: 0.965
/// for 0.95. It costs about a sixth more blocks for the same width.
pub fn guarded(confidence: f64) -> f64 {
    1.0 - GUARD * (1.0 - confidence)
}

/// Blocks without which not even a difference in every block is evidence enough for the first of `comparisons` verdicts.
/// All blocks agree by chance in 2 of 2^n cases. Holm's procedure requires of the first that this is at most a share of the level.
pub(super) fn blocks_needed(comparisons: usize, confidence: Percent, may_stop_early: bool) -> u32 {
    let tested = if may_stop_early { guarded(confidence.fraction()) } else { confidence.fraction() };
    let level = (1.0 - tested) / comparisons.max(1) as f64;
    if level <= 0.0 {
        return BLOCKS_MIN;
    }
    (1.0 - level.log2()).ceil().min(BLOCKS_MOST as f64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_verdicts_need_more_blocks() {
        for (comparisons, blocks) in [(1, 6), (4, 8), (5, 9), (16, 10)] {
            assert_eq!(blocks_needed(comparisons, Percent(95.0), true), blocks, "{comparisons}");
        }
    }
}
