//! Receiving with kernel bypass: AF_XDP with busy-polling threads, or an XDP program that counts and drops.
use std::collections::BTreeMap;
use std::io;

use netduel_model::packet_path::{PacketReport, QueuePackets, XdpMode};
use netduel_model::workload::Wait;
use netduel_sys::bpf::{Attach, Link, PerCoreArray, SocketMap};
use netduel_sys::xdp::{Settings, XdpSocket};
use netduel_sys::{clock, error_name};

use super::attachment::{AttachedProgram, Attachment};
use super::bypass_path::BypassPath;
use super::{frame, programs};
use crate::counted::Counted;
use crate::datagram;
use crate::error::ATTACH;
use crate::flow_count::FlowCount;
use crate::sequence_window::Arrival;
use crate::stream_counter::StreamCounter;
use crate::worker::Worker;

/// Frames per socket: some milliseconds at 10 million packets/s, as long as a thread may wait for its core.
const FRAMES: u32 = 4096;
/// Frames received between two readings of the clock.
const BATCH: u32 = 64;
/// After the peer is done, this long without a datagram means that none is in flight, nanoseconds.
const QUIET_NS: u64 = 50_000_000;
/// How often the counts are read, nanoseconds.
const READ_NS: u64 = 10_000_000;

/// The sockets of all queues.
#[derive(Debug)]
pub(crate) struct XdpReceiver {
    queues: Vec<XdpSocket>,
    interface: String,
    mode: Option<XdpMode>,
    attachment: Attachment,
    busy_poll: bool,
}

/// The queues of one thread.
pub(crate) struct XdpReceiverQueues {
    /// Queue numbers and sockets.
    queues: Vec<(u32, XdpSocket)>,
    interface: String,
    mode: Option<XdpMode>,
    attachment: Attachment,
    busy_poll: bool,
}

/// The counting program.
#[derive(Debug)]
pub(crate) struct XdpCounter {
    counts: PerCoreArray,
    interface: String,
    mode: Option<XdpMode>,
    attachment: Attachment,
}

