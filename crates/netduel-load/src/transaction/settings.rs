//! What the threads of both ends of transactions have in common. Pure.
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::workload::{Timing, Wait};

/// A transaction is given up after this long, nanoseconds. The kernel repeats a lost SYN after 1 s and again after 2 s more,
/// so one that is only slow is measured.
pub(super) const GIVE_UP_NS: u64 = 4_000_000_000;
/// Longest sleep in a call: how late a cut or the end of patience may be noticed.
pub(super) const CALL_LIMIT: Duration = Duration::from_millis(250);

/// What the threads of both ends need to know.
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
    /// The lane of the first thread.
    pub stream: usize,
}
