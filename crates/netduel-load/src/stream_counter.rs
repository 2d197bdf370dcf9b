//! Counters that one thread writes and the supervisor reads: one direction of one stream.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one direction of one stream. Aligned to two cache lines, because the prefetcher of x86 fetches pairs: no
/// two threads ever write to the same pair.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StreamCounter {
    bytes: AtomicU64,
    messages: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    due: AtomicU64,
    jitter_ns: AtomicU64,
}

/// What a lane held at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CounterValues {
    pub bytes: u64,
    pub messages: u64,
}

impl StreamCounter {
    /// Adds what was moved, at `now_ns` of the monotonic clock. Only one thread may call this, so that no locked
    /// instruction is needed.
    #[inline]
    pub(crate) fn add(&self, bytes: u64, messages: u64, now_ns: u64) {
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.messages.store(self.messages.load(Relaxed) + messages, Relaxed);
        if self.first_ns.load(Relaxed) == 0 {
            self.first_ns.store(now_ns, Relaxed);
        }
        self.last_ns.store(now_ns, Relaxed);
    }

    /// As [`Self::add`], where several threads may add: for what is told of many messages at a time.
    pub(crate) fn add_shared(&self, bytes: u64, messages: u64, now_ns: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.messages.fetch_add(messages, Relaxed);
        let _ = self.first_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
        self.last_ns.fetch_max(now_ns, Relaxed);
    }

    /// Notes how many messages there are up to the newest, and the jitter of their arrival, nanoseconds. For the thread that adds.
    #[inline]
    pub(crate) fn note_arrival(&self, due: u64, jitter_ns: u64) {
        self.due.store(due, Relaxed);
        self.jitter_ns.store(jitter_ns, Relaxed);
    }

    /// What [`Self::note_arrival`] noted.
    pub(crate) fn arrival(&self) -> (u64, u64) {
        (self.due.load(Relaxed), self.jitter_ns.load(Relaxed))
    }

    /// What was moved so far. Bytes and messages may be from two successive moments while the thread runs.
    pub(crate) fn read(&self) -> CounterValues {
        CounterValues { bytes: self.bytes.load(Relaxed), messages: self.messages.load(Relaxed) }
    }

    /// When the first and the last were moved; absent when nothing was.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        match self.first_ns.load(Relaxed) {
            0 => None,
            first => Some((first, self.last_ns.load(Relaxed))),
        }
    }
}

/// The sum over lanes.
pub(crate) fn total(lanes: &[StreamCounter]) -> CounterValues {
    lanes.iter().map(StreamCounter::read).fold(CounterValues::default(), |sum, next| CounterValues {
        bytes: sum.bytes + next.bytes,
        messages: sum.messages + next.messages,
    })
}
