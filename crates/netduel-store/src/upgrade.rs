//! Lines of older formats in the words of the newest: a step for each version, which is a table of changes by place. A line is changed as
//! JSON, before any type is read from it. A step must not depend on other lines.
use serde_json::{Map, Value};

use crate::format::FORMAT;

/// A change of a line.
enum Change {
    /// A key of an object has another name.
    Key { at: &'static str, from: &'static str, to: &'static str },
    /// A word, which is a text or the only key of an object, is another one.
    Word { at: &'static str, from: &'static str, to: &'static str },
    /// Anything else.
    With { at: &'static str, change: fn(&mut Value) },
}

const fn key(at: &'static str, from: &'static str, to: &'static str) -> Change {
    Change::Key { at, from, to }
}

const fn word(at: &'static str, from: &'static str, to: &'static str) -> Change {
    Change::Word { at, from, to }
}

const HOST: &str = "header.hosts.*";
const DEVICE: &str = "header.hosts.*.interfaces.*.device";
const OBSERVATION: &str = "trial.*.observation";
const PRESENCE: &str = "trial.*.observation.interfaces.*.presence";
const LINK_CHANGE: &str = "trial.*.observation.link_events.*.change";
const LINK_CHANGE_KIND: &str = "trial.*.observation.link_events.*.change.kind";
const REPORT: &str = "trial.*.report";
const DATAGRAMS: &str = "trial.*.report.datagrams";
const DPDK: &str = "trial.*.report.dpdk";
const DPDK_COUNTS: &str = "trial.*.report.dpdk.counts";
const FAIRNESS: &str = "trial.*.report.fairness";
const TRANSACTIONS: &str = "trial.*.report.round_trips.parts";
const FOREIGN_TRANSACTIONS: &str = "trial.*.report.under_load.foreign";
const STAMPS: &str = "trial.*.report.stamps";
const STEP: &str = "trial.search.steps.*";
const STEP_OUTPUT: &str = "trial.search.steps.*.output";
const KIND: &str = "warning.kind";

/// Changes from version 2 to 3. A place is the keys that lead to it from the line, with dots between; `*` is every element of a list or
/// object. The changes are made in this order, so a place below a renamed key has the new name.
const TO_3: &[Change] = &[
    Change::With { at: "header.plan.arms.*.workloads.*.traffic", change: pps_is_a_type_of_its_own },
    key("header.plan.hosts.*.launch", "at", "address"),
    key(HOST, "nodes", "numa_nodes"),
    key(HOST, "filter", "firewall"),
    key("header.hosts.*.firewall", "tracked", "conntrack"),
    key(DEVICE, "bus", "bus_address"),
    key(DEVICE, "node", "numa_node"),
    key(DEVICE, "disciplines", "qdiscs"),
    key(OBSERVATION, "cost_ns", "observer_cpu_ns"),
    word(PRESENCE, "stayed", "unchanged"),
    word(PRESENCE, "appeared", "added"),
    word(PRESENCE, "vanished", "removed"),
    word(LINK_CHANGE_KIND, "appeared", "added"),
    word(LINK_CHANGE_KIND, "vanished", "removed"),
    word(LINK_CHANGE_KIND, "missed", "events-lost"),
    key(LINK_CHANGE, "words", "message"),
    key(REPORT, "spread", "fairness"),
    key(FAIRNESS, "least", "min_bytes"),
    key(FAIRNESS, "median", "median_bytes"),
    key(FAIRNESS, "most", "max_bytes"),
    key(FAIRNESS, "jain", "jain_index"),
    key("trial.*.report.connections", "at_a_time", "concurrency"),
    key(DATAGRAMS, "too_late", "outside_window"),
    key(DATAGRAMS, "foreign", "unexpected"),
    key(DATAGRAMS, "highest", "next_sequence"),
    key("trial.*.report.datagrams_sent", "burst", "burst_max"),
    key(DPDK, "node", "numa_node"),
    key(DPDK, "extended", "xstats"),
    key(DPDK_COUNTS, "sent", "tx_packets"),
    key(DPDK_COUNTS, "refused", "tx_dropped"),
    key(DPDK_COUNTS, "received", "rx_packets"),
    key(DPDK_COUNTS, "missed", "rx_missed"),
    key(DPDK_COUNTS, "receive_errors", "rx_errors"),
    key(DPDK_COUNTS, "without_buffer", "rx_nombuf"),
    key(DPDK_COUNTS, "send_errors", "tx_errors"),
    key(TRANSACTIONS, "begun", "attempted"),
    key(TRANSACTIONS, "failures", "failed"),
    key(FOREIGN_TRANSACTIONS, "begun", "attempted"),
    key(FOREIGN_TRANSACTIONS, "failures", "failed"),
    key("trial.*.report.zero_copy", "put_off", "deferred"),
    key("trial.*.report.thread_use", "ran_ns", "run_ns"),
    key("trial.*.report.thread_use", "waited_ns", "run_delay_ns"),
    key(STAMPS, "whole", "round_trip"),
    key("trial.*.report.stamps.levels.*", "whole_ns", "round_trip_max_ns"),
    word("trial.*.report.stamps.parts.*.part", "late", "schedule-delay"),
    word("trial.*.report.stamps.one_way.clocks", "one", "shared"),
    key(STEP, "ask", "input"),
    key(STEP, "count", "output"),
    key(STEP, "offered", "offered_load"),
    key(STEP, "fell_short", "generator_limited"),
    key(STEP_OUTPUT, "spent_ns", "effective_duration_ns"),
    key(STEP_OUTPUT, "late_p99_ns", "pacing_error_p99_ns"),
    key("trial.search.results.*", "limited_by_generator", "generator_limited"),
    key("trial.search", "shown", "stored_step"),
    word(KIND, "stolen-time", "steal-time"),
    word(KIND, "busy-host", "cpu-contention"),
    word(KIND, "other-tests", "concurrent-tests"),
    word(KIND, "copied-all-the-same", "zero-copy-fell-back"),
    word(KIND, "nothing-to-poll", "no-napi-instance"),
    word(KIND, "stamps-differ", "timestamps-differ"),
    word(KIND, "stamps-incomplete", "timestamps-incomplete"),
    word(KIND, "at-least", "lower-bound"),
    word(KIND, "trials-left-out", "trials-excluded"),
    word(KIND, "not-undone", "undo-failed"),
    word("warning.cause", "dropped-behind", "dropped-after-interface"),
    key("warning", "times_median", "ratio_to_median"),
    key("warning", "begun", "attempted"),
    key("warning", "late_p99_ns", "pacing_error_p99_ns"),
    key("warning", "asked_bps", "requested_bps"),
    key("warning", "of", "trials_total"),
    word("end.reason", "blocks-done", "block-limit-reached"),
    word("end.reason", "budget-used", "budget-reached"),
];

/// The changes to each version, the first being version 2.
const STEPS: &[&[Change]] = &[&[], TO_3];

/// A line of an older format as the newest has it.
pub(crate) fn to_newest(line: &mut Value, format: u32) {
    for changes in STEPS.iter().take(FORMAT as usize - 1).skip(format as usize - 1) {
        apply(line, changes);
    }
}

fn apply(line: &mut Value, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Key { at, from, to } => visit(line, at, &mut |value| rename(value, from, to)),
            Change::Word { at, from, to } => visit(line, at, &mut |value| match value {
                Value::String(word) if word == from => (*to).clone_into(word),
                Value::Object(fields) if fields.len() == 1 => rename(value, from, to),
                _ => {}
            }),
            Change::With { at, change } => visit(line, at, &mut |value| change(value)),
        }
    }
}

fn rename(value: &mut Value, from: &str, to: &str) {
    if let Value::Object(fields) = value
        && let Some(field) = fields.remove(from)
    {
        fields.insert(to.to_owned(), field);
    }
}

/// Calls for every value at a place.
fn visit(value: &mut Value, at: &str, change: &mut dyn FnMut(&mut Value)) {
    let (key, rest) = at.split_once('.').unwrap_or((at, ""));
    match key {
        "" => change(value),
        "*" => {
            for child in children(value) {
                visit(child, rest, change);
            }
        }
        key => {
            if let Some(child) = value.get_mut(key) {
                visit(child, rest, change);
            }
        }
    }
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(elements) => elements.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    }
}

