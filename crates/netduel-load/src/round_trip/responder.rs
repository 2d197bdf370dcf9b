//! The server's side: answers each whole request with a response of the same size, and measures nothing. What time stamps add stands
//! behind [`RespondStamps`], whose implementation without stamps (`unstamped.rs`) compiles to nothing.
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
use crate::socket_error::is_transient;
use crate::worker::Worker;

/// The numbers by which messages are told.
#[derive(Clone, Copy)]
pub(super) struct Magics {
    pub request: u64,
    pub response: u64,
    pub end: u64,
}

/// What time stamps do to a server.
pub(super) trait RespondStamps: Receiver {
    /// How many requests of `size` bytes these bytes of a stream complete, of which `partial` have come so far.
    fn complete(&mut self, bytes: &[u8], partial: &mut usize, size: usize) -> usize;
    /// The responses to the requests of the last [`Self::complete`] are about to be sent over TCP. `partial` bytes of the next request
    /// have come; the program had them at `received_ns`.
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
    /// What sendmsg(2) says.
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize>;
    /// Responses were sent.
    fn after_responses(&mut self, worker: &mut Worker, socket: BorrowedFd<'_>);
    /// Makes the response of a request over UDP in its place, and sends it.
    ///
    /// # Errors
    /// What sendmsg(2) says.
    fn respond(
        &mut self,
        socket: BorrowedFd<'_>,
        message: &mut [u8],
        response_magic: u64,
        stamp: Self::Stamp,
        received_ns: u64,
    ) -> io::Result<usize>;
    /// The traffic is over: what the stamps say that the responses did not carry.
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
    // A read may complete a request of which all but one byte came before, so there may be one more than fits a read.
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
            Err(error) if is_transient(&error) => {
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
    // Tells the client that no response is to come; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(stream);
    service.finish(worker, stream.as_fd())
}

/// Sends whole responses; false when the connection is broken. It may block: the client reads whatever it does.
#[inline]
fn answer<S: RespondStamps>(worker: &mut Worker, stream: &TcpStream, service: &S, responses: &[u8]) -> bool {
    let mut taken = 0;
    while taken < responses.len() {
        match service.send(stream.as_fd(), &responses[taken..]) {
            Ok(more) => taken += more,
            Err(error) if is_transient(&error) => {}
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
    // Room for a message even when requests are smaller, so that a belated one is known for what it is.
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
                    worker.errors.count_event("recv", "datagram that is no request");
                }
            }
            Err(error) if is_transient(&error) => worker.spin(),
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
