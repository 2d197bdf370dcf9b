//! Texts of plans, hosts and errors are untrusted: none may become markup, script, a formula or a terminal command.
use netduel_model::run::{Run, RunEnd};
use netduel_report::{csv, document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::json;

/// Ends a script, starts an image with a handler, closes an attribute, controls a terminal, reverses the text direction, breaks a
/// table.
pub const HOSTILE: &str = "</script><img src=x onerror=\"document.title='owned'\">'\"|`*[a](javascript:b)\u{1b}[2J\u{202e}\r\n=1+1\u{2028}";

pub fn run() -> Run {
    build(&Recipe {
        question: format!("=cmd|' /C calc'!A0 {HOSTILE}"),
        text: HOSTILE.to_owned(),
        failed: vec![(0, 0)],
        wrong_path: vec![(1, 1)],
        end: Some(RunEnd::Failed { detail: HOSTILE.to_owned() }),
        ..Recipe::default()
    })
}

#[test]
fn html_escapes_hostile_texts() {
    let run = run();
    let page = html::page(&document(&run));
    assert!(!page.contains("<img"), "an element got through");
    assert_eq!(page.matches("<script").count(), 4, "our three scripts and the data");
    assert_eq!(page.matches("</script").count(), 4);
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror="), "the text is there, for the eye");
    // Each double quote in an attribute is escaped, so the handler is never an attribute of its own.
    assert!(!page.contains("onerror=\""));
}

#[test]
fn the_terminal_gets_no_control_characters() {
    let run = run();
    let text = terminal::report(&document(&run), 100, false);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(!text.contains('\u{202e}'));
    assert!(text.contains("onerror"));
}

#[test]
fn markdown_escapes_html_links_and_table_rows() {
    let run = run();
    let page = markdown::page(&document(&run));
    let commands: Vec<&str> = page.lines().filter(|line| !line.starts_with("    ")).collect();
    assert!(
        commands.iter().all(|line| !line.contains("<img")
            && !line.replace("\\]", "").replace("](https://www.rfc-editor.org/rfc/", "").contains("](")),
        "{page}"
    );
    // Every row of a table has as many cells as its header.
    for rows in commands.chunk_by(|one, next| one.starts_with('|') == next.starts_with('|')) {
        let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
        for line in rows.iter().filter(|line| line.starts_with('|')) {
            assert_eq!(bars(line), bars(rows[0]), "{line}");
        }
    }
}

#[test]
fn csv_fields_are_quoted_and_never_formulas() {
    let run = run();
    let text = csv::trials(&run);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    assert!(text.lines().skip(1).all(|line| line.starts_with("demo-")), "a row was broken");
    let mut formula = run.clone();
    formula.trials[0].validity = netduel_model::trial::Validity::Failed { reason: "=1+1".to_owned() };
    formula.trials[0].client = None;
    assert!(csv::trials(&formula).contains(",'=1+1,,,\n"));
}

#[test]
fn json_round_trips_hostile_texts() {
    let run = run();
    let text = json::report(&run).to_string();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["question"], run.header.plan.question);
}
