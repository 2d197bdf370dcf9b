//! Statistics over samples: histogram, interval, comparison, sequential stop, and the search for the highest rate without loss.
//!
//! No clock, no input or output, no randomness: equal input has equal output. The methods, their reasons and their simulated
//! error rates are in `docs/design/0002-statistics.md`; the tests under `tests/it` check the figures of that note.
#![forbid(unsafe_code)]

pub mod change;
pub mod clock_offset;
pub mod doubt;
pub mod histogram;
pub mod holm;
mod normal;
pub mod paired;
mod rank_interval;
mod rank_sum;
pub mod search;
pub mod sequential;
pub mod series;
mod signed_rank;
pub mod split_mix;
pub mod summary;
pub mod unpaired;
pub mod verdict;
