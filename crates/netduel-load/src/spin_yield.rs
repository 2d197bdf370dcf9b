//! When a busy-polling thread yields its core to others. Reads no clock and does not yield itself.

/// Empty polls after which a busy-polling thread yields its core, at most: some 20 us, more than a round trip
/// between two cores takes. Where both ends were put on one core, each would otherwise spin for the whole of its time slice while
/// the other has the message: 8 ms instead of 10 us for a round trip were seen.
const EMPTY_POLLS_MAX: u32 = 64;
/// Letting others run and coming back takes this long when it was the peer that ran, nanoseconds: less is a system call alone,
/// more is another program that used its time slice.
const PEER_RAN_NS: std::ops::Range<u64> = 1_000..100_000;

/// How a busy-polling thread shares its core. Each end learns whether the other is on the same core: then the message is there
/// after the others ran, and they took no longer than a peer does.
#[derive(Debug)]
pub(crate) struct SpinYield {
    /// Empty polls since the last message, or since others ran.
    empty_polls: u32,
    /// Empty polls after which others may run.
    patience: u32,
    /// How long they ran, when it has not polled since; 0 otherwise.
    ran_ns: u64,
}

impl SpinYield {
    pub(crate) const fn new() -> Self {
        Self { empty_polls: 0, patience: EMPTY_POLLS_MAX, ran_ns: 0 }
    }

    /// Nothing was there; true when it is time to let others run.
    #[inline]
    pub(crate) fn is_time(&mut self) -> bool {
        if self.ran_ns > 0 {
            // The others had nothing for us: it was no peer that ran.
            self.ran_ns = 0;
            self.wait_longer();
        }
        self.empty_polls += 1;
        self.empty_polls >= self.patience
    }

    /// The others ran for this long.
    pub(crate) fn ran(&mut self, ns: u64) {
        self.empty_polls = 0;
        self.ran_ns = ns.max(1);
    }

    /// A message was there.
    #[inline]
    pub(crate) fn note_message(&mut self) {
        self.empty_polls = 0;
        if self.ran_ns > 0 {
            if PEER_RAN_NS.contains(&self.ran_ns) {
                self.patience = (self.patience / 2).max(1);
            } else {
                self.wait_longer();
            }
            self.ran_ns = 0;
        }
    }

    fn wait_longer(&mut self) {
        self.patience = (self.patience * 2).min(EMPTY_POLLS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls in vain until others may run; how many times.
    fn polls(sharing: &mut SpinYield) -> u32 {
        let mut count = 1;
        while !sharing.is_time() {
            count += 1;
        }
        count
    }

    #[test]
    fn a_peer_on_the_same_core_is_let_run_at_once_after_a_few_round_trips() {
        let mut sharing = SpinYield::new();
        let patience: Vec<u32> = (0..8)
            .map(|_| {
                let count = polls(&mut sharing);
                sharing.ran(8_000);
                sharing.note_message();
                count
            })
            .collect();
        assert_eq!(patience, [64, 32, 16, 8, 4, 2, 1, 1]);
        // Another program on the core takes its whole time slice: rather spin.
        sharing.ran(3_000_000);
        sharing.note_message();
        assert_eq!(polls(&mut sharing), 2);
    }

    #[test]
    fn a_core_without_other_threads_is_kept() {
        let mut sharing = SpinYield::new();
        for _ in 0..20 {
            // No other thread ran, and the message came by itself; or it did not come.
            assert_eq!(polls(&mut sharing), EMPTY_POLLS_MAX);
            sharing.ran(300);
            sharing.note_message();
            assert_eq!(polls(&mut sharing), EMPTY_POLLS_MAX);
            sharing.ran(20_000);
            assert!(!sharing.is_time());
            sharing.note_message();
        }
    }
}
