//! The committed schemas in docs/schema are those of the code, and a version of a document never loses what a script may rely on.
use netduel_report::json::schema::DOCUMENTS;
use serde_json::{Value, json};

use super::{is_blessed, project_file};

/// What of `old` is gone or another in `new`, by path. New keys and new words of a list of choices are no difference.
fn lost(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(old, new, "", &mut found);
    found
}

fn compare(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        if old != new {
            found.push(format!("{path}: {old} became {new}"));
        }
        return;
    };
    for (key, value) in before {
        let here = format!("{path}/{key}");
        match (key.as_str(), after.get(key)) {
            // Words for people.
            ("description" | "title" | "$schema", _) if !path.ends_with("/properties") => {}
            (_, None) => found.push(format!("{here} is gone")),
            ("required" | "enum" | "oneOf" | "anyOf" | "type", Some(next)) => {
                compare_sets(value, next, &here, found);
            }
            (_, Some(next)) => compare(value, next, &here, found),
        }
    }
}

/// Each member must have its like; of two members with a `const` it is the one with the same.
fn compare_sets(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
    let (Some(before), Some(after)) = (old.as_array(), new.as_array()) else {
        return compare(old, new, path, found);
    };
    for member in before {
        let is_like = |next: &&Value| lost(member, next).is_empty();
        if !after.iter().any(|next| is_like(&next)) {
            found.push(format!("{path}: {} is gone or another", short(member)));
        }
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    text.chars().take(200).collect()
}

#[test]
fn committed_schemas_are_current_and_no_version_lost_a_key() {
    for kind in DOCUMENTS {
        let name = format!("docs/schema/{}", kind.file_name());
        let path = project_file(&name);
        let new = kind.schema();
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let old: Value = serde_json::from_str(&committed).unwrap_or(Value::Null);
        let next = kind.released + 1;
        assert!(
            kind.version <= next,
            "{}: version {next} is the next one that a release can have",
            kind.name
        );
        let is_same_version = old["properties"]["version"] == new["properties"]["version"];
        let is_released = kind.version <= kind.released;
        let lost = if is_same_version && is_released { lost(&old, &new) } else { Vec::new() };
        assert!(
            lost.is_empty(),
            "version {} of {} changed what scripts may rely on:\n  {}\nEither keep it, or raise VERSION of the document, tell in the \
             comment beside it what changed, add a line to CHANGELOG.md, and run `cargo xtask bless`.",
            kind.version,
            kind.name,
            lost.join("\n  ")
        );
        let text = serde_json::to_string_pretty(&new).unwrap() + "\n";
        if is_blessed() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            assert!(committed == text, "{name} is not current: run `cargo xtask bless` and commit it");
        }
    }
}

#[test]
fn folder_of_schemas_holds_those_of_the_documents_only() {
    let files = std::fs::read_dir(project_file("docs/schema")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(DOCUMENTS.iter().any(|kind| kind.file_name() == name), "{name} is the schema of no document");
    }
}

/// The keys of all objects of a schema. A map has keys that are no fixed words; only a document that netduel itself reads again may have one.
fn keys(schema: &Value, has_maps: bool, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                assert!(has_maps || name != "additionalProperties" || *member == false, "a map: {schema}");
                if name == "properties" {
                    found.extend(member.as_object().unwrap().keys().cloned());
                    member.as_object().unwrap().values().for_each(|property| keys(property, has_maps, found));
                } else {
                    keys(member, has_maps, found);
                }
            }
        }
        Value::Array(members) => members.iter().for_each(|member| keys(member, has_maps, found)),
        _ => {}
    }
}

#[test]
fn keys_are_fixed_words_with_one_unit_of_time_and_of_fractions() {
    for kind in DOCUMENTS {
        let mut found = Vec::new();
        keys(&kind.schema(), kind.name == "netduel.baseline", &mut found);
        for key in found {
            let is_word =
                key.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
            let has_other_unit = ["_us", "_s", "_ms", "_percent", "_ns_by_trial", "_mbps"]
                .into_iter()
                .any(|end| key.ends_with(end) && !key.ends_with("_unix_ms"));
            assert!(is_word && !has_other_unit, "{}: {key}", kind.name);
        }
    }
}

#[test]
fn renamed_key_changed_unit_and_changed_type_are_found_and_additions_are_not() {
    let old = json!({
        "properties": {
            "rate_bps": { "description": "Rate.", "type": ["number", "null"] },
            "state": { "oneOf": [{ "const": "done", "description": "a" }, { "const": "failed" }] },
        },
        "required": ["rate_bps", "state"],
    });
    let changed = |change: fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        lost(&old, &new)
    };
    assert!(changed(|_| ()).is_empty());
    assert!(changed(|new| new["properties"]["rate_bps"]["description"] = "The rate.".into()).is_empty());
    assert!(changed(|new| new["properties"]["more"] = json!({ "type": "string" })).is_empty());
    let added = changed(|new| {
        new["properties"]["state"]["oneOf"].as_array_mut().unwrap().push(json!({ "const": "new" }));
    });
    assert!(added.is_empty(), "{added:?}");
    let renamed = changed(|new| {
        let rate = new["properties"].as_object_mut().unwrap().remove("rate_bps").unwrap();
        new["properties"]["rate_mbps"] = rate;
    });
    assert_eq!(renamed, ["/properties/rate_bps is gone"]);
    assert!(!changed(|new| new["properties"]["rate_bps"]["type"] = "string".into()).is_empty());
    assert!(!changed(|new| new["required"] = json!(["state"])).is_empty());
    let gone = changed(|new| {
        new["properties"]["state"]["oneOf"].as_array_mut().unwrap().remove(0);
    });
    assert_eq!(gone.len(), 1, "{gone:?}");
}
