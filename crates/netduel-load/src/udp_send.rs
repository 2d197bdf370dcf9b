//! The sender of UDP datagrams: a thread for one or more flows sends batches in one system call. Each datagram has the magic number
//! of the trial, a sequence number and a time. It counts as sent when the kernel took it; a full queue is back-pressure: counted,
//! and retried.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use netduel_model::workload::{Timing, UdpOffload, UdpStream};
use netduel_sys::socket::{self, Waiting};
use netduel_sys::udp::SendBatch;
use netduel_sys::{clock, error_name, pattern, udp_segment};

use crate::counted::Counted;
use crate::datagram::{self, STREAM_HEADER};
use crate::end_markers;
use crate::error::LoadError;
use crate::pacing::Schedule;
use crate::packets::sender::XdpSender;
use crate::send_count::SendCount;
use crate::worker::{SLEEP_MAX, Worker};

/// Datagrams per system call without a rate limit.
const BATCH: usize = 64;
/// Datagrams per call with a rate limit, at most: a burst that a path with ordinary buffers takes without loss.
const PACED_BATCH: usize = 16;
/// Interval between two paced batches of more than one datagram, at most, nanoseconds.
const PACED_BATCH_NS: u64 = 100_000;
/// Pause after the queue was full, nanoseconds: a link of 1 Gbit/s sends about 2 full frames in it.
const REFUSED_PAUSE_NS: u64 = 20_000;
/// Pause after an error that will not pass in microseconds, nanoseconds.
const ERROR_PAUSE_NS: u64 = 1_000_000;

/// Settings of all flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UdpSettings {
    /// Payload bytes of a datagram.
    pub size: usize,
    /// Payload rate of all flows, bit/s; `None` is without limit.
    pub rate_bps: Option<u64>,
    pub flows: u32,
    pub offload: UdpOffload,
    /// Whether this end sends each datagram separately, whatever `offload` is.
    pub is_unsegmented: bool,
    /// Datagrams of all flows after which this direction ends.
    pub datagrams: Option<u64>,
    /// Size of both socket buffers, bytes; `None` is the default.
    pub window: Option<usize>,
    pub timing: Timing,
    /// Arrivals that the receiver records one by one; 0 for counts only.
    pub trace: usize,
    /// Whether this end sends from the first data of its peer on.
    pub follows_peer: bool,
}

impl UdpSettings {
    /// Settings of the flows of a workload.
    pub(crate) fn of_flows(flows: &UdpStream, timing: Timing, is_unsegmented: bool) -> Self {
        Self {
            size: flows.size.0 as usize,
            rate_bps: flows.rate.map(|rate| rate.0),
            flows: flows.flows,
            offload: flows.offload,
            is_unsegmented,
            datagrams: flows.tuning.volume.map(|volume| volume.0.div_ceil(flows.size.0)),
            window: flows.tuning.window.map(|window| window.0 as usize),
            timing,
            trace: 0,
            follows_peer: false,
        }
    }
}

/// One flow of a thread.
pub(crate) struct SendFlow {
    pub stream: usize,
    pub socket: Arc<UdpSocket>,
    pub magic: u64,
    pub end_magic: u64,
}

/// A flow and how much of it was sent.
struct PacedFlow {
    flow: SendFlow,
    /// Sequence number of the next datagram.
    number: u64,
    /// Total number of its datagrams.
    max_datagrams: u64,
    schedule: Option<Schedule>,
}

/// The datagrams of one call.
enum Outgoing {
    Separate(SendBatch),
    /// One GSO buffer, which the kernel segments.
    Gso {
        bytes: Vec<u8>,
        size: usize,
    },
    /// Frames for AF_XDP, each with one of these payloads.
    Xdp {
        sender: Box<XdpSender>,
        bytes: Vec<u8>,
        size: usize,
    },
}

