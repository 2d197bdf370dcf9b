//! The open loop: requests leave on a schedule whatever the server does, and each round trip counts from its scheduled
//! time, so that a stall is seen by all the requests that it held up (no coordinated omission).
//!
//! Blocking, one thread sends and another receives: neither waits for the other. Spinning, one thread does both.
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use netduel_model::sample::{LEFT_UNSENT, RoundTripReport};
use netduel_stats::histogram::Histogram;
use netduel_sys::clock;
use netduel_sys::socket::Waiting;

use super::closed_loop::can_continue;
use super::loss::{Call, Drain};
use super::settings::Settings;
use super::transport::{Received, Requests, Responses};
use crate::pacing::{LATE_LIMIT_NS, Schedule};
use crate::recorder::{Recorder, Trip};
use crate::worker::Worker;

/// How long the receiving thread waits for the sending thread after an abort, nanoseconds: that may never have started.
const CUT_LIMIT_NS: u64 = 1_000_000_000;
/// Pause after an error of the path, nanoseconds. The schedule continues: missed requests are sent late, which counts.
const ERROR_PAUSE_NS: u64 = 1_000_000;

/// Settings of an open loop.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub schedule: Schedule,
    pub settings: Settings,
    /// Time to wait for responses after the last request, when they can be lost, nanoseconds.
    pub lost_after_ns: Option<u64>,
}

impl Open {
    fn end_ns(&self, worker: &Worker) -> u64 {
        worker.control.started_ns().saturating_add(self.settings.timing.duration.0)
    }

    /// The recorder of the receiving thread.
    fn recorder(&self, worker: &Worker) -> Recorder {
        let recorder = Recorder::new(worker.control.started_ns(), self.settings.timing, true);
        recorder.with_idle(self.settings.idle).shown_live(&worker.control.live_latency)
    }

    /// Whether all requests are answered or lost, after a receive call. The last one left at `ended_ns`.
    fn is_over(&self, requests: u64, responses: u64, ended_ns: u64, drain: &mut Drain, call: Call) -> bool {
        let deadline_ns = self.lost_after_ns.map(|limit| ended_ns.saturating_add(limit));
        responses >= requests || deadline_ns.is_some_and(|deadline_ns| drain.is_over(call, deadline_ns))
    }
}

/// Shared by the sending and the receiving thread.
#[derive(Default)]
pub(super) struct Shared {
    /// When the sender was done, nanoseconds of the monotonic clock; 0 before.
    ended_ns: AtomicU64,
    /// Requests sent, valid when the sender is done.
    requests: AtomicU64,
    /// Written once, at the end.
    pacing: Mutex<Option<Histogram>>,
}

/// The sending thread.
pub(super) fn send<Q: Requests>(worker: &mut Worker, open: Open, shared: &Shared, requests: &mut Q) {
    let mut recorder =
        Recorder::new(worker.control.started_ns(), open.settings.timing, true).with_idle(open.settings.idle);
    let end_ns = open.end_ns(worker);
    let mut number = 0;
    while worker.control.is_running() {
        let due = open.schedule.due_ns(number);
        // The interval after the last request is a part of the trial.
        if !worker.wait_until(due.min(end_ns)) || due >= end_ns {
            break;
        }
        let now = clock::monotonic_ns();
        if now > end_ns.saturating_add(LATE_LIMIT_NS) {
            worker.errors.count_event("send", LEFT_UNSENT);
            break;
        }
        match requests.send(number, now, Waiting::Block) {
            Ok(()) => {
                left(worker, &mut recorder, &open, due, now);
                number += 1;
            }
            Err(error) => {
                if !is_worth_retrying(worker, "send", &error) {
                    break;
                }
            }
        }
    }
    let (count, pacing) = recorder.into_pacing();
    *shared.pacing.lock().unwrap_or_else(PoisonError::into_inner) = Some(pacing);
    shared.requests.store(count, SeqCst);
    shared.ended_ns.store(clock::monotonic_ns(), SeqCst);
    // TCP: the end of the stream ends the receiver after the last response. UDP: the server must run until the last request is
    // answered.
    let limit = open.lost_after_ns.map(|limit| clock::monotonic_ns() + limit);
    while limit.is_some_and(|limit| clock::monotonic_ns() < limit)
        && worker.received().read().messages < count
        && !worker.control.is_aborted()
    {
        clock::sleep_until(clock::monotonic_ns() + ERROR_PAUSE_NS);
    }
    if !worker.control.is_aborted() {
        requests.end();
    }
}

