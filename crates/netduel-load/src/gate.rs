//! How an end comes to its connected sockets: the client has them, the server waits for them in a thread.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_sys::clock;

use crate::control::{GateOrders, Sockets};
use crate::error::LoadError;
use crate::tally::Tally;

/// Longest sleep of the thread at the gate: how late it may notice a deadline. New peers and orders wake it at once.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// Where the sockets come from.
pub(crate) enum Gate {
    /// They are connected.
    Open(Sockets),
    /// Threads accept and greet, each its part of them.
    Waiting(Vec<JoinHandle<Greeted>>),
}

/// What a thread at the gate brings: connected sockets, and what was noted about them.
pub(crate) type Greeted = Result<(Sockets, Tally), LoadError>;

impl Gate {
    /// The connected sockets, as soon as all are there; what was noted about them goes to `setup`.
    pub(crate) fn pass(self, setup: &mut Tally) -> Result<Sockets, LoadError> {
        match self {
            Self::Open(sockets) => Ok(sockets),
            Self::Waiting(threads) => {
                // All are joined before the first error is told, so that none is left behind.
                let results: Vec<_> = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect();
                results.into_iter().try_fold(Sockets::default(), |all, part| {
                    let (sockets, tally) = part?;
                    setup.take_in(tally);
                    Ok(all.and(sockets))
                })
            }
        }
    }
}

/// What wakes a thread at the gate: a byte tells it to look around, the end tells it that its end was abandoned.
#[derive(Debug)]
pub(crate) struct Wake(UnixStream);

impl Wake {
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
    pub(crate) fn nudge(&self) -> Result<Nudge, LoadError> {
        let stream = self.0.try_clone();
        stream.map(Nudge).map_err(|error| LoadError::system("duplicate a socket", error))
    }

    /// Makes the thread look around.
    pub(crate) fn look(&self) {
        // A gate that is gone already needs no waking.
        let _ = (&self.0).write(&[1]);
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        // Closing would not do: a nudge may have the same socket open.
        let _ = netduel_sys::socket::shut_down(&self.0);
    }
}

/// A [`Wake`] that is not its owner's.
#[derive(Debug)]
pub(crate) struct Nudge(UnixStream);

impl Nudge {
    /// Makes the thread look around.
    pub(crate) fn look(&self) {
        let _ = (&self.0).write(&[1]);
    }
}

/// Takes what woke us off the stream; false when the end was abandoned.
pub(crate) fn heed_wake(wake: &mut UnixStream) -> bool {
    // The stream has something to read, so this does not block; an error is as good as its end.
    wake.read(&mut [0; 16]).is_ok_and(|count| count > 0)
}

/// Whether the time to wait for peers is over.
pub(crate) fn gave_up(orders: &GateOrders) -> bool {
    let deadline = orders.give_up_ns.load(Relaxed);
    deadline != 0 && clock::monotonic_ns() > deadline
}
