//! The sentence of a figure that is a lower bound.
use crate::ids::{ArmName, WorkloadName};
use crate::metric::Metric;

/// For `trials` of `total` trials.
pub(super) fn words(
    metric: Metric,
    arm: &ArmName,
    workload: &WorkloadName,
    [trials, total]: [u32; 2],
) -> String {
    let (title, trials) = (metric.title(), format!("in {trials} of {total} trials of {arm} in {workload}"));
    match metric {
        Metric::NoDropRate | Metric::PartialDropRate => format!(
            "lower bound: the {title} is at least the value shown; {trials} the search found no rate that is too high, because the \
             generator cannot send more or the search ended first: give the sender more cores or a faster generator, or set a longer \
             `duration`"
        ),
        _ => format!(
            "lower bound: the {title} is at least the value shown; {trials} the effect had not ended when the traffic ended or the \
             next event began: leave more time after each event"
        ),
    }
}
