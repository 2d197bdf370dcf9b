//! The client of transactions: a thread per outstanding transaction, each of which makes one after the other.
//!
//! The time of a transaction runs from before its connect call (in an open loop from when it was due) to the end of the stream
//! behind its response; closing our side is not included. All threads record in one place behind a lock, which is taken after a
//! transaction: it delays the next one by about 20 ns and is part of no measured time.
use std::cmp::Ordering::{Equal, Greater, Less};
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use netduel_model::sample::{LEFT_UNSENT, RoundTripReport, TransactionParts};
use netduel_model::workload::{Transaction, Wait};
use netduel_stats::histogram::Histogram;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, error_name, pattern, tcp};

use super::message::{self, REQUEST_MIN, RESPONSE_MIN};
use super::settings::{CALL_LIMIT, Settings};
use crate::datagram;
use crate::local_ports;
use crate::pacing::{LATE_LIMIT_NS, Schedule};
use crate::recorder::Recorder;
use crate::sockets::Peer;
use crate::worker::Worker;

/// Bytes received in one call.
const READ_BYTES: usize = 64 * 1024;
/// How long before a transaction is due its thread lets another wait for the next one, nanoseconds: the wake-up takes microseconds,
/// which must not be part of the transaction.
const WAKE_LEAD_NS: u64 = 200_000;
/// Pause after a failed transaction, nanoseconds: its cause lasts longer than microseconds.
const FAILED_PAUSE_NS: u64 = 1_000_000;

/// What all threads of the client share.
pub(super) struct Shared {
    settings: Settings,
    peer: Peer,
    standing: Arc<TcpStream>,
    next: AtomicU64,
    /// Held by the thread that waits for the next due transaction; the others sleep.
    turn: Mutex<()>,
    port_shortage_noted: AtomicBool,
    unsent_noted: AtomicBool,
    figures: Mutex<Option<Figures>>,
    /// The congestion control of each connection. That of the standing connection was checked before the traffic.
    asked_congestion: Option<String>,
    /// The DSCP of the standing connection, when it has one.
    dscp: Option<u8>,
    /// The congestion control of the first completed transaction.
    used_congestion: OnceLock<Option<String>>,
}

/// The next transaction; `started` is now, nanoseconds of the monotonic clock.
struct Next {
    number: u64,
    due_ns: Option<u64>,
    started: u64,
}

/// The recorded transactions.
struct Figures {
    whole: Recorder,
    connect: Histogram,
    exchange: Histogram,
    failures: u64,
}

/// The times of a transaction, nanoseconds of the monotonic clock.
struct Times {
    started: u64,
    connected: u64,
    responded: u64,
    closed: u64,
}

