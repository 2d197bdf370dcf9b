//! Settings that the threads of both ends share. Pure.
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::workload::{Timing, Wait};

/// Longest sleep in a call: how late a thread may notice an abort or a timeout.
pub(crate) const CALL_LIMIT: Duration = Duration::from_millis(250);

/// The settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    pub wait: Wait,
    pub rate: Option<u64>,
    /// When the first of a schedule is due, nanoseconds after the start.
    pub from_ns: u64,
    pub timing: Timing,
    pub token: Token,
    /// The stream index of the first thread.
    pub stream: usize,
}
