//! A fingerprint that changes when the allowed documents of a schema change, but not when its prose does.
use std::collections::BTreeMap;

use serde_json::Value;

/// Keywords with prose only.
const PROSE: [&str; 4] = ["description", "title", "examples", "$schema"];

/// The fingerprint of a schema, 16 hexadecimal digits (FNV-1a of 64 bits over its JSON with sorted keys).
pub fn fingerprint(schema: &Value) -> String {
    let text = plain(schema, false).to_string();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Removes prose. A property may have the name of a keyword.
fn plain(schema: &Value, are_names: bool) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| are_names || !PROSE.contains(&key.as_str()));
            let sorted: BTreeMap<&String, Value> = kept
                .map(|(key, value)| {
                    let names = !are_names && matches!(key.as_str(), "properties" | "$defs");
                    (key, plain(value, names))
                })
                .collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(elements) => elements.iter().map(|element| plain(element, false)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fingerprint_ignores_prose_and_nothing_else() {
        let schema =
            json!({ "title": "A", "properties": { "title": { "type": "string", "description": "x" } } });
        let reworded =
            json!({ "title": "B", "properties": { "title": { "type": "string", "description": "y" } } });
        let retyped =
            json!({ "title": "A", "properties": { "title": { "type": "integer", "description": "x" } } });
        let renamed =
            json!({ "title": "A", "properties": { "name": { "type": "string", "description": "x" } } });
        assert_eq!(fingerprint(&schema), fingerprint(&reworded));
        assert_ne!(fingerprint(&schema), fingerprint(&retyped));
        assert_ne!(fingerprint(&schema), fingerprint(&renamed));
    }
}
