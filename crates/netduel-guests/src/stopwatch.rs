//! The only clock of the test bed: how long a boot or a check takes, for people who want to make the suite faster. Nothing is judged by it.
//!
//! The product's clock is in `netduel-sys`, which this crate must not import.
use std::time::{Duration, Instant};

/// Time since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[expect(clippy::disallowed_methods, reason = "the test bed cannot import the clock of netduel-sys")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
