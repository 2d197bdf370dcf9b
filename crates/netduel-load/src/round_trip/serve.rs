//! The server's side: answers each whole request with a response of the same size, and measures nothing.
use std::net::{TcpStream, UdpSocket};

use netduel_model::workload::Wait;
use netduel_sys::clock;
use netduel_sys::socket::{self, Waiting};

use super::settings::Settings;
use super::transport::READ_BYTES;
use crate::call_error::is_pause;
use crate::datagram;
use crate::greeting::{self, Greeting};
use crate::worker::Worker;

/// The numbers by which messages are told.
#[derive(Clone, Copy)]
pub(super) struct Magics {
    pub request: u64,
    pub response: u64,
    pub end: u64,
}

pub(super) fn waiting(settings: Settings) -> Waiting {
    match settings.wait {
        Wait::Block | Wait::BusyPoll => Waiting::Block,
        Wait::Spin => Waiting::Never,
    }
}

/// Serves a TCP connection to its end.
pub(super) fn tcp(worker: &mut Worker, stream: &TcpStream, settings: Settings) {
    let size = settings.size;
    let waiting = waiting(settings);
    let mut requests = vec![0; READ_BYTES.max(size)];
    // A read may complete a request of which all but one byte came before, so there may be one more than fits a read.
    let mut responses = vec![0; requests.len() + size];
    netduel_sys::pattern::fill(&mut responses);
    let mut partial = 0;
    loop {
        match socket::receive(stream, &mut requests, waiting) {
            Ok(0) => break,
            Ok(count) => {
                partial += count;
                let whole = partial / size;
                worker.was_served();
                if whole > 0 {
                    partial %= size;
                    let now = clock::monotonic_ns();
                    worker.received().add((whole * size) as u64, whole as u64, now);
                    if !answer(worker, stream, &responses[..whole * size], whole as u64, now) {
                        break;
                    }
                }
            }
            Err(error) if is_pause(&error) => {
                worker.spin();
                if worker.control.is_cut() {
                    break;
                }
            }
            Err(error) => {
                if !worker.control.is_cut() {
                    worker.tally.count("recv", &error);
                }
                break;
            }
        }
    }
    // Tells the client that no response is to come; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(stream);
}

/// Sends whole responses; false when the connection is broken. It may block: the client reads whatever it does.
#[inline]
fn answer(worker: &mut Worker, stream: &TcpStream, responses: &[u8], count: u64, now: u64) -> bool {
    let mut taken = 0;
    while taken < responses.len() {
        match socket::send(stream, &responses[taken..], Waiting::Block) {
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
    worker.sent().add(responses.len() as u64, count, now);
    true
}

/// Serves UDP requests until the client is done.
pub(super) fn udp(worker: &mut Worker, socket: &UdpSocket, settings: Settings, magics: Magics) {
    let size = settings.size;
    let waiting = waiting(settings);
    let mut buffer = vec![0; size.max(greeting::LENGTH + 1)];
    while !worker.control.is_finishing() {
        match socket::receive(socket, &mut buffer, waiting) {
            Ok(length) => {
                worker.was_served();
                let payload = &mut buffer[..length.min(size.max(greeting::LENGTH + 1))];
                let magic = datagram::read_magic(payload);
                if length == size && magic == Some(magics.request) {
                    respond(worker, socket, &mut payload[..size], magics.response);
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
}

#[inline]
fn respond(worker: &mut Worker, socket: &UdpSocket, message: &mut [u8], response_magic: u64) {
    let size = message.len() as u64;
    let Some(number) = datagram::read_number(message) else { return };
    let now = clock::monotonic_ns();
    worker.received().add(size, 1, now);
    datagram::write_number(message, response_magic, number);
    match socket::send(socket, message, Waiting::Block) {
        Ok(_) => worker.sent().add(size, 1, now),
        // The request stays without a response, and the client counts it as lost.
        Err(error) => worker.tally.count("send", &error),
    }
}
