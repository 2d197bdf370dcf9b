//! The JSON Schema of a plan, with the settings of each type of workload and their ranges.
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::limits::{ARMS_MAX, HOSTS_MAX, WORKLOADS_MAX};
use super::spec::{PlanSpec, SettingsSpec};
use crate::bed::money::Money;
use crate::metric::Metric;
use crate::units::Nanos;
use crate::workload::given::Given;
use crate::workload::setting::CORES;
use crate::workload::{
    BANDWIDTH_LIMIT, DATA_PORT, DESCRIPTORS, DESIGN, DURATION, LAB, SEARCH_GOAL, SSH, Setting, SettingRange,
    TREATMENT, Traffic, WorkloadType,
};

/// Where an editor finds the bounds of a quantity that is text with a unit: JSON Schema has bounds for numbers alone.
const LEAST: &str = "x-minimum";
const MOST: &str = "x-maximum";
/// The keys that are lists of cores, by the table they belong to.
const LISTS_OF_CORES: [(&str, &[&str]); 3] = [
    ("WorkloadSpec", &["pin_client", "pin_server"]),
    ("SettingsSpec", &["pin_client", "pin_server"]),
    ("TreatmentSpec", &["rps", "xps", "irq_affinity"]),
];

/// The JSON Schema (2020-12) of a plan, for editors and for the guide. It knows keys, types and ranges; what goes together with
/// what only [`parse`](super::parse) knows.
pub fn schema() -> Value {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<PlanSpec>().to_value();
    for (key, keyword, most) in [
        ("hosts", "maxProperties", HOSTS_MAX),
        ("arms", "maxItems", ARMS_MAX),
        ("workloads", "maxItems", WORKLOADS_MAX),
    ] {
        schema["properties"][key][keyword] = most.into();
        append(&mut schema["properties"][key], &format!("At most {most}."));
    }
    let definitions = &mut schema["$defs"];
    let workload = &mut definitions["WorkloadSpec"];
    describe(&mut workload["properties"]);
    bound(&mut workload["properties"], "", &[DURATION]);
    append(&mut workload["properties"]["metrics"], &default_metrics());
    workload["allOf"] = WorkloadType::ALL.iter().map(|kind| rule(*kind)).collect();
    describe(&mut definitions["SettingsSpec"]["properties"]);
    for (table, settings) in [
        ("LabSpec", LAB),
        ("HostSpec", BANDWIDTH_LIMIT),
        ("HostSpec", SSH),
        ("HostSpec", &[DATA_PORT]),
        ("ArmSpec", BANDWIDTH_LIMIT),
        ("TreatmentSpec", TREATMENT),
        ("DesignSpec", DESIGN),
        ("SearchGoalSpec", SEARCH_GOAL),
    ] {
        bound(&mut definitions[table]["properties"], "", settings);
    }
    let core = format!("Range of a core: {}.", CORES.words());
    for (table, keys) in LISTS_OF_CORES {
        for key in keys {
            append(&mut definitions[table]["properties"][*key], &core);
        }
    }
    let price = &mut definitions["HostSpec"]["properties"]["price_per_hour"];
    append(price, &format!("Range: {}.", Money::range()));
    if let Some(descriptors) = DESCRIPTORS.range {
        let value = &mut definitions["TreatmentSpec"]["properties"]["value"];
        append(value, &format!("Range of a ring: {} descriptors.", descriptors.words()));
    }
    definitions["TreatmentSpec"]["allOf"] = DESCRIPTORS.range.map(rule_of_rings).into_iter().collect();
    for kind in WorkloadType::ALL {
        bound(&mut definitions["DpdkSpec"]["properties"], "dpdk.", kind.settings());
    }
    schema
}

/// The ranges of one type.
fn rule(kind: WorkloadType) -> Value {
    let own = kind.settings().iter().filter(|setting| !setting.key.contains('.'));
    let ranged = own.filter_map(|setting| Some((setting.key, setting.range?)));
    let properties: Map<String, Value> = ranged.map(|(key, range)| (key.to_owned(), bounds(range))).collect();
    json!({
        "if": { "properties": { "type": { "const": kind.word() } } },
        "then": { "properties": properties },
    })
}

/// The range of the value of a treatment `ring`, which is text as any value of a treatment.
fn rule_of_rings(range: SettingRange) -> Value {
    json!({
        "if": { "required": ["ring"] },
        "then": { "properties": { DESCRIPTORS.key: bounds_of_text(range) } },
    })
}

fn bounds(range: SettingRange) -> Value {
    if range.unit.is_number() {
        json!({ "minimum": range.least, "maximum": range.most })
    } else {
        bounds_of_text(range)
    }
}

fn bounds_of_text(SettingRange { least, most, unit, .. }: SettingRange) -> Value {
    json!({ LEAST: unit.show(least), MOST: unit.show(most) })
}

