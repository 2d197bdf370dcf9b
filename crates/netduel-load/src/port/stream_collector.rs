//! Where a trial waits for the streams that its port finds for it.
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
use crate::sockets::Sockets;
use crate::waker::{self, AcceptorState, TURN};

/// Run in a thread of its own, as [`crate::tcp_acceptor::TcpAcceptor`] is.
pub(super) struct StreamCollector {
    /// Each is announced by a byte on `wake`, and so is the end.
    pub arrivals: Receiver<Stream>,
    pub wake: UnixStream,
    pub orders: Arc<AcceptorState>,
    pub expected: usize,
    pub later: Option<Arc<ConnectionSource>>,
}

impl StreamCollector {
    /// Waits until all streams are there. The port gives each index once.
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
                return Ok((Sockets { tcp, later: self.later, ..Sockets::default() }, ErrorCounts::new()));
            }
            let ready = socket::wait_readable(&[self.wake.as_fd()], TURN)
                .map_err(|error| LoadError::system("wait for the client's connections", error))?;
            let is_abandoned = ready[0] && !waker::drain(&mut self.wake);
            if is_abandoned || waker::is_timed_out(&self.orders) || end == TryRecvError::Disconnected {
                return Err(LoadError::NoClient { connected, expected: self.expected });
            }
        }
    }
}
