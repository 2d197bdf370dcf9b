//! The gate of `netduel run` and `netduel compare`: conditions of `--fail-if`, and whether the command fails by them.
use netduel_model::plan::ResolvedPlan;
use netduel_report::document::verdicts::Sides;
use netduel_report::gate::{Checked, Condition, Standing};

use crate::cli::shared::GateArgs;
use crate::exit::{Failure, Kind};

/// Refuses a condition about nothing that is compared, such as one with a misspelt name.
pub fn check(gate: &GateArgs, plan: &ResolvedPlan, sides: Sides) -> Result<(), Failure> {
    let Some(condition) = gate.fail_if.iter().find(|condition| !condition.is_about(plan, sides)) else {
        return Ok(());
    };
    let text =
        format!("failed to apply `{condition}`: the plan has no verdict on such a metric, workload and arm");
    let baseline = match sides {
        Sides::Arms => "; the baseline is compared with nothing",
        Sides::Runs => "",
    };
    Err(Failure::message(Kind::Usage, text)
        .remedy(format!("`netduel plan check` lists arms, workloads and verdicts{baseline}")))
}

/// Whether the command passes: a line for people, absent without conditions. A proven regression fails it, then a condition without a
/// comparison, then with `--strict` a regression that is not ruled out.
pub fn decide(
    gate: &GateArgs,
    checked: impl Fn(&Condition) -> Vec<Checked>,
) -> Result<Option<String>, Failure> {
    let answers: Vec<(&Condition, Vec<Checked>)> =
        gate.fail_if.iter().map(|condition| (condition, checked(condition))).collect();
    let with = |standing: Standing| -> Vec<(&Condition, &Checked)> {
        let all =
            answers.iter().flat_map(|(condition, checked)| checked.iter().map(move |one| (*condition, one)));
        all.filter(|(_, one)| one.standing == standing).collect()
    };
    if let Some(failure) = failure("it is worse", &with(Standing::Worse)) {
        return Err(failure);
    }
    if let Some((condition, _)) = answers.iter().find(|(_, checked)| checked.is_empty()) {
        let text = format!("failed to apply `{condition}`: no comparison has its metric, workload and arm");
        return Err(Failure::message(Kind::NoVerdict, text).remedy("the report names what was not compared"));
    }
    let open = with(Standing::Open);
    if gate.strict
        && let Some(failure) = failure("it may be worse (--strict)", &open)
    {
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

/// One line: the first reason, and the number of the others.
fn failure(what: &str, reasons: &[(&Condition, &Checked)]) -> Option<Failure> {
    let ((condition, one), others) = reasons.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    let text = format!("failed by `{condition}`: {what}: {}: {}{others}", one.subject, one.verdict);
    Some(Failure::message(Kind::Gate, text))
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
        decide(&gate(strict), |condition| {
            let checked = |standing: &Standing| Checked {
                subject: condition.to_string().split(' ').next().unwrap_or_default().to_owned(),
                verdict: "12 % lower".to_owned(),
                standing: *standing,
            };
            standings.iter().map(checked).collect()
        })
    }

    #[test]
    fn gate_fails_by_proven_regressions_and_strictly_also_by_open_ones() {
        use Standing::{NotWorse, Open, Worse};
        for (strict, standings, code) in [
            (false, &[NotWorse, NotWorse][..], None),
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
        assert_eq!(decide(&none, |_| Vec::new()).expect("nothing is asked"), None);
    }
}
