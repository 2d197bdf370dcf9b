//! Verdicts as annotations of a GitHub workflow, and a report as its step summary. Nothing is written here.
//!
//! GitHub shows 10 annotations of a kind in a step and 50 in a job, and drops a summary that is too long as a whole.
use crate::checks::{Check, Checks, Outcome};
use crate::junit::details;
use crate::words::{Tone, plain};

/// Most annotations of a command.
const ANNOTATIONS_MAX: usize = 10;
/// Most bytes of a step summary, of all commands of the step.
pub const SUMMARY_BYTES_MAX: usize = 1 << 20;

/// Workflow commands, a line each: failures, then missing data, then other losses. The last one counts the rest.
pub fn annotations(checks: &Checks) -> Vec<String> {
    let mut shown: Vec<(&'static str, &Check)> =
        checks.checks.iter().filter_map(|check| Some((level(check)?, check))).collect();
    // Stable: within a level the order is that of the report.
    shown.sort_by_key(|(_, check)| match check.outcome {
        Outcome::Failed => 0,
        Outcome::NoData => 1,
        Outcome::Passed | Outcome::Open => 2,
    });
    let room = if shown.len() > ANNOTATIONS_MAX { ANNOTATIONS_MAX - 1 } else { ANNOTATIONS_MAX };
    let mut lines: Vec<String> =
        shown.iter().take(room).map(|(level, check)| annotation(level, check, &checks.command)).collect();
    let left = shown.len().saturating_sub(room);
    if let Some((level, _)) = shown.get(room) {
        let text = format!("{left} more; {} lists all", checks.command);
        lines.push(format!("::{level} title={}::{}", property("netduel"), message(&text)));
    }
    lines
}

/// The level of a check's annotation; absent for one that is no problem.
fn level(check: &Check) -> Option<&'static str> {
    match (check.outcome, check.tone) {
        (Outcome::Failed | Outcome::NoData, _) => Some("error"),
        (Outcome::Passed | Outcome::Open, Tone::Worse) => Some("warning"),
        _ => None,
    }
}

fn annotation(level: &str, check: &Check, command: &str) -> String {
    let title = format!("netduel: {} ({})", check.name, check.sides);
    format!("::{level} title={}::{}", property(&plain(&title)), message(&details(check, command)))
}

/// The message of a workflow command.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// A step summary of at most `room` bytes: the decision of the gate and the report as Markdown, cut at a line with a sentence. Empty without room for the sentence.
pub fn summary(markdown: &str, decision: Option<&str>, command: &str, room: usize) -> String {
    let decision = decision.map(|line| format!("{}\n\n", crate::markdown::text(line))).unwrap_or_default();
    let whole = format!("{decision}{markdown}\n");
    if whole.len() <= room {
        return whole;
    }
    let note = format!(
        "\n\nThe summary is cut here, because GitHub drops one of more than {} MiB. `{command}` prints all of it.\n",
        SUMMARY_BYTES_MAX >> 20
    );
    let Some(room) = room.checked_sub(note.len()) else { return String::new() };
    let kept = boundary(&whole, room);
    let end = whole[..kept].rfind('\n').unwrap_or_default();
    format!("{}{note}", &whole[..end])
}

/// The last boundary of a character at or before a position.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|position| text.is_char_boundary(*position)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Outcome, tone: Tone, name: &str) -> Check {
        Check {
            sides: "b against a".to_owned(),
            name: name.to_owned(),
            verdict: "0.80x (-20 %)".to_owned(),
            values: vec![("a".to_owned(), "1 Gbit/s".to_owned())],
            tone,
            outcome,
            conditions: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn checks(checks: Vec<Check>) -> Checks {
        Checks {
            title: "x".to_owned(),
            properties: Vec::new(),
            started_unix_ms: 0,
            checks,
            command: "netduel report r".to_owned(),
        }
    }

    #[test]
    fn failures_come_before_missing_data_and_other_losses_and_the_rest_is_counted() {
        let mut all = vec![
            check(Outcome::Passed, Tone::Worse, "loss"),
            check(Outcome::NoData, Tone::Open, "missing"),
            check(Outcome::Passed, Tone::Better, "good"),
            check(Outcome::Open, Tone::Open, "open"),
        ];
        all.extend((0..12).map(|number| check(Outcome::Failed, Tone::Worse, &format!("failure {number}"))));
        let lines = annotations(&checks(all.clone()));
        assert_eq!(lines.len(), 10);
        assert!(
            lines[..9].iter().all(|line| line.starts_with("::error title=netduel%3A failure ")),
            "{lines:?}"
        );
        assert_eq!(lines[9], "::error title=netduel::5 more; netduel report r lists all");
        let lines = annotations(&checks(all.into_iter().take(4).collect()));
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with("::error title=netduel%3A missing") && lines[1].starts_with("::warning ")
        );
    }

    #[test]
    fn ten_annotations_need_no_counted_rest() {
        let lines = annotations(&checks(vec![check(Outcome::Failed, Tone::Worse, "x"); 10]));
        assert_eq!(lines.len(), 10);
        assert!(
            lines.iter().all(|line| line.contains("verdict%3A") || line.contains("verdict: ")),
            "{lines:?}"
        );
    }

    #[test]
    fn annotation_is_one_line_with_escaped_separators() {
        let line = annotation(
            "error",
            &check(
                Outcome::Failed,
                Tone::Worse,
                "a,b:c%
::warning::d",
            ),
            "x",
        );
        assert_eq!(line.lines().count(), 1);
        assert!(
            line.starts_with("::error title=netduel%3A a%2Cb%3Ac%25 %3A%3Awarning%3A%3Ad (b against a)::"),
            "{line}"
        );
        assert!(line.contains("%0Averdict: 0.80x (-20 %25)%0Aa: 1 Gbit/s%0Areport: x"), "{line}");
    }

    #[test]
    fn guide_states_the_limits() {
        let guide = include_str!("../../../docs/gate.md");
        for limit in [
            format!("at most {ANNOTATIONS_MAX} for each run or comparison"),
            format!("a summary of more than {} MiB", SUMMARY_BYTES_MAX >> 20),
        ] {
            assert!(guide.contains(&limit), "{limit}");
        }
    }

    #[test]
    fn summary_is_cut_at_a_line_below_its_limit_and_says_so() {
        let page = "é one line of text
"
        .repeat(100);
        assert_eq!(
            summary(&page, None, "x", 1 << 20),
            format!(
                "{page}
"
            )
        );
        for room in 0..600 {
            let cut = summary(&page, Some("failed by <x>"), "netduel report r", room);
            assert!(cut.len() <= room, "{room}: {}", cut.len());
            assert!(
                cut.is_empty()
                    || cut.ends_with(
                        "`netduel report r` prints all of it.
"
                    ),
                "{cut}"
            );
        }
        let cut = summary(&page, Some("failed by <x>"), "netduel report r", 600);
        assert!(
            cut.starts_with(
                "failed by &lt;x&gt;

é one line of text
"
            ),
            "{cut}"
        );
    }
}
