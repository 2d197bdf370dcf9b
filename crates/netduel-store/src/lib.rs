//! Runs on disk: one append-only file of JSON lines for each run, durable trial by trial.
//!
//! This crate runs no trials and derives no values, and of clocks it compares only that of the system with the age of [`drafts`] and
//! with the start of runs.
//! [`mod@format`] has the format and its versions, `docs/design/0007-plans-and-store.md` the reasons.
#![forbid(unsafe_code)]

mod begun;
mod belonging;
mod change;
pub mod checksum;
mod disk_space;
pub mod drafts;
mod error;
pub mod folder;
pub mod format;
mod missing;
mod name;
mod passed_over;
mod reader;
mod removed;
mod run_file;
mod store;
mod upgrade;
mod writer;

pub use change::{Imported, Usage, bytes_of};
pub use error::{SIZE_MAX, StoreError};
pub use name::{LAST, unusable_name};
pub use passed_over::PassedOver;
pub use reader::{DamagedRecord, TornTail};
pub use removed::Fate;
pub use store::{Integrity, RunContents, RunSummary, Store};
pub use writer::RunWriter;
