//! The time-stamped responses of a server. A transmit stamp arrives after the response has left, and the next response carries it.
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use netduel_model::stamps::{MissingStamps, Part, StampReport};
use netduel_model::workload::Timing;
use netduel_stats::histogram::Histogram;
use netduel_sys::timestamping::{self, Stamp};

use super::clock_id;
use super::collector::add;
use super::parts::{Lengths, Parts};
use super::realtime_offset::RealtimeOffset;
use super::server_times::ServerTimes;
use super::stamp_keys::StampKeys;
use crate::recorder::Window;
use crate::worker::Worker;

/// Responses that wait for their transmit stamps at the same time, at most.
const SLOTS: usize = 64;
/// Transmit stamps read after a response, at most; usually there is one.
const QUEUE_READS_MAX: usize = 8;

/// A stamped response, nanoseconds of the monotonic clock. 0 is unknown.
#[derive(Debug, Clone, Copy, Default)]
struct StampedResponse {
    /// Its position in the kernel's numbering (see `StampKeys`).
    position: u64,
    /// Its number plus one; 0 is a free slot.
    number: u64,
    kernel_received: u64,
    received: u64,
    sent: u64,
    transmit: u64,
    hardware: (u64, u64),
    stepped: bool,
}

/// The stamped responses.
pub(super) struct ResponseStamps {
    clock: u64,
    wall: RealtimeOffset,
    keys: StampKeys,
    steady: Window,
    responses: [StampedResponse; SLOTS],
    /// Index of the next response.
    next: usize,
    last_position: u64,
    /// Number and transmit time of the newest response with a stamp.
    earlier: (u64, u64),
    /// The parts within the server, when responses are too small to carry its times.
    parts: Option<Parts>,
    hardware: Histogram,
    report: StampReport,
}

impl ResponseStamps {
    pub(super) fn new(
        worker: &mut Worker,
        enabled: io::Result<StampKeys>,
        timing: Timing,
        carries: bool,
    ) -> Self {
        let keys = enabled.unwrap_or_else(|error| {
            worker.errors.count("setsockopt SO_TIMESTAMPING", &error);
            StampKeys::of_datagrams()
        });
        let own = [Part::ServerReceive, Part::ServerProgram, Part::ServerSend];
        Self {
            clock: clock_id::own(),
            wall: RealtimeOffset::new(),
            keys,
            steady: Window::steady(worker.control.started_ns(), timing),
            responses: [StampedResponse::default(); SLOTS],
            next: 0,
            last_position: 0,
            earlier: (0, 0),
            parts: (!carries).then(|| Parts::new(&own)),
            hardware: Histogram::new(),
            report: StampReport::default(),
        }
    }

    /// The times for the response to request `number`, which the program received at `received_ns`. `stamp` is that of the
    /// request's packet, or empty when unknown.
    pub(super) fn times(&self, stamp: Stamp, received_ns: u64, sent_ns: u64) -> ServerTimes {
        ServerTimes {
            kernel_received: self.wall.monotonic_ns(stamp.software_ns.unwrap_or(0)),
            received: received_ns,
            sent: sent_ns,
            earlier_transmit: self.earlier.1,
            earlier_number: self.earlier.0,
            clock: self.clock,
        }
    }

    /// Adds a sent response with these times; its transmit stamp is requested.
    pub(super) fn answered(&mut self, number: u64, position: u64, times: ServerTimes, stamp: Stamp) {
        let stepped = self.wall.read();
        let response = StampedResponse {
            position,
            number: number + 1,
            kernel_received: times.kernel_received,
            received: times.received,
            sent: times.sent,
            transmit: 0,
            hardware: (stamp.hardware_ns.unwrap_or(0), 0),
            stepped,
        };
        let old = std::mem::replace(&mut self.responses[self.next % SLOTS], response);
        self.next += 1;
        self.last_position = position;
        self.settle(&old);
    }

    /// Reads transmit stamps from the error queue.
    pub(super) fn drain(&mut self, worker: &mut Worker, socket: impl AsFd) {
        let Self { wall, keys, responses, earlier, last_position, .. } = self;
        let result = timestamping::transmitted(socket, QUEUE_READS_MAX, |transmitted| {
            let position = keys.position(transmitted.key, *last_position);
            let response = responses
                .iter_mut()
                .find(|response| response.number != 0 && Some(response.position) == position);
            let Some(response) = response else { return ControlFlow::Continue(()) };
            // A retransmit is stamped again; the first stamp counts.
            if response.hardware.1 == 0 {
                response.hardware.1 = transmitted.stamp.hardware_ns.unwrap_or(0);
            }
            if let Some(software_ns) = transmitted.stamp.software_ns
                && !response.stepped
                && response.transmit == 0
            {
                response.transmit = wall.monotonic_ns(software_ns);
                *earlier = (response.number - 1, response.transmit);
            }
            // The stamp of the NIC comes in addition, when it has one.
            let is_whole = response.transmit != 0 && (response.hardware.0 == 0 || response.hardware.1 != 0);
            if response.position == *last_position && is_whole {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        worker.errors.count_failure("recvmsg MSG_ERRQUEUE", result);
    }

    /// Resets the numbering: a send failed, and the kernel may have counted it or not.
    pub(super) fn forget_keys(&mut self) {
        self.keys.forget();
    }

    fn settle(&mut self, response: &StampedResponse) {
        if response.number == 0 || !self.steady.contains(response.received) {
            return;
        }
        if let (from @ 1.., to) = response.hardware
            && let Some(length) = to.checked_sub(from)
        {
            self.hardware.record(length);
        }
        let Some(parts) = &mut self.parts else { return };
        self.report.stamped += 1;
        if response.stepped {
            self.report.clock_steps += 1;
            return;
        }
        let missing = MissingStamps {
            server_receive: u64::from(response.kernel_received == 0),
            server_transmit: u64::from(response.transmit == 0),
            ..MissingStamps::default()
        };
        if missing != MissingStamps::default() {
            add(&mut self.report.missing, missing);
            return;
        }
        let lengths = || {
            let mut lengths = Lengths::default();
            lengths[Part::ServerReceive as usize] =
                response.received.checked_sub(response.kernel_received)?;
            lengths[Part::ServerProgram as usize] = response.sent.checked_sub(response.received)?;
            lengths[Part::ServerSend as usize] = response.transmit.checked_sub(response.sent)?;
            Some(lengths)
        };
        match lengths() {
            Some(lengths) => {
                self.report.complete += 1;
                parts.record(&lengths);
            }
            None => self.report.inconsistent += 1,
        }
    }

    /// The report of the server; absent when its responses carried all of its times.
    pub(super) fn finish(mut self, worker: &mut Worker, socket: impl AsFd) -> Option<StampReport> {
        self.drain(worker, socket);
        for place in 0..SLOTS {
            let response = std::mem::take(&mut self.responses[place]);
            self.settle(&response);
        }
        if self.parts.is_none() && self.hardware.count() == 0 {
            return None;
        }
        Some(StampReport {
            parts: self.parts.as_ref().map(Parts::histograms).unwrap_or_default(),
            hardware: (self.hardware.count() > 0).then(|| self.hardware.to_record()),
            ..self.report
        })
    }
}
