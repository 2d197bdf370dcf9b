//! What ends the preparation of a host early: a signal, or the failure of another host. It ends nothing itself.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netduel_sys::clock::{monotonic_ns, sleep_until_or};

use super::obstacle::Obstacle;
use crate::signal;

/// The flags that every wait for a host checks.
#[derive(Debug)]
pub struct Stop {
    interrupted: Arc<AtomicBool>,
    has_failed: AtomicBool,
}

impl Stop {
    /// At a signal from now on.
    pub fn new() -> Result<Self, Obstacle> {
        let interrupted = signal::interrupted().map_err(Obstacle::Signals)?;
        Ok(Self { interrupted, has_failed: AtomicBool::new(false) })
    }

    /// A host failed, so the others are not needed.
    pub fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Waits, and returns the reason to stop, if there is one.
    pub fn wait(&self, time: Duration) -> Result<(), Obstacle> {
        sleep_until_or(monotonic_ns().saturating_add(time.as_nanos() as u64), &self.interrupted);
        self.check()
    }

    /// The reason to stop, if there is one.
    pub fn check(&self) -> Result<(), Obstacle> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Obstacle::Interrupted);
        }
        if self.has_failed.load(Ordering::Relaxed) { Err(Obstacle::Abandoned) } else { Ok(()) }
    }
}
