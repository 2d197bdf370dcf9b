//! Collects the time stamps of requests, which come from client, server and both kernels at different times, and splits the round
//! trips into parts.
use netduel_model::stamps::{Clocks, MissingStamps, OneWayReport, Part, StampReport};
use netduel_model::workload::Timing;
use netduel_stats::clock_offset::{ClockOffset, Exchange};
use netduel_stats::histogram::Histogram;
use netduel_sys::timestamping::Stamp;

use super::clock_id;
use super::parts::{Lengths, Parts};
use super::realtime_offset::RealtimeOffset;
use super::server_times::ServerTimes;
use crate::recorder::{Trip, Window};

/// Exchanges kept for one-way delay; beyond this number every second one is dropped, evenly over the trial.
const EXCHANGES_MAX: usize = 1 << 16;

/// The stamps of one request, nanoseconds of the monotonic clock of the host that took them. 0 is unknown.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    /// Request number plus one; 0 is a free slot.
    number: u64,
    /// When the response was there; 0 before.
    received: u64,
    /// Start of the round trip: the send time, or in an open loop the scheduled time.
    started: u64,
    sent: u64,
    transmit: u64,
    receive: u64,
    server: ServerTimes,
    server_transmit: u64,
    hardware: (u64, u64),
    stepped: bool,
}

/// The stamped requests of a client.
pub(super) struct Collector {
    steady: Window,
    carries: bool,
    wall: RealtimeOffset,
    samples: Box<[Sample]>,
    parts: Parts,
    whole: Histogram,
    hardware: Histogram,
    exchanges: Vec<Exchange>,
    /// Interval between kept exchanges, and exchanges to skip before the next.
    stride: (u32, u32),
    report: StampReport,
    server_clock: u64,
    last_answered: Option<u64>,
}

impl Collector {
    /// Room for `places` requests. `carries`: responses carry the server's times.
    pub(super) fn new(places: usize, open_loop: bool, carries: bool) -> Self {
        let middle: &[Part] = if carries {
            &[Part::Network, Part::ServerReceive, Part::ServerProgram, Part::ServerSend]
        } else {
            &[Part::NetworkAndServer]
        };
        let late: &[Part] = if open_loop { &[Part::ScheduleDelay] } else { &[] };
        let kinds = [late, &[Part::ClientSend], middle, &[Part::ClientReceive]].concat();
        Self {
            steady: Window::default(),
            carries,
            wall: RealtimeOffset::new(),
            samples: vec![Sample::default(); places].into(),
            parts: Parts::new(&kinds),
            whole: Histogram::new(),
            hardware: Histogram::new(),
            exchanges: Vec::with_capacity(if carries { EXCHANGES_MAX } else { 0 }),
            stride: (1, 0),
            report: StampReport::default(),
            server_clock: 0,
            last_answered: None,
        }
    }

    /// Sets the start of the traffic.
    pub(super) fn begin(&mut self, started_ns: u64, timing: Timing) {
        self.steady = Window::steady(started_ns, timing);
    }

    /// The slot of a request. A previous request in it is finished.
    fn sample(&mut self, number: u64) -> &mut Sample {
        let place = number as usize % self.samples.len();
        if self.samples[place].number != number + 1 {
            let old = std::mem::replace(
                &mut self.samples[place],
                Sample { number: number + 1, ..Sample::default() },
            );
            self.settle(&old);
        }
        &mut self.samples[place]
    }

    /// Adds the response to a stamped request. `stamp` is that of its packet, or empty when unknown.
    pub(super) fn answered(
        &mut self,
        number: u64,
        sent_ns: u64,
        trip: Trip,
        stamp: Stamp,
        times: ServerTimes,
    ) {
        self.last_answered = Some(number);
        let stepped = self.wall.read();
        let receive = self.wall.monotonic_ns(stamp.software_ns.unwrap_or(0));
        let carries = self.carries;
        let sample = self.sample(number);
        sample.stepped |= stepped;
        (sample.started, sample.received, sample.sent) = (trip.start_ns, trip.now_ns, sent_ns);
        sample.receive = receive;
        sample.hardware.1 = stamp.hardware_ns.unwrap_or(0);
        if !carries {
            return;
        }
        sample.server = times;
        self.server_clock = times.clock;
        let earlier = times.earlier_number;
        // Ignores a request whose slot has been reused.
        if times.earlier_transmit != 0
            && number.checked_sub(earlier).is_some_and(|since| since < self.samples.len() as u64)
        {
            self.sample(earlier).server_transmit = times.earlier_transmit;
        }
    }

    /// Adds the client's transmit stamp of a request, by the kernel or the NIC. True when the last answered request has all of its
    /// stamps.
    pub(super) fn transmitted(&mut self, number: u64, stamp: Stamp) -> bool {
        let transmit = self.wall.monotonic_ns(stamp.software_ns.unwrap_or(0));
        let sample = self.sample(number);
        // A retransmit is stamped again; its delay belongs to the network.
        if sample.transmit == 0 {
            sample.transmit = transmit;
        }
        if sample.hardware.0 == 0 {
            sample.hardware.0 = stamp.hardware_ns.unwrap_or(0);
        }
        let is_whole = sample.transmit != 0 && (sample.hardware.1 == 0 || sample.hardware.0 != 0);
        is_whole && self.last_answered == Some(number)
    }

