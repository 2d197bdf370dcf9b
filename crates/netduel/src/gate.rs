//! The gate of `netduel run`, `report` and `compare`: whether a command passes by the conditions of `--fail-if` and by the data that it has.
use netduel_model::ids::ArmName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::Run;
use netduel_model::warning::Warning;
use netduel_report::analysis::Analysis;
use netduel_report::analysis::compare::RunComparison;
use netduel_report::document::verdicts::Sides;
use netduel_report::gate::{Checked, Condition, Standing, unfinished};
use netduel_report::words;

use crate::cli::shared::GateArgs;
use crate::exit::{Failure, Kind};
use crate::redaction;

/// Refuses a condition about nothing that is compared, such as one with a misspelt name.
pub fn check(gate: &GateArgs, plan: &ResolvedPlan, sides: Sides) -> Result<(), Failure> {
    let Some(condition) = gate.fail_if.iter().find(|condition| !condition.is_about(plan, sides)) else {
        return Ok(());
    };
    let text = format!("failed to apply `{condition}`: {}", condition.lack(plan, sides));
    Err(Failure::message(Kind::Usage, text).remedy("`netduel plan check` lists arms, workloads and verdicts"))
}

/// The conditions as they are about what is shown: the second plan is the first one with pseudonyms. The same without `--redact`.
pub fn shown(gate: &GateArgs, plans: [&ResolvedPlan; 2]) -> GateArgs {
    let shown = |one: &Condition| one.renamed(plans, redaction::text(&one.to_string()));
    GateArgs { fail_if: gate.fail_if.iter().map(shown).collect(), strict: gate.strict }
}

/// Whether a run passes: a line for people, absent without conditions. `report`: the command that prints its report.
pub fn of_run(
    gate: &GateArgs,
    run: &Run,
    analysis: &Analysis,
    report: &str,
) -> Result<Option<String>, Failure> {
    let lacks = [without_end(gate, [("the run".to_owned(), analysis)]), data_missing(run, analysis, report)];
    decide(gate, |condition| condition.of_run(analysis), lacks)
}

/// Whether a comparison passes, as [`of_run`].
pub fn of_runs(gate: &GateArgs, comparison: &RunComparison<'_>) -> Result<Option<String>, Failure> {
    let runs = comparison.runs.iter().map(|run| (format!("run {}", run.label), run.analysis));
    let data_missing = (!comparison.has_data()).then(|| without_data(comparison));
    decide(gate, |condition| condition.of_runs(comparison), [without_end(gate, runs), data_missing])
}

/// A proven regression fails a command, then missing data: a run that did not end, a condition without data, any other comparison without
/// data. Then with `--strict` a regression that is not ruled out. `lacks`: whether a run did not end, and whether a comparison has no data.
fn decide(
    gate: &GateArgs,
    checked: impl Fn(&Condition) -> Vec<Checked>,
    lacks: [Option<Failure>; 2],
) -> Result<Option<String>, Failure> {
    let answers: Vec<(&Condition, Vec<Checked>)> =
        gate.fail_if.iter().map(|condition| (condition, checked(condition))).collect();
    let with = |standing: Standing| -> Vec<(&Condition, &Checked)> {
        let all =
            answers.iter().flat_map(|(condition, checked)| checked.iter().map(move |one| (*condition, one)));
        all.filter(|(_, one)| one.standing == standing).collect()
    };
    let about_nothing = answers.iter().find(|(_, checked)| checked.is_empty());
    let [unfinished, data_missing] = lacks;
    let open = with(Standing::Open);
    let reasons = [
        failure(gate, &with(Standing::Worse)),
        unfinished,
        about_nothing.map(|(condition, _)| without_comparison(condition)),
        undecided(&with(Standing::NoData)),
        data_missing,
        failure(gate, &open),
    ];
    if let Some(failure) = reasons.into_iter().flatten().next() {
        return Err(failure);
    }
    let [safe, open] = [with(Standing::NotWorse).len(), open.len()];
    let passed = || {
        format!(
            "passed: no regression beyond --fail-if is shown; ruled out in {safe} of {} comparisons",
            safe + open
        )
    };
    Ok((!answers.is_empty()).then(passed))
}

