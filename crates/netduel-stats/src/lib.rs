//! Pure statistics over samples: histogram, interval, compare, sequential stop; and the search for the highest rate without loss.
//!
//! No clock, no input or output, no randomness and no other crate of the workspace: the same numbers in give the same
//! numbers out. What is estimated, why, and how well it was seen to work is in `docs/design/0002-statistics.md`; the tests
//! under `tests/it` hold the figures of that note.
#![forbid(unsafe_code)]

pub mod clock_offset;
pub mod doubt;
pub mod histogram;
pub mod holm;
mod normal;
pub mod paired;
pub mod search;
pub mod sequential;
pub mod series;
mod signed_rank;
pub mod summary;
pub mod verdict;
