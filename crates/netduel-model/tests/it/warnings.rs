//! The table of warnings in the methodology has a row for each warning of the code, and no other row.
use std::collections::BTreeSet;

use netduel_formats::examples;
use netduel_model::warning::Warning;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::project_file;

/// Names that their types check further than the schema says.
fn hint(place: &str, number: u64) -> Option<Value> {
    matches!(place, "HostName" | "ArmName" | "WorkloadName").then(|| format!("name-{number}").into())
}

/// The words with which each kind of warning begins in a report.
fn titles() -> BTreeSet<String> {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<Warning>().to_value();
    let title = |example: &Value| {
        let warning: Warning =
            serde_json::from_value(example.clone()).unwrap_or_else(|error| panic!("{error} in {example}"));
        let words = warning.to_string();
        let (title, _) = words.split_once(": ").unwrap_or_else(|| panic!("no title: {words}"));
        // Two warnings name their host before the colon.
        title.split_once(" on host ").map_or(title, |(title, _)| title).to_owned()
    };
    examples(&schema, &hint).iter().map(title).collect()
}

/// The first column of the table.
fn rows() -> BTreeSet<String> {
    let page = std::fs::read_to_string(project_file("docs/methodology.md")).expect("the page is there");
    let (_, rest) = page.split_once("| warning | condition |\n|---|---|\n").expect("the page has the table");
    let names = rest.lines().map_while(|line| line.strip_prefix("| `")?.split_once("` |"));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn every_warning_has_a_row_in_the_methodology() {
    let (titles, rows) = (titles(), rows());
    let missing: Vec<&String> = titles.difference(&rows).collect();
    let unknown: Vec<&String> = rows.difference(&titles).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "the warnings of docs/methodology.md lack {missing:?}, and {unknown:?} are no warnings"
    );
}
