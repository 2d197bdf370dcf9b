//! How an end comes to its connected sockets: the client has them, the server waits for them in a thread.
use std::thread::JoinHandle;

use crate::error::LoadError;
use crate::sockets::Sockets;
use crate::tally::Tally;

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
