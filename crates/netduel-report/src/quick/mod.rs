//! The output of a quick test: a line for each interval while it runs, and a summary with the bottleneck.
//!
//! The layout is that of iperf3: interval, transfer, rate, errors. Units differ: SI prefixes are powers of 1000 everywhere, and
//! bits and bytes never share a word.
mod intervals;
mod jitter;
mod lines;
mod packets;
mod streams;
mod summary;
mod sweep;
mod whole_test;

pub use intervals::{Interval, Intervals};
pub use lines::{heading, line};
pub use packets::mtu;
pub use summary::{SummaryInput, summary};
pub use sweep::sweep;
pub(crate) use whole_test::deviations;
