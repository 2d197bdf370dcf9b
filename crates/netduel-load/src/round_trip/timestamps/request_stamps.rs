//! The time-stamped requests of a client, shared by its sending and receiving side. In an open loop these are two threads, so all
//! fields are atomic; a request is recorded before it is sent, and so before its response can arrive.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// One request in this many is stamped, on average: the cost of stamping hardly affects the other requests, and one second of round
/// trips of 10 us has 6,000 stamped ones.
const STAMPED_EVERY: u64 = 16;
/// Below 16 times this request rate, a larger share is stamped, at most half.
const STAMPED_PER_SECOND: u64 = 1_000;

/// Number of recorded requests, minimum and maximum.
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
    /// By request number.
    slots: Box<[Slot]>,
    /// Request numbers, by index among the stamped requests.
    numbers: Box<[AtomicU64]>,
    /// Position of the last one in the kernel's numbering (see `StampKeys`).
    last_position: AtomicU64,
    /// Stamped requests.
    count: AtomicU64,
    /// Whether a stamped request could not be sent.
    failed: AtomicBool,
}

impl RequestStamps {
    /// Room for twice the outstanding requests; in an open loop for one second of requests, because a stall can hold up that many.
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

    /// The number of recorded requests.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Records that request `number` is sent now with a time stamp. It may be recorded again until it is sent.
    #[inline]
    pub(super) fn record(&self, number: u64, sent_ns: u64, position: u64, index: u64) {
        self.numbers[index as usize % self.numbers.len()].store(number, Relaxed);
        self.last_position.store(position, Relaxed);
        let slot = &self.slots[number as usize % self.slots.len()];
        slot.sent_ns.store(sent_ns, Relaxed);
        slot.number.store(number + 1, Release);
        self.count.store(index + 1, Release);
    }

    /// The send time of request `number`; absent when it is not stamped.
    #[inline]
    pub(super) fn sent_ns(&self, number: u64) -> Option<u64> {
        let slot = &self.slots[number as usize % self.slots.len()];
        (Some(slot.number.load(Acquire)) == number.checked_add(1)).then(|| slot.sent_ns.load(Relaxed))
    }

    /// The number of the stamped request with this index.
    pub(super) fn number(&self, index: u64) -> u64 {
        self.numbers[index as usize % self.numbers.len()].load(Relaxed)
    }

    /// The number of stamped requests.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    pub(super) fn last_position(&self) -> u64 {
        self.last_position.load(Relaxed)
    }

    /// Records that a stamped request could not be sent: the kernel may have counted it or not.
    pub(super) fn fail(&self) {
        self.failed.store(true, Release);
    }

    /// Whether a stamped request could not be sent since the last call.
    #[inline]
    pub(super) fn take_failure(&self) -> bool {
        self.failed.load(Acquire) && self.failed.swap(false, Acquire)
    }
}

/// Chooses the requests to stamp, one ahead: each request announces whether the next is stamped. The choice is random, so it does
/// not align with a period of the traffic (always the same of 16 outstanding requests), and independent of round-trip times:
/// stamping after each pause would select slow requests.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Requests so far, and the number of the last.
    count: u64,
    number: Option<u64>,
    choice: Choice,
    /// Send time of the first, nanoseconds.
    start_ns: u64,
    /// The request after which the next announcement is due.
    due: u64,
    /// The state of a xorshift generator (Marsaglia 2003).
    chance: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        let chance = 0x9e37_79b9_7f4a_7c15;
        Self { count: 0, number: None, choice: Choice::default(), start_ns: 0, due: 1, chance }
    }
}

/// The choice for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Choice {
    /// This request is stamped.
    pub is_stamped: bool,
    /// The next one is.
    pub announces: bool,
}

impl Sampler {
    /// The choice for request `number`, sent at `now_ns`. A second call for the same request returns the same choice.
    #[inline]
    pub(super) fn choose(&mut self, number: u64, now_ns: u64) -> Choice {
        if self.number == Some(number) {
            return self.choice;
        }
        self.number = Some(number);
        if self.count == 0 {
            self.start_ns = now_ns;
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

    /// Distance to the next stamped request: at least 2, on average as the request rate so far allows.
    #[cold]
    fn distance(&mut self, now_ns: u64) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.start_ns).max(1);
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

    /// The stamped requests among `count` at intervals of `apart_ns`, each announced by the one before.
    fn stamped(count: u64, apart_ns: u64) -> Vec<u64> {
        let mut sampler = Sampler::default();
        let choices: Vec<Choice> =
            (0..count).map(|number| sampler.choose(number, 77_000_000 + number * apart_ns)).collect();
        assert!(choices.windows(2).all(|pair| pair[0].announces == pair[1].is_stamped));
        assert_eq!(sampler.choose(count - 1, u64::MAX), choices[choices.len() - 1], "a second try");
        (0..count).filter(|number| choices[*number as usize].is_stamped).collect()
    }

    #[test]
    fn one_request_in_sixteen_is_stamped_without_a_period() {
        let numbers = stamped(160_000, 10_000);
        assert!((9_500..10_500).contains(&numbers.len()), "{}", numbers.len());
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 < pair[1]), "never two in succession");
        for slot in 0..16 {
            let share = numbers.iter().filter(|number| *number % 16 == slot).count() as f64;
            assert!((share / numbers.len() as f64 - 1.0 / 16.0).abs() < 0.01, "{slot}: {share}");
        }
    }

    #[test]
    fn every_other_request_is_stamped_at_low_rates() {
        assert_eq!(stamped(7, 50_000_000), [1, 3, 5]);
        assert_eq!(stamped(1_000, 500_000).len(), 500);
    }

    /// The number of a response is the peer's.
    #[test]
    fn largest_number_is_no_stamped_request() {
        assert_eq!(RequestStamps::new(1, None).sent_ns(u64::MAX), None);
    }

    #[test]
    fn stamped_requests_are_found_until_their_slot_is_reused() {
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
