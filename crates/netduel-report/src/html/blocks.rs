//! The blocks of a report as HTML.
use maud::{Markup, html};

use crate::document::block::{Block, FactGroup, Headline, Style, Text};
use crate::document::chart::Chart;
use crate::document::table::{Cell, Column, ColumnKind, Table};
use crate::findings::Finding;
use crate::words::plain;

use super::figures;
use super::state::Page;
use super::verdicts;

/// A sequence of blocks. Consecutive plots share a grid, two side by side if there is room.
pub(super) fn all(blocks: &[Block], page: &mut Page) -> Markup {
    let is_plot = |block: &Block| match block {
        Block::Figure(figure) => matches!(figure.chart, Chart::Plot(..)),
        _ => false,
    };
    let groups: Vec<Markup> = blocks
        .chunk_by(|one, next| is_plot(one) == is_plot(next))
        .map(|group| {
            let parts: Vec<Markup> = group.iter().map(|block| self::block(block, page)).collect();
            let is_grid = group.first().is_some_and(is_plot);
            html! {
                @if is_grid { div.charts { @for part in &parts { (part) } } }
                @else { @for part in &parts { (part) } }
            }
        })
        .collect();
    html! { @for group in &groups { (group) } }
}

fn block(block: &Block, page: &mut Page) -> Markup {
    match block {
        Block::Heading(title) => html! { h3 { (plain(title)) } },
        Block::Paragraph(text) => html! { p { (styled(text, page)) } },
        Block::Reading(text) => html! { p.reading { (prose(text)) } },
        Block::Headlines(all) => html! { div.answers { @for one in all { (headline(one, page)) } } },
        Block::List(items) => html! { ul { @for item in items { li { (styled(item, page)) } } } },
        Block::Numbered(items) => html! { ol { @for item in items { li { (styled(item, page)) } } } },
        Block::Table(one) => table(one),
        Block::Verdicts(one) => verdicts::table(one),
        Block::Figure(figure) => figures::figure(figure, page),
        Block::Facts(groups) => html! { @for group in groups { (facts(group)) } },
        Block::Findings(all) => html! { ul.findings { @for one in all { (finding(one)) } } },
        Block::Code(lines) => code(lines),
        Block::Folded(title, blocks) => {
            let inner = all(blocks, page);
            html! {
                @if page.is_paper { h3 { (plain(title)) } (inner) } @else { details { summary { (plain(title)) } (inner) } }
            }
        }
    }
}

/// Commands or a plan. Long lines scroll, so the keyboard has to reach them.
fn code(lines: &[String]) -> Markup {
    html! { pre tabindex="0" { code { @for line in lines { (plain(line)) "\n" } } } }
}

fn headline(headline: &Headline, page: &mut Page) -> Markup {
    html! {
        div.answer {
            p.workload { (plain(&headline.title)) }
            p.sentence { (styled(&headline.text, page)) }
        }
    }
}

/// Text with its emphasis.
pub(super) fn styled(text: &Text, page: &mut Page) -> Markup {
    html! {
        @for span in &text.0 {
            @match &span.style {
                Style::Plain => (prose(&span.text)),
                Style::Strong => b { (verdicts::joined_percent(&plain(&span.text))) },
                Style::Emphasis => em { (prose(&span.text)) },
                Style::Tone(tone) => strong class=(tone.word()) { (verdicts::unbroken(&plain(&span.text))) },
                Style::Link(anchor) => a href={ "#" (anchor) } { (plain(&span.text)) },
                Style::Web(address) => {
                    a href=(address) rel="noopener noreferrer" { (plain(&span.text)) }
                    @if page.is_paper { sup { (page.link(address)) } }
                },
            }
        }
    }
}

/// Text in which backticks mark settings and commands, as in the other formats.
pub(super) fn prose(text: &str) -> Markup {
    let text = plain(text);
    let parts: Vec<&str> = text.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    html! {
        @if is_paired {
            @for (number, part) in parts.iter().enumerate() {
                @if number % 2 == 1 { code { (part) } } @else { (verdicts::joined_percent(part)) }
            }
        } @else { (verdicts::joined_percent(&text)) }
    }
}

/// A table that scrolls within its own box.
pub(super) fn table(table: &Table) -> Markup {
    let is_wordy = is_wordy(table);
    let is_wide = !is_wordy && is_wide(table);
    html! {
        div.scroll tabindex="0" {
            table.wordy[is_wordy].wide[is_wide] {
                @if table.columns.iter().any(|column| !column.heading().is_empty()) {
                    thead { tr { @for column in &table.columns {
                        th.number[column.kind == ColumnKind::Number] scope="col" { (plain(&column.heading())) }
                    } } }
                }
                tbody { @for row in &table.rows { tr { @for (column, one) in table.columns.iter().zip(row) { (cell(column, one, is_wordy || is_wide)) } } } }
            }
        }
        @if !table.notes.is_empty() { ul.notes { @for note in &table.notes { li { (prose(note)) } } } }
    }
}

