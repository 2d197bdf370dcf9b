//! Why the arms of a run differ, in words: the bottleneck of each, the switches of a lab.
use netduel_model::lab::INITIAL_PATH;
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};

use super::text::listed;
use crate::analysis::{Analysis, WorkloadAnalysis};

/// The bottleneck of the arms of a workload: `the receive window`, or where they differ `the receive window (a), a rate cap (b and c)`.
/// Absent without a valid trial.
pub fn bottleneck(workload: &WorkloadAnalysis) -> Option<String> {
    let mut causes: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for arm in &workload.arms {
        let Some(limit) = &arm.limit else { continue };
        match causes.iter_mut().find(|(cause, _)| *cause == limit.words()) {
            Some((_, arms)) => arms.push(arm.arm.as_str()),
            None => causes.push((limit.words(), vec![arm.arm.as_str()])),
        }
    }
    match causes.as_slice() {
        [] => None,
        [(cause, _)] => Some((*cause).to_owned()),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(cause, arms)| format!("{cause} ({})", listed(arms))).collect();
            Some(parts.join(", "))
        }
    }
}

/// The bottlenecks of two arms as a clause: `bottleneck: in stream the receive window`. Absent for other numbers of arms, and without a valid trial.
pub fn reason(analysis: &Analysis) -> Option<String> {
    let [_, _] = analysis.plan.arms.as_slice() else { return None };
    Some(format!("bottleneck: {}", by_workload(analysis, bottleneck)?))
}

/// What each workload has, each text once with the names of its workloads: `in stream x; in rr and crr y`. A run of one workload needs no name.
/// Absent where none has any.
fn by_workload(analysis: &Analysis, text_of: impl Fn(&WorkloadAnalysis) -> Option<String>) -> Option<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for workload in &analysis.workloads {
        let Some(text) = text_of(workload) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(workload.name.as_str()),
            None => groups.push((text, vec![workload.name.as_str()])),
        }
    }
    let is_one = analysis.workloads.len() == 1;
    let words = |(text, names): (String, Vec<&str>)| {
        if is_one { text } else { format!("in {} {text}", listed(&names)) }
    };
    let parts: Vec<String> = groups.into_iter().map(words).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The software switches of a lab as a part of softirq time; absent where no arm uses them.
pub fn switch_in_softirq(plan: &ResolvedPlan) -> Option<String> {
    let rules = match plan.lab.as_ref()?.rules {
        0 => String::new(),
        rules => {
            format!(", each of which evaluates {rules} rules per packet (per GSO packet with offload on)")
        }
    };
    let arms = arms_through_the_switch(plan);
    let words =
        || format!("softirq of {} contains the two software switches of the lab{rules}", listed(&arms));
    (!arms.is_empty()).then(words)
}

/// What the packets of some arms of a lab pass, and those of the others do not: `packets of synthetic pass two software switches with 600 rules
/// each`. Absent where all arms or none do, and without a lab.
pub fn switches_passed(plan: &ResolvedPlan) -> Option<String> {
    let rules = match plan.lab.as_ref()?.rules {
        0 => "without rules".to_owned(),
        rules => format!("with {rules} rules each"),
    };
    let arms = arms_through_the_switch(plan);
    let is_a_difference = !arms.is_empty() && arms.len() < plan.arms.len();
    is_a_difference.then(|| format!("packets of {} pass two software switches {rules}", listed(&arms)))
}

/// Why the arms of a lab differ, and that the CPU time has a part of it, in sentences; absent as [`switches_passed`] is.
pub fn lab_difference(plan: &ResolvedPlan) -> Option<String> {
    let passed = switches_passed(plan)?;
    let size = match plan.lab.as_ref()?.rules {
        0 => "",
        _ => " The number of rules (`rules` of the plan) largely determines the size of the difference.",
    };
    let arms = arms_through_the_switch(plan);
    Some(format!("In the lab {passed}, and the CPU time of {} contains their work.{size}", listed(&arms)))
}

/// The arms whose packets pass the software switches of the plan's lab; empty for a plan without a lab.
pub fn arms_through_the_switch(plan: &ResolvedPlan) -> Vec<&str> {
    let passes = |arm: &&Arm| lab_path(arm).unwrap_or(INITIAL_PATH) == LabPath::Synthetic;
    let arms = plan.arms.iter().filter(|_| plan.lab.is_some()).filter(passes);
    arms.map(|arm| arm.name.as_str()).collect()
}

/// The path of the lab that an arm sets.
pub fn lab_path(arm: &Arm) -> Option<LabPath> {
    arm.treatments.iter().find_map(|treatment| match treatment.action {
        TreatmentAction::Path { path } => Some(path),
        _ => None,
    })
}
