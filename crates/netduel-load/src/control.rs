//! What all threads of one end share: how far the trial is, the counters, and the sockets to wake them by.
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netduel_model::sample::LiveFigures;
use netduel_sys::clock;

use crate::connection_info;
use crate::live_latency::LiveLatency;
use crate::sockets::Sockets;
use crate::stream_counter::{self, StreamCounter};
use crate::waker::{AcceptorState, Waker};

/// Connections of a progress line's figures at most: each costs a system call a line.
const LIVE_TCP_MAX: usize = 1024;

const RUNNING: u8 = 0;
const FINISHING: u8 = 1;
const ABORTED: u8 = 2;

/// Shared state of one end.
#[derive(Debug)]
pub(crate) struct Control {
    phase: AtomicU8,
    started_ns: AtomicU64,
    done: AtomicBool,
    /// What was sent, by stream.
    pub sent: Vec<StreamCounter>,
    /// What was received, by stream.
    pub received: Vec<StreamCounter>,
    /// How many of the lanes count what the end moves, and not what was sent to measure it.
    bulk: usize,
    sockets: Mutex<Option<Sockets>>,
    /// Round trips for progress lines.
    pub live_latency: Arc<LiveLatency>,
    /// Whether `finish` ends flows and later connections at once: for a responder, which has nothing of its own to drain.
    finish_cuts: bool,
    /// What the thread at the gate looks at.
    pub acceptor_state: Arc<AcceptorState>,
    /// Writing wakes the threads at the gates, closing ends them.
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
        finish_cuts: bool,
        acceptor_wakers: Vec<Waker>,
        acceptor_state: Arc<AcceptorState>,
    ) -> Self {
        let lanes = || (0..streams).map(|_| StreamCounter::default()).collect();
        Self {
            phase: AtomicU8::new(RUNNING),
            started_ns: AtomicU64::new(0),
            done: AtomicBool::new(false),
            sent: lanes(),
            received: lanes(),
            bulk,
            sockets: Mutex::new(None),
            live_latency: Arc::default(),
            finish_cuts,
            acceptor_state,
            acceptor_wakers: Mutex::new(acceptor_wakers),
            omits_end_markers: false,
        }
    }

    /// The same for an end whose peer takes whatever comes for a packet, so that nothing is sent after the last one.
    pub(crate) fn without_end_markers(self, omits_end_markers: bool) -> Self {
        Self { omits_end_markers, ..self }
    }

    /// Whether the peer is to be told by each flow that no more comes.
    pub(crate) fn sends_end_markers(&self) -> bool {
        !self.omits_end_markers && !self.is_aborted()
    }

    /// Tells the gates that the end was started, and how long to wait for its peer.
    pub(crate) fn start(&self, give_up_after_ns: u64) {
        let now = clock::monotonic_ns();
        self.acceptor_state.give_up_ns.store(now.saturating_add(give_up_after_ns), SeqCst);
        self.acceptor_state.started.store(true, SeqCst);
        for wake in lock(&self.acceptor_wakers).iter() {
            wake.wake();
        }
    }

    /// The traffic begins now.
    pub(crate) fn begin(&self) {
        self.started_ns.store(clock::monotonic_ns(), SeqCst);
    }

    /// When the traffic began, nanoseconds of the monotonic clock; 0 before.
    pub(crate) fn started_ns(&self) -> u64 {
        self.started_ns.load(Relaxed)
    }

    /// Takes the sockets to wake threads by; at once when the end was aborted meanwhile.
    pub(crate) fn attach_sockets(&self, sockets: Sockets) {
        *lock(&self.sockets) = Some(sockets);
        if self.is_aborted() {
            self.shut_down_sockets();
        } else if self.is_finishing() && self.finish_cuts {
            self.shut_down_responders();
        }
    }

    /// Closes the sockets, when the threads have ended too.
    pub(crate) fn release_sockets(&self) {
        *lock(&self.sockets) = None;
    }

    /// Whether senders go on.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.phase.load(Relaxed) == RUNNING
    }

    /// Whether the peer is known to be done, or the end is cut.
    #[inline]
    pub(crate) fn is_finishing(&self) -> bool {
        self.phase.load(Relaxed) != RUNNING
    }

    /// Whether threads must end at once. What calls return then is our own doing, and no error of the path.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.phase.load(Relaxed) == ABORTED
    }

    /// The peer is done.
    pub(crate) fn finish(&self) {
        // A cut end stays cut.
        let _ = self.phase.compare_exchange(RUNNING, FINISHING, SeqCst, SeqCst);
        if self.finish_cuts {
            self.shut_down_responders();
        }
    }

    /// Ends all threads now.
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

    /// The end is over and its result is there.
    pub(crate) fn mark_done(&self) {
        self.done.store(true, SeqCst);
    }

    /// Whether the end is over.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(SeqCst)
    }

    /// The lanes of what this end sent as its workload.
    pub(crate) fn bulk_sent(&self) -> &[StreamCounter] {
        &self.sent[..self.bulk]
    }

    /// The lanes of what this end received as its workload.
    pub(crate) fn bulk_received(&self) -> &[StreamCounter] {
        &self.received[..self.bulk]
    }

    /// Figures so far.
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
            missing,
            jitter_ns,
            round_trips: self.live_latency.take(),
        }
    }

    /// When the last byte was moved, of the monotonic clock.
    fn last_moved_ns(&self) -> u64 {
        let lanes = self.bulk_sent().iter().chain(self.bulk_received());
        lanes.filter_map(StreamCounter::span).map(|(_, last)| last).max().unwrap_or(0)
    }

    /// Datagrams that have not arrived so far, and the mean jitter of the flows, at a receiver of datagrams.
    fn live_datagrams(&self) -> Option<(u64, u64)> {
        // Messages last: those that come in meanwhile are not missing.
        let lanes = self.bulk_received().iter();
        let flows: Vec<_> = lanes
            .map(|lane| (lane.arrival(), lane.read().messages))
            .filter(|((due, _), _)| *due > 0)
            .collect();
        let missing = flows.iter().map(|((due, _), messages)| due.saturating_sub(*messages)).sum();
        let jitter = flows.iter().map(|((_, jitter_ns), _)| jitter_ns).sum::<u64>();
        (!flows.is_empty()).then(|| (missing, jitter / flows.len() as u64))
    }

    /// Segments sent again so far, and the congestion window in bytes, over all connections of a sender.
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
