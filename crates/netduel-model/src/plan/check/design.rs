//! The design: how many blocks, when to stop, how sure to be.
use crate::plan::problem::Problems;
use crate::plan::resolved::{Design, guarded};
use crate::plan::spec::DesignSpec;
use crate::units::Percent;

use super::range;

/// Blocks of a plan that does not say: enough for an interval, and a limit that ends within minutes.
const BLOCKS_MIN: u32 = 8;
const BLOCKS_MAX: u32 = 30;
/// The range of both.
const BLOCKS: (u32, u32) = (2, 10_000);

/// Checks the design and fills in its defaults. `comparisons`: how many verdicts the plan asks for.
pub(super) fn resolve(spec: &DesignSpec, comparisons: usize, problems: &mut Problems<'_>) -> Design {
    let confidence = spec.confidence.unwrap_or(Percent(95.0));
    let enough = BLOCKS_MIN.max(blocks_needed(comparisons, confidence, true));
    let blocks_min = spec.blocks_min.unwrap_or(enough.min(spec.blocks_max.unwrap_or(enough)));
    let blocks_max = spec.blocks_max.unwrap_or(BLOCKS_MAX.max(blocks_min));
    if let Some(blocks) = spec.blocks_min {
        range(problems, "design.blocks_min", blocks, BLOCKS.0, BLOCKS.1);
    }
    if let Some(blocks) = spec.blocks_max {
        range(problems, "design.blocks_max", blocks, BLOCKS.0, BLOCKS.1);
    }
    if blocks_min > blocks_max {
        let wrong = format!("is {blocks_min}, more than blocks_max, which is {blocks_max}");
        problems.add("design.blocks_min", wrong, "blocks_min may be as large as blocks_max");
    }
    if spec.budget.is_some_and(|budget| budget.0 == 0) {
        problems.add("design.budget", "is 0", "more than 0 s; leave `budget` out for no limit");
    }
    let precision = spec.precision.unwrap_or(Percent(5.0));
    let equivalence = spec.equivalence.unwrap_or(Percent(5.0));
    for (path, value) in [("design.precision", precision), ("design.equivalence", equivalence)] {
        if value.0 <= 0.0 || value.0 > 100.0 {
            problems.add(path, format!("is {value}"), "more than 0 %, up to 100 % is allowed");
        }
    }
    range(problems, "design.confidence", confidence, Percent(80.0), Percent(99.9));
    Design {
        blocks_min,
        blocks_max,
        budget: spec.budget,
        precision,
        equivalence,
        confidence,
        seed: spec.seed,
        aa: spec.aa.unwrap_or(false),
    }
}

/// Blocks without which not even a difference in every block is evidence enough for the first of `comparisons` verdicts.
/// All blocks agree by chance in 2 of 2^n cases. Holm's procedure asks of the first that this is at most a share of the level.
pub(crate) fn blocks_needed(comparisons: usize, confidence: Percent, may_stop_early: bool) -> u32 {
    let tested = if may_stop_early { guarded(confidence.fraction()) } else { confidence.fraction() };
    let level = (1.0 - tested) / comparisons.max(1) as f64;
    if level <= 0.0 {
        return BLOCKS_MIN;
    }
    (1.0 - level.log2()).ceil().min(f64::from(BLOCKS.1)) as u32
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
