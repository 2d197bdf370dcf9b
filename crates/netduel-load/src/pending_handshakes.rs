//! Accepted TCP connections that have not completed the handshake. Their number and their time are bounded, and none of them blocks
//! another. The caller decides which trial a handshake message belongs to.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use netduel_model::ids::Token;
use netduel_sys::{clock, error_name, random, shared_port, socket};

use crate::error::LoadError;
use crate::handshake::{FIRST_BYTE, HandshakeMessage, LENGTH, Step};
use crate::source::Source;

/// Connections without a handshake message. When there are more, the oldest of the source with the most is closed: a client of netduel
/// sends its message at once, and a flood from one address keeps no client of another address out.
const PENDING_MAX: usize = 256;
/// How long a peer may take to send its 48 bytes, nanoseconds: as long as a client may take to connect, because one whose host is busy
/// sends them late. What strangers cost is bounded by [`PENDING_MAX`], and a connection that is closed for it is that of a flood.
const GREETING_LIMIT_NS: u64 = 10_000_000_000;
/// Connections accepted per turn, so that a flood of them does not starve those that are readable.
const ACCEPTS_PER_TURN: usize = 64;

/// A connection without a complete handshake message.
struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    bytes: [u8; LENGTH],
    filled: usize,
    deadline_ns: u64,
}

impl Pending {
    fn source(&self) -> Source {
        Source::of(self.address.ip())
    }
}

/// What a connection begins with. Its stream does not block.
pub(crate) enum FirstBytes {
    /// A handshake message; no byte after it was read.
    Handshake(TcpStream, HandshakeMessage),
    /// Another first byte, which was peeked and not read.
    Other(TcpStream, SocketAddr, u8),
}

/// How far the first message of a connection is.
enum ReadProgress {
    Incomplete,
    Invalid,
    Handshake(HandshakeMessage),
    Other(u8),
}

/// The connections without a complete handshake message.
#[derive(Default)]
pub(crate) struct PendingHandshakes {
    pending: Vec<Pending>,
}

impl PendingHandshakes {
    /// The descriptors to poll, in the order in which [`Self::read_ready`] expects their readiness.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pending.iter().map(|peer| peer.stream.as_fd())
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Closes all of the source with the most, to free their descriptors.
    pub(crate) fn close_largest_source(&mut self) {
        if let Some(largest) = self.largest_source() {
            self.pending.retain(|peer| peer.source() != largest);
        }
    }

    fn largest_source(&self) -> Option<Source> {
        Source::most_frequent(self.pending.iter().map(Pending::source))
    }

