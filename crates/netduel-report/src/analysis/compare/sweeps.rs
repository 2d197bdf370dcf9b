//! Sweeps of several runs in one picture.
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::plan::ResolvedPlan;

use super::Subject;
use crate::analysis::sweep::{Sweep, SweepPoint, frames, of_queues, queue_point};

/// The sweeps of what is compared in several runs, which stand in the place of arms: each with the arm whose
/// workloads differ in their frame sizes. One over queues is of several arms.
pub(crate) fn of_subjects(plan: &ResolvedPlan, subjects: &[Subject]) -> Vec<(Option<ArmName>, Sweep)> {
    let (mut arms, mut workloads): (Vec<&ArmName>, Vec<&WorkloadName>) = (Vec::new(), Vec::new());
    for subject in subjects {
        if !arms.contains(&&subject.arm) {
            arms.push(&subject.arm);
        }
        if !workloads.contains(&&subject.workload.name) {
            workloads.push(&subject.workload.name);
        }
    }
    let of_arm = |arm: &ArmName| -> Vec<(Option<ArmName>, Sweep)> {
        let own = subjects.iter().filter(|subject| subject.arm == *arm).map(|subject| &subject.workload);
        frames(own).into_iter().map(|sweep| (Some(arm.clone()), sweep)).collect()
    };
    let of_workload = |name: &WorkloadName| Some((None, queues_of_runs(plan, subjects, name)?));
    arms.into_iter().flat_map(of_arm).chain(workloads.into_iter().filter_map(of_workload)).collect()
}

/// The sweep over the numbers of queues of what is compared of the workload with this name. Points are runs, so labels name the arm.
fn queues_of_runs(plan: &ResolvedPlan, subjects: &[Subject], name: &WorkloadName) -> Option<Sweep> {
    let own: Vec<&Subject> = subjects.iter().filter(|subject| subject.workload.name == *name).collect();
    let mut points = Vec::new();
    for subject in &own {
        let planned = plan.arm(&subject.arm);
        for run in &subject.workload.arms {
            if let Some((queues, point)) = queue_point(planned, &subject.workload, run) {
                let label = format!("{} ({})", point.label, subject.arm);
                points.push((queues, SweepPoint { label, ..point }));
            }
        }
    }
    of_queues(&own.first()?.workload, points)
}
