//! Upgrades lines of older formats to the newest: one step per version, which is a table of changes by place. A line is changed as
//! JSON, before it is parsed into a type. A step must not depend on other lines.
use serde_json::{Map, Value};

use crate::format::FORMAT;

/// A change of a line.
enum Change {
    /// Renamed keys of an object: from, to.
    Keys { at: &'static str, names: &'static [(&'static str, &'static str)] },
    /// Renamed values, which are texts or the only key of an object: from, to.
    Words { at: &'static str, names: &'static [(&'static str, &'static str)] },
    /// Any other change.
    With { at: &'static str, change: fn(&mut Value) },
}

/// Keys of the parts of transactions, which two reports contain.
const TRANSACTION_PARTS: &[(&str, &str)] = &[("begun", "attempted"), ("failures", "failed")];

/// Changes from version 2 to 3. A place is the keys that lead to it from the line, with dots between; `*` is every element of a list or
/// object. The changes are made in this order, so a place below a renamed key has the new name.
const TO_3: &[Change] = &[
    Change::With { at: "header.plan.arms.*.workloads.*.traffic", change: pps_is_a_type_of_its_own },
    Change::Keys { at: "header.plan.hosts.*.launch", names: &[("at", "address")] },
    Change::Keys { at: "header.hosts.*", names: &[("nodes", "numa_nodes"), ("filter", "firewall")] },
    Change::Keys { at: "header.hosts.*.firewall", names: &[("tracked", "conntrack")] },
    Change::Keys {
        at: "header.hosts.*.interfaces.*.device",
        names: &[("bus", "bus_address"), ("node", "numa_node"), ("disciplines", "qdiscs")],
    },
    Change::Keys { at: "trial.*.observation", names: &[("cost_ns", "observer_cpu_ns")] },
    Change::Words {
        at: "trial.*.observation.interfaces.*.presence",
        names: &[("stayed", "unchanged"), ("appeared", "added"), ("vanished", "removed")],
    },
    Change::Words {
        at: "trial.*.observation.link_events.*.change.kind",
        names: &[("appeared", "added"), ("vanished", "removed"), ("missed", "events-lost")],
    },
    Change::Keys { at: "trial.*.observation.link_events.*.change", names: &[("words", "message")] },
    Change::Keys { at: "trial.*.report", names: &[("spread", "fairness")] },
    Change::Keys {
        at: "trial.*.report.fairness",
        names: &[
            ("least", "min_bytes"),
            ("median", "median_bytes"),
            ("most", "max_bytes"),
            ("jain", "jain_index"),
        ],
    },
    Change::Keys { at: "trial.*.report.connections", names: &[("at_a_time", "concurrency")] },
    Change::Keys {
        at: "trial.*.report.datagrams",
        names: &[("too_late", "outside_window"), ("foreign", "unexpected"), ("highest", "next_sequence")],
    },
    Change::Keys { at: "trial.*.report.datagrams_sent", names: &[("burst", "burst_max")] },
    Change::Keys { at: "trial.*.report.dpdk", names: &[("node", "numa_node"), ("extended", "xstats")] },
    Change::Keys {
        at: "trial.*.report.dpdk.counts",
        names: &[
            ("sent", "tx_packets"),
            ("refused", "tx_dropped"),
            ("received", "rx_packets"),
            ("missed", "rx_missed"),
            ("receive_errors", "rx_errors"),
            ("without_buffer", "rx_nombuf"),
            ("send_errors", "tx_errors"),
        ],
    },
    Change::Keys { at: "trial.*.report.round_trips.parts", names: TRANSACTION_PARTS },
    Change::Keys { at: "trial.*.report.under_load.foreign", names: TRANSACTION_PARTS },
    Change::Keys { at: "trial.*.report.zero_copy", names: &[("put_off", "deferred")] },
    Change::Keys {
        at: "trial.*.report.thread_use",
        names: &[("ran_ns", "run_ns"), ("waited_ns", "run_delay_ns")],
    },
    Change::Keys { at: "trial.*.report.stamps", names: &[("whole", "round_trip")] },
    Change::Keys { at: "trial.*.report.stamps.levels.*", names: &[("whole_ns", "round_trip_max_ns")] },
    Change::Words { at: "trial.*.report.stamps.parts.*.part", names: &[("late", "schedule-delay")] },
    Change::Words { at: "trial.*.report.stamps.one_way.clocks", names: &[("one", "shared")] },
    Change::Keys {
        at: "trial.search.steps.*",
        names: &[
            ("ask", "input"),
            ("count", "output"),
            ("offered", "offered_load"),
            ("fell_short", "generator_limited"),
        ],
    },
    Change::Keys {
        at: "trial.search.steps.*.output",
        names: &[("spent_ns", "effective_duration_ns"), ("late_p99_ns", "pacing_error_p99_ns")],
    },
    Change::Keys { at: "trial.search.results.*", names: &[("limited_by_generator", "generator_limited")] },
    Change::Keys { at: "trial.search", names: &[("shown", "stored_step")] },
    Change::Words {
        at: "warning.kind",
        names: &[
            ("stolen-time", "steal-time"),
            ("busy-host", "cpu-contention"),
            ("other-tests", "concurrent-tests"),
            ("copied-all-the-same", "zero-copy-fell-back"),
            ("nothing-to-poll", "no-napi-instance"),
            ("stamps-differ", "timestamps-differ"),
            ("stamps-incomplete", "timestamps-incomplete"),
            ("at-least", "lower-bound"),
            ("trials-left-out", "trials-excluded"),
            ("not-undone", "undo-failed"),
        ],
    },
    Change::Words { at: "warning.cause", names: &[("dropped-behind", "dropped-after-interface")] },
    Change::Keys {
        at: "warning",
        names: &[
            ("times_median", "ratio_to_median"),
            ("begun", "attempted"),
            ("late_p99_ns", "pacing_error_p99_ns"),
            ("asked_bps", "requested_bps"),
            ("of", "trials_total"),
        ],
    },
    Change::Words {
        at: "end.reason",
        names: &[("blocks-done", "block-limit-reached"), ("budget-used", "budget-reached")],
    },
];

/// The changes to each version, from version 2.
const STEPS: &[&[Change]] = &[&[], TO_3];

/// Upgrades a line of an older format to the newest.
pub(crate) fn to_newest(line: &mut Value, format: u32) {
    for changes in STEPS.iter().take(FORMAT as usize - 1).skip((format as usize).saturating_sub(1)) {
        apply(line, changes);
    }
}

fn apply(line: &mut Value, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Keys { at, names } => visit(line, at, &mut |value| {
                for (from, to) in *names {
                    rename(value, from, to);
                }
            }),
            Change::Words { at, names } => visit(line, at, &mut |value| change_word(value, names)),
            Change::With { at, change } => visit(line, at, &mut |value| change(value)),
        }
    }
}

