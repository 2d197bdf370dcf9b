//! The words of a quick test: a line for each interval while it runs, and a summary with what limited it.
//!
//! The layout is that of iperf3, which users of such tools read without thinking: interval, transfer, rate, and what went
//! wrong. Units are ours: SI prefixes are powers of 1000 everywhere, and bits never share a word with bytes.
mod intervals;
mod json;
mod summary;
mod sweep;

pub use intervals::{Interval, Intervals, heading, line};
pub use json::{document, failure, interval as interval_json};
pub use summary::{SummaryInput, summary};
pub use sweep::sweep;
