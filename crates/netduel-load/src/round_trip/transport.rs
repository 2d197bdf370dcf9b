//! The client's transport: sends request number n, and reports answered requests. TCP keeps order, so responses are counted; UDP
//! messages carry their number. Time stamps are behind two traits, whose implementation without stamps (`unstamped.rs`) compiles to
//! nothing.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use netduel_model::stamps::StampReport;
use netduel_sys::pattern;
use netduel_sys::socket::{self, Waiting};

use crate::datagram::{self, MESSAGE_HEADER};
use crate::end_markers;
use crate::own_responses::OwnResponses;
use crate::recorder::Trip;
use crate::worker::Worker;

/// Bytes received in one call over TCP, when messages are small.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Sends requests.
pub(crate) trait Requests: Send + 'static {
    /// Sends request `number` at `now_ns`. After `WouldBlock` it was not, or not completely, sent: call again with the same number.
    fn send(&mut self, number: u64, now_ns: u64, waiting: Waiting) -> io::Result<()>;
    /// Signals the end of the requests.
    fn end(&mut self);
}

/// Result of a receive call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// Data, perhaps not a complete response.
    Some,
    /// A message that is not a response, or a duplicate.
    Unexpected,
    /// The end of the stream.
    End,
}

/// Receives responses.
pub(crate) trait Responses: Send + 'static {
    /// Receives once, and calls `answered` with the number of each completed response and whether it is time stamped. `answered`
    /// returns the counted round trip; absent for a request that had timed out.
    fn receive(
        &mut self,
        waiting: Waiting,
        answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received>;
    /// Whether an error ends the exchange. Otherwise the next call may succeed.
    fn is_final(error: &io::Error) -> bool;
    /// The socket.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// Called at the start of the traffic.
    fn begin(&mut self, worker: &mut Worker);
    /// Called at the end of the traffic: the report of the time stamps, when enabled.
    fn finish(self, worker: &mut Worker) -> Option<StampReport>;
}

/// Time stamps of requests.
pub(super) trait SendStamps: Send + 'static {
    /// Before request `number`, or the rest of it, is sent over TCP at `now_ns`. Marks its first byte.
    fn begin_stream(&mut self, number: u64, now_ns: u64, message: &mut [u8]);
    /// Before request `number` is sent over UDP at `now_ns`. Returns the marked number to write into it.
    fn begin_datagram(&mut self, number: u64, now_ns: u64) -> u64;
    /// Sends bytes of the current request.
    ///
    /// # Errors
    /// The error of sendmsg(2).
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], waiting: Waiting) -> io::Result<usize>;
    /// The request was sent completely.
    fn sent(&mut self);
    /// A datagram was not sent.
    fn failed(&mut self, error: &io::Error);
}

/// Receiving with or without time stamps.
pub(super) trait Receiver {
    /// The stamp of one receive call.
    type Stamp: Copy + Default;
    /// Receives once.
    ///
    /// # Errors
    /// The error of recvmsg(2).
    fn receive(
        &self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        waiting: Waiting,
    ) -> io::Result<(usize, Self::Stamp)>;
}

