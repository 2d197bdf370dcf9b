//! When the next message is due: a pure schedule. Late sends do not shift it, so a stall is caught up and counted.

/// Requests of an open loop that are late at the end of the duration are sent within this time after it, nanoseconds: those that a
/// stall held up. A schedule that is faster than the host would go on for many times the duration.
pub(crate) const LATE_LIMIT_NS: u64 = 5_000_000_000;

/// An evenly spaced schedule. It stays exact for years: each time is computed from its index, nothing adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    start_ns: u64,
    /// `events` happen in `period_ns`.
    events: u64,
    period_ns: u128,
}

impl Schedule {
    /// `per_second` events in a second, the first at `start_ns`. At least one a second.
    pub(crate) fn per_second(start_ns: u64, per_second: u64) -> Self {
        Self { start_ns, events: per_second.max(1), period_ns: 1_000_000_000 }
    }

    /// Datagrams of `size` bytes so that flow `flow` of `flows` gives its part of `bits_per_second` of payload. Flows
    /// are shifted against each other, so that together they are as even as one.
    pub(crate) fn of_flow(start_ns: u64, bits_per_second: u64, size: u64, flow: u32, flows: u32) -> Self {
        let events = bits_per_second.max(1);
        let period_ns = 8_000_000_000 * u128::from(size) * u128::from(flows);
        let shift = period_ns * u128::from(flow) / u128::from(flows) / u128::from(events);
        Self { start_ns: start_ns.saturating_add(clamp(shift)), events, period_ns }
    }

    /// When event `index` is due, nanoseconds of the monotonic clock.
    #[inline]
    pub(crate) fn due_ns(&self, index: u64) -> u64 {
        // In the usual range 64 bits suffice and the division is several times as fast.
        let offset = match u64::try_from(self.period_ns).ok().and_then(|period| period.checked_mul(index)) {
            Some(product) => product / self.events,
            None => clamp(self.period_ns.saturating_mul(u128::from(index)) / u128::from(self.events)),
        };
        self.start_ns.saturating_add(offset)
    }

    /// How many events fall into `length_ns`, at least 1 and at most `most`: the size of a batch that is sent at once.
    pub(crate) fn batch(&self, length_ns: u64, most: usize) -> usize {
        let events = u128::from(length_ns) * u128::from(self.events) / self.period_ns;
        (events.min(most as u128) as usize).max(1)
    }
}

fn clamp(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flow_sends_its_share_of_the_rate() {
        // 8 Mbit/s in datagrams of 1000 bytes are 1000 a second; of four flows each gives 250, a millisecond apart.
        for flow in 0..4 {
            let schedule = Schedule::of_flow(500, 8_000_000, 1000, flow, 4);
            assert_eq!(schedule.due_ns(0), 500 + u64::from(flow) * 1_000_000);
            assert_eq!(schedule.due_ns(250) - schedule.due_ns(0), 1_000_000_000);
        }
    }

    #[test]
    fn batch_is_limited_by_its_length_and_capacity() {
        let schedule = Schedule::per_second(0, 100_000);
        assert_eq!(schedule.batch(100_000, 16), 10);
        assert_eq!(schedule.batch(100_000, 4), 4);
        assert_eq!(Schedule::per_second(0, 10).batch(100_000, 16), 1);
    }

    #[test]
    fn event_after_the_end_of_the_clock_is_due_at_its_end() {
        let schedule = Schedule::per_second(7, 1);
        assert_eq!(schedule.due_ns(18_446_744_073), 18_446_744_073_000_000_007);
        assert_eq!(schedule.due_ns(18_446_744_074), u64::MAX);
    }

    proptest! {
        #[test]
        fn schedule_is_monotonic_and_keeps_its_rate(rate in 1u64..10_000_000, index in 0u64..1 << 40) {
            let schedule = Schedule::per_second(7, rate);
            prop_assert!(schedule.due_ns(index) <= schedule.due_ns(index + 1));
            let expected = u128::from(index) * 1_000_000_000 / u128::from(rate) + 7;
            prop_assert_eq!(schedule.due_ns(index), clamp(expected));
        }
    }
}
