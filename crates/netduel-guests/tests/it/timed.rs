//! How long the checks of a scene take, in the output of its test: `cargo xtask test guests -- --nocapture` shows it. No test judges a time.
use std::time::Duration;

use netduel_guests::{Bed, Stopwatch};

use super::pace::{Pace, ProcessorTime};

/// Prints times, each with the name of the scene: two scenes may print at a time.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    scene: &'static str,
    /// For the plans of the scene.
    pub pace: Pace,
}

impl Timed {
    /// Of a scene.
    pub fn new(scene: &'static str) -> Self {
        Self { scene, pace: Pace::QUIET }
    }

    /// With the pace of the time since an earlier reading, which is printed.
    pub fn paced_since(self, earlier: &ProcessorTime) -> Self {
        let pace = Pace::since(earlier);
        println!("{}: the times of plans are multiplied by {pace}", self.scene);
        Self { pace, ..self }
    }

    /// Runs a check and prints how long it took; nothing when it fails.
    pub fn check<R>(self, name: &str, check: impl FnOnce() -> R) -> R {
        let watch = Stopwatch::start();
        let result = check();
        self.print(name, watch.elapsed());
        result
    }

    /// Prints how long after the start of the boot the bed had what.
    pub fn boot(self, bed: &Bed) {
        for (reached, after) in bed.boot_times() {
            self.print(&format!("boot, {reached}"), *after);
        }
    }

    fn print(self, what: &str, length: Duration) {
        println!("time: {:7.1} s  {}: {what}", length.as_secs_f64(), self.scene);
    }
}
