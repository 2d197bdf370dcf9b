//! The summary sentence of a comparison: the verdicts of all metrics of an arm.
use netduel_model::ids::ArmName;
use netduel_model::units::human_bit_rate;

use super::failover::{DIRECTIONS, moment};
use super::text::listed;
use super::tone::Tone;
use super::verdict::{INCONCLUSIVE, Manner, NOT_COMPARABLE, manner, tone, verdict};
use crate::analysis::{ArmAnalysis, Comparison, Dip, MetricAnalysis, WorkloadAnalysis};
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
/// that are not comparable. That of a failover ends with the throughput of both arms.
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
    let end = format!("{}.{}", stalls(workload, arm), rates_at_events(workload, arm));
    (!clauses.is_empty()).then(|| text.and(end, Style::Plain))
}

/// An arm and the baseline, baseline first.
fn compared<'a>(workload: &'a WorkloadAnalysis, arm: &'a ArmName) -> impl Iterator<Item = &'a ArmAnalysis> {
    let baseline = workload.arms.first().map(|first| &first.arm);
    workload.arms.iter().filter(move |one| one.arm == *arm || Some(&one.arm) == baseline)
}

/// Trials without a round trip, of an arm and of the baseline: `; 4 of 10 trials of synthetic had no round trip in the steady
/// window`.
fn stalls(workload: &WorkloadAnalysis, arm: &ArmName) -> String {
    let words = |one: &ArmAnalysis| {
        let (stalled, trials) = (one.stalled.len(), one.trials);
        format!("; {stalled} of {trials} trials of {} had no round trip in the steady window", one.arm)
    };
    compared(workload, arm).filter(|one| !one.stalled.is_empty()).map(words).collect()
}

/// The throughput of an arm and of the baseline around events, for a workload with events and streams:
/// ` Median throughput: slow 36.0 Gbit/s before remove at 1 s, 14.0 Gbit/s in the steady state after it; ...`
fn rates_at_events(workload: &WorkloadAnalysis, arm: &ArmName) -> String {
    let words = |one: &ArmAnalysis| Some(format!("{} {}", one.arm, largest_drop(one)?));
    let arms: Vec<String> = compared(workload, arm).filter_map(words).collect();
    if arms.is_empty() { String::new() } else { format!(" Median throughput: {}.", arms.join("; ")) }
}

/// The throughput before and after the event that costs an arm most of it; absent without streams. An arm that
/// gains at every event has the one with the smallest gain.
pub(crate) fn largest_drop(arm: &ArmAnalysis) -> Option<String> {
    let mut largest: Option<(f64, String)> = None;
    for figures in &arm.failover.as_ref()?.events {
        let has_both = figures.ways.iter().all(|way| !way.dips.is_empty());
        for (way, direction) in figures.ways.iter().zip(DIRECTIONS) {
            let rate = |of: fn(&Dip) -> Option<f64>| Dip::median(&way.dips, of);
            let (Some(before), Some(after)) = (rate(|dip| dip.before_bps), rate(|dip| dip.settled_bps))
            else {
                continue;
            };
            if largest.as_ref().is_some_and(|(lost, _)| *lost >= before - after) {
                continue;
            }
            let direction = if has_both { format!(" {direction}") } else { String::new() };
            let words = format!(
                "{}{direction} before {}, {} in the steady state after it",
                human_bit_rate(before),
                moment(&figures.event),
                human_bit_rate(after)
            );
            largest = Some((before - after, words));
        }
    }
    largest.map(|(_, words)| words)
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
