//! A report as a document: built once from the analysis of a run, in one order, for every format.
//!
//! `block`, `table`, `verdicts` and `chart` are the types that renderers know. The other files build them, and only these know
//! workloads. A format is a function from [`block::Document`] to text.
pub mod accent;
pub mod block;
pub mod chart;
pub mod cover;
pub mod table;
pub mod verdicts;

mod bed;
mod compare;
mod core_plots;
mod counters;
mod datagrams;
mod environment;
mod errors;
mod failover;
mod front;
pub mod history;
mod host_drawing;
pub(crate) mod hosts;
mod latency_plots;
mod levels;
pub mod markup;
mod metric_plots;
mod packets;
mod path;
mod price;
mod published;
mod reader;
mod reproduction;
mod run;
mod scale;
mod search;
pub(crate) mod stamps;
mod sweep;
mod testpmd;
mod time_plots;
mod topology;
mod workload;

pub use compare::of_runs;
pub use history::of_history;
pub use hosts::of_inspection;
pub use run::of_run;
