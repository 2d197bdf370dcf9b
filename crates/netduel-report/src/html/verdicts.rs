//! Comparisons as a table: values, the interval drawn on one common axis, the verdict.
use maud::{Markup, html};

use crate::document::verdicts::{Compared, Effect, Measure, VerdictGroup, VerdictRow, Verdicts};
use crate::words::plain;

use super::intervals::Axis;

/// A verdict without line breaks within its interval and between a number and its sign.
pub(super) fn unbroken(verdict: &str) -> Markup {
    let (before, rest) =
        verdict.split_once('[').map_or((verdict, None), |(before, rest)| (before, Some(rest)));
    let (inside, after) = rest.and_then(|rest| rest.split_once(']')).unwrap_or(("", ""));
    html! {
        (before.replace(" %", "\u{a0}%"))
        @if !inside.is_empty() { span.interval { "[" (inside) "]" } (after) }
    }
}

/// Every comparison with its interval on one common axis of ratios.
pub(super) fn table(verdicts: &Verdicts) -> Markup {
    let axis = Axis::over(verdicts);
    let has_ratios = Axis::is_used(verdicts);
    let baseline = plain(&verdicts.baseline);
    // With two arms the column has the name of the arm; with more, each row has it.
    let other = match verdicts.others.as_slice() {
        [other] => plain(other),
        _ => "arm".to_owned(),
    };
    html! {
        p.reading {
            "Each row compares an arm with " b { (baseline) } " within the blocks. " (plain(&verdicts.legend))
            @if has_ratios {
                " Dot: paired estimate of the ratio " (other) " / " (baseline) "; bar: interval of the verdict, logarithmic axis; line: ratio 1"
                @if axis.has_band() { "; band: no difference by the margin of the plan" }
                ". Margin of no difference: " (crate::words::text::percent_exact(verdicts.equivalence)) "."
            }
        }
        div.scroll tabindex="0" {
            table.verdicts.many[verdicts.others.len() > 1] {
                thead {
                    tr {
                        th scope="col" { "Metric" }
                        th.number scope="col" { (baseline) }
                        th.number scope="col" { (other) }
                        th.axis scope="col" {
                            @if has_ratios { span.axis-title { (other) " / " (baseline) } (axis.header()) }
                            @else { span.axis-title { "Difference" } }
                        }
                        th scope="col" { "Verdict" }
                    }
                }
                @for one in &verdicts.groups { (group(one, &baseline, &axis, has_ratios)) }
            }
        }
    }
}

fn group(group: &VerdictGroup, baseline: &str, axis: &Axis, has_ratios: bool) -> Markup {
    html! {
        tbody {
            tr.group { th colspan="5" scope="rowgroup" {
                (plain(&group.title))
                span.settings { (plain(&group.settings)) }
                @if has_ratios { span.narrow-axis { span.axis-title { "arm / " (baseline) } (axis.header()) } }
            } }
            @for one in &group.rows { (row(one, axis)) }
        }
    }
}

fn row(row: &VerdictRow, axis: &Axis) -> Markup {
    html! {
        @match &row.arm {
            None => tr {
                th scope="row" { (plain(&row.metric)) }
                td.number { (measure(&row.baseline)) }
                td {} td {} td { "single arm, no comparison" (mark(&row.mark)) }
            },
            Some(compared @ Compared { measure: own, tone, verdict, effect }) => tr class=(tone.word()) {
                th scope="row" { (plain(&row.metric)) }
                td.number { (measure(&row.baseline)) }
                td.number { (measure(own)) }
                td.axis {
                    @match effect {
                        Effect::Ratio { centre, low, high, words } => (axis.interval([*low, *centre, *high], *tone, words)),
                        Effect::Difference(words) => span.difference { "difference: " (words) },
                        Effect::Unknown => span.difference { "no estimate" },
                    }
                }
                td.verdict {
                    span.mark { (tone.mark()) } (unbroken(verdict)) (mark(&row.mark))
                    @if let Some(estimate) = compared.estimate() { span.error { (plain(&estimate)) } }
                }
            },
        }
    }
}

/// The mark of the warnings about a row, with a link to them.
fn mark(mark: &str) -> Markup {
    html! { @if !mark.is_empty() { " " a.warned href="#warnings" title="warnings about this verdict" { (mark) } } }
}

/// Median, and below it quartiles and n.
fn measure(measure: &Measure) -> Markup {
    html! {
        span.arm { (plain(&measure.arm)) }
        @match &measure.median {
            Some(median) => {
                span.median { (median) } " " span.error { (measure.quartiles) " (n " (measure.n) ")" }
            },
            None => "no valid trial",
        }
    }
}
