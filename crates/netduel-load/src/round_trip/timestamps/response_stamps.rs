//! What the server knows of the stamped requests that it answered: its transmit stamps come after the response has left, and
//! travel with the next one.
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

/// Responses whose transmit stamps are waited for at a time; an older one is given up.
const SLOTS: usize = 64;
/// Transmit stamps read after a response at most: as a rule there is one.
const QUEUE_READS_MAX: usize = 8;

/// A stamped response, nanoseconds of the monotonic clock. 0 is not known.
#[derive(Debug, Clone, Copy, Default)]
struct StampedResponse {
    /// Where the kernel's count of it stands (see `StampKeys`).
    position: u64,
    /// Its number plus one; 0 is a free place.
    number: u64,
    kernel_received: u64,
    received: u64,
    sent: u64,
    transmit: u64,
    hardware: (u64, u64),
    stepped: bool,
}

/// The server's book of stamped responses.
pub(super) struct ResponseStamps {
    clock: u64,
    wall: RealtimeOffset,
    keys: StampKeys,
    steady: Window,
    responses: [StampedResponse; SLOTS],
    /// Index of the next response.
    next: usize,
    last_position: u64,
    /// Number and transmit time of the newest response whose stamp came.
    earlier: (u64, u64),
    /// The server's own parts, where responses are too small to carry its times.
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

    /// The times to write into the response to request `number`, which the program had at `received_ns`. `stamp` is that of
    /// the request's packet, or empty when that cannot be told.
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

    /// The response with these times has left; its transmit stamp was asked for.
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

    /// Takes transmit stamps off the error queue.
    pub(super) fn drain(&mut self, worker: &mut Worker, socket: impl AsFd) {
        let Self { wall, keys, responses, earlier, last_position, .. } = self;
        let result = timestamping::transmitted(socket, QUEUE_READS_MAX, |transmitted| {
            let position = keys.position(transmitted.key, *last_position);
            let response = responses
                .iter_mut()
                .find(|response| response.number != 0 && Some(response.position) == position);
            let Some(response) = response else { return ControlFlow::Continue(()) };
            // What TCP sends again is stamped again; the first counts.
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
            // The NIC's stamp of the same response comes besides, where it stamps at all.
            let is_whole = response.transmit != 0 && (response.hardware.0 == 0 || response.hardware.1 != 0);
            if response.position == *last_position && is_whole {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        worker.errors.count_failure("recvmsg MSG_ERRQUEUE", result);
    }

    /// A send call failed, and whether the kernel counted it cannot be known.
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

    /// What the server alone can tell; absent when it is nothing, because its times travelled in the responses.
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
