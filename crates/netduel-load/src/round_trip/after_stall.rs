//! Tests: a client that was not scheduled for longer than the timeout finds the responses in its socket. None of them is lost.
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};

use netduel_model::sample::RoundTripReport;
use netduel_model::stamps::StampReport;
use netduel_model::units::Nanos;
use netduel_model::workload::{Timing, Wait};
use netduel_sys::clock;
use netduel_sys::socket::Waiting;

use super::settings::Settings;
use super::transport::{Received, Requests, Responses};
use super::{closed_loop, open_loop};
use crate::control::Control;
use crate::pacing::Schedule;
use crate::recorder::{Recorder, Trip};
use crate::worker::Worker;

/// Requests of the fakes. More than are outstanding in a closed loop, so that answered ones get successors.
const REQUESTS: u64 = 12;
const OUTSTANDING: usize = 4;
const HOUR: Nanos = Nanos(3_600_000_000_000);

/// A server whose responses all wait in the socket, in order, from the request with the number `stalled_at` on.
struct Socket {
    responses: Mutex<VecDeque<u64>>,
    control: Arc<Control>,
    stalled_at: u64,
    at_stall: fn(&Control),
}

impl Requests for Arc<Socket> {
    fn send(&mut self, number: u64, _: u64, _: Waiting) -> io::Result<()> {
        self.responses.lock().unwrap().push_back(number);
        if number == self.stalled_at {
            (self.at_stall)(&self.control);
        }
        Ok(())
    }
    fn end(&mut self) {}
}

/// Each call receives one response, after a stall that is longer than the timeout.
struct AfterStalls(Arc<Socket>, UnixDatagram);

impl Responses for AfterStalls {
    fn receive(
        &mut self,
        _: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let next = self.0.responses.lock().unwrap().pop_front();
        next.map(|number| answered(number, false)).ok_or(io::ErrorKind::WouldBlock)?;
        Ok(Received::Some)
    }
    fn is_final(_: &io::Error) -> bool {
        true
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
    fn begin(&mut self, _: &mut Worker) {}
    fn finish(self, _: &mut Worker) -> Option<StampReport> {
        None
    }
}

/// Responses of which none is read before all requests have left.
struct AfterRequests(AfterStalls);

impl Responses for AfterRequests {
    fn receive(
        &mut self,
        waiting: Waiting,
        answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let socket = &self.0.0;
        if socket.control.is_running() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.0.receive(waiting, answered)
    }
    fn is_final(_: &io::Error) -> bool {
        true
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor()
    }
    fn begin(&mut self, _: &mut Worker) {}
    fn finish(self, _: &mut Worker) -> Option<StampReport> {
        None
    }
}

fn settings(duration: Nanos) -> Settings {
    Settings {
        size: 64,
        outstanding: OUTSTANDING,
        wait: Wait::Block,
        rate: None,
        timing: Timing { duration, warmup: Nanos(0), cooldown: Nanos(0) },
        idle: None,
        // Every request is older than its timeout when its response is read.
        lost_after_ns: 0,
        timestamps: false,
    }
}

fn fakes(stalled_at: u64, at_stall: fn(&Control)) -> (Worker, Arc<Socket>, AfterStalls) {
    let control = Arc::new(Control::new((1, 1), false, Vec::new(), Arc::default()));
    control.begin();
    let socket =
        Arc::new(Socket { responses: Mutex::default(), control: Arc::clone(&control), stalled_at, at_stall });
    let responses = AfterStalls(Arc::clone(&socket), UnixDatagram::unbound().unwrap());
    (Worker::new(control, 0), socket, responses)
}

fn counts(report: &RoundTripReport) -> (u64, u64, u64) {
    (report.requests, report.responses, report.timeouts)
}

fn run_closed(duration: Nanos, stalled_at: u64, at_stall: fn(&Control)) -> RoundTripReport {
    let (mut worker, mut socket, mut responses) = fakes(stalled_at, at_stall);
    let settings = settings(duration);
    let recorder = Recorder::new(worker.control.started_ns(), settings.timing, false);
    closed_loop::run(&mut worker, settings, Some(0), recorder, &mut socket, &mut responses)
}

#[test]
fn responses_that_wait_in_the_socket_are_not_lost() {
    let report = run_closed(HOUR, REQUESTS - 1, Control::finish);
    assert_eq!(counts(&report), (REQUESTS, REQUESTS, 0));
}

#[test]
fn responses_that_wait_in_the_socket_after_the_end_are_not_lost() {
    // Long enough for the first requests to leave within it.
    const DURATION: Nanos = Nanos(1_000_000_000);
    let report = run_closed(DURATION, OUTSTANDING as u64 - 1, |control| {
        clock::sleep_until(control.started_ns() + DURATION.0);
    });
    let outstanding = OUTSTANDING as u64;
    assert_eq!(counts(&report), (outstanding, outstanding, 0));
}

/// An open loop whose schedule is over before it begins: all requests leave at once.
fn open(worker: &Worker) -> open_loop::Open {
    let schedule = Schedule::per_second(worker.control.started_ns(), 1_000_000_000);
    open_loop::Open { schedule, settings: settings(Nanos(REQUESTS)), lost_after_ns: Some(0) }
}

#[test]
fn receiving_thread_that_begins_late_loses_no_response() {
    let (mut worker, mut socket, mut responses) = fakes(u64::MAX, |_| ());
    let (open, shared) = (open(&worker), open_loop::Shared::default());
    open_loop::send(&mut worker, open, &shared, &mut socket);
    let report = open_loop::receive(&mut worker, open, &shared, &mut responses);
    assert_eq!(counts(&report), (REQUESTS, REQUESTS, 0));
}

#[test]
fn busy_polling_thread_that_stalls_after_the_end_loses_no_response() {
    let (mut worker, mut socket, responses) = fakes(REQUESTS - 1, Control::finish);
    let open = open(&worker);
    let report = open_loop::spin(&mut worker, open, &mut socket, &mut AfterRequests(responses));
    assert_eq!(counts(&report), (REQUESTS, REQUESTS, 0));
}
