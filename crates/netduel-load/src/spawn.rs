//! Starts the threads of this crate: with a name, the stack that they need, and an error that names the limit.
use std::thread::{Builder, JoinHandle};

use crate::error::LoadError;

/// Stack of a thread; its buffers are on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// How to start a thread.
pub(crate) fn builder(name: impl Into<String>) -> Builder {
    Builder::new().name(name.into()).stack_size(STACK_BYTES)
}

/// Starts a thread.
///
/// # Errors
/// [`LoadError::Thread`] when the host has none left.
pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, LoadError> {
    builder(name)
        .spawn(work)
        .map_err(|source| LoadError::Thread { operation: format!("start the thread {name}"), source })
}
