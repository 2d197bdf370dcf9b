//! Handshake over TCP. The server accepts the trial's client only; other, slow and silent peers cost it a bounded amount
//! of memory and time and never block the client. No payload moves here.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::{clock, random, socket, tcp};

use crate::connection_source::ConnectionSource;
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::handshake::{HandshakeMessage, LENGTH, Step};
use crate::listening;
use crate::pending_handshakes::{self, FirstBytes, PendingHandshakes};
use crate::preflight;
use crate::socket_source::AcceptResult;
use crate::sockets::Accepted;
use crate::waker::{self, AcceptorState, POLL_TIMEOUT, remaining};

/// The server's side, run in a thread of its own.
pub(crate) struct TcpAcceptor {
    pub listener: TcpListener,
    pub wake: UnixStream,
    pub state: Arc<AcceptorState>,
    pub token: Token,
    pub streams: usize,
    /// Whether the listener is kept: connections are made while traffic runs.
    pub incoming: bool,
}

impl TcpAcceptor {
    /// Accepts until all streams are connected.
    pub(crate) fn run(mut self) -> AcceptResult {
        let mut pending = PendingHandshakes::default();
        let mut accepted: Vec<Option<TcpStream>> = (0..self.streams).map(|_| None).collect();
        let mut connected = 0;
        let mut first_bytes = Vec::new();
        loop {
            if connected == self.streams {
                let tcp = accepted.into_iter().flatten().map(Arc::new).collect();
                let accepted = Accepted::Streams { tcp, incoming: self.keep_listener()? };
                return Ok((accepted, ErrorCounts::new()));
            }
            let descriptors: Vec<_> =
                [self.wake.as_fd(), self.listener.as_fd()].into_iter().chain(pending.descriptors()).collect();
            let ready = socket::wait_readable(&descriptors, POLL_TIMEOUT)
                .map_err(|error| LoadError::system("wait for the client's connections", error))?;
            if (ready[0] && !waker::drain(&mut self.wake)) || waker::is_timed_out(&self.state) {
                return Err(LoadError::NoClient { connected, expected: self.streams });
            }
            pending.read_ready(&ready[2..], &mut first_bytes);
            if ready[1] {
                pending
                    .accept(&self.listener, &mut first_bytes)
                    .map_err(|error| LoadError::system("accept the client's connection", error))?;
            }
            for first_bytes in first_bytes.drain(..) {
                connected += usize::from(self.place(first_bytes, &mut accepted)?);
            }
        }
    }

    /// The listener, now blocking, when the workload connects while traffic runs.
    fn keep_listener(self) -> Result<Option<Arc<ConnectionSource>>, LoadError> {
        if !self.incoming {
            return Ok(None);
        }
        let blocking = self.listener.set_nonblocking(false);
        blocking.map_err(|error| LoadError::system("make the listener blocking", error))?;
        Ok(Some(Arc::new(ConnectionSource::Listener(self.listener))))
    }

    /// Accepts a stream of the trial's client; other connections are closed.
    fn place(&self, first_bytes: FirstBytes, accepted: &mut [Option<TcpStream>]) -> Result<bool, LoadError> {
        let FirstBytes::Handshake(mut stream, hello) = first_bytes else { return Ok(false) };
        if hello.step != Step::Hello || !hello.proves(self.token, &hello.nonce) {
            return Ok(false);
        }
        let place = accepted.get_mut(hello.stream as usize).filter(|place| place.is_none());
        let Some(place) = place else { return Ok(false) };
        let taken = pending_handshakes::prove(&mut stream, self.token, &hello)?;
        if taken {
            if self.incoming {
                listening::unlimit(&stream)?;
            }
            *place = Some(stream);
        }
        Ok(taken)
    }
}

/// The client's side of one stream: connects and does the handshake before `deadline_ns`. Also returns the time of connect(2),
/// nanoseconds.
pub(crate) fn connect(
    address: SocketAddr,
    (congestion, mss): (Option<&str>, Option<u32>),
    token: Token,
    stream: u32,
    deadline_ns: u64,
    bind: &LocalBind,
) -> Result<(TcpStream, u64), LoadError> {
    let start_ns = clock::monotonic_ns();
    let mut connection =
        tcp::connect(address, congestion, mss, remaining(deadline_ns), bind).map_err(|error| {
            preflight::congestion_error(congestion, error)
                .unwrap_or_else(|error| LoadError::connect_from(bind, address, error))
        })?;
    let connect_ns = clock::monotonic_ns() - start_ns;
    let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
    let prepared = connection.set_nodelay(true).and_then(|()| {
        let hello = HandshakeMessage::new(token, Step::Hello, stream, &nonce, nonce);
        connection.write_all(&hello.to_bytes())
    });
    prepared.map_err(|error| handshake_error(address, error))?;
    let mut bytes = [0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        let wait = connection.set_read_timeout(Some(remaining(deadline_ns)));
        wait.map_err(|error| LoadError::system("limit the wait for the handshake", error))?;
        match connection.read(&mut bytes[filled..]) {
            Ok(0) => return Err(LoadError::TokenRefused { address }),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(handshake_error(address, error)),
        }
    }
    let answer = HandshakeMessage::from_bytes(&bytes);
    if !answer.is_some_and(|answer| {
        answer.step == Step::Proof && answer.stream == stream && answer.proves(token, &nonce)
    }) {
        return Err(LoadError::NotAnAgent { address });
    }
    let unlimited = connection.set_read_timeout(None);
    unlimited.map_err(|error| LoadError::system("remove the receive timeout", error))?;
    Ok((connection, connect_ns))
}

fn handshake_error(address: SocketAddr, error: io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => LoadError::TokenRefused { address },
        _ => LoadError::connect(address, error),
    }
}
