//! Comparisons of runs whose plans differ, and of one plan on two beds: what is compared, which facts differ, and which may be a cause.
use netduel_model::bed::{BedNetwork, Placement};
use netduel_model::metric::Metric;
use netduel_model::plan::spec::{PathKind, Side as Ends};
use netduel_model::plan::{Treatment, TreatmentAction};
use netduel_model::run::Run;
use netduel_model::units::Nanos;
use netduel_report::analyse_run;
use netduel_report::analysis::compare::{RunComparison, Side, compare};
use netduel_report::baseline::Baseline;
use netduel_report::history::Selection;
use netduel_report::json::compare::CompareDocument;
use netduel_report::words::compare::unmatched;
use netduel_stats::verdict::Verdict;
use netduel_store::format::{FORMAT, upgrade};
use serde_json::Value;

use crate::compare::{compared, host, run, verdict};
use crate::json::{baseline, origin, printed};
use crate::{bed, crossover};

/// What is not compared, with the reasons.
fn not_compared(comparison: &RunComparison<'_>) -> Vec<String> {
    comparison.unmatched.iter().map(|one| unmatched(comparison, one)).collect()
}

/// The differences with their values.
fn differences(comparison: &RunComparison<'_>) -> Vec<String> {
    let words = |values: &[Option<String>]| {
        values.iter().map(|value| value.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(" | ")
    };
    comparison.differences.iter().map(|one| format!("{}: {}", one.subject(), words(&one.values))).collect()
}

/// The differences that may be the cause of the verdict on the throughput of the accelerated arm.
fn causes(comparison: &RunComparison<'_>) -> Vec<String> {
    let verdict = verdict(comparison, "accelerated", Metric::Throughput, 1);
    let differs = matches!(verdict.judged.verdict, Verdict::Higher { .. } | Verdict::Lower { .. });
    assert!(differs, "only a difference has causes: {verdict:?}");
    verdict.explained_by.iter().map(|place| comparison.differences[*place].subject()).collect()
}

#[test]
fn arm_in_another_network_of_the_bed_is_not_compared() {
    let (mut before, mut after) = (run(1.5, 1), run(1.2, 2));
    before.header.plan.arms[1].network = Some(BedNetwork::Accelerated);
    after.header.plan.arms[1].network = Some(BedNetwork::Synthetic);
    compared(&[before, after], |comparison| {
        let [subject] = comparison.subjects.as_slice() else { panic!("{:?}", comparison.unmatched) };
        assert_eq!(subject.arm.as_str(), "synthetic");
        let reason = "arm accelerated: another network of the bed (A: accelerated; B: synthetic)";
        assert_eq!(not_compared(comparison), [reason]);
        let document = printed(&CompareDocument::of(comparison, &origin()));
        assert_eq!(document["not_compared"][0]["reason"], "network");
    });
}

#[test]
fn arms_that_only_one_run_exchanges_are_not_compared() {
    let runs = [true, false].map(|is_crossover| crossover::run(1.0, crossover::BLOCKS, is_crossover));
    compared(&runs, |comparison| {
        assert!(comparison.subjects.is_empty(), "{:?}", comparison.subjects);
        let expected = [
            "arm synthetic: crossover in A only (A: a to b, then c to d; B: a to b)",
            "arm accelerated: crossover in A only (A: c to d, then a to b; B: c to d)",
        ];
        assert_eq!(not_compared(comparison), expected);
        assert_eq!(differences(comparison), ["exchange of hosts (crossover): after block 8 | -"]);
        let [difference] = comparison.differences.as_slice() else { panic!("{:?}", comparison.differences) };
        assert!(!difference.aspect.may_change_values());
    });
    let [with, without] = runs;
    compared(&[without, with], |comparison| {
        let not_compared = not_compared(comparison);
        assert!(not_compared[0].contains("crossover in B only"), "{not_compared:?}");
    });
}

#[test]
fn other_hosts_of_a_crossover_are_no_exchange_of_one_run() {
    let [before, mut after] =
        [true, false].map(|is_crossover| crossover::run(1.0, crossover::BLOCKS, is_crossover));
    after.header.plan.arms[0].pair.client = host("b");
    after.header.plan.arms[0].pair.server = host("a");
    compared(&[before, after], |comparison| {
        let reason = "arm synthetic: other hosts (A: a to b, then c to d; B: b to a)";
        assert_eq!(not_compared(comparison)[0], reason);
    });
}

#[test]
fn host_of_the_second_half_of_a_crossover_may_be_the_cause() {
    let [before, mut after] = [1.0, 3.0].map(|effect| crossover::run(effect, crossover::BLOCKS, true));
    // The arm begins on c and d.
    after.header.hosts.get_mut(&host("a")).unwrap().kernel = Some("6.19.0-cloud-amd64".to_owned());
    compared(&[before, after], |comparison| assert_eq!(causes(comparison), ["kernel of host a"]));
}

#[test]
fn addresses_and_required_path_of_an_arm_may_be_the_cause_of_its_verdicts_only() {
    for (place, name) in [(1, "accelerated"), (0, "synthetic")] {
        let (before, mut after) = (run(1.5, 1), run(1.2, 2));
        let arm = &mut after.header.plan.arms[place];
        let interface = arm.expect_client.clone().unwrap();
        arm.server_addresses = vec!["10.77.2.5".parse().unwrap()];
        arm.expect_path = Some(PathKind::Vf);
        arm.expect_mbps = Some(10_000);
        let ends = format!("client {interface}, server {interface}");
        compared(&[before, after], |comparison| {
            let expected = [
                format!("server addresses of arm {name}: those of the host | 10.77.2.5"),
                format!("required path of arm {name}: {ends} | virtual function at both ends, {ends}"),
                format!("expected rate of arm {name}: none | 10000 Mbit/s"),
            ];
            assert_eq!(differences(comparison), expected);
            let of_arm = ["server addresses of arm accelerated", "required path of arm accelerated"];
            assert_eq!(causes(comparison), if place == 1 { &of_arm[..] } else { &[] });
            let document = printed(&CompareDocument::of(comparison, &origin()));
            let difference = &document["differences"][0];
            assert_eq!((&difference["arm"], &difference["workload"]), (&name.into(), &Value::Null));
        });
    }
}

#[test]
fn settings_of_the_design_and_of_the_command_line_are_differences_and_no_causes() {
    let (before, mut after) = (run(1.5, 1), run(1.2, 2));
    after.header.plan.design.budget = Some(Nanos::from_millis(600_000));
    after.header.annotations.overrides = ["budget=10 min", "metrics=throughput"].map(str::to_owned).to_vec();
    for arm in &mut after.header.plan.arms {
        arm.workloads[0].metrics = vec![Metric::Throughput];
    }
    compared(&[before, after], |comparison| {
        assert_eq!(not_compared(comparison), Vec::<String>::new());
        // The first run has neither a budget nor other settings.
        let mut expected = vec![
            "budget: - | 10 min".to_owned(),
            "settings of the command line: - | budget=10 min; metrics=throughput".to_owned(),
        ];
        expected.extend(["synthetic", "accelerated"].map(|arm| {
            format!("judged metrics of bulk on {arm}: throughput, cpu-per-gigabyte | throughput")
        }));
        let [mut seen, mut expected] = [differences(comparison), expected];
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected);
        assert_eq!(causes(comparison), Vec::<String>::new());
    });
}

