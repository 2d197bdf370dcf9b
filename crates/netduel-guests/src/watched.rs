//! A value that one thread changes while others wait for a state of it. Never waits longer than its bound.
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A shared value.
#[derive(Debug, Default)]
pub struct Watched<T>(Arc<(Mutex<T>, Condvar)>);

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Watched<T> {
    /// Changes the value and wakes those who wait.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let (value, changed) = &*self.0;
        let result = change(&mut value.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_all();
        result
    }

    /// Waits until `found` returns a result; `None` after the bound.
    pub fn wait<R>(&self, bound: Duration, mut found: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let (value, changed) = &*self.0;
        let mut result = None;
        let guard = value.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, bound, |value| {
            result = found(value);
            result.is_none()
        });
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        result
    }
}
