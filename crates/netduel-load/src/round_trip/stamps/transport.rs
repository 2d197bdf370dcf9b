//! The client's side of the wire with time stamps: as `round_trip/transport.rs`, and what is stamped goes to the collector.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use netduel_model::stamps::StampReport;
use netduel_sys::pattern;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::timestamping::{self, Stamp};

use super::collector::Collector;
use super::keys::{Keys, enable_datagrams, enable_stream};
use super::ledger::{Ledger, Sampler};
use super::times::{
    ANNOUNCED_BIT, ANNOUNCED_BYTE, STAMPED_BIT, STAMPED_BYTE, TIMES_BYTES, Times, carries_times,
};
use crate::accounting::{Accounting, Arrival};
use crate::datagram::{self, MESSAGE_HEADER};
use crate::markers;
use crate::recorder::Trip;
use crate::round_trip::settings::Settings;
use crate::round_trip::transport::{READ_BYTES, Received, Requests, Responses};
use crate::worker::Worker;

/// Transmit stamps that are read after a response at most: the kernel's and the NIC's of a few requests.
const QUEUE_READS_MOST: usize = 8;
/// Transmit stamps that are read at the end at most.
const LAST_READS_MOST: usize = 1024;

/// Both sides of a client over TCP.
pub(in crate::round_trip) fn tcp_client(
    stream: &Arc<TcpStream>,
    settings: Settings,
) -> (TcpRequests, TcpResponses) {
    let size = settings.size;
    let book = Book::new(enable_stream(stream), settings, true);
    let mut message = vec![0; size];
    pattern::fill(&mut message);
    let requests = TcpRequests {
        stream: Arc::clone(stream),
        message,
        taken: 0,
        is_stamped: false,
        index: 0,
        sampler: Sampler::default(),
        ledger: Arc::clone(&book.ledger),
    };
    let responses = TcpResponses {
        stream: Arc::clone(stream),
        buffer: vec![0; READ_BYTES.max(size)],
        size,
        partial: 0,
        head: [0; TIMES_BYTES],
        next: 0,
        book,
    };
    (requests, responses)
}

/// Both sides of a client over UDP.
pub(in crate::round_trip) fn udp_client(
    socket: &Arc<UdpSocket>,
    settings: Settings,
    (request, response, end): (u64, u64, u64),
) -> (UdpRequests, UdpResponses) {
    let size = settings.size;
    let book = Book::new(enable_datagrams(socket), settings, false);
    let mut message = vec![0; size];
    pattern::fill(&mut message);
    let requests = UdpRequests {
        socket: Arc::clone(socket),
        message,
        magic: request,
        end_magic: end,
        index: 0,
        sampler: Sampler::default(),
        ledger: Arc::clone(&book.ledger),
    };
    let responses = UdpResponses {
        socket: Arc::clone(socket),
        buffer: vec![0; size],
        size,
        magic: response,
        seen: Accounting::new(),
        book,
    };
    (requests, responses)
}

/// What both transports' receiving sides need.
struct Book {
    ledger: Arc<Ledger>,
    collector: Collector,
    settings: Settings,
    keys: Keys,
    is_stream: bool,
    /// Receive stamps are asked for with every call: another thread may send a stamped request while this one waits.
    always: bool,
    /// Stamped requests that were answered.
    answered: u64,
    failure: Option<(&'static str, io::Error)>,
}

impl Book {
    fn new(enabled: io::Result<Keys>, settings: Settings, is_stream: bool) -> Self {
        let ledger = Arc::new(Ledger::new(settings.outstanding, settings.rate));
        let open_loop = settings.rate.is_some();
        let collector = Collector::new(ledger.places(), open_loop, carries_times(settings.size, is_stream));
        let (keys, failure) = match enabled {
            Ok(keys) => (keys, None),
            Err(error) => (Keys::of_datagrams(), Some(("setsockopt SO_TIMESTAMPING", error))),
        };
        Self { ledger, collector, settings, keys, is_stream, always: open_loop, answered: 0, failure }
    }