/// A run on a bed of this resource group, whose guests give this name to the NIC in the network of the accelerated arm. The arm changes
/// its queues, and a NIC at the provider.
fn on_bed(effect: f64, seed: u64, group: &str, interface: &str) -> Run {
    let mut run = run(effect, seed);
    let mut bed = bed::run().header.bed.unwrap();
    group.clone_into(&mut bed.group);
    for vm in &mut bed.vms {
        interface.clone_into(&mut vm.nics[2].seen.as_mut().unwrap().interface);
    }
    run.header.bed = Some(bed);
    let plan = &mut run.header.plan;
    for (host, vm) in plan.hosts.values_mut().zip(["vm1", "vm2"]) {
        host.vm = Some(vm.to_owned());
    }
    let arm = &mut plan.arms[1];
    arm.network = Some(BedNetwork::Accelerated);
    let queues = TreatmentAction::Queues { interface: interface.to_owned(), queues: 1 };
    let nic = TreatmentAction::AzureNic {
        nic: "vm2-accelerated".to_owned(),
        resource_group: Some(group.to_owned()),
        accelerated: true,
    };
    arm.treatments =
        vec![Treatment { action: queues, on: Ends::Both }, Treatment { action: nic, on: Ends::Server }];
    run
}

/// The same plan on two beds.
fn on_two_beds() -> [Run; 2] {
    [on_bed(1.5, 1, "netduel-large", "eth2"), on_bed(1.2, 2, "netduel-small", "eth1")]
}

