//! Verdicts as JUnit XML, for the test reports of Jenkins, GitLab and others: one test case for each check.
//!
//! GitLab shows the class name as the suite, and ignores the name of the suite, its properties and the message of a failure. Therefore the
//! class name has the sides of a comparison, and the text of a failure has everything. The reason of a skipped case is the text of its element:
//! older schemas of Jenkins allow no attribute there, and both show the text.
use std::fmt::Write as _;

use crate::checks::{Check, Checks, Outcome};
use crate::json::envelope::iso_8601;
use crate::words::plain;

/// The document. It has no times: a verdict is about all trials of a run, which it shares with others.
pub fn page(checks: &Checks) -> String {
    let [failures, errors, skipped] =
        [Outcome::Failed, Outcome::NoData, Outcome::Open].map(|outcome| checks.count(outcome));
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", checks.checks.len());
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"netduel\" {counts}>");
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" {counts} skipped=\"{skipped}\" timestamp=\"{}\">",
        line(&checks.title),
        iso_8601(checks.started_unix_ms)
    );
    text.push_str("    <properties>\n");
    for (name, value) in &checks.properties {
        let _ = writeln!(text, "      <property name=\"{}\" value=\"{}\"/>", line(name), line(value));
    }
    text.push_str("    </properties>\n");
    for check in &checks.checks {
        case(check, &checks.command, &mut text);
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn case(check: &Check, command: &str, text: &mut String) {
    let (class, name) = (line(&check.sides), line(&check.name));
    let _ = writeln!(text, "    <testcase classname=\"{class}\" name=\"{name}\">");
    let message = line(&check.verdict);
    let details = escaped(&details(check, command));
    let _ = match check.outcome {
        Outcome::Failed => {
            writeln!(text, "      <failure type=\"gate\" message=\"{message}\">{details}</failure>")
        }
        Outcome::NoData => {
            writeln!(text, "      <error type=\"no-data\" message=\"{message}\">{details}</error>")
        }
        Outcome::Open => {
            writeln!(text, "      <skipped>{message}</skipped>\n      <system-out>{details}</system-out>")
        }
        Outcome::Passed => writeln!(text, "      <system-out>{details}</system-out>"),
    };
    text.push_str("    </testcase>\n");
}

/// Everything about a check, a line for each part.
pub(crate) fn details(check: &Check, command: &str) -> String {
    let mut lines = vec![format!("{}, {}", check.name, check.sides), format!("verdict: {}", check.verdict)];
    let head = match check.outcome {
        Outcome::Failed => "",
        Outcome::Passed => "passes: ",
        Outcome::NoData | Outcome::Open => "not decided: ",
    };
    lines.extend(check.conditions.iter().map(|condition| format!("{head}{condition}")));
    lines.extend(check.values.iter().map(|(label, value)| format!("{label}: {value}")));
    lines.extend(check.notes.iter().cloned());
    lines.push(format!("report: {command}"));
    lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\n")
}

/// A text of one line for an attribute or an element, without what changes the direction of writing or cannot be seen.
fn line(text: &str) -> String {
    escaped(&plain(text))
}

/// A text for an attribute or an element. Line breaks stay; what XML 1.0 cannot contain becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Tone;

    #[test]
    fn no_text_changes_the_direction_of_writing() {
        let text = || "a\u{202e}b\nc".to_owned();
        let check = Check {
            sides: text(),
            name: text(),
            verdict: text(),
            values: vec![(text(), text())],
            tone: Tone::Open,
            outcome: Outcome::Open,
            conditions: vec![text()],
            notes: vec![text()],
        };
        let outcomes = [Outcome::Failed, Outcome::NoData, Outcome::Open, Outcome::Passed];
        let page = page(&Checks {
            title: text(),
            properties: vec![(text(), text())],
            started_unix_ms: 0,
            checks: outcomes.map(|outcome| Check { outcome, ..check.clone() }).into(),
            command: text(),
        });
        assert!(!page.contains('\u{202e}'), "{page}");
        for part in [
            "  <testsuite name=\"a\u{fffd}b c\" ",
            "<property name=\"a\u{fffd}b c\" value=\"a\u{fffd}b c\"/>",
            "<testcase classname=\"a\u{fffd}b c\" name=\"a\u{fffd}b c\">",
            "message=\"a\u{fffd}b c\"",
            "<skipped>a\u{fffd}b c</skipped>",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
    }

    #[test]
    fn markup_and_characters_that_xml_forbids_are_replaced() {
        assert_eq!(
            escaped("a<b>&\"c\"\u{1b}\u{0}\u{ffff}\nd"),
            "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}\u{fffd}\u{fffd}\nd"
        );
    }
}
