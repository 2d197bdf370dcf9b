//! The time that a run may take, from its plan alone: the trials, and between them the changes of Azure's NICs and VMs. A rough estimate: nothing is
//! refused for it, and a run may end earlier.
use std::collections::BTreeSet;
use std::fmt::Write as _;

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};

/// Time of a trial beside its traffic, seconds: connections, counters and the end of the threads. Measured are 0.03 s to 0.1 s.
const AROUND_TRIAL_S: f64 = 0.1;
/// Time of a switch of a NIC with its verification in the guest, seconds.
const SWITCH_S: f64 = 20.0;
/// Time of a stop of a VM with its start, seconds: Azure needs some minutes.
const STOP_S: f64 = 180.0;

/// Which changes of Azure's resources stop a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stops {
    /// None: NICs are switched while their VMs run, and no VM is moved.
    None,
    /// Those of placements, which always do.
    Placements,
    /// Those of NICs as well, none of which has an effect while its VM runs.
    All,
}

/// The expected time of the trials of a run with the fewest and with the most blocks, in one unit: `about 34 to 126 s`. A search can end
/// earlier.
pub fn of_trials(plan: &ResolvedPlan) -> String {
    let block_s = block_s(plan);
    range(plan, |blocks| block_s * f64::from(blocks))
}

/// The lines of a checked plan on the time with the changes of Azure's NICs and VMs, and on the option that stops of VMs need; empty for a plan
/// without such changes.
pub fn azure_lines(plan: &ResolvedPlan) -> String {
    let has_nics = switches_nics(plan);
    let has_placements = changes(plan, |action| matches!(action, TreatmentAction::AzurePlacement { .. }));
    let with = |stops: Stops| range(plan, |blocks| run_s(plan, blocks, stops));
    let mut lines = Vec::new();
    if has_nics {
        lines.push(format!(
            "{} with the trials and the switches of NICs, without a stop of a VM",
            with(Stops::None)
        ));
    }
    if has_placements {
        lines.push(format!(
            "{} with the stops of VMs for azure-placement; the run needs --allow-deallocate",
            with(Stops::Placements)
        ));
    }
    if has_nics {
        lines.push(format!(
            "{} if every switch of a NIC stops its VM as well, which needs --allow-deallocate; without the option the run ends at a switch that \
             has no effect while the VM runs",
            with(Stops::All)
        ));
    }
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let title = if index == 0 { "Azure" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {title:<9}  {line}");
    }
    text
}

/// The longest time that a run may be expected to take, seconds. In each block a NIC is switched for its arm, and a VM is moved and returned.
pub fn longest_s(plan: &ResolvedPlan) -> f64 {
    run_s(plan, plan.design.blocks_max, Stops::Placements)
}

/// The shortest and the longest time that a run may be expected to take, seconds: with the fewest blocks and the stops of VMs that it needs, and
/// with the most blocks and the stops that it may need.
pub fn range_s(plan: &ResolvedPlan) -> [f64; 2] {
    let (blocks_min, blocks_max) = (plan.design.blocks_min, plan.design.blocks_max);
    let stopped_s = if switches_nics(plan) { run_s(plan, blocks_max, Stops::All) } else { 0.0 };
    [run_s(plan, blocks_min, Stops::Placements), longest_s(plan).max(stopped_s)]
}

/// Whether an arm switches a NIC of Azure.
fn switches_nics(plan: &ResolvedPlan) -> bool {
    changes(plan, |action| matches!(action, TreatmentAction::AzureNic { .. }))
}

/// Whether an arm has such a change.
fn changes(plan: &ResolvedPlan, is_one: fn(&TreatmentAction) -> bool) -> bool {
    plan.arms.iter().flat_map(|arm| &arm.treatments).any(|treatment| is_one(&treatment.action))
}

/// The expected time of the trials of a block, seconds.
fn block_s(plan: &ResolvedPlan) -> f64 {
    let workloads = plan.arms.iter().flat_map(|arm| &arm.workloads);
    workloads.map(|workload| workload.timing.duration.as_secs_f64() + AROUND_TRIAL_S).sum()
}

