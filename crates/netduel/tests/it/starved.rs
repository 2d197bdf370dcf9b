//! The live view on a machine whose cores are all taken: its frames go on, and its keys work. Nothing here depends on
//! how long that takes.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism};

use crate::live::{assert_restored, started};
use crate::support::Bench;
use crate::tmux::Tmux;

/// Busy threads for each core, so that a thread of netduel has a third of one.
const SPINNERS_PER_CORE: usize = 2;
/// Frames that must differ from the one before under load.
const FRAMES: usize = 5;

/// Busy threads; dropping them ends them, also when the test fails.
struct Spinners {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Spinners {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let count = available_parallelism().unwrap().get() * SPINNERS_PER_CORE;
        let start_one = |_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..count).map(start_one).collect();
        Self { is_over, threads }
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop does not panic.
            let _ = thread.join();
        }
    }
}

/// The line with the trials and the elapsed time.
fn progress(screen: &str) -> Option<&str> {
    screen.lines().find(|line| line.contains(" elapsed, "))
}

/// The title with the counts of valid and excluded trials.
fn trials(screen: &str) -> Option<&str> {
    screen.lines().find(|line| line.starts_with("Blocks"))
}

/// Waits until a line is there and differs from that of an earlier screen.
#[track_caller]
fn wait_for_other(tmux: &Tmux<'_>, what: &str, earlier: &str, line: fn(&str) -> Option<&str>) -> String {
    tmux.wait_for(what, |screen| line(screen).is_some() && line(screen) != line(earlier))
}

#[test]
fn frames_and_keys_go_on_when_all_cores_are_taken() {
    let bench = Bench::new();
    let Some(tmux) = started(&bench, (100, 30), 500, "") else { return };
    let calm = tmux.wait_for("a finished trial", |screen| screen.contains("1 valid"));
    let spinners = Spinners::start();
    let mut shown = calm.clone();
    for _ in 0..FRAMES {
        shown = wait_for_other(&tmux, "a later frame", &shown, progress);
    }
    // Not frames alone: the run itself goes on beside its view.
    wait_for_other(&tmux, "a trial under load", &calm, trials);
    tmux.press("q");
    let end = tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
    assert!(end.contains("finished trials are kept"), "{end}");
    assert_restored(&tmux);
    // The load lasted until the end.
    drop(spinners);
    drop(tmux);
    bench.assert_nothing_left();
}