/// Texts in the last column longer than this get their own line on a narrow page, characters.
const WORDS_LONG: usize = 40;

/// Whether the last column has long texts, which do not fit beside the other columns on a narrow page.
fn is_wordy(table: &Table) -> bool {
    let is_text = table.columns.last().is_some_and(|column| column.kind == ColumnKind::Text);
    let is_long = |row: &Vec<Cell>| row.last().is_some_and(|cell| cell.text().chars().count() > WORDS_LONG);
    is_text && table.columns.len() > 2 && table.rows.iter().any(is_long)
}

/// Characters of a line on a narrow page.
const LINE_NARROW: usize = 44;
/// Space between two columns, in characters.
const GAP: usize = 2;

/// Whether a row does not fit in a line of a narrow page.
fn is_wide(table: &Table) -> bool {
    let width = |text: &str| text.chars().count();
    let columns = table.columns.iter().enumerate().map(|(index, column)| {
        let cells = table.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(&cell.text()));
        GAP + cells.max().unwrap_or(0).max(width(&column.heading()))
    });
    table.columns.len() > 2 && columns.sum::<usize>() > LINE_NARROW
}

/// `is_titled`: cells that need the title of their column carry it, for pages without room for the table head.
fn cell(column: &Column, cell: &Cell, is_titled: bool) -> Markup {
    let (is_number, is_name) = (column.kind == ColumnKind::Number, column.kind == ColumnKind::Key);
    let needs_title = is_number || column.kind == ColumnKind::Titled;
    let title = (is_titled && needs_title).then(|| plain(&column.heading()));
    html! {
        td.number[is_number].name[is_name].run-name[column.has_runs] data-title=[title] {
            @if *cell == Cell::Absent { span.absent title="not known" { "-" } }
            @else if column.has_runs { (with_breaks(&plain(&cell.text()))) }
            @else { (verdicts::joined_percent(&plain(&cell.text()))) }
        }
    }
}

/// A name that may be broken after each hyphen: on their own, browsers do not break before a digit.
fn with_breaks(name: &str) -> Markup {
    let parts: Vec<&str> = name.split_inclusive('-').collect();
    html! { @for (place, part) in parts.iter().enumerate() { @if place > 0 { wbr; } (part) } }
}

fn facts(group: &FactGroup) -> Markup {
    let rows = html! { dl.facts { @for (title, text) in &group.rows { dt { (plain(title)) } dd { (prose(text)) } } } };
    html! {
        @match &group.head {
            Some((name, about)) => div.interface.beneath[group.nested] {
                p { b { (plain(name)) } " " (plain(about)) }
                @if !group.rows.is_empty() { (rows) }
            },
            None => (rows),
        }
    }
}

fn finding(finding: &Finding) -> Markup {
    html! {
        li class=(finding.severity.word()) {
            p.what { b { (finding.severity.word()) } " " (plain(&finding.what)) " " code.id { (finding.id) } }
            p { "Evidence: " (plain(&finding.evidence.join("; "))) ". " (capital(&finding.why)) "." }
            p.remedy { (prose(&capital(&finding.remedy))) "." }
            @if let Some(command) = &finding.command { pre { code { (plain(command)) } } }
        }
    }
}

/// A sentence begins with a capital.
fn capital(text: &str) -> String {
    let text = plain(text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_sign_of_a_cell_stays_with_its_number() {
        for (text, expected) in
            [("0 (49 %), 5.0 %", ">0 (49\u{a0}%), 5.0\u{a0}%<"), ("in % of all", ">in % of all<")]
        {
            let shown = cell(&Column::text("share"), &Cell::Text(text.to_owned()), false).into_string();
            assert!(shown.contains(expected), "{shown}");
        }
    }

    #[test]
    fn name_of_a_run_may_be_broken_after_a_hyphen_and_that_of_an_arm_not() {
        let name = Cell::from("demo-20261121-103000-7f3a");
        let shown = cell(&Column::key("run").with_runs(), &name, false).into_string();
        assert!(shown.contains("name run-name\">demo-<wbr>20261121-<wbr>103000-<wbr>7f3a<"), "{shown}");
        let shown = cell(&Column::key("arm"), &name, false).into_string();
        assert!(shown.contains("name\">demo-20261121-103000-7f3a<"), "{shown}");
    }

    #[test]
    fn percent_sign_of_a_sentence_stays_with_its_number_but_not_in_a_command() {
        let shown = prose("1 - 0.05 / 5 % of `cut 5 %`").into_string();
        assert_eq!(shown, "1 - 0.05 / 5\u{a0}% of <code>cut 5 %</code>");
    }

    #[test]
    fn backticks_mark_code_only_in_pairs() {
        assert_eq!(prose("set `a<b` here").into_string(), "set <code>a&lt;b</code> here");
        assert_eq!(prose("`-`: none").into_string(), "<code>-</code>: none");
        assert_eq!(prose("one ` alone").into_string(), "one ` alone");
    }
}