impl Outgoing {
    fn new(settings: UdpSettings, schedule: Option<Schedule>, raw: Option<XdpSender>) -> Self {
        let paced = schedule.map(|schedule| schedule.batch(PACED_BATCH_NS, PACED_BATCH));
        let mut all = match (raw, settings.offload) {
            (Some(sender), _) => {
                let (size, count) = (settings.size, paced.unwrap_or(BATCH));
                Self::Xdp { sender: Box::new(sender), bytes: vec![0; count * size], size }
            }
            (None, UdpOffload::None) => Self::Separate(SendBatch::new(paced.unwrap_or(BATCH), settings.size)),
            (None, UdpOffload::Gso | UdpOffload::GsoGro) => {
                let max_datagrams = udp_segment::segments(settings.size);
                let count = paced.map_or(max_datagrams, |paced| paced.min(max_datagrams));
                Self::Gso { bytes: vec![0; count * settings.size], size: settings.size }
            }
        };
        for index in 0..all.capacity() {
            pattern::fill(all.payload_mut(index));
        }
        all
    }

    fn capacity(&self) -> usize {
        match self {
            Self::Separate(batch) => batch.capacity(),
            Self::Gso { bytes, size } | Self::Xdp { bytes, size, .. } => bytes.len() / size,
        }
    }

    #[inline]
    fn payload_mut(&mut self, index: usize) -> &mut [u8] {
        match self {
            Self::Separate(batch) => batch.payload_mut(index),
            Self::Gso { bytes, size } | Self::Xdp { bytes, size, .. } => {
                &mut bytes[index * *size..(index + 1) * *size]
            }
        }
    }

    /// Sends the first `count` and returns how many the kernel took.
    #[inline]
    fn send(&mut self, flow: &SendFlow, count: usize) -> io::Result<usize> {
        let socket = &*flow.socket;
        match self {
            Self::Xdp { sender, bytes, size } => {
                sender.send(flow.stream, bytes[..count * *size].chunks_exact(*size))
            }
            Self::Separate(batch) => batch.send(socket, count),
            // The kernel takes a buffer whole or not at all.
            Self::Gso { bytes, size } => {
                socket::send(socket, &bytes[..count * *size], Waiting::Block).map(|taken| taken / *size)
            }
        }
    }

    /// Shrinks a GSO buffer to what older kernels accept; false when it is not larger.
    #[cold]
    fn shrink(&mut self) -> bool {
        match self {
            Self::Gso { bytes, size } if bytes.len() > udp_segment::SEGMENTS_OLD * *size => {
                bytes.truncate(udp_segment::SEGMENTS_OLD * *size);
                true
            }
            _ => false,
        }
    }

    fn call(&self) -> &'static str {
        match self {
            Self::Separate(_) => "sendmmsg",
            Self::Gso { .. } => "send with UDP_SEGMENT",
            Self::Xdp { .. } => "AF_XDP send",
        }
    }
}

/// The reaction to a failed send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Retry { pause_ns: u64 },
    Over,
}

/// Sends on all flows of a thread for the duration.
pub(crate) fn send(
    worker: &mut Worker,
    flows: Vec<SendFlow>,
    settings: UdpSettings,
    mut raw: Option<XdpSender>,
) -> Result<Counted, LoadError> {
    let started_ns = worker.control.started_ns();
    let mut flows: Vec<PacedFlow> =
        flows.into_iter().map(|flow| paced_flow(flow, settings, started_ns)).collect();
    for PacedFlow { flow, .. } in &flows {
        worker
            .errors
            .count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(&flow.socket, SLEEP_MAX));
        if settings.offload != UdpOffload::None {
            udp_segment::send_in_segments(&flow.socket, settings.size)
                .map_err(|error| LoadError::segmentation(settings.size, error))?;
        }
    }
    if let Some(sender) = &mut raw {
        for PacedFlow { flow, .. } in &flows {
            sender
                .add(flow.stream, &flow.socket, settings.size)
                .map_err(|error| LoadError::system("read the addresses of a flow", error))?;
        }
    }
    let Some(first) = flows.first() else { return Ok(Counted::Nothing) };
    let mut outgoing = Outgoing::new(settings, first.schedule, raw);
    worker.set_buffers(flows.iter().map(|flow| &*flow.flow.socket), settings.window);
    let timing = settings.timing;
    let end_ns = started_ns.saturating_add(timing.duration.0);
    let mut sender = Sender {
        count: SendCount::new(settings.rate_bps.is_some()),
        failure: None,
        steady_ns: started_ns.saturating_add(timing.warmup.0)..end_ns.saturating_sub(timing.cooldown.0),
        end_ns,
    };
    if settings.rate_bps.is_some() {
        sender.send_paced(worker, &mut flows, &mut outgoing);
    } else {
        sender.send_round_robin(worker, &mut flows, &mut outgoing);
    }
    let mut packets = None;
    if let Outgoing::Xdp { mut sender, .. } = outgoing {
        worker.errors.count_times(
            "AF_XDP send",
            "frames left in the interface's queue",
            sender.flush() as u64,
        );
        packets = Some(sender.into_report(worker.pinned));
    }
    if worker.control.sends_end_markers() {
        end_markers::send(|| flows.iter().map(|PacedFlow { flow, .. }| (&*flow.socket, flow.end_magic)));
    }
    match sender.failure {
        None => Ok(Counted::SentDatagrams { count: sender.count, packets }),
        Some(failure) => Err(failure),
    }
}

