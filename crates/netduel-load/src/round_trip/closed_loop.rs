//! The closed loop: a fixed number of outstanding requests; each response allows the next request. The requests that a stalled
//! server would have received are not measured; the open loop does that.
use std::collections::VecDeque;
use std::io;

use netduel_model::sample::RoundTripReport;
use netduel_model::workload::Wait;
use netduel_sys::clock;
use netduel_sys::socket::{self, Waiting};

use super::loss::{Call, Drain};
use super::settings::Settings;
use super::transport::{Received, Requests, Responses};
use crate::recorder::{Recorder, Trip};
use crate::worker::{SLEEP_MAX, SLEEP_MAX_NS, Worker};

/// Pause after an error of the path, nanoseconds.
const ERROR_PAUSE_NS: u64 = 1_000_000;

/// A request. Request n has slot `n mod outstanding`; its successor there is `n + outstanding`.
#[derive(Clone, Copy)]
struct Slot {
    number: u64,
    sent_ns: u64,
    is_outstanding: bool,
}

/// The requests of a closed loop.
struct RequestTable {
    slots: Vec<Slot>,
    /// Requests to send, in order.
    waiting: VecDeque<u64>,
    outstanding_count: usize,
    scanned_ns: u64,
}

impl RequestTable {
    fn new(outstanding: usize) -> Self {
        let empty = Slot { number: 0, sent_ns: 0, is_outstanding: false };
        let waiting = (0..outstanding as u64).collect();
        Self { slots: vec![empty; outstanding], waiting, outstanding_count: 0, scanned_ns: 0 }
    }

    fn slot(&mut self, number: u64) -> &mut Slot {
        let index = number as usize % self.slots.len();
        &mut self.slots[index]
    }

    #[inline]
    fn sent(&mut self, number: u64, sent_ns: u64) {
        *self.slot(number) = Slot { number, sent_ns, is_outstanding: true };
        self.outstanding_count += 1;
        self.waiting.pop_front();
    }

    /// Marks request `number` as answered; absent when it had timed out.
    #[inline]
    fn answer(&mut self, number: u64) -> Option<u64> {
        let slot = self.slot(number);
        if !slot.is_outstanding || slot.number != number {
            return None;
        }
        slot.is_outstanding = false;
        let sent_ns = slot.sent_ns;
        self.queue_successor(number);
        Some(sent_ns)
    }

    fn queue_successor(&mut self, number: u64) {
        self.outstanding_count -= 1;
        self.waiting.push_back(number + self.slots.len() as u64);
    }

    /// Times out requests sent more than `lost_after_ns` ago; returns their number.
    fn give_up(&mut self, now: u64, lost_after_ns: u64) -> u64 {
        if now < self.scanned_ns + SLEEP_MAX_NS {
            return 0;
        }
        self.scanned_ns = now;
        let mut count = 0;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.is_outstanding && slot.sent_ns + lost_after_ns < now {
                slot.is_outstanding = false;
                let number = slot.number;
                self.queue_successor(number);
                count += 1;
            }
        }
        count
    }
}

/// Result of sending the waiting requests.
#[derive(PartialEq, Eq)]
enum Sent {
    All,
    NoRoom,
    Broken,
}

/// Runs the client until the duration is over and no request is outstanding.
pub(super) fn run<Q: Requests, R: Responses>(
    worker: &mut Worker,
    settings: Settings,
    lost_after_ns: Option<u64>,
    mut recorder: Recorder,
    requests: &mut Q,
    responses: &mut R,
) -> RoundTripReport {
    let end_ns = worker.control.started_ns().saturating_add(settings.timing.duration.0);
    let size = settings.size as u64;
    let mut table = RequestTable::new(settings.outstanding);
    let mut drain = Drain::default();
    loop {
        let sent = send_ready(worker, &mut table, requests, &mut recorder, size, end_ns);
        if sent == Sent::Broken || (table.outstanding_count == 0 && table.waiting.is_empty()) {
            break;
        }
        let waiting = match (settings.wait, &sent) {
            (Wait::Block | Wait::BusyPoll, Sent::All) => Waiting::Block,
            (Wait::Block | Wait::BusyPoll, _) => {
                // Both directions are full; room in either one allows progress.
                let room = socket::wait_readable_or_writable(responses.descriptor(), SLEEP_MAX);
                worker.errors.count_failure("poll", room);
                Waiting::Never
            }
            (Wait::Spin, _) => Waiting::Never,
        };
        let mut belated = 0;
        let timeout = lost_after_ns.map(|limit| (limit, clock::monotonic_ns()));
        let result = responses.receive(waiting, |number, is_stamped| {
            let now = clock::monotonic_ns();
            let Some(sent_ns) = table.answer(number) else {
                belated += 1;
                return None;
            };
            let trip = Trip { start_ns: sent_ns, now_ns: now };
            recorder.trip(trip, is_stamped);
            worker.control.received[worker.stream].add(size, 1, now);
            Some(trip)
        });
        for _ in 0..belated {
            worker.errors.count_event("recv", "response after its timeout");
        }
        let call = timeout.map(|(limit, began_ns)| (limit, Call::new(began_ns, &result)));
        if !can_continue::<R>(worker, result) {
            break;
        }
        if let Some((limit, call)) = call
            && (drain.is_over(call, end_ns.saturating_add(limit)) || call.is_empty)
        {
            recorder.timeouts += table.give_up(call.began_ns, limit);
        }
    }
    recorder.timeouts += table.outstanding_count as u64;
    if !worker.control.is_aborted() {
        requests.end();
    }
    recorder.finish()
}

/// Sends the waiting requests.
#[inline]
fn send_ready<Q: Requests>(
    worker: &mut Worker,
    table: &mut RequestTable,
    requests: &mut Q,
    recorder: &mut Recorder,
    size: u64,
    end_ns: u64,
) -> Sent {
    while let Some(number) = table.waiting.front().copied() {
        let now = clock::monotonic_ns();
        if now >= end_ns || !worker.control.is_running() {
            table.waiting.clear();
            return Sent::All;
        }
        match requests.send(number, now, Waiting::Never) {
            Ok(()) => {
                table.sent(number, now);
                recorder.requests += 1;
                worker.sent().add(size, 1, now);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Sent::NoRoom,
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count("send", &error);
                }
                let is_gone = matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::BrokenPipe
                        | io::ErrorKind::ConnectionReset
                );
                if is_gone || worker.control.is_aborted() {
                    return Sent::Broken;
                }
                clock::sleep_until(now + ERROR_PAUSE_NS);
                return Sent::NoRoom;
            }
        }
    }
    Sent::All
}

/// Counts the result of a receive call; false when receiving cannot continue.
pub(super) fn can_continue<R: Responses>(worker: &mut Worker, result: io::Result<Received>) -> bool {
    match result {
        Ok(Received::Some) => {
            worker.note_message();
            true
        }
        Ok(Received::Unexpected) => {
            if !worker.control.is_aborted() {
                worker.errors.count_event("recv", "unexpected or duplicate message");
            }
            !worker.control.is_aborted()
        }
        Ok(Received::End) => {
            if !worker.control.is_aborted() {
                worker.errors.count_event("recv", "connection closed before the last response");
            }
            false
        }
        Err(error) if socket::is_transient(&error) => {
            worker.spin();
            !worker.control.is_aborted()
        }
        Err(error) => {
            if !worker.control.is_aborted() {
                worker.errors.count("recv", &error);
            }
            !R::is_final(&error) && !worker.control.is_aborted()
        }
    }
}
