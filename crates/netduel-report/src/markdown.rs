//! A report as Markdown, for an issue, a pull request or a wiki. GitHub's dialect: tables, no HTML.
use crate::document::block::{Block, Document, FactGroup, Section, Style, Text};
use crate::document::table::{Cell, ColumnKind, Table};
use crate::document::verdicts::{VerdictRow, Verdicts};
use crate::findings::Finding;
use crate::words::plain;

/// The page.
pub fn page(document: &Document) -> String {
    let mut lines = head(document);
    for section in &document.sections {
        self::section(section, &mut lines);
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Title, question, names and facts of the cover, and the basis.
fn head(document: &Document) -> Vec<String> {
    let cover = &document.cover;
    let title = cover.title.as_ref().unwrap_or(&document.title);
    let mut lines = vec![format!("# {}", text(title)), String::new()];
    if cover.title.is_some() {
        lines.extend([text(&document.title), String::new()]);
    }
    if !cover.by.is_empty() {
        lines.extend([text(&cover.by.join(", ")), String::new()]);
    }
    if !cover.facts.is_empty() {
        lines.extend(cover.facts.iter().map(|(name, fact)| format!("- {}: {}", text(name), text(fact))));
        lines.push(String::new());
    }
    // The facts of a cover have most of the source.
    let is_shown = |part: &&String| {
        let mut facts = cover.facts.iter().flat_map(|(_, fact)| fact.split("; "));
        cover.title.as_ref() == Some(*part) || facts.any(|fact| fact == part.as_str())
    };
    let source: Vec<String> =
        document.source.iter().filter(|part| !is_shown(part)).map(|part| text(part)).collect();
    let source = if source.is_empty() { String::new() } else { format!("{}. ", source.join(", ")) };
    lines.push(format!("{source}{}", text(&document.basis)));
    lines
}

/// A section of pictures only has no lines.
fn section(section: &Section, lines: &mut Vec<String>) {
    let mut written = Vec::new();
    for block in &section.blocks {
        self::block(block, &mut written);
    }
    if !written.is_empty() {
        lines.extend([String::new(), format!("## {}", text(&section.title))]);
        lines.append(&mut written);
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
        Block::Numbered(items) => {
            items.iter().zip(1_u32..).map(|(item, number)| format!("{number}. {}", styled(item))).collect()
        }
        Block::Table(one) => table(one),
        Block::Verdicts(one) => verdicts(one),
        Block::Figure(figure) => match figure.data.as_ref().filter(|_| figure.in_text) {
            Some(data) => [vec![format!("### {}", text(&figure.title)), String::new()], table(data)].concat(),
            None => Vec::new(),
        },
        Block::Facts(groups) => groups.iter().flat_map(facts).collect(),
        Block::Findings(all) => all.iter().flat_map(finding).collect(),
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

/// The comparisons of each workload as a table. A verdict without a figure of its own has the estimate behind it.
fn verdicts(verdicts: &Verdicts) -> Vec<String> {
    let mut lines = vec![text(&verdicts.legend)];
    for group in &verdicts.groups {
        let mut one = Table::new(verdicts.columns.clone());
        let cells = |row: &VerdictRow| {
            let (verdict, values) = row.cells.split_last()?;
            let verdict = format!("{}{} {}", row.tone.mark(), verdict.with_detail("; "), row.mark);
            let last = Cell::from(verdict.trim());
            Some(values.iter().map(|cell| Cell::Text(cell.with_detail(" "))).chain([last]).collect())
        };
        one.rows = group.rows.iter().filter_map(cells).collect();
        lines.extend([String::new(), format!("**{}**:", text(&group.title)), String::new()]);
        lines.extend(table(&one));
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

/// The problem, its facts, reason and remedy as a list below it, and the command as a line to copy.
fn finding(finding: &Finding) -> Vec<String> {
    let head = format!("{}: {} [{}]", finding.severity.word(), finding.what, finding.id);
    let evidence = finding.evidence.join("; ");
    let rows = [("facts", &evidence), ("why", &finding.why), ("fix", &finding.remedy)];
    let mut lines = vec![format!("- {}", text(&head))];
    lines.extend(rows.map(|(title, words)| format!("  - {}", text(&format!("{title}: {words}")))));
    if let Some(command) = &finding.command {
        // Code within the last item: a blank line before it and eight columns.
        lines.extend([String::new(), format!("        {}", plain(command))]);
    }
    lines
}

fn styled(words: &Text) -> String {
    words
        .0
        .iter()
        .map(|span| match &span.style {
            Style::Strong => format!("**{}**", text(&span.text)),
            Style::Emphasis => format!("*{}*", text(&span.text)),
            // The address has no space, quote, angle or backslash; a bracket would end it.
            Style::Web(address) => {
                format!("[{}]({})", text(&span.text), address.replace('(', "%28").replace(')', "%29"))
            }
            Style::Plain | Style::Tone(_) | Style::Link(_) => text(&span.text),
        })
        .collect()
}

/// A text as one line of Markdown with markup and HTML escaped, but for words between a pair of backticks, which are code. An
/// interval in brackets cannot become a link, because every bracket is escaped.
pub(crate) fn text(raw: &str) -> String {
    let raw = plain(raw);
    let parts: Vec<&str> = raw.split('`').collect();
    // Text of hosts may have a backtick, too: what could be a tag or a link stays escaped.
    let is_code = |part: &str| !part.trim().is_empty() && !part.contains(['<', '>', '&', '[', ']', '\\']);
    let are_paired = parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(|part| is_code(part));
    if !are_paired {
        return escaped(&raw);
    }
    // A bar ends a cell of a table also within code.
    let code = |part: &str| format!("`{}`", part.replace('|', "\\|"));
    let all = parts.iter().enumerate();
    all.map(|(number, part)| if number % 2 == 1 { code(part) } else { escaped(part) }).collect()
}

fn escaped(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for c in raw.chars() {
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