/// Adds the ranges of settings whose keys begin with `table` to the keys of that table.
fn bound(properties: &mut Value, table: &str, settings: &[Setting]) {
    for setting in settings {
        let (Some(key), Some(range)) = (setting.key.strip_prefix(table), setting.range) else { continue };
        let Some(property) = properties.get_mut(key) else { continue };
        if let (Some(property), Value::Object(bounds)) = (property.as_object_mut(), bounds(range)) {
            property.extend(bounds);
        }
        append(property, &format!("Range: {}.", range.words()));
    }
}

fn append(property: &mut Value, sentence: &str) {
    let text = property["description"].as_str().unwrap_or_default();
    property["description"] = format!("{text} {sentence}").into();
}

/// Adds to the descriptions of the keys which types have them and their ranges; what differs between the types has a line for each.
fn describe(properties: &mut Value) {
    for (key, property) in properties.as_object_mut().into_iter().flatten() {
        let of = |kind: &WorkloadType| {
            let settings: &'static [Setting] = kind.settings();
            Some((*kind, settings.iter().find(|setting| setting.key == key)?))
        };
        let types: Vec<(WorkloadType, &Setting)> = WorkloadType::ALL.iter().filter_map(of).collect();
        if types.is_empty() {
            continue;
        }
        let text = property["description"].as_str().unwrap_or_default();
        let ranges = grouped(types.iter().map(|(kind, setting)| (*kind, range_sentence(setting))));
        let common = if let [(range, _)] = ranges.as_slice() { range.clone() } else { String::new() };
        let own = |setting: &Setting| {
            let text = setting.text();
            let text = if text.is_empty() { text } else { format!("{text}.") };
            let range = if common.is_empty() { range_sentence(setting) } else { String::new() };
            joined(&[&text, &range])
        };
        let mut lines = vec![joined(&[&format!("{}: {text}", types_in_words(&types)), &common])];
        let groups = grouped(types.iter().map(|(kind, setting)| (*kind, own(setting))));
        let groups = groups.into_iter().filter(|(words, _)| !words.is_empty());
        lines.extend(groups.map(|(words, kinds)| format!("{}: {words}", kinds.join(", "))));
        property["description"] = lines.join("\n").into();
    }
}

/// `Range: 1 to 64.`; empty without a range.
fn range_sentence(setting: &Setting) -> String {
    setting.range.map_or_else(String::new, |range| format!("Range: {}.", range.words()))
}

/// Sentences that are not empty, in one line.
fn joined(sentences: &[&str]) -> String {
    let given: Vec<&str> = sentences.iter().copied().filter(|text| !text.is_empty()).collect();
    given.join(" ")
}

/// The types of which the same is true, in the order of the types.
fn grouped<T: PartialEq>(all: impl Iterator<Item = (WorkloadType, T)>) -> Vec<(T, Vec<&'static str>)> {
    let mut groups: Vec<(T, Vec<&'static str>)> = Vec::new();
    for (kind, value) in all {
        match groups.iter_mut().find(|(other, _)| *other == value) {
            Some((_, kinds)) => kinds.push(kind.word()),
            None => groups.push((value, vec![kind.word()])),
        }
    }
    groups
}

/// Which types have a setting: `All types`, `All types but pps`, `tcp-rr, udp-rr`.
fn types_in_words(types: &[(WorkloadType, &Setting)]) -> String {
    let having: BTreeSet<&str> = types.iter().map(|(kind, _)| kind.word()).collect();
    let missing: Vec<&str> =
        WorkloadType::ALL.iter().map(|kind| kind.word()).filter(|word| !having.contains(word)).collect();
    match missing.as_slice() {
        [] => "All types".to_owned(),
        [one] => format!("All types but {one}"),
        _ => types.iter().map(|(kind, _)| kind.word()).collect::<Vec<_>>().join(", "),
    }
}

/// The metrics that the verdict of each type is about when the plan names none.
fn default_metrics() -> String {
    let of = |kind: WorkloadType, settings: &SettingsSpec| {
        let given = Given { settings, search: None, duration: Nanos(1_000_000_000) };
        let metrics = Traffic::resolve(kind, &given).facts().default_metrics;
        metrics.into_iter().map(Metric::key).collect::<Vec<_>>().join(", ")
    };
    let usual = |kind: &WorkloadType| (*kind, of(*kind, &SettingsSpec::default()));
    let defaults = grouped(WorkloadType::ALL.iter().map(usual)).into_iter();
    let mut words: Vec<String> =
        defaults.map(|(metrics, kinds)| format!("{}: {metrics}", kinds.join(", "))).collect();
    let may_lack_streams = |kind: &&WorkloadType| {
        let mut settings = kind.settings().iter();
        settings
            .any(|setting| setting.key == "streams" && setting.range.is_some_and(|range| range.least == 0))
    };
    let none = SettingsSpec { streams: Some(0), ..SettingsSpec::default() };
    let without_streams = WorkloadType::ALL.iter().filter(may_lack_streams);
    words.extend(
        without_streams.map(|kind| format!("{} with `streams = 0`: {}", kind.word(), of(*kind, &none))),
    );
    format!("Default by type: {}.", words.join("; "))
}
