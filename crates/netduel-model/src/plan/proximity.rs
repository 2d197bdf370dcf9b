//! Whether the proximity placement group of netduel can differ between the arms of a plan on a bed. Groups of other names are those of the user,
//! and are not looked at. Pure.
use crate::bed::recorded::RunBed;
use crate::bed::resolved::Bed;
use crate::bed::spec::Placement;
use crate::plan::bed_fault::BedFault;
use crate::plan::resolved::{Arm, ResolvedPlan, TreatmentAction};

/// Why arms of a plan cannot move VMs into the group; none where they can, or move none.
pub(super) fn faults(plan: &ResolvedPlan, bed: &RunBed) -> Vec<BedFault> {
    let of_arm = |arm: &Arm| no_group(arm, bed).or_else(|| no_difference(arm, plan, bed));
    plan.arms.iter().filter_map(of_arm).collect()
}

/// The bed has no such group.
fn no_group(arm: &Arm, bed: &RunBed) -> Option<BedFault> {
    let (_, group) = moves(arm).next().filter(|_| bed.lacks_proximity_group())?;
    let (arm, group, bed) = (arm.name.clone(), group.to_owned(), bed.name.clone());
    Some(BedFault::NoProximityGroup { arm, group, bed })
}

/// The bed has a VM in the group from the beginning, and another arm leaves it there.
fn no_difference(arm: &Arm, plan: &ResolvedPlan, bed: &RunBed) -> Option<BedFault> {
    if bed.deployed_placement() != Placement::ProximityGroup {
        return None;
    }
    let is_left = |vm: &str| plan.arms.iter().any(|arm| placements(arm).all(|(placed, _)| placed != vm));
    let (vm, group) = moves(arm).find(|(vm, _)| is_left(vm))?;
    Some(BedFault::AlreadyInProximityGroup {
        arm: arm.name.clone(),
        vm: vm.to_owned(),
        group: group.to_owned(),
        bed: bed.name.clone(),
    })
}

/// The VMs that an arm moves into the group of netduel, each with the group as the plan writes it.
fn moves(arm: &Arm) -> impl Iterator<Item = (&str, &str)> {
    placements(arm).filter(|(_, group)| group.eq_ignore_ascii_case(Bed::PROXIMITY_GROUP))
}

/// The VMs of the bed that an arm moves, each with its proximity placement group.
fn placements(arm: &Arm) -> impl Iterator<Item = (&str, &str)> {
    arm.treatments.iter().filter_map(|treatment| match &treatment.action {
        TreatmentAction::AzurePlacement { vm, group, resource_group: None } => {
            Some((vm.as_str(), group.as_str()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;
    use crate::plan::parse;

    /// A bed of type `toggle`, whose VMs are in the group now.
    fn toggle(placement: &str) -> RunBed {
        let text = format!(
            "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\ntype = \"toggle\"\nplacement = \"{placement}\"\n"
        );
        let bed = bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        RunBed { placement: Placement::ProximityGroup, ..RunBed::planned(&bed) }
    }

    /// A plan whose arms move `vm1` into these groups.
    fn plan(groups: [Option<&str>; 2]) -> ResolvedPlan {
        let arm = |name: &str, group: Option<&str>| {
            let treatment = group
                .map(|group| format!("{{ azure-placement = \"{group}\", vm = \"vm1\", on = \"client\" }}"));
            let treatments = treatment.unwrap_or_default();
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"client\"\nserver = \"server\"\ntreatments = [{treatments}]\n"
            )
        };
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n[hosts.client]\nbed = \"vm1\"\n[hosts.server]\nbed = \"vm2\"\n{}{}\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n",
            arm("one", groups[0]),
            arm("two", groups[1]),
        );
        parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn arm_that_moves_a_vm_to_where_all_arms_have_it_is_refused() {
        let group = Some(Bed::PROXIMITY_GROUP);
        let deployed = toggle("proximity-group");
        let of_other_means = RunBed { file: None, ..deployed.clone() };
        // A run that was killed has left the VM in the group.
        let left_behind = toggle("none");
        for (bed, is_refused) in [(&deployed, true), (&of_other_means, true), (&left_behind, false)] {
            assert_eq!(plan([None, group]).fits_bed(bed).is_err(), is_refused, "{bed:?}");
            for first in [group, Some("far")] {
                assert_eq!(plan([first, group]).fits_bed(bed), Ok(()), "{bed:?}");
            }
            assert_eq!(plan([None, Some("far")]).fits_bed(bed), Ok(()), "{bed:?}");
        }
        let faults = plan([None, group]).fits_bed(&deployed).expect_err("vm1 is in the group");
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        let text = fault.to_string();
        assert!(text.contains("the arm two moves the VM vm1 into") && text.contains("\"none\""), "{text}");
    }
}
