//! Where a server accepts the connections that a client makes while traffic runs: its own listener, or an accept queue that a
//! shared port fills.
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netduel_sys::socket::{self, Waiting};

use crate::handshake::LENGTH;

/// An accepted connection.
#[derive(Debug)]
pub(crate) struct IncomingConnection {
    pub stream: TcpStream,
    /// Its first bytes, when the shared port had to read them to find the trial.
    pub head: Option<[u8; LENGTH]>,
}

/// The source of accepted connections.
#[derive(Debug)]
pub(crate) enum ConnectionSource {
    Listener(TcpListener),
    Queue(AcceptQueue),
}

impl ConnectionSource {
    /// The next connection.
    ///
    /// # Errors
    /// An error of accept(2); kind `WouldBlock` when none came within `timeout` (queue) or `SO_RCVTIMEO` (listener);
    /// `EINVAL` after [`Self::shut_down`].
    #[inline]
    pub(crate) fn accept(&self, waiting: Waiting, timeout: Duration) -> io::Result<IncomingConnection> {
        match self {
            Self::Listener(listener) => {
                listener.accept().map(|(stream, _)| IncomingConnection { stream, head: None })
            }
            Self::Queue(queue) => match waiting {
                Waiting::Block => queue.take(timeout),
                Waiting::Never => queue.take(Duration::ZERO),
            },
        }
    }

    /// Wakes all threads that wait for a connection. No further connections are accepted.
    pub(crate) fn shut_down(&self) {
        match self {
            // ENOTCONN: it was shut down before.
            Self::Listener(listener) => drop(socket::shut_down(listener)),
            Self::Queue(queue) => queue.close(),
        }
    }
}

#[derive(Debug)]
struct QueueState {
    connections: VecDeque<IncomingConnection>,
    is_shut_down: bool,
}

/// Accepted connections that wait for a thread of their trial.
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    capacity: usize,
}

impl AcceptQueue {
    /// A queue of up to `capacity` connections.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = QueueState { connections: VecDeque::new(), is_shut_down: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, or closes it when the queue is full or shut down.
    pub(crate) fn add(&self, connection: IncomingConnection) {
        let mut state = self.state();
        if state.connections.len() < self.capacity && !state.is_shut_down {
            state.connections.push_back(connection);
            drop(state);
            self.changed.notify_one();
        }
    }

    fn take(&self, timeout: Duration) -> io::Result<IncomingConnection> {
        let state = self.state();
        let waits = |state: &mut QueueState| state.connections.is_empty() && !state.is_shut_down;
        let (mut state, _) =
            self.changed.wait_timeout_while(state, timeout, waits).unwrap_or_else(PoisonError::into_inner);
        if state.is_shut_down {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        state.connections.pop_front().ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
    }

    fn close(&self) {
        let mut state = self.state();
        state.is_shut_down = true;
        state.connections.clear();
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn connection() -> IncomingConnection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        IncomingConnection { stream, head: None }
    }

    #[test]
    fn full_queue_closes_further_connections() {
        let queue = AcceptQueue::new(2);
        for _ in 0..3 {
            queue.add(connection());
        }
        assert!(queue.take(LONG).is_ok() && queue.take(LONG).is_ok());
        assert_eq!(queue.take(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn shutting_down_a_queue_wakes_all_waiting_threads() {
        let source = ConnectionSource::Queue(AcceptQueue::new(2));
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..3).map(|_| scope.spawn(|| source.accept(Waiting::Block, LONG))).collect();
            source.shut_down();
            for thread in waiting {
                let error = thread.join().unwrap().unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            }
        });
    }
}
