//! The client's side of the wire: sending request number n, and learning which requests were answered. TCP keeps order,
//! so responses are counted; UDP messages carry their number.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use netduel_model::stamps::StampReport;
use netduel_sys::pattern;
use netduel_sys::socket::{self, Waiting};

use crate::accounting::{Accounting, Arrival};
use crate::datagram;
use crate::markers;
use crate::recorder::Trip;
use crate::worker::Worker;

/// Bytes that a TCP end takes in one call, when messages are small.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Sends requests.
pub(crate) trait Requests: Send + 'static {
    /// Sends request `number`, at `now_ns`. `WouldBlock` means that it was not sent, or not all of it: call again with the
    /// same number.
    fn send(&mut self, number: u64, now_ns: u64, waiting: Waiting) -> io::Result<()>;
    /// No more requests come.
    fn end(&mut self);
    /// The name of the system call, for counting errors.
    fn call(&self) -> &'static str;
}

/// What a receive call gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// Something, perhaps not a whole response.
    Some,
    /// A message that is no response, or one that had come before.
    Strange,
    /// The end of the stream.
    End,
}

/// Receives responses.
pub(crate) trait Responses: Send + 'static {
    /// Receives once, and calls `answered` with the number of each request whose response is whole now, and whether it is time
    /// stamped. `answered` tells what it counted; nothing for a request that was given up.
    fn receive(
        &mut self,
        waiting: Waiting,
        answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received>;
    /// Whether an error ends the exchange; otherwise it is one that the next call may not meet.
    fn is_final(error: &io::Error) -> bool;
    /// The socket.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// The traffic begins.
    fn begin(&mut self, _: &mut Worker) {}
    /// It is over: what the stamps of the responses say, where they have some.
    fn finish(self, _: &mut Worker) -> Option<StampReport>
    where
        Self: Sized,
    {
        None
    }
}

/// Requests over TCP.
pub(crate) struct TcpRequests {
    stream: Arc<TcpStream>,
    message: Vec<u8>,
    /// Bytes of the current request that the kernel took.
    taken: usize,
}

impl TcpRequests {
    pub(crate) fn new(stream: Arc<TcpStream>, size: usize) -> Self {
        let mut message = vec![0; size];
        pattern::fill(&mut message);
        Self { stream, message, taken: 0 }
    }
}

impl Requests for TcpRequests {
    #[inline]
    fn send(&mut self, _: u64, _: u64, waiting: Waiting) -> io::Result<()> {
        while self.taken < self.message.len() {
            self.taken += socket::send(&*self.stream, &self.message[self.taken..], waiting)?;
        }
        self.taken = 0;
        Ok(())
    }

    fn end(&mut self) {
        // ENOTCONN: the peer is gone, which the receiver learns, too.
        let _ = socket::shut_down_sending(&*self.stream);
    }

    fn call(&self) -> &'static str {
        "send"
    }
}

/// Responses over TCP.
pub(crate) struct TcpResponses {
    stream: Arc<TcpStream>,
    buffer: Vec<u8>,
    size: usize,
    /// Bytes of the current response that have come.
    partial: usize,
    next: u64,
}

impl TcpResponses {
    pub(crate) fn new(stream: Arc<TcpStream>, size: usize) -> Self {
        Self { stream, buffer: vec![0; READ_BYTES.max(size)], size, partial: 0, next: 0 }
    }
}

impl Responses for TcpResponses {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let count = socket::receive(&*self.stream, &mut self.buffer, waiting)?;
        if count == 0 {
            return Ok(Received::End);
        }
        self.partial += count;
        while self.partial >= self.size {
            self.partial -= self.size;
            answered(self.next, false);
            self.next += 1;
        }
        Ok(Received::Some)
    }

    fn is_final(_: &io::Error) -> bool {
        true
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Requests over UDP.
pub(crate) struct UdpRequests {
    socket: Arc<UdpSocket>,
    message: Vec<u8>,
    magic: u64,
    end_magic: u64,
}

impl UdpRequests {
    pub(crate) fn new(socket: Arc<UdpSocket>, size: usize, magic: u64, end_magic: u64) -> Self {
        let mut message = vec![0; size];
        pattern::fill(&mut message);
        Self { socket, message, magic, end_magic }
    }
}

impl Requests for UdpRequests {
    #[inline]
    fn send(&mut self, number: u64, _: u64, waiting: Waiting) -> io::Result<()> {
        datagram::write_number(&mut self.message, self.magic, number);
        socket::send(&*self.socket, &self.message, waiting).map(|_| ())
    }

    fn end(&mut self) {
        markers::send(|| std::iter::once((&*self.socket, self.end_magic)));
    }

    fn call(&self) -> &'static str {
        "send"
    }
}

/// Responses over UDP.
pub(crate) struct UdpResponses {
    socket: Arc<UdpSocket>,
    buffer: Vec<u8>,
    size: usize,
    magic: u64,
    /// Tells a response that the path duplicated.
    seen: Accounting,
}

impl UdpResponses {
    pub(crate) fn new(socket: Arc<UdpSocket>, size: usize, magic: u64) -> Self {
        Self { socket, buffer: vec![0; size], size, magic, seen: Accounting::new() }
    }
}

impl Responses for UdpResponses {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let length = socket::receive(&*self.socket, &mut self.buffer, waiting)?;
        let payload = &self.buffer[..length.min(self.size)];
        if length != self.size || datagram::read_magic(payload) != Some(self.magic) {
            return Ok(Received::Strange);
        }
        match datagram::read_number(payload) {
            Some(number) if matches!(self.seen.arrive(number), Arrival::InOrder | Arrival::Reordered) => {
                answered(number, false);
                Ok(Received::Some)
            }
            _ => Ok(Received::Strange),
        }
    }

    fn is_final(error: &io::Error) -> bool {
        // Nobody listens at the peer's port; other errors are of the path and may pass.
        error.kind() == io::ErrorKind::ConnectionRefused
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
