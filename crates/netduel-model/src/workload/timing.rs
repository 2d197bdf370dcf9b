//! When traffic runs and which part of it counts.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Interval between two samples of a series, nanoseconds.
pub const SAMPLE_INTERVAL_NS: u64 = 100_000_000;

/// When traffic runs and which part counts. The steady window is `warmup..duration - cooldown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// From the first to the last send.
    pub duration: Nanos,
    /// Cut from the beginning.
    pub warmup: Nanos,
    /// Cut from the end.
    pub cooldown: Nanos,
}
