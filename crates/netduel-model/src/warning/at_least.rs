//! The sentence on figures that may be larger than what was seen.
use crate::ids::{ArmName, WorkloadName};
use crate::metric::Metric;

/// For `trials` of `of` trials.
pub(super) fn words(
    metric: Metric,
    arm: &ArmName,
    workload: &WorkloadName,
    [trials, of]: [u32; 2],
) -> String {
    let (title, seen) = (metric.title(), format!("in {trials} of {of} trials of {arm} in {workload}"));
    match metric {
        Metric::NoDropRate | Metric::PartialDropRate => format!(
            "{title} not seen to its end: {seen} no rate was found that is too much, because the generator sends no more or the search \
             ended before; what was found counts, so it is at least that, and no verdict rests on its being as low; give the sender \
             more cores or a faster generator, or the search a longer `duration`"
        ),
        _ => format!(
            "{title} not seen to its end: {seen} it was not over when the traffic ended (or the next event came); the time until then \
             counts, so it is at least that, and no verdict rests on its being as short; leave more time after each event"
        ),
    }
}