#[test]
fn plan_on_two_beds_is_compared_and_the_names_of_the_beds_are_differences() {
    compared(&on_two_beds(), |comparison| {
        assert_eq!((comparison.subjects.len(), not_compared(comparison)), (2, Vec::new()));
        let expected = [
            "changed interfaces of arm accelerated: client eth2, server eth2 | client eth1, server eth1",
            "resource group of arm accelerated: netduel-large | netduel-small",
        ];
        assert_eq!(differences(comparison), expected);
        assert_eq!(causes(comparison).len(), 2);
    });
}

#[test]
fn baseline_of_a_run_on_a_bed_is_compared_with_a_run_on_another_bed() {
    let [before, after] = on_two_beds();
    let file = Baseline::parse(&baseline(&before).to_string(), FORMAT, upgrade).unwrap();
    let analysis = analyse_run(&after);
    let comparison = compare(&[file.side(), Side::of(&after, &analysis)], &[]);
    assert_eq!((comparison.subjects.len(), not_compared(&comparison)), (2, Vec::new()));
    let mut of_file = differences(&comparison);
    of_file.sort();
    compared(&[before.clone(), after.clone()], |comparison| assert_eq!(of_file, differences(comparison)));
}

#[test]
fn series_of_a_history_goes_on_after_a_change_of_the_bed() {
    let runs = on_two_beds();
    let history = crate::history::history(&runs, &Selection::default());
    let mut of_arm = history.series.iter().filter(|one| one.arm.as_str() == "accelerated").peekable();
    assert!(of_arm.peek().is_some());
    for one in of_arm {
        assert_eq!((one.points.len(), one.other_runs), (2, 0), "{one:?}");
    }
}

#[test]
fn reason_names_the_resource_group_of_others_and_no_name_of_a_bed() {
    let [before, mut after] = on_two_beds();
    let nic = &mut after.header.plan.arms[1].treatments[1].action;
    let TreatmentAction::AzureNic { resource_group, .. } = nic else { panic!("another treatment") };
    *resource_group = Some("others".to_owned());
    compared(&[before, after], |comparison| {
        let nic = "accelerated networking of vm2-accelerated on (server)";
        let words = format!("1 queue on the NIC in the arm's network (both), {nic}");
        let reason =
            format!("arm accelerated: other treatments (A: {words}; B: {words}, resource group others)");
        assert_eq!(not_compared(comparison), [reason]);
    });
}

#[test]
fn placement_and_accelerated_networking_of_a_bed_are_facts_of_its_hosts() {
    let [before, mut after] = [(1.5, 1), (1.2, 2)].map(|(effect, seed)| on_bed(effect, seed, "x", "eth2"));
    let bed = after.header.bed.as_mut().unwrap();
    bed.placement = Placement::ProximityGroup;
    let vm = &mut bed.vms[1];
    vm.nics[1].is_accelerated = true;
    vm.claimed.zone = Some("2".to_owned());
    vm.claimed.placement = Some("netduel-proximity".to_owned());
    vm.claimed.physical_host = Some("HOST-9".to_owned());
    let mut elsewhere = after.clone();
    elsewhere.header.bed = None;
    compared(&[before.clone(), after], |comparison| {
        let expected = [
            "bed placement of host a: none | proximity-group",
            "bed placement of host b: none | proximity-group",
            "claimed placement group of host b: two-nic-near | netduel-proximity",
            "accelerated networking in the network synthetic of host b: off | on",
            "claimed zone of host b: - | 2",
            "claimed physical host of host b: - | HOST-9",
        ];
        assert_eq!(differences(comparison), expected);
        assert_eq!(causes(comparison).len(), expected.len());
    });
    // A run without a bed does not know them.
    compared(&[before, elsewhere], |comparison| assert_eq!(differences(comparison), [""; 0]));
}
