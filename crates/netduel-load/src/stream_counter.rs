//! Counters of one direction of one stream: one thread writes them, the supervisor reads them.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one direction of one stream. Aligned to two cache lines, because the prefetcher of x86 fetches pairs: this avoids
/// false sharing between threads.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StreamCounter {
    bytes: AtomicU64,
    messages: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    due: AtomicU64,
    /// Jitter plus one nanosecond; 0 while it is unknown.
    jitter_plus_1_ns: AtomicU64,
}

/// Values of a counter at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CounterValues {
    pub bytes: u64,
    pub messages: u64,
}

impl StreamCounter {
    /// Adds data moved at `now_ns` of the monotonic clock. Only one thread may call this, so no locked instruction is needed.
    #[inline]
    pub(crate) fn add(&self, bytes: u64, messages: u64, now_ns: u64) {
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.messages.store(self.messages.load(Relaxed) + messages, Relaxed);
        if self.first_ns.load(Relaxed) == 0 {
            self.first_ns.store(now_ns, Relaxed);
        }
        self.last_ns.store(now_ns, Relaxed);
    }

    /// As [`Self::add`] for several threads, at the cost of locked instructions.
    pub(crate) fn add_shared(&self, bytes: u64, messages: u64, now_ns: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.messages.fetch_add(messages, Relaxed);
        let _ = self.first_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
        self.last_ns.fetch_max(now_ns, Relaxed);
    }

    /// Records the highest sequence number plus one, and the jitter in nanoseconds where datagrams carry their send time. Only the thread
    /// that adds may call this.
    #[inline]
    pub(crate) fn note_arrival(&self, due: u64, jitter_ns: Option<u64>) {
        self.due.store(due, Relaxed);
        self.jitter_plus_1_ns.store(jitter_ns.map_or(0, |jitter_ns| jitter_ns + 1), Relaxed);
    }

    /// The values of the last [`Self::note_arrival`].
    pub(crate) fn arrival(&self) -> (u64, Option<u64>) {
        (self.due.load(Relaxed), self.jitter_plus_1_ns.load(Relaxed).checked_sub(1))
    }

    /// Data moved so far. Bytes and messages may be of two successive moments while the thread runs.
    pub(crate) fn read(&self) -> CounterValues {
        CounterValues { bytes: self.bytes.load(Relaxed), messages: self.messages.load(Relaxed) }
    }

    /// Times of the first and the last data; absent without data.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        match self.first_ns.load(Relaxed) {
            0 => None,
            first => Some((first, self.last_ns.load(Relaxed))),
        }
    }
}

/// The sum over counters.
pub(crate) fn total(counters: &[StreamCounter]) -> CounterValues {
    counters.iter().map(StreamCounter::read).fold(CounterValues::default(), |sum, next| CounterValues {
        bytes: sum.bytes + next.bytes,
        messages: sum.messages + next.messages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_unknown_until_datagrams_carry_their_send_time() {
        let counter = StreamCounter::default();
        assert_eq!(counter.arrival(), (0, None));
        counter.note_arrival(3, None);
        assert_eq!(counter.arrival(), (3, None));
        counter.note_arrival(4, Some(0));
        assert_eq!(counter.arrival(), (4, Some(0)));
    }
}
