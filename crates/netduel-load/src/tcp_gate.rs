//! Greeting over TCP. The server takes the trial's client only; strangers, slow and silent peers cost it a bounded amount
//! of memory and time and never block the client. No payload moves here.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_sys::{clock, random, socket, tcp};

use crate::control::{GateOrders, Sockets};
use crate::error::LoadError;
use crate::gate::{self, TURN};
use crate::greeting::{Greeting, LENGTH, Step};
use crate::peer;

/// Peers that were accepted and have not said their greeting. When there are more, the oldest goes: our client speaks at
/// once, a peer that waits is not it.
const PENDING_MAX: usize = 256;
/// How long a peer may take for its 48 bytes.
const GREETING_LIMIT_NS: u64 = 2_000_000_000;
/// Accepted in one turn, so that readable peers get theirs.
const ACCEPTS_IN_A_TURN: usize = 64;

/// A peer that has not said its greeting.
struct Pending {
    stream: TcpStream,
    bytes: [u8; LENGTH],
    filled: usize,
    deadline_ns: u64,
}

/// What became of a pending peer.
enum Heard {
    More,
    Stranger,
    Stream(u32),
}

/// The server's side, run in a thread of its own.
pub(crate) struct TcpGate {
    pub listener: TcpListener,
    pub wake: UnixStream,
    pub orders: Arc<GateOrders>,
    pub token: Token,
    pub streams: usize,
    /// Whether the listener is kept: connections are made while traffic runs.
    pub later: bool,
}

impl TcpGate {
    /// Accepts until all streams are there.
    pub(crate) fn run(mut self) -> Result<Sockets, LoadError> {
        let mut pending: Vec<Pending> = Vec::new();
        let mut accepted: Vec<Option<TcpStream>> = (0..self.streams).map(|_| None).collect();
        loop {
            let connected = accepted.iter().flatten().count();
            if connected == self.streams {
                let tcp = accepted.into_iter().flatten().map(Arc::new).collect();
                return Ok(Sockets { tcp, later: self.keep_listener()?, ..Sockets::default() });
            }
            let descriptors: Vec<_> = [self.wake.as_fd(), self.listener.as_fd()]
                .into_iter()
                .chain(pending.iter().map(|peer| peer.stream.as_fd()))
                .collect();
            let ready = socket::wait_readable(&descriptors, TURN)
                .map_err(|error| LoadError::system("wait for the client's connections", error))?;
            if (ready[0] && !gate::heed_wake(&mut self.wake)) || gate::gave_up(&self.orders) {
                return Err(LoadError::NoClient { connected, expected: self.streams });
            }
            self.hear_pending(&mut pending, &ready[2..], &mut accepted)?;
            if ready[1] {
                self.accept(&mut pending)?;
            }
        }
    }

    /// The listener, blocking, where the workload goes on connecting.
    fn keep_listener(self) -> Result<Option<Arc<TcpListener>>, LoadError> {
        if !self.later {
            return Ok(None);
        }
        let blocking = self.listener.set_nonblocking(false);
        blocking.map_err(|error| LoadError::system("make the listener blocking", error))?;
        Ok(Some(Arc::new(self.listener)))
    }

    fn accept(&self, pending: &mut Vec<Pending>) -> Result<(), LoadError> {
        for _ in 0..ACCEPTS_IN_A_TURN {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The peer went away again, or the kernel reports an error of its connection (accept(2)).
                Err(error) if pending.is_empty() && is_exhaustion(&error) => {
                    return Err(LoadError::system("accept the client's connection", error));
                }
                Err(error) => {
                    if is_exhaustion(&error) {
                        pending.clear();
                    }
                    return Ok(());
                }
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if pending.len() == PENDING_MAX {
                pending.remove(0);
            }
            let deadline_ns = clock::monotonic_ns() + GREETING_LIMIT_NS;
            pending.push(Pending { stream, bytes: [0; LENGTH], filled: 0, deadline_ns });
        }
        Ok(())
    }

