//! The format of a run file: version, first line, records. A change here, or in a stored type of `netduel-model`, changes the format.
use std::borrow::Cow;

use netduel_model::json_text::quoted;
use netduel_model::run::{RunEnd, RunHeader};
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that is written, and the newest that is read.
///
/// Changelog:
/// - 1: the first. Line 1 is the header; then records `trial`, `warning`, `end`, `resumed`, one a line.
/// - 2: new values: workloads `tcp-crr` and `loaded-latency`, engines, wait modes, warnings and metrics; limits of a trial by volume. Fields of
///   format 1 keep their meaning.
/// - 3: `pps` is a type of its own; it was a `udp-stream` with `packets`. Some sixty fields and words have the standard term of their
///   field: the table in `upgrade` lists them. When a newer version resumes a run, a record states the format of all later records. Every
///   line ends with its checksum.
///
/// Once a version is released, every change of a stored type needs a new version, with a step in `upgrade` for each renamed field;
/// `docs/design/0029-formats.md` has the rules. Every version has golden files in `tests/golden`, which later versions keep.
pub const FORMAT: u32 = 3;

/// The first version whose lines have a checksum.
pub const CHECKSUMS_FROM: u32 = 3;

/// The newest version that a release of netduel writes. Versions up to this never change.
pub const FORMAT_RELEASED: u32 = 2;

/// The fingerprint of [`schema`] in this version. A test compares it with that of the types.
pub const FORMAT_FINGERPRINT: &str = "6177088f979a4fdf";

/// The kind of file that the first line names.
pub const KIND: &str = "run";

/// File name extension of a run file.
pub const EXTENSION: &str = "netduel";

/// The part of the first line that is the same in every version. It is read first, because it decides how the rest is read.
#[derive(Debug, Deserialize)]
pub(crate) struct Preamble {
    /// [`KIND`].
    pub netduel: String,
    /// The version, which may be no number in a file that another program wrote.
    pub format: Value,
    /// The header, in the form of its version.
    #[serde(default)]
    header: Value,
}

impl Preamble {
    /// The version, from 1; absent for another value.
    pub(crate) fn version(&self) -> Option<u32> {
        self.format.as_u64().and_then(|version| u32::try_from(version).ok()).filter(|version| *version > 0)
    }

    /// Name and version of the program that wrote the file, for messages; absent when the header has none.
    pub(crate) fn program(&self) -> Option<String> {
        self.header.get("program").and_then(Value::as_str).map(quoted)
    }
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FirstLine<'r> {
    /// The kind of file: `run`.
    pub netduel: Cow<'r, str>,
    /// The version of the format.
    pub format: u32,
    /// The facts known before the first trial.
    pub header: Cow<'r, RunHeader>,
}

/// Every line after the first.
#[expect(clippy::large_enum_variant, reason = "one record is in memory at a time")]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Record<'r> {
    /// A finished trial.
    Trial(Cow<'r, Trial>),
    /// A warning that arose during the run.
    Warning(Cow<'r, Warning>),
    /// The run ended. It may be resumed after this record.
    End(Cow<'r, RunEnd>),
    /// The run was resumed: an `end` before this line no longer applies.
    Resumed {
        /// Number of trials before this line.
        trials: u64,
        /// Format of this line and later ones; absent when it is that of the lines before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<u32>,
        /// Name and version of the program that resumed the run; absent when `format` is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
    },
}

/// A line of the file.
struct Line;

impl JsonSchema for Line {
    fn schema_name() -> Cow<'static, str> {
        "Line".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let first = generator.subschema_for::<FirstLine<'_>>();
        let record = generator.subschema_for::<Record<'_>>();
        json_schema!({ "anyOf": [first, record] })
    }
}

/// The JSON Schema (2020-12) of a written line.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Line>().to_value();
    schema["title"] = format!("A line of a netduel run file, format {FORMAT}").into();
    schema
}

/// The JSON Schema of a line as it stands in the file: [`schema`] with the checksum, which no type has.
pub fn schema_of_lines() -> Value {
    let mut schema = schema();
    let checksum = serde_json::json!({
        "description": "CRC-32 (IEEE 802.3) of the line's bytes before `,\"crc32\"`, hexadecimal.",
        "type": "string",
        "pattern": "^[0-9a-f]{8}$"
    });
    let Some(definitions) = schema["$defs"].as_object_mut() else { return schema };
    for line in ["FirstLine", "Record"] {
        let Some(definition) = definitions.get_mut(line) else { continue };
        let variants = match definition.get_mut("oneOf").and_then(Value::as_array_mut) {
            Some(variants) => variants.iter_mut().collect(),
            None => vec![definition],
        };
        for variant in variants {
            variant["properties"]["crc32"] = checksum.clone();
            if let Some(required) = variant["required"].as_array_mut() {
                required.push("crc32".into());
            }
        }
    }
    schema
}

/// Upgrades a line of a run file, as JSON without its checksum, or a part of one in its place: `{"header": {"plan": ...}}`. Other files contain
/// such parts.
pub fn upgrade(line: &mut Value, format: u32) {
    crate::upgrade::to_newest(line, format);
}

/// Start of a line with a trial. A listing parses no more of the line than the beginning.
pub(crate) const TRIAL_PREFIX: &[u8] = b"{\"trial\":";

/// Start of a line with which a run is resumed.
pub(crate) const RESUMED_PREFIX: &[u8] = b"{\"resumed\":";

#[cfg(test)]
mod tests;
