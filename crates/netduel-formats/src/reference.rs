//! The reference page of a schema: a section with a table for each definition, in order of first use.
use std::collections::BTreeSet;

use serde_json::Value;

use crate::markdown::{Terms, branches, description, kind, table, words};

/// Sections in Markdown for every definition that the root refers to, directly or not.
pub fn reference(schema: &Value) -> String {
    let definitions = &schema["$defs"];
    let mut order = Vec::new();
    collect(schema, definitions, &mut order, &mut BTreeSet::new());
    order.iter().map(|name| section(name, &definitions[name])).collect()
}

/// The definitions below a value, breadth first.
fn collect(value: &Value, definitions: &Value, order: &mut Vec<String>, seen: &mut BTreeSet<String>) {
    let mut found = Vec::new();
    references(value, &mut found);
    let mut next = Vec::new();
    for name in found {
        if seen.insert(name.clone()) {
            order.push(name.clone());
            next.push(name);
        }
    }
    for name in next {
        collect(&definitions[&name], definitions, order, seen);
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found.extend(name.strip_prefix("#/$defs/").map(str::to_owned));
            }
            fields.iter().filter(|(key, _)| *key != "$defs").for_each(|(_, value)| references(value, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
        _ => {}
    }
}

fn section(name: &str, definition: &Value) -> String {
    let described = description(definition);
    let before = if described.is_empty() { String::new() } else { described + "\n\n" };
    let is_word = |branch: &Value| branch.get("const").is_some() || branch.get("enum").is_some();
    let body = match branches(definition) {
        Some(branches) if branches.iter().all(is_word) => {
            let row = |branch| vec![words(branch).unwrap_or_default(), description(branch)];
            table(&["word", "meaning"], branches.iter().map(row))
        }
        Some(branches) => table(&["variant", "key", "type", "meaning"], branches.iter().flat_map(variant)),
        None if definition.get("properties").is_some() => {
            table(&["key", "type", "meaning"], rows(definition, ""))
        }
        None => format!("Type: {}.\n", kind(definition, &Links)),
    };
    format!("\n### {name}\n\n{before}{body}")
}

/// The rows of one of several alternatives.
fn variant(branch: &Value) -> Vec<Vec<String>> {
    let properties = branch["properties"].as_object();
    let tag = properties
        .into_iter()
        .flatten()
        .find_map(|(key, value)| Some((key.as_str(), value["const"].as_str()?)));
    let title = match tag {
        Some((key, word)) => format!("`\"{key}\": \"{word}\"`"),
        None => properties
            .and_then(|keys| keys.keys().next())
            .map_or_else(|| kind(branch, &Links), |key| format!("`{key}`")),
    };
    let fields = branch["$ref"]
        .as_str()
        .map_or_else(String::new, |_| format!(" With the keys of {}.", kind(branch, &Links)));
    let head = vec![title, String::new(), String::new(), description(branch) + &fields];
    let keys = rows(branch, tag.map_or("", |(key, _)| key)).into_iter();
    [head].into_iter().chain(keys.map(|row| [vec![String::new()], row].concat())).collect()
}

/// The rows of the keys of an object, without its tag.
fn rows(object: &Value, tag: &str) -> Vec<Vec<String>> {
    let required = object["required"].as_array();
    let properties = object["properties"].as_object().into_iter().flatten();
    let row = |(key, property): (&String, &Value)| {
        let is_required = required.into_iter().flatten().any(|required| required == key);
        let optional = if is_required { "" } else { ", may be absent" };
        vec![format!("`{key}`"), kind(property, &Links) + optional, description(property)]
    };
    properties.filter(|(key, _)| *key != tag).map(row).collect()
}

/// The terms of the page: JSON's, with links to the sections of definitions.
struct Links;

impl Terms for Links {
    fn definition(&self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        format!("[{name}](#{})", name.to_lowercase())
    }

    fn typed(&self, value: &Value, of: &str) -> String {
        match of {
            "array" => match value["prefixItems"].as_array() {
                Some(items) => {
                    format!("[{}]", items.iter().map(|item| kind(item, self)).collect::<Vec<_>>().join(", "))
                }
                None => format!("list of {}", kind(&value["items"], self)),
            },
            "object" => match &value["additionalProperties"] {
                of @ Value::Object(_) => format!("map to {}", kind(of, self)),
                _ => "object".to_owned(),
            },
            "string" => match value["examples"][0].as_str() {
                Some(example) => format!("string such as `{example}`"),
                None => "string".to_owned(),
            },
            other => other.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_are_tables_in_the_order_of_their_references() {
        let schema = json!({
            "$ref": "#/$defs/Run",
            "$defs": {
                "Kind": { "oneOf": [{ "const": "a", "description": "The first." }] },
                "Run": {
                    "description": "A run.",
                    "properties": { "kind": { "$ref": "#/$defs/Kind", "description": "Which." }, "n": { "type": ["integer", "null"] } },
                    "required": ["kind"],
                },
            },
        });
        let text = reference(&schema);
        assert!(text.find("### Run") < text.find("### Kind"), "{text}");
        for row in [
            "| `kind` | [Kind](#kind) | Which. |",
            "| `n` | integer or null, may be absent |  |",
            "| `\"a\"` | The first. |",
        ] {
            assert!(text.contains(row), "{row} is missing in {text}");
        }
    }
}
