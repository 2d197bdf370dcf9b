//! The server's side with time stamps: as `round_trip/serve.rs`, and stamped requests are answered with the server's times.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use netduel_model::stamps::StampReport;
use netduel_sys::clock;
use netduel_sys::pattern;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::timestamping::{self, Stamp};

use super::desk::Desk;
use super::keys::{enable_datagrams, enable_stream};
use super::times::{
    ANNOUNCED_BIT, ANNOUNCED_BYTE, STAMPED_BIT, STAMPED_BYTE, TIMES_BYTES, Times, carries_times,
};
use crate::call_error::is_pause;
use crate::datagram::{self, MESSAGE_HEADER};
use crate::greeting::{self, Greeting};
use crate::round_trip::serve::{Magics, waiting};
use crate::round_trip::settings::Settings;
use crate::round_trip::transport::READ_BYTES;
use crate::worker::Worker;

/// A connection that is served.
struct Connection<'a> {
    stream: &'a TcpStream,
    size: usize,
    carries: bool,
    requests: Vec<u8>,
    responses: Vec<u8>,
    /// Bytes of the current request that have come, and whether it is stamped.
    partial: usize,
    is_stamped: bool,
    /// Whether the last request said that the next is stamped.
    announced: bool,
    /// Requests that were answered.
    answered: u64,
    /// Places of the stamped requests of one read, from 0.
    stamped: Vec<usize>,
}

/// Serves a TCP connection to its end.
pub(in crate::round_trip) fn tcp(
    worker: &mut Worker,
    stream: &Arc<TcpStream>,
    settings: Settings,
) -> Option<StampReport> {
    let size = settings.size;
    let requests = vec![0; READ_BYTES.max(size)];
    let mut responses = vec![0; requests.len() + size];
    pattern::fill(&mut responses);
    let carries = carries_times(size, true);
    let mut desk = Desk::new(worker, enable_stream(stream), settings.timing, carries);
    let stamped = Vec::with_capacity(requests.len() / size + 1);
    let mut connection = Connection {
        stream,
        size,
        carries,
        requests,
        responses,
        partial: 0,
        is_stamped: false,
        announced: false,
        answered: 0,
        stamped,
    };
    while connection.turn(worker, &mut desk, waiting(settings)) {}
    // Tells the client that no response is to come; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(&**stream);
    desk.finish(worker, &**stream)
}

impl Connection<'_> {
    /// Receives once and answers; false when the connection is over.
    fn turn(&mut self, worker: &mut Worker, desk: &mut Desk, waiting: Waiting) -> bool {
        match receive(self.stream, &mut self.requests, waiting, self.announced) {
            Ok((0, _)) => false,
            Ok((count, stamp)) => {
                worker.was_served();
                let whole = self.take_in(count);
                if whole == 0 {
                    return true;
                }
                let now = clock::monotonic_ns();
                worker.received().add((whole * self.size) as u64, whole as u64, now);
                self.answer(worker, desk, whole, stamp, now)
            }
            Err(error) if is_pause(&error) => {
                worker.spin();
                !worker.control.is_cut()
            }
            Err(error) => {
                if !worker.control.is_cut() {
                    worker.tally.count("recv", &error);
                }
                false
            }
        }
    }

    /// Notes what `count` bytes complete: returns how many requests, and leaves the places of the stamped ones.
    #[inline]
    fn take_in(&mut self, count: usize) -> usize {
        let (mut at, mut whole) = (0, 0);
        self.stamped.clear();
        while at < count {
            if self.partial == 0 {
                self.is_stamped = self.requests[at] & STAMPED_BYTE != 0;
                self.announced = self.requests[at] & ANNOUNCED_BYTE != 0;
            }
            let take = (self.size - self.partial).min(count - at);
            self.partial += take;
            at += take;
            if self.partial == self.size {
                self.partial = 0;
                if self.is_stamped {
                    self.stamped.push(whole);
                }
                whole += 1;
            }
        }
        whole
    }

    /// Answers `whole` requests at once; false when the connection is broken.
    fn answer(
        &mut self,
        worker: &mut Worker,
        desk: &mut Desk,
        whole: usize,
        stamp: Stamp,
        received_ns: u64,
    ) -> bool {
        let length = whole * self.size;
        // Receive and transmit stamps are of the last byte of what was read and what is sent: they are those of the last
        // request, and only when nothing of the next has come.
        let last = self.stamped.last().is_some_and(|place| *place + 1 == whole) && self.partial == 0;
        let sent_ns = if self.stamped.is_empty() { 0 } else { clock::monotonic_ns() };
        let times = desk.times(stamp, received_ns, sent_ns);
        if self.carries {
            for place in &self.stamped {
                let is_last = last && *place + 1 == whole;
                let kernel_received = if is_last { times.kernel_received } else { 0 };
                let start = place * self.size;
                Times { kernel_received, ..times }.write(&mut self.responses[start..start + TIMES_BYTES]);
            }
        }
        if !self.send(worker, length, last) {
            return false;
        }
        worker.sent().add(length as u64, whole as u64, received_ns);
        self.answered += whole as u64;
        if last {
            desk.answered(self.answered - 1, self.answered * self.size as u64, times, stamp);
            desk.drain(worker, self.stream);
        }
        true
    }

    /// Sends whole responses. It may block: the client reads whatever it does.
    #[inline]
    fn send(&self, worker: &mut Worker, length: usize, is_stamped: bool) -> bool {
        let mut taken = 0;
        while taken < length {
            let rest = &self.responses[taken..length];
            let result = if is_stamped {
                timestamping::send(self.stream, rest, Waiting::Block)
            } else {
                socket::send(self.stream, rest, Waiting::Block)
            };
            match result {
                Ok(more) => taken += more,
                Err(error) if is_pause(&error) => {}
                Err(error) => {
                    if !worker.control.is_cut() {
                        worker.tally.count("send", &error);
                    }
                    return false;
                }
            }
        }
        true
    }
}

