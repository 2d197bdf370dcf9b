//! Pacing of a TCP stream: how many bytes are due at a given time. Pure arithmetic; never sends.
//!
//! The due bytes are computed from the time since the start, so errors do not accumulate: a late wake-up is compensated, and at the
//! end of the duration exactly the payload of the rate was due. Pacing by the kernel alone cannot do that: the send buffer takes
//! megabytes at once, which a slow rate would drain for minutes after the end.

/// Interval between the quanta of a stream, nanoseconds. Shorter intervals cost wake-ups, longer ones send bursts that ordinary
/// buffers drop.
const QUANTUM_NS: u64 = 1_000_000;
/// Minimum size of a quantum, so that slow streams send whole segments (MTU of 1500 bytes less 52 of headers), ...
const SEGMENT: u64 = 1_448;
/// ... unless it would have to wait longer than this, nanoseconds.
const SEGMENT_WAIT_NS: u64 = 100_000_000;
/// A thread that is late by this, plus the time that it waited for a core, sends after the end what was due before it, nanoseconds.
const GRACE_NS: u64 = 100_000_000;
/// Pacing rate of the kernel in percent of the stream's rate: the kernel spreads a quantum over most of the interval, and never
/// delays the schedule.
const KERNEL_HEADROOM_PERCENT: u128 = 110;
/// Minimum rate for kernel pacing, bytes/s: below it a quantum is one segment, and there is nothing to spread.
const KERNEL_PACING_MIN: u64 = 125_000;

/// The schedule of one direction of one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    start_ns: u64,
    end_ns: u64,
    /// Payload rate of all streams, bit/s.
    rate_bps: u64,
    streams: u64,
    /// Payload of a quantum, bytes.
    quantum: u64,
    /// The first quantum is shorter, so that the streams are not synchronized.
    first: u64,
}

/// The next action of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send this many bytes.
    Now(u64),
    /// Nothing is due before this time, nanoseconds of the monotonic clock.
    At(u64),
    /// The duration is over.
    Over,
}

impl Pace {
    /// Stream `stream` of `streams` with a total of `rate_bps` from `start_ns` to `end_ns`. A quantum is at most `block` bytes.
    pub(crate) fn new(
        start_ns: u64,
        end_ns: u64,
        rate_bps: u64,
        (stream, streams): (u64, u64),
        block: u64,
    ) -> Self {
        let mut pace = Self { start_ns, end_ns, rate_bps: rate_bps.max(1), streams, quantum: 1, first: 1 };
        let least = SEGMENT.min(pace.bytes_in(SEGMENT_WAIT_NS));
        pace.quantum = pace.bytes_in(QUANTUM_NS).max(least).min(block).max(1);
        pace.first = (pace.quantum * (stream + 1) / streams).max(1);
        pace
    }

    /// Payload of this stream in `length_ns`, bytes, rounded down.
    fn bytes_in(&self, length_ns: u64) -> u64 {
        let bits = u128::from(self.rate_bps) * u128::from(length_ns) / 1_000_000_000;
        u64::try_from(bits / 8 / u128::from(self.streams)).unwrap_or(u64::MAX)
    }

