//! Comparisons as a table: values, the interval drawn on one common axis, the verdict.
use maud::{Markup, html};

use crate::document::table::{Column, ColumnKind};
use crate::document::verdicts::{Effect, VerdictCell, VerdictGroup, VerdictRow, Verdicts};
use crate::words::plain;

use super::intervals::Axis;

/// A text without a line break between a number and its percent sign.
pub(super) fn joined_percent(text: &str) -> String {
    let mut parts = text.split(" %");
    let mut joined = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_number = joined.ends_with(|last: char| last.is_ascii_digit());
        joined.push_str(if is_number { "\u{a0}%" } else { " %" });
        joined.push_str(part);
    }
    joined
}

/// A verdict without line breaks within its interval and between a number and its sign.
pub(super) fn unbroken(verdict: &str) -> Markup {
    let (before, rest) =
        verdict.split_once('[').map_or((verdict, None), |(before, rest)| (before, Some(rest)));
    let (inside, after) = rest.and_then(|rest| rest.split_once(']')).unwrap_or(("", ""));
    html! {
        (joined_percent(before))
        @if !inside.is_empty() { span.interval { "[" (inside) "]" } (after) }
    }
}

/// Every comparison with its interval on one common axis of ratios.
pub(super) fn table(verdicts: &Verdicts) -> Markup {
    let axis = Axis::over(verdicts);
    let has_ratios = verdicts.has_ratios();
    let [baseline, other] = [&verdicts.baseline, &verdicts.other].map(|name| plain(name));
    let [before, after] = verdicts.sides.reading();
    let (verdict, values) =
        verdicts.columns.split_last().map_or((None, &[][..]), |(last, all)| (Some(last), all));
    html! {
        p.reading {
            (before) b { (baseline) } (after) (joined_percent(&plain(&verdicts.legend)))
            @if has_ratios {
                " Dot: " (verdicts.sides.estimate()) " of the ratio " (other) " / " (baseline) "; bar: interval of the verdict, logarithmic axis; line: ratio 1"
                @if axis.has_band() { "; band: no difference by the margin of the plan" }
                ". Margin of no difference: " (joined_percent(&crate::words::text::percent_exact(verdicts.equivalence))) "."
            }
        }
        div.scroll tabindex="0" {
            table.verdicts {
                thead {
                    tr {
                        @for column in values { (head(column)) }
                        th.axis scope="col" {
                            @if has_ratios { span.axis-title { (other) " / " (baseline) } (axis.header()) }
                            @else { span.axis-title { "Difference" } }
                        }
                        @if let Some(column) = verdict { (head(column)) }
                    }
                }
                @for one in &verdicts.groups { (group(one, verdicts, &axis)) }
            }
        }
    }
}

fn head(column: &Column) -> Markup {
    html! { th.number[column.kind == ColumnKind::Number] scope="col" { (plain(&column.heading())) } }
}

fn group(group: &VerdictGroup, verdicts: &Verdicts, axis: &Axis) -> Markup {
    html! {
        tbody {
            // The interval is a column, too.
            tr.group { th colspan=(verdicts.columns.len() + 1) scope="rowgroup" {
                (plain(&group.title))
                span.settings { (plain(&group.settings)) }
                @if verdicts.has_ratios() {
                    span.narrow-axis { span.axis-title { (plain(&verdicts.other)) " / " (plain(&verdicts.baseline)) } (axis.header()) }
                }
            } }
            @for one in &group.rows { (row(one, &verdicts.columns, axis)) }
        }
    }
}

/// The cells of a row, with the interval before the verdict.
fn row(row: &VerdictRow, columns: &[Column], axis: &Axis) -> Markup {
    let last = row.cells.len().saturating_sub(1);
    html! {
        tr class=(row.tone.word()) {
            @for (index, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                @if index == last {
                    td.axis { (interval(row, axis)) }
                    td.verdict {
                        span.mark { (row.tone.mark()) } (unbroken(&plain(&cell.text))) (mark(&row.mark))
                        @if !cell.detail.is_empty() { span.error { (joined_percent(&plain(&cell.detail))) } }
                    }
                } @else if index == 0 {
                    th scope="row" { (plain(&cell.text)) }
                } @else if column.kind == ColumnKind::Key {
                    td.name { (plain(&cell.text)) }
                } @else {
                    (value(column, cell))
                }
            }
        }
    }
}

fn interval(row: &VerdictRow, axis: &Axis) -> Markup {
    html! {
        @match &row.effect {
            Effect::Ratio { centre, low, high, words } => (axis.interval([*low, *centre, *high], row.tone, words)),
            Effect::Difference(words) => span.difference { "difference: " (joined_percent(words)) },
            Effect::Unknown => span.difference { "no estimate" },
        }
    }
}

/// A value with its detail below it, and the title of its column for pages without room for the table head.
fn value(column: &Column, cell: &VerdictCell) -> Markup {
    html! {
        td.number data-title=(plain(&column.heading())) {
            span.median { (joined_percent(&plain(&cell.text))) } " " span.error { (joined_percent(&plain(&cell.detail)).replace("(n ", "(n\u{a0}")) }
        }
    }
}

/// The mark of the warnings about a row, with a link to them.
fn mark(mark: &str) -> Markup {
    html! { @if !mark.is_empty() { " " a.warned href="#warnings" title="warnings about this verdict" { (mark) } } }
}
