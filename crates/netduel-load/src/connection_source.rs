//! Where the connections of a workload come in that it makes while traffic runs: a listener of its own, or a queue that a port
//! fills that many trials share.
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netduel_sys::socket::{self, Waiting};

use crate::handshake::LENGTH;

/// A connection that came in.
#[derive(Debug)]
pub(crate) struct IncomingConnection {
    pub stream: TcpStream,
    /// Its first bytes, where they had to be read to know whose it is.
    pub head: Option<[u8; LENGTH]>,
}

/// Where they come in.
#[derive(Debug)]
pub(crate) enum ConnectionSource {
    Listener(TcpListener),
    Queue(AcceptQueue),
}

impl ConnectionSource {
    /// The next connection.
    ///
    /// # Errors
    /// What accept(2) says; kind `WouldBlock` when none came within `patience` (of a queue) or the listener's own limit;
    /// `EINVAL` after [`Self::shut_down`].
    #[inline]
    pub(crate) fn accept(&self, waiting: Waiting, patience: Duration) -> io::Result<IncomingConnection> {
        match self {
            Self::Listener(listener) => {
                listener.accept().map(|(stream, _)| IncomingConnection { stream, head: None })
            }
            Self::Queue(queue) => match waiting {
                Waiting::Block => queue.take(patience),
                Waiting::Never => queue.take(Duration::ZERO),
            },
        }
    }

    /// Wakes all that wait for a connection, for good.
    pub(crate) fn shut_down(&self) {
        match self {
            // ENOTCONN: it was done before.
            Self::Listener(listener) => drop(socket::shut_down(listener)),
            Self::Queue(queue) => queue.close(),
        }
    }
}

#[derive(Debug)]
struct Line {
    newcomers: VecDeque<IncomingConnection>,
    is_closed: bool,
}

/// Connections that wait for a thread of their trial.
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    line: Mutex<Line>,
    changed: Condvar,
    most: usize,
}

impl AcceptQueue {
    /// A queue in which `most` may wait.
    pub(crate) fn new(most: usize) -> Self {
        let line = Line { newcomers: VecDeque::new(), is_closed: false };
        Self { line: Mutex::new(line), changed: Condvar::new(), most }
    }

    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, or closes it when too many wait already or none are taken any more.
    pub(crate) fn add(&self, newcomer: IncomingConnection) {
        let mut line = self.line();
        if line.newcomers.len() < self.most && !line.is_closed {
            line.newcomers.push_back(newcomer);
            drop(line);
            self.changed.notify_one();
        }
    }

    fn take(&self, patience: Duration) -> io::Result<IncomingConnection> {
        let line = self.line();
        let waits = |line: &mut Line| line.newcomers.is_empty() && !line.is_closed;
        let (mut line, _) =
            self.changed.wait_timeout_while(line, patience, waits).unwrap_or_else(PoisonError::into_inner);
        if line.is_closed {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        line.newcomers.pop_front().ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
    }

    fn close(&self) {
        let mut line = self.line();
        line.is_closed = true;
        line.newcomers.clear();
        drop(line);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn newcomer() -> IncomingConnection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        IncomingConnection { stream, head: None }
    }

    #[test]
    fn a_queue_gives_what_was_added_and_closes_what_is_too_much() {
        let queue = AcceptQueue::new(2);
        for _ in 0..3 {
            queue.add(newcomer());
        }
        assert!(queue.take(LONG).is_ok() && queue.take(LONG).is_ok());
        assert_eq!(queue.take(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn closing_a_queue_wakes_all_that_wait() {
        let later = ConnectionSource::Queue(AcceptQueue::new(2));
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..3).map(|_| scope.spawn(|| later.accept(Waiting::Block, LONG))).collect();
            later.shut_down();
            for thread in waiting {
                let error = thread.join().unwrap().unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            }
        });
    }
}
