//! InfluxDB's line protocol with one line for each trial and metric, at the start of the trial.
//!
//! A trial without a value has a line with its reason. Tags are what one selects and groups by; the rest are fields.
use std::fmt::Write as _;

use netduel_model::run::Run;
use netduel_model::trial::Trial;

use crate::analysis::Bound;
use crate::rows::{self, block_number};
use crate::words::{self, plain};

/// The measurement of all lines.
const MEASUREMENT: &str = "netduel";

/// Largest time that InfluxDB stores, in the year 2262, nanoseconds since the Unix epoch
/// (`maxTime` in <https://docs.influxdata.com/flux/v0/stdlib/internal/influxql/>).
const TIME_NS_MAX: u64 = i64::MAX as u64 - 1;

/// The counting trials of a run. Times are nanoseconds since the Unix epoch. A trial of a changed file with a time that InfluxDB refuses has
/// no line: all such trials would be one point at the largest time.
pub fn lines(run: &Run) -> String {
    let mut text = String::new();
    // A field: with a tag each setting would begin new series.
    let settings = words::settings_of_command_line(&run.header);
    for (trial, figures) in rows::of_run(run) {
        let Some(time_ns) = time_ns(&trial) else { continue };
        for row in figures {
            let tags = [
                ("plan", run.header.plan.name.clone()),
                ("run", run.header.id.to_string()),
                ("arm", trial.slot.arm.to_string()),
                ("workload", trial.slot.workload.to_string()),
                ("metric", row.metric.to_owned()),
                ("unit", row.unit.to_owned()),
            ];
            // An empty tag is not valid: it is left out.
            let tags: Vec<String> = tags
                .iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(key, value)| format!(",{key}={}", tag(value)))
                .collect();
            let reason = trial.validity.reason().filter(|reason| !reason.is_empty());
            let fields = [
                row.value.map(|value| format!("value={value}")),
                Some(format!("valid={}", trial.is_valid())),
                Some(format!("block={}i", block_number(&trial))),
                Some(format!("position={}i", trial.slot.position)),
                Some(format!("attempt={}i", trial.attempt)),
                reason.map(|reason| format!("reason={}", string(reason))),
                row.bound.map(|bound| format!("bound={}", string(Bound::key(bound)))),
                row.doubt.map(|doubt| format!("doubt={}", string(&doubt))),
                settings.as_deref().map(|settings| format!("settings={}", string(settings))),
            ];
            let fields: Vec<String> = fields.into_iter().flatten().collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{MEASUREMENT}{} {} {time_ns}", tags.concat(), fields.join(","));
        }
    }
    text
}

/// The start of a trial, where InfluxDB can store it.
fn time_ns(trial: &Trial) -> Option<u64> {
    trial.started_unix_ms.checked_mul(1_000_000).filter(|time_ns| *time_ns <= TIME_NS_MAX)
}

/// A tag value. A backslash at its end would escape the separator, and cannot be escaped itself.
fn tag(text: &str) -> String {
    let mut escaped = String::new();
    for c in plain(text).chars() {
        match c {
            ',' | '=' | ' ' => escaped.extend(['\\', c]),
            '\\' => escaped.push('/'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A string field.
fn string(text: &str) -> String {
    format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_escaped() {
        assert_eq!(tag("a b,c=d\\"), "a\\ b\\,c\\=d/");
        assert_eq!(string("say \"a\\b\"\nend"), "\"say \\\"a\\\\b\\\" end\"");
    }
}