/// Why a transaction failed.
enum Failure {
    Call(&'static str, io::Error),
    Event(&'static str),
    GivenUp,
    Cut,
}

impl Shared {
    pub(super) fn new(
        settings: Settings,
        asked_congestion: Option<String>,
        peer: Peer,
        standing: Arc<TcpStream>,
    ) -> Self {
        let dscp = socket::dscp(&*standing).ok().filter(|dscp| *dscp != 0);
        Self {
            settings,
            peer,
            standing,
            next: AtomicU64::new(0),
            turn: Mutex::new(()),
            port_shortage_noted: AtomicBool::new(false),
            unsent_noted: AtomicBool::new(false),
            figures: Mutex::new(None),
            asked_congestion,
            dscp,
            used_congestion: OnceLock::new(),
        }
    }

    /// Waits for the next transaction to be due; absent after the last, and when those that are left are too late.
    fn next(&self, worker: &mut Worker, schedule: Option<Schedule>, end_ns: u64) -> Option<Next> {
        let Some(schedule) = schedule else {
            let started = clock::monotonic_ns();
            let is_time = worker.control.is_running() && started < end_ns;
            return is_time.then(|| Next { number: self.next.fetch_add(1, Relaxed), due_ns: None, started });
        };
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.next.load(Relaxed);
        let due_ns = schedule.due_ns(number);
        let is_time = worker.control.is_running() && due_ns < end_ns;
        if !is_time || !worker.sleep_until(due_ns.saturating_sub(WAKE_LEAD_NS)) {
            return None;
        }
        if clock::monotonic_ns() > end_ns.saturating_add(LATE_LIMIT_NS) {
            if !self.unsent_noted.swap(true, Relaxed) {
                worker.errors.count_event("connect", LEFT_UNSENT);
            }
            return None;
        }
        self.next.store(number + 1, Relaxed);
        drop(turn);
        let started = clock::sleep_then_spin_until(due_ns);
        Some(Next { number, due_ns: Some(due_ns), started })
    }

    /// Call it after the connect: connecting replaces the congestion control by that of the route, when it has one.
    fn set_congestion(&self, stream: &TcpStream) -> Result<(), Failure> {
        let Some(name) = &self.asked_congestion else { return Ok(()) };
        tcp::set_congestion(stream, name).map_err(|error| Failure::Call("setsockopt TCP_CONGESTION", error))
    }

    fn figures(&self) -> MutexGuard<'_, Option<Figures>> {
        // Recording does not panic; figures behind a poisoned lock are whole.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the last thread: signals the end to the server, and returns the figures of all threads.
    pub(super) fn finish(self) -> RoundTripReport {
        // ENOTCONN: the server is gone.
        let _ = socket::shut_down_sending(&*self.standing);
        let congestion = self.used_congestion.into_inner().flatten();
        let figures = self.figures.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Figures { whole, connect, exchange, failures } = figures.expect("each thread creates them");
        let mut report = whole.finish();
        report.parts = Some(TransactionParts {
            attempted: report.requests,
            failed: failures + report.timeouts,
            connect: connect.to_record(),
            exchange: exchange.to_record(),
            congestion,
        });
        report
    }
}

/// One thread: transactions until the duration is over.
pub(super) fn run(worker: &mut Worker, shared: &Shared) {
    let settings = shared.settings;
    let started_ns = worker.control.started_ns();
    shared.figures().get_or_insert_with(|| Figures {
        whole: Recorder::new(started_ns, settings.timing, settings.rate.is_some())
            .shown_live(&worker.control.live_latency),
        connect: Histogram::new(),
        exchange: Histogram::new(),
        failures: 0,
    });
    let schedule =
        settings.rate.map(|rate| Schedule::per_second(started_ns.saturating_add(settings.from_ns), rate));
    let end_ns = started_ns.saturating_add(settings.timing.duration.0);
    let mut request = vec![0; settings.request];
    pattern::fill(&mut request);
    let mut response = vec![0; READ_BYTES.max(RESPONSE_MIN)];
    while let Some(Next { number, due_ns, started }) = shared.next(worker, schedule, end_ns) {
        request[..REQUEST_MIN].copy_from_slice(&message::request_head(settings.token, number));
        match transact(worker, shared, &request, &mut response, number, started) {
            Ok(times) => {
                worker.received().add(settings.response as u64, 1, times.closed);
                shared.figures().as_mut().expect("created at the start").succeeded(due_ns, &times);
            }
            Err(failure) => {
                shared.figures().as_mut().expect("created at the start").failed(due_ns, started, &failure);
                if !count(worker, shared, &failure) {
                    break;
                }
            }
        }
    }
}

impl Figures {
    fn succeeded(&mut self, due_ns: Option<u64>, times: &Times) {
        self.whole.requests += 1;
        let started = due_ns.unwrap_or(times.started);
        if let Some(due) = due_ns {
            self.whole.leaves(due, times.started);
        }
        if self.whole.is_steady(started) {
            self.connect.record(times.connected.saturating_sub(times.started));
            self.exchange.record(times.responded.saturating_sub(times.connected));
        }
        self.whole.round_trip(started, times.closed);
    }

    fn failed(&mut self, due_ns: Option<u64>, started: u64, failure: &Failure) {
        self.whole.requests += 1;
        if let Some(due) = due_ns {
            self.whole.leaves(due, started);
        }
        match failure {
            Failure::GivenUp | Failure::Cut => self.whole.timeouts += 1,
            Failure::Call(..) | Failure::Event(_) => self.failures += 1,
        }
    }
}

/// Counts the cause of a failure; false when the end is aborted.
#[cold]
fn count(worker: &mut Worker, shared: &Shared, failure: &Failure) -> bool {
    if worker.control.is_aborted() {
        return false;
    }
    match failure {
        Failure::Call(call, error) => {
            worker.errors.count(call, error);
            let no_port = error_name::of(error.raw_os_error().unwrap_or(0)) == Some("EADDRNOTAVAIL");
            if no_port && !shared.port_shortage_noted.swap(true, Relaxed) {
                worker.errors.remark("connect", local_ports::exhausted());
            }
        }
        Failure::Event(event) => worker.errors.count_event("recv", event),
        Failure::GivenUp => {}
        Failure::Cut => return false,
    }
    clock::sleep_until(clock::monotonic_ns() + FAILED_PAUSE_NS);
    true
}

/// One transaction.
fn transact(
    worker: &mut Worker,
    shared: &Shared,
    request: &[u8],
    response: &mut [u8],
    number: u64,
    started: u64,
) -> Result<Times, Failure> {
    let Shared { settings, peer, .. } = shared;
    let deadline_ns = started + Transaction::TIMEOUT.0;
    let limit = match settings.wait {
        // A plan does not allow busy polling here: a connection is closed before polling would pay.
        Wait::Block | Wait::BusyPoll => Some(CALL_LIMIT),
        Wait::Spin => None,
    };
    let stream =
        tcp::unconnected(peer.address, limit, &peer.bind).map_err(|error| Failure::Call("socket", error))?;
    if let Some(dscp) = shared.dscp {
        socket::set_dscp(&stream, dscp).map_err(|error| Failure::Call("setsockopt IP_TOS", error))?;
    }
    loop {
        match tcp::continue_connecting(&stream, peer.address) {
            Ok(true) => break,
            Ok(false) => call_again(worker, settings.wait, deadline_ns)?,
            Err(error) => return Err(Failure::Call("connect", error)),
        }
    }
    let connected = clock::monotonic_ns();
    worker.note_message();
    shared.set_congestion(&stream)?;
    let mut taken = 0;
    while taken < request.len() {
        match socket::send(&stream, &request[taken..], Waiting::Block) {
            Ok(count) => {
                taken += count;
                if taken < request.len() {
                    check_deadline(worker, deadline_ns)?;
                }
            }
            Err(error) if socket::is_transient(&error) => call_again(worker, settings.wait, deadline_ns)?,
            Err(error) => return Err(Failure::Call("send", error)),
        }
    }
    worker.sent().add(request.len() as u64, 1, connected);
    let mut filled = 0;
    let mut responded = connected;
    loop {
        // The head of the response is kept; the rest is read and not checked.
        let from = filled.min(RESPONSE_MIN);
        match socket::receive(&stream, &mut response[from..], Waiting::Block) {
            Ok(0) if filled == settings.response => break,
            Ok(0) => return Err(Failure::Event("connection closed before its response was complete")),
            Ok(count) => {
                filled += count;
                match filled.cmp(&settings.response) {
                    Less => check_deadline(worker, deadline_ns)?,
                    Equal => {
                        responded = clock::monotonic_ns();
                        worker.note_message();
                    }
                    Greater => return Err(Failure::Event("response too long")),
                }
            }
            Err(error) if socket::is_transient(&error) => call_again(worker, settings.wait, deadline_ns)?,
            Err(error) => return Err(Failure::Call("recv", error)),
        }
    }
    let closed = clock::monotonic_ns();
    if closed > deadline_ns {
        return Err(Failure::GivenUp);
    }
    let is_ours = datagram::read_magic(response) == Some(message::response_magic(settings.token))
        && datagram::read_number(response) == Some(number);
    if is_ours {
        shared.used_congestion.get_or_init(|| tcp::congestion(&stream).ok());
        Ok(Times { started, connected, responded, closed })
    } else {
        Err(Failure::Event("response to another request"))
    }
}

/// After a call without a result: as [`check_deadline`].
#[inline]
fn call_again(worker: &mut Worker, wait: Wait, deadline_ns: u64) -> Result<(), Failure> {
    if wait == Wait::Spin {
        worker.spin();
    }
    check_deadline(worker, deadline_ns)
}

/// An error when the time is over, or the end aborted. Also after a call that moved some bytes: a peer that moves a few at a time has
/// no more time than a silent one.
#[inline]
fn check_deadline(worker: &Worker, deadline_ns: u64) -> Result<(), Failure> {
    if worker.control.is_aborted() {
        return Err(Failure::Cut);
    }
    if clock::monotonic_ns() > deadline_ns {
        return Err(Failure::GivenUp);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use netduel_model::ids::Token;
    use netduel_model::units::Nanos;
    use netduel_model::workload::Timing;
    use netduel_sys::local_bind::LocalBind;

    use super::*;
    use crate::control::Control;

    /// Reads a request and responds without end, until the connection is closed; gives up after many bytes.
    fn respond_without_end(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; REQUEST_MIN]).unwrap();
        let bytes = vec![0; READ_BYTES];
        for _ in 0..10_000 {
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    }

    #[test]
    fn response_that_keeps_arriving_meets_its_deadline() {
        let settings = Settings {
            request: REQUEST_MIN,
            response: 1 << 40,
            wait: Wait::Block,
            rate: None,
            from_ns: 0,
            timing: Timing { duration: Nanos(0), warmup: Nanos(0), cooldown: Nanos(0) },
            token: Token([7; 16]),
            stream: 0,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let standing = Arc::new(TcpStream::connect(address).unwrap());
        drop(listener.accept().unwrap());
        let shared = Shared::new(settings, None, Peer { address, bind: LocalBind::ANY }, standing);
        let control = Arc::new(Control::new((1, 1), false, Vec::new(), Arc::default()));
        let mut worker = Worker::new(control, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| respond_without_end(&listener));
            // Begun when the clock began: its deadline has passed.
            let (request, mut response) = (vec![0; REQUEST_MIN], vec![0; READ_BYTES]);
            let result = transact(&mut worker, &shared, &request, &mut response, 0, 0);
            assert!(matches!(result, Err(Failure::GivenUp)));
        });
    }
}