fn paced_flow(flow: SendFlow, settings: UdpSettings, started_ns: u64) -> PacedFlow {
    let schedule = settings.rate_bps.map(|rate| {
        Schedule::of_flow(
            started_ns,
            rate,
            settings.size as u64,
            flow.stream as u32 % settings.flows.max(1),
            settings.flows,
        )
    });
    let (stream, flows) = (flow.stream as u64, u64::from(settings.flows).max(1));
    let part = |all: u64| all / flows + u64::from(stream < all % flows);
    PacedFlow { flow, number: 0, max_datagrams: settings.datagrams.map_or(u64::MAX, part), schedule }
}

struct Sender {
    count: SendCount,
    /// Why the kernel accepts no datagram of a flow.
    failure: Option<LoadError>,
    steady_ns: std::ops::Range<u64>,
    end_ns: u64,
}

impl Sender {
    /// Sends a batch of each flow in turn, without a rate limit. Each flow has at least one, even when the thread starts after the
    /// end: a trial without a datagram has no result.
    fn send_round_robin(&mut self, worker: &mut Worker, flows: &mut [PacedFlow], outgoing: &mut Outgoing) {
        let mut open: Vec<usize> = (0..flows.len()).filter(|&index| flows[index].max_datagrams > 0).collect();
        let mut turn = 0;
        let mut is_first_round = true;
        while worker.control.is_running() && !open.is_empty() {
            let now = clock::monotonic_ns();
            if turn >= open.len() {
                (turn, is_first_round) = (0, false);
            }
            if now >= self.end_ns && !is_first_round {
                break;
            }
            let batch = outgoing.capacity();
            if self.send_batch(worker, &mut flows[open[turn]], outgoing, batch, now) {
                turn += 1;
            } else {
                open.swap_remove(turn);
            }
        }
    }

    /// Sends the flow that is due next, when it is due, until the end: what is due before it and was not sent by then is not sent. Only
    /// a flow without a datagram has one attempt later, because a trial without a datagram has no result.
    fn send_paced(&mut self, worker: &mut Worker, flows: &mut [PacedFlow], outgoing: &mut Outgoing) {
        let due = |flow: &PacedFlow| flow.schedule.map_or(u64::MAX, |schedule| schedule.due_ns(flow.number));
        let mut queue: BinaryHeap<Reverse<(u64, usize)>> = flows
            .iter()
            .enumerate()
            .filter(|(_, flow)| flow.max_datagrams > 0)
            .map(|(index, flow)| Reverse((due(flow), index)))
            .collect();
        while let Some(Reverse((due_ns, index))) = queue.pop() {
            if due_ns >= self.end_ns {
                // This flow was due first, so none is due any more. The duration counts to its end all the same.
                worker.sleep_until(self.end_ns);
                break;
            }
            // A batch leaves when its first datagram is due; waiting for its last would delay the first.
            if !worker.wait_until(due_ns) {
                break;
            }
            let now = clock::monotonic_ns();
            let flow = &mut flows[index];
            let Some(schedule) = flow.schedule else { break };
            let first = flow.number;
            let is_over = now >= self.end_ns;
            if is_over && first > 0 {
                continue;
            }
            let batch = (0..outgoing.capacity() as u64)
                .take_while(|ahead| schedule.due_ns(first + ahead) < self.end_ns)
                .count();
            let goes_on = self.send_batch(worker, flow, outgoing, batch, now);
            if let Some(late) = &mut self.count.pacing_error
                && flow.number > first
                && self.steady_ns.contains(&due_ns)
            {
                late.record(now.saturating_sub(due_ns));
            }
            if goes_on && !is_over {
                queue.push(Reverse((due(flow), index)));
            }
        }
    }

