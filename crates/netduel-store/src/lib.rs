//! Runs on disk: one append-only file of JSON lines for each run, durable trial by trial.
//!
//! Nothing here knows how a trial is run or what it means; no clock is read, and nothing is derived. The format and its
//! versions are in [`mod@format`], and `docs/design/0007-plans-and-store.md` says why it is as it is.
#![forbid(unsafe_code)]

mod error;
pub mod format;
mod name;
mod reader;
mod room;
mod store;
mod upgrade;
mod writer;

pub use error::StoreError;
pub use reader::TornTail;
pub use store::{RunContents, RunSummary, Store};
pub use writer::RunWriter;
