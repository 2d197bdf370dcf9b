//! What the threads of requests and responses have in common. Pure.
use netduel_model::workload::{RoundTrip, Timing, Wait};

/// A UDP request is given up after this long, nanoseconds. Longer than any round trip on the ground (the longest are some
/// 0.3 s), and than the stalls of a machine that is short of cores, so that what is counted as lost is lost.
const LOST_AFTER_NS: u64 = 500_000_000;
/// What the client's threads need to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Bytes of a message.
    pub size: usize,
    pub outstanding: usize,
    pub wait: Wait,
    pub rate: Option<u64>,
    pub timing: Timing,
    /// The part before the load, where there is one: its round trips go into a histogram of their own.
    pub idle: Option<Timing>,
    /// A UDP request is given up after this long, nanoseconds.
    pub lost_after_ns: u64,
    pub timestamps: bool,
}

impl Settings {
    pub(crate) fn new(settings: &RoundTrip, timing: Timing) -> Self {
        Self {
            size: settings.size.0 as usize,
            outstanding: settings.outstanding as usize,
            wait: settings.wait,
            rate: settings.rate.map(|rate| rate.0),
            timing,
            idle: None,
            lost_after_ns: LOST_AFTER_NS,
            timestamps: settings.timestamps,
        }
    }
}
