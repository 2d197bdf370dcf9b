//! Where TCP peers wait that were accepted and have not said who they are. Whatever they do or do not do costs a bounded
//! number of descriptors and a bounded time, and holds nobody up. Whose a greeting is, and what it gets, others decide.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use netduel_model::ids::Token;
use netduel_sys::{clock, error_name, random, shared_port};

use crate::error::LoadError;
use crate::handshake::{FIRST_BYTE, HandshakeMessage, LENGTH, Step};
use crate::socket_error::is_transient;

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
    address: SocketAddr,
    bytes: [u8; LENGTH],
    filled: usize,
    deadline_ns: u64,
}

/// A peer that has spoken. Its stream does not block.
pub(crate) enum FirstBytes {
    /// It greets; nothing behind the greeting was read.
    Handshake(TcpStream, HandshakeMessage),
    /// It begins with another byte, which was looked at and not read.
    Other(TcpStream, SocketAddr, u8),
}

/// What a pending peer has said so far.
enum ReadProgress {
    Incomplete,
    Invalid,
    Handshake(HandshakeMessage),
    Other(u8),
}

/// The peers that wait.
#[derive(Default)]
pub(crate) struct PendingHandshakes {
    pending: Vec<Pending>,
}

impl PendingHandshakes {
    /// What is to be watched, in the order in which [`Self::hear`] wants the answers.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pending.iter().map(|peer| peer.stream.as_fd())
    }

    /// Whether somebody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Sends all away that wait, for their descriptors.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Lets in those that `listener`, which does not block, has for us.
    ///
    /// # Errors
    /// The kernel's when it has nothing to accept them with and nobody waits here whose place would do, or when it will not accept
    /// for another reason that does not go away by asking again.
    pub(crate) fn accept(&mut self, listener: &TcpListener, said: &mut Vec<FirstBytes>) -> io::Result<()> {
        for _ in 0..ACCEPTS_IN_A_TURN {
            match shared_port::accept(listener) {
                Ok((stream, address)) => self.let_in(stream, address, said),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) if is_exhaustion(&error) && !self.is_empty() => {
                    self.clear();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn let_in(&mut self, stream: TcpStream, address: SocketAddr, said: &mut Vec<FirstBytes>) {
        let deadline_ns = clock::monotonic_ns() + GREETING_LIMIT_NS;
        let peer = Pending { stream, address, bytes: [0; LENGTH], filled: 0, deadline_ns };
        // Our client's greeting follows its connection at once, so it often is there already.
        if let Some(peer) = attend(peer, said) {
            if self.pending.len() == PENDING_MAX {
                self.pending.remove(0);
            }
            self.pending.push(peer);
        }
    }

    /// Reads from the peers that have something to say, and drops those whose time is over.
    pub(crate) fn hear(&mut self, ready: &[bool], said: &mut Vec<FirstBytes>) {
        let now = clock::monotonic_ns();
        let peers = std::mem::take(&mut self.pending);
        for (peer, ready) in peers.into_iter().zip(ready) {
            let peer = if *ready { attend(peer, said) } else { Some(peer) };
            self.pending.extend(peer.filter(|peer| now < peer.deadline_ns));
        }
    }
}

/// Hears one peer, and gives it back when there is more to wait for.
fn attend(mut peer: Pending, said: &mut Vec<FirstBytes>) -> Option<Pending> {
    match hear(&mut peer) {
        ReadProgress::Incomplete => return Some(peer),
        ReadProgress::Invalid => {}
        ReadProgress::Handshake(greeting) => said.push(FirstBytes::Handshake(peer.stream, greeting)),
        ReadProgress::Other(byte) => said.push(FirstBytes::Other(peer.stream, peer.address, byte)),
    }
    None
}

fn hear(peer: &mut Pending) -> ReadProgress {
    let mut first = [0];
    if peer.filled == 0 {
        match peer.stream.peek(&mut first) {
            Ok(1) if first[0] == FIRST_BYTE => {}
            Ok(1) => return ReadProgress::Other(first[0]),
            Err(error) if is_transient(&error) => return ReadProgress::Incomplete,
            Ok(_) | Err(_) => return ReadProgress::Invalid,
        }
    }
    match peer.stream.read(&mut peer.bytes[peer.filled..]) {
        Ok(0) => return ReadProgress::Invalid,
        Ok(count) => peer.filled += count,
        Err(error) if is_transient(&error) => return ReadProgress::Incomplete,
        Err(_) => return ReadProgress::Invalid,
    }
    if peer.filled < LENGTH {
        return ReadProgress::Incomplete;
    }
    HandshakeMessage::from_bytes(&peer.bytes).map_or(ReadProgress::Invalid, ReadProgress::Handshake)
}

/// Answers the greeting of a trial's client; false when the peer does not even take that.
pub(crate) fn prove(
    stream: &mut TcpStream,
    token: Token,
    hello: &HandshakeMessage,
) -> Result<bool, LoadError> {
    let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
    let proof = HandshakeMessage::new(token, Step::Proof, hello.stream, &hello.nonce, nonce);
    // The send buffer of a new connection holds these bytes; if it does not, the peer is not one to wait for.
    let whole = stream.write(&proof.to_bytes()).is_ok_and(|count| count == LENGTH);
    let _ = stream.set_nodelay(true);
    Ok(whole && stream.set_nonblocking(false).is_ok())
}

/// Errors of accept(2) that are over with the connection that they are about: it was taken off the queue, or a signal came.
fn is_of_the_connection(error: &io::Error) -> bool {
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

/// Errors that will come back at once as long as nothing is closed: no descriptor, no memory.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        error_name::of(error.raw_os_error().unwrap_or(0)),
        Some("EMFILE" | "ENFILE" | "ENOBUFS" | "ENOMEM")
    )
}
