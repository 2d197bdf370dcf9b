//! A barrier at which the threads of an end wait until all have started. Knows nothing of traffic.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Starts the work of all threads at the same time. Unlike the barrier of the standard library it can be opened early.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    arrived: Condvar,
    opened: Condvar,
    begun: Condvar,
}

#[derive(Debug, Default)]
struct State {
    threads: usize,
    is_open: bool,
    has_begun: bool,
}

impl StartBarrier {
    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a thread and waits until the barrier is open. The first thread that passes calls `begin`, before any other passes.
    pub(crate) fn arrive(&self, begin: impl FnOnce()) {
        let mut state = self.state();
        state.threads += 1;
        self.arrived.notify_one();
        let mut state =
            self.opened.wait_while(state, |state| !state.is_open).unwrap_or_else(PoisonError::into_inner);
        if !state.has_begun {
            begin();
            state.has_begun = true;
            self.begun.notify_one();
        }
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

    /// Waits until a thread has passed the open barrier.
    pub(crate) fn wait_until_begun(&self) {
        let waits = |state: &mut State| !state.has_begun;
        drop(self.begun.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

    use super::*;

    #[test]
    fn no_thread_passes_before_all_have_arrived() {
        let (barrier, has_started) = (StartBarrier::default(), AtomicBool::new(false));
        let begun = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let thread = || {
                barrier.arrive(|| {
                    begun.fetch_add(1, SeqCst);
                });
                assert!(has_started.load(SeqCst));
                assert_eq!(begun.load(SeqCst), 1, "the first begins, and only the first");
            };
            (0..8).for_each(|_| drop(scope.spawn(thread)));
            barrier.wait_for(8);
            has_started.store(true, SeqCst);
            barrier.open();
            barrier.wait_until_begun();
            assert_eq!(begun.load(SeqCst), 1);
            scope.spawn(thread);
        });
    }
}
