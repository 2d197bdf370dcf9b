//! Bulk data over TCP connections that share threads: one thread per direction and core, which waits for ready connections with
//! epoll(7). A thread per connection would cost memory, context switches and throughput.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use netduel_model::workload::TcpEngine;
use netduel_sys::readiness::Readiness;
use netduel_sys::{clock, socket, tcp};

use crate::counted::Counted;
use crate::job::Job;
use crate::tcp_pacing::{Due, Pace};
use crate::tcp_settings::TcpSettings;
use crate::tcp_source::Source;
use crate::tcp_stream;
use crate::worker::{SLEEP_MAX, Worker};

/// Events per epoll_wait(2).
const EVENTS: usize = 256;
/// Bytes sent on one connection per turn, at most: 16 of the largest packets.
const TURN_BYTES: usize = 1 << 20;
/// Bytes per read of the engine `copy`.
const READ_BYTES: usize = 128 * 1024;
/// Unsent bytes in the kernel, for all connections, and the minimum and maximum for one. Data in flight comes in addition. TCP is
/// slow when the kernel memory for all connections (net.ipv4.tcp_mem) is used up.
const UNSENT_BYTES: usize = 256 << 20;
const UNSENT_EACH: (usize, usize) = (64 * 1024, 256 * 1024);
/// Sum of the low-water marks of the lean receivers, bytes, and the maximum for one.
const LOW_WATER_BYTES: usize = 128 << 20;
const LOW_WATER_MAX: usize = 128 * 1024;
/// How often connections below their low-water mark are read, so that the series of a slow path is smooth, nanoseconds.
const SWEEP_NS: u64 = 20_000_000;
/// Connections read per sweep; the others follow in the next.
const SWEEP_MAX: usize = 128;
/// Pause before retrying a connection that is due and accepts no data, nanoseconds.
const RETRY_NS: u64 = 1_000_000;

/// A connection and its index.
type IndexedConnection = (usize, Arc<TcpStream>);

/// The jobs of an end, on `threads` threads for each direction.
pub(crate) fn jobs(
    (sends, receives): (bool, bool),
    settings: TcpSettings,
    connections: &[Arc<TcpStream>],
    threads: usize,
) -> io::Result<Vec<Job>> {
    for connection in connections {
        connection.set_nonblocking(true)?;
    }
    let mut jobs = Vec::new();
    for thread in 0..threads {
        let connections = || -> Vec<IndexedConnection> {
            let of_thread = connections.iter().enumerate().skip(thread).step_by(threads);
            of_thread.map(|(stream, connection)| (stream, Arc::clone(connection))).collect()
        };
        let mut job = |work: fn(&mut Worker, &[IndexedConnection], TcpSettings) -> io::Result<()>| {
            let connections = connections();
            let streams = connections.iter().map(|(stream, _)| *stream).collect();
            let work = Box::new(move |worker: &mut Worker| {
                if let Err(error) = work(worker, &connections, settings) {
                    worker.errors.count("epoll", &error);
                    // The peers see the end of the stream, and do not wait.
                    for (_, connection) in &connections {
                        let _ = socket::shut_down(&**connection);
                    }
                }
                Ok(Counted::Nothing)
            });
            jobs.push(Job { streams, thread, follows_peer: false, work });
        };
        if receives {
            job(receive);
        }
        if sends {
            job(send);
        }
    }
    Ok(jobs)
}

/// A connection and how much was sent on it.
struct PacedStream {
    stream: usize,
    connection: Arc<TcpStream>,
    sent: u64,
    volume: u64,
    pace: Option<Pace>,
}

impl PacedStream {
    /// Sends up to `most` bytes; false when the connection has reached its volume, or is broken.
    #[inline]
    fn push(&mut self, worker: &mut Worker, source: &mut Source, most: usize) -> bool {
        let left = usize::try_from(self.volume - self.sent).unwrap_or(usize::MAX);
        match source.push(&self.connection, most.min(left)) {
            Ok(count) => {
                self.sent += count as u64;
                worker.control.sent[self.stream].add(count as u64, 0, clock::monotonic_ns());
                self.sent < self.volume
            }
            Err(error) if socket::is_transient(&error) => true,
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count(source.call(), &error);
                }
                false
            }
        }
    }
}

