//! What the client's sending side tells its receiving side of stamped requests. In an open loop these are two threads, so
//! everything here is atomic; a request is written down before it is sent, and so before its response can come.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// One request of so many is stamped, on the average: their own cost disturbs the others little, and a second of round trips of
/// 10 us has 6,000.
const STAMPED_EVERY: u64 = 16;
/// Where there are fewer requests a second than the sixteenfold of this, a larger part of them is stamped, half at most.
const STAMPED_PER_SECOND: u64 = 1_000;

/// Requests that are remembered at least, and at most.
const SLOTS: (usize, usize) = (2048, 65_536);

#[derive(Debug, Default)]
struct Slot {
    /// Its number plus one; 0 before the first.
    number: AtomicU64,
    sent_ns: AtomicU64,
}

/// The stamped requests.
#[derive(Debug)]
pub(super) struct RequestStamps {
    /// By number.
    slots: Box<[Slot]>,
    /// Numbers by index among the stamped ones.
    numbers: Box<[AtomicU64]>,
    /// Where the kernel's count of the last one stands (see `StampKeys`).
    last_position: AtomicU64,
    /// How many were stamped.
    count: AtomicU64,
    /// Whether a stamped request could not be sent.
    failed: AtomicBool,
}

impl RequestStamps {
    /// With room for twice as many requests as are under way at a time; in an open loop for those of a second, since a stall
    /// holds that many up.
    pub(super) fn new(outstanding: usize, rate: Option<u64>) -> Self {
        let wanted = rate.map_or(outstanding.saturating_mul(2), |rate| rate as usize);
        let slots = wanted.clamp(SLOTS.0, SLOTS.1).next_power_of_two();
        Self {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            numbers: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            last_position: AtomicU64::new(0),
            count: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// How many requests are remembered.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Request `number` is sent now, stamped. The same number may be noted again until it is sent.
    #[inline]
    pub(super) fn record(&self, number: u64, sent_ns: u64, position: u64, index: u64) {
        self.numbers[index as usize % self.numbers.len()].store(number, Relaxed);
        self.last_position.store(position, Relaxed);
        let slot = &self.slots[number as usize % self.slots.len()];
        slot.sent_ns.store(sent_ns, Relaxed);
        slot.number.store(number + 1, Release);
        self.count.store(index + 1, Release);
    }

    /// When request `number` was sent; absent when it was not stamped.
    #[inline]
    pub(super) fn sent_ns(&self, number: u64) -> Option<u64> {
        let slot = &self.slots[number as usize % self.slots.len()];
        (slot.number.load(Acquire) == number + 1).then(|| slot.sent_ns.load(Relaxed))
    }

    /// The number of the stamped request with this index.
    pub(super) fn number(&self, index: u64) -> u64 {
        self.numbers[index as usize % self.numbers.len()].load(Relaxed)
    }

    /// How many requests were stamped.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    pub(super) fn last_position(&self) -> u64 {
        self.last_position.load(Relaxed)
    }

    /// A stamped request could not be sent: nobody knows whether the kernel counted it.
    pub(super) fn fail(&self) {
        self.failed.store(true, Release);
    }

    /// Whether that happened since the last question.
    #[inline]
    pub(super) fn take_failure(&self) -> bool {
        self.failed.load(Acquire) && self.failed.swap(false, Acquire)
    }
}

/// Chooses the requests that are stamped, one ahead: each request announces whether the next is. The choice is by chance, so
/// that it meets no rhythm of the traffic (of sixteen under way always the same one), and depends on no round trip: whoever
/// stamps after each pause stamps the slow ones.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Requests that were chosen, and the number of the last.
    count: u64,
    number: Option<u64>,
    choice: Choice,
    /// When the first was sent.
    begun_ns: u64,
    /// The request after which the next announcement is.
    due: u64,
    /// The state of a xorshift generator (Marsaglia 2003).
    chance: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        let chance = 0x9e37_79b9_7f4a_7c15;
        Self { count: 0, number: None, choice: Choice::default(), begun_ns: 0, due: 1, chance }
    }
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Choice {
    /// This request is stamped.
    pub is_stamped: bool,
    /// The next one is.
    pub announces: bool,
}

impl Sampler {
    /// What is done with request `number`, when it is sent at `now_ns`. The answer to a second try is that to the first.
    #[inline]
    pub(super) fn choose(&mut self, number: u64, now_ns: u64) -> Choice {
        if self.number == Some(number) {
            return self.choice;
        }
        self.number = Some(number);
        if self.count == 0 {
            self.begun_ns = now_ns;
        }
        self.count += 1;
        let is_stamped = self.choice.announces;
        let announces = self.count >= self.due;
        if announces {
            self.due = self.count + self.distance(now_ns);
        }
        self.choice = Choice { is_stamped, announces };
        self.choice
    }

    /// How far the next stamped request is away: 2 at least, and as many as the rate of requests so far allows on the average.
    #[cold]
    fn distance(&mut self, now_ns: u64) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.begun_ns).max(1);
        let per_second = u128::from(self.count - 1) * 1_000_000_000 / u128::from(elapsed_ns);
        let mean = (per_second / u128::from(STAMPED_PER_SECOND)).clamp(2, u128::from(STAMPED_EVERY)) as u64;
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        2 + self.chance % (2 * mean - 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests that are stamped of those at these times, each announced by the one before.
    fn stamped(count: u64, apart_ns: u64) -> Vec<u64> {
        let mut sampler = Sampler::default();
        let choices: Vec<Choice> =
            (0..count).map(|number| sampler.choose(number, 77_000_000 + number * apart_ns)).collect();
        assert!(choices.windows(2).all(|pair| pair[0].announces == pair[1].is_stamped));
        assert_eq!(sampler.choose(count - 1, u64::MAX), choices[choices.len() - 1], "a second try");
        (0..count).filter(|number| choices[*number as usize].is_stamped).collect()
    }

    #[test]
    fn one_request_of_sixteen_is_stamped_and_meets_no_rhythm() {
        let numbers = stamped(160_000, 10_000);
        assert!((9_500..10_500).contains(&numbers.len()), "{}", numbers.len());
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 < pair[1]), "never two in succession");
        for slot in 0..16 {
            let share = numbers.iter().filter(|number| *number % 16 == slot).count() as f64;
            assert!((share / numbers.len() as f64 - 1.0 / 16.0).abs() < 0.01, "{slot}: {share}");
        }
    }

    #[test]
    fn every_other_request_is_stamped_where_they_are_slow() {
        assert_eq!(stamped(7, 50_000_000), [1, 3, 5]);
        assert_eq!(stamped(1_000, 500_000).len(), 500);
    }

    #[test]
    fn the_ledger_knows_what_was_stamped_until_others_take_the_place() {
        let request_stamps = RequestStamps::new(1, None);
        request_stamps.record(16, 500, 17 * 64, 0);
        request_stamps.record(32, 900, 33 * 64, 1);
        assert_eq!(
            (request_stamps.sent_ns(16), request_stamps.sent_ns(17), request_stamps.sent_ns(32)),
            (Some(500), None, Some(900))
        );
        assert_eq!(
            (request_stamps.number(1), request_stamps.count(), request_stamps.last_position()),
            (32, 2, 33 * 64)
        );
        let later = 16 + request_stamps.slots() as u64;
        request_stamps.record(later, 1_000, 0, 2);
        assert_eq!((request_stamps.sent_ns(16), request_stamps.sent_ns(later)), (None, Some(1_000)));
        assert!(!request_stamps.take_failure());
        request_stamps.fail();
        assert!(request_stamps.take_failure() && !request_stamps.take_failure());
    }
}
