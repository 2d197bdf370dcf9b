//! The tables of docs/json.md are generated from the schemas, and the committed page is current.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use netduel_formats::markdown::{Terms, description, kind, table, words};
use netduel_report::json::schema::DOCUMENTS;
use serde_json::Value;

use super::{is_blessed, project_file};

const PAGE: &str = "docs/json.md";
const BEGIN: &str = "<!-- begin: generated from the schemas -->\n";
const END: &str = "<!-- end: generated from the schemas -->";
/// The keys of every document, which the page describes once.
const ENVELOPE: [&str; 5] = ["document", "version", "program_version", "created", "created_unix_ms"];

#[test]
fn reference_page_is_current() {
    let path = project_file(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the tables");
    let (_, after) = rest.split_once(END).expect("the place has an end");
    let current = format!("{before}{BEGIN}{}{END}{after}", tables());
    if is_blessed() {
        std::fs::write(&path, current).unwrap();
    } else {
        assert!(page == current, "{PAGE} is not current: run `cargo xtask bless` and commit it");
    }
}

/// A section for each document, and then one for each part that documents have.
fn tables() -> String {
    let mut text = String::from("\n### Documents\n");
    let mut parts: BTreeMap<String, Value> = BTreeMap::new();
    for kind in DOCUMENTS {
        let schema = kind.schema();
        let description = schema["description"].as_str().expect("every document is described");
        let (name, version, file) = (kind.name, kind.version, kind.file_name());
        let _ =
            write!(text, "\n#### `{name}`\n\n{description}\n\nVersion {version}, [schema](schema/{file}).\n");
        text.push_str(&rows(&schema, &ENVELOPE));
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            let known = parts.insert(name.clone(), part.clone());
            assert!(known.is_none_or(|known| known == *part), "two parts are called {name}");
        }
    }
    text.push_str("\n### Parts\n");
    for (name, part) in &parts {
        let description = part["description"].as_str().unwrap_or_else(|| panic!("{name} is not described"));
        let _ = write!(text, "\n#### {name}\n\n{description}\n");
        text.push_str(&rows(part, &[]));
    }
    text + "\n"
}

/// The table of an object, of each of its variants, or of a list of words.
fn rows(schema: &Value, excluded: &[&str]) -> String {
    let mut text = String::new();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let shown: Vec<(&String, &Value)> =
        properties.filter(|(key, _)| !excluded.contains(&key.as_str())).collect();
    if !shown.is_empty() {
        let row = |(key, property): (&String, &Value)| {
            let meaning = description(property);
            assert!(!meaning.is_empty(), "{key} is not described");
            vec![format!("`{key}`"), kind(property, &Links), unit(key).to_owned(), meaning]
        };
        text.push('\n');
        text.push_str(&table(&["key", "type", "unit", "meaning"], shown.into_iter().map(row)));
    }
    if let Some(words) = schema.get("enum").and_then(|_| words(schema)) {
        let _ = write!(text, "\nOne of {words}.\n");
    }
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let (listed, objects): (Vec<&Value>, Vec<&Value>) =
        variants.partition(|one| one.get("properties").is_none());
    if !listed.is_empty() {
        let row =
            |word: &Value| vec![words(word).expect("a variant without keys is a word"), description(word)];
        text.push('\n');
        text.push_str(&table(&["value", "meaning"], listed.into_iter().map(row)));
    }
    for object in objects {
        let tag = object["properties"]
            .as_object()
            .unwrap()
            .iter()
            .find_map(|(key, property)| Some((key.clone(), property["const"].as_str()?.to_owned())));
        let (key, value) = tag.expect("a variant has a tag");
        let _ = write!(text, "\n`{key}`: `{value}`. {}\n", description(object));
        text.push_str(&rows(object, &[&key]));
    }
    text
}

/// The terms of the page: JSON's, with links to the parts.
struct Links;

impl Terms for Links {
    fn definition(&self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        format!("[{name}](#{})", name.to_lowercase())
    }

    fn typed(&self, value: &Value, of: &str) -> String {
        match of {
            "array" => format!("list of {}", kind(&value["items"], self)),
            "integer" | "number" | "string" | "boolean" | "null" | "object" => of.to_owned(),
            "" => "any value".to_owned(),
            other => panic!("{other} has no words yet"),
        }
    }
}

/// The unit that a key ends with.
fn unit(key: &str) -> &'static str {
    let units = [
        ("_unix_ms", "ms"),
        ("_ns", "ns"),
        ("_s", "s"),
        ("_bps", "bit/s"),
        ("_pps", "packets/s"),
        ("_hz", "Hz"),
        ("_percent", "%"),
        ("_ratio", "fraction"),
        ("bytes", "bytes"),
    ];
    units.into_iter().find(|(end, _)| key.ends_with(end)).map_or("", |(_, unit)| unit)
}
