//! How an end comes to its connected sockets: the client has them, the server waits for them in a thread.
use std::thread::JoinHandle;

use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::sockets::Sockets;

/// Where the sockets come from.
pub(crate) enum SocketSource {
    /// They are connected.
    Connected(Sockets),
    /// Threads accept and greet, each its part of them.
    Accepting(Vec<JoinHandle<AcceptResult>>),
}

/// What a thread at the gate brings: connected sockets, and what was noted about them.
pub(crate) type AcceptResult = Result<(Sockets, ErrorCounts), LoadError>;

impl SocketSource {
    /// The connected sockets, as soon as all are there; what was noted about them goes to `setup`.
    pub(crate) fn wait(self, setup: &mut ErrorCounts) -> Result<Sockets, LoadError> {
        match self {
            Self::Connected(sockets) => Ok(sockets),
            Self::Accepting(threads) => {
                // All are joined before the first error is told, so that none is left behind.
                let results: Vec<_> = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect();
                results.into_iter().try_fold(Sockets::default(), |all, part| {
                    let (sockets, errors) = part?;
                    setup.take_in(errors);
                    Ok(all.and(sockets))
                })
            }
        }
    }
}
