//! A report as Markdown, for an issue, a pull request or a wiki. GitHub's dialect: tables, no HTML.
use crate::document::block::{Block, Document, FactGroup, Section, Style, Text};
use crate::document::table::{Cell, ColumnKind, Table};
use crate::document::verdicts::{Effect, Verdicts};
use crate::findings::Finding;
use crate::words::plain;

/// The page.
pub fn page(document: &Document) -> String {
    let mut lines = vec![format!("# {}", text(&document.title)), String::new()];
    lines.push(format!("{}. {}", text(&document.source.join(", ")), text(&document.basis)));
    for section in &document.sections {
        self::section(section, &mut lines);
    }
    lines.push(String::new());
    lines.join("\n")
}

fn section(section: &Section, lines: &mut Vec<String>) {
    lines.extend([String::new(), format!("## {}", text(&section.title))]);
    for block in &section.blocks {
        self::block(block, lines);
    }
}

fn block(block: &Block, lines: &mut Vec<String>) {
    let mut written = match block {
        Block::Heading(title) => vec![format!("### {}", text(title))],
        Block::Paragraph(words) => vec![styled(words)],
        Block::Reading(words) => vec![text(words)],
        Block::Headlines(all) => all
            .iter()
            .map(|headline| format!("- **{}**: {}", text(&headline.title), styled(&headline.text)))
            .collect(),
        Block::List(items) => items.iter().map(|item| format!("- {}", styled(item))).collect(),
        Block::Table(one) => table(one),
        Block::Verdicts(one) => verdicts(one),
        Block::Figure(figure) => match figure.data.as_ref().filter(|_| figure.in_text) {
            Some(data) => [vec![format!("### {}", text(&figure.title)), String::new()], table(data)].concat(),
            None => Vec::new(),
        },
        Block::Facts(groups) => groups.iter().flat_map(facts).collect(),
        Block::Findings(all) => all.iter().map(finding).collect(),
        Block::Code(code) => code.iter().map(|line| format!("    {}", plain(line))).collect(),
        Block::Folded(..) => Vec::new(),
    };
    if !written.is_empty() {
        lines.push(String::new());
        lines.append(&mut written);
    }
}

fn table(table: &Table) -> Vec<String> {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![row(table.columns.iter().map(|column| text(&column.heading())).collect())];
    let rule =
        table.columns.iter().map(|column| if column.kind == ColumnKind::Number { "---:" } else { "---" });
    lines.push(format!("|{}|", rule.collect::<Vec<_>>().join("|")));
    let cells = |cells: &[Cell]| cells.iter().map(|cell| text(&cell.text())).collect();
    lines.extend(table.rows.iter().map(|cells_of| row(cells(cells_of))));
    if !table.notes.is_empty() {
        lines.push(String::new());
        lines.extend(table.notes.iter().map(|note| format!("- {}", text(note))));
    }
    lines
}

fn verdicts(verdicts: &Verdicts) -> Vec<String> {
    let mut lines = vec![text(&verdicts.legend)];
    for group in &verdicts.groups {
        lines.extend([String::new(), format!("**{}**:", text(&group.title)), String::new()]);
        lines.push(format!(
            "| metric | baseline {} | arm | value of the arm | verdict | estimate \\[interval\\] |",
            text(&verdicts.baseline)
        ));
        lines.push("|---|---:|---|---:|---|---|".to_owned());
        for row in &group.rows {
            let (arm, value, verdict, estimate) = match &row.arm {
                Some(arm) => {
                    let estimate = match &arm.effect {
                        Effect::Unknown => "",
                        Effect::Ratio { words, .. } | Effect::Difference(words) => words,
                    };
                    (arm.measure.arm.as_str(), arm.measure.words(), arm.verdict.as_str(), estimate)
                }
                None => ("", String::new(), "", ""),
            };
            let verdict = format!("{verdict} {}", row.mark);
            let cells = [&row.metric, &row.baseline.words(), arm, &value, verdict.trim(), estimate].map(text);
            lines.push(format!("| {} |", cells.join(" | ")));
        }
    }
    lines
}

fn facts(group: &FactGroup) -> Vec<String> {
    let indent = if group.nested { "  " } else { "" };
    match &group.head {
        Some((name, about)) => {
            let rows: Vec<String> =
                group.rows.iter().map(|(title, text)| format!("; {title}: {text}")).collect();
            vec![format!("{indent}- {}", text(&format!("{name}: {about}{}", rows.concat())))]
        }
        None => group.rows.iter().map(|(title, fact)| format!("- {}: {}", text(title), text(fact))).collect(),
    }
}

fn finding(finding: &Finding) -> String {
    let evidence = finding.evidence.join("; ");
    let words = format!("{}: {} ({evidence}); {}", finding.severity.word(), finding.what, finding.remedy);
    format!("- {}", text(&words))
}

fn styled(words: &Text) -> String {
    words
        .0
        .iter()
        .map(|span| match span.style {
            Style::Strong => format!("**{}**", text(&span.text)),
            Style::Plain | Style::Tone(_) | Style::Link(_) => text(&span.text),
        })
        .collect()
}

/// A text as one line of Markdown with markup and HTML escaped. An interval in brackets cannot become a link, because every
/// bracket is escaped.
fn text(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for c in plain(raw).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' | '_' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
