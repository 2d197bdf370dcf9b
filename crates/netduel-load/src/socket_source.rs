//! Where an end gets its connected sockets: a client has connected them, a server waits for acceptor threads.
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::sockets::{Accepted, Sockets};
use crate::waker::AcceptorState;

/// The source of the sockets.
pub(crate) enum SocketSource {
    /// They are connected.
    Connected(Sockets),
    /// Threads accept them and do the handshake, one for TCP and one for UDP.
    Accepting(AcceptorThreads),
}

/// The result of an acceptor thread: connected sockets, and the errors and remarks of setting them up.
pub(crate) type AcceptResult = Result<(Accepted, ErrorCounts), LoadError>;

/// The acceptor threads of an end. Dropping them waits until they have ended, because they have its ports: the next trial may need the
/// same ones.
#[derive(Default)]
pub(crate) struct AcceptorThreads {
    /// What they read.
    pub state: Arc<AcceptorState>,
    threads: Vec<JoinHandle<AcceptResult>>,
}

impl AcceptorThreads {
    /// Adds a thread that reads the state.
    pub(crate) fn push(&mut self, thread: JoinHandle<AcceptResult>) {
        self.threads.push(thread);
    }
}

impl Drop for AcceptorThreads {
    fn drop(&mut self) {
        // A thread whose waker is dropped ends at once; this ends the others, too.
        self.state.give_up_ns.store(1, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of the thread is on stderr.
            drop(thread.join());
        }
    }
}

impl SocketSource {
    /// Waits until all sockets are connected. Errors and remarks of setting them up go to `setup`.
    pub(crate) fn wait(self, setup: &mut ErrorCounts) -> Result<Sockets, LoadError> {
        match self {
            Self::Connected(sockets) => Ok(sockets),
            Self::Accepting(mut acceptors) => {
                // All threads are joined before the first error is returned, so that none is left running.
                let results: Vec<_> = acceptors
                    .threads
                    .drain(..)
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect();
                let mut sockets = Sockets::default();
                for result in results {
                    let (accepted, errors) = result?;
                    setup.merge_from(errors);
                    sockets.add(accepted);
                }
                Ok(sockets)
            }
        }
    }
}
