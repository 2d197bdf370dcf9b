//! The summary sentence of a comparison: the verdicts of all metrics of an arm.
use netduel_model::ids::ArmName;

use super::text::listed;
use super::tone::Tone;
use super::verdict::{INCONCLUSIVE, Manner, NOT_COMPARABLE, manner, tone, verdict};
use crate::analysis::{ArmAnalysis, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::document::block::{Style, Text};

/// One verdict of one or more metrics.
struct Clause {
    metrics: Vec<&'static str>,
    verdict: String,
    tone: Tone,
}

/// The verdicts of one arm in one workload; metrics with the same verdict share one.
fn clauses(workload: &WorkloadAnalysis, arm: &ArmName) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    for (analysis, comparison) in comparisons(workload, arm) {
        let judged = comparison.judged.as_ref();
        let (tone, verdict) = (tone(analysis.metric, judged), verdict(analysis.metric, comparison));
        // `CPU 62 % less per GB`: the verdict names the unit itself.
        let title = match (manner(analysis.metric), tone) {
            (Manner::Cost(_), Tone::Better | Tone::Worse) if verdict.contains(" per ") => {
                analysis.title().split(" per ").next().unwrap_or_default()
            }
            _ => analysis.title(),
        };
        match clauses.iter_mut().find(|clause| clause.tone == tone && clause.verdict == verdict) {
            Some(clause) => clause.metrics.push(title),
            None => clauses.push(Clause { metrics: vec![title], verdict, tone }),
        }
    }
    clauses
}

/// Whether no judged metric of an arm in a workload has a result, and no trial stalled.
pub fn is_inconclusive(workload: &WorkloadAnalysis, arm: &ArmName) -> bool {
    let clauses = clauses(workload, arm);
    let is_open = !clauses.is_empty() && clauses.iter().all(|clause| clause.tone == Tone::Open);
    is_open && stalls(workload, arm).is_empty()
}

/// The summary sentence of one arm in one workload: all judged metrics against the baseline; absent without judged metrics.
/// Inconclusive metrics share a clause: `inconclusive: throughput (about 5 more blocks), CPU per GB (about 12 more blocks)`; so do those
/// that are not comparable.
pub fn answer(workload: &WorkloadAnalysis, arm: &ArmName) -> Option<Text> {
    let clauses = clauses(workload, arm);
    let baseline = workload.arms.first().map(|arm| arm.arm.to_string()).unwrap_or_default();
    let mut text = Text::from(format!("{arm} against {baseline}: "));
    let mut joint = "";
    for Clause { metrics, verdict, tone } in clauses.iter().filter(|clause| clause.tone != Tone::Open) {
        // A colon precedes a verdict that does not continue the sentence.
        let colon = if *tone == Tone::Same { ":" } else { "" };
        text = text.and(format!("{joint}{}{colon} ", listed(metrics)), Style::Plain);
        text = text.and(verdict.clone(), Style::Tone(*tone));
        joint = "; ";
    }
    let open = || clauses.iter().filter(|clause| clause.tone == Tone::Open);
    let is_withheld = |clause: &&Clause| clause.verdict.starts_with(NOT_COMPARABLE);
    let inconclusive: Vec<&Clause> = open().filter(|clause| !is_withheld(clause)).collect();
    let withheld: Vec<&Clause> = open().filter(is_withheld).collect();
    for (start, clauses) in [(INCONCLUSIVE, inconclusive), (NOT_COMPARABLE, withheld)] {
        let reasons: Vec<String> = clauses
            .iter()
            .map(|clause| {
                let reason = clause.verdict.strip_prefix(start).unwrap_or(&clause.verdict);
                format!("{} ({reason})", listed(&clause.metrics))
            })
            .collect();
        if !reasons.is_empty() {
            let word = start.trim_end_matches(": ");
            text = text.and(joint, Style::Plain).and(word, Style::Tone(Tone::Open));
            text = text.and(format!(": {}", reasons.join(", ")), Style::Plain);
            joint = "; ";
        }
    }
    (!clauses.is_empty()).then(|| text.and(format!("{}.", stalls(workload, arm)), Style::Plain))
}

/// Trials without a round trip, of an arm and of the baseline: `; 4 of 10 trials of synthetic had no round trip in the steady
/// window`.
fn stalls(workload: &WorkloadAnalysis, arm: &ArmName) -> String {
    let baseline = workload.arms.first().map(|first| &first.arm);
    let is_compared = |one: &&ArmAnalysis| one.arm == *arm || Some(&one.arm) == baseline;
    let words = |one: &ArmAnalysis| {
        let (stalled, trials) = (one.stalled.len(), one.trials);
        format!("; {stalled} of {trials} trials of {} had no round trip in the steady window", one.arm)
    };
    workload.arms.iter().filter(is_compared).filter(|one| !one.stalled.is_empty()).map(words).collect()
}

/// Every judged metric of a workload with the comparison of one arm.
fn comparisons<'a>(
    workload: &'a WorkloadAnalysis,
    arm: &'a ArmName,
) -> impl Iterator<Item = (&'a MetricAnalysis, &'a Comparison)> {
    workload.judged.iter().filter_map(move |metric: &MetricAnalysis| {
        Some((metric, metric.comparisons.iter().find(|comparison| &comparison.arm == arm)?))
    })
}
