//! The parts that the Markdown pages about schemas share: tables, and the kind of a value in words. The pages differ in their terms:
//! the author of a plan writes tables and text, a reader of JSON gets objects and strings.
use serde_json::Value;

/// The terms of a page.
pub trait Terms {
    /// A value that the definition at this path of a schema describes, for example `#/$defs/Run`.
    fn definition(&self, path: &str) -> String;

    /// A value of this JSON type, for example `array`.
    fn typed(&self, value: &Value, of: &str) -> String;
}

/// The kind of a value, in the terms of a page.
pub fn kind(value: &Value, terms: &impl Terms) -> String {
    if let Some(path) = value["$ref"].as_str() {
        return terms.definition(path);
    }
    if let Some(words) = words(value) {
        return words;
    }
    let any_of = |kinds: Vec<String>| kinds.join(" or ");
    if let Some(branches) = branches(value) {
        return any_of(branches.iter().map(|branch| kind(branch, terms)).collect());
    }
    let typed = |of: &Value| terms.typed(value, of.as_str().unwrap_or_default());
    match &value["type"] {
        Value::Array(kinds) => any_of(kinds.iter().map(typed).collect()),
        of => typed(of),
    }
}

/// The alternatives of a value.
pub fn branches(value: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"].into_iter().find_map(|keyword| value[keyword].as_array())
}

/// The words of a value that has no other ones, as JSON: `"a"`, `"b"`.
pub fn words(value: &Value) -> Option<String> {
    let listed = match (value["enum"].as_array(), value.get("const")) {
        (Some(words), _) => words.clone(),
        (None, Some(word)) => vec![word.clone()],
        (None, None) => {
            let described = branches(value)?.iter().map(words);
            return described.collect::<Option<Vec<String>>>().map(|words| words.join(", "));
        }
    };
    Some(listed.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
}

/// The description of a value on one line; empty without one.
pub fn description(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A table. A cell is one line, so line breaks become `<br>`.
pub fn table(titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = titles.iter().map(|title| (*title).to_owned()).collect();
    let cell = |text: &String| text.replace('|', "\\|").replace('\n', "<br>");
    let rows = rows.into_iter().map(|row| line(&row.iter().map(cell).collect::<Vec<_>>()));
    let rows: String = rows.collect();
    format!("{}|{}\n{rows}", line(&titles), "---|".repeat(titles.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Names everything as the schema does.
    struct Plain;

    impl Terms for Plain {
        fn definition(&self, path: &str) -> String {
            path.to_owned()
        }

        fn typed(&self, value: &Value, of: &str) -> String {
            if of == "array" { format!("list of {}", kind(&value["items"], self)) } else { of.to_owned() }
        }
    }

    #[test]
    fn kinds_are_those_of_references_choices_words_and_types() {
        for (value, words) in [
            (json!({ "$ref": "#/$defs/Run" }), "#/$defs/Run"),
            (json!({ "anyOf": [{ "$ref": "#/$defs/Run" }, { "type": "null" }] }), "#/$defs/Run or null"),
            (json!({ "type": ["integer", "null"] }), "integer or null"),
            (json!({ "type": "array", "items": { "type": "string" } }), "list of string"),
            (json!({ "type": "string", "enum": ["a", "b"] }), "`\"a\"`, `\"b\"`"),
            (json!({ "const": 1 }), "`1`"),
            (json!({ "oneOf": [{ "const": "a" }, { "enum": ["b", "c"] }] }), "`\"a\"`, `\"b\"`, `\"c\"`"),
        ] {
            assert_eq!(kind(&value, &Plain), words, "{value}");
        }
    }

    #[test]
    fn row_of_a_table_is_one_line_whatever_its_cells_contain() {
        let rows = [vec!["`a`".to_owned(), "one\nor | two".to_owned()]];
        assert_eq!(
            table(&["key", "meaning"], rows),
            "| key | meaning |\n|---|---|\n| `a` | one<br>or \\| two |\n"
        );
        assert_eq!(description(&json!({ "description": "one\n  or two" })), "one or two");
    }
}
