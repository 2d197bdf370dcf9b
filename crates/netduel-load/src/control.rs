//! State that all threads of one end share: the phase of the trial, the counters, and the sockets that wake the threads.
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netduel_model::sample::LiveFigures;
use netduel_sys::clock;

use crate::connection_info;
use crate::live_latency::LiveLatency;
use crate::sockets::Sockets;
use crate::stream_counter::{self, StreamCounter};
use crate::waker::{AcceptorState, Waker};

/// Connections whose TCP_INFO a progress line reads, at most: each costs a system call.
const LIVE_TCP_MAX: usize = 1024;

/// How long an end that is over waits for the acknowledgement of its last data, nanoseconds: several round trips and
/// retransmissions of a slow path.
const ACKNOWLEDGED_WITHIN_NS: u64 = 3_000_000_000;
const ACKNOWLEDGED_GAP_NS: u64 = 1_000_000;

const RUNNING: u8 = 0;
const FINISHING: u8 = 1;
const ABORTED: u8 = 2;

/// Shared state of one end.
#[derive(Debug)]
pub(crate) struct Control {
    phase: AtomicU8,
    started_ns: AtomicU64,
    done: AtomicBool,
    /// Sent data, by stream.
    pub sent: Vec<StreamCounter>,
    /// Received data, by stream.
    pub received: Vec<StreamCounter>,
    /// The first `bulk` counters count the data of the workload; the others count probes.
    bulk: usize,
    sockets: Mutex<Option<Sockets>>,
    /// Round trips for progress lines.
    pub live_latency: Arc<LiveLatency>,
    /// Whether `finish` shuts flows and accepting sockets down at once: for a responder, which has nothing to drain.
    finish_shuts_down: bool,
    /// What the acceptor threads read.
    pub acceptor_state: Arc<AcceptorState>,
    /// Wake the acceptor threads; dropping them ends the threads.
    acceptor_wakers: Mutex<Vec<Waker>>,
    omits_end_markers: bool,
}

