//! The responder: answers each request with a response of the same size, and measures nothing. Time stamps are behind
//! [`RespondStamps`]; its implementation without stamps (`unstamped.rs`) compiles to nothing.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use netduel_model::stamps::StampReport;
use netduel_model::workload::Wait;
use netduel_sys::clock;
use netduel_sys::socket::{self, Waiting};

use super::settings::Settings;
use super::transport::{READ_BYTES, Receiver};
use crate::datagram;
use crate::handshake::{self, HandshakeMessage};
use crate::worker::Worker;

/// The magic numbers of the messages.
#[derive(Clone, Copy)]
pub(super) struct Magics {
    pub request: u64,
    pub response: u64,
    pub end: u64,
}

/// Time stamps of a responder.
pub(super) trait RespondStamps: Receiver {
    /// The number of requests of `size` bytes that these bytes of a stream complete; `partial` bytes of the current one have
    /// arrived.
    fn complete(&mut self, bytes: &[u8], partial: &mut usize, size: usize) -> usize;
    /// Before the responses to the requests of the last [`Self::complete`] are sent over TCP. `partial` bytes of the next request
    /// have arrived; the program received the data at `received_ns`.
    fn before_responses(
        &mut self,
        responses: &mut [u8],
        partial: usize,
        stamp: Self::Stamp,
        received_ns: u64,
    );
    /// Sends bytes of these responses.
    ///
    /// # Errors
    /// The error of sendmsg(2).
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize>;
    /// After the responses were sent.
    fn after_responses(&mut self, worker: &mut Worker, socket: BorrowedFd<'_>);
    /// Turns a UDP request into its response in place, and sends it.
    ///
    /// # Errors
    /// The error of sendmsg(2).
    fn respond(
        &mut self,
        socket: BorrowedFd<'_>,
        message: &mut [u8],
        response_magic: u64,
        stamp: Self::Stamp,
        received_ns: u64,
    ) -> io::Result<usize>;
    /// After the traffic: the stamps that the responses did not carry.
    fn finish(self, worker: &mut Worker, socket: BorrowedFd<'_>) -> Option<StampReport>;
}

fn waiting(settings: Settings) -> Waiting {
    match settings.wait {
        Wait::Block | Wait::BusyPoll => Waiting::Block,
        Wait::Spin => Waiting::Never,
    }
}

/// Serves a TCP connection to its end.
pub(super) fn tcp<S: RespondStamps>(
    worker: &mut Worker,
    stream: &TcpStream,
    settings: Settings,
    mut service: S,
) -> Option<StampReport> {
    let size = settings.size;
    let waiting = waiting(settings);
    let mut requests = vec![0; READ_BYTES.max(size)];
    // A read can complete one request more than fit in it, when the start of the first arrived before.
    let mut responses = vec![0; requests.len() + size];
    netduel_sys::pattern::fill(&mut responses);
    let mut partial = 0;
    loop {
        match service.receive(stream.as_fd(), &mut requests, waiting) {
            Ok((0, _)) => break,
            Ok((count, stamp)) => {
                worker.note_message();
                let whole = service.complete(&requests[..count], &mut partial, size);
                if whole > 0 {
                    let now = clock::monotonic_ns();
                    worker.received().add((whole * size) as u64, whole as u64, now);
                    let responses = &mut responses[..whole * size];
                    service.before_responses(responses, partial, stamp, now);
                    if !answer(worker, stream, &service, responses) {
                        break;
                    }
                    worker.sent().add(responses.len() as u64, whole as u64, now);
                    service.after_responses(worker, stream.as_fd());
                }
            }
            Err(error) if socket::is_transient(&error) => {
                worker.spin();
                if worker.control.is_aborted() {
                    break;
                }
            }
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count("recv", &error);
                }
                break;
            }
        }
    }
    // The client sees the end of the stream; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(stream);
    service.finish(worker, stream.as_fd())
}

/// Sends whole responses; false when the connection is broken. It may block: the client always reads.
#[inline]
fn answer<S: RespondStamps>(worker: &mut Worker, stream: &TcpStream, service: &S, responses: &[u8]) -> bool {
    let mut taken = 0;
    while taken < responses.len() {
        match service.send(stream.as_fd(), &responses[taken..]) {
            Ok(more) => taken += more,
            Err(error) if socket::is_transient(&error) => {}
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count("send", &error);
                }
                return false;
            }
        }
    }
    true
}

/// Serves UDP requests until the client is done.
pub(super) fn udp<S: RespondStamps>(
    worker: &mut Worker,
    socket: &UdpSocket,
    settings: Settings,
    magics: Magics,
    mut service: S,
) -> Option<StampReport> {
    let size = settings.size;
    let waiting = waiting(settings);
    // Room for a handshake message even when requests are smaller, to recognize late ones.
    let mut buffer = vec![0; size.max(handshake::LENGTH + 1)];
    while !worker.control.is_finishing() {
        match service.receive(socket.as_fd(), &mut buffer, waiting) {
            Ok((length, stamp)) => {
                worker.note_message();
                let room = buffer.len();
                let payload = &mut buffer[..length.min(room)];
                let magic = datagram::read_magic(payload);
                if length == size && magic == Some(magics.request) {
                    let now = clock::monotonic_ns();
                    worker.received().add(size as u64, 1, now);
                    match service.respond(socket.as_fd(), payload, magics.response, stamp, now) {
                        Ok(_) => {
                            worker.sent().add(size as u64, 1, now);
                            service.after_responses(worker, socket.as_fd());
                        }
                        // The request stays without a response, and the client counts it as lost.
                        Err(error) => worker.errors.count("send", &error),
                    }
                } else if magic == Some(magics.end) {
                    break;
                } else if HandshakeMessage::from_bytes(payload).is_none() && !worker.control.is_finishing() {
                    worker.errors.count_event("recv", "unexpected datagram");
                }
            }
            Err(error) if socket::is_transient(&error) => worker.spin(),
            Err(error) => {
                if worker.control.is_finishing() {
                    break;
                }
                worker.errors.count("recv", &error);
            }
        }
    }
    service.finish(worker, socket.as_fd())
}
