//! The schema and the tables of the guide are generated from the code, and the committed files are current.
use netduel_formats::markdown::{self, Terms};
use netduel_model::metric::Metric;
use netduel_model::workload::WorkUnit;
use serde_json::Value;

use crate::{assert_current, project_file};

const KEYS: [&str; 2] =
    ["<!-- begin: generated from the schema -->\n", "<!-- end: generated from the schema -->"];
const TITLES: [&str; 2] =
    ["<!-- begin: generated from the metrics -->\n", "<!-- end: generated from the metrics -->"];

#[test]
fn the_committed_schema_is_current() {
    let schema = serde_json::to_string_pretty(&netduel_model::plan::schema()).expect("a schema is JSON");
    assert_current("docs/plan-file.schema.json", &(schema + "\n"));
}

#[test]
fn the_generated_tables_of_the_guide_are_current() {
    let guide = std::fs::read_to_string(project_file("docs/plans.md")).expect("the guide is there");
    let guide = with_text_between(&guide, TITLES, &titles());
    let keys = reference(&netduel_model::plan::schema(), &TABLES);
    assert_current("docs/plans.md", &with_text_between(&guide, KEYS, &keys));
}

pub fn with_text_between(guide: &str, [begin, end]: [&str; 2], text: &str) -> String {
    let (before, rest) = guide.split_once(begin).expect("the guide has a place for the tables");
    let (_, after) = rest.split_once(end).expect("the place has an end");
    format!("{before}{begin}{text}{end}{after}")
}

/// The titles of the metrics, also in the workloads with titles of their own.
fn titles() -> String {
    let rows = Metric::ALL.map(|metric| {
        let mut titles = vec![metric.title().to_owned()];
        for (unit, kind) in [(WorkUnit::Packet, "pps"), (WorkUnit::Transaction, "tcp-crr")] {
            if metric.title_in(unit) != metric.title() {
                titles.push(format!("of `{kind}`: {}", metric.title_in(unit)));
            }
        }
        vec![format!("`{}`", metric.key()), titles.join("; ")]
    });
    markdown::table(&["key in a plan", "title in a report"], rows)
}

#[test]
fn every_plan_of_the_guide_is_valid() {
    let guide = std::fs::read_to_string(project_file("docs/plans.md")).expect("the guide is there");
    let mut plans = 0;
    for block in guide.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        if text.starts_with("name =") {
            plans += 1;
            if let Err(errors) = netduel_model::plan::parse(text, "docs/plans.md") {
                panic!("{errors}");
            }
        }
    }
    assert!(plans > 0, "the guide shows no whole plan");
}

/// The tables of a plan with their titles, in the order in which an author meets them; `None`: the whole document.
const TABLES: [(&str, Option<&str>); 13] = [
    ("The plan itself", None),
    ("`[report]`", Some("ReportSpec")),
    ("`[lab]`", Some("LabSpec")),
    ("`[hosts.NAME]`", Some("HostSpec")),
    ("`[[arms]]`", Some("ArmSpec")),
    ("`treatments` of an arm", Some("TreatmentSpec")),
    ("`expect_interface` of an arm", Some("ExpectSpec")),
    ("`[[workloads]]`", Some("WorkloadSpec")),
    ("`search` of a workload, as a list of tables", Some("SearchGoalSpec")),
    ("`events` of a `failover` workload", Some("EventSpec")),
    ("`set` of an arm", Some("SettingsSpec")),
    ("`[workloads.dpdk]`", Some("DpdkSpec")),
    ("`[design]`", Some("DesignSpec")),
];

/// A section for every table.
pub fn reference(schema: &Value, tables: &[(&str, Option<&str>)]) -> String {
    let mut text = String::new();
    for (title, definition) in tables.iter().copied() {
        let table = definition.map_or(schema, |name| &schema["$defs"][name]);
        let description = table["description"].as_str().expect("every table is described");
        if definition == Some("SettingsSpec") {
            text.push_str(
                &[
                    "\n### ",
                    title,
                    "\n",
                    description,
                    " They have the meaning and the range of [`[[workloads]]`](#workloads): ",
                ]
                .concat(),
            );
            let properties = table["properties"].as_object().expect("a table has keys");
            let keys: Vec<String> = properties.keys().map(|key| format!("`{key}`")).collect();
            text.push_str(&[&keys.join(", "), ".\n"].concat());
            continue;
        }
        let required = table["required"].as_array().cloned().unwrap_or_default();
        let properties = table["properties"].as_object().expect("a table has keys");
        // Keys are sorted by the schema; required ones are shown first.
        let mut keys: Vec<_> = properties.iter().collect();
        keys.sort_by_key(|(key, _)| !required.contains(&Value::from(key.as_str())));
        let author = Author { definitions: &schema["$defs"] };
        let row = |(key, property): (&String, &Value)| {
            let mark = if required.contains(&Value::from(key.as_str())) { " (required)" } else { "" };
            let meaning = property["description"].as_str().expect("every key is described");
            vec![format!("`{key}`{mark}"), markdown::kind(property, &author), meaning.to_owned()]
        };
        let rows = markdown::table(&["key", "value", "meaning"], keys.into_iter().map(row));
        text.push_str(&["\n### ", title, "\n", description, "\n\n", &rows].concat());
    }
    text + "\n"
}

/// The terms of an author of TOML. A value that a definition describes has its words in place of a link.
pub struct Author<'a> {
    /// The definitions of the schema.
    pub definitions: &'a Value,
}

impl Terms for Author<'_> {
    fn definition(&self, path: &str) -> String {
        let definition = &self.definitions[path.rsplit('/').next().unwrap_or_default()];
        if let Some(words) = markdown::words(definition) {
            return words;
        }
        if let Some(example) = definition["examples"][0].as_str() {
            return format!("text with unit, `\"{example}\"`");
        }
        match definition["type"].as_str().expect("a definition has a type") {
            "object" => "table".to_owned(),
            "string" => "text".to_owned(),
            other => panic!("{other} has no words yet"),
        }
    }

    fn typed(&self, value: &Value, of: &str) -> String {
        match of {
            "array" => format!("list of {}", markdown::kind(&value["items"], self)),
            "boolean" => "`true`, `false`".to_owned(),
            "integer" => "whole number".to_owned(),
            "object" => "table of tables".to_owned(),
            "string" if value["format"] == "ip" => "address as text".to_owned(),
            "string" => "text".to_owned(),
            other => panic!("{other} has no words yet"),
        }
    }
}
