//! The verdicts of a run, or of a comparison of runs, as checks with a result each: what test reports and annotations show.
//!
//! A check fails by the conditions of a gate only, so that it agrees with the exit code. Nothing is rendered here.
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::warning::Warning;
use netduel_stats::verdict::Judged;

use crate::analysis::compare::{ComparedRun, RunComparison, RunVerdict, Subject};
use crate::analysis::{Analysis, ArmValues, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::document::verdicts::{Effect, Sides};
use crate::gate::{self, Condition, Standing, missing};
use crate::words::{self, Tone};

/// The verdicts of a run or of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checks {
    /// The question.
    pub title: String,
    /// What was run, and with what: name and value.
    pub properties: Vec<(String, String)>,
    /// Start of the first run, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The checks: each verdict, then what is not compared, then what conditions lack: a comparison, or the end of a run.
    pub checks: Vec<Check>,
    /// The command that prints the whole report.
    pub command: String,
}

/// A verdict with what a gate says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is set against what: `accelerated against synthetic`; between runs `accelerated, B against A`.
    pub sides: String,
    /// What is compared: `throughput of bulk`.
    pub name: String,
    /// The verdict, or why there is none.
    pub verdict: String,
    /// Label and value of each side, the baseline first.
    pub values: Vec<(String, String)>,
    /// Whether the verdict is an improvement.
    pub tone: Tone,
    /// The result.
    pub outcome: Outcome,
    /// The conditions that decided the result; those of a failure with the reason, as the command prints it.
    pub conditions: Vec<String>,
    /// Warnings about the values, and differences between runs that may be the cause.
    pub notes: Vec<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A verdict without a condition that it fails.
    Passed,
    /// Nothing is shown, and no condition demands that it is.
    Open,
    /// A comparison without data, or a condition without a comparison or with a run that did not end.
    NoData,
    /// A condition shows a regression; with `strict` also: does not rule one out.
    Failed,
}

/// Conditions, and whether a regression has to be ruled out.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The conditions.
    pub conditions: &'a [Condition],
    /// Whether a check fails also when its interval does not rule out a regression.
    pub strict: bool,
}

impl Rules<'_> {
    /// The result of a verdict, and the conditions that decided it.
    fn outcome(
        &self,
        has_data: bool,
        tone: Tone,
        standing: impl Fn(&Condition) -> Option<Standing>,
    ) -> (Outcome, Vec<String>) {
        let standings: Vec<(&Condition, Standing)> =
            self.conditions.iter().filter_map(|one| Some((one, standing(one)?))).collect();
        let with = |wanted: Standing| -> Vec<String> {
            let own = standings.iter().filter(|(_, standing)| *standing == wanted);
            let words = |(condition, standing): &(&Condition, Standing)| {
                condition.failure(*standing, self.strict).unwrap_or_else(|| condition.to_string())
            };
            own.map(words).collect()
        };
        let (worse, open) = (with(Standing::Worse), with(Standing::Open));
        match (worse.is_empty(), has_data, open.is_empty()) {
            (false, _, _) => (Outcome::Failed, worse),
            (true, false, _) => (Outcome::NoData, with(Standing::NoData)),
            (true, true, false) if self.strict => (Outcome::Failed, open),
            // With a condition its answer counts, else the verdict.
            (true, true, false) => (Outcome::Open, open),
            (true, true, true) if standings.is_empty() && tone == Tone::Open => (Outcome::Open, Vec::new()),
            (true, true, true) => (Outcome::Passed, with(Standing::NotWorse)),
        }
    }

    /// Conditions about nothing that is compared.
    fn without_comparison(&self, is_about: impl Fn(&Condition) -> bool) -> impl Iterator<Item = Check> {
        let missing = self.conditions.iter().filter(move |one| !is_about(one));
        missing.map(|condition| Check {
            sides: CONDITIONS.to_owned(),
            name: condition.to_string(),
            verdict: "no comparison has the metric, workload and arm of the condition".to_owned(),
            ..without_data(vec![condition.to_string()])
        })
    }

    /// Conditions are not decided by a part of a run.
    fn without_end(&self, name: String, analysis: &Analysis) -> Option<Check> {
        let why = gate::unfinished(analysis).filter(|_| !self.conditions.is_empty())?;
        Some(Check {
            sides: CONDITIONS.to_owned(),
            name,
            verdict: format!("the run is incomplete: {why}"),
            ..without_data(self.conditions.iter().map(ToString::to_string).collect())
        })
    }

    /// Comparisons between runs that do not exist and that a condition is about.
    fn without_match(&self, comparison: &RunComparison<'_>) -> Vec<Check> {
        let check = |one: missing::Missing<'_>| {
            let own = self.conditions.iter().filter(|condition| condition.is_about_missing(&one));
            let conditions: Vec<String> = own.map(ToString::to_string).collect();
            (!conditions.is_empty()).then(|| Check {
                sides: sides_of_runs(comparison, one.arm, one.run),
                name: name_of(one.metric, one.workload),
                verdict: one.reason(comparison),
                ..without_data(conditions)
            })
        };
        missing::of(comparison).into_iter().filter_map(check).collect()
    }
}