fn change_word(value: &mut Value, names: &[(&str, &str)]) {
    match value {
        Value::String(word) => {
            if let Some((_, to)) = names.iter().find(|(from, _)| from == word) {
                (*to).clone_into(word);
            }
        }
        Value::Object(fields) if fields.len() == 1 => {
            for (from, to) in names {
                rename(value, from, to);
            }
        }
        _ => {}
    }
}

fn rename(value: &mut Value, from: &str, to: &str) {
    if let Value::Object(fields) = value
        && let Some(field) = fields.remove(from)
    {
        fields.insert(to.to_owned(), field);
    }
}

/// Calls `change` with every value at a place.
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

    /// A record that resumes a run has a format of its own, which is not checked as that of the first line is.
    #[test]
    fn line_of_format_0_is_read_as_one_of_format_1() {
        let line = json!({ "trial": { "slot": { "block": 0 } } });
        let (mut zero, mut one) = (line.clone(), line);
        to_newest(&mut zero, 0);
        to_newest(&mut one, 1);
        assert_eq!(zero, one);
    }

    /// A misspelled place would change nothing, and the field would be read as absent.
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
            let (at, names) = match change {
                Change::Keys { at, names } | Change::Words { at, names } => (at, *names),
                Change::With { at, .. } => (at, &[] as &[_]),
            };
            // Each name alone, and then the whole change, which later places depend on.
            for name in names.chunks(1) {
                let single = match change {
                    Change::Words { .. } => Change::Words { at, names: name },
                    _ => Change::Keys { at, names: name },
                };
                let mut after = lines.clone();
                for line in &mut after {
                    apply(line, std::slice::from_ref(&single));
                }
                assert!(after != lines, "no golden file has {} at {at}", name[0].0);
            }
            let before = lines.clone();
            for line in &mut lines {
                apply(line, std::slice::from_ref(change));
            }
            assert!(before != lines, "no golden file has {at}");
        }
    }

    fn golden_folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
    }

    /// A field with an unknown name is absent after the line is parsed and written again. `format-2-every` has every place of format 2, but with
    /// the names of this table reversed; `format-1-real-*` and `format-2-real-*` are from programs of these formats, so they also contain
    /// what the table lacks.
    #[test]
    fn no_field_of_an_older_format_is_lost() {
        let mut files = [0, 0];
        for entry in std::fs::read_dir(golden_folder()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let Some(format) = (1..=2).find(|format| name.starts_with(&format!("format-{format}-"))) else {
                continue;
            };
            if !name.ends_with(".netduel") {
                continue;
            }
            files[format as usize - 1] += 1;
            for (index, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
                let mut upgraded: Value = serde_json::from_str(line).unwrap();
                to_newest(&mut upgraded, format);
                let read = upgraded.clone();
                let written = if read.get("netduel").is_some() {
                    serde_json::to_value(serde_json::from_value::<FirstLine<'_>>(read).unwrap())
                } else {
                    serde_json::to_value(serde_json::from_value::<Record<'_>>(read).unwrap())
                };
                assert_eq!(written.unwrap(), upgraded, "line {} of {name}", index + 1);
            }
        }
        assert!(files.iter().all(|count| *count > 1), "no golden files in {}", golden_folder().display());
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
    fn keys_and_values_are_renamed_only_at_their_places() {
        let changes = [
            Change::Keys { at: "trial.*.report", names: &[("old", "new")] },
            Change::Words { at: "trial.*.cause", names: &[("Strange", "Unexpected")] },
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