/// The expected time of a run of so many blocks, seconds.
fn run_s(plan: &ResolvedPlan, blocks: u32, stops: Stops) -> f64 {
    let blocks = f64::from(blocks);
    let changes_s = changes_s(plan, stops);
    // Arms of a crossover exchange their hosts once.
    if plan.design.crossover {
        return blocks * block_s(plan) + changes_s;
    }
    let block_s = block_s(plan) + changes_s;
    // No block begins after the budget, and one that has begun is finished.
    let all_s = blocks * block_s;
    plan.design.budget.map_or(all_s, |budget| all_s.min(budget.as_secs_f64() + block_s))
}

/// The expected time of the changes of a block, or of the only ones of a crossover, seconds.
fn changes_s(plan: &ResolvedPlan, stops: Stops) -> f64 {
    let treatments = plan.arms.iter().flat_map(Arm::provider_treatments);
    if stops == Stops::All {
        // An arm stops the VM of a host once at most, for all changes of it.
        let hosts: BTreeSet<HostName> = treatments.map(|(host, _)| host).collect();
        let arms = if plan.design.crossover { 1 } else { plan.arms.len() };
        return (hosts.len() * arms) as f64 * STOP_S;
    }
    let change_s = |action: &TreatmentAction| match action {
        TreatmentAction::AzureNic { .. } => SWITCH_S,
        TreatmentAction::AzurePlacement { .. } if stops == Stops::Placements => 2.0 * STOP_S,
        _ => 0.0,
    };
    let mut changed: Vec<TreatmentAction> = Vec::new();
    for (_, action) in treatments {
        // All arms of a crossover on one pair of hosts share its NICs, which are switched once for them.
        let is_shared = |other: &TreatmentAction| plan.design.crossover && other.is_of_the_same_nic(&action);
        if !changed.iter().any(is_shared) {
            changed.push(action);
        }
    }
    changed.iter().map(change_s).sum()
}

/// The time with the fewest and with the most blocks in one unit.
fn range(plan: &ResolvedPlan, seconds: impl Fn(u32) -> f64) -> String {
    let [least_s, most_s] = [plan.design.blocks_min, plan.design.blocks_max].map(seconds);
    let (unit_s, unit) = match most_s {
        most_s if most_s < 180.0 => (1.0, "s"),
        most_s if most_s < 180.0 * 60.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    };
    let of = |seconds: f64| match seconds / unit_s {
        amount if unit_s > 1.0 && amount < 9.95 => format!("{amount:.1}").trim_end_matches(".0").to_owned(),
        amount => format!("{amount:.0}"),
    };
    let (least, most) = (of(least_s), of(most_s));
    if least == most { format!("about {most} {unit}") } else { format!("about {least} to {most} {unit}") }
}

#[cfg(test)]
mod tests {
    use netduel_model::plan;
    use netduel_model::units::Nanos;

    use super::*;

