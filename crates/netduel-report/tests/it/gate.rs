//! Gates whose comparisons are missing: an arm or a workload that a run lacks, a dropped arm, and a run that did not end.
use netduel_model::run::{Run, RunEnd};
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;
use netduel_report::analysis::Analysis;
use netduel_report::analysis::compare::{RunComparison, Side, compare};
use netduel_report::checks::{Check, Checks, Outcome, Rules};
use netduel_report::document::verdicts::Sides;
use netduel_report::gate::{Condition, Standing};
use netduel_report::{analyse_run, junit};

use crate::builder::{Recipe, build};

/// A quiet run of one workload; the seed also makes its name.
fn run(seed: u64) -> Run {
    crate::compare::run(1.5, seed)
}

fn condition(text: &str) -> Condition {
    text.parse().unwrap()
}

fn compared<T>(runs: &[Run], test: impl FnOnce(&RunComparison<'_>) -> T) -> T {
    let analyses: Vec<Analysis> = runs.iter().map(analyse_run).collect();
    let sides: Vec<Side<'_>> = runs.iter().zip(&analyses).map(|(run, own)| Side::of(run, own)).collect();
    test(&compare(&sides, &[]))
}

/// Sides and name of the checks without data.
fn errors(checks: &Checks) -> Vec<(&str, &str)> {
    let own = checks.checks.iter().filter(|check| check.outcome == Outcome::NoData);
    own.map(|check: &Check| (check.sides.as_str(), check.name.as_str())).collect()
}

#[test]
fn condition_needs_each_arm_of_each_run_that_it_covers() {
    let mut third = run(3);
    third.header.plan.arms[1].name = "renamed".parse().unwrap();
    for trial in third.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "accelerated") {
        trial.slot.arm = "renamed".parse().unwrap();
    }
    compared(&[run(1), run(2), third], |comparison| {
        let own = [condition("throughput on accelerated < -5 %")];
        let checked = own[0].of_runs(comparison);
        let standings: Vec<Standing> = checked.iter().map(|one| one.standing).collect();
        assert_eq!(standings, [Standing::NotWorse, Standing::NoData], "{checked:?}");
        assert_eq!(checked[1].subject, "throughput of bulk on accelerated, C against A");
        assert_eq!(checked[1].verdict, "not compared: arm accelerated: A has it, C does not");
        let checks =
            |conditions: &[Condition]| Checks::of_runs(comparison, Rules { conditions, strict: false });
        assert_eq!(errors(&checks(&own)), [("accelerated, C against A", "throughput of bulk")]);
        assert!(junit::page(&checks(&own)).contains("errors=\"1\""));
        assert!(errors(&checks(&[])).is_empty(), "without conditions nothing is needed");
        let other = [condition("throughput on synthetic < -5 %")];
        assert!(errors(&checks(&other)).is_empty(), "all runs have the arm");
    });
}

#[test]
fn condition_needs_the_settings_of_the_first_run() {
    let mut after = run(2);
    after.header.plan.arms[1].workloads[0].timing.duration = Nanos::from_millis(4_000);
    compared(&[run(1), after], |comparison| {
        let checked = condition("throughput < -5 %").of_runs(comparison);
        let standings: Vec<(&str, Standing)> =
            checked.iter().map(|one| (one.subject.as_str(), one.standing)).collect();
        let expected = [
            ("throughput of bulk on synthetic, B against A", Standing::NotWorse),
            ("throughput of bulk on accelerated, B against A", Standing::NoData),
        ];
        assert_eq!(standings, expected);
        assert!(checked[1].verdict.starts_with("not compared: bulk of arm accelerated: other settings ("));
    });
}

