//! The JSON Schema of a plan, with the ranges of the settings of each type of workload.
use serde_json::{Map, Value, json};

use super::spec::PlanSpec;
use crate::workload::{SettingRange, Unit, WorkloadType};

/// Where an editor finds the bounds of a quantity that is text with a unit: JSON Schema has bounds for numbers alone.
const LEAST: &str = "x-minimum";
const MOST: &str = "x-maximum";

/// The JSON Schema (2020-12) of a plan, for editors and for the guide. It knows keys, types and ranges; what goes together with
/// what only [`parse`](super::parse) knows.
pub fn schema() -> Value {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<PlanSpec>().to_value();
    let workload = &mut schema["$defs"]["WorkloadSpec"];
    describe(&mut workload["properties"]);
    workload["allOf"] = WorkloadType::ALL.iter().map(|kind| rule(*kind)).collect();
    describe(&mut schema["$defs"]["SettingsSpec"]["properties"]);
    schema
}

/// The ranges of one type.
fn rule(kind: WorkloadType) -> Value {
    let ranged = kind.settings().iter().filter_map(|setting| Some((setting.key, setting.range?)));
    let properties: Map<String, Value> = ranged.map(|(key, range)| (key.to_owned(), bounds(range))).collect();
    json!({
        "if": { "properties": { "type": { "const": kind.word() } } },
        "then": { "properties": properties },
    })
}

fn bounds(range: SettingRange) -> Value {
    if range.unit == Unit::Count {
        json!({ "minimum": range.least, "maximum": range.most })
    } else {
        json!({ LEAST: range.unit.show(range.least), MOST: range.unit.show(range.most) })
    }
}

/// Adds the ranges of each type to the descriptions of the keys.
fn describe(properties: &mut Value) {
    for (key, property) in properties.as_object_mut().into_iter().flatten() {
        let mut ranges: Vec<(SettingRange, Vec<&str>)> = Vec::new();
        for kind in WorkloadType::ALL {
            let setting = kind.settings().iter().find(|setting| setting.key == key);
            let Some(range) = setting.and_then(|setting| setting.range) else { continue };
            match ranges.iter_mut().find(|(other, _)| *other == range) {
                Some((_, kinds)) => kinds.push(kind.word()),
                None => ranges.push((range, vec![kind.word()])),
            }
        }
        if ranges.is_empty() {
            continue;
        }
        let words: Vec<String> = ranges
            .iter()
            .map(|(range, kinds)| {
                let [least, most] = [range.least, range.most].map(|value| range.unit.show(value));
                format!("{least} to {most} ({})", kinds.join(", "))
            })
            .collect();
        let text = property["description"].as_str().unwrap_or_default();
        property["description"] = format!("{text} Range: {}.", words.join("; ")).into();
    }
}
