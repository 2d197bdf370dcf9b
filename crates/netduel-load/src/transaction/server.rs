//! The server of transactions: accepts a connection, reads its request, responds, and closes first. So TIME_WAIT is on this side,
//! and the ports of the client are free at once: its port range limits the outstanding transactions, not their number per minute.
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use netduel_model::workload::Wait;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, error_name, pattern, tcp};

use super::message::{self, REQUEST_MIN, RESPONSE_MIN};
use super::settings::{CALL_LIMIT, GIVE_UP_NS, Settings};
use crate::connection_source::{ConnectionSource, IncomingConnection};
use crate::datagram;
use crate::socket_error::is_transient;
use crate::worker::Worker;

/// Bytes received in one call behind the head of a request.
const READ_BYTES: usize = 64 * 1024;
/// How long a peer may take for the head of its request, nanoseconds. A client sends it in one segment, which arrived before the
/// connection was accepted; other peers block one thread for this long at most.
const HEAD_LIMIT_NS: u64 = 50_000_000;
/// Pause after accept(2) failed without descriptors or memory, nanoseconds.
const EXHAUSTED_PAUSE_NS: u64 = 1_000_000;

/// The source of connections, until it is closed.
pub(super) struct TransactionListener {
    incoming: Arc<ConnectionSource>,
    is_closed: AtomicBool,
    /// The congestion control of each connection: that of the route may replace that of the listener.
    congestion: Option<String>,
    /// As `congestion`.
    dscp: Option<u8>,
}

impl TransactionListener {
    /// Each connection gets the DSCP of the standing one.
    pub(super) fn new(
        incoming: Arc<ConnectionSource>,
        congestion: Option<String>,
        standing: &TcpStream,
    ) -> Self {
        let dscp = socket::dscp(standing).ok().filter(|dscp| *dscp != 0);
        Self { incoming, congestion, dscp, is_closed: AtomicBool::new(false) }
    }

    fn close(&self) {
        self.is_closed.store(true, SeqCst);
        self.incoming.shut_down();
    }

    /// Whether accepting has ended on purpose.
    fn is_closed(&self, worker: &Worker) -> bool {
        self.is_closed.load(SeqCst) || worker.control.is_finishing()
    }
}

/// Serves connections until the client is done.
pub(super) fn run(worker: &mut Worker, listener: &TransactionListener, settings: Settings) {
    if let ConnectionSource::Listener(listener) = &*listener.incoming {
        // Every thread sets it, with the same result.
        prepare(worker, listener);
        if settings.wait == Wait::Spin {
            worker.errors.count_failure("ioctl FIONBIO", listener.set_nonblocking(true));
        }
    }
    let waiting = waiting(settings.wait);
    let mut request = vec![0; READ_BYTES.max(REQUEST_MIN)];
    let mut response = vec![0; settings.response];
    pattern::fill(&mut response);
    while !listener.is_closed(worker) {
        match listener.incoming.accept(waiting, CALL_LIMIT) {
            Ok(connection) => {
                worker.note_message();
                if connection.head.is_some() {
                    prepare(worker, &connection.stream);
                }
                if let Some(name) = &listener.congestion {
                    let set = tcp::set_congestion(&connection.stream, name);
                    worker.errors.count_failure("setsockopt TCP_CONGESTION", set);
                }
                if let Some(dscp) = listener.dscp {
                    worker
                        .errors
                        .count_failure("setsockopt IP_TOS", socket::set_dscp(&connection.stream, dscp));
                }
                serve(worker, &connection, settings, &mut request, &mut response);
            }
            Err(error) if is_transient(&error) => {
                if settings.wait == Wait::Spin {
                    worker.spin();
                }
            }
            Err(error) => {
                // After the shutdown of the listener accept(2) returns EINVAL.
                if listener.is_closed(worker) {
                    return;
                }
                worker.errors.count("accept", &error);
                match error_name::of(error.raw_os_error().unwrap_or(0)) {
                    Some("EINVAL" | "EBADF") => return,
                    Some("EMFILE" | "ENFILE" | "ENOBUFS" | "ENOMEM") => {
                        clock::sleep_until(clock::monotonic_ns() + EXHAUSTED_PAUSE_NS);
                    }
                    _ => {}
                }
            }
        }
    }
}

fn waiting(wait: Wait) -> Waiting {
    match wait {
        Wait::Block | Wait::BusyPoll => Waiting::Block,
        Wait::Spin => Waiting::Never,
    }
}

