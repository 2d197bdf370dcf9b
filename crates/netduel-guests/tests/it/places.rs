//! Places for scenes: as many tests as there are places run at a time, whatever the threads of the harness.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A number of places.
pub struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place that is taken until it is dropped, also by a test that fails.
pub struct Place<'a>(&'a Places);

impl Places {
    /// So many free places.
    pub const fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a free place.
    pub fn take(&self) -> Place<'_> {
        let free = self.freed.wait_while(self.free(), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Place(self)
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn two_of_six_tests_have_a_place_at_a_time() {
        // Each waits for another one that has a place: alone, none could end.
        let (places, pair) = (Places::new(2), Barrier::new(2));
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let _place = places.take();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    pair.wait();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!((most.into_inner(), *places.free()), (2, 2));
    }
}
