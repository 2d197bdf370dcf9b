//! Cores as a plan writes them.
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use toml::de::DeValue;

use super::problem::Problems;
use super::tuning::core_in_range;
use super::value::{Raw, Value, found};
use crate::workload::setting::CORES;

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

/// One core of a list.
struct Core(u16);

impl Value for Core {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        let number = match raw.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let core = number.and_then(core_in_range);
        if core.is_none() {
            let allowed = format!("a whole number from {} is needed, without quotes", CORES.words());
            problems.add(path, found(raw), allowed);
        }
        core.map(Self)
    }
}

impl Value for CoresSpec {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        match raw.get_ref() {
            DeValue::String(text) if text == AUTO => Some(Self::Auto),
            DeValue::Array(_) => {
                let cores = Vec::<Core>::read(raw, path, problems)?;
                Some(Self::List(cores.into_iter().map(|Core(core)| core).collect()))
            }
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
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let core = json_schema!({
            "type": "integer",
            "format": "uint16",
            "minimum": CORES.least,
            "maximum": CORES.most,
        });
        let list = json_schema!({ "type": "array", "items": core });
        json_schema!({ "anyOf": [list, { "type": "string", "const": AUTO }] })
    }
}
