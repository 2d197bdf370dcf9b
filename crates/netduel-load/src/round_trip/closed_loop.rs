//! The closed loop: a fixed number of outstanding requests; each response allows the next request. The requests that a stalled
//! server would have received are not measured; the open loop does that.
use std::collections::VecDeque;
use std::io;

use netduel_model::sample::RoundTripReport;
use netduel_model::workload::Wait;
use netduel_sys::clock;
use netduel_sys::socket::{self, Waiting};

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
        let is_empty = matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        if !can_continue::<R>(worker, result) {
            break;
        }
        if let Some(limit) = lost_after_ns {
            // After a standstill of this process, responses that came in time wait in the socket: a request is lost only when the
            // socket is empty. A flood of other messages must not keep the trial from its end.
            let now = clock::monotonic_ns();
            if is_empty || now > end_ns.saturating_add(limit) {
                recorder.timeouts += table.give_up(now, limit);
            }
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

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixDatagram;
    use std::sync::{Arc, Mutex};

    use netduel_model::stamps::StampReport;
    use netduel_model::units::Nanos;
    use netduel_model::workload::Timing;

    use super::*;
    use crate::control::Control;

    /// Requests of the fakes. More than are outstanding, so that answered ones get successors.
    const REQUESTS: u64 = 12;
    const OUTSTANDING: usize = 4;

    /// A server whose responses all wait in the socket, in order.
    #[derive(Default)]
    struct Socket {
        responses: Mutex<VecDeque<u64>>,
        control: Mutex<Option<Arc<Control>>>,
    }

    impl Requests for Arc<Socket> {
        fn send(&mut self, number: u64, _: u64, _: Waiting) -> io::Result<()> {
            self.responses.lock().unwrap().push_back(number);
            if number + 1 == REQUESTS {
                self.control.lock().unwrap().as_ref().unwrap().finish();
            }
            Ok(())
        }
        fn end(&mut self) {}
    }

    /// Each call finds the client after a stall that is longer than the timeout, and receives one response.
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

    #[test]
    fn responses_that_wait_in_the_socket_after_a_stall_are_not_lost() {
        let socket = Arc::new(Socket::default());
        let control = Arc::new(Control::new((1, 1), false, Vec::new(), Arc::default()));
        *socket.control.lock().unwrap() = Some(Arc::clone(&control));
        control.begin();
        let timing = Timing { duration: Nanos(3_600_000_000_000), warmup: Nanos(0), cooldown: Nanos(0) };
        let settings = Settings {
            size: 64,
            outstanding: OUTSTANDING,
            wait: Wait::Block,
            rate: None,
            timing,
            idle: None,
            // Every request is older than its timeout when its response is read.
            lost_after_ns: 0,
            timestamps: false,
        };
        let recorder = Recorder::new(control.started_ns(), timing, false);
        let mut worker = Worker::new(control, 0);
        let mut responses = AfterStalls(Arc::clone(&socket), UnixDatagram::unbound().unwrap());
        let report = run(&mut worker, settings, Some(0), recorder, &mut socket.clone(), &mut responses);
        assert_eq!((report.requests, report.responses, report.timeouts), (REQUESTS, REQUESTS, 0));
    }
}
