//! CPU load beside the tests: busy loops that end when their value is dropped, and with the process.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The number of cores of the machine for continuous integration, so that no test has a core to itself.
pub const LOOPS: usize = 2;

/// Running busy loops.
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

    /// The iterations of each loop so far.
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
    fn loops_run_until_their_value_is_dropped() {
        let busy = BusyLoops::start();
        while busy.rounds().contains(&0) {
            std::thread::yield_now();
        }
        let counted: Vec<Arc<AtomicU64>> = busy.loops.iter().map(|(_, rounds)| Arc::clone(rounds)).collect();
        assert_eq!(counted.len(), LOOPS);
        drop(busy);
        // Dropping the thread also drops its share of the counter.
        assert!(counted.iter().all(|rounds| Arc::strong_count(rounds) == 1));
    }
}
