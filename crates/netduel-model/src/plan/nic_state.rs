//! Whether accelerated networking of a NIC can differ between the arms of a plan that use the NIC. Pure.
use crate::bed::layout::NicUse;
use crate::bed::recorded::RunBed;
use crate::ids::{ArmName, HostName};
use crate::plan::bed_fault::BedFault;
use crate::plan::resolved::{Arm, ResolvedPlan, TreatmentAction};

impl ResolvedPlan {
    /// An arm that uses the NIC of an `azure-nic` treatment at this host in any block, and leaves the NIC as it is. A NIC with a name of netduel is
    /// not used by arms in another network; `None` for other treatments.
    pub fn arm_that_leaves(&self, host: &HostName, action: &TreatmentAction) -> Option<ArmName> {
        let TreatmentAction::AzureNic { nic, .. } = action else { return None };
        let network = NicUse::of_nic(nic).map(NicUse::network);
        let leaves = |arm: &Arm| {
            let is_elsewhere = arm.network.zip(network).is_some_and(|(own, of_nic)| own != of_nic);
            let is_used = arm.pair.client == *host || arm.pair.server == *host;
            let mut actions = arm.treatments.iter().map(|treatment| &treatment.action);
            is_used && !is_elsewhere && !actions.any(|action| switches(action, nic))
        };
        self.arms_of_all_blocks().into_iter().find(|arm| leaves(arm)).map(|arm| arm.name.clone())
    }
}

/// Whether a treatment switches a NIC of this name, in whichever resource group.
fn switches(action: &TreatmentAction, name: &str) -> bool {
    matches!(action, TreatmentAction::AzureNic { nic, .. } if nic == name)
}

/// Why arms of a plan do not differ by the state of a NIC of the bed; none where they do.
pub(super) fn faults(plan: &ResolvedPlan, bed: &RunBed) -> Vec<BedFault> {
    let of_arm = |arm: &Arm| {
        let treatments = arm.provider_treatments();
        treatments.iter().find_map(|(host, action)| no_difference(arm, host, action, plan, bed))
    };
    plan.arms.iter().filter_map(of_arm).collect()
}

/// An arm gives a NIC the state that it has, and another arm leaves it so.
fn no_difference(
    arm: &Arm,
    host: &HostName,
    action: &TreatmentAction,
    plan: &ResolvedPlan,
    bed: &RunBed,
) -> Option<BedFault> {
    let TreatmentAction::AzureNic { nic, resource_group: None, accelerated } = action else { return None };
    if bed.nic_state(nic) != Some(*accelerated) {
        return None;
    }
    Some(BedFault::SameNicState {
        arm: arm.name.clone(),
        switch: action.words(),
        bed: bed.name.clone(),
        other: plan.arm_that_leaves(host, action)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;
    use crate::plan::parse;

    fn bed(kind: &str) -> RunBed {
        let text =
            format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\ntype = \"{kind}\"\n");
        let bed = bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        RunBed::planned(&bed)
    }

    fn switch(vm: u8, on: bool) -> String {
        let side = if vm % 2 == 1 { "client" } else { "server" };
        format!("{{ azure-nic = \"vm{vm}-test\", accelerated = {on}, on = \"{side}\" }}, ")
    }

    /// Both NICs of the pair whose client is this VM.
    fn both(client: u8, on: bool) -> String {
        format!("{}{}", switch(client, on), switch(client + 1, on))
    }

    /// A plan of arms on pairs of VMs, by the number of the client, with these treatments; the second part is that of the design.
    fn plan(arms: &[(u8, String)], design: &str) -> ResolvedPlan {
        let hosts = |number: u8| format!("[hosts.h{number}]\nbed = \"vm{number}\"\n");
        let is_used = |number: &u8| arms.iter().any(|(client, _)| client == number || client + 1 == *number);
        let hosts: String = (1..=4).filter(is_used).map(hosts).collect();
        let arm = |(index, (client, treatments)): (usize, &(u8, String))| {
            format!(
                "[[arms]]\nname = \"arm{index}\"\nclient = \"h{client}\"\nserver = \"h{}\"\ntreatments = [{treatments}]\n",
                client + 1
            )
        };
        let arms: String = arms.iter().enumerate().map(arm).collect();
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n{hosts}{arms}[[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n{design}"
        );
        parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn fits(states: &[Option<bool>], bed: &RunBed) -> bool {
        let arm = |state: &Option<bool>| (1, state.map(|on| both(1, on)).unwrap_or_default());
        plan(&states.iter().map(arm).collect::<Vec<_>>(), "").fits_bed(bed).is_ok()
    }

    #[test]
    fn arm_that_switches_nics_to_the_state_in_which_another_arm_leaves_them_is_refused() {
        // The NICs of a bed `toggle` have no accelerated networking at first, those of a bed `dpdk` have it.
        for (bed, is_on) in [(bed("toggle"), false), (bed("dpdk"), true)] {
            assert!(!fits(&[None, Some(is_on)], &bed), "{is_on}");
            assert!(!fits(&[Some(is_on), None], &bed), "{is_on}");
            assert!(!fits(&[None, Some(is_on), Some(!is_on)], &bed), "{is_on}");
        }
        let faults = plan(&[(1, String::new()), (1, both(1, false))], "").fits_bed(&bed("toggle"));
        let text = faults.expect_err("no NIC is switched")[0].to_string();
        for part in ["the arm arm1 switches", "of vm1-test off", "the arm arm0 leaves it"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn arms_with_the_state_of_the_bed_and_the_other_one_fit() {
        for (bed, is_on) in [(bed("toggle"), false), (bed("dpdk"), true)] {
            for states in [
                &[None, Some(!is_on)][..],
                &[Some(is_on), Some(!is_on)],
                &[Some(!is_on), Some(is_on)],
                // They may differ by other keys.
                &[Some(is_on), Some(is_on)],
            ] {
                assert!(fits(states, &bed), "{is_on} {states:?}");
            }
        }
    }

    #[test]
    fn nic_that_was_left_switched_or_is_used_by_no_other_arm_is_not_judged() {
        // A run that was killed has left the NICs on.
        let mut left_behind = bed("toggle");
        for nic in left_behind.vms.iter_mut().flat_map(|vm| &mut vm.nics) {
            nic.is_accelerated = true;
        }
        for on in [false, true] {
            assert!(fits(&[None, Some(on)], &left_behind), "{on}");
        }
        // Without its file it is unknown whether one has.
        let unknown = RunBed { file: None, ..bed("toggle") };
        assert!(fits(&[None, Some(false)], &unknown));
        let two_pairs = bed("two-pairs");
        let crossover = "[design]\ncrossover = true\nblocks_max = 12\n";
        for design in ["", crossover] {
            let plan = plan(&[(1, both(1, true)), (3, both(3, false))], design);
            assert_eq!(plan.fits_bed(&two_pairs), Ok(()), "{design}");
        }
    }
}
