//! Which arms and workloads of several plans are the same, by name and settings. What cannot be matched is listed with its reason.
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::plan::{Arm, Pair, ResolvedPlan, Treatment};
use netduel_model::workload::Workload;

/// A workload of an arm, and the runs that have it with the same settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) arm: ArmName,
    pub(super) workload: WorkloadName,
    /// Positions of the runs, the first run first.
    pub(super) runs: Vec<usize>,
}

/// An arm or a workload that is not compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmatched {
    /// Position of the run that is not compared with the first one in it.
    pub run: usize,
    /// The arm; absent when a workload is meant for all arms.
    pub arm: Option<ArmName>,
    /// The workload; absent when an arm is meant with all its workloads.
    pub workload: Option<WorkloadName>,
    /// Why.
    pub reason: Reason,
}

/// Why an arm or a workload is not compared. Where both runs have it, the value of the first run comes first.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// The run does not have it, and the first one does.
    Missing,
    /// The run has it, and the first one does not.
    Additional,
    /// Client and server are other hosts of the plan.
    Pair(Box<[Pair; 2]>),
    /// The arm makes other changes to its hosts.
    Treatments(Box<[Vec<Treatment>; 2]>),
    /// The traffic, its timing, its family or its DSCP differs.
    Settings(Box<[Workload; 2]>),
}

/// The workloads of arms that at least one other plan has like the first one, and everything else.
pub(super) fn of(plans: &[&ResolvedPlan]) -> (Vec<Match>, Vec<Unmatched>) {
    let (mut matches, unmatched) = of_first(plans);
    matches.retain(|one| one.runs.len() > 1);
    (matches, unmatched)
}

/// The workloads of arms of the first plan with the others that have them like it, and everything else.
pub(super) fn of_first(plans: &[&ResolvedPlan]) -> (Vec<Match>, Vec<Unmatched>) {
    let Some((first, others)) = plans.split_first() else { return (Vec::new(), Vec::new()) };
    let own = |arm: &Arm| -> Vec<Match> {
        let of_workload = |workload: &Workload| Match {
            arm: arm.name.clone(),
            workload: workload.name.clone(),
            runs: vec![0],
        };
        arm.workloads.iter().map(of_workload).collect()
    };
    let mut matches: Vec<Match> = first.arms.iter().flat_map(own).collect();
    let mut unmatched = Vec::new();
    for (run, plan) in (1..).zip(others) {
        for arm in &first.arms {
            match obstacle(arm, plan.arm(&arm.name)) {
                Some(reason) => {
                    unmatched.push(Unmatched { run, arm: Some(arm.name.clone()), workload: None, reason });
                }
                None => match_workloads(run, arm, plan, &mut matches, &mut unmatched),
            }
        }
        unmatched.extend(on_one_side(run, first, plan));
    }
    (matches, unmatched)
}

/// Why an arm of the first plan is not that of another plan.
fn obstacle(first: &Arm, own: Option<&Arm>) -> Option<Reason> {
    let Some(own) = own else { return Some(Reason::Missing) };
    if first.pair != own.pair {
        return Some(Reason::Pair(Box::new([first.pair.clone(), own.pair.clone()])));
    }
    if first.treatments != own.treatments {
        return Some(Reason::Treatments(Box::new([first.treatments.clone(), own.treatments.clone()])));
    }
    None
}

/// Adds the run to the matches of an arm that both plans have.
fn match_workloads(
    run: usize,
    arm: &Arm,
    plan: &ResolvedPlan,
    matches: &mut [Match],
    unmatched: &mut Vec<Unmatched>,
) {
    for first in &arm.workloads {
        // A workload that the plan lacks is named once, for all arms.
        let Some(own) = plan.arm(&arm.name).and_then(|own| own.workload(&first.name)) else { continue };
        if is_same_traffic(first, own) {
            let is_it = |one: &&mut Match| one.arm == arm.name && one.workload == first.name;
            if let Some(one) = matches.iter_mut().find(is_it) {
                one.runs.push(run);
            }
        } else {
            unmatched.push(Unmatched {
                run,
                arm: Some(arm.name.clone()),
                workload: Some(first.name.clone()),
                reason: Reason::Settings(Box::new([first.clone(), own.clone()])),
            });
        }
    }
}

/// Whether two workloads send the same in the same way. Cores and judged metrics may differ: the first are a difference between the
/// runs that may explain a verdict, the second change no value.
fn is_same_traffic(first: &Workload, own: &Workload) -> bool {
    let Workload {
        name: _,
        traffic,
        timing,
        family,
        pin_client: _,
        pin_server: _,
        pin_auto: _,
        dscp,
        metrics: _,
    } = first;
    *traffic == own.traffic && *timing == own.timing && *family == own.family && *dscp == own.dscp
}

/// Workloads that one of two plans has, and arms that only the later one has.
fn on_one_side(run: usize, first: &ResolvedPlan, plan: &ResolvedPlan) -> Vec<Unmatched> {
    let workload = |name: &WorkloadName, reason: Reason| Unmatched {
        run,
        arm: None,
        workload: Some(name.clone()),
        reason,
    };
    let missing = first.workloads.iter().filter(|name| !plan.workloads.contains(name));
    let additional = plan.workloads.iter().filter(|name| !first.workloads.contains(name));
    let arms = plan.arms.iter().filter(|arm| first.arm(&arm.name).is_none());
    let arm = |arm: &Arm| Unmatched {
        run,
        arm: Some(arm.name.clone()),
        workload: None,
        reason: Reason::Additional,
    };
    missing
        .map(|name| workload(name, Reason::Missing))
        .chain(additional.map(|name| workload(name, Reason::Additional)))
        .chain(arms.map(arm))
        .collect()
}
