//! Wakes the acceptor threads of an end, and the state that they read.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use netduel_sys::clock;

use crate::error::LoadError;

/// Longest sleep of an acceptor thread: how late it may notice a deadline. New peers and a changed state wake it at once.
pub(crate) const POLL_TIMEOUT: Duration = Duration::from_millis(100);

/// State that an acceptor thread reads without a lock.
#[derive(Debug, Default)]
pub(crate) struct AcceptorState {
    /// The end was started: return when all streams are connected.
    pub started: AtomicBool,
    /// Deadline for all streams to connect, nanoseconds of the monotonic clock; 0 is none.
    pub give_up_ns: AtomicU64,
}

/// The owner of a wake-up socket: a byte wakes the acceptor thread, and closing ends it.
#[derive(Debug)]
pub(crate) struct Waker(UnixStream);

impl Waker {
    /// The waker, and the socket that the thread polls.
    pub(crate) fn pair() -> Result<(Self, UnixStream), LoadError> {
        let pair = UnixStream::pair().and_then(|(wake, watched)| {
            // A full buffer means that the thread is awake already.
            wake.set_nonblocking(true)?;
            Ok((Self(wake), watched))
        });
        pair.map_err(|error| LoadError::system("make a socket pair", error))
    }

    /// A handle that wakes the thread too; dropping it does not end the thread.
    pub(crate) fn handle(&self) -> Result<WakerHandle, LoadError> {
        let stream = self.0.try_clone();
        stream.map(WakerHandle).map_err(|error| LoadError::system("duplicate a socket", error))
    }

    /// Wakes the thread.
    pub(crate) fn wake(&self) {
        // An error means that the thread has ended.
        let _ = (&self.0).write(&[1]);
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        // Dropping the descriptor is not enough: a handle may have the same socket open.
        let _ = netduel_sys::socket::shut_down(&self.0);
    }
}

/// Wakes the thread of a [`Waker`] and does not own it.
#[derive(Debug)]
pub(crate) struct WakerHandle(UnixStream);

impl WakerHandle {
    /// Wakes the thread.
    pub(crate) fn wake(&self) {
        let _ = (&self.0).write(&[1]);
    }
}

/// Reads the wake-up bytes; false when the end was dropped.
pub(crate) fn drain(wake: &mut UnixStream) -> bool {
    // The socket is readable, so this does not block.
    wake.read(&mut [0; 16]).is_ok_and(|count| count > 0)
}

/// Whether the deadline for connections is over.
pub(crate) fn is_timed_out(state: &AcceptorState) -> bool {
    let deadline = state.give_up_ns.load(Relaxed);
    deadline != 0 && clock::monotonic_ns() > deadline
}

/// Time to `deadline_ns`; never zero, which a socket would take for no limit.
pub(crate) fn remaining(deadline_ns: u64) -> Duration {
    Duration::from_nanos(deadline_ns.saturating_sub(clock::monotonic_ns()).max(1_000))
}
