//! Clocks (clock_gettime(2)) and waiting for a point in time. The only place of the workspace that reads a clock.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of the monotonic clock: never set, so the difference of two readings is a duration.
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds since the Unix epoch: may be stepped, so it is only for display and for detecting steps.
pub fn realtime_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

/// The wall clock between two readings of the monotonic one: before, wall, after. Their difference changes only when the wall
/// clock is stepped; the kernel slews both alike.
pub fn monotonic_and_realtime_ns() -> (u64, u64, u64) {
    (monotonic_ns(), realtime_ns(), monotonic_ns())
}

/// CPU time of all threads of this process, nanoseconds.
pub fn process_cpu_ns() -> u64 {
    to_ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    to_ns(clock_gettime(ClockId::ThreadCPUTime))
}

fn to_ns(time: Timespec) -> u64 {
    // The kernel's clocks named above are never negative, and 2^63 ns are 292 years.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps in the kernel until the monotonic clock shows `deadline_ns`. The kernel may wake the thread some 50 us late.
pub fn sleep_until(deadline_ns: u64) {
    let mut now = monotonic_ns();
    while now < deadline_ns {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that sleeps, until a stated time"
        )]
        std::thread::sleep(Duration::from_nanos(deadline_ns - now));
        now = monotonic_ns();
    }
}

/// Maximum sleep of [`sleep_until_or`], nanoseconds: its delay in noticing `is_over`.
const STEP_NS: u64 = 20_000_000;

/// Sleeps until the monotonic clock shows `deadline_ns`, or until some 20 ms after `is_over` was set; false in the second case.
pub fn sleep_until_or(deadline_ns: u64, is_over: &AtomicBool) -> bool {
    loop {
        let now = monotonic_ns();
        if now >= deadline_ns {
            return true;
        }
        if is_over.load(Ordering::Relaxed) {
            return false;
        }
        sleep_until(deadline_ns.min(now + STEP_NS));
    }
}

/// Time before the deadline at which [`sleep_then_spin_until`] stops sleeping: a wake-up is rarely later.
const SPIN_NS: u64 = 50_000;

/// Sleeps until shortly before `deadline_ns` and spins for the rest. Returns the time at which it returned.
pub fn sleep_then_spin_until(deadline_ns: u64) -> u64 {
    let mut now = monotonic_ns();
    if deadline_ns > now + 2 * SPIN_NS {
        sleep_until(deadline_ns - SPIN_NS);
        now = monotonic_ns();
    }
    while now < deadline_ns {
        std::hint::spin_loop();
        now = monotonic_ns();
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_or_after_the_deadline() {
        let deadline = monotonic_ns() + 300_000;
        assert!(sleep_then_spin_until(deadline) >= deadline);
        sleep_until(deadline + 100_000);
        assert!(monotonic_ns() >= deadline + 100_000);
    }

    #[test]
    fn sleep_ends_at_the_deadline_or_when_stopped_and_returns_which() {
        assert!(sleep_until_or(monotonic_ns() + 100_000, &AtomicBool::new(false)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| sleep_until_or(u64::MAX, &is_over));
            is_over.store(true, Ordering::Relaxed);
            assert!(!sleeper.join().unwrap());
        });
    }
}
