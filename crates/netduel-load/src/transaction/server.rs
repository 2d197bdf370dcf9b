//! The server of transactions: accepts a connection, reads its request, responds, and closes first. So TIME_WAIT is on this side,
//! and the ports of the client are free at once: its port range limits the outstanding transactions, not their number per minute.
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use netduel_model::workload::{Transaction, Wait};
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, error_name, pattern, tcp};

use super::message::{self, REQUEST_MIN, RESPONSE_MIN};
use super::settings::{CALL_LIMIT, Settings};
use crate::connection_source::{ConnectionSource, IncomingConnection};
use crate::datagram;
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
    if let ConnectionSource::Listener(listener) = &*listener.incoming
        && settings.wait == Wait::Spin
    {
        // Every thread sets it, with the same result.
        worker.errors.count_failure("ioctl FIONBIO", listener.set_nonblocking(true));
    }
    let waiting = waiting(settings.wait);
    let mut request = vec![0; READ_BYTES.max(REQUEST_MIN)];
    let mut response = vec![0; settings.response];
    pattern::fill(&mut response);
    while !listener.is_closed(worker) {
        match listener.incoming.accept(waiting, CALL_LIMIT) {
            Ok(connection) => {
                worker.note_message();
                // The connections of a listener of this trial inherit its options.
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
                let accepted_ns = clock::monotonic_ns();
                serve(worker, &connection, settings, accepted_ns, &mut request, &mut response);
            }
            Err(error) if socket::is_transient(&error) => {
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

/// Sets the options of a connection.
fn prepare(worker: &mut Worker, socket: &TcpStream) {
    worker.errors.count_failure("setsockopt TCP_NODELAY", tcp::send_at_once(socket));
    worker.errors.count_failure("setsockopt SO_RCVTIMEO", socket::limit_receive_wait(socket, CALL_LIMIT));
    worker.errors.count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(socket, CALL_LIMIT));
}

/// One transaction. A connection without the token is closed without a reply.
fn serve(
    worker: &mut Worker,
    connection: &IncomingConnection,
    settings: Settings,
    accepted_ns: u64,
    request: &mut [u8],
    response: &mut [u8],
) {
    let stream = &connection.stream;
    let (head_deadline_ns, deadline_ns) = (accepted_ns + HEAD_LIMIT_NS, accepted_ns + Transaction::TIMEOUT.0);
    let mut number = connection.head.and_then(|head| message::read_request_head(settings.token, &head));
    let mut filled = if number.is_some() { REQUEST_MIN } else { 0 };
    while filled < settings.request {
        // The head is kept until it is complete; the rest is read and not checked.
        let received = if number.is_none() {
            // It has arrived as a rule, so the call does not block.
            let head = &mut request[filled..REQUEST_MIN];
            receive(worker, stream, (settings.wait, Waiting::Never), head, head_deadline_ns)
        } else {
            let most = request.len().min(settings.request - filled);
            let how = (settings.wait, waiting(settings.wait));
            receive(worker, stream, how, &mut request[..most], deadline_ns)
        };
        match received {
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
        // Also after bytes: a peer that sends a few at a time has no more time than a silent one.
        let limit_ns = if number.is_none() { head_deadline_ns } else { deadline_ns };
        if filled < settings.request && is_over(worker, limit_ns) {
            return count_unless_cut(worker, "recv", &timeout());
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
            Err(error) if socket::is_transient(&error) => {}
            Err(error) => return count_unless_cut(worker, "send", &error),
        }
        if taken < response.len() && is_over(worker, deadline_ns) {
            return count_unless_cut(worker, "send", &timeout());
        }
    }
    worker.sent().add(response.len() as u64, 1, now);
}

/// Whether an exchange that is not complete ends.
fn is_over(worker: &Worker, deadline_ns: u64) -> bool {
    worker.control.is_aborted() || clock::monotonic_ns() > deadline_ns
}

fn timeout() -> io::Error {
    io::Error::from(io::ErrorKind::TimedOut)
}

/// Receives once, before the deadline. A thread that does not spin, with a call that does not block, waits for bytes until the
/// deadline and no longer; a call that blocks waits for its limit at most.
#[inline]
fn receive(
    worker: &mut Worker,
    stream: &TcpStream,
    (wait, waiting): (Wait, Waiting),
    buffer: &mut [u8],
    deadline_ns: u64,
) -> io::Result<usize> {
    loop {
        match socket::receive(stream, buffer, waiting) {
            Err(error) if socket::is_transient(&error) => {
                if is_over(worker, deadline_ns) {
                    return Err(timeout());
                }
                match (wait, waiting) {
                    (Wait::Spin, _) => worker.spin(),
                    (_, Waiting::Never) => {
                        let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
                        socket::wait_readable(&[stream.as_fd()], Duration::from_nanos(left_ns))?;
                    }
                    (_, Waiting::Block) => {}
                }
            }
            result => return result,
        }
    }
}

fn count_unless_cut(worker: &mut Worker, call: &'static str, error: &io::Error) {
    if worker.control.is_aborted() {
    } else if error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none() {
        let event = if call == "send" { "response timed out" } else { "request timed out" };
        worker.errors.count_event(call, event);
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
            Err(error) if socket::is_transient(&error) => {}
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use netduel_model::ids::Token;
    use netduel_model::units::Nanos;
    use netduel_model::workload::Timing;

    use super::*;
    use crate::control::Control;
    use crate::error_counts::ErrorCounts;

    const TOKEN: Token = Token(*b"sixteen bytes ok");

    /// Sends the head of a request and then single bytes, until the connection is closed; gives up after many.
    fn send_byte_by_byte(mut peer: &TcpStream) {
        for _ in 0..1_000_000 {
            if peer.write_all(&[0]).is_err() {
                return;
            }
        }
        socket::shut_down(peer).unwrap();
    }

    #[test]
    fn request_that_arrives_byte_by_byte_meets_its_deadline() {
        let settings = Settings {
            request: 1 << 40,
            response: RESPONSE_MIN,
            wait: Wait::Block,
            rate: None,
            from_ns: 0,
            timing: Timing { duration: Nanos(0), warmup: Nanos(0), cooldown: Nanos(0) },
            token: TOKEN,
            stream: 0,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.set_nodelay(true).unwrap();
        let (stream, _) = listener.accept().unwrap();
        peer.write_all(&message::request_head(TOKEN, 7)).unwrap();
        while stream.peek(&mut [0; REQUEST_MIN]).unwrap() < REQUEST_MIN {}
        let control = Arc::new(Control::new((1, 1), false, Vec::new(), Arc::default()));
        let mut worker = Worker::new(control, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| send_byte_by_byte(&peer));
            let connection = IncomingConnection { stream, head: None };
            // Accepted when the clock began: its deadline has passed.
            serve(&mut worker, &connection, settings, 0, &mut [0; 1024], &mut [0; RESPONSE_MIN]);
        });
        let errors = ErrorCounts::report([worker.errors]);
        let errors: Vec<_> = errors.iter().map(|error| (error.error.as_str(), error.count)).collect();
        assert_eq!(errors, [("request timed out", 1)]);
    }
}