#[inline]
fn left(worker: &mut Worker, recorder: &mut Recorder, open: &Open, due: u64, now: u64) {
    recorder.leaves(due, now);
    recorder.requests += 1;
    worker.sent().add(open.settings.size as u64, 1, now);
}

/// Counts a send error; false when sending cannot continue.
fn is_worth_retrying(worker: &mut Worker, call: &'static str, error: &io::Error) -> bool {
    if worker.control.is_aborted() {
        return false;
    }
    if error.kind() == io::ErrorKind::Interrupted {
        return true;
    }
    worker.errors.count(call, error);
    let is_gone = matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    );
    if !is_gone {
        clock::sleep_until(clock::monotonic_ns() + ERROR_PAUSE_NS);
    }
    !is_gone
}

/// The receiving thread.
pub(super) fn receive<R: Responses>(
    worker: &mut Worker,
    open: Open,
    shared: &Shared,
    responses: &mut R,
) -> RoundTripReport {
    let mut recorder = open.recorder(worker);
    let mut drain = Drain::default();
    loop {
        // Nothing is lost over TCP, and no call reads the clock for it.
        let began_ns = open.lost_after_ns.map_or(0, |_| clock::monotonic_ns());
        let result = receive_once(worker, &open, &mut recorder, responses, Waiting::Block);
        let call = Call::new(began_ns, &result);
        let ended_ns = shared.ended_ns.load(SeqCst);
        let requests = shared.requests.load(SeqCst);
        if ended_ns != 0 && open.is_over(requests, recorder.responses, ended_ns, &mut drain, call) {
            break;
        }
        if !can_continue::<R>(worker, result) {
            break;
        }
    }
    // When the stream broke, the sending thread may still run. It sees the error, too, and then stores its count.
    let cut_limit_ns = clock::monotonic_ns() + CUT_LIMIT_NS;
    while shared.ended_ns.load(SeqCst) == 0 {
        if worker.control.is_aborted() && clock::monotonic_ns() > cut_limit_ns {
            break;
        }
        clock::sleep_until(clock::monotonic_ns() + ERROR_PAUSE_NS);
    }
    let requests = shared.requests.load(SeqCst);
    let pacing = shared.pacing.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    recorder.take_in_sender(requests, pacing);
    recorder.timeouts = requests.saturating_sub(recorder.responses);
    recorder.finish()
}

#[inline]
fn receive_once<R: Responses>(
    worker: &Worker,
    open: &Open,
    recorder: &mut Recorder,
    responses: &mut R,
    waiting: Waiting,
) -> io::Result<Received> {
    responses.receive(waiting, |number, is_stamped| {
        let now = clock::monotonic_ns();
        let trip = Trip { start_ns: open.schedule.due_ns(number), now_ns: now };
        recorder.trip(trip, is_stamped);
        worker.received().add(open.settings.size as u64, 1, now);
        Some(trip)
    })
}

/// A single thread that sends due requests and polls for responses, without sleeping.
pub(super) fn spin<Q: Requests, R: Responses>(
    worker: &mut Worker,
    open: Open,
    requests: &mut Q,
    responses: &mut R,
) -> RoundTripReport {
    let mut recorder = open.recorder(worker);
    let end_ns = open.end_ns(worker);
    let mut number = 0;
    let mut due = open.schedule.due_ns(0);
    let mut ended_ns = None;
    let mut drain = Drain::default();
    loop {
        let now = clock::monotonic_ns();
        if ended_ns.is_none() && (due.min(now) >= end_ns || !worker.control.is_running()) {
            ended_ns = Some(now);
        }
        if ended_ns.is_none() && now > end_ns.saturating_add(LATE_LIMIT_NS) {
            worker.errors.count_event("send", LEFT_UNSENT);
            ended_ns = Some(now);
        }
        if ended_ns.is_none() && due < end_ns && now >= due {
            match requests.send(number, now, Waiting::Never) {
                Ok(()) => {
                    left(worker, &mut recorder, &open, due, now);
                    number += 1;
                    due = open.schedule.due_ns(number);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    if !is_worth_retrying(worker, "send", &error) {
                        ended_ns = Some(now);
                    }
                }
            }
        }
        let result = receive_once(worker, &open, &mut recorder, responses, Waiting::Never);
        let call = Call::new(now, &result);
        if ended_ns.is_some_and(|ended| open.is_over(number, recorder.responses, ended, &mut drain, call))
            || !can_continue::<R>(worker, result)
        {
            break;
        }
    }
    recorder.timeouts = recorder.requests.saturating_sub(recorder.responses);
    if !worker.control.is_aborted() {
        requests.end();
    }
    recorder.finish()
}