    /// Receives with the stamp when a stamped response may come.
    #[inline]
    fn receive(&self, socket: impl AsFd, buffer: &mut [u8], waiting: Waiting) -> io::Result<(usize, Stamp)> {
        if self.always || self.ledger.count() != self.answered {
            timestamping::receive(socket, buffer, waiting)
        } else {
            socket::receive(socket, buffer, waiting).map(|length| (length, Stamp::default()))
        }
    }

    /// Takes transmit stamps off the error queue: the response is here, the next request has not left.
    fn drain(&mut self, socket: impl AsFd, most: usize) {
        if self.ledger.take_failure() {
            self.keys.forget();
        }
        let Self { ledger, collector, keys, is_stream, settings, .. } = self;
        let size = settings.size as u64;
        let result = timestamping::transmitted(socket, most, |transmitted| {
            let number = match keys.position(transmitted.key, ledger.last_position()) {
                Some(end) if *is_stream => (end > 0 && end % size == 0).then(|| end / size - 1),
                Some(index) => Some(ledger.number(index)),
                None => None,
            };
            // A part of a message that was sent in several calls has a stamp of its own, and is no message.
            match number.filter(|number| ledger.sent_ns(*number).is_some()) {
                Some(number) if collector.transmitted(number, transmitted.stamp) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        if let Err(error) = result {
            self.failure = Some(("recvmsg MSG_ERRQUEUE", error));
        }
    }

    fn begin(&mut self, worker: &mut Worker) {
        self.collector.begin(worker.control.started_ns(), self.settings.timing);
    }

    fn finish(mut self, socket: impl AsFd, worker: &mut Worker) -> StampReport {
        self.drain(socket, LAST_READS_MOST);
        if let Some((call, error)) = &self.failure {
            worker.tally.count(call, error);
        }
        self.collector.finish()
    }
}

/// Requests over TCP.
pub(in crate::round_trip) struct TcpRequests {
    stream: Arc<TcpStream>,
    message: Vec<u8>,
    /// Bytes of the current request that the kernel took, and whether it is stamped.
    taken: usize,
    is_stamped: bool,
    /// Stamped requests that were sent.
    index: u64,
    sampler: Sampler,
    ledger: Arc<Ledger>,
}

impl Requests for TcpRequests {
    #[inline]
    fn send(&mut self, number: u64, now_ns: u64, waiting: Waiting) -> io::Result<()> {
        if self.taken == 0 {
            let choice = self.sampler.choose(number, now_ns);
            self.is_stamped = choice.is_stamped;
            self.message[0] = if choice.is_stamped { STAMPED_BYTE } else { 0 }
                | if choice.announces { ANNOUNCED_BYTE } else { 0 };
        }
        if self.is_stamped {
            let end = (number + 1) * self.message.len() as u64;
            self.ledger.note(number, now_ns, end, self.index);
        }
        while self.taken < self.message.len() {
            let rest = &self.message[self.taken..];
            self.taken += if self.is_stamped {
                timestamping::send(&*self.stream, rest, waiting)?
            } else {
                socket::send(&*self.stream, rest, waiting)?
            };
        }
        self.taken = 0;
        self.index += u64::from(self.is_stamped);
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
pub(in crate::round_trip) struct TcpResponses {
    stream: Arc<TcpStream>,
    buffer: Vec<u8>,
    size: usize,
    /// Bytes of the current response that have come, and the first of them.
    partial: usize,
    head: [u8; TIMES_BYTES],
    next: u64,
    book: Book,
}

impl Responses for TcpResponses {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let (count, stamp) = self.book.receive(&*self.stream, &mut self.buffer, waiting)?;
        if count == 0 {
            return Ok(Received::End);
        }
        let (mut at, before) = (0, self.book.answered);
        while at < count {
            let take = (self.size - self.partial).min(count - at);
            if let Some(head) = self.head.get_mut(self.partial..) {
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
            let sent_ns = self.book.ledger.sent_ns(number);
            let trip = answered(number, sent_ns.is_some());
            if let (Some(sent_ns), Some(trip)) = (sent_ns, trip) {
                // The stamp is that of the last byte in the queue. When more was there, it is not this response's.
                let stamp = if at == count { stamp } else { Stamp::default() };
                self.book.answered += 1;
                self.book.collector.answered(number, sent_ns, trip, stamp, Times::read(&self.head));
            }
        }
        if self.book.answered != before {
            self.book.drain(&*self.stream, QUEUE_READS_MOST);
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
        self.book.begin(worker);
    }

    fn finish(self, worker: &mut Worker) -> Option<StampReport> {
        Some(self.book.finish(&*self.stream, worker))
    }
}

/// Requests over UDP.
pub(in crate::round_trip) struct UdpRequests {
    socket: Arc<UdpSocket>,
    message: Vec<u8>,
    magic: u64,
    end_magic: u64,
    /// Stamped requests that were sent.
    index: u64,
    sampler: Sampler,
    ledger: Arc<Ledger>,
}

impl Requests for UdpRequests {
    #[inline]
    fn send(&mut self, number: u64, now_ns: u64, waiting: Waiting) -> io::Result<()> {
        let choice = self.sampler.choose(number, now_ns);
        let flagged = number
            | if choice.is_stamped { STAMPED_BIT } else { 0 }
            | if choice.announces { ANNOUNCED_BIT } else { 0 };
        datagram::write_number(&mut self.message, self.magic, flagged);
        if !choice.is_stamped {
            return socket::send(&*self.socket, &self.message, waiting).map(|_| ());
        }
        self.ledger.note(number, now_ns, self.index, self.index);
        let result = timestamping::send(&*self.socket, &self.message, waiting);
        match &result {
            Ok(_) => self.index += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.ledger.fail(),
        }
        result.map(|_| ())
    }

    fn end(&mut self) {
        markers::send(|| std::iter::once((&*self.socket, self.end_magic)));
    }

    fn call(&self) -> &'static str {
        "send"
    }
}

/// Responses over UDP.
pub(in crate::round_trip) struct UdpResponses {
    socket: Arc<UdpSocket>,
    buffer: Vec<u8>,
    size: usize,
    magic: u64,
    /// Tells a response that the path duplicated.
    seen: Accounting,
    book: Book,
}

impl Responses for UdpResponses {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let (length, stamp) = self.book.receive(&*self.socket, &mut self.buffer, waiting)?;
        let payload = &self.buffer[..length.min(self.size)];
        if length != self.size || datagram::read_magic(payload) != Some(self.magic) {
            return Ok(Received::Strange);
        }
        let Some(number) = datagram::read_number(payload) else { return Ok(Received::Strange) };
        if !matches!(self.seen.arrive(number), Arrival::InOrder | Arrival::Reordered) {
            return Ok(Received::Strange);
        }
        let sent_ns = self.book.ledger.sent_ns(number);
        let trip = answered(number, sent_ns.is_some());
        if let (Some(sent_ns), Some(trip)) = (sent_ns, trip) {
            let head = payload.get(MESSAGE_HEADER..MESSAGE_HEADER + TIMES_BYTES);
            let times = head.and_then(|head| head.try_into().ok()).map(Times::read).unwrap_or_default();
            self.book.answered += 1;
            self.book.collector.answered(number, sent_ns, trip, stamp, times);
            self.book.drain(&*self.socket, QUEUE_READS_MOST);
        }
        Ok(Received::Some)
    }

    fn is_final(error: &io::Error) -> bool {
        // As without stamps.
        error.kind() == io::ErrorKind::ConnectionRefused
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn begin(&mut self, worker: &mut Worker) {
        self.book.begin(worker);
    }

    fn finish(self, worker: &mut Worker) -> Option<StampReport> {
        Some(self.book.finish(&*self.socket, worker))
    }
}
