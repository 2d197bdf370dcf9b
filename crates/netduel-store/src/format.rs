//! The format of a run's file: its version, its first line, its records. A change here, or in a type of `netduel-model`
//! that is stored, is a change of the format.
use std::borrow::Cow;

use netduel_model::run::{RunEnd, RunHeader};
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use serde::{Deserialize, Serialize};

/// The version that is written, and the newest that is read.
///
/// Changelog:
/// - 1: the first. Line 1 is the header; then records `trial`, `warning`, `end`, `resumed`, one a line.
/// - 2: new words: workloads `tcp-crr` and `loaded-latency`, engines, ways to wait, warnings and metrics that 1 did not
///   know; limits of a trial by volume. Everything that 1 has means what it meant.
/// - 3: `pps` is a type of its own; it was a `udp-stream` with `packets`. Some sixty fields and words have the standard term of their
///   field: the table in `upgrade` lists them. A run that is resumed by a newer version says from where on its records are of that version.
///
/// What is allowed within a version: a new field that a reader may pass over, and that is absent in older files
/// (`Option`, or with a default). Readers pass over fields that they do not know. What needs a new version: a field that
/// went, another meaning or unit of a field, a new kind of record, a new word of an enum; and a step in `upgrade`. Every version has a golden file
/// in `tests/golden`, which stays when the next one comes.
pub const FORMAT: u32 = 3;

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
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FirstLine<'r> {
    /// [`KIND`].
    pub netduel: Cow<'r, str>,
    /// The version.
    pub format: u32,
    /// What was known before the first trial.
    pub header: Cow<'r, RunHeader>,
}

/// Every line after the first.
#[expect(clippy::large_enum_variant, reason = "one record is in memory at a time")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Record<'r> {
    /// A finished trial.
    Trial(Cow<'r, Trial>),
    /// A doubt that arose while the run went on.
    Warning(Cow<'r, Warning>),
    /// The run ended, for now.
    End(Cow<'r, RunEnd>),
    /// A coordinator went on with the run: an `end` before this is no longer one.
    Resumed {
        /// Trials that there were by then.
        trials: u64,
        /// The version of the records from here on, this one with them; absent when it is that of the records before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<u32>,
    },
}

/// How a line with a trial begins: enough to count trials without reading them.
pub(crate) const TRIAL_PREFIX: &[u8] = b"{\"trial\":";

/// How the line begins with which a run goes on.
pub(crate) const RESUMED_PREFIX: &[u8] = b"{\"resumed\":";
