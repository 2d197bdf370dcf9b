//! A barrier at which the threads of an end wait until all have started. Knows nothing of traffic.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Starts the work of all threads at the same time. Unlike the barrier of the standard library it can be opened early.
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

    /// Registers a thread and waits until the barrier is open.
    pub(crate) fn arrive(&self) {
        let mut state = self.state();
        state.threads += 1;
        self.arrived.notify_one();
        drop(self.opened.wait_while(state, |state| !state.is_open).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until `threads` threads have registered.
    pub(crate) fn wait_for(&self, threads: usize) {
        let waits = |state: &mut State| state.threads < threads;
        drop(self.arrived.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner));
    }

    /// Opens the barrier for all threads, also for those that arrive later.
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
    fn no_thread_passes_before_all_have_arrived() {
        let (barrier, has_started) = (StartBarrier::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thread = || {
                barrier.arrive();
                assert!(has_started.load(SeqCst));
            };
            (0..8).for_each(|_| drop(scope.spawn(thread)));
            barrier.wait_for(8);
            has_started.store(true, SeqCst);
            barrier.open();
            scope.spawn(thread);
        });
    }
}
