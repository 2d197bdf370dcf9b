//! What a condition names that a plan does not compare, beside what the plan has. Nothing is decided here.
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::workload::Workload;

use crate::document::verdicts::Sides;

/// Most names that a message lists.
const NAMES_MAX: usize = 8;

/// The arms of a run that are compared: the further ones with the baseline, or each with that of another run.
pub(super) fn compared_arms(plan: &ResolvedPlan, sides: Sides) -> impl Iterator<Item = &Arm> {
    let baselines = match sides {
        Sides::Arms => 1,
        Sides::Runs => 0,
    };
    plan.arms.iter().skip(baselines)
}

/// What a plan does not compare of a metric, a workload and an arm, and what it has: `the plan has no arm x (arms: a, b)`.
pub(super) fn lack(
    plan: &ResolvedPlan,
    sides: Sides,
    metric: Metric,
    workload: Option<&WorkloadName>,
    arm: Option<&ArmName>,
) -> String {
    let is_own = |one: &&Arm| arm.is_none_or(|arm| one.name == *arm);
    let arms: Vec<&Arm> = compared_arms(plan, sides).filter(is_own).collect();
    if let Some(arm) = arm.filter(|_| arms.is_empty()) {
        let names = listed(compared_arms(plan, sides).map(|one| one.name.as_str()));
        let what = if plan.arm(arm).is_some() {
            "the baseline is compared with nothing".to_owned()
        } else {
            format!("the plan has no arm {arm}")
        };
        return format!("{what} (arms: {names})");
    }
    let is_own = |one: &&Workload| workload.is_none_or(|workload| one.name == *workload);
    let all = || arms.iter().flat_map(|arm| &arm.workloads);
    let workloads: Vec<&Workload> = all().filter(is_own).collect();
    if let Some(workload) = workload.filter(|_| workloads.is_empty()) {
        let names = listed(all().map(|one| one.name.as_str()));
        return format!("the plan has no workload {workload} (workloads: {names})");
    }
    let of = workload.map(|workload| format!(" of {workload}")).unwrap_or_default();
    let on = arm.map(|arm| format!(" on {arm}")).unwrap_or_default();
    let names = listed(workloads.iter().flat_map(|one| &one.metrics).map(|one| one.key()));
    format!("the plan has no verdict on {}{of}{on} (verdicts: {names})", metric.key())
}

/// Names without repetition, at most [`NAMES_MAX`]: `a, b and 3 more`.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut different: Vec<&str> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let more = different.len().saturating_sub(NAMES_MAX);
    different.truncate(NAMES_MAX);
    match (different.as_slice(), more) {
        ([], _) => "none".to_owned(),
        (shown, 0) => shown.join(", "),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_names_is_bounded() {
        assert_eq!(listed(["a", "b", "a"].into_iter()), "a, b");
        assert_eq!(listed([].into_iter()), "none");
        let many: Vec<String> = (0..11).map(|number| number.to_string()).collect();
        assert_eq!(listed(many.iter().map(String::as_str)), "0, 1, 2, 3, 4, 5, 6, 7 and 3 more");
    }
}