/// Sends on all connections for the duration, and waits until their peers have read all of it.
fn send(worker: &mut Worker, connections: &[IndexedConnection], settings: TcpSettings) -> io::Result<()> {
    worker.set_buffers(connections.iter().map(|(_, connection)| &**connection), settings.window);
    let mut paced = Vec::with_capacity(connections.len());
    for &(stream, ref connection) in connections {
        if settings.window.is_none() {
            let unsent =
                (UNSENT_BYTES / settings.streams.max(1) as usize).clamp(UNSENT_EACH.0, UNSENT_EACH.1);
            let result = tcp::limit_unsent(connection, unsent as u32);
            worker.errors.count_failure("setsockopt TCP_NOTSENT_LOWAT", result);
        }
        let pace = tcp_stream::pace(worker, stream, connection, settings);
        let volume = tcp_stream::volume_of(stream as u64, settings);
        paced.push(PacedStream { stream, connection: Arc::clone(connection), sent: 0, volume, pace });
    }
    match paced.first().map(|first| Source::new(settings, &first.connection)) {
        Some(Ok(mut source)) => {
            if settings.rate_bps.is_some() {
                send_paced(worker, &mut paced, &mut source, settings.block);
            } else {
                let result = send_when_writable(worker, &mut paced, &mut source, settings);
                // The peers see the end of the stream all the same.
                worker.errors.count_failure("epoll_wait", result);
            }
        }
        Some(Err((call, error))) => worker.errors.count(call, &error),
        None => {}
    }
    for stream in &paced {
        // ENOTCONN: the connection is gone, and its error is counted.
        let _ = socket::shut_down_sending(&*stream.connection);
    }
    if settings.both {
        for stream in &paced {
            tcp_stream::wait_for_acknowledgement(worker, &stream.connection);
        }
        return Ok(());
    }
    wait_for_ends(worker, &paced)
}

/// Sends without a rate limit, on each connection with room in its send buffer.
fn send_when_writable(
    worker: &mut Worker,
    paced: &mut [PacedStream],
    source: &mut Source,
    settings: TcpSettings,
) -> io::Result<()> {
    let end_ns = worker.control.started_ns().saturating_add(settings.duration_ns);
    let mut set = Readiness::new(EVENTS)?;
    let mut open = 0;
    for (index, stream) in paced.iter().enumerate().filter(|(_, stream)| stream.volume > 0) {
        set.watch_writable(&*stream.connection, index)?;
        open += 1;
    }
    let mut ready = Vec::with_capacity(EVENTS);
    let most = settings.block.min(TURN_BYTES);
    while open > 0 && worker.control.is_running() {
        ready.clear();
        ready.extend(set.wait(SLEEP_MAX)?);
        let mut moved = ready.is_empty();
        for &index in &ready {
            let stream = &mut paced[index];
            let before = stream.sent;
            let goes_on = stream.push(worker, source, most);
            moved |= stream.sent > before;
            if !goes_on {
                set.forget(&*stream.connection)?;
                // At once: the other connections may continue for long.
                let _ = socket::shut_down_sending(&*stream.connection);
                open -= 1;
            }
        }
        if clock::monotonic_ns() >= end_ns {
            break;
        }
        if !moved {
            // The send buffers have room, but the kernel has no memory (net.ipv4.tcp_mem): epoll would report them again at once.
            clock::sleep_until(clock::monotonic_ns() + RETRY_NS);
        }
    }
    Ok(())
}

