//! The sender of UDP datagrams: batches in one system call, each datagram numbered, dated and told by the trial's magic.
//! A datagram counts as sent when the kernel took it; a full queue is back-pressure: counted, and tried again.
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use netduel_sys::socket::{self, Waiting};
use netduel_sys::udp::SendBatch;
use netduel_sys::{clock, error_name, memory_file};

use crate::datagram::{self, MESSAGE_HEADER};
use crate::jobs::Worker;
use crate::pacing::Schedule;

/// Datagrams in one system call when the rate is not limited.
const BATCH: usize = 64;
/// Most datagrams sent at once when it is: a burst that a path of ordinary buffers takes without loss.
const PACED_BATCH: usize = 16;
/// Longest time between two paced batches of more than one datagram, nanoseconds.
const PACED_BATCH_NS: u64 = 100_000;
/// Longest sleep in a call, so that an end can be cut.
const CALL_LIMIT: Duration = Duration::from_millis(20);
/// Pause after the kernel refused a datagram for want of room, nanoseconds: a queue of a 1 Gbit/s link gives some 2 full
/// frames of room in it.
const REFUSED_PAUSE_NS: u64 = 20_000;
/// Pause after an error that will not pass in microseconds, nanoseconds.
const ERROR_PAUSE_NS: u64 = 1_000_000;
/// End markers: so many, because each may be lost; apart, because losses come in bursts.
const MARKERS: u32 = 5;
const MARKER_GAP_NS: u64 = 2_000_000;

/// Settings of one flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UdpSettings {
    /// Payload bytes of a datagram.
    pub size: usize,
    /// Payload rate of all flows, bit/s; `None` is without limit.
    pub rate_bps: Option<u64>,
    pub flows: u32,
    pub duration_ns: u64,
}

/// What a failed send means for the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Retry { pause_ns: u64 },
    Over,
}

/// Sends for the duration.
pub(crate) fn send(
    worker: &mut Worker,
    socket: &UdpSocket,
    settings: UdpSettings,
    magic: u64,
    end_magic: u64,
) {
    worker.tally.count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(socket, CALL_LIMIT));
    let started_ns = worker.control.started_ns();
    let end_ns = started_ns.saturating_add(settings.duration_ns);
    let schedule = settings.rate_bps.map(|rate| {
        Schedule::of_flow(started_ns, rate, settings.size as u64, worker.stream as u32, settings.flows)
    });
    let capacity = schedule.map_or(BATCH, |schedule| schedule.batch(PACED_BATCH_NS, PACED_BATCH));
    let mut batch = SendBatch::new(capacity, settings.size);
    for index in 0..capacity {
        memory_file::fill_with_pattern(batch.payload_mut(index));
    }
    let mut number = 0;
    while worker.control.is_running() {
        let count = match &schedule {
            None => capacity,
            Some(schedule) => match wait_for_batch(worker, schedule, number, capacity, end_ns) {
                0 => break,
                count => count,
            },
        };
        let now = clock::monotonic_ns();
        if schedule.is_none() && now >= end_ns {
            break;
        }
        for index in 0..count {
            let payload = batch.payload_mut(index);
            datagram::write_number(payload, magic, number + index as u64);
            datagram::write_time(payload, now);
        }
        match batch.send(socket, count) {
            Ok(taken) => {
                number += taken as u64;
                worker.sent().add((taken * settings.size) as u64, taken as u64, now);
            }
            Err(error) => match refused(worker, "sendmmsg", &error) {
                Refusal::Over => break,
                Refusal::Retry { pause_ns } => {
                    if now >= end_ns.saturating_add(ERROR_PAUSE_NS) {
                        break;
                    }
                    clock::sleep_until(now + pause_ns);
                }
            },
        }
    }
    if !worker.control.is_cut() {
        send_markers(socket, end_magic);
    }
}

/// Waits until datagram `number` is due, and tells how many are to be sent now; 0 when the duration is over. It sleeps in
/// steps, so that a slow schedule can be cut.
fn wait_for_batch(worker: &Worker, schedule: &Schedule, number: u64, capacity: usize, end_ns: u64) -> usize {
    const STEP_NS: u64 = 20_000_000;
    // Waiting for the last of a batch would be late for the first, so a batch leaves when its first is due; what is due
    // before the end belongs to the trial, and no more.
    let in_time = (0..capacity as u64).take_while(|index| schedule.due_ns(number + index) < end_ns).count();
    let due = schedule.due_ns(number);
    if in_time == 0 {
        // The duration counts to its end even when no datagram is due in the rest of it.
        while worker.control.is_running() && clock::monotonic_ns() < end_ns {
            clock::sleep_until(end_ns.min(clock::monotonic_ns() + STEP_NS));
        }
        return 0;
    }
    while clock::monotonic_ns() + STEP_NS < due {
        if !worker.control.is_running() {
            return 0;
        }
        clock::sleep_until(due.min(clock::monotonic_ns() + STEP_NS / 2));
    }
    clock::sleep_then_spin_until(due);
    in_time
}

/// Counts a refused send and tells what follows.
fn refused(worker: &mut Worker, call: &'static str, error: &io::Error) -> Refusal {
    if worker.control.is_cut() {
        return Refusal::Over;
    }
    if error.kind() == io::ErrorKind::Interrupted {
        return Refusal::Retry { pause_ns: 0 };
    }
    worker.tally.count(call, error);
    match error.raw_os_error().and_then(error_name::of) {
        // Nobody listens there any more: to go on would be to flood a host without an agent.
        Some("ECONNREFUSED" | "EPIPE" | "EMSGSIZE") => Refusal::Over,
        Some("ENOBUFS" | "EAGAIN") => Refusal::Retry { pause_ns: REFUSED_PAUSE_NS },
        _ => Refusal::Retry { pause_ns: ERROR_PAUSE_NS },
    }
}

/// Tells the peer that no more comes. A failure means that the peer is gone or the path is broken; its own deadline or
/// `finish` ends it then.
pub(crate) fn send_markers(socket: &UdpSocket, end_magic: u64) {
    let mut marker = [0; MESSAGE_HEADER];
    datagram::write_number(&mut marker, end_magic, 0);
    for index in 0..MARKERS {
        if index > 0 {
            clock::sleep_until(clock::monotonic_ns() + MARKER_GAP_NS);
        }
        let _ = socket::send(socket, &marker, Waiting::Block);
    }
}
