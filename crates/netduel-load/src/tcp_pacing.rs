//! How much of a stream's rate is due: pure arithmetic over times that are passed in. Never sends.
//!
//! What is due is computed from the time since the start, so nothing adds up: a late wake-up is caught up, and at the end
//! of the duration exactly the payload of the rate was due. The kernel's pacing alone could not do that: a send buffer takes megabytes
//! at once, which a slow rate would drain for minutes after the end.

/// A stream's quanta are this far apart, nanoseconds. Shorter ones cost wake-ups, longer ones are bursts that ordinary
/// buffers drop.
const QUANTUM_NS: u64 = 1_000_000;
/// A quantum sends no less than this, so that slow streams send whole segments (1500 bytes of MTU less 52 of headers)...
const SEGMENT: u64 = 1_448;
/// ...unless it would have to wait for longer than this for it, nanoseconds.
const SEGMENT_WAIT_NS: u64 = 100_000_000;
/// A thread that is late by no more than this, and the time that it waited for a core, sends what was due at the end after it,
/// nanoseconds.
const GRACE_NS: u64 = 100_000_000;
/// The kernel spreads a quantum's bytes over most of the time to the next one: its pacing rate is this much above the
/// stream's, in percent, so that it never holds back what the schedule gives.
const KERNEL_HEADROOM_PERCENT: u128 = 110;
/// Below this the kernel is not asked to pace, bytes a second: a quantum is one segment then, and there is nothing to spread.
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
    /// The first quantum is shorter, so that streams do not take theirs at the same time.
    first: u64,
}

/// What a stream does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send so many bytes.
    Now(u64),
    /// Nothing is due before this time, nanoseconds of the monotonic clock.
    At(u64),
    /// The duration is over.
    Over,
}

impl Pace {
    /// Stream `stream` of `streams` that give `rate_bps` together from `start_ns` to `end_ns`. A quantum is never more than
    /// `block` bytes.
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
        // One more: what was rounded down at this time must not be rounded down again.
        let offset = bits.saturating_mul(1_000_000_000) / u128::from(self.rate_bps) + 1;
        self.start_ns.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    /// What to do at `now_ns`, when `sent` bytes were sent. `runqueue_wait_ns` says how long the thread has waited for a core so far; it is asked
    /// after the end only.
    #[inline]
    pub(crate) fn due(&self, sent: u64, now_ns: u64, runqueue_wait_ns: impl FnOnce() -> u64) -> Due {
        let due_bytes =
            self.bytes_in(now_ns.min(self.end_ns).saturating_sub(self.start_ns)).saturating_sub(sent);
        if now_ns >= self.end_ns {
            // The last quantum, and what the scheduler held up. More is what the path did not take in time.
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

    /// The kernel's ceiling for the stream, bytes a second, where it is right to have one.
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
                    assert!(at > now, "time goes on");
                    now = at + late_ns;
                }
                Due::Over => return (sent, quanta),
            }
        }
    }

    #[test]
    fn a_turn_is_a_millisecond_a_segment_or_a_block() {
        let quantum = |rate, block| Pace::new(0, SECOND, rate, (0, 1), block).quantum;
        assert_eq!(quantum(1_000_000_000, 1 << 20), 125_000);
        assert_eq!(quantum(1_000_000, 1 << 20), SEGMENT);
        assert_eq!(quantum(8_000, 1 << 20), 100);
        assert_eq!(quantum(1, 1 << 20), 1);
        assert_eq!(quantum(u64::MAX, 1 << 20), 1 << 20);
    }

    #[test]
    fn slow_streams_wait_for_their_byte_and_end_in_time() {
        let pace = Pace::new(7, 7 + 20 * SECOND, 1, (0, 1), 1000);
        assert_eq!(pace.due(0, 7, || 0), Due::At(7 + 8 * SECOND + 1));
        assert_eq!(walk(&pace, 0).0, 2);
        assert_eq!(pace.kernel_ceiling(), None);
    }

    #[test]
    fn what_the_path_did_not_take_in_time_is_not_sent_after_the_end() {
        let pace = Pace::new(0, SECOND, 8_000_000, (0, 1), 1 << 20);
        let due = |sent, now, runqueue_wait_ns| pace.due(sent, now, || runqueue_wait_ns);
        assert_eq!(due(899_999, SECOND, 0), Due::Over);
        assert_eq!(due(999_900, SECOND + GRACE_NS, 0), Due::Over);
        assert_eq!(due(999_900, SECOND, 0), Due::Now(100));
        assert_eq!(due(1_000_000, SECOND, 0), Due::Over);
    }

    #[test]
    fn what_the_scheduler_held_up_is_sent_after_the_end() {
        let pace = Pace::new(0, SECOND, 8_000_000, (0, 1), 1 << 20);
        let due = |sent, now, runqueue_wait_ns| pace.due(sent, now, || runqueue_wait_ns);
        // Not scheduled from 0.4 s to 1.2 s: 600,000 bytes are due_bytes, and 0.9 s of grace are 900,000.
        assert_eq!(due(400_000, SECOND * 6 / 5, SECOND * 4 / 5), Due::Now(600_000));
        assert_eq!(due(50_000, SECOND * 6 / 5, SECOND * 4 / 5), Due::Over, "more than that was due_bytes");
        assert_eq!(due(400_000, SECOND * 2, SECOND * 4 / 5), Due::Over, "later than that");
    }

    proptest! {
        #[test]
        fn the_streams_together_give_the_rate_to_the_byte(
            rate in 1u64..100_000_000_000, streams in 1u64..40, late_ns in 0u64..3_000_000,
        ) {
            let total: u64 = (0..streams)
                .map(|stream| walk(&Pace::new(5, 5 + SECOND / 10, rate, (stream, streams), 1 << 30), late_ns).0)
                .sum();
            let asked = rate / 80;
            prop_assert!(total <= asked && asked - total <= streams, "{} of {}", total, asked);
        }
    }
}
