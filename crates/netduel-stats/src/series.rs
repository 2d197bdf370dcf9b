//! Arithmetic over a series of arrivals.

/// Interarrival jitter (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, Default)]
pub struct Jitter {
    last_transit_ns: Option<i64>,
    value_ns: Option<f64>,
}

impl Jitter {
    /// Before the first arrival.
    pub fn new() -> Self {
        Self::default()
    }

    /// An arrival whose receive time minus send time is `transit_ns`; the two clocks may differ by a constant.
    #[inline]
    pub fn update(&mut self, transit_ns: i64) {
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            let difference = transit_ns.wrapping_sub(last).unsigned_abs() as f64;
            let value = self.value_ns.unwrap_or(0.0);
            self.value_ns = Some(value + (difference - value) / 16.0);
        }
    }

    /// The jitter, nanoseconds; absent before the second arrival.
    pub fn value_ns(&self) -> Option<f64> {
        self.value_ns
    }
}
