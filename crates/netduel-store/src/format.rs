//! The format of a run's file: its version, its first line, its records. A change here, or in a type of `netduel-model`
//! that is stored, is a change of the format.
use std::borrow::Cow;

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
/// - 2: new words: workloads `tcp-crr` and `loaded-latency`, engines, ways to wait, warnings and metrics that 1 did not
///   know; limits of a trial by volume. Everything that 1 has means what it meant.
/// - 3: `pps` is a type of its own; it was a `udp-stream` with `packets`. Some sixty fields and words have the standard term of their
///   field: the table in `upgrade` lists them. A run that is resumed by a newer version says from where on its records are of that version.
///
/// Every change of a stored type needs a new version, with a step in `upgrade` for what has another name, once the version is released;
/// `docs/design/0029-formats.md` has the rules. Every version has golden files in `tests/golden`, which stay when the next one comes.
pub const FORMAT: u32 = 3;

/// The newest version that a release of netduel writes. Versions up to this never change.
pub const FORMAT_RELEASED: u32 = 2;

/// The fingerprint of [`schema`] in this version. A test compares it with that of the types.
pub const FORMAT_FINGERPRINT: &str = "2e580e0cf0d57369";

/// The program that reads and writes, for example `netduel 0.1.0`.
pub(crate) const PROGRAM: &str = concat!("netduel ", env!("CARGO_PKG_VERSION"));

/// What the first line says the file is.
pub const KIND: &str = "run";

/// The ending of a run's file.
pub const EXTENSION: &str = "netduel";

/// What every version has in its first line, read before anything else of it is believed.
#[derive(Debug, Deserialize)]
pub(crate) struct Preamble {
    /// [`KIND`].
    pub netduel: String,
    /// The version.
    pub format: u32,
    /// The header, of whatever form.
    #[serde(default)]
    header: Value,
}

impl Preamble {
    /// The program that wrote the file, name and version, when the header names it.
    pub(crate) fn program(&self) -> Option<String> {
        self.header.get("program").and_then(Value::as_str).map(str::to_owned)
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
    /// The run ended; it may be resumed after this.
    End(Cow<'r, RunEnd>),
    /// The run was resumed: an `end` before this line is void.
    Resumed {
        /// Number of trials before this line.
        trials: u64,
        /// The version of the format from this line on; absent when it is that of the lines before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<u32>,
        /// The program that resumed the run, name and version; absent when `format` is.
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

/// The JSON Schema (2020-12) of a line as it is written.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Line>().to_value();
    schema["title"] = format!("A line of a netduel run file, format {FORMAT}").into();
    schema
}

/// How a line with a trial begins: enough to count trials without reading them.
pub(crate) const TRIAL_PREFIX: &[u8] = b"{\"trial\":";

/// How the line begins with which a run goes on.
pub(crate) const RESUMED_PREFIX: &[u8] = b"{\"resumed\":";

#[cfg(test)]
mod tests;