/// Conditions are not decided by a part of a run.
fn without_end<'a>(
    gate: &GateArgs,
    runs: impl IntoIterator<Item = (String, &'a Analysis)>,
) -> Option<Failure> {
    let mut runs = runs.into_iter().filter(|_| !gate.fail_if.is_empty());
    let (run, why) = runs.find_map(|(run, analysis)| Some((run, unfinished(analysis)?)))?;
    let text = format!("failed to apply --fail-if: {run} is incomplete: {why}");
    let remedy = "complete it with `netduel run --resume RUN`, then repeat this command";
    Some(Failure::message(Kind::NoVerdict, text).remedy(remedy))
}

fn without_comparison(condition: &Condition) -> Failure {
    let text = format!("failed to apply `{condition}`: no comparison has its metric, workload and arm");
    Failure::message(Kind::NoVerdict, text).remedy("the report names what was not compared")
}

/// Conditions that cover comparisons without data.
fn undecided(missing: &[(&Condition, &Checked)]) -> Option<Failure> {
    let ((condition, one), others) = missing.split_first()?;
    let text = format!("failed to apply `{condition}`: {}: {}{}", one.subject, one.verdict, more(others));
    let remedy = "the report names what was not compared, and its warnings trials that do not count";
    Some(Failure::message(Kind::NoVerdict, text).remedy(remedy))
}

/// The error of a run with a comparison without data; a dropped arm is none, because its warning states why it has none.
fn data_missing(run: &Run, analysis: &Analysis, report: &str) -> Option<Failure> {
    if analysis.verdict_possible(|arm| is_dropped(run, arm)) {
        return None;
    }
    let missing = words::without_value(analysis);
    let text = if missing.is_empty() {
        "the run ended, but too few trials count for a verdict".to_owned()
    } else {
        format!("the run ended, but metrics have no value: {}", missing.join("; "))
    };
    Some(Failure::message(Kind::NoVerdict, text).remedy(format!("`{report}` lists the warnings")))
}

/// Whether a run dropped an arm because a host refused its treatment.
fn is_dropped(run: &Run, arm: &ArmName) -> bool {
    run.warnings
        .iter()
        .any(|warning| matches!(warning, Warning::ArmDropped { arm: dropped, .. } if dropped == arm))
}

/// The error of a comparison that lacks a value.
fn without_data(comparison: &RunComparison<'_>) -> Failure {
    let missing = missing_values(comparison);
    let (text, remedy) = match missing.split_first() {
        Some((first, others)) => (
            format!("failed to compare all values of the runs: {first}{}", more(others)),
            "the section \"Verdicts\" shows all, and the warnings name trials that do not count",
        ),
        None if comparison.published.is_empty() => (
            "failed to compare the runs: no arm and workload is in both with the same settings".to_owned(),
            "the section \"Not compared\" has the reasons; compare runs of the same plan",
        ),
        None => (
            "failed to compare the run with published figures: no arm has path and traffic of a figure, or one has no valid value"
                .to_owned(),
            "the section \"Published figures\" names them; compare a run of a plan with the path and the traffic of a figure",
        ),
    };
    Failure::message(Kind::NoVerdict, text).remedy(remedy)
}

/// The values that a verdict between two runs lacks, in words.
fn missing_values(comparison: &RunComparison<'_>) -> Vec<String> {
    let mut missing = Vec::new();
    for subject in &comparison.subjects {
        for verdict in subject.verdicts.iter().filter(|verdict| verdict.sizes.contains(&0)) {
            let [of_first, _] = verdict.sizes;
            let run = comparison.label(if of_first == 0 { 0 } else { verdict.run });
            let (metric, workload, arm) = (verdict.metric.title(), &subject.workload.name, &subject.arm);
            missing.push(format!("{metric} of {workload} on {arm} has no valid value in run {run}"));
        }
    }
    missing
}

/// One line: the first reason, and the number of the others.
fn failure(gate: &GateArgs, reasons: &[(&Condition, &Checked)]) -> Option<Failure> {
    let ((condition, one), others) = reasons.split_first()?;
    let reason = condition.failure(one.standing, gate.strict)?;
    let text = format!("{reason}: {}: {}{}", one.subject, one.verdict, more(others));
    Some(Failure::message(Kind::Gate, text))
}