    /// When `bytes` of payload are due, nanoseconds of the monotonic clock.
    fn due_ns(&self, bytes: u64) -> u64 {
        let bits = u128::from(bytes) * 8 * u128::from(self.streams);
        // Plus one, because `bytes_in` rounds down.
        let offset = bits.saturating_mul(1_000_000_000) / u128::from(self.rate_bps) + 1;
        self.start_ns.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    /// The action at `now_ns`, after `sent` bytes. `runqueue_wait_ns` returns how long the thread has waited for a core so far; it
    /// is called after the end only.
    #[inline]
    pub(crate) fn due(&self, sent: u64, now_ns: u64, runqueue_wait_ns: impl FnOnce() -> u64) -> Due {
        let due_bytes =
            self.bytes_in(now_ns.min(self.end_ns).saturating_sub(self.start_ns)).saturating_sub(sent);
        if now_ns >= self.end_ns {
            // The last quantum, and the bytes that the scheduler delayed. Anything beyond is what the path did not take in time.
            let grace_ns = GRACE_NS.saturating_add(runqueue_wait_ns());
            let in_time =
                now_ns - self.end_ns < grace_ns && due_bytes <= self.quantum.max(self.bytes_in(grace_ns));
            return if due_bytes > 0 && in_time { Due::Now(due_bytes) } else { Due::Over };
        }
        let quantum = if sent == 0 { self.first } else { self.quantum };
        if due_bytes >= quantum {
            Due::Now(due_bytes)
        } else {
            Due::At(self.due_ns(sent.saturating_add(quantum)).min(self.end_ns))
        }
    }

    /// The pacing rate for the kernel, bytes/s; absent for slow streams.
    pub(crate) fn kernel_ceiling(&self) -> Option<u64> {
        let rate = self.bytes_in(1_000_000_000);
        let ceiling = u128::from(rate) * KERNEL_HEADROOM_PERCENT / 100;
        (rate >= KERNEL_PACING_MIN).then(|| u64::try_from(ceiling).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Walks a stream through its duration, as a thread would that is woken `late_ns` late. Returns what it sent and how
    /// often.
    fn walk(pace: &Pace, late_ns: u64) -> (u64, u64) {
        let (mut now, mut sent, mut quanta) = (pace.start_ns, 0, 0);
        loop {
            match pace.due(sent, now, || late_ns) {
                Due::Now(bytes) => (sent, quanta) = (sent + bytes, quanta + 1),
                Due::At(at) => {
                    assert!(at > now, "time advances");
                    now = at + late_ns;
                }
                Due::Over => return (sent, quanta),
            }
        }
    }

    #[test]
    fn quantum_is_a_millisecond_a_segment_or_a_block() {
        let quantum = |rate, block| Pace::new(0, SECOND, rate, (0, 1), block).quantum;
        assert_eq!(quantum(1_000_000_000, 1 << 20), 125_000);
        assert_eq!(quantum(1_000_000, 1 << 20), SEGMENT);
        assert_eq!(quantum(8_000, 1 << 20), 100);
        assert_eq!(quantum(1, 1 << 20), 1);
        assert_eq!(quantum(u64::MAX, 1 << 20), 1 << 20);
    }

    #[test]
    fn slow_streams_send_single_bytes_and_end_in_time() {
        let pace = Pace::new(7, 7 + 20 * SECOND, 1, (0, 1), 1000);
        assert_eq!(pace.due(0, 7, || 0), Due::At(7 + 8 * SECOND + 1));
        assert_eq!(walk(&pace, 0).0, 2);
        assert_eq!(pace.kernel_ceiling(), None);
    }

    #[test]
    fn backlog_of_the_path_is_not_sent_after_the_end() {
        let pace = Pace::new(0, SECOND, 8_000_000, (0, 1), 1 << 20);
        let due = |sent, now, runqueue_wait_ns| pace.due(sent, now, || runqueue_wait_ns);
        assert_eq!(due(899_999, SECOND, 0), Due::Over);
        assert_eq!(due(999_900, SECOND + GRACE_NS, 0), Due::Over);
        assert_eq!(due(999_900, SECOND, 0), Due::Now(100));
        assert_eq!(due(1_000_000, SECOND, 0), Due::Over);
    }

    #[test]
    fn bytes_delayed_by_the_scheduler_are_sent_after_the_end() {
        let pace = Pace::new(0, SECOND, 8_000_000, (0, 1), 1 << 20);
        let due = |sent, now, runqueue_wait_ns| pace.due(sent, now, || runqueue_wait_ns);
        // Not scheduled from 0.4 s to 1.2 s: 600,000 bytes are due_bytes, and 0.9 s of grace are 900,000.
        assert_eq!(due(400_000, SECOND * 6 / 5, SECOND * 4 / 5), Due::Now(600_000));
        assert_eq!(due(50_000, SECOND * 6 / 5, SECOND * 4 / 5), Due::Over, "more than that was due_bytes");
        assert_eq!(due(400_000, SECOND * 2, SECOND * 4 / 5), Due::Over, "later than that");
    }

    proptest! {
        #[test]
        fn streams_together_send_the_rate_to_the_byte(
            rate in 1u64..100_000_000_000, streams in 1u64..40, late_ns in 0u64..3_000_000,
        ) {
            let total: u64 = (0..streams)
                .map(|stream| walk(&Pace::new(5, 5 + SECOND / 10, rate, (stream, streams), 1 << 30), late_ns).0)
                .sum();
            let due = rate / 80;
            prop_assert!(total <= due && due - total <= streams, "{} of {}", total, due);
        }
    }
}
