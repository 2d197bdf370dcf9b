//! Where an end gets its connected sockets: a client has connected them, a server waits for acceptor threads.
use std::thread::JoinHandle;

use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::sockets::Sockets;

/// The source of the sockets.
pub(crate) enum SocketSource {
    /// They are connected.
    Connected(Sockets),
    /// Threads accept them and do the handshake, one for TCP and one for UDP.
    Accepting(Vec<JoinHandle<AcceptResult>>),
}

/// The result of an acceptor thread: connected sockets, and the errors and remarks of setting them up.
pub(crate) type AcceptResult = Result<(Sockets, ErrorCounts), LoadError>;

impl SocketSource {
    /// Waits until all sockets are connected. Errors and remarks of setting them up go to `setup`.
    pub(crate) fn wait(self, setup: &mut ErrorCounts) -> Result<Sockets, LoadError> {
        match self {
            Self::Connected(sockets) => Ok(sockets),
            Self::Accepting(threads) => {
                // All threads are joined before the first error is returned, so that none is left running.
                let results: Vec<_> = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect();
                results.into_iter().try_fold(Sockets::default(), |all, part| {
                    let (sockets, errors) = part?;
                    setup.merge_from(errors);
                    Ok(all.and(sockets))
                })
            }
        }
    }
}
