//! What the threads at the gates of an end are told, and what wakes them.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use netduel_sys::clock;

use crate::error::LoadError;

/// Longest sleep of the thread at the gate: how late it may notice a deadline. New peers and orders wake it at once.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// What the thread at the gate is told without a lock.
#[derive(Debug, Default)]
pub(crate) struct AcceptorState {
    /// The end was started: leave when all streams are there.
    pub started: AtomicBool,
    /// When to give up waiting for streams, nanoseconds of the monotonic clock; 0 is never.
    pub give_up_ns: AtomicU64,
}

/// What wakes a thread at the gate: a byte tells it to look around, the end tells it that its end was abandoned.
#[derive(Debug)]
pub(crate) struct Waker(UnixStream);

impl Waker {
    /// The waker, and the stream that the thread watches.
    pub(crate) fn pair() -> Result<(Self, UnixStream), LoadError> {
        let pair = UnixStream::pair().and_then(|(wake, watched)| {
            // A thread that has so many bytes to read that no more fit is awake.
            wake.set_nonblocking(true)?;
            Ok((Self(wake), watched))
        });
        pair.map_err(|error| LoadError::system("make a socket pair", error))
    }

    /// One that can wake too, and whose end tells nothing.
    pub(crate) fn handle(&self) -> Result<WakerHandle, LoadError> {
        let stream = self.0.try_clone();
        stream.map(WakerHandle).map_err(|error| LoadError::system("duplicate a socket", error))
    }

    /// Makes the thread look around.
    pub(crate) fn wake(&self) {
        // A gate that is gone already needs no waking.
        let _ = (&self.0).write(&[1]);
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        // Closing would not do: a nudge may have the same socket open.
        let _ = netduel_sys::socket::shut_down(&self.0);
    }
}

/// A [`Waker`] that is not its owner's.
#[derive(Debug)]
pub(crate) struct WakerHandle(UnixStream);

impl WakerHandle {
    /// Makes the thread look around.
    pub(crate) fn wake(&self) {
        let _ = (&self.0).write(&[1]);
    }
}

/// Takes what woke us off the stream; false when the end was abandoned.
pub(crate) fn drain(wake: &mut UnixStream) -> bool {
    // The stream has something to read, so this does not block; an error is as good as its end.
    wake.read(&mut [0; 16]).is_ok_and(|count| count > 0)
}

/// Whether the time to wait for peers is over.
pub(crate) fn is_timed_out(orders: &AcceptorState) -> bool {
    let deadline = orders.give_up_ns.load(Relaxed);
    deadline != 0 && clock::monotonic_ns() > deadline
}

/// Time to `deadline_ns`; never zero, which a socket would take for no limit.
pub(crate) fn left(deadline_ns: u64) -> Duration {
    Duration::from_nanos(deadline_ns.saturating_sub(clock::monotonic_ns()).max(1_000))
}
