//! The answers in sentences, and the table of verdicts.
use maud::{Markup, html};
use netduel_model::metric::Scale;

use super::intervals::Axis;
use crate::analysis::{Analysis, ArmValues, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::words;

/// One large sentence per workload and arm.
pub(super) fn answers(analysis: &Analysis) -> Markup {
    html! {
        section.answers aria-label="Answer" {
            @if analysis.plan.arms.len() < 2 { p { "One arm only: figures, and no comparison." } }
            @for workload in &analysis.workloads {
                @for arm in workload.arms.iter().skip(1) {
                    @let clauses = words::clauses(workload, &arm.arm);
                    @if !clauses.is_empty() {
                        div.answer {
                            p.workload { (workload.name) }
                            p.sentence {
                                (arm.arm)
                                @for (index, clause) in clauses.iter().enumerate() {
                                    (words::joint(index, clauses.len())) (clause.verb) " "
                                    strong class=(clause.tone.word()) { (unbroken(&clause.verdict)) } " " (clause.subject) (clause.remedy)
                                }
                                "."
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A verdict with no line break within its interval, nor between a number and its sign.
fn unbroken(verdict: &str) -> Markup {
    let (before, rest) =
        verdict.split_once('[').map_or((verdict, None), |(before, rest)| (before, Some(rest)));
    let (inside, after) = rest.and_then(|rest| rest.split_once(']')).unwrap_or(("", ""));
    html! {
        (before.replace(" %", "\u{a0}%"))
        @if !inside.is_empty() { span.interval { "[" (inside) "]" } (after) }
    }
}

/// Every comparison with its interval on one common axis of ratios.
pub(super) fn verdicts(analysis: &Analysis) -> Markup {
    let axis = Axis::over(analysis);
    let baseline = analysis.plan.baseline().map(|arm| arm.name.to_string()).unwrap_or_default();
    // With two arms the column can bear the name; with more each row has its own.
    let other = match analysis.plan.arms.as_slice() {
        [_, other] => other.name.to_string(),
        _ => "arm".to_owned(),
    };
    let many = analysis.plan.arms.len() > 2;
    html! {
        section id="verdicts" {
            h2 { "Verdicts" }
            p.reading {
                "Each row sets an arm against " b { (baseline) } " within the blocks. Dot: estimate; bar: interval of the verdict, on a \
                 logarithmic axis of ratios; the line stands at 1, the band spans what the plan calls no difference."
            }
            div.scroll {
                table.verdicts.many[many] {
                    thead {
                        tr {
                            th scope="col" { "Metric" }
                            th.number scope="col" { (baseline) }
                            th.number scope="col" { (other) }
                            th.axis scope="col" { span.axis-title { (other) " / " (baseline) } (axis.header()) }
                            th scope="col" { "Verdict" }
                        }
                    }
                    @for workload in &analysis.workloads { (group(workload, &axis)) }
                }
            }
        }
    }
}

fn group(workload: &WorkloadAnalysis, axis: &Axis) -> Markup {
    html! {
        tbody {
            tr.group { th colspan="5" scope="rowgroup" {
                (workload.name)
                span.settings { (words::workload_of_arms(workload)) }
                span.narrow-axis { (axis.header()) }
            } }
            @for metric in &workload.judged {
                @if metric.comparisons.is_empty() { (alone(metric)) }
                @for comparison in &metric.comparisons { (row(metric, comparison, axis)) }
            }
        }
    }
}

/// A metric of a run with a single arm: there is nothing to compare.
fn alone(metric: &MetricAnalysis) -> Markup {
    html! {
        tr {
            th scope="row" { (metric.title()) }
            td.number { @if let Some(arm) = metric.arms.first() { (value(metric, arm)) } }
            td {} td {} td { "one arm, nothing to compare" }
        }
    }
}

fn row(metric: &MetricAnalysis, comparison: &Comparison, axis: &Axis) -> Markup {
    let judged = comparison.judged.as_ref();
    let tone = words::tone(metric.metric, judged);
    let estimate = judged.and_then(|judged| judged.estimate.as_ref());
    let interval = estimate.map(|estimate| words::interval(metric.metric, estimate));
    html! {
        tr class=(tone.word()) {
            th scope="row" { (metric.title()) }
            td.number { @if let Some(baseline) = metric.arms.first() { span.arm { (baseline.arm) } (value(metric, baseline)) } }
            td.number {
                @if let Some(arm) = metric.arms.iter().find(|arm| arm.arm == comparison.arm) {
                    span.arm { (arm.arm) } (value(metric, arm))
                }
            }
            td.axis {
                @match (metric.metric.scale(), estimate) {
                    (Scale::Ratio, Some(estimate)) => (axis.interval(estimate, tone, interval.as_deref().unwrap_or_default())),
                    (Scale::Difference, Some(_)) => span.difference { "difference: " (interval.as_deref().unwrap_or_default()) },
                    (_, None) => span.difference { "no estimate" },
                }
            }
            td.verdict { span.mark aria-hidden="true" { (tone.mark()) } (unbroken(&words::verdict(metric.metric, judged))) }
        }
    }
}

/// A mean with error and n, broken so that the numbers of a column stand under each other.
fn value(metric: &MetricAnalysis, values: &ArmValues) -> Markup {
    let text = words::value(metric, values);
    html! {
        @if let Some((mean, rest)) = text.split_once(" ± ") { span.mean { (mean) } " " span.error { "± " (rest) } }
        @else { span.mean { (text) } }
    }
}
