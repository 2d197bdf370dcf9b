//! The reference page of a schema: a section with a table for each definition, in order of first use.
use std::collections::BTreeSet;

use serde_json::Value;

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
    let branches = ["oneOf", "anyOf"].into_iter().find_map(|keyword| definition[keyword].as_array());
    let is_word = |branch: &Value| branch.get("const").is_some() || branch.get("enum").is_some();
    let (head, rows): (&str, String) = match branches {
        Some(branches) if branches.iter().all(is_word) => {
            let row = |branch| format!("| {} | {} |\n", words(branch), cell(&description(branch)));
            ("| word | meaning |\n|---|---|\n", branches.iter().map(row).collect())
        }
        Some(branches) => (
            "| variant | key | type | meaning |\n|---|---|---|---|\n",
            branches.iter().map(variant).collect(),
        ),
        None if definition.get("properties").is_some() => {
            ("| key | type | meaning |\n|---|---|---|\n", rows(definition, "", ""))
        }
        None => ("", format!("Type: {}.\n", kind(definition))),
    };
    format!("\n### {name}\n\n{before}{head}{rows}")
}

/// The rows of one of several alternatives.
fn variant(branch: &Value) -> String {
    let properties = branch["properties"].as_object();
    let tag = properties
        .into_iter()
        .flatten()
        .find_map(|(key, value)| Some((key.as_str(), value["const"].as_str()?)));
    let title = match tag {
        Some((key, word)) => format!("`\"{key}\": \"{word}\"`"),
        None => properties
            .and_then(|keys| keys.keys().next())
            .map_or_else(|| kind(branch), |key| format!("`{key}`")),
    };
    let fields =
        branch["$ref"].as_str().map_or_else(String::new, |_| format!(" With the keys of {}.", kind(branch)));
    let head = format!("| {title} | | | {}{fields} |\n", cell(&description(branch)));
    head + &rows(branch, "| ", tag.map_or("", |(key, _)| key))
}

/// The rows of the keys of an object, without its tag.
fn rows(object: &Value, before: &str, tag: &str) -> String {
    let required = object["required"].as_array();
    let properties = object["properties"].as_object().into_iter().flatten();
    let row = |(key, property): (&String, &Value)| {
        let is_required = required.into_iter().flatten().any(|required| required == key);
        let optional = if is_required { "" } else { ", may be absent" };
        format!("{before}| `{key}` | {}{optional} | {} |\n", kind(property), cell(&description(property)))
    };
    properties.filter(|(key, _)| *key != tag).map(row).collect()
}

fn words(branch: &Value) -> String {
    let listed = branch["enum"].as_array().cloned().unwrap_or_else(|| vec![branch["const"].clone()]);
    listed.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The kind of a value, in words.
fn kind(value: &Value) -> String {
    if let Some(name) = value["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if value.get("const").is_some() || value.get("enum").is_some() {
        return words(value);
    }
    if let Some(branches) = ["oneOf", "anyOf"].into_iter().find_map(|keyword| value[keyword].as_array()) {
        return branches.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &value["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .map(|of| typed(value, of.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" or "),
        of => typed(value, of.as_str().unwrap_or_default()),
    }
}

fn typed(value: &Value, of: &str) -> String {
    match of {
        "array" => match value["prefixItems"].as_array() {
            Some(items) => format!("[{}]", items.iter().map(kind).collect::<Vec<_>>().join(", ")),
            None => format!("list of {}", kind(&value["items"])),
        },
        "object" => match &value["additionalProperties"] {
            of @ Value::Object(_) => format!("map to {}", kind(of)),
            _ => "object".to_owned(),
        },
        "string" => match value["examples"][0].as_str() {
            Some(example) => format!("string such as `{example}`"),
            None => "string".to_owned(),
        },
        other => other.to_owned(),
    }
}

fn description(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
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
