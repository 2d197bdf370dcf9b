//! Concurrent tests on a server: each result contains the maximum number of other tests at any moment.
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Running tests of all clients.
#[derive(Default)]
pub struct Tests {
    /// For each test, the maximum number of concurrent other tests.
    others: Mutex<Vec<Arc<AtomicU32>>>,
}

/// A running test. Dropping this ends it.
pub struct Test {
    tests: Arc<Tests>,
    others: Arc<AtomicU32>,
}

impl Tests {
    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn others(&self) -> MutexGuard<'_, Vec<Arc<AtomicU32>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a test to the running ones, and counts it for each of them.
    pub fn begin(self: &Arc<Self>) -> Test {
        let mut running = self.others();
        let count = u32::try_from(running.len()).unwrap_or(u32::MAX);
        for others in running.iter() {
            others.fetch_max(count, Ordering::Relaxed);
        }
        let others = Arc::new(AtomicU32::new(count));
        running.push(Arc::clone(&others));
        Test { tests: Arc::clone(self), others }
    }
}

impl Test {
    /// The maximum number of other tests at any moment.
    pub fn others(&self) -> u32 {
        self.others.load(Ordering::Relaxed)
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        self.tests.others().retain(|others| !Arc::ptr_eq(others, &self.others));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximum_concurrency_includes_finished_tests() {
        let tests = Arc::new(Tests::default());
        let long = tests.begin();
        assert_eq!(long.others(), 0);
        drop((tests.begin(), tests.begin()));
        let late = tests.begin();
        assert_eq!((long.others(), late.others()), (2, 1));
        drop(long);
        assert_eq!(tests.begin().others(), 1);
    }
}
