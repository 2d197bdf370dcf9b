//! The only clock of xtask. It times steps for people and limits waits for processes; it measures no network.
//!
//! The product's clock is in `netduel-sys`, which xtask must not import.
use std::fmt;
use std::time::{Duration, Instant};

/// Time since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[expect(clippy::disallowed_methods, reason = "xtask cannot import the clock of netduel-sys")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} s", self.elapsed().as_secs_f64()))
    }
}

/// Waits for a process to end. The end of a process that is not a child causes no event to wait for.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for, and no test depends on it")]
pub fn pause(length: Duration) {
    std::thread::sleep(length);
}