    /// Reads from the peers that have something to say, and drops those whose time is over.
    fn hear_pending(
        &self,
        pending: &mut Vec<Pending>,
        ready: &[bool],
        accepted: &mut [Option<TcpStream>],
    ) -> Result<(), LoadError> {
        let now = clock::monotonic_ns();
        let peers = std::mem::take(pending);
        for (mut peer, ready) in peers.into_iter().zip(ready) {
            let heard = if *ready { self.hear(&mut peer)? } else { Heard::More };
            match heard {
                Heard::More if now < peer.deadline_ns => pending.push(peer),
                Heard::More | Heard::Stranger => {}
                Heard::Stream(index) => {
                    if let Some(place) = accepted.get_mut(index as usize).filter(|place| place.is_none())
                        && peer.stream.set_nonblocking(false).is_ok()
                    {
                        *place = Some(peer.stream);
                    }
                }
            }
        }
        Ok(())
    }

    fn hear(&self, peer: &mut Pending) -> Result<Heard, LoadError> {
        match peer.stream.read(&mut peer.bytes[peer.filled..]) {
            Ok(0) => return Ok(Heard::Stranger),
            Ok(count) => peer.filled += count,
            Err(error) if is_transient(&error) => return Ok(Heard::More),
            Err(_) => return Ok(Heard::Stranger),
        }
        if peer.filled < LENGTH {
            return Ok(Heard::More);
        }
        let Some(hello) = Greeting::from_bytes(&peer.bytes) else { return Ok(Heard::Stranger) };
        if hello.step != Step::Hello
            || !hello.proves(self.token, &hello.nonce)
            || hello.stream as usize >= self.streams
        {
            return Ok(Heard::Stranger);
        }
        let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
        let proof = Greeting::new(self.token, Step::Proof, hello.stream, &hello.nonce, nonce);
        // The send buffer of a new connection holds these bytes; if it does not, the peer is not one to wait for.
        let whole = peer.stream.write(&proof.to_bytes()).is_ok_and(|count| count == LENGTH);
        let _ = peer.stream.set_nodelay(true);
        Ok(if whole { Heard::Stream(hello.stream) } else { Heard::Stranger })
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Errors of accept(2) that will come back at once as long as nothing is closed: no descriptor, no memory.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        netduel_sys::error_name::of(error.raw_os_error().unwrap_or(0)),
        Some("EMFILE" | "ENFILE" | "ENOBUFS" | "ENOMEM")
    )
}

/// The client's side of one stream: connects and greets before `deadline_ns`.
pub(crate) fn connect(
    address: SocketAddr,
    congestion: Option<&str>,
    token: Token,
    stream: u32,
    deadline_ns: u64,
) -> Result<TcpStream, LoadError> {
    let mut connection = tcp::connect(address, congestion, left(deadline_ns)).map_err(|error| {
        peer::congestion_error(congestion, error).unwrap_or_else(|error| LoadError::connect(address, error))
    })?;
    let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
    let prepared = connection.set_nodelay(true).and_then(|()| {
        let hello = Greeting::new(token, Step::Hello, stream, &nonce, nonce);
        connection.write_all(&hello.to_bytes())
    });
    prepared.map_err(|error| greeting_error(address, error))?;
    let mut bytes = [0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        let wait = connection.set_read_timeout(Some(left(deadline_ns)));
        wait.map_err(|error| LoadError::system("limit the wait for the greeting", error))?;
        match connection.read(&mut bytes[filled..]) {
            Ok(0) => return Err(LoadError::TokenRefused { address }),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(greeting_error(address, error)),
        }
    }
    let answer = Greeting::from_bytes(&bytes);
    if !answer.is_some_and(|answer| {
        answer.step == Step::Proof && answer.stream == stream && answer.proves(token, &nonce)
    }) {
        return Err(LoadError::NotAnAgent { address });
    }
    let unlimited = connection.set_read_timeout(None);
    unlimited.map_err(|error| LoadError::system("end the limit of the wait", error))?;
    Ok(connection)
}

fn greeting_error(address: SocketAddr, error: io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => LoadError::TokenRefused { address },
        _ => LoadError::connect(address, error),
    }
}

/// Time to `deadline_ns`; never zero, which a socket would take for no limit.
pub(crate) fn left(deadline_ns: u64) -> Duration {
    Duration::from_nanos(deadline_ns.saturating_sub(clock::monotonic_ns()).max(1_000))
}
