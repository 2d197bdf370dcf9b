//! Derives values, verdicts and warnings from a stored run, and renders them as text, tables and pages.
//!
//! Everything is derived from the raw trials when it is shown, so a later version can show more of an old run. This crate never
//! reads a clock, a socket or the kernel, and never writes a file: its input is records and its output is text.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod baseline;
pub mod checks;
pub mod csv;
pub mod document;
pub mod findings;
pub mod gate;
pub mod github;
pub mod history;
pub mod html;
pub mod influx;
pub mod inspect;
pub mod json;
pub mod junit;
pub mod markdown;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod png;
pub mod prometheus;
pub mod quick;
mod rows;
pub mod terminal;
pub mod topology;
mod total;
pub mod words;

use netduel_model::run::Run;

use crate::analysis::Analysis;
use crate::document::block::Document;

/// Derives everything that a report shows of a stored run.
pub fn analyse_run(run: &Run) -> Analysis {
    analysis::analyse(&run.header.plan, Some(&run.header), &run.trials, &run.warnings, run.end.as_ref())
}

/// The report of a stored run, for any format.
pub fn document(run: &Run) -> Document {
    document::of_run(run, &analyse_run(run))
}
