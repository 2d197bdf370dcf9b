//! The ends of waits for testpmd, on the monotonic clock.
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;

/// The end of a wait that begins now, nanoseconds.
pub(super) fn after(within: Duration) -> u64 {
    monotonic_ns().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX))
}

/// The time left until a deadline, nanoseconds; zero after it.
pub(super) fn left(deadline_ns: u64) -> Duration {
    Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()))
}
