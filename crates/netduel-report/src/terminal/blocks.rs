//! The blocks of a report as lines of text.
use crate::document::block::{Block, FactGroup, Text};
use crate::document::table::{Column, ColumnKind, Table};
use crate::document::verdicts::{Sides, VerdictCell, VerdictRow, Verdicts};
use crate::findings::{Finding, Severity};
use crate::words::plain;
use crate::words::tone::Tone;

use super::page::{Page, columns, padded, right};

/// Width of the labels of facts, columns.
const FACT_TITLE: usize = 12;

/// The closing lines name the bottlenecks of at most so many workloads: with more they do not fit a terminal of 24 lines.
const BOTTLENECKS_MAX: usize = 2;

/// Minimum width of a wrapped last column.
const WORDS_MIN: usize = 30;

/// The level of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Closing lines of a run.
    Brief,
    /// Everything.
    Full,
}

/// Writes a block.
pub fn block(page: &mut Page, block: &Block, detail: Detail) {
    match block {
        Block::Heading(title) => {
            let title = page.bold(&plain(title));
            page.paragraph("  ", &title);
        }
        Block::Paragraph(text) => {
            let text = page.styled(text);
            page.paragraph("", &text);
        }
        Block::Reading(text) => page.paragraph("  ", &plain(text)),
        Block::List(items) => items.iter().for_each(|text| item(page, text)),
        Block::Numbered(items) => {
            items.iter().zip(1_u32..).for_each(|(text, number)| numbered(page, number, text));
        }
        Block::Table(one) => table(page, one),
        Block::Verdicts(one) => verdicts(page, one, detail),
        Block::Figure(figure) => {
            if let Some(data) = figure.data.as_ref().filter(|_| figure.in_text) {
                let title = page.bold(&plain(&figure.title));
                page.paragraph("  ", &title);
                table(page, data);
            }
        }
        Block::Facts(groups) => groups.iter().for_each(|group| facts(page, group)),
        Block::Findings(all) => all.iter().for_each(|one| finding(page, one)),
        // A line to copy is not wrapped.
        Block::Code(lines) => lines.iter().for_each(|line| page.line(&format!("    {}", plain(line)))),
        Block::Headlines(_) | Block::Folded(..) => {}
    }
}

fn item(page: &mut Page, text: &Text) {
    let text = page.styled(text);
    page.wrapped("  - ", "    ", &text);
}

fn numbered(page: &mut Page, number: u32, text: &Text) {
    let text = page.styled(text);
    page.wrapped(&format!("  {number}. "), "     ", &text);
}

/// A table, or an item of a list for each row if the table does not fit.
fn table(page: &mut Page, table: &Table) {
    let header: Vec<String> = table.columns.iter().map(|column| plain(&column.heading())).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| plain(&cell.text())).collect()).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| rows.iter().chain([&header]).map(|row| columns(&row[column])).max().unwrap_or(0))
        .collect();
    // A last column of words may wrap.
    let ends_in_words = table.columns.last().is_some_and(|column| column.kind == ColumnKind::Text);
    let (last, before) = widths
        .split_last()
        .map_or((0, 0), |(last, before)| (*last, 4 + before.iter().map(|width| width + 2).sum::<usize>()));
    let room = page.width().saturating_sub(before);
    if last <= room || ends_in_words && room >= WORDS_MIN {
        let titled = header.iter().any(|title| !title.is_empty());
        for row in [&header].into_iter().filter(|_| titled).chain(&rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .zip(&table.columns)
                .map(|((cell, width), column)| match column.kind {
                    ColumnKind::Number => right(cell, *width),
                    ColumnKind::Key | ColumnKind::Text | ColumnKind::Titled => padded(cell, *width),
                })
                .collect();
            let (last, before) =
                cells.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
            let head = [&["   ".to_owned()], before, &[String::new()]]
                .concat()
                .join("  ")
                .replacen("     ", "    ", 1);
            if columns(&head) + columns(last.trim_end()) <= page.width() {
                page.line(&format!("{head}{last}"));
            } else {
                page.wrapped(&head, &" ".repeat(columns(&head)), last);
            }
        }
    } else {
        table.rows.iter().for_each(|row| row_without_room(page, &table.lines(row)));
    }
    for note in &table.notes {
        page.wrapped("  - ", "    ", &plain(note));
    }
}

/// The lines of a row as an item of a list. The rest of a long line is further in than the next line.
fn row_without_room(page: &mut Page, lines: &[String]) {
    let rest = if lines.len() > 1 { "      " } else { "    " };
    for (index, line) in lines.iter().enumerate() {
        page.wrapped(if index == 0 { "  - " } else { "    " }, rest, &plain(line));
    }
}

