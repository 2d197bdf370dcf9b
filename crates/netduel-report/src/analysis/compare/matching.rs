//! Which arms and workloads of several plans are the same, by name and settings. What cannot be matched is listed with its reason. Plans of
//! runs on beds come without the names of their beds.
use std::borrow::Cow;

use netduel_model::bed::BedNetwork;
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
    /// Client and server are other hosts of the plan. A crossover adds the pair of its second half.
    Pair(Box<[Vec<Pair>; 2]>),
    /// The traffic uses another network of the bed.
    Network([Option<BedNetwork>; 2]),
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
            match obstacle([*first, *plan], arm) {
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

/// Why an arm of the first of two plans is not that of the other.
fn obstacle([reference, plan]: [&ResolvedPlan; 2], arm: &Arm) -> Option<Reason> {
    let Some(own) = plan.arm(&arm.name) else { return Some(Reason::Missing) };
    let [before, after] = [halves(reference, arm), halves(plan, own)];
    let pairs = [&before, &after].map(|arms| arms.iter().map(|arm| arm.pair.clone()).collect::<Vec<_>>());
    if pairs.first() != pairs.last() {
        return Some(Reason::Pair(Box::new(pairs)));
    }
    if arm.network != own.network {
        return Some(Reason::Network([arm.network, own.network]));
    }
    // Treatments of the provider can change other NICs in the second half.
    let mut treatments = before.iter().zip(&after).map(|(one, other)| [&one.treatments, &other.treatments]);
    let differing = treatments.find(|[one, other]| one != other)?;
    Some(Reason::Treatments(Box::new(differing.map(Vec::clone))))
}

/// An arm as it is in the first blocks, and with a crossover as it is in the last ones.
fn halves<'p>(plan: &'p ResolvedPlan, arm: &'p Arm) -> Vec<Cow<'p, Arm>> {
    let last = plan.design.blocks_max.saturating_sub(1);
    let crossed = plan.counterpart(arm).map(|_| plan.arm_in(arm, last));
    std::iter::once(Cow::Borrowed(arm)).chain(crossed).collect()
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
