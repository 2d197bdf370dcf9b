//! The design: how many blocks, when to stop, how sure to be.
use crate::plan::blocks::{BLOCKS_MIN, blocks_needed};
use crate::plan::problem::Problems;
use crate::plan::resolved::Design;
use crate::plan::spec::DesignSpec;
use crate::units::Percent;
use crate::workload::DESIGN;

use super::values::check_table;

/// Block limit of a plan that names none: it ends within minutes.
const BLOCKS_MAX: u32 = 30;

/// Checks the design and fills in its defaults. `comparisons`: the number of verdicts of the plan.
pub(super) fn resolve(spec: &DesignSpec, comparisons: usize, problems: &mut Problems<'_>) -> Design {
    let confidence = spec.confidence.unwrap_or(Percent(95.0));
    let crossover = spec.crossover.unwrap_or(false);
    check_table(problems, "design", DESIGN, |key| spec.number(key));
    let enough = BLOCKS_MIN.max(blocks_needed(comparisons, confidence, true));
    let (blocks_min, blocks_max) = if crossover {
        let blocks = blocks_of_crossover(spec, enough, problems);
        (blocks, blocks)
    } else {
        block_limits(spec, enough, problems)
    };
    Design {
        blocks_min,
        blocks_max,
        budget: spec.budget,
        precision: spec.precision.unwrap_or(Percent(5.0)),
        equivalence: spec.equivalence.unwrap_or(Percent(5.0)),
        confidence,
        seed: spec.seed,
        aa: spec.aa.unwrap_or(false),
        crossover,
    }
}

/// The least and the largest number of blocks. `enough`: those that the verdicts need.
fn block_limits(spec: &DesignSpec, enough: u32, problems: &mut Problems<'_>) -> (u32, u32) {
    let blocks_min = spec.blocks_min.unwrap_or(enough.min(spec.blocks_max.unwrap_or(enough)));
    let blocks_max = spec.blocks_max.unwrap_or(BLOCKS_MAX.max(blocks_min));
    // A number out of its range has that error alone: an advice that contains it would be wrong, too.
    let is_possible = |key: &str, blocks: u32| {
        let range = DESIGN.iter().find(|setting| setting.key == key).and_then(|setting| setting.range);
        range.is_none_or(|range| range.contains(blocks.into()))
    };
    if blocks_min > blocks_max
        && is_possible("blocks_min", blocks_min)
        && is_possible("blocks_max", blocks_max)
    {
        // A contradiction between two keys is that of the one that an override has set.
        if problems.is_overridden("design.blocks_max") && !problems.is_overridden("design.blocks_min") {
            let wrong = format!("is less than blocks_min of the plan, which is {blocks_min}");
            let allowed = format!("set {blocks_min} or more, or add --set blocks_min={blocks_max}");
            problems.add("design.blocks_max", wrong, allowed);
        } else {
            let wrong = format!("is {blocks_min}, more than blocks_max, which is {blocks_max}");
            problems.add("design.blocks_min", wrong, "blocks_min may be as large as blocks_max");
        }
    }
    (blocks_min, blocks_max)
}

/// A crossover has a fixed number of blocks: a half that ends early has no counterpart. `enough`: pairs that its verdicts need.
fn blocks_of_crossover(spec: &DesignSpec, enough: u32, problems: &mut Problems<'_>) -> u32 {
    let blocks = spec.blocks_max.or(spec.blocks_min).unwrap_or(2 * enough);
    if blocks % 2 == 1 {
        let key = if spec.blocks_max.is_some() { "design.blocks_max" } else { "design.blocks_min" };
        let wrong = format!("is {blocks}, and the halves of a crossover have the same number of blocks");
        problems.add(key, wrong, "allowed: an even number");
    }
    if let Some(least) = spec.blocks_min.filter(|least| *least != blocks) {
        let wrong = format!("is {least}, and a crossover has blocks_max blocks, which is {blocks}");
        problems.add("design.blocks_min", wrong, "leave it out");
    }
    if spec.budget.is_some() {
        problems.add("design.budget", "ends a crossover before its halves are equal", "leave it out");
    }
    if spec.aa == Some(true) {
        problems.add("design.aa", "compares an arm with its copy on the same hosts", "leave out one of both");
    }
    blocks
}