/// Comparisons: a line for each with metric, values and verdict, under column titles. A line for each cell if
/// the columns do not fit.
fn verdicts(page: &mut Page, verdicts: &Verdicts, detail: Detail) {
    match detail {
        Detail::Full => page.paragraph("", &plain(&verdicts.legend)),
        Detail::Brief => page.paragraph("", &plain(&verdicts.legend_brief)),
    }
    let has_bottlenecks = detail == Detail::Brief && verdicts.groups.len() <= BOTTLENECKS_MAX;
    for group in &verdicts.groups {
        if detail == Detail::Full {
            page.gap();
        }
        let title = page.bold(&plain(&group.title));
        page.paragraph("", &title);
        let mut lines = lines(&verdicts.columns, &group.rows, detail);
        share_verdicts(&mut lines[1..], verdicts.sides);
        let widths: Vec<usize> = (0..verdicts.columns.len())
            .map(|column| {
                let cells = lines.iter().filter_map(|line| line.cells.get(column));
                cells.map(|cell| columns(cell)).max().unwrap_or(0)
            })
            .collect();
        let Some((titles, rows)) = lines.split_first() else { continue };
        let needed: usize = titles.cells.iter().zip(&widths).map(|(_, width)| width + 2).sum();
        if needed > page.width() {
            for line in rows {
                line_without_room(page, &titles.cells, line);
            }
        } else {
            for line in &lines {
                verdict_line(page, line, &widths);
            }
        }
        if has_bottlenecks && !group.bottleneck.is_empty() {
            page.wrapped("  ", "    ", &plain(&format!("bottleneck: {}", group.bottleneck)));
        }
    }
}

/// A line of the comparisons.
struct Line {
    /// The cells before the verdict.
    cells: Vec<String>,
    /// Whether it starts a metric.
    is_first: bool,
    verdict: Option<(Tone, String)>,
    /// The mark of the warnings about it.
    mark: String,
}

/// The titles of the columns, and a line for each row. The verdict needs no title.
fn lines(columns: &[Column], rows: &[VerdictRow], detail: Detail) -> Vec<Line> {
    let shown = |cell: &VerdictCell, separator: &str| match detail {
        Detail::Brief => plain(&cell.text),
        Detail::Full => plain(&cell.with_detail(separator)),
    };
    let titles = columns.split_last().map_or(&[][..], |(_, titles)| titles);
    let titles = titles.iter().map(|column| plain(&column.heading())).collect();
    let mut lines = vec![Line { cells: titles, is_first: true, verdict: None, mark: String::new() }];
    for row in rows {
        let Some((verdict, values)) = row.cells.split_last() else { continue };
        let cell = |(index, cell)| if index < row.repeated { String::new() } else { shown(cell, " ") };
        lines.push(Line {
            cells: values.iter().enumerate().map(cell).collect(),
            is_first: row.repeated == 0,
            verdict: Some((row.tone, format!("{}{}", row.tone.mark(), shown(verdict, "; ")))),
            mark: row.mark.clone(),
        });
    }
    lines
}

/// From this number of arms or runs on, equal verdicts without a result in one metric are printed once.
const SHARED_FROM: usize = 3;

/// Prints a verdict without a result that all arms or runs have in a metric once, after the last of them.
fn share_verdicts(lines: &mut [Line], sides: Sides) {
    for metric in lines.chunk_by_mut(|_, next| !next.is_first) {
        let is_alike =
            metric.windows(2).all(|two| two[0].verdict == two[1].verdict && two[0].mark == two[1].mark);
        let [before @ .., last] = metric else { continue };
        let Some((Tone::Open, verdict)) = &mut last.verdict else { continue };
        if is_alike && before.len() + 1 >= SHARED_FROM {
            *verdict = format!("all {} {}s: {verdict}", before.len() + 1, sides.noun());
            for line in before {
                (line.verdict, line.mark) = (None, String::new());
            }
        }
    }
}

/// The verdict at the end of its line, or below it if the line is too long.
fn verdict_line(page: &mut Page, line: &Line, widths: &[usize]) {
    let cells: Vec<String> =
        line.cells.iter().zip(widths).map(|(cell, width)| padded(cell, *width)).collect();
    let text = format!("  {}", cells.join("  "));
    let mark = if line.mark.is_empty() { String::new() } else { format!(" {}", line.mark) };
    let Some((tone, verdict)) = &line.verdict else {
        page.line(&format!("{}{mark}", text.trim_end()));
        return;
    };
    let fits = columns(&text) + 2 + columns(verdict) + columns(&mark) <= page.width();
    let verdict = format!("{}{mark}", page.toned(*tone, verdict));
    if fits {
        page.line(&format!("{text}  {verdict}"));
    } else {
        page.line(&text);
        page.wrapped("      ", "        ", &verdict);
    }
}

