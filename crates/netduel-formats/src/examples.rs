//! Generates documents that together contain every place of a schema. The result depends on the schema only. All numbers differ,
//! so a reader that exchanges two fields is detected.
use serde_json::{Map, Value};

use crate::node::{Node, Shape};

/// A text for a place with a format that the schema does not contain, from the name of the place and a unique number.
pub type Hint<'h> = &'h dyn Fn(&str, u64) -> Option<Value>;

/// Generates documents that cover a schema. `hint` provides texts for readers with stricter checks than the schema.
pub fn examples(schema: &Value, hint: Hint<'_>) -> Vec<Value> {
    Maker { hint, number: 0 }.all(&Node::root(schema))
}

struct Maker<'h> {
    hint: Hint<'h>,
    number: u64,
}

impl Maker<'_> {
    /// Values that cover all places at and below a node.
    fn all(&mut self, node: &Node<'_>) -> Vec<Value> {
        match node.shape() {
            Shape::OneOf(nodes) => nodes.iter().flat_map(|node| self.all(node)).collect(),
            Shape::Constant(constant) => vec![constant.clone()],
            Shape::List(of) => {
                let mut values = self.all(&of);
                let least = node.keyword("minItems").and_then(Value::as_u64).unwrap_or_default();
                while (values.len() as u64) < least {
                    values.push(self.least(&of));
                }
                vec![values.into()]
            }
            Shape::Map(of) => {
                let values = self.all(&of);
                let keyed = values.into_iter().map(|value| (self.key(node), value));
                vec![Value::Object(keyed.collect())]
            }
            Shape::Tuple(nodes) => {
                let columns: Vec<Vec<Value>> = nodes.iter().map(|node| self.all(node)).collect();
                let rows = columns.iter().map(Vec::len).max().unwrap_or_default();
                let cell = |column: &Vec<Value>, row: usize| column[row.min(column.len() - 1)].clone();
                (0..rows).map(|row| columns.iter().map(|column| cell(column, row)).collect()).collect()
            }
            Shape::Object(properties) => {
                let columns: Vec<Vec<Value>> =
                    properties.iter().map(|property| self.all(&property.node)).collect();
                let rows = columns.iter().map(Vec::len).max().unwrap_or(1).max(1);
                let mut objects = Vec::new();
                for row in 0..rows {
                    let mut object = Map::new();
                    for (property, column) in properties.iter().zip(&columns) {
                        let value = match column.get(row) {
                            Some(value) => Some(value.clone()),
                            None => property.is_required.then(|| self.least(&property.node)),
                        };
                        object.extend(value.map(|value| (property.key.to_owned(), value)));
                    }
                    objects.push(object.into());
                }
                objects
            }
            Shape::Scalar(kind) => vec![self.scalar(node, kind)],
        }
    }

    /// The shortest value.
    fn least(&mut self, node: &Node<'_>) -> Value {
        match node.shape() {
            Shape::OneOf(nodes) => {
                self.least(nodes.iter().find(|node| node.name.ends_with(":null")).unwrap_or(&nodes[0]))
            }
            Shape::List(of) => {
                let least = node.keyword("minItems").and_then(Value::as_u64).unwrap_or_default();
                (0..least).map(|_| self.least(&of)).collect()
            }
            Shape::Map(_) => Map::new().into(),
            Shape::Tuple(nodes) => nodes.iter().map(|node| self.least(node)).collect(),
            Shape::Object(properties) => {
                let required = properties.iter().filter(|property| property.is_required);
                Value::Object(
                    required.map(|property| (property.key.to_owned(), self.least(&property.node))).collect(),
                )
            }
            Shape::Constant(constant) => constant.clone(),
            Shape::Scalar(kind) => self.scalar(node, kind),
        }
    }

    fn key(&mut self, node: &Node<'_>) -> String {
        self.number += 1;
        let hinted = (self.hint)(&format!("{}{{}}", node.name), self.number);
        hinted
            .and_then(|key| key.as_str().map(str::to_owned))
            .unwrap_or_else(|| format!("key-{}", self.number))
    }

    fn scalar(&mut self, node: &Node<'_>, kind: &str) -> Value {
        self.number += 1;
        if let Some(hinted) = (self.hint)(&node.name, self.number) {
            return hinted;
        }
        let word = |keyword: &str| node.keyword(keyword).and_then(Value::as_str);
        match kind {
            "null" => Value::Null,
            "boolean" => true.into(),
            "number" => (self.number as f64 + 0.5).into(),
            "integer" => match word("format") {
                Some("uint8") => (self.number % 60 + 1).into(),
                Some("uint16") => (self.number % 60_000 + 1).into(),
                _ => self.number.into(),
            },
            "string" => match (word("format"), node.keyword("examples").and_then(|examples| examples.get(0)))
            {
                (_, Some(example)) => example.clone(),
                (Some("ip"), _) => format!("192.0.2.{}", self.number % 250 + 1).into(),
                _ => format!("text {}", self.number).into(),
            },
            other => panic!("{} has the unknown type {other}", node.name),
        }
    }
}