/// How many reasons a line does not name.
fn more<T>(others: &[T]) -> String {
    match others.len() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(strict: bool) -> GateArgs {
        let fail_if = ["throughput < -5 %", "latency-p50 > 5 %"];
        GateArgs { fail_if: fail_if.map(|text| text.parse().expect("a condition")).to_vec(), strict }
    }

    /// The answer when every condition is about comparisons with these standings.
    fn decided(strict: bool, standings: &[Standing]) -> Result<Option<String>, Failure> {
        decided_without(strict, standings, [None, None])
    }

    fn decided_without(
        strict: bool,
        standings: &[Standing],
        lacks: [Option<Failure>; 2],
    ) -> Result<Option<String>, Failure> {
        let checked = |condition: &Condition| -> Vec<Checked> {
            let checked = |standing: &Standing| Checked {
                subject: condition.to_string().split(' ').next().unwrap_or_default().to_owned(),
                verdict: "12 % lower".to_owned(),
                standing: *standing,
            };
            standings.iter().map(checked).collect()
        };
        decide(&gate(strict), checked, lacks)
    }

    #[test]
    fn gate_fails_by_proven_regressions_and_strictly_also_by_open_ones() {
        use Standing::{NoData, NotWorse, Open, Worse};
        for (strict, standings, code) in [
            (false, &[NotWorse, NotWorse][..], None),
            (false, &[NotWorse, NoData], Some(Kind::NoVerdict)),
            (false, &[Worse, NoData], Some(Kind::Gate)),
            (true, &[Open, NoData], Some(Kind::NoVerdict)),
            (false, &[NotWorse, Open], None),
            (false, &[Open, Worse], Some(Kind::Gate)),
            (false, &[], Some(Kind::NoVerdict)),
            (true, &[NotWorse], None),
            (true, &[NotWorse, Open], Some(Kind::Gate)),
            (true, &[Worse, Open], Some(Kind::Gate)),
            (true, &[], Some(Kind::NoVerdict)),
        ] {
            let answer = decided(strict, standings).err().map(|failure| failure.kind);
            assert_eq!(answer, code, "strict {strict}: {standings:?}");
        }
    }

    #[test]
    fn missing_data_comes_after_proven_regressions_and_before_open_ones() {
        use Standing::{NoData, NotWorse, Open, Worse};
        let lacking = |name: &str| Some(Failure::message(Kind::NoVerdict, name));
        for (standings, has_end, has_data, line) in [
            (&[Worse][..], false, false, "it is worse"),
            (&[NoData], false, false, "no end"),
            (&[NoData], true, false, "failed to apply `throughput < -5 %`: throughput: 12 % lower ("),
            (&[Open], true, false, "no data"),
            (&[NotWorse], true, false, "no data"),
            (&[Open], true, true, "it may be worse (--strict)"),
        ] {
            let lacks = [lacking("no end").filter(|_| !has_end), lacking("no data").filter(|_| !has_data)];
            let failure = decided_without(true, standings, lacks).expect_err(line).to_string();
            assert!(failure.contains(line), "{standings:?}: {failure}");
        }
        // Without conditions only the data counts.
        let none = GateArgs::default();
        assert!(decide(&none, |_| Vec::new(), [None, lacking("no data")]).is_err());
    }

    #[test]
    fn one_line_names_the_first_reason_and_counts_the_others() {
        use Standing::{NotWorse, Open, Worse};
        let line =
            |strict, standings: &[Standing]| decided(strict, standings).expect_err("it fails").to_string();
        assert_eq!(
            line(false, &[NotWorse, Worse]),
            "failed by `throughput < -5 %`: it is worse: throughput: 12 % lower (and 1 more)"
        );
        assert!(line(true, &[Open]).contains("it may be worse (--strict)"));
        let passed = decided(false, &[NotWorse, Open]).expect("it passes").expect("a line");
        assert_eq!(
            passed,
            "passed: no regression beyond --fail-if is shown; ruled out in 2 of 4 comparisons"
        );
        let none = GateArgs::default();
        assert_eq!(decide(&none, |_| Vec::new(), [None, None]).expect("nothing is asked"), None);
    }
}
