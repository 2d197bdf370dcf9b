//! Load beside the tests: loops that take all the CPU time they get. Ends with the value that holds them, and with the process.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// As many loops as the machine for continuous integration has cores: no test has a core to itself.
pub const LOOPS: usize = 2;

/// Loops at work.
#[derive(Debug)]
pub struct BusyLoops {
    is_over: Arc<AtomicBool>,
    loops: Vec<(JoinHandle<()>, Arc<AtomicU64>)>,
}

impl BusyLoops {
    /// Starts [`LOOPS`] loops.
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let start_one = |_| {
            let (is_over, rounds) = (Arc::clone(&is_over), Arc::new(AtomicU64::new(0)));
            let counted = Arc::clone(&rounds);
            let run = move || {
                while !is_over.load(Ordering::Relaxed) {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            };
            (std::thread::spawn(run), rounds)
        };
        let loops = (0..LOOPS).map(start_one).collect();
        Self { is_over, loops }
    }

    /// The rounds of each loop so far.
    #[cfg(test)]
    fn rounds(&self) -> Vec<u64> {
        self.loops.iter().map(|(_, rounds)| rounds.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for (thread, _) in self.loops.drain(..) {
            // A loop that counts does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_runs_and_none_outlives_the_value() {
        let busy = BusyLoops::start();
        while busy.rounds().contains(&0) {
            std::thread::yield_now();
        }
        let counted: Vec<Arc<AtomicU64>> = busy.loops.iter().map(|(_, rounds)| Arc::clone(rounds)).collect();
        assert_eq!(counted.len(), LOOPS);
        drop(busy);
        // The thread's share of the counter goes with it.
        assert!(counted.iter().all(|rounds| Arc::strong_count(rounds) == 1));
    }
}
