//! How an end comes to its connected sockets: the client has them, the server waits for them in a thread.
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_sys::clock;

use crate::control::{GateOrders, Sockets};
use crate::error::LoadError;

/// Longest sleep of the thread at the gate: how late it may notice a deadline. New peers and orders wake it at once.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// Where the sockets come from.
pub(crate) enum Gate {
    /// They are connected.
    Open(Sockets),
    /// Threads accept and greet, each its part of them.
    Waiting(Vec<JoinHandle<Result<Sockets, LoadError>>>),
}

impl Gate {
    /// The connected sockets, as soon as all are there.
    pub(crate) fn pass(self) -> Result<Sockets, LoadError> {
        match self {
            Self::Open(sockets) => Ok(sockets),
            Self::Waiting(threads) => {
                // All are joined before the first error is told, so that none is left behind.
                let results: Vec<_> = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect();
                results.into_iter().try_fold(Sockets::default(), |all, part| Ok(all.and(part?)))
            }
        }
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