/// The sides of a check that is about conditions themselves.
const CONDITIONS: &str = "conditions";

/// A check that these conditions need and that there is no data for. Sides, name and verdict are to be filled in.
fn without_data(conditions: Vec<String>) -> Check {
    Check {
        sides: String::new(),
        name: String::new(),
        verdict: String::new(),
        values: Vec::new(),
        tone: Tone::Open,
        outcome: Outcome::NoData,
        conditions,
        notes: Vec::new(),
    }
}

impl Checks {
    /// The verdicts of a run: each arm against the baseline.
    pub fn of_run(run: &Run, analysis: &Analysis, rules: Rules<'_>) -> Self {
        let header = &run.header;
        let mut checks = Vec::new();
        let sentences = words::warning_sentences(analysis);
        for workload in &analysis.workloads {
            for metric in &workload.judged {
                let of = |one| of_arms(run, analysis, &sentences, (workload, metric, one), rules);
                checks.extend(metric.comparisons.iter().filter_map(of));
            }
        }
        checks.extend(rules.without_comparison(|condition| !condition.of_run(analysis).is_empty()));
        checks.extend(rules.without_end("end of the run".to_owned(), analysis));
        let notes = header.annotations.notes.iter().map(|(key, value)| (key.clone(), value.clone()));
        let own = [
            Some(("run", header.id.to_string())),
            header.annotations.title.clone().map(|title| ("title", title)),
            Some(("program", header.program.clone())),
            Some(("trials", words::trials(analysis))),
            words::settings_of_command_line(header).map(|settings| (words::SETTINGS, settings)),
        ];
        let own = own.into_iter().flatten().map(|(name, value)| (name.to_owned(), value));
        Self {
            title: words::question(&analysis.plan),
            properties: own.chain(notes).collect(),
            started_unix_ms: header.started_unix_ms,
            checks,
            command: format!("netduel report {}", header.id),
        }
    }

    /// The verdicts between runs: each run against the first.
    pub fn of_runs(comparison: &RunComparison<'_>, rules: Rules<'_>) -> Self {
        let mut checks = Vec::new();
        for subject in &comparison.subjects {
            for metric in &subject.workload.judged {
                let own = subject.verdicts.iter().filter(|verdict| verdict.metric == metric.metric);
                checks.extend(own.filter_map(|one| of_run_verdict(comparison, subject, metric, one, rules)));
            }
        }
        checks.extend(comparison.unmatched.iter().map(|one| Check {
            sides: format!("{} against {}", comparison.label(one.run), comparison.label(0)),
            name: words::compare::unmatched_subject(one),
            verdict: format!("not compared: {}", words::compare::unmatched(comparison, one)),
            values: Vec::new(),
            tone: Tone::Open,
            outcome: Outcome::Open,
            conditions: Vec::new(),
            notes: Vec::new(),
        }));
        checks.extend(rules.without_match(comparison));
        checks.extend(rules.without_comparison(|condition| !condition.of_runs(comparison).is_empty()));
        let without_end =
            |one: &ComparedRun<'_>| rules.without_end(format!("end of run {}", one.label), one.analysis);
        checks.extend(comparison.runs.iter().filter_map(without_end));
        let ids: Vec<&str> = comparison.runs.iter().map(|one| one.header.id.as_str()).collect();
        let runs = comparison.runs.iter().map(|one| {
            let title = one.header.annotations.title.as_ref().map(|title| format!(" ({title})"));
            (format!("run {}", one.label), format!("{}{}", one.header.id, title.unwrap_or_default()))
        });
        let program = ("program".to_owned(), netduel_model::PROGRAM.to_owned());
        let settings = comparison.runs.iter().filter_map(|one| {
            let settings = words::settings_of_command_line(one.header)?;
            Some((format!("{}, run {}", words::SETTINGS, one.label), settings))
        });
        Self {
            title: words::compare::title(comparison),
            properties: runs.chain([program]).chain(settings).collect(),
            started_unix_ms: comparison.runs.first().map_or(0, |one| one.header.started_unix_ms),
            checks,
            command: format!("netduel compare {}", ids.join(" ")),
        }
    }

