//! Coverage of a schema by a set of documents, and validity of the documents.
use std::collections::BTreeSet;

use serde_json::Value;

use crate::node::{Node, Shape};

/// The places of a schema that no document contains: keys, words, alternatives, elements of lists and maps.
pub fn uncovered(schema: &Value, documents: &[Value]) -> Vec<String> {
    let root = Node::root(schema);
    let mut all = BTreeSet::new();
    places(&root, &mut all);
    let mut covered = BTreeSet::new();
    for document in documents {
        cover(&root, document, &mut covered);
    }
    all.difference(&covered).cloned().collect()
}

/// Positions at which a document does not match the schema, including unknown keys.
pub fn violations(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(&Node::root(schema), document, &mut found);
    found
}

/// All places at and below a node.
fn places(node: &Node<'_>, all: &mut BTreeSet<String>) {
    if !all.insert(node.name.clone()) {
        return;
    }
    for below in below(node) {
        places(&below, all);
    }
}

fn below<'s>(node: &Node<'s>) -> Vec<Node<'s>> {
    match node.shape() {
        Shape::OneOf(nodes) | Shape::Tuple(nodes) => nodes,
        Shape::Map(node) | Shape::List(node) => vec![node],
        Shape::Object(properties) => properties.into_iter().map(|property| property.node).collect(),
        Shape::Constant(_) | Shape::Scalar(_) => Vec::new(),
    }
}

fn cover(node: &Node<'_>, value: &Value, covered: &mut BTreeSet<String>) {
    covered.insert(node.name.clone());
    match (node.shape(), value) {
        (Shape::OneOf(nodes), value) => {
            for node in nodes.iter().filter(|node| fits(node, value)) {
                cover(node, value, covered);
            }
        }
        (Shape::Tuple(nodes), Value::Array(values)) => {
            for (node, value) in nodes.iter().zip(values) {
                cover(node, value, covered);
            }
        }
        (Shape::List(node), Value::Array(values)) => {
            for value in values {
                cover(&node, value, covered);
            }
        }
        (Shape::Map(node), Value::Object(fields)) => {
            for value in fields.values() {
                cover(&node, value, covered);
            }
        }
        (Shape::Object(properties), Value::Object(fields)) => {
            for property in &properties {
                if let Some(value) = fields.get(property.key) {
                    cover(&property.node, value, covered);
                }
            }
        }
        _ => {}
    }
}

fn fits(node: &Node<'_>, value: &Value) -> bool {
    let mut found = Vec::new();
    check(node, value, &mut found);
    found.is_empty()
}

fn check(node: &Node<'_>, value: &Value, found: &mut Vec<String>) {
    let mut wrong = |what: String| found.push(format!("{}: {what}", node.name));
    match (node.shape(), value) {
        (Shape::OneOf(nodes), value) => {
            if !nodes.iter().any(|node| fits(node, value)) {
                wrong(format!("{value} fits no alternative"));
            }
        }
        (Shape::Constant(constant), value) => {
            if constant != value {
                wrong(format!("{value} is not {constant}"));
            }
        }
        (Shape::Tuple(nodes), Value::Array(values)) if nodes.len() == values.len() => {
            for (node, value) in nodes.iter().zip(values) {
                check(node, value, found);
            }
        }
        (Shape::List(node), Value::Array(values)) => {
            for value in values {
                check(&node, value, found);
            }
        }
        (Shape::Map(node), Value::Object(fields)) => {
            for value in fields.values() {
                check(&node, value, found);
            }
        }
        (Shape::Object(properties), Value::Object(fields)) => {
            for key in fields.keys().filter(|key| properties.iter().all(|property| property.key != **key)) {
                wrong(format!("`{key}` is no key of it"));
            }
            for property in &properties {
                match fields.get(property.key) {
                    Some(value) => check(&property.node, value, found),
                    None if property.is_required => {
                        found.push(format!("{}: `{}` is missing", node.name, property.key));
                    }
                    None => {}
                }
            }
        }
        (Shape::Scalar(kind), value) => {
            let fits = match kind {
                "string" => value.is_string(),
                "integer" => value.is_u64() || value.is_i64(),
                "number" => value.is_number(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                other => panic!("{} has the unknown type {other}", node.name),
            };
            if !fits {
                wrong(format!("{value} is no {kind}"));
            }
        }
        (_, value) => wrong(format!("{value} is of another kind")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "kind": { "$ref": "#/$defs/Kind" },
                "count": { "type": ["integer", "null"] },
                "absent": { "type": ["boolean", "null"] },
                "list": { "type": "array", "items": { "$ref": "#/$defs/Tagged" } },
            },
            "required": ["kind", "count"],
            "$defs": {
                "Kind": { "enum": ["a", "b"] },
                "Fields": { "type": "object", "properties": { "x": { "type": "boolean" } }, "required": ["x"] },
                "Tagged": {
                    "oneOf": [
                        {
                            "type": "object",
                            "properties": { "type": { "const": "plain" } },
                            "required": ["type"],
                        },
                        {
                            "type": "object",
                            "properties": { "type": { "const": "with" } },
                            "required": ["type"],
                            "$ref": "#/$defs/Fields",
                        },
                    ],
                },
            },
        })
    }

    #[test]
    fn places_that_no_document_has_are_named() {
        let documents = [
            json!({ "kind": "a", "count": 1 }),
            json!({ "kind": "a", "count": 2, "list": [{ "type": "plain" }] }),
        ];
        let missing = uncovered(&schema(), &documents);
        assert_eq!(
            missing,
            [
                ".absent",
                ".absent:boolean",
                ".count:null",
                "Kind=\"b\"",
                "Tagged[type=with]",
                "Tagged[type=with].type",
                "Tagged[type=with].x"
            ]
        );
        let whole =
            [json!({ "kind": "b", "count": null, "absent": true, "list": [{ "type": "with", "x": true }] })];
        assert_eq!(uncovered(&schema(), &[&documents[..], &whole[..]].concat()), [""; 0]);
    }

    #[test]
    fn documents_that_do_not_fit_are_refused_with_the_place() {
        for (document, part) in [
            (json!({ "kind": "c", "count": 1 }), "Kind: \"c\" fits no alternative"),
            (json!({ "count": 1 }), "`kind` is missing"),
            (json!({ "kind": "a", "count": 1, "absent": null }), ".absent: null fits no alternative"),
            (json!({ "kind": "a", "more": 1 }), "`more` is no key of it"),
            (
                json!({ "kind": "a", "list": [{ "type": "with" }] }),
                "Tagged: {\"type\":\"with\"} fits no alternative",
            ),
            (json!({ "kind": "a", "list": 3 }), ".list: 3 is of another kind"),
        ] {
            let found = violations(&schema(), &document);
            assert!(found.iter().any(|line| line.contains(part)), "{document}: {found:?}");
        }
    }

    #[test]
    fn examples_cover_everything_and_fit() {
        let documents = crate::examples(&schema(), &|_, _| None);
        assert_eq!(uncovered(&schema(), &documents), [""; 0], "{documents:?}");
        for document in documents {
            assert_eq!(violations(&schema(), &document), [""; 0], "{document}");
        }
    }
}
