//! The sentences of figures that are bounds.
use crate::ids::{ArmName, WorkloadName};
use crate::metric::Metric;

/// For `trials` of `total` trials. `title`: that of the metric in its workload.
pub(super) fn words(
    (metric, title): (Metric, &str),
    arm: &ArmName,
    workload: &WorkloadName,
    [trials, total]: [u32; 2],
) -> String {
    let trials = format!("in {trials} of {total} trials of {arm} in {workload}");
    match metric {
        Metric::NoDropRate | Metric::PartialDropRate => format!(
            "lower bound: the {title} is at least the value shown; {trials} the search found no rate that is too high, because the \
             generator cannot send more or the search ended first: give the sender more cores or a faster generator, or set a longer \
             `duration`"
        ),
        Metric::Throughput | Metric::DatagramRate => format!(
            "upper bound: the {title} is below the value shown; {trials} nothing arrived in the steady window, whose length sets the bound: \
             look for a blocked path, or raise the rate or `duration`"
        ),
        _ => format!(
            "lower bound: the {title} is at least the value shown; {trials} the effect had not ended when the traffic ended or the \
             next event began: leave more time after each event"
        ),
    }
}

/// For `trials` of `total` trials without a round trip in the steady window.
pub(super) fn of_round_trips(arm: &ArmName, workload: &WorkloadName, [trials, total]: [u32; 2]) -> String {
    format!(
        "no round trips: {trials} of {total} trials of {arm} in {workload} had no round trip in the steady window; each such trial \
         counts as a latency >= the window and a rate < one round trip per window: look for a stalled path, a busy host or a firewall, or \
         set a longer `duration`"
    )
}
