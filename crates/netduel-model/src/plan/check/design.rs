//! The design: how many blocks, when to stop, how sure to be.
use crate::plan::blocks::{BLOCKS_MAX_ALLOWED, BLOCKS_MIN, blocks_needed};
use crate::plan::problem::Problems;
use crate::plan::resolved::Design;
use crate::plan::spec::DesignSpec;
use crate::units::Percent;

use super::values::range;

/// Block limit of a plan that names none: it ends within minutes.
const BLOCKS_MAX: u32 = 30;
/// The least block limit.
const BLOCKS_LEAST: u32 = 2;

/// Checks the design and fills in its defaults. `comparisons`: how many verdicts the plan asks for.
pub(super) fn resolve(spec: &DesignSpec, comparisons: usize, problems: &mut Problems<'_>) -> Design {
    let confidence = spec.confidence.unwrap_or(Percent(95.0));
    let enough = BLOCKS_MIN.max(blocks_needed(comparisons, confidence, true));
    let blocks_min = spec.blocks_min.unwrap_or(enough.min(spec.blocks_max.unwrap_or(enough)));
    let blocks_max = spec.blocks_max.unwrap_or(BLOCKS_MAX.max(blocks_min));
    if let Some(blocks) = spec.blocks_min {
        range(problems, "design.blocks_min", blocks, BLOCKS_LEAST, BLOCKS_MAX_ALLOWED);
    }
    if let Some(blocks) = spec.blocks_max {
        range(problems, "design.blocks_max", blocks, BLOCKS_LEAST, BLOCKS_MAX_ALLOWED);
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
