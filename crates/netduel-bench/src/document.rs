//! Writes the tables of `docs/performance.md`, between two marks, and the raw figures beside it. Text outside of the marks is
//! written by hand.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::record::{Comparison, FORMAT, Placement, Record};
use crate::summary::{self, Row};
use crate::table;

const BEGIN: &str = "<!-- peers: begin; written by `cargo xtask bench peers --write-docs` -->";
const END: &str = "<!-- peers: end -->";

/// Writes both files from the JSON file of a campaign.
pub fn write(json: &Path) -> Result<()> {
    let text = std::fs::read_to_string(json).with_context(|| {
        format!("failed to read {}: measure first, with `cargo xtask bench peers`", json.display())
    })?;
    let record = read(&text).with_context(|| format!("failed to read {}", json.display()))?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let document = folder.join("performance.md");
    let old = std::fs::read_to_string(&document)
        .with_context(|| format!("failed to read {}", document.display()))?;
    let new = between_marks(&old, &tables(&record))
        .with_context(|| format!("failed to write {}", document.display()))?;
    store(&document, &new)?;
    store(&folder.join("performance.json"), &(text.trim_end().to_owned() + "\n"))
}

fn store(path: &PathBuf, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

fn read(text: &str) -> Result<Record> {
    let json: serde_json::Value = serde_json::from_str(text)?;
    let format = json.get("format").and_then(serde_json::Value::as_u64);
    ensure!(format == Some(u64::from(FORMAT)), "its format is {format:?}, not {FORMAT}: measure anew");
    Ok(serde_json::from_value(json)?)
}

/// The document with new text between the marks.
fn between_marks(document: &str, text: &str) -> Result<String> {
    let missing = || format!("it does not have the lines `{BEGIN}` and `{END}`, in this order");
    let (before, rest) = document.split_once(BEGIN).with_context(missing)?;
    let (_, after) = rest.split_once(END).with_context(missing)?;
    Ok(format!("{before}{BEGIN}\n{text}{END}{after}"))
}

fn tables(record: &Record) -> String {
    let mut text = String::new();
    for line in table::head(record) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {line}");
    }
    for placement in [Placement::Free, Placement::Apart, Placement::Together] {
        let results: Vec<&Comparison> =
            record.results.iter().filter(|result| result.placement == placement).collect();
        if results.is_empty() {
            continue;
        }
        let title = match placement {
            Placement::Free => "Both ends free",
            Placement::Apart => "Client on core 0, server on core 1",
            Placement::Together => "Both on core 0",
        };
        let _ = writeln!(
            text,
            "\n### {title}\n\n| case | ours | against | figure | ratio | 95 % | ours | theirs | target |\n|---|---|---|---|---|---|---|---|---|"
        );
        for result in results {
            text += &comparison_rows(result, record);
        }
    }
    text.push('\n');
    text
}

fn comparison_rows(result: &Comparison, record: &Record) -> String {
    let against = result.against.as_deref().unwrap_or("the plan");
    let head = format!("| {} | {} | {against} |", result.case, result.ours);
    let mut text = String::new();
    for line in result.missing.iter().chain(&result.failures) {
        let _ = writeln!(text, "{head} not measured: {} | | | | | |", line.replace('|', "/"));
    }
    for row in summary::rows(result, record.accounting) {
        let _ = writeln!(text, "{head} {} |", cells(&row));
    }
    text
}

fn cells(row: &Row) -> String {
    let metric = row.metric;
    let (ratio, theirs) = match row.ratio.zip(row.theirs) {
        Some((ratio, theirs)) => {
            (table::range(ratio, |value| format!("{value:.2}")), metric.show(theirs.median))
        }
        None => (String::new(), String::new()),
    };
    let ours = if row.ratio.is_some() {
        metric.show(row.ours.median)
    } else {
        table::range(row.ours, |value| metric.show(value))
    };
    let interval = row.interval.map_or_else(String::new, |(low, high)| format!("{low:.2} to {high:.2}"));
    format!("{} | {ratio} | {interval} | {ours} | {theirs} | {}", metric.title(), targets(row))
}

/// Each target, and whether it is met.
fn targets(row: &Row) -> String {
    let targets: Vec<String> = row
        .targets
        .iter()
        .map(|(target, is_reached)| {
            format!("{}: {}", table::bound(target), if *is_reached { "yes" } else { "**no**" })
        })
        .collect();
    targets.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;

    #[test]
    fn text_outside_the_marks_is_kept() {
        let document = format!("# Head\n\n{BEGIN}\nold\n{END}\n\nWhere we lose.\n");
        let new = between_marks(&document, "| new |\n").unwrap();
        assert_eq!(new, format!("# Head\n\n{BEGIN}\n| new |\n{END}\n\nWhere we lose.\n"));
        assert_eq!(between_marks(&new, "| new |\n").unwrap(), new, "writing twice changes nothing");
    }

    #[test]
    fn document_without_marks_is_rejected() {
        assert!(between_marks("# Head\n", "").is_err());
        assert!(between_marks(&format!("{END}\n{BEGIN}\n"), "").is_err());
    }

    /// A changed target changes the page, also before the next campaign.
    #[test]
    fn published_targets_are_those_of_the_cases() {
        let record = read(include_str!("../../../docs/performance.json")).unwrap();
        let page = include_str!("../../../docs/performance.md");
        for result in &record.results {
            let case = CASES.iter().find(|case| {
                let against = case.against.map(|tool| tool.label());
                case.name == result.case && case.ours.name == result.ours && against == result.against
            });
            let case = case.unwrap_or_else(|| panic!("no case: {} {}", result.case, result.ours));
            assert_eq!(result.targets, case.targets, "{}: {}", result.case, result.ours);
            let against = result.against.as_deref().unwrap_or("the plan");
            for row in summary::rows(result, record.accounting) {
                let title = row.metric.title();
                let head = format!("| {} | {} | {against} | {title} |", result.case, result.ours);
                let end = format!("| {} |", targets(&row));
                let is_row = |line: &str| line.starts_with(&head) && line.ends_with(&end);
                assert!(page.lines().any(is_row), "{head} ... {end}");
            }
        }
    }

    #[test]
    fn file_with_another_format_version_is_rejected() {
        assert!(read("{\"format\": 99}").unwrap_err().to_string().contains("99"));
        assert!(read("{}").is_err());
    }
}
