//! The receiver of UDP datagrams: a thread for one or more flows reads batches and accounts for each datagram.
use std::net::UdpSocket;
use std::sync::Arc;

use netduel_model::workload::{UdpOffload, UdpStream};
use netduel_sys::readiness::Readiness;
use netduel_sys::udp::{self, ReceiveBatch};
use netduel_sys::{clock, error_name, socket, udp_segment};

use crate::counted::Counted;
use crate::datagram;
use crate::end_markers::END_MARKERS;
use crate::error::LoadError;
use crate::flow_count::FlowCount;
use crate::handshake::{self, HandshakeMessage};
use crate::udp_send::UdpSettings;
use crate::worker::{SLEEP_MAX, Worker};

/// Datagrams per system call.
const BATCH: usize = 64;
/// GRO buffers per system call: 64 KiB each, with some hundred datagrams.
const BATCH_MERGED: usize = 16;
/// After the last end marker of a flow, this long without a datagram means that none is in flight, nanoseconds. The marker leaves
/// last, so only reordered datagrams follow it.
const QUIET_NS: u64 = 50_000_000;
/// The same without the last marker, when an earlier one or the control connection reports the end of the sender, nanoseconds. The
/// control connection overtakes queued data, and a descheduled vCPU delayed datagrams by 0.2 s.
const QUIET_UNMARKED_NS: u64 = 500_000_000;
/// Longest wait for that, nanoseconds.
const DRAIN_NS: u64 = 2_000_000_000;
/// How often a thread with several flows checks for their end, nanoseconds.
const ROUND_NS: u64 = 5_000_000;

/// One flow of a thread.
pub(crate) struct ReceiveFlow {
    pub stream: usize,
    pub socket: Arc<UdpSocket>,
    pub magic: u64,
    pub end_magic: u64,
    /// Of datagrams that only test the segmentation of the sender's interface.
    pub probe_magic: u64,
}

/// A flow during reception.
struct ReceivingFlow {
    flow: ReceiveFlow,
    count: FlowCount,
    /// When the end of the sender was first known.
    peer_done_ns: Option<u64>,
    /// Whether the last marker of the flow has arrived.
    has_last_marker: bool,
    last_arrival_ns: u64,
    is_over: bool,
}

impl ReceivingFlow {
    fn new(flow: ReceiveFlow, trace: usize) -> Self {
        let count = FlowCount::new(flow.stream, trace);
        Self { flow, count, peer_done_ns: None, has_last_marker: false, last_arrival_ns: 0, is_over: false }
    }

    /// Whether no datagram is in flight.
    fn is_drained(&self, now: u64) -> bool {
        let quiet_ns = if self.has_last_marker { QUIET_NS } else { QUIET_UNMARKED_NS };
        self.peer_done_ns.is_some_and(|done| {
            now.saturating_sub(self.last_arrival_ns.max(done)) >= quiet_ns
                || now.saturating_sub(done) >= DRAIN_NS
        })
    }

    /// Updates whether the flow is over at `now`.
    fn update_end(&mut self, worker: &Worker, now: u64) {
        if self.peer_done_ns.is_none() && worker.control.is_finishing() {
            self.peer_done_ns = Some(now);
        }
        self.is_over |= self.is_drained(now);
    }

    /// Receives a batch; with `wait` it sleeps until data arrives or the socket's timeout ends.
    #[inline]
    fn receive(&mut self, worker: &mut Worker, batch: &mut ReceiveBatch, size: usize, wait: bool) -> u64 {
        let socket = &self.flow.socket;
        let result = if wait { batch.receive(socket) } else { batch.receive_waiting(socket) };
        let now = clock::monotonic_ns();
        match result {
            Ok(taken) => {
                let before = self.count.accounting.unique();
                let magics = [self.flow.magic, self.flow.end_magic, self.flow.probe_magic];
                let marker = account_batch(batch, taken, size, magics, now, &mut self.count);
                let new = self.count.accounting.unique() - before;
                if new > 0 {
                    let counter = &worker.control.received[self.flow.stream];
                    counter.add(new * size as u64, new, now);
                    let jitter_ns = self.count.jitter.nanoseconds().map(|jitter_ns| jitter_ns as u64);
                    counter.note_arrival(self.count.accounting.highest_plus_one(), jitter_ns);
                    self.last_arrival_ns = now;
                }
                if let Some(marker) = marker {
                    self.peer_done_ns.get_or_insert(now);
                    self.has_last_marker |= marker >= END_MARKERS;
                }
            }
            Err(error) => {
                if !socket::is_transient(&error) {
                    worker.errors.count("recvmmsg", &error);
                    // An ICMP error is cleared by the call. Any other error would return at once, forever.
                    let name = error.raw_os_error().and_then(error_name::of);
                    self.is_over |= name.is_none_or(|name| !is_from_the_path(name));
                }
            }
        }
        now
    }
}