    /// Accepts the connections of `listener`, which does not block.
    ///
    /// # Errors
    /// An error of accept(2) that a retry does not solve: no descriptors or memory while no pending connection could be closed for it,
    /// or a fault of the listener.
    pub(crate) fn accept(
        &mut self,
        listener: &TcpListener,
        first_bytes: &mut Vec<FirstBytes>,
    ) -> io::Result<()> {
        for _ in 0..ACCEPTS_PER_TURN {
            match shared_port::accept(listener) {
                Ok((stream, address)) => self.add(stream, address, first_bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_connection_error(&error) => {}
                Err(error) if is_exhaustion(&error) && !self.is_empty() => {
                    self.close_largest_source();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn add(&mut self, stream: TcpStream, address: SocketAddr, first_bytes: &mut Vec<FirstBytes>) {
        let deadline_ns = clock::monotonic_ns() + GREETING_LIMIT_NS;
        let peer = Pending { stream, address, bytes: [0; LENGTH], filled: 0, deadline_ns };
        // A client sends its message right after connecting, so it has often arrived.
        if let Some(peer) = read_or_keep(peer, first_bytes) {
            if self.pending.len() == PENDING_MAX
                && let Some(largest) = self.largest_source()
                && let Some(oldest) = self.pending.iter().position(|peer| peer.source() == largest)
            {
                self.pending.remove(oldest);
            }
            self.pending.push(peer);
        }
    }

    /// Reads from the readable connections, and closes those beyond their deadline. One without readiness is not readable: the wait may have
    /// failed.
    pub(crate) fn read_ready(&mut self, ready: &[bool], first_bytes: &mut Vec<FirstBytes>) {
        let now = clock::monotonic_ns();
        let peers = std::mem::take(&mut self.pending);
        let ready = ready.iter().copied().chain(std::iter::repeat(false));
        for (peer, ready) in peers.into_iter().zip(ready) {
            let peer = if ready { read_or_keep(peer, first_bytes) } else { Some(peer) };
            self.pending.extend(peer.filter(|peer| now < peer.deadline_ns));
        }
    }
}

/// Reads from one connection, and returns it while its message is incomplete.
fn read_or_keep(mut peer: Pending, first_bytes: &mut Vec<FirstBytes>) -> Option<Pending> {
    match read_progress(&mut peer) {
        ReadProgress::Incomplete => return Some(peer),
        ReadProgress::Invalid => {}
        ReadProgress::Handshake(message) => first_bytes.push(FirstBytes::Handshake(peer.stream, message)),
        ReadProgress::Other(byte) => first_bytes.push(FirstBytes::Other(peer.stream, peer.address, byte)),
    }
    None
}

fn read_progress(peer: &mut Pending) -> ReadProgress {
    let mut first = [0];
    if peer.filled == 0 {
        match peer.stream.peek(&mut first) {
            Ok(1) if first[0] == FIRST_BYTE => {}
            Ok(1) => return ReadProgress::Other(first[0]),
            Err(error) if socket::is_transient(&error) => return ReadProgress::Incomplete,
            Ok(_) | Err(_) => return ReadProgress::Invalid,
        }
    }
    match peer.stream.read(&mut peer.bytes[peer.filled..]) {
        Ok(0) => return ReadProgress::Invalid,
        Ok(count) => peer.filled += count,
        Err(error) if socket::is_transient(&error) => return ReadProgress::Incomplete,
        Err(_) => return ReadProgress::Invalid,
    }
    if peer.filled < LENGTH {
        return ReadProgress::Incomplete;
    }
    HandshakeMessage::from_bytes(&peer.bytes).map_or(ReadProgress::Invalid, ReadProgress::Handshake)
}

/// Sends the proof that this end knows the token; false when the connection does not take it.
pub(crate) fn prove(
    stream: &mut TcpStream,
    token: Token,
    hello: &HandshakeMessage,
) -> Result<bool, LoadError> {
    let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
    let proof = HandshakeMessage::new(token, Step::Proof, hello.stream, &hello.nonce, nonce);
    // The send buffer of a new connection has room for these bytes.
    let whole = stream.write(&proof.to_bytes()).is_ok_and(|count| count == LENGTH);
    let _ = stream.set_nodelay(true);
    Ok(whole && stream.set_nonblocking(false).is_ok())
}

/// Errors of accept(2) that concern one connection, which the call has removed from the queue, or a signal.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error_name::of(error.raw_os_error().unwrap_or(0)),
        Some(
            "ECONNABORTED"
                | "EINTR"
                | "EPERM"
                | "EPROTO"
                | "ENETDOWN"
                | "ENOPROTOOPT"
                | "EHOSTDOWN"
                | "ENONET"
                | "EHOSTUNREACH"
                | "EOPNOTSUPP"
                | "ENETUNREACH"
        )
    )
}

/// Errors that persist until a descriptor or memory is freed.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        error_name::of(error.raw_os_error().unwrap_or(0)),
        Some("EMFILE" | "ENFILE" | "ENOBUFS" | "ENOMEM")
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn connections_are_kept_when_the_wait_for_them_failed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let clients = [(); 3].map(|()| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (mut pending, mut first_bytes) = (PendingHandshakes::default(), Vec::new());
        for _ in &clients {
            let (stream, address) = shared_port::accept(&listener).unwrap();
            pending.add(stream, address, &mut first_bytes);
        }
        pending.read_ready(&[], &mut first_bytes);
        assert_eq!((pending.descriptors().count(), first_bytes.len()), (3, 0));
    }
}