/// A line of comparisons that have no room for their columns: each cell in a line of its own, with its title.
fn line_without_room(page: &mut Page, titles: &[String], line: &Line) {
    for (index, (title, cell)) in titles.iter().zip(&line.cells).enumerate() {
        match index {
            _ if cell.is_empty() => {}
            0 => page.wrapped("  ", "    ", cell),
            _ => page.wrapped("    ", "      ", &format!("{title}: {cell}")),
        }
    }
    let Some((tone, verdict)) = &line.verdict else { return };
    let mark = if line.mark.is_empty() { String::new() } else { format!(" {}", line.mark) };
    let verdict = format!("{}{mark}", page.toned(*tone, verdict));
    page.wrapped("      ", "        ", &verdict);
}

fn facts(page: &mut Page, group: &FactGroup) {
    let Some((name, about)) = &group.head else {
        for (title, text) in &group.rows {
            let head = format!("  {} ", padded(&plain(title), FACT_TITLE));
            page.wrapped(&head, &" ".repeat(FACT_TITLE + 3), &plain(text));
        }
        return;
    };
    let indent = if group.nested { 4 } else { 2 };
    if !group.nested {
        page.gap();
    }
    let head = format!("{:indent$}{} ", "", padded(&plain(name), FACT_TITLE + 2 - indent));
    page.wrapped(&head, &" ".repeat(FACT_TITLE + 3), &plain(about));
    for (title, text) in &group.rows {
        let head = " ".repeat(FACT_TITLE + 3);
        page.wrapped(&head, &" ".repeat(FACT_TITLE + 5), &plain(&format!("{title}: {text}")));
    }
}

fn finding(page: &mut Page, finding: &Finding) {
    let tone = match finding.severity {
        Severity::Problem => Tone::Worse,
        Severity::Warning => Tone::Open,
        Severity::Note => Tone::Same,
    };
    let word = page.toned(tone, &format!("{:<7}", finding.severity.word()));
    page.wrapped(
        &format!("  {word} "),
        &" ".repeat(10),
        &plain(&format!("{} [{}]", finding.what, finding.id)),
    );
    let rows = [
        ("facts", finding.evidence.join("; ")),
        ("why", finding.why.clone()),
        ("fix", finding.remedy.clone()),
    ];
    for (row, text) in rows {
        page.wrapped(&format!("          {row:<5} "), &" ".repeat(16), &plain(&text));
    }
    if let Some(command) = &finding.command {
        // A command is never wrapped, so that it can be copied.
        page.line(&format!("                $ {}", plain(command)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(metric: &str, verdict: &str, tone: Tone) -> Line {
        Line {
            cells: vec![metric.to_owned(), "1".to_owned()],
            is_first: !metric.is_empty(),
            verdict: Some((tone, verdict.to_owned())),
            mark: "*1".to_owned(),
        }
    }

    #[test]
    fn equal_verdicts_without_a_result_are_printed_once() {
        let shown = |verdicts: &[(&str, &str, Tone)]| -> Vec<Option<String>> {
            let mut lines: Vec<Line> =
                verdicts.iter().map(|(metric, verdict, tone)| line(metric, verdict, *tone)).collect();
            share_verdicts(&mut lines, Sides::Arms);
            lines.into_iter().map(|line| line.verdict.map(|(_, verdict)| verdict)).collect()
        };
        let open = "inconclusive: at least 5 more blocks";
        let all = Some(format!("all 3 arms: {open}"));
        let three = [("loss", open, Tone::Open), ("", open, Tone::Open), ("", open, Tone::Open)];
        assert_eq!(shown(&three), [None, None, all.clone()]);
        // Another metric has its own verdict, and two arms keep theirs.
        let more = [three.as_slice(), &[("jitter", open, Tone::Open), ("", open, Tone::Open)]].concat();
        assert_eq!(shown(&more), [None, None, all, Some(open.to_owned()), Some(open.to_owned())]);
        let differing =
            [("loss", open, Tone::Open), ("", "inconclusive", Tone::Open), ("", open, Tone::Open)];
        assert!(shown(&differing).iter().all(Option::is_some));
        let none = "no difference beyond 5 %";
        let same = [("loss", none, Tone::Same), ("", none, Tone::Same), ("", none, Tone::Same)];
        assert!(shown(&same).iter().all(Option::is_some), "a result is printed for each arm");
    }
}
