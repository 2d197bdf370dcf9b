//! Settings that the threads of requests and responses share. Pure.
use netduel_model::workload::{RoundTrip, Timing, Wait};

/// Settings of the threads.
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
    /// Timeout of a UDP request, nanoseconds.
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
            lost_after_ns: RoundTrip::TIMEOUT.0,
            timestamps: settings.timestamps,
        }
    }
}
