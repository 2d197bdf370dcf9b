//! Converts kernel time stamps, which are on the realtime clock, to the monotonic clock. The offset between the clocks changes only
//! when the realtime clock is stepped: the kernel slews both alike.
use netduel_sys::clock;

/// A reading that differs from the known bounds by more than this is a clock step, nanoseconds. Smaller differences are noise and
/// shift a part by less than this.
const STEP_NS: i64 = 1_000;
/// Readings at the start; the narrowest bounds count.
const READINGS: usize = 32;

/// The realtime clock minus the monotonic clock, as bounds that each reading narrows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealtimeOffset {
    low: i64,
    high: i64,
}

impl RealtimeOffset {
    pub(super) fn new() -> Self {
        let mut wall = Self { low: i64::MIN, high: i64::MAX };
        for _ in 0..READINGS {
            wall.read();
        }
        wall
    }

    /// Reads both clocks; true when the realtime clock was stepped since the last reading.
    #[inline]
    pub(super) fn read(&mut self) -> bool {
        self.observe(clock::monotonic_and_realtime_ns())
    }

    fn observe(&mut self, (before, wall, after): (u64, u64, u64)) -> bool {
        let (low, high) = (wall.wrapping_sub(after).cast_signed(), wall.wrapping_sub(before).cast_signed());
        let stepped = low > self.high.saturating_add(STEP_NS) || high < self.low.saturating_sub(STEP_NS);
        if stepped {
            (self.low, self.high) = (low, high);
        } else {
            (self.low, self.high) = (self.low.max(low), self.high.min(high));
            if self.low > self.high {
                (self.low, self.high) = (self.high, self.low);
            }
        }
        stepped
    }

    /// Converts a realtime stamp to the monotonic clock. 0 stays 0.
    #[inline]
    pub(super) fn monotonic_ns(&self, wall_ns: u64) -> u64 {
        if wall_ns == 0 {
            return 0;
        }
        let difference = self.low.wrapping_add(self.high.wrapping_sub(self.low) / 2);
        wall_ns.wrapping_sub(difference.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_narrow_the_bounds_and_a_step_resets_them() {
        let mut wall = RealtimeOffset { low: i64::MIN, high: i64::MAX };
        assert!(!wall.observe((1_000, 501_030, 1_100)));
        assert!(!wall.observe((2_000, 502_010, 2_020)));
        assert_eq!((wall.low, wall.high), (499_990, 500_010));
        assert_eq!(wall.monotonic_ns(600_000), 100_000);
        assert!(!wall.observe((3_000, 503_500, 4_000)));
        assert_eq!(wall.monotonic_ns(600_000), 100_000);
        assert!(wall.observe((5_000, 9_005_010, 5_020)));
        assert_eq!(wall.monotonic_ns(9_100_000), 100_000);
        assert!(wall.observe((6_000, 1_010, 6_020)));
        assert_eq!(wall.monotonic_ns(95_000), 100_000);
    }

    #[test]
    fn converted_time_lies_between_two_monotonic_readings() {
        let wall = RealtimeOffset::new();
        let before = clock::monotonic_ns();
        let now = wall.monotonic_ns(clock::realtime_ns());
        let after = clock::monotonic_ns();
        assert!(before.saturating_sub(1_000) <= now && now <= after + 1_000, "{before} {now} {after}");
        assert_eq!(wall.monotonic_ns(0), 0);
    }
}