/// Sets the options of a connection, or of all connections of a listener.
fn prepare(worker: &mut Worker, socket: impl AsFd) {
    let socket = socket.as_fd();
    worker.errors.count_failure("setsockopt TCP_NODELAY", tcp::send_at_once(socket));
    worker.errors.count_failure("setsockopt SO_RCVTIMEO", socket::limit_receive_wait(socket, CALL_LIMIT));
    worker.errors.count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(socket, CALL_LIMIT));
}

/// One transaction. A connection without the token is closed without a reply.
fn serve(
    worker: &mut Worker,
    connection: &IncomingConnection,
    settings: Settings,
    request: &mut [u8],
    response: &mut [u8],
) {
    let stream = &connection.stream;
    let accepted_ns = clock::monotonic_ns();
    let (head_deadline_ns, deadline_ns) = (accepted_ns + HEAD_LIMIT_NS, accepted_ns + GIVE_UP_NS);
    let mut number = connection.head.and_then(|head| message::read_request_head(settings.token, &head));
    let mut filled = if number.is_some() { REQUEST_MIN } else { 0 };
    while filled < settings.request {
        // The head is kept until it is complete; the rest is read and not checked.
        let (from, most) = match number {
            None => (filled, REQUEST_MIN),
            Some(_) => (0, request.len().min(settings.request - filled)),
        };
        let patience_ns = if number.is_none() { head_deadline_ns } else { deadline_ns };
        match receive(worker, stream, settings, &mut request[from..most], patience_ns) {
            Ok(0) => {
                return worker
                    .errors
                    .count_event("recv", "connection closed before its request was complete");
            }
            Ok(count) => filled += count,
            Err(error) => return count_unless_cut(worker, "recv", &error),
        }
        if number.is_none() && filled == REQUEST_MIN {
            number = message::read_request_head(settings.token, &request[..REQUEST_MIN]);
            if number.is_none() {
                return worker.errors.count_event("recv", "connection without the token of this trial");
            }
        }
    }
    let Some(number) = number else { return };
    let now = clock::monotonic_ns();
    worker.received().add(settings.request as u64, 1, now);
    datagram::write_number(&mut response[..RESPONSE_MIN], message::response_magic(settings.token), number);
    let mut taken = 0;
    while taken < response.len() {
        match socket::send(stream, &response[taken..], Waiting::Block) {
            Ok(count) => taken += count,
            Err(error) if is_transient(&error) => {
                if worker.control.is_aborted() || clock::monotonic_ns() > deadline_ns {
                    return worker.errors.count_event("send", "response timed out after 4 s");
                }
            }
            Err(error) => return count_unless_cut(worker, "send", &error),
        }
    }
    worker.sent().add(response.len() as u64, 1, now);
}

/// Receives once, before the deadline.
#[inline]
fn receive(
    worker: &mut Worker,
    stream: &TcpStream,
    settings: Settings,
    buffer: &mut [u8],
    deadline_ns: u64,
) -> io::Result<usize> {
    let waiting = waiting(settings.wait);
    loop {
        match socket::receive(stream, buffer, waiting) {
            Err(error) if is_transient(&error) => {
                if worker.control.is_aborted() || clock::monotonic_ns() > deadline_ns {
                    return Err(io::Error::from(io::ErrorKind::TimedOut));
                }
                if settings.wait == Wait::Spin {
                    worker.spin();
                }
            }
            result => return result,
        }
    }
}

fn count_unless_cut(worker: &mut Worker, call: &'static str, error: &io::Error) {
    if worker.control.is_aborted() {
    } else if error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none() {
        worker.errors.count_event(call, "request timed out");
    } else {
        worker.errors.count(call, error);
    }
}

/// Waits until the client closes the standing connection, and then ends the other threads.
pub(super) fn watch(worker: &mut Worker, standing: &TcpStream, listener: &TransactionListener) {
    loop {
        match socket::receive(standing, &mut [0; 1], Waiting::Block) {
            Ok(0) => break,
            Ok(_) => worker.errors.count_event("recv", "unexpected byte on the standing connection"),
            Err(error) if is_transient(&error) => {}
            Err(error) => {
                count_unless_cut(worker, "recv", &error);
                break;
            }
        }
    }
    listener.close();
    // The client sees that this end has finished; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(standing);
}
