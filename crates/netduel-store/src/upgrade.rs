//! Lines of older formats in the words of the newest: a step for each version, which is a table of changes by place. A line is changed as
//! JSON, before any type is read from it. What a step changes must not depend on other lines.
use serde_json::{Map, Value};

use crate::format::FORMAT;

/// A change of a line.
enum Change {
    /// A key of an object has another name.
    #[cfg_attr(not(test), expect(dead_code, reason = "no key was renamed yet; the tests hold what it does"))]
    Key { at: &'static str, from: &'static str, to: &'static str },
    /// A word, which is a text or the only key of an object, is another one.
    #[cfg_attr(not(test), expect(dead_code, reason = "no word was renamed yet; the tests hold what it does"))]
    Word { at: &'static str, from: &'static str, to: &'static str },
    /// Anything else.
    With { at: &'static str, change: fn(&mut Value) },
}

/// Changes from version 2 to 3. A place is the keys that lead to it from the line, with dots between; `*` is every element of a list or
/// object, `**` every value at any depth.
const TO_3: &[Change] =
    &[Change::With { at: "header.plan.arms.*.workloads.*.traffic", change: pps_is_a_type_of_its_own }];

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
        "**" => {
            for child in children(value) {
                visit(child, at, change);
            }
            visit(value, rest, change);
        }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn there_is_a_step_to_every_version() {
        assert_eq!(STEPS.len(), FORMAT as usize - 1);
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
            Change::Word { at: "trial.**.cause", from: "Strange", to: "Unexpected" },
        ];
        let mut line = json!({
            "trial": {"client": {"report": {"old": 1}, "cause": {"Strange": 2}}, "old": 3, "deep": [{"cause": "Strange"}]},
            "cause": "Strange",
        });
        apply(&mut line, &changes);
        let expected = json!({
            "trial": {"client": {"report": {"new": 1}, "cause": {"Unexpected": 2}}, "old": 3, "deep": [{"cause": "Unexpected"}]},
            "cause": "Strange",
        });
        assert_eq!(line, expected);
    }
}
