//! The two forms in which samples are recorded: an interval of a series, and a histogram. Reports of both ends consist of them.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes and packets of one interval of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IntervalSample {
    /// End of the interval, nanoseconds after the trial's start on this end's monotonic clock.
    pub end_ns: u64,
    /// Length of the interval, nanoseconds, as measured.
    pub length_ns: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Datagrams, requests or responses; 0 for TCP streams.
    pub messages: u64,
}

/// A histogram with high dynamic range as pairs of value and count, ascending. Values are the highest equivalent value
/// of their bucket at three significant digits, so records of different trials can be merged without loss.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HistogramRecord {
    /// Samples.
    pub count: u64,
    /// Minimum, exact.
    pub min: u64,
    /// Maximum, exact.
    pub max: u64,
    /// Value and count.
    pub pairs: Vec<(u64, u64)>,
}