/// Time stamps of responses.
pub(super) trait ReceiveStamps: Receiver + Send + 'static {
    /// Number of first bytes of a response that [`Self::answered`] reads.
    const HEAD_BYTES: usize;
    /// The send time of request `number`; absent when it is not stamped.
    fn sent_ns(&self, number: u64) -> Option<u64>;
    /// Adds the answer to a stamped request: a response that begins with `head`.
    fn answered(&mut self, number: u64, sent_ns: u64, trip: Trip, stamp: Self::Stamp, head: &[u8]);
    /// Called after answers to stamped requests, before the next request is sent.
    fn between(&mut self, socket: BorrowedFd<'_>);
    /// Called at the start of the traffic.
    fn begin(&mut self, worker: &mut Worker);
    /// Called at the end of the traffic.
    fn finish(self, socket: BorrowedFd<'_>, worker: &mut Worker) -> Option<StampReport>;
}

/// Requests over TCP.
pub(super) struct TcpRequests<S> {
    stream: Arc<TcpStream>,
    message: Vec<u8>,
    /// Bytes of the current request that the kernel took.
    taken: usize,
    stamps: S,
}

impl<S: SendStamps> TcpRequests<S> {
    pub(super) fn new(stream: Arc<TcpStream>, size: usize, stamps: S) -> Self {
        Self { stream, message: filled(size), taken: 0, stamps }
    }
}

/// A message of `size` bytes with the pattern of all payload.
pub(crate) fn filled(size: usize) -> Vec<u8> {
    let mut message = vec![0; size];
    pattern::fill(&mut message);
    message
}

impl<S: SendStamps> Requests for TcpRequests<S> {
    #[inline]
    fn send(&mut self, number: u64, now_ns: u64, waiting: Waiting) -> io::Result<()> {
        self.stamps.begin_stream(number, now_ns, &mut self.message);
        while self.taken < self.message.len() {
            self.taken += self.stamps.send(self.stream.as_fd(), &self.message[self.taken..], waiting)?;
        }
        self.taken = 0;
        self.stamps.sent();
        Ok(())
    }

    fn end(&mut self) {
        // ENOTCONN: the peer is gone, which the receiver learns, too.
        let _ = socket::shut_down_sending(&*self.stream);
    }
}

/// Responses over TCP.
pub(super) struct TcpResponses<S> {
    stream: Arc<TcpStream>,
    buffer: Vec<u8>,
    size: usize,
    /// Bytes of the current response that have come, and the first of them.
    partial: usize,
    head: Vec<u8>,
    next: u64,
    stamps: S,
}

impl<S: ReceiveStamps> TcpResponses<S> {
    pub(super) fn new(stream: Arc<TcpStream>, size: usize, stamps: S) -> Self {
        let (buffer, head) = (vec![0; READ_BYTES.max(size)], vec![0; S::HEAD_BYTES]);
        Self { stream, buffer, size, partial: 0, head, next: 0, stamps }
    }
}

impl<S: ReceiveStamps> Responses for TcpResponses<S> {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let (count, stamp) = self.stamps.receive(self.stream.as_fd(), &mut self.buffer, waiting)?;
        if count == 0 {
            return Ok(Received::End);
        }
        let (mut at, mut any_stamped) = (0, false);
        while at < count {
            let take = (self.size - self.partial).min(count - at);
            if S::HEAD_BYTES > 0
                && let Some(head) = self.head.get_mut(self.partial..)
            {
                let length = head.len().min(take);
                head[..length].copy_from_slice(&self.buffer[at..at + length]);
            }
            self.partial += take;
            at += take;
            if self.partial < self.size {
                break;
            }
            self.partial = 0;
            let number = self.next;
            self.next += 1;
            let sent_ns = self.stamps.sent_ns(number);
            let trip = answered(number, sent_ns.is_some());
            if let (Some(sent_ns), Some(trip)) = (sent_ns, trip) {
                // The stamp belongs to the last byte read. When more data followed, it is not that of this response.
                let stamp = if at == count { stamp } else { S::Stamp::default() };
                self.stamps.answered(number, sent_ns, trip, stamp, &self.head);
                any_stamped = true;
            }
        }
        if any_stamped {
            self.stamps.between(self.stream.as_fd());
        }
        Ok(Received::Some)
    }

    fn is_final(_: &io::Error) -> bool {
        true
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn begin(&mut self, worker: &mut Worker) {
        self.stamps.begin(worker);
    }

    fn finish(self, worker: &mut Worker) -> Option<StampReport> {
        self.stamps.finish(self.stream.as_fd(), worker)
    }
}

/// Requests over UDP.
pub(super) struct UdpRequests<S> {
    socket: Arc<UdpSocket>,
    message: Vec<u8>,
    magic: u64,
    end_magic: u64,
    stamps: S,
}

impl<S: SendStamps> UdpRequests<S> {
    pub(super) fn new(socket: Arc<UdpSocket>, size: usize, magic: u64, end_magic: u64, stamps: S) -> Self {
        Self { socket, message: filled(size), magic, end_magic, stamps }
    }
}

impl<S: SendStamps> Requests for UdpRequests<S> {
    #[inline]
    fn send(&mut self, number: u64, now_ns: u64, waiting: Waiting) -> io::Result<()> {
        let number = self.stamps.begin_datagram(number, now_ns);
        datagram::write_number(&mut self.message, self.magic, number);
        match self.stamps.send(self.socket.as_fd(), &self.message, waiting) {
            Ok(_) => {
                self.stamps.sent();
                Ok(())
            }
            Err(error) => {
                self.stamps.failed(&error);
                Err(error)
            }
        }
    }

    fn end(&mut self) {
        end_markers::send(|| std::iter::once((&*self.socket, self.end_magic)));
    }
}

/// Responses over UDP.
pub(super) struct UdpResponses<S> {
    socket: Arc<UdpSocket>,
    buffer: Vec<u8>,
    own: OwnResponses,
    stamps: S,
}

impl<S: ReceiveStamps> UdpResponses<S> {
    pub(super) fn new(socket: Arc<UdpSocket>, size: usize, magic: u64, stamps: S) -> Self {
        Self { socket, buffer: vec![0; size], own: OwnResponses::new(magic, size), stamps }
    }
}

impl<S: ReceiveStamps> Responses for UdpResponses<S> {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let (length, stamp) = self.stamps.receive(self.socket.as_fd(), &mut self.buffer, waiting)?;
        // A longer message is truncated to the buffer; its length is not.
        let Some(payload) = self.buffer.get(..length) else { return Ok(Received::Unexpected) };
        let Some(number) = self.own.number(payload) else { return Ok(Received::Unexpected) };
        let sent_ns = self.stamps.sent_ns(number);
        let trip = answered(number, sent_ns.is_some());
        if let (Some(sent_ns), Some(trip)) = (sent_ns, trip) {
            let head = payload.get(MESSAGE_HEADER..MESSAGE_HEADER + S::HEAD_BYTES).unwrap_or_default();
            self.stamps.answered(number, sent_ns, trip, stamp, head);
            self.stamps.between(self.socket.as_fd());
        }
        Ok(Received::Some)
    }

    fn is_final(error: &io::Error) -> bool {
        // ECONNREFUSED: no socket has the port of the peer. Other errors of the path may pass.
        error.kind() == io::ErrorKind::ConnectionRefused
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn begin(&mut self, worker: &mut Worker) {
        self.stamps.begin(worker);
    }

    fn finish(self, worker: &mut Worker) -> Option<StampReport> {
        self.stamps.finish(self.socket.as_fd(), worker)
    }
}
