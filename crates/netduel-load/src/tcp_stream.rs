//! Bulk data over TCP, one thread per direction of a stream. How bytes get into the kernel: `tcp_source.rs`.
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use netduel_model::workload::TcpEngine;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, tcp, tcp_info, uring, usage};

use crate::counted::Counted;
use crate::job::Job;
use crate::tcp_pacing::{Due, Pace};
use crate::tcp_settings::TcpSettings;
use crate::tcp_source::Source;
use crate::worker::{SLEEP_MAX, SLEEP_MAX_NS, Worker};

/// Bytes that the lean receiver discards in one call, at most.
const DISCARD_BYTES: usize = 4 << 20;
/// Low-water mark of the lean receiver. The end of the stream and a full window wake it sooner. With less data per wake-up the
/// kernel acknowledges every packet, which costs CPU time: 0.072 CPU s/GB with this value on a path without a limit, 0.088 with 512
/// KiB, 0.074 without; at 8 Gbit/s 0.116, 0.120 and 0.131.
const LOW_WATER_BYTES: i32 = 128 * 1024;
/// Bytes that the copying receiver reads in one call.
const READ_BYTES: usize = 128 * 1024;
/// How often a sender checks whether all data was acknowledged, nanoseconds.
const LOOK_NS: u64 = 500_000;

/// A thread for each direction of each connection.
pub(crate) fn jobs(
    (sends, receives): (bool, bool),
    settings: TcpSettings,
    connections: &[Arc<TcpStream>],
) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (stream, connection) in connections.iter().enumerate() {
        if receives {
            let connection = Arc::clone(connection);
            jobs.push(Job::infallible(stream, stream, move |worker| receive(worker, &connection, settings)));
        }
        if sends {
            let connection = Arc::clone(connection);
            jobs.push(Job::infallible(stream, stream, move |worker| send(worker, &connection, settings)));
        }
    }
    jobs
}

/// Sends for the duration, and then waits until the peer has read all of it.
pub(crate) fn send(worker: &mut Worker, stream: &TcpStream, settings: TcpSettings) -> Counted {
    worker.errors.count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(stream, SLEEP_MAX));
    let mut source = match Source::new(settings, stream) {
        Ok(source) => Some(source),
        Err((call, error)) => {
            worker.errors.count(call, &error);
            None
        }
    };
    if let Some(source) = &mut source {
        send_loop(worker, stream, source, settings);
        source.finish(worker);
    }
    // ENOTCONN: the connection is gone, and its error is counted.
    let _ = socket::shut_down_sending(stream);
    if settings.both {
        wait_for_acknowledgement(worker, stream);
    } else {
        wait_for_end(worker, stream);
    }
    match source.and_then(|source| source.settle(worker, stream)) {
        Some(report) => Counted::ZeroCopy(report),
        None => Counted::Nothing,
    }
}

fn send_loop(worker: &mut Worker, stream: &TcpStream, source: &mut Source, settings: TcpSettings) {
    worker.set_buffers([stream], settings.window);
    let pace = pace(worker, worker.stream, stream, settings);
    let end_ns = worker.control.started_ns().saturating_add(settings.duration_ns);
    let volume = volume_of(worker.stream as u64, settings);
    let mut sent = 0;
    while worker.control.is_running() && sent < volume {
        let left = usize::try_from(volume - sent).unwrap_or(usize::MAX);
        let due = match &pace {
            None => left,
            Some(pace) => match wait_until_due(worker, pace, sent) {
                0 => return,
                due => usize::try_from(due).unwrap_or(usize::MAX).min(left),
            },
        };
        let length = if settings.engine == TcpEngine::IoUring { due } else { due.min(settings.block) };
        let result = source.push(stream, length);
        let now = clock::monotonic_ns();
        match result {
            Ok(count) => {
                sent += count as u64;
                worker.sent().add(count as u64, 0, now);
            }
            Err(error) if socket::is_transient(&error) => {}
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count(source.call(), &error);
                }
                return;
            }
        }
        if now >= end_ns && pace.is_none() {
            return;
        }
    }
}

/// The stream's part of the volume: all parts together are the whole, to the byte.
pub(crate) fn volume_of(stream: u64, settings: TcpSettings) -> u64 {
    let streams = u64::from(settings.streams).max(1);
    settings.volume.map_or(u64::MAX, |volume| volume / streams + u64::from(stream < volume % streams))
}

/// The pacing of the stream, when the workload has a rate, with the kernel's pacing rate set.
pub(crate) fn pace(
    worker: &mut Worker,
    index: usize,
    stream: &TcpStream,
    settings: TcpSettings,
) -> Option<Pace> {
    let start_ns = worker.control.started_ns();
    let end_ns = start_ns.saturating_add(settings.duration_ns);
    let part = (index as u64, u64::from(settings.streams));
    let pace = Pace::new(start_ns, end_ns, settings.rate_bps?, part, settings.block as u64);
    if let Some(ceiling) = pace.kernel_ceiling() {
        worker
            .errors
            .count_failure("setsockopt SO_MAX_PACING_RATE", tcp::set_max_pacing_rate(stream, ceiling));
    }
    Some(pace)
}

/// How long this thread has waited for a core, nanoseconds; 0 where the kernel keeps no such account.
pub(crate) fn runqueue_wait_ns() -> u64 {
    usage::run_and_wait_of_this_thread().map_or(0, |(_, waited_ns)| waited_ns)
}

