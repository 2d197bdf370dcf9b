//! When a busy-polling thread yields its core to other threads. Reads no clock and does not yield itself.

/// Empty polls in succession before a busy-polling thread yields its core, at most: about 20 us, longer than a round trip
/// between two cores. When both ends share a core, each would otherwise spin through its time slice while the other has the message:
/// measured 8 ms instead of 10 us per round trip.
const EMPTY_POLLS_MAX: u32 = 64;
/// How long sched_yield(2) takes when the peer ran meanwhile, nanoseconds. Less is the system call alone, more is another program that
/// used its time slice.
const PEER_RAN_NS: std::ops::Range<u64> = 1_000..100_000;

/// Adapts how soon a busy-polling thread yields. When both ends share a core, the message has arrived after a yield that took
/// [`PEER_RAN_NS`]; each such yield halves the number of empty polls before the next.
#[derive(Debug)]
pub(crate) struct SpinYield {
    /// Empty polls since the last message or yield.
    empty_polls: u32,
    /// Empty polls before the next yield.
    polls_before_yield: u32,
    /// How long the last yield took, when there was no poll since; else 0. Nanoseconds.
    ran_ns: u64,
}

impl SpinYield {
    pub(crate) const fn new() -> Self {
        Self { empty_polls: 0, polls_before_yield: EMPTY_POLLS_MAX, ran_ns: 0 }
    }

    /// Counts an empty poll; true when the thread should yield.
    #[inline]
    pub(crate) fn should_yield(&mut self) -> bool {
        if self.ran_ns > 0 {
            // No message after the yield: the peer did not run.
            self.ran_ns = 0;
            self.wait_longer();
        }
        self.empty_polls += 1;
        self.empty_polls >= self.polls_before_yield
    }

    /// The thread yielded for `ns` nanoseconds.
    pub(crate) fn yielded_for(&mut self, ns: u64) {
        self.empty_polls = 0;
        self.ran_ns = ns.max(1);
    }

    /// A poll returned a message.
    #[inline]
    pub(crate) fn note_message(&mut self) {
        self.empty_polls = 0;
        if self.ran_ns > 0 {
            if PEER_RAN_NS.contains(&self.ran_ns) {
                self.polls_before_yield = (self.polls_before_yield / 2).max(1);
            } else {
                self.wait_longer();
            }
            self.ran_ns = 0;
        }
    }

    fn wait_longer(&mut self) {
        self.polls_before_yield = (self.polls_before_yield * 2).min(EMPTY_POLLS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of empty polls until the next yield.
    fn polls(spin_yield: &mut SpinYield) -> u32 {
        let mut count = 1;
        while !spin_yield.should_yield() {
            count += 1;
        }
        count
    }

    #[test]
    fn thread_yields_sooner_when_the_peer_shares_its_core() {
        let mut spin_yield = SpinYield::new();
        let polls_before_yield: Vec<u32> = (0..8)
            .map(|_| {
                let count = polls(&mut spin_yield);
                spin_yield.yielded_for(8_000);
                spin_yield.note_message();
                count
            })
            .collect();
        assert_eq!(polls_before_yield, [64, 32, 16, 8, 4, 2, 1, 1]);
        // Another program used its whole time slice: spin longer.
        spin_yield.yielded_for(3_000_000);
        spin_yield.note_message();
        assert_eq!(polls(&mut spin_yield), 2);
    }

    #[test]
    fn thread_alone_on_its_core_keeps_spinning() {
        let mut spin_yield = SpinYield::new();
        for _ in 0..20 {
            // No other thread ran; the message came without the yield, or did not come.
            assert_eq!(polls(&mut spin_yield), EMPTY_POLLS_MAX);
            spin_yield.yielded_for(300);
            spin_yield.note_message();
            assert_eq!(polls(&mut spin_yield), EMPTY_POLLS_MAX);
            spin_yield.yielded_for(20_000);
            assert!(!spin_yield.should_yield());
            spin_yield.note_message();
        }
    }
}