    /// Sends the next `batch` datagrams of a flow, at most to its volume, and pauses when the queue is full; false when the flow is
    /// over.
    #[inline]
    fn send_batch(
        &mut self,
        worker: &mut Worker,
        flow: &mut PacedFlow,
        outgoing: &mut Outgoing,
        batch: usize,
        now: u64,
    ) -> bool {
        let batch = batch.min(usize::try_from(flow.max_datagrams - flow.number).unwrap_or(usize::MAX));
        for index in 0..batch {
            let payload = outgoing.payload_mut(index);
            datagram::write_number(payload, flow.flow.magic, flow.number + index as u64);
            // The smallest Ethernet frame has space for magic and number only.
            if payload.len() >= STREAM_HEADER {
                datagram::write_time(payload, now);
            }
        }
        match outgoing.send(&flow.flow, batch) {
            Ok(taken) => {
                let size = outgoing.payload_mut(0).len();
                flow.number += taken as u64;
                self.count.calls += 1;
                self.count.burst = self.count.burst.max(taken as u32);
                worker.control.sent[flow.flow.stream].add((taken * size) as u64, taken as u64, now);
                flow.number < flow.max_datagrams
            }
            Err(error) => match self.refused(worker, outgoing, flow, &error) {
                Refusal::Over => false,
                Refusal::Retry { pause_ns } => {
                    clock::sleep_until(now + pause_ns);
                    true
                }
            },
        }
    }

    /// Counts a failed send and decides what follows.
    #[cold]
    fn refused(
        &mut self,
        worker: &mut Worker,
        outgoing: &mut Outgoing,
        flow: &PacedFlow,
        error: &io::Error,
    ) -> Refusal {
        if worker.control.is_aborted() {
            return Refusal::Over;
        }
        let is_first = flow.number == 0;
        let may_be_old = is_first && error_name::of(error.raw_os_error().unwrap_or(0)) == Some("EINVAL");
        if error.kind() == io::ErrorKind::Interrupted || may_be_old && outgoing.shrink() {
            return Refusal::Retry { pause_ns: 0 };
        }
        worker.errors.count(outgoing.call(), error);
        match error.raw_os_error().and_then(error_name::of) {
            // No socket has the port any more: continuing would flood a host without an agent.
            Some("ECONNREFUSED" | "EPIPE") => Refusal::Over,
            // The path will not take it later. A trial without any datagram has no result.
            Some("EMSGSIZE" | "EINVAL" | "EIO" | "EOPNOTSUPP") => {
                if is_first {
                    let size = outgoing.payload_mut(0).len();
                    let error = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0));
                    self.failure = Some(match outgoing {
                        Outgoing::Gso { .. } => LoadError::segmentation(size, error),
                        Outgoing::Separate(_) => LoadError::datagram(size, error),
                        Outgoing::Xdp { sender, .. } => {
                            LoadError::bypass("send frames", sender.interface(), error)
                        }
                    });
                }
                Refusal::Over
            }
            Some("ENOBUFS" | "EAGAIN") => {
                self.count.refused += 1;
                Refusal::Retry { pause_ns: REFUSED_PAUSE_NS }
            }
            _ => Refusal::Retry { pause_ns: ERROR_PAUSE_NS },
        }
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::units::Nanos;

    use super::*;

    #[test]
    fn gso_buffer_for_an_older_kernel_is_shrunk_once() {
        let no_time = Timing { duration: Nanos(0), warmup: Nanos(0), cooldown: Nanos(0) };
        let settings = |offload| UdpSettings {
            size: 100,
            rate_bps: None,
            flows: 1,
            offload,
            is_unsegmented: false,
            datagrams: None,
            window: None,
            timing: no_time,
            trace: 0,
            follows_peer: false,
        };
        let mut joined = Outgoing::new(settings(UdpOffload::Gso), None, None);
        assert_eq!(joined.capacity(), 128);
        assert!(joined.shrink());
        assert_eq!(joined.capacity(), udp_segment::SEGMENTS_OLD);
        assert_eq!(joined.payload_mut(63).len(), 100);
        assert!(!joined.shrink());
        assert!(!Outgoing::new(settings(UdpOffload::None), None, None).shrink());
    }
}
