//! The responder with time stamps: responses to stamped requests carry the server's times.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use netduel_model::stamps::StampReport;
use netduel_sys::clock;
use netduel_sys::socket::Waiting;
use netduel_sys::timestamping::Stamp;

use super::response_stamps::ResponseStamps;
use super::server_times::{
    ANNOUNCED_BIT, ANNOUNCED_BYTE, STAMPED_BIT, STAMPED_BYTE, ServerTimes, TIMES_BYTES, carries_times,
};
use super::stamp_keys::{StampKeys, enable_datagrams, enable_stream};
use super::stamped_calls::{StampedReceiver, send};
use crate::datagram::{self, MESSAGE_HEADER};
use crate::round_trip::responder::RespondStamps;
use crate::round_trip::settings::Settings;
use crate::round_trip::transport::READ_BYTES;
use crate::worker::Worker;

/// A response that the kernel stamps.
struct StampedReply {
    number: u64,
    /// Its position in the kernel's numbering (see `StampKeys`).
    position: u64,
    times: ServerTimes,
    stamp: Stamp,
}

/// A responder with time stamps.
pub(in crate::round_trip) struct StampedResponder {
    stamps: ResponseStamps,
    size: usize,
    /// Whether responses are large enough for the server's times.
    carries: bool,
    /// Whether the last request announced that the next is stamped.
    announced: bool,
    /// TCP: whether the request being received is stamped.
    is_stamped: bool,
    /// TCP: indices of the stamped requests of one read, and the number of requests that it completed.
    stamped: Vec<usize>,
    whole: usize,
    /// The last response, when the kernel stamps it.
    last: Option<StampedReply>,
    /// TCP: answered requests; UDP: answered stamped requests.
    answered: u64,
}

impl StampedResponder {
    fn new(worker: &mut Worker, enabled: io::Result<StampKeys>, settings: Settings, is_stream: bool) -> Self {
        let carries = carries_times(settings.size, is_stream);
        let places = if is_stream { READ_BYTES.max(settings.size) / settings.size + 1 } else { 0 };
        Self {
            stamps: ResponseStamps::new(worker, enabled, settings.timing, carries),
            size: settings.size,
            carries,
            announced: false,
            is_stamped: false,
            stamped: Vec::with_capacity(places),
            whole: 0,
            last: None,
            answered: 0,
        }
    }

    /// On a connection.
    pub(in crate::round_trip) fn of_stream(
        worker: &mut Worker,
        stream: &Arc<TcpStream>,
        settings: Settings,
    ) -> Self {
        Self::new(worker, enable_stream(stream), settings, true)
    }

    /// On a flow.
    pub(in crate::round_trip) fn of_datagrams(
        worker: &mut Worker,
        socket: &Arc<UdpSocket>,
        settings: Settings,
    ) -> Self {
        Self::new(worker, enable_datagrams(socket), settings, false)
    }
}

impl StampedReceiver for StampedResponder {
    #[inline]
    fn may_be_stamped(&self) -> bool {
        self.announced
    }
}

impl RespondStamps for StampedResponder {
    #[inline]
    fn complete(&mut self, bytes: &[u8], partial: &mut usize, size: usize) -> usize {
        let mut at = 0;
        self.whole = 0;
        self.stamped.clear();
        while at < bytes.len() {
            if *partial == 0 {
                self.is_stamped = bytes[at] & STAMPED_BYTE != 0;
                self.announced = bytes[at] & ANNOUNCED_BYTE != 0;
            }
            let take = (size - *partial).min(bytes.len() - at);
            *partial += take;
            at += take;
            if *partial == size {
                *partial = 0;
                if self.is_stamped {
                    self.stamped.push(self.whole);
                }
                self.whole += 1;
            }
        }
        self.whole
    }

    fn before_responses(&mut self, responses: &mut [u8], partial: usize, stamp: Stamp, received_ns: u64) {
        // Receive and transmit stamps are of the last byte of what was read and what is sent: they are those of the last
        // request, and only when nothing of the next has come.
        let is_last = |place: usize| place + 1 == self.whole && partial == 0;
        let sent_ns = if self.stamped.is_empty() { 0 } else { clock::monotonic_ns() };
        let times = self.stamps.times(stamp, received_ns, sent_ns);
        if self.carries {
            for place in &self.stamped {
                let kernel_received = if is_last(*place) { times.kernel_received } else { 0 };
                let start = place * self.size;
                ServerTimes { kernel_received, ..times }.write(&mut responses[start..start + TIMES_BYTES]);
            }
        }
        self.answered += self.whole as u64;
        let (number, position) = (self.answered - 1, self.answered * self.size as u64);
        let is_stamped = self.stamped.last().is_some_and(|place| is_last(*place));
        self.last = is_stamped.then_some(StampedReply { number, position, times, stamp });
    }

    #[inline]
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        send(socket, bytes, Waiting::Block, self.last.is_some())
    }

    #[inline]
    fn after_responses(&mut self, worker: &mut Worker, socket: BorrowedFd<'_>) {
        if let Some(StampedReply { number, position, times, stamp }) = self.last.take() {
            self.stamps.answered(number, position, times, stamp);
            self.stamps.drain(worker, socket);
        }
    }

    #[inline]
    fn respond(
        &mut self,
        socket: BorrowedFd<'_>,
        message: &mut [u8],
        response_magic: u64,
        stamp: Stamp,
        received_ns: u64,
    ) -> io::Result<usize> {
        let flagged = datagram::read_number(message).unwrap_or(0);
        let is_stamped = flagged & STAMPED_BIT != 0;
        self.announced = flagged & ANNOUNCED_BIT != 0;
        let number = flagged & !(STAMPED_BIT | ANNOUNCED_BIT);
        datagram::write_number(message, response_magic, number);
        if is_stamped {
            let times = self.stamps.times(stamp, received_ns, clock::monotonic_ns());
            if self.carries {
                times.write(&mut message[MESSAGE_HEADER..MESSAGE_HEADER + TIMES_BYTES]);
            }
            self.last = Some(StampedReply { number, position: self.answered, times, stamp });
            self.answered += 1;
        }
        let result = send(socket, message, Waiting::Block, is_stamped);
        if result.is_err() && self.last.take().is_some() {
            self.answered -= 1;
            self.stamps.forget_keys();
        }
        result
    }

    fn finish(self, worker: &mut Worker, socket: BorrowedFd<'_>) -> Option<StampReport> {
        self.stamps.finish(worker, socket)
    }
}