/// Waits until bytes are due and returns their number; 0 when the duration is over. It sleeps in steps, to notice an abort.
fn wait_until_due(worker: &Worker, pace: &Pace, sent: u64) -> u64 {
    while worker.control.is_running() {
        let now = clock::monotonic_ns();
        match pace.due(sent, now, runqueue_wait_ns) {
            Due::Now(bytes) => return bytes,
            Due::At(at) => clock::sleep_until(at.min(now + SLEEP_MAX_NS)),
            Due::Over => return 0,
        }
    }
    0
}

/// Waits until the peer has acknowledged all data, so that TCP_INFO is complete. The end of the peer's stream does not show that
/// here, because the peer sends, too; no event does.
pub(crate) fn wait_for_acknowledgement(worker: &mut Worker, stream: &TcpStream) {
    while !worker.control.is_aborted() {
        match tcp_info::read(stream) {
            Ok(info) if info.unacked().unwrap_or(0) > 0 || info.notsent_bytes().unwrap_or(0) > 0 => {
                clock::sleep_until(clock::monotonic_ns() + LOOK_NS);
            }
            Ok(_) => return,
            Err(error) => return worker.errors.count("getsockopt TCP_INFO", &error),
        }
    }
}

/// Waits until the peer has closed, which it does after the last byte, so that TCP_INFO is complete. The deadline of the end limits
/// the wait.
fn wait_for_end(worker: &mut Worker, stream: &TcpStream) {
    while !is_ended(worker, stream) {}
}

/// Whether a peer that does not send has closed, or the connection is broken.
pub(crate) fn is_ended(worker: &mut Worker, stream: &TcpStream) -> bool {
    match socket::receive(stream, &mut [0; 1], Waiting::Block) {
        Ok(0) => true,
        Ok(_) => {
            worker.errors.count_event("recv", "unexpected byte");
            false
        }
        Err(error) if socket::is_transient(&error) => false,
        Err(error) => {
            if !worker.control.is_aborted() {
                worker.errors.count("recv", &error);
            }
            true
        }
    }
}

/// The receiver of an engine.
pub(crate) enum Reader {
    /// The kernel discards.
    Discard,
    Buffer(Vec<u8>),
    Ring(Box<uring::Receiver>),
}

impl Reader {
    /// The receiver of an engine; `copy` reads up to `length` bytes per call.
    ///
    /// # Errors
    /// The error of `io_uring_setup(2)`.
    pub(crate) fn new(engine: TcpEngine, length: usize) -> io::Result<Self> {
        match engine {
            TcpEngine::Lean | TcpEngine::Zerocopy => Ok(Self::Discard),
            TcpEngine::Copy => Ok(Self::Buffer(vec![0; length])),
            TcpEngine::IoUring => uring::Receiver::new().map(|receiver| Self::Ring(Box::new(receiver))),
        }
    }

    /// Receives the available data; 0 at the end of the stream.
    #[inline]
    pub(crate) fn read(&mut self, stream: &TcpStream) -> io::Result<usize> {
        match self {
            Self::Discard => tcp::receive_discard(stream, DISCARD_BYTES),
            Self::Buffer(buffer) => socket::receive(stream, buffer, Waiting::Block),
            Self::Ring(receiver) => receiver.receive(stream, SLEEP_MAX),
        }
    }

    /// Ends receiving: no request stays in flight, and bytes received meanwhile are counted.
    fn finish(&mut self, worker: &mut Worker) {
        let Self::Ring(receiver) = self else { return };
        match receiver.finish() {
            Ok(0) => {}
            Ok(count) => worker.received().add(count as u64, 0, clock::monotonic_ns()),
            Err(error) => worker.errors.count("io_uring cancel", &error),
        }
    }
}

/// Receives to the end of the stream.
pub(crate) fn receive(worker: &mut Worker, stream: &TcpStream, settings: TcpSettings) -> Counted {
    match Reader::new(settings.engine, READ_BYTES) {
        Ok(mut reader) => {
            receive_loop(worker, stream, &mut reader, settings);
            reader.finish(worker);
        }
        Err(error) => worker.errors.count("io_uring_setup", &error),
    }
    if !settings.both {
        // The sender sees that all was read; ENOTCONN when it is gone.
        let _ = socket::shut_down_sending(stream);
    }
    Counted::Nothing
}

fn receive_loop(worker: &mut Worker, stream: &TcpStream, reader: &mut Reader, settings: TcpSettings) {
    worker.set_buffers([stream], settings.window);
    if matches!(settings.engine, TcpEngine::Lean | TcpEngine::Zerocopy) {
        let low_water = tcp::set_receive_low_water(stream, LOW_WATER_BYTES);
        worker.errors.count_failure("setsockopt SO_RCVLOWAT", low_water);
        let limit = socket::limit_receive_wait(stream, SLEEP_MAX);
        worker.errors.count_failure("setsockopt SO_RCVTIMEO", limit);
    }
    loop {
        match reader.read(stream) {
            Ok(0) => break,
            Ok(count) => worker.received().add(count as u64, 0, clock::monotonic_ns()),
            Err(error) if socket::is_transient(&error) => {
                if worker.control.is_aborted() {
                    break;
                }
            }
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count("recv", &error);
                }
                break;
            }
        }
    }
}