/// No code panics while it holds one of these locks, so a poisoned one still guards a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    pub(crate) fn new(
        (streams, bulk): (usize, usize),
        finish_shuts_down: bool,
        acceptor_wakers: Vec<Waker>,
        acceptor_state: Arc<AcceptorState>,
    ) -> Self {
        let counters = || (0..streams).map(|_| StreamCounter::default()).collect();
        Self {
            phase: AtomicU8::new(RUNNING),
            started_ns: AtomicU64::new(0),
            done: AtomicBool::new(false),
            sent: counters(),
            received: counters(),
            bulk,
            sockets: Mutex::new(None),
            live_latency: Arc::default(),
            finish_shuts_down,
            acceptor_state,
            acceptor_wakers: Mutex::new(acceptor_wakers),
            omits_end_markers: false,
        }
    }

    /// Sends no end markers: the peer counts every datagram as a packet of the trial.
    pub(crate) fn without_end_markers(self, omits_end_markers: bool) -> Self {
        Self { omits_end_markers, ..self }
    }

    /// Whether each flow ends with markers.
    pub(crate) fn sends_end_markers(&self) -> bool {
        !self.omits_end_markers && !self.is_aborted()
    }

    /// Starts the acceptor threads' wait for the peer, which ends after `give_up_after_ns`.
    pub(crate) fn start(&self, give_up_after_ns: u64) {
        let now = clock::monotonic_ns();
        self.acceptor_state.give_up_ns.store(now.saturating_add(give_up_after_ns), SeqCst);
        self.acceptor_state.started.store(true, SeqCst);
        for wake in lock(&self.acceptor_wakers).iter() {
            wake.wake();
        }
    }

    /// Records the start of the traffic.
    pub(crate) fn begin(&self) {
        self.started_ns.store(clock::monotonic_ns(), SeqCst);
    }

    /// When the traffic began, nanoseconds of the monotonic clock; 0 before.
    pub(crate) fn started_ns(&self) -> u64 {
        self.started_ns.load(Relaxed)
    }

    /// Keeps the sockets, to wake threads by shutting them down; at once when the end was aborted meanwhile.
    pub(crate) fn attach_sockets(&self, sockets: Sockets) {
        *lock(&self.sockets) = Some(sockets);
        if self.is_aborted() {
            self.shut_down_sockets();
        } else if self.is_finishing() && self.finish_shuts_down {
            self.shut_down_responders();
        }
    }

    /// Drops the sockets; they close when the threads have ended, too. A peer that still reads gets what is under
    /// way: the last responses of a server leave after the last request. What it has not acknowledged after
    /// [`ACKNOWLEDGED_WITHIN_NS`], or when this end is aborted, is discarded. Returns the number of connections
    /// with such data.
    pub(crate) fn release_sockets(&self) -> usize {
        self.release_within(ACKNOWLEDGED_WITHIN_NS)
    }

    /// As [`Self::release_sockets`], with another limit, nanoseconds.
    fn release_within(&self, within_ns: u64) -> usize {
        let Some(sockets) = lock(&self.sockets).take() else { return 0 };
        let limit_ns = clock::monotonic_ns().saturating_add(within_ns);
        while sockets.have_unacknowledged() && !self.is_aborted() && clock::monotonic_ns() < limit_ns {
            clock::sleep_until(clock::monotonic_ns() + ACKNOWLEDGED_GAP_NS);
        }
        sockets.discard_unacknowledged()
    }

    /// Whether senders continue.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.phase.load(Relaxed) == RUNNING
    }

    /// Whether the peer is known to be done, or the end is aborted.
    #[inline]
    pub(crate) fn is_finishing(&self) -> bool {
        self.phase.load(Relaxed) != RUNNING
    }

    /// Whether threads must end at once. Errors of socket calls are then caused by the shutdown, not by the path.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.phase.load(Relaxed) == ABORTED
    }

    /// The peer is done.
    pub(crate) fn finish(&self) {
        // An aborted end stays aborted.
        let _ = self.phase.compare_exchange(RUNNING, FINISHING, SeqCst, SeqCst);
        if self.finish_shuts_down {
            self.shut_down_responders();
        }
    }

    /// Ends all threads at once.
    pub(crate) fn abort(&self) {
        self.phase.store(ABORTED, SeqCst);
        lock(&self.acceptor_wakers).clear();
        self.shut_down_sockets();
    }

    fn shut_down_responders(&self) {
        if let Some(sockets) = lock(&self.sockets).as_ref() {
            sockets.shut_down_responders();
        }
    }

    fn shut_down_sockets(&self) {
        if let Some(sockets) = lock(&self.sockets).as_ref() {
            sockets.shut_down();
        }
    }

    /// Records that the end is over and its result available.
    pub(crate) fn mark_done(&self) {
        self.done.store(true, SeqCst);
    }

    /// Whether the end is over.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(SeqCst)
    }

    /// Counters of the workload data that this end sent.
    pub(crate) fn bulk_sent(&self) -> &[StreamCounter] {
        &self.sent[..self.bulk]
    }

    /// Counters of the workload data that this end received.
    pub(crate) fn bulk_received(&self) -> &[StreamCounter] {
        &self.received[..self.bulk]
    }

    /// The figures so far.
    pub(crate) fn live(&self) -> LiveFigures {
        let (sent, received) =
            (stream_counter::total(self.bulk_sent()), stream_counter::total(self.bulk_received()));
        let elapsed_ns = match self.started_ns() {
            0 => 0,
            started if self.is_done() => self.last_moved_ns().saturating_sub(started),
            started => clock::monotonic_ns() - started,
        };
        let (retransmits, cwnd_bytes) = self.live_tcp().unzip();
        let (missing, jitter_ns) = self.live_datagrams().unzip();
        LiveFigures {
            elapsed_ns,
            sent_bytes: sent.bytes,
            received_bytes: received.bytes,
            messages: received.messages,
            retransmits,
            cwnd_bytes,
            lost: missing,
            jitter_ns: jitter_ns.flatten(),
            round_trips: self.live_latency.take(),
        }
    }

    /// When the last byte was moved, of the monotonic clock.
    fn last_moved_ns(&self) -> u64 {
        let counters = self.bulk_sent().iter().chain(self.bulk_received());
        counters.filter_map(StreamCounter::span).map(|(_, last)| last).max().unwrap_or(0)
    }

    /// Lost datagrams so far and the mean jitter of the flows with a known one, at a receiver of datagrams.
    fn live_datagrams(&self) -> Option<(u64, Option<u64>)> {
        // Messages are read last, so those that arrive meanwhile do not count as lost.
        let counters = self.bulk_received().iter();
        let flows: Vec<_> = counters
            .map(|counter| (counter.arrival(), counter.read().messages))
            .filter(|((due, _), _)| *due > 0)
            .collect();
        let missing = flows.iter().map(|((due, _), messages)| due.saturating_sub(*messages)).sum();
        let jitters: Vec<u64> = flows.iter().filter_map(|((_, jitter_ns), _)| *jitter_ns).collect();
        let jitter = jitters.iter().sum::<u64>().checked_div(jitters.len() as u64);
        (!flows.is_empty()).then_some((missing, jitter))
    }

    /// Retransmitted segments so far and the congestion window in bytes, over all connections of a sender.
    fn live_tcp(&self) -> Option<(u64, u64)> {
        let sockets = lock(&self.sockets).clone();
        let streams = sockets?.tcp;
        if streams.is_empty() || streams.len() > LIVE_TCP_MAX || stream_counter::total(&self.sent).bytes == 0
        {
            return None;
        }
        let mut sum = (0, 0);
        for stream in &streams {
            let info = connection_info::read(stream).ok()?;
            sum.0 += u64::from(info.retransmits?);
            sum.1 += u64::from(info.snd_cwnd?) * u64::from(info.snd_mss?);
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// An end whose peer has read nothing yet, with the peer's socket and the number of bytes in flight.
    fn with_data_in_flight() -> (Control, TcpStream, usize) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        stream.set_nonblocking(true).unwrap();
        let block = vec![7; 64 << 10];
        let mut sent = 0;
        while let Ok(count) = (&stream).write(&block) {
            sent += count;
        }
        let control = Control::new((1, 1), false, Vec::new(), Arc::default());
        control.attach_sockets(Sockets { tcp: vec![Arc::new(stream)], ..Sockets::default() });
        (control, peer, sent)
    }

    #[test]
    fn an_end_that_is_over_lets_a_slow_peer_read_all_data() {
        let (control, mut peer, sent) = with_data_in_flight();
        let reader = thread::spawn(move || {
            let mut received = Vec::new();
            peer.read_to_end(&mut received).map(|_| received.len())
        });
        // Without a limit: the reader may wait for a core longer than for the data of any path.
        assert_eq!(control.release_within(u64::MAX), 0);
        assert_eq!(reader.join().unwrap().unwrap(), sent);
    }

    #[test]
    fn an_aborted_end_discards_what_its_peer_has_not_read() {
        let (control, mut peer, sent) = with_data_in_flight();
        control.abort();
        assert_eq!(control.release_sockets(), 1);
        let mut received = Vec::new();
        let error = peer.read_to_end(&mut received).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(received.len() < sent, "{} of {sent}", received.len());
    }
}