/// Sends on the connection that is due next, when it is due.
fn send_paced(worker: &mut Worker, paced: &mut [PacedStream], source: &mut Source, block: usize) {
    let start_ns = worker.control.started_ns();
    let mut queue: BinaryHeap<Reverse<(u64, usize)>> =
        (0..paced.len()).map(|index| Reverse((start_ns, index))).collect();
    while let Some(Reverse((due_ns, index))) = queue.pop() {
        if !worker.sleep_until(due_ns) {
            return;
        }
        let stream = &mut paced[index];
        let Some(pace) = stream.pace else { return };
        let now = clock::monotonic_ns();
        let next_ns = match pace.due(stream.sent, now, tcp_stream::runqueue_wait_ns) {
            Due::Over => continue,
            Due::At(time_ns) => time_ns,
            Due::Now(bytes) => {
                let (before, most) = (stream.sent, usize::try_from(bytes).unwrap_or(usize::MAX).min(block));
                if !stream.push(worker, source, most) {
                    let _ = socket::shut_down_sending(&*stream.connection);
                    continue;
                }
                if stream.sent == before { now + RETRY_NS } else { now }
            }
        };
        queue.push(Reverse((next_ns, index)));
    }
}

/// Waits until each peer has closed, which it does after the last byte. The deadline of the end limits the wait.
fn wait_for_ends(worker: &mut Worker, paced: &[PacedStream]) -> io::Result<()> {
    let mut set = Readiness::new(EVENTS)?;
    for (index, stream) in paced.iter().enumerate() {
        set.watch(&*stream.connection, index)?;
    }
    let mut ready = Vec::with_capacity(EVENTS);
    let mut open = paced.len();
    while open > 0 {
        ready.clear();
        ready.extend(set.wait(SLEEP_MAX)?);
        for &index in &ready {
            let connection = &*paced[index].connection;
            if tcp_stream::is_ended(worker, connection) {
                set.forget(connection)?;
                open -= 1;
            }
        }
    }
    Ok(())
}

/// Receives on all connections to their ends.
fn receive(worker: &mut Worker, connections: &[IndexedConnection], settings: TcpSettings) -> io::Result<()> {
    worker.set_buffers(connections.iter().map(|(_, connection)| &**connection), settings.window);
    let mut set = Readiness::new(EVENTS)?;
    let mark = (LOW_WATER_BYTES / settings.streams.max(1) as usize).min(LOW_WATER_MAX);
    let is_marked = settings.engine == TcpEngine::Lean && settings.rate_bps.is_none();
    for (index, (_, connection)) in connections.iter().enumerate() {
        if is_marked {
            let low_water = tcp::set_receive_low_water(connection, i32::try_from(mark).unwrap_or(i32::MAX));
            worker.errors.count_failure("setsockopt SO_RCVLOWAT", low_water);
        }
        set.watch(&**connection, index)?;
    }
    let mut reader = tcp_stream::Reader::new(settings.engine, READ_BYTES)?;
    let mut ready = Vec::with_capacity(EVENTS);
    let mut is_open = vec![true; connections.len()];
    let mut open = connections.len();
    let (mut swept_ns, mut sweep_from) = (clock::monotonic_ns(), 0);
    while open > 0 && !worker.control.is_aborted() {
        ready.clear();
        ready.extend(set.wait(SLEEP_MAX)?);
        let now = clock::monotonic_ns();
        if is_marked && now - swept_ns >= SWEEP_NS {
            swept_ns = now;
            let count = SWEEP_MAX.min(connections.len());
            ready.extend((sweep_from..sweep_from + count).map(|index| index % connections.len()));
            sweep_from = (sweep_from + count) % connections.len();
        }
        for &index in &ready {
            let (stream, connection) = &connections[index];
            if is_open[index] && !receive_available(worker, &mut reader, *stream, connection) {
                is_open[index] = false;
                set.forget(&**connection)?;
                open -= 1;
                if !settings.both {
                    // The sender sees that all was read; ENOTCONN when it is gone.
                    let _ = socket::shut_down_sending(&**connection);
                }
            }
        }
    }
    Ok(())
}

/// Reads the available data; false when the connection has ended.
#[inline]
fn receive_available(
    worker: &mut Worker,
    reader: &mut tcp_stream::Reader,
    stream: usize,
    connection: &TcpStream,
) -> bool {
    match reader.read(connection) {
        Ok(0) => false,
        Ok(count) => {
            worker.control.received[stream].add(count as u64, 0, clock::monotonic_ns());
            true
        }
        Err(error) if socket::is_transient(&error) => true,
        Err(error) => {
            if !worker.control.is_aborted() {
                worker.errors.count("recv", &error);
            }
            false
        }
    }
}