    /// Counts a request, when no more stamps are expected.
    fn settle(&mut self, sample: &Sample) {
        if sample.number == 0 || sample.received == 0 || !self.steady.contains(sample.started) {
            return;
        }
        self.report.stamped += 1;
        self.whole.record(sample.received.saturating_sub(sample.started));
        if let (from @ 1.., to) = sample.hardware
            && let Some(length) = to.checked_sub(from)
        {
            self.hardware.record(length);
        }
        if sample.stepped {
            self.report.clock_steps += 1;
            return;
        }
        let missing = missing(sample, self.carries);
        if missing != MissingStamps::default() {
            add(&mut self.report.missing, missing);
            return;
        }
        match lengths(sample, self.carries) {
            Some(lengths) => {
                self.report.complete += 1;
                self.parts.record(&lengths);
                if self.carries {
                    self.keep(sample);
                }
            }
            None => self.report.inconsistent += 1,
        }
    }

    /// Keeps an exchange for one-way delay.
    fn keep(&mut self, sample: &Sample) {
        let (stride, pass) = &mut self.stride;
        if *pass > 0 {
            *pass -= 1;
            return;
        }
        if self.exchanges.len() == EXCHANGES_MAX {
            let mut index = 0;
            self.exchanges.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            *stride *= 2;
        }
        *pass = *stride - 1;
        self.exchanges.push(Exchange {
            at_ns: sample.transmit,
            up_ns: sample.server.kernel_received.wrapping_sub(sample.transmit).cast_signed(),
            down_ns: sample.receive.wrapping_sub(sample.server_transmit).cast_signed(),
        });
    }

    /// The report.
    pub(super) fn finish(mut self) -> StampReport {
        for place in 0..self.samples.len() {
            let sample = std::mem::take(&mut self.samples[place]);
            self.settle(&sample);
        }
        self.exchanges.sort_unstable_by_key(|exchange| exchange.at_ns);
        let one_clock = self.server_clock != 0 && self.server_clock == clock_id::own();
        StampReport {
            round_trip: Some(self.whole.to_record()),
            parts: self.parts.histograms(),
            levels: self.parts.levels(),
            hardware: (self.hardware.count() > 0).then(|| self.hardware.to_record()),
            one_way: one_way(&self.exchanges, one_clock),
            ..self.report
        }
    }
}

/// The missing stamps of a request.
fn missing(sample: &Sample, carries: bool) -> MissingStamps {
    let lacks = |time: u64| u64::from(time == 0);
    let server = |time: u64| if carries { lacks(time) } else { 0 };
    MissingStamps {
        client_transmit: lacks(sample.transmit),
        client_receive: lacks(sample.receive),
        server_receive: server(sample.server.kernel_received),
        server_transmit: server(sample.server_transmit),
    }
}

pub(super) fn add(sum: &mut MissingStamps, other: MissingStamps) {
    sum.client_transmit += other.client_transmit;
    sum.client_receive += other.client_receive;
    sum.server_receive += other.server_receive;
    sum.server_transmit += other.server_transmit;
}

/// The durations of the parts; absent when one is negative, or they do not add up to the round trip.
fn lengths(sample: &Sample, carries: bool) -> Option<Lengths> {
    let Sample { started, sent, transmit, receive, received, server, server_transmit, .. } = *sample;
    let mut lengths = Lengths::default();
    let mut set = |part: Part, from: u64, to: u64| {
        lengths[part as usize] = to.checked_sub(from)?;
        Some(lengths[part as usize])
    };
    set(Part::ScheduleDelay, started, sent)?;
    set(Part::ClientSend, sent, transmit)?;
    set(Part::ClientReceive, receive, received)?;
    if carries {
        let held = server_transmit.checked_sub(server.kernel_received)?;
        set(Part::ServerReceive, server.kernel_received, server.received)?;
        set(Part::ServerProgram, server.received, server.sent)?;
        set(Part::ServerSend, server.sent, server_transmit)?;
        set(Part::Network, transmit.checked_add(held)?, receive)?;
    } else {
        set(Part::NetworkAndServer, transmit, receive)?;
    }
    (lengths.iter().sum::<u64>() == received.checked_sub(started)?).then_some(lengths)
}

/// One-way delays, with the estimated offset of the clocks; absent with too few exchanges.
fn one_way(exchanges: &[Exchange], one_clock: bool) -> Option<OneWayReport> {
    let one = one_clock.then(|| ClockOffset::of_one_clock(exchanges)).flatten();
    let clocks = if one.is_some() { Clocks::Shared } else { Clocks::Estimated };
    let offset = one.or_else(|| ClockOffset::estimate(exchanges))?;
    let (mut up, mut down, mut negative) = (Histogram::new(), Histogram::new(), 0);
    for exchange in exchanges {
        let at = offset.at(exchange.at_ns);
        let ways = (exchange.up_ns.saturating_sub(at), exchange.down_ns.saturating_add(at));
        negative += u64::from(ways.0 < 0 || ways.1 < 0);
        up.record(ways.0.max(0).cast_unsigned());
        down.record(ways.1.max(0).cast_unsigned());
    }
    Some(OneWayReport {
        up: up.to_record(),
        down: down.to_record(),
        error_ns: offset.error_ns(),
        clocks,
        offset_ns: offset.at(exchanges[exchanges.len() / 2].at_ns),
        drift_ppb: offset.drift_ppb(),
        negative,
    })
}

#[cfg(test)]
mod tests;