/// Receives on all flows of a thread until the peer is done and no datagram is in flight.
pub(crate) fn receive(
    worker: &mut Worker,
    flows: Vec<ReceiveFlow>,
    settings: UdpSettings,
) -> Result<Counted, LoadError> {
    let UdpSettings { size, offload, .. } = settings;
    let buffer = UdpStream::receive_buffer(settings.flows).0 as usize;
    worker.set_buffers(flows.iter().map(|flow| &*flow.socket), settings.window);
    let merged = offload == UdpOffload::GsoGro;
    for flow in &flows {
        if settings.window.is_none() {
            // The acceptor has recorded smaller granted buffers.
            let result = socket::set_receive_buffer(&flow.socket, buffer);
            worker.errors.count_failure("setsockopt SO_RCVBUF", result);
        }
        worker
            .errors
            .count_failure("setsockopt SO_RCVTIMEO", socket::limit_receive_wait(&flow.socket, SLEEP_MAX));
        if merged {
            udp_segment::receive_merged(&flow.socket).map_err(LoadError::merging)?;
        }
    }
    let mut batch = if merged {
        ReceiveBatch::merged(BATCH_MERGED)
    } else {
        // Room for a handshake message even when datagrams are smaller, to recognize late ones.
        ReceiveBatch::new(BATCH, size.max(handshake::LENGTH + 1))
    };
    let mut receiving: Vec<ReceivingFlow> =
        flows.into_iter().map(|flow| ReceivingFlow::new(flow, settings.trace)).collect();
    if let [flow] = receiving.as_mut_slice() {
        while !worker.control.is_aborted() && !flow.is_over {
            let now = flow.receive(worker, &mut batch, size, true);
            flow.update_end(worker, now);
        }
    } else {
        receive_from_all(worker, &mut receiving, &mut batch, size)
            .map_err(|error| LoadError::system("watch the sockets of the flows (epoll)", error))?;
    }
    let mut counts = Vec::with_capacity(receiving.len());
    for ReceivingFlow { flow, mut count, .. } in receiving {
        match socket::receive_buffer(&flow.socket) {
            Ok(granted) => count.receive_buffer = Some(granted as u64),
            Err(error) => worker.errors.count("getsockopt SO_RCVBUF", &error),
        }
        match udp::drops(&flow.socket) {
            Ok(drops) => count.socket_drops = Some(u64::from(drops)),
            Err(error) => worker.errors.count("getsockopt SO_MEMINFO", &error),
        }
        if count.trace.as_ref().is_some_and(|trace| trace.dropped > 0) {
            worker.errors.count_event("probes", "more arrivals than recorded one by one");
        }
        counts.push(count);
    }
    Ok(Counted::ReceivedDatagrams { flows: counts, packets: None })
}

/// Sleeps until flows are readable, and receives a batch from each of them.
fn receive_from_all(
    worker: &mut Worker,
    receiving: &mut [ReceivingFlow],
    batch: &mut ReceiveBatch,
    size: usize,
) -> std::io::Result<()> {
    let mut readiness = Readiness::new(receiving.len())?;
    for (index, flow) in receiving.iter().enumerate() {
        readiness.watch(&*flow.flow.socket, index)?;
    }
    let mut left = receiving.len();
    let mut round_ns = 0;
    while left > 0 && !worker.control.is_aborted() {
        for index in readiness.wait(SLEEP_MAX)? {
            receiving[index].receive(worker, batch, size, false);
        }
        let now = clock::monotonic_ns();
        if now < round_ns {
            continue;
        }
        round_ns = now + ROUND_NS;
        for flow in receiving.iter_mut().filter(|flow| !flow.is_over) {
            flow.update_end(worker, now);
        }
        for flow in receiving.iter().filter(|flow| flow.is_over) {
            // A flow that was over before is not watched any more.
            if readiness.forget(&*flow.flow.socket).is_ok() {
                left -= 1;
            }
        }
    }
    Ok(())
}

/// Errors that a router or the peer's host caused. The call has cleared them.
fn is_from_the_path(name: &str) -> bool {
    matches!(
        name,
        "ECONNREFUSED"
            | "EHOSTUNREACH"
            | "ENETUNREACH"
            | "EHOSTDOWN"
            | "ENONET"
            | "EPROTO"
            | "EMSGSIZE"
            | "EACCES"
            | "ENOPROTOOPT"
            | "EOPNOTSUPP"
            | "ENETDOWN"
            | "ENOBUFS"
            | "ENOMEM"
    )
}

/// Accounts for a batch; returns the number of the newest end marker in it.
#[inline]
fn account_batch(
    batch: &ReceiveBatch,
    taken: usize,
    size: usize,
    [magic, end_magic, probe_magic]: [u64; 3],
    now: u64,
    count: &mut FlowCount,
) -> Option<u64> {
    let mut marker = None;
    for index in 0..taken {
        let before = count.accounting.unique();
        for (payload, length) in batch.datagrams(index) {
            let ours = length == size && datagram::read_magic(payload) == Some(magic);
            match (ours, datagram::read_number(payload), datagram::read_time(payload)) {
                (true, Some(number), sent_ns) => {
                    count.arrive(number, sent_ns, now);
                }
                (_, number, _) if datagram::read_magic(payload) == Some(end_magic) => {
                    marker = marker.max(number);
                }
                _ if datagram::read_magic(payload) == Some(probe_magic) => {}
                // A repeated handshake message, whose reply was late.
                _ if HandshakeMessage::from_bytes(payload).is_some() => {}
                _ => count.unexpected += 1,
            }
        }
        count.buffers += u64::from(count.accounting.unique() > before);
    }
    marker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_without_its_last_marker_waits_longer() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let flow = ReceiveFlow { stream: 0, socket, magic: 1, end_magic: 2, probe_magic: 3 };
        let mut flow = ReceivingFlow::new(flow, 0);
        assert!(!flow.is_drained(u64::MAX), "the sender is not known to be done");
        let (done, last) = (1_000_000_000, 1_400_000_000);
        (flow.peer_done_ns, flow.last_arrival_ns) = (Some(done), last);
        assert!(!flow.is_drained(last + QUIET_UNMARKED_NS - 1));
        assert!(flow.is_drained(last + QUIET_UNMARKED_NS));
        flow.has_last_marker = true;
        assert!(!flow.is_drained(last + QUIET_NS - 1));
        assert!(flow.is_drained(last + QUIET_NS));
        // A sender that never stops is not waited for.
        flow.last_arrival_ns = done + DRAIN_NS;
        assert!(flow.is_drained(done + DRAIN_NS));
    }
}