#[test]
fn condition_that_covers_a_dropped_arm_has_no_data() {
    let failed = (0..8).map(|block| (block, 1)).collect();
    let mut run = build(&Recipe { failed, workloads: vec!["bulk"], ..Recipe::default() });
    let arm = "accelerated".parse().unwrap();
    run.warnings.push(Warning::ArmDropped { arm, reason: "no such device".to_owned() });
    let analysis = analyse_run(&run);
    let own = [condition("throughput on accelerated < -5 %")];
    let standings: Vec<Standing> = own[0].of_run(&analysis).iter().map(|one| one.standing).collect();
    assert_eq!(standings, [Standing::NoData]);
    for strict in [false, true] {
        let checks = |conditions: &[Condition]| Checks::of_run(&run, &analysis, Rules { conditions, strict });
        assert_eq!(errors(&checks(&own)), [("accelerated against synthetic", "throughput of bulk")]);
        assert!(errors(&checks(&[])).is_empty(), "its warning says why");
    }
}

#[test]
fn conditions_need_the_end_of_each_run() {
    let own = [condition("throughput < -5 %")];
    let failed = RunEnd::Failed { detail: "no route to host".to_owned() };
    for end in [None, Some(RunEnd::Interrupted), Some(failed), Some(RunEnd::BudgetReached)] {
        let is_complete = end == Some(RunEnd::BudgetReached);
        let after = Run { end, ..run(2) };
        let analysis = analyse_run(&after);
        let checks =
            |conditions: &[Condition]| Checks::of_run(&after, &analysis, Rules { conditions, strict: false });
        let missing = [("conditions", "end of the run")];
        assert_eq!(errors(&checks(&own)), missing[usize::from(is_complete)..], "{:?}", after.end);
        assert!(errors(&checks(&[])).is_empty());
        compared(&[run(1), after.clone()], |comparison| {
            let checks = Checks::of_runs(comparison, Rules { conditions: &own, strict: false });
            let missing = [("conditions", "end of run B")];
            assert_eq!(errors(&checks), missing[usize::from(is_complete)..], "{:?}", after.end);
        });
    }
}

#[test]
fn renamed_condition_is_about_the_arm_and_the_workload_at_the_same_place() {
    let own = run(1).header.plan;
    let mut shown = own.clone();
    shown.workloads[0] = "load".parse().unwrap();
    // Each arm has a name that the other one had.
    shown.arms[0].name = own.arms[1].name.clone();
    shown.arms[1].name = own.arms[0].name.clone();
    for (text, renamed) in [
        ("throughput of bulk on accelerated < -5 %", "throughput of load on synthetic < -5 %"),
        ("throughput on synthetic < -5 %", "throughput on accelerated < -5 %"),
        ("throughput < -5 %", "throughput < -5 %"),
        ("throughput on x < -5 %", "throughput on x < -5 %"),
    ] {
        let seen = condition(text).renamed([&own, &shown], renamed.to_owned());
        assert_eq!(seen, condition(renamed), "{text}");
    }
}

#[test]
fn lack_of_a_condition_has_the_names_of_the_plan() {
    let plan = run(1).header.plan;
    let verdicts: Vec<&str> = plan.arms[1].workloads[0].metrics.iter().map(|metric| metric.key()).collect();
    let verdicts = verdicts.join(", ");
    let outage = format!("the plan has no verdict on outage of bulk on accelerated (verdicts: {verdicts})");
    for (text, sides, lack) in [
        ("throughput on x < -5 %", Sides::Arms, "the plan has no arm x (arms: accelerated)"),
        ("throughput on x < -5 %", Sides::Runs, "the plan has no arm x (arms: synthetic, accelerated)"),
        (
            "throughput on synthetic < -5 %",
            Sides::Arms,
            "the baseline is compared with nothing (arms: accelerated)",
        ),
        ("throughput of x < -5 %", Sides::Arms, "the plan has no workload x (workloads: bulk)"),
        ("outage of bulk on accelerated > 50 ms", Sides::Arms, outage.as_str()),
    ] {
        let condition = condition(text);
        assert!(!condition.is_about(&plan, sides), "{text}");
        assert_eq!(condition.lack(&plan, sides), lack, "{text}");
    }
}