    fn shipped(name: &str) -> ResolvedPlan {
        let path = format!("{}/../../plans/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        plan::parse(&text, name).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn time_of_the_trials_has_a_tenth_of_a_second_for_each() {
        let text = "name = \"x\"\nquestion = \"?\"\n[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
             [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"synthetic\" }]\n\
             [[arms]]\nname = \"other\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]\n\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\nduration = \"2 s\"\n";
        let mut plan = plan::parse(text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        (plan.design.blocks_min, plan.design.blocks_max) = (8, 30);
        assert_eq!(of_trials(&plan), "about 34 to 126 s");
        plan.design.blocks_max = 100;
        assert_eq!(of_trials(&plan), "about 0.6 to 7 min");
        plan.design.blocks_min = 100;
        assert_eq!(of_trials(&plan), "about 7 min");
        plan.design.blocks_max = 1000;
        assert_eq!(of_trials(&plan), "about 7 to 70 min");
        plan.design.blocks_max = 10_000;
        assert_eq!(of_trials(&plan), "about 0.1 to 12 h");
        assert_eq!(azure_lines(&plan), "");
    }

    #[test]
    fn guide_has_the_times_of_the_changes() {
        let guide = include_str!("../../../docs/beds.md");
        let minutes = STOP_S / 60.0;
        let text = format!("{SWITCH_S} s for each switch of a NIC and {minutes} minutes for each stop");
        assert!(guide.contains(&text), "docs/beds.md lacks this text: {text}");
    }

    #[test]
    fn time_of_a_run_has_the_stops_of_its_vms() {
        let mut plan = shipped("azure-latency.toml");
        let traffic_s = block_s(&plan) * f64::from(plan.design.blocks_max);
        let all_s = longest_s(&plan);
        assert!(traffic_s < 1800.0 && all_s > 3600.0, "{traffic_s} {all_s}");
        // One block.
        plan.design.budget = Some(Nanos(0));
        assert!(longest_s(&plan) < 3600.0, "{}", longest_s(&plan));
    }

    /// Two VMs, three arms of two workloads of 5.1 s, 8 to 12 blocks. Six switches in a block; one arm moves both VMs.
    #[test]
    fn times_with_and_without_stops_of_vms_are_shown_with_the_option_that_stops_need() {
        let text = azure_lines(&shipped("azure-latency.toml"));
        let lines: Vec<&str> = text.lines().collect();
        let [running, moved, stopped] = lines.as_slice() else { panic!("{text}") };
        for (line, start) in [
            (running, "  Azure      about 20 to 30 min with the trials"),
            (moved, "             about 116 to 174 min with the stops"),
            (stopped, "             about 2.5 to 3.7 h if every switch"),
        ] {
            assert!(line.starts_with(start), "{start}: {text}");
        }
        assert!(moved.ends_with("the run needs --allow-deallocate"), "{text}");
    }

    #[test]
    fn range_of_a_run_has_the_stops_that_it_needs_and_those_that_it_may_need() {
        let mut plan = shipped("azure-latency.toml");
        let [least_s, most_s] = range_s(&plan);
        // As the lines of the checked plan have it: 116 min for placements, 3.7 h with every switch of a NIC.
        assert!((115.5..116.5).contains(&(least_s / 60.0)) && (3.65..3.75).contains(&(most_s / 3600.0)));
        for arm in &mut plan.arms {
            arm.treatments.clear();
        }
        let blocks = [plan.design.blocks_min, plan.design.blocks_max];
        for (blocks, time_s) in blocks.into_iter().zip(range_s(&plan)) {
            assert!((time_s - block_s(&plan) * f64::from(blocks)).abs() < 1e-6, "{blocks} {time_s}");
        }
    }

    /// Four arms name both NICs of their pair: eight treatments of four NICs, each of which is switched once, for 20 s.
    #[test]
    fn crossover_switches_each_nic_once_for_all_arms() {
        let plan = shipped("azure-dual-stack.toml");
        let treatments = plan.arms.iter().map(|arm| arm.provider_treatments().len());
        assert_eq!((plan.arms.len(), treatments.sum::<usize>()), (4, 8));
        for stops in [Stops::None, Stops::Placements] {
            let changes_s = changes_s(&plan, stops);
            assert!((changes_s - 80.0).abs() < 1e-6, "{changes_s}");
        }
        // Without a crossover each block has the switches of every arm.
        let toggle_s = changes_s(&shipped("azure-latency.toml"), Stops::None);
        assert!((toggle_s - 120.0).abs() < 1e-6, "{toggle_s}");
    }

    /// NICs of a crossover are switched once, so the stops of four VMs are twelve minutes.
    #[test]
    fn crossover_stops_each_vm_once() {
        let plan = shipped("azure-dual-stack.toml");
        let blocks = plan.design.blocks_max;
        let stops_s = run_s(&plan, blocks, Stops::All) - block_s(&plan) * f64::from(blocks);
        assert!((stops_s - 4.0 * STOP_S).abs() < 1e-6, "{stops_s}");
        assert!(!azure_lines(&plan).contains("azure-placement"), "{}", azure_lines(&plan));
    }
}