    /// Number of checks with a result.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

fn of_arms(
    run: &Run,
    analysis: &Analysis,
    sentences: &[words::Sentence],
    (workload, metric, comparison): (&WorkloadAnalysis, &MetricAnalysis, &Comparison),
    rules: Rules<'_>,
) -> Option<Check> {
    let (baseline, others) = metric.arms.split_first()?;
    let own = others.iter().find(|arm| arm.arm == comparison.arm)?;
    let tone = words::tone(metric.metric, comparison.judged.as_ref());
    let has_data = !comparison.pairs.is_empty();
    let (outcome, conditions) =
        rules.outcome(has_data, tone, |condition| condition.about_arms(workload, metric, comparison));
    // The warning about a dropped arm states why it has no data; a condition that covers the arm needs it.
    let is_dropped =
        |warning: &Warning| matches!(warning, Warning::ArmDropped { arm, .. } if *arm == comparison.arm);
    let outcome = match outcome {
        Outcome::NoData if conditions.is_empty() && run.warnings.iter().any(is_dropped) => Outcome::Open,
        other => other,
    };
    let numbers = words::warning_numbers(analysis, sentences, workload, metric.metric, &comparison.arm);
    // They ascend.
    let is_about =
        |one: &&words::Sentence| one.number.is_some_and(|number| numbers.binary_search(&number).is_ok());
    let notes = sentences.iter().filter(is_about);
    Some(Check {
        sides: format!("{} against {}", comparison.arm, baseline.arm),
        name: name_of(metric, &workload.name),
        verdict: in_words(
            metric.metric,
            comparison.estimated(),
            &words::verdict(metric.metric, comparison),
            Sides::Arms,
        ),
        values: [baseline, own].map(|arm| value(arm.arm.as_str(), metric, arm)).to_vec(),
        tone,
        outcome,
        conditions,
        notes: notes.map(|one| format!("warning: {}", one.text)).collect(),
    })
}

fn of_run_verdict(
    comparison: &RunComparison<'_>,
    subject: &Subject,
    metric: &MetricAnalysis,
    verdict: &RunVerdict,
    rules: Rules<'_>,
) -> Option<Check> {
    let place = subject.runs.iter().position(|run| *run == verdict.run)?;
    let sides = [metric.arms.first()?, metric.arms.get(place)?];
    let tone = words::tone(metric.metric, Some(&verdict.judged));
    let has_data = !verdict.sizes.contains(&0);
    let (outcome, conditions) =
        rules.outcome(has_data, tone, |condition| condition.about_runs(subject, verdict));
    let cause = |place: &usize| {
        let one = comparison.differences.get(*place)?;
        let values = words::compare::in_runs(comparison, one);
        Some(format!("may be the cause: {} ({values})", one.subject()))
    };
    Some(Check {
        sides: sides_of_runs(comparison, &subject.arm, verdict.run),
        name: name_of(metric, &subject.workload.name),
        verdict: in_words(
            verdict.metric,
            verdict.estimated(),
            &words::compare::verdict(comparison, verdict),
            Sides::Runs,
        ),
        values: sides.map(|arm| value(arm.arm.as_str(), metric, arm)).to_vec(),
        tone,
        outcome,
        conditions,
        notes: verdict.explained_by.iter().filter_map(cause).collect(),
    })
}

/// A run against the first one on an arm: `accelerated, B against A`.
fn sides_of_runs(comparison: &RunComparison<'_>, arm: &ArmName, run: usize) -> String {
    format!("{arm}, {} against {}", comparison.label(run), comparison.label(0))
}

/// What is compared: `throughput of bulk`.
fn name_of(metric: &MetricAnalysis, workload: &WorkloadName) -> String {
    format!("{} of {workload}", metric.title())
}

/// A verdict with its tone, and with the estimate where its words have none. `judged`: absent where the estimate says nothing.
fn in_words(metric: Metric, judged: Option<&Judged>, verdict: &str, sides: Sides) -> String {
    let tone = words::tone(metric, judged);
    // Only the estimate of a verdict without a result is shown: it does not rest on bounds.
    let effect = words::shown_effect(metric, judged, false, sides);
    let is_stated = effect == Effect::Unknown || matches!(tone, Tone::Better | Tone::Worse);
    let estimate = if is_stated { String::new() } else { format!(" (estimate {})", effect.words()) };
    format!("{}{verdict}{estimate}", tone.mark())
}

fn value(label: &str, metric: &MetricAnalysis, values: &ArmValues) -> (String, String) {
    (label.to_owned(), words::value(metric, values))
}