/// Receives, with the stamp when a stamped request is to come.
#[inline]
fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    waiting: Waiting,
    announced: bool,
) -> io::Result<(usize, Stamp)> {
    if announced {
        timestamping::receive(socket, buffer, waiting)
    } else {
        socket::receive(socket, buffer, waiting).map(|length| (length, Stamp::default()))
    }
}

/// Serves UDP requests until the client is done.
pub(in crate::round_trip) fn udp(
    worker: &mut Worker,
    socket: &Arc<UdpSocket>,
    settings: Settings,
    magics: Magics,
) -> Option<StampReport> {
    let size = settings.size;
    let carries = carries_times(size, false);
    let mut desk = Desk::new(worker, enable_datagrams(socket), settings.timing, carries);
    let mut buffer = vec![0; size.max(greeting::LENGTH + 1)];
    let mut index = 0;
    let mut announced = false;
    while !worker.control.is_finishing() {
        match receive(&**socket, &mut buffer, waiting(settings), announced) {
            Ok((length, stamp)) => {
                worker.was_served();
                let room = buffer.len();
                let payload = &mut buffer[..length.min(room)];
                let magic = datagram::read_magic(payload);
                if length == size && magic == Some(magics.request) {
                    let flagged = datagram::read_number(payload).unwrap_or(0);
                    announced = flagged & ANNOUNCED_BIT != 0;
                    let request = Request { payload, flagged, stamp, carries, magic: magics.response };
                    respond(worker, &mut desk, socket, request, &mut index);
                } else if magic == Some(magics.end) {
                    break;
                } else if Greeting::from_bytes(payload).is_none() && !worker.control.is_finishing() {
                    worker.tally.count_event("recv", "datagram that is no request");
                }
            }
            Err(error) if is_pause(&error) => worker.spin(),
            Err(error) => {
                if worker.control.is_finishing() {
                    break;
                }
                worker.tally.count("recv", &error);
            }
        }
    }
    desk.finish(worker, &**socket)
}

/// A request, whose bytes become the response.
struct Request<'a> {
    payload: &'a mut [u8],
    /// Its number, and whether it is stamped.
    flagged: u64,
    stamp: Stamp,
    carries: bool,
    /// That of responses.
    magic: u64,
}

#[inline]
fn respond(worker: &mut Worker, desk: &mut Desk, socket: &UdpSocket, request: Request<'_>, index: &mut u64) {
    let Request { payload, flagged, stamp, carries, magic } = request;
    let size = payload.len() as u64;
    let (number, is_stamped) = (flagged & !(STAMPED_BIT | ANNOUNCED_BIT), flagged & STAMPED_BIT != 0);
    let now = clock::monotonic_ns();
    worker.received().add(size, 1, now);
    datagram::write_number(payload, magic, number);
    let result = if is_stamped {
        let times = desk.times(stamp, now, clock::monotonic_ns());
        if carries {
            times.write(&mut payload[MESSAGE_HEADER..MESSAGE_HEADER + TIMES_BYTES]);
        }
        let result = timestamping::send(socket, payload, Waiting::Block);
        match &result {
            Ok(_) => {
                desk.answered(number, *index, times, stamp);
                *index += 1;
                desk.drain(worker, socket);
            }
            Err(_) => desk.forget_keys(),
        }
        result
    } else {
        socket::send(socket, payload, Waiting::Block)
    };
    match result {
        Ok(_) => worker.sent().add(size, 1, now),
        // The request stays without a response, and the client counts it as lost.
        Err(error) => worker.tally.count("send", &error),
    }
}