/// A failed operation and its error.
pub(crate) type BypassError = (&'static str, io::Error);

impl XdpReceiver {
    /// Opens a socket on each queue, and attaches the program that redirects the flows with these magic numbers to them.
    pub(crate) fn open(path: &BypassPath, magics: &[u64], busy_poll: bool) -> Result<Self, BypassError> {
        let map =
            SocketMap::new("netduel_sockets", path.queues.max(1)).map_err(failed("make a map of sockets"))?;
        let mut queues = Vec::new();
        for queue in 0..path.queues.max(1) {
            let settings = Settings {
                interface: path.index,
                queue,
                receive_frames: FRAMES,
                busy_poll_us: busy_poll.then_some(Wait::BUSY_POLL.as_micros() as u32),
                ..Settings::default()
            };
            let socket = XdpSocket::open(&settings).map_err(failed("open an AF_XDP socket"))?;
            map.put(queue, &socket).map_err(failed("enter an AF_XDP socket into its map"))?;
            queues.push(socket);
        }
        let flows = programs::flow_map(magics).map_err(failed("make a map of flows"))?;
        let program = programs::redirect_program(&flows, &map).map_err(load_failed)?;
        let link = Link::attach(&program, Attach::Xdp, path.index).map_err(failed(ATTACH))?;
        let attachment = Attachment::of_program(AttachedProgram::new(link, Some(flows)));
        let interface = path.interface.clone();
        Ok(Self { queues, interface, mode: path.mode(), attachment, busy_poll })
    }

    /// Keeps the program and the sockets on the interface.
    pub(crate) fn attachment(&self) -> Attachment {
        self.attachment.clone()
    }

    /// Distributes the queues over at most `threads` threads.
    pub(crate) fn split(self, threads: usize) -> Vec<XdpReceiverQueues> {
        let threads = threads.clamp(1, self.queues.len());
        let part = || XdpReceiverQueues {
            queues: Vec::new(),
            interface: self.interface.clone(),
            mode: self.mode,
            attachment: self.attachment.clone(),
            busy_poll: self.busy_poll,
        };
        let mut parts: Vec<XdpReceiverQueues> = (0..threads).map(|_| part()).collect();
        for (index, socket) in self.queues.into_iter().enumerate() {
            parts[index % threads].queues.push((index as u32, socket));
        }
        parts
    }
}

impl XdpCounter {
    /// The program on the interface.
    pub(crate) fn open(path: &BypassPath, magics: &[u64]) -> Result<Self, BypassError> {
        let counts = PerCoreArray::new("netduel_counts", magics.len() as u32)
            .map_err(failed("make a map of counts"))?;
        let flows = programs::flow_map(magics).map_err(failed("make a map of flows"))?;
        let program = programs::count_program(&flows, &counts).map_err(load_failed)?;
        let link = Link::attach(&program, Attach::Xdp, path.index).map_err(failed(ATTACH))?;
        let attachment = Attachment::of_program(AttachedProgram::new(link, Some(flows)));
        let interface = path.interface.clone();
        Ok(Self { counts, interface, mode: path.mode(), attachment })
    }

    /// Keeps the program on the interface.
    pub(crate) fn attachment(&self) -> Attachment {
        self.attachment.clone()
    }
}

pub(super) fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> BypassError {
    move |error| (doing, error)
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn load_failed(error: netduel_sys::bpf::LoadError) -> BypassError {
    let kind = error.source.kind();
    (
        "load an XDP program",
        error.source.raw_os_error().map_or_else(|| kind.into(), io::Error::from_raw_os_error),
    )
}

/// Receives on some queues until the peer is done and no datagram is in flight.
pub(crate) fn receive(worker: &mut Worker, part: XdpReceiverQueues, magics: &[u64], size: usize) -> Counted {
    let XdpReceiverQueues { mut queues, interface, mode, attachment, busy_poll } = part;
    let streams: BTreeMap<u64, usize> =
        magics.iter().enumerate().map(|(stream, magic)| (*magic, stream)).collect();
    let mut counts: Vec<FlowCount> = (0..magics.len()).map(|stream| FlowCount::new(stream, 0)).collect();
    let mut new_packets: Vec<u64> = vec![0; magics.len()];
    let mut taken_of: Vec<u64> = vec![0; queues.len()];
    let mut finishing_ns = None;
    while !worker.control.is_aborted() {
        let now = clock::monotonic_ns();
        let mut taken = 0;
        for ((_, socket), taken_of) in queues.iter_mut().zip(&mut taken_of) {
            let count = socket
                .receive(BATCH, |bytes| count(bytes, &streams, size, now, &mut counts, &mut new_packets));
            *taken_of += u64::from(count);
            taken += count;
            // A zero-copy driver without frames waits for a wake-up; with busy polling only this thread polls it.
            if count == 0 && (busy_poll || socket.receiver_needs_wakeup()) {
                let polled = socket
                    .poll_driver()
                    .or_else(|error| if is_idle_driver(&error) { Ok(()) } else { Err(error) });
                worker.errors.count_failure("recvfrom AF_XDP", polled);
            }
        }
        if taken > 0 {
            for (counter, new) in
                worker.control.received.iter().zip(&mut new_packets).filter(|(_, new)| **new > 0)
            {
                counter.add_shared(*new * size as u64, std::mem::take(new), now);
            }
            worker.note_message();
            continue;
        }
        if worker.control.is_finishing() {
            let since = *finishing_ns.get_or_insert(now);
            // The last arrival of all threads: datagrams in flight to this thread's queues may take a long path, too.
            let last_ns =
                worker.control.received.iter().filter_map(StreamCounter::span).map(|(_, last)| last).max();
            if now.saturating_sub(last_ns.unwrap_or(0).max(since)) >= QUIET_NS {
                break;
            }
        }
        worker.spin();
    }
    let mut report = PacketReport { interface, zero_copy: Some(true), mode, ..PacketReport::default() };
    let core = worker.pinned;
    for ((queue, socket), packets) in queues.into_iter().zip(taken_of) {
        report.queues.push(QueuePackets { queue: Some(queue), core, packets });
        report.zero_copy = Some(report.zero_copy == Some(true) && socket.is_zero_copy());
        match socket.counters() {
            Ok(counters) => {
                counts[0].add_socket_drops(counters.rx_dropped + counters.rx_ring_full);
                let drops = [("rx_ring_full", counters.rx_ring_full), ("rx_dropped", counters.rx_dropped)];
                for (name, count) in drops.into_iter().filter(|(_, count)| *count > 0) {
                    *report.drops.entry(name.to_owned()).or_default() += count;
                }
            }
            Err(error) => worker.errors.count("getsockopt XDP_STATISTICS", &error),
        }
        attachment.keep(socket);
    }
    counts.retain(FlowCount::has_any);
    Counted::ReceivedDatagrams { flows: counts, packets: Some(report) }
}

/// Whether the driver has no packets, or another core polls it.
fn is_idle_driver(error: &io::Error) -> bool {
    matches!(error.raw_os_error().and_then(error_name::of), Some("EAGAIN" | "EBUSY" | "EINTR"))
}

/// Accounts for a frame, and counts a new one in `new_packets`.
#[inline]
fn count(
    bytes: &[u8],
    streams: &BTreeMap<u64, usize>,
    size: usize,
    now: u64,
    counts: &mut [FlowCount],
    new_packets: &mut [u64],
) {
    let Some((_, payload)) = frame::payload(bytes) else { return };
    let (magic, number) = (datagram::read_magic(payload), datagram::read_number(payload));
    let stream = magic.and_then(|magic| streams.get(&magic));
    match (stream, number) {
        (Some(stream), Some(number)) if payload.len() == size => {
            let arrival = counts[*stream].arrive(number, datagram::read_time(payload), now);
            new_packets[*stream] += u64::from(matches!(arrival, Arrival::InOrder | Arrival::Reordered));
        }
        _ => counts[0].add_unexpected(),
    }
}

/// Reads the counters of the program until the peer is done and they do not change.
pub(crate) fn count_until_done(worker: &mut Worker, counter: &XdpCounter, size: usize) -> Counted {
    let flows = counter.counts.entries();
    let mut counted = vec![0; flows as usize];
    let mut by_core: Vec<u64> = Vec::new();
    let (mut last_ns, mut finishing_ns) = (0, None);
    while !worker.control.is_aborted() {
        let now = clock::monotonic_ns();
        by_core.fill(0);
        for flow in 0..flows {
            let sum = match counter.counts.read(flow) {
                Ok(cores) => {
                    by_core.resize(cores.len(), 0);
                    by_core.iter_mut().zip(&cores).for_each(|(all, one)| *all += one);
                    cores.iter().sum::<u64>()
                }
                Err(error) => {
                    worker.errors.count("bpf BPF_MAP_LOOKUP_ELEM", &error);
                    continue;
                }
            };
            let new = sum - counted[flow as usize];
            if new > 0 {
                worker.control.received[flow as usize].add(new * size as u64, new, now);
                counted[flow as usize] = sum;
                last_ns = now;
            }
        }
        if worker.control.is_finishing() {
            let since = *finishing_ns.get_or_insert(now);
            if now.saturating_sub(last_ns.max(since)) >= QUIET_NS {
                break;
            }
        }
        clock::sleep_until(now + READ_NS);
    }
    let of_core = |(core, packets): (usize, &u64)| QueuePackets {
        queue: None,
        core: Some(core as u16),
        packets: *packets,
    };
    let cores = by_core.iter().enumerate().filter(|(_, packets)| **packets > 0);
    let packets = PacketReport {
        interface: counter.interface.clone(),
        mode: counter.mode,
        queues: cores.map(of_core).collect(),
        ..PacketReport::default()
    };
    let flows =
        counted.iter().enumerate().map(|(stream, count)| FlowCount::counted(stream, *count)).collect();
    Counted::ReceivedDatagrams { flows, packets: Some(packets) }
}
