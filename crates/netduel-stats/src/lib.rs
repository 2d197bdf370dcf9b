//! Pure statistics over samples: histogram, interval, compare, sequential stop.
#![forbid(unsafe_code)]

pub mod histogram;
pub mod series;
