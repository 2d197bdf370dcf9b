//! Waits for the streams that a shared port assigns to a trial.
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use netduel_sys::socket;

use super::registry::Stream;
use crate::connection_source::ConnectionSource;
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::socket_source::AcceptResult;
use crate::sockets::Accepted;
use crate::waker::{self, AcceptorState, POLL_TIMEOUT};

/// The counterpart of [`crate::tcp_acceptor::TcpAcceptor`] on a shared port, in a thread of its own.
pub(super) struct StreamCollector {
    /// Each comes with a byte on `wake`, and so does the end.
    pub arrivals: Receiver<Stream>,
    pub wake: UnixStream,
    pub state: Arc<AcceptorState>,
    pub expected: usize,
    pub incoming: Option<Arc<ConnectionSource>>,
}

impl StreamCollector {
    /// Waits until all streams are connected. The port delivers each index once.
    pub(super) fn run(mut self) -> AcceptResult {
        let mut streams: Vec<Option<Arc<TcpStream>>> = vec![None; self.expected];
        let mut connected = 0;
        loop {
            let end = loop {
                match self.arrivals.try_recv() {
                    Ok((index, stream)) => {
                        streams[index] = Some(Arc::new(stream));
                        connected += 1;
                    }
                    Err(end) => break end,
                }
            };
            if connected == self.expected {
                let tcp = streams.into_iter().flatten().collect();
                let accepted = Accepted::Streams { tcp, incoming: self.incoming };
                return Ok((accepted, ErrorCounts::new()));
            }
            let ready = socket::wait_readable(&[self.wake.as_fd()], POLL_TIMEOUT)
                .map_err(|error| LoadError::system("wait for the client's connections", error))?;
            let is_abandoned = ready[0] && !waker::drain(&mut self.wake);
            if is_abandoned || waker::is_timed_out(&self.state) || end == TryRecvError::Disconnected {
                return Err(LoadError::NoClient { connected, expected: self.expected });
            }
        }
    }
}
