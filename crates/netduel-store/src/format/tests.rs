//! The golden files of the current format contain every place of its schema, and the schema has not changed without a new version.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netduel_formats::{examples, fingerprint, reference, uncovered, violations};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::{Store, checksum};

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Defaults that the writer omits.
const NEVER_WRITTEN: [&str; 1] = ["UdpOffload=none"];
const BEGIN: &str = "<!-- begin: generated from the schema -->\n";
const END: &str = "<!-- end: generated from the schema -->";

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Texts that readers check further than the schema says.
fn hint(place: &str, number: u64) -> Option<Value> {
    Some(match place {
        "HostName" | "ArmName" | "WorkloadName" | "RunId" => format!("name-{number}").into(),
        "StreamReport.local:string" | "StreamReport.peer:string" => format!("192.0.2.1:{number}").into(),
        "FirstLine.netduel" => KIND.into(),
        "FirstLine.format" | "Record[resumed].resumed.format:integer" => FORMAT.into(),
        _ => return None,
    })
}

/// Reads an example into its type and writes it as the product does.
fn rewritten<T: DeserializeOwned + Serialize>(example: &Value) -> String {
    let read: T =
        serde_json::from_value(example.clone()).unwrap_or_else(|error| panic!("{error} in {example}"));
    let mut line = serde_json::to_vec(&read).expect("a record is JSON");
    checksum::add(&mut line);
    String::from_utf8(line).expect("JSON is UTF-8")
}

/// The golden files of the current format by their names: one for each example of a first line, and all records in the first.
fn generated() -> BTreeMap<String, String> {
    let documents = examples(&schema(), &hint);
    let (heads, records): (Vec<&Value>, Vec<&Value>) =
        documents.iter().partition(|document| document.get("netduel").is_some());
    let mut files = BTreeMap::new();
    for (index, head) in heads.into_iter().enumerate() {
        let mut lines = vec![rewritten::<FirstLine<'_>>(head)];
        if index == 0 {
            lines.extend(records.iter().map(|record| rewritten::<Record<'_>>(record)));
        }
        files.insert(format!("format-{FORMAT}-{}.netduel", index + 1), lines.join("\n") + "\n");
    }
    files
}

/// The golden files of the current format as they are committed.
fn committed() -> BTreeMap<String, String> {
    let prefix = format!("format-{FORMAT}-");
    let entries = std::fs::read_dir(golden_folder()).expect("the folder is there").flatten();
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let own = named.filter(|(name, _)| name.starts_with(&prefix));
    own.map(|(name, path)| (name, std::fs::read_to_string(path).expect("it can be read"))).collect()
}

fn lines(files: &BTreeMap<String, String>) -> Vec<Value> {
    files
        .values()
        .flat_map(|text| text.lines())
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn is_blessed() -> bool {
    std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1")
}

#[test]
fn golden_files_are_what_the_writer_writes() {
    let generated = generated();
    if is_blessed() && FORMAT > FORMAT_RELEASED {
        for name in committed().keys().filter(|name| !generated.contains_key(*name)) {
            std::fs::remove_file(golden_folder().join(name)).expect("it can be removed");
        }
        for (name, text) in &generated {
            std::fs::write(golden_folder().join(name), text).expect("it can be written");
        }
    }
    let committed = committed();
    assert_eq!(generated.keys().collect::<Vec<_>>(), committed.keys().collect::<Vec<_>>());
    for (name, text) in &generated {
        for (index, (now, then)) in text.lines().zip(committed[name].lines()).enumerate() {
            assert_eq!(now, then, "line {} of {name} changed: {}", index + 1, remedy());
        }
        assert_eq!(*text, committed[name], "{name}");
    }
}

#[test]
fn golden_files_contain_every_place_of_the_schema() {
    let mut missing = uncovered(&schema_of_lines(), &lines(&committed()));
    missing.retain(|place| !NEVER_WRITTEN.contains(&place.as_str()));
    assert!(missing.is_empty(), "no golden file of format {FORMAT} contains {missing:#?}: {}", remedy());
}

#[test]
fn golden_files_fit_the_schema() {
    let schema = schema_of_lines();
    for line in lines(&committed()) {
        assert_eq!(violations(&schema, &line), [""; 0], "{line}");
    }
}

#[test]
fn golden_files_are_read_as_runs() {
    let store = Store::open(golden_folder()).expect("the folder is there");
    for (name, text) in committed() {
        let path = golden_folder().join(&name);
        let (run, torn) = store.read_with_note(path.to_str().expect("a plain path")).expect("it can be read");
        let trials = text.lines().filter(|line| line.as_bytes().starts_with(TRIAL_PREFIX)).count();
        let found = store.verify(path.to_str().expect("a plain path")).expect("it can be read");
        // The trials of a generated file are of arms and blocks that its plan does not have.
        assert_eq!((run.trials.len() + found.foreign.len(), torn), (trials, None), "{name}");
        assert_eq!(found.damaged, [], "{name}");
    }
}

/// What to do when the types of the current format are not those of its files.
fn remedy() -> String {
    if FORMAT > FORMAT_RELEASED {
        format!(
            "format {FORMAT} is unreleased: run `cargo xtask bless`, look at the difference and commit it"
        )
    } else {
        format!(
            "format {FORMAT} is released and must not change: raise FORMAT, add a step to `upgrade`, and keep its golden files; \
             docs/design/0029-formats.md has the rules"
        )
    }
}

#[test]
fn changed_type_needs_a_new_version() {
    let found = fingerprint(&schema_of_lines());
    assert_eq!(
        found,
        FORMAT_FINGERPRINT,
        "the stored format changed: {}; FORMAT_FINGERPRINT of the types is \"{found}\"",
        remedy()
    );
}

#[test]
fn published_schema_and_its_reference_are_current() {
    let schema = schema();
    let page =
        std::fs::read_to_string(Path::new(PROJECT).join("docs/run-format.md")).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the tables");
    let (_, after) = rest.split_once(END).expect("the place has an end");
    let published = serde_json::to_string_pretty(&schema_of_lines()).expect("a schema is JSON") + "\n";
    for (name, text) in [
        ("docs/run-file.schema.json", published),
        ("docs/run-format.md", format!("{before}{BEGIN}{}\n{END}{after}", reference(&schema))),
    ] {
        let path = Path::new(PROJECT).join(name);
        if is_blessed() {
            std::fs::write(&path, &text).expect("it can be written");
        }
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(current == text, "{name} is not current: run `cargo xtask bless` and commit it");
    }
}
