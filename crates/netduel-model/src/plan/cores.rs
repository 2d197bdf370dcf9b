//! Cores as a plan writes them.
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use toml::de::DeValue;

use super::problem::Problems;
use super::value::{Raw, Value, found};

/// The word of [`CoresSpec::Auto`].
const AUTO: &str = "auto";

/// Cores as they are written: a list, or the word `auto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoresSpec {
    /// The end chooses.
    Auto,
    /// These, in order.
    List(Vec<u16>),
}

impl CoresSpec {
    /// The cores that are named; none of `auto`.
    pub fn list(&self) -> Vec<u16> {
        match self {
            Self::Auto => Vec::new(),
            Self::List(cores) => cores.clone(),
        }
    }
}

impl Value for CoresSpec {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        match raw.get_ref() {
            DeValue::String(text) if text == AUTO => Some(Self::Auto),
            DeValue::Array(_) => Vec::read(raw, path, problems).map(Self::List),
            _ => {
                problems.add(path, found(raw), "a list of cores, for example [0, 2], or \"auto\" is needed");
                None
            }
        }
    }
}

impl Serialize for CoresSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(AUTO),
            Self::List(cores) => cores.serialize(serializer),
        }
    }
}

impl JsonSchema for CoresSpec {
    fn schema_name() -> Cow<'static, str> {
        "CoresSpec".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<u16>>();
        json_schema!({ "anyOf": [list, { "type": "string", "const": AUTO }] })
    }
}