/// `pps` was a `udp-stream` with `packets`.
fn pps_is_a_type_of_its_own(traffic: &mut Value) {
    let Some(fields) = traffic.as_object_mut() else { return };
    if fields.get("type").and_then(Value::as_str) != Some("udp-stream") {
        return;
    }
    let Some(packets) = fields.remove("packets").filter(|packets| !packets.is_null()) else { return };
    let mut udp = std::mem::take(fields);
    udp.remove("type");
    *fields = Map::from_iter([
        ("type".to_owned(), "pps".into()),
        ("udp".to_owned(), udp.into()),
        ("packets".to_owned(), packets),
    ]);
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::json;

    use super::*;
    use crate::format::{FirstLine, Record};

    #[test]
    fn there_is_a_step_to_every_version() {
        assert_eq!(STEPS.len(), FORMAT as usize - 1);
    }

    /// A place that is misspelled would change nothing, and the reader would take the field for absent.
    #[test]
    fn every_change_applies_to_a_line_of_a_golden_file() {
        let mut lines: Vec<Value> = ["format-1.netduel", "format-2.netduel", "format-2-every.netduel"]
            .iter()
            .map(|name| golden_folder().join(name))
            .flat_map(|path| {
                std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        for change in STEPS.iter().copied().flatten() {
            let before = lines.clone();
            for line in &mut lines {
                apply(line, std::slice::from_ref(change));
            }
            let what = match change {
                Change::Key { at, from, .. } | Change::Word { at, from, .. } => format!("{from} at {at}"),
                Change::With { at, .. } => (*at).to_owned(),
            };
            assert!(before != lines, "no golden file has {what}");
        }
    }

    fn golden_folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
    }

    /// A field under a name that no type knows is absent in what is written again. `format-2-every` has every place of format 2, but with
    /// the names of this table reversed; `format-2-real-*` are from a program of format 2, so they also contain what the table forgot.
    #[test]
    fn no_field_of_format_2_is_lost() {
        let mut files = 0;
        for entry in std::fs::read_dir(golden_folder()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !name.starts_with("format-2-") || !name.ends_with(".netduel") {
                continue;
            }
            files += 1;
            for (index, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
                let mut upgraded: Value = serde_json::from_str(line).unwrap();
                to_newest(&mut upgraded, 2);
                let read = upgraded.clone();
                let written = if read.get("netduel").is_some() {
                    serde_json::to_value(serde_json::from_value::<FirstLine<'_>>(read).unwrap())
                } else {
                    serde_json::to_value(serde_json::from_value::<Record<'_>>(read).unwrap())
                };
                assert_eq!(written.unwrap(), upgraded, "line {} of {name}", index + 1);
            }
        }
        assert!(files > 1, "no golden files in {}", golden_folder().display());
    }

    #[test]
    fn packets_of_a_udp_stream_become_a_pps_workload() {
        let line =
            |traffic: Value| json!({"header": {"plan": {"arms": [{"workloads": [{"traffic": traffic}]}]}}});
        let mut old = line(json!({"type": "udp-stream", "flows": 2, "packets": {"frame": 64}}));
        to_newest(&mut old, 2);
        assert_eq!(old, line(json!({"type": "pps", "udp": {"flows": 2}, "packets": {"frame": 64}})));
        let datagrams = line(json!({"type": "udp-stream", "flows": 2}));
        let mut old = datagrams.clone();
        to_newest(&mut old, 1);
        assert_eq!(old, datagrams);
    }

    #[test]
    fn keys_and_words_are_renamed_at_their_places_alone() {
        let changes = [
            Change::Key { at: "trial.*.report", from: "old", to: "new" },
            Change::Word { at: "trial.*.cause", from: "Strange", to: "Unexpected" },
        ];
        let mut line = json!({
            "trial": {"client": {"report": {"old": 1}, "cause": {"Strange": 2}}, "old": 3, "server": {"cause": "Strange"}},
            "cause": "Strange",
        });
        apply(&mut line, &changes);
        let expected = json!({
            "trial": {"client": {"report": {"new": 1}, "cause": {"Unexpected": 2}}, "old": 3, "server": {"cause": "Unexpected"}},
            "cause": "Strange",
        });
        assert_eq!(line, expected);
    }
}
