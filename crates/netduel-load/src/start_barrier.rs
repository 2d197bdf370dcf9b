//! Where the threads of an end wait until all of them are there. Knows nothing of traffic.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Threads that were started one after the other, and begin together.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    arrived: Condvar,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    threads: usize,
    is_open: bool,
}

impl StartBarrier {
    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the line is open.
    pub(crate) fn arrive(&self) {
        let mut state = self.state();
        state.threads += 1;
        self.arrived.notify_one();
        drop(self.opened.wait_while(state, |state| !state.is_open).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until so many threads are there.
    pub(crate) fn wait_for(&self, threads: usize) {
        let waits = |state: &mut State| state.threads < threads;
        drop(self.arrived.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets all threads go, also those that arrive later.
    pub(crate) fn open(&self) {
        self.state().is_open = true;
        self.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use super::*;

    #[test]
    fn no_thread_goes_before_all_are_there() {
        let (line, is_begun) = (StartBarrier::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thread = || {
                line.arrive();
                assert!(is_begun.load(SeqCst));
            };
            (0..8).for_each(|_| drop(scope.spawn(thread)));
            line.wait_for(8);
            is_begun.store(true, SeqCst);
            line.open();
            scope.spawn(thread);
        });
    }
}
