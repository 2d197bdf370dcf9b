//! CSV with one row per trial and metric. Raw numbers in the metric's unit, not rounded; `bound` says what a value bounds that is not
//! exact, `doubt` why a value of a valid trial is not that of the test alone or is missing, `settings` what the run has in place of its plan's.
use netduel_model::run::Run;

use crate::analysis::Bound;
use crate::rows::{self, Row, block_number};
use crate::words;

/// The columns, in order. A new one is the last: scripts may count them.
const HEADER: &str = "run,block,position,attempt,arm,workload,valid,started_unix_ms,metric,unit,value,reason,\
                      bound,doubt,settings";

/// The counting trials of a run as CSV (RFC 4180, line feeds). A failed trial has one row with its reason.
pub fn trials(run: &Run) -> String {
    let mut text = format!("{HEADER}\n");
    let settings = field(&words::settings_of_command_line(&run.header).unwrap_or_default());
    for (trial, figures) in rows::of_run(run) {
        for Row { metric, unit, value, bound, doubt } in figures {
            let reason = trial.validity.reason().unwrap_or_default();
            let fields = [
                run.header.id.to_string(),
                block_number(&trial).to_string(),
                trial.slot.position.to_string(),
                trial.attempt.to_string(),
                trial.slot.arm.to_string(),
                trial.slot.workload.to_string(),
                trial.is_valid().to_string(),
                trial.started_unix_ms.to_string(),
                metric.to_owned(),
                unit.to_owned(),
                value.map(|value| value.to_string()).unwrap_or_default(),
                field(reason),
                bound.map(Bound::key).unwrap_or_default().to_owned(),
                field(&doubt.unwrap_or_default()),
                settings.clone(),
            ];
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

/// A field with any text, no part of which a spreadsheet evaluates: a formula gets a quote before it. Where a comma is
/// the decimal sign, spreadsheets split a row at semicolons, and so within a text. The other columns have numbers, and
/// words that begin with a letter or a digit.
fn field(text: &str) -> String {
    let text = words::plain(text);
    let guarded = |part: &str| if is_formula(part) { format!("'{part}") } else { part.to_owned() };
    let text = text.split(';').map(guarded).collect::<Vec<_>>().join(";");
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Whether a spreadsheet may evaluate a cell with this text: by its first sign, spaces aside. In some languages the
/// full-width ones count, too.
fn is_formula(text: &str) -> bool {
    text.trim_start().starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_spreadsheet_would_evaluate_gets_a_quote() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "' =1"),
            ("\r=1", "' =1"),
            ("\n=1", "' =1"),
            ("  -1", "'  -1"),
            ("\u{ff1d}1+1", "'\u{ff1d}1+1"),
            ("a;=1+1", "a;'=1+1"),
            ("a; @SUM(A1),b", "\"a;' @SUM(A1),b\""),
            ("a; b", "a; b"),
            ("\ta", " a"),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("a = 1", "a = 1"),
            ("a\n=1", "a =1"),
            ("", ""),
        ] {
            assert_eq!(field(text), expected, "{text:?}");
        }
    }
}
