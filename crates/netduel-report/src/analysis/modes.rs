//! Two levels of an arm's values in a metric, unless they are a state of the machines.
use std::collections::BTreeMap;

use netduel_model::metric::{Metric, Quantity, Scale};
use netduel_stats::doubt::{self, Modes};

use super::verdicts::crossed_values;
use super::{ArmValues, MetricAnalysis, WorkloadAnalysis};

/// The two levels of an arm's values; absent without them, and where another arm has them too, also relative to the ratio of the two: the
/// random order spreads a state of the machines over the arms, and the interval contains it. `half`: the first block of the second half of
/// a crossover.
pub(super) fn of_arm(
    workload: &WorkloadAnalysis,
    analysis: &MetricAnalysis,
    arm: &ArmValues,
    half: Option<u32>,
) -> Option<Modes> {
    let metric = analysis.metric;
    let own = crossed_values(&arm.values, half, metric.scale());
    let modes = doubt::bimodal(&numbers(&own))?;
    for seen in workload.judged.iter().filter(|seen| show_the_same_states(metric, seen.metric)) {
        for other in seen.arms.iter().filter(|other| other.arm != arm.arm) {
            let values = crossed_values(&other.values, half, seen.metric.scale());
            let is_equal = seen.metric == metric && modes.are_also_of(&numbers(&values));
            let is_relative = || modes.are_levels_of_pairs(&pairs(&own, &values));
            if is_equal || metric.scale() == Scale::Ratio && is_relative() {
                return None;
            }
        }
    }
    Some(modes)
}

/// Whether a state of a machine changes both metrics by about one factor: percentiles are of the same round trips.
fn show_the_same_states(one: Metric, other: Metric) -> bool {
    one == other || [one, other].into_iter().all(|metric| metric.quantity() == Quantity::Latency)
}

fn numbers(values: &[(u32, f64)]) -> Vec<f64> {
    values.iter().map(|(_, value)| *value).collect()
}

/// The values of both in the blocks that have two.
fn pairs(own: &[(u32, f64)], other: &[(u32, f64)]) -> Vec<(f64, f64)> {
    let other: BTreeMap<u32, f64> = other.iter().copied().collect();
    own.iter().filter_map(|(block, value)| Some((*value, *other.get(block)?))).collect()
}
