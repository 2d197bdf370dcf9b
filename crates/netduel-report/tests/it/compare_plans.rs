//! Comparisons of runs whose plans differ: what is compared, which facts differ, and which may be a cause.
use netduel_model::bed::BedNetwork;
use netduel_model::metric::Metric;
use netduel_model::plan::spec::PathKind;
use netduel_report::analysis::compare::RunComparison;
use netduel_report::json::compare::CompareDocument;
use netduel_report::words::compare::unmatched;
use netduel_stats::verdict::Verdict;
use serde_json::Value;

use crate::compare::{compared, host, run, verdict};
use crate::crossover;
use crate::json::{origin, printed};

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
            "arm synthetic: other hosts (A: a to b, then c to d; B: a to b)",
            "arm accelerated: other hosts (A: c to d, then a to b; B: c to d)",
        ];
        assert_eq!(not_compared(comparison), expected);
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
