//! A histogram with high dynamic range, mergeable without loss.
use hdrhistogram::Histogram as Hdr;

/// Largest value that is told apart, nanoseconds: one hour.
const VALUE_MAX: u64 = 3_600_000_000_000;

/// Counts of values at three significant digits. Recording allocates nothing.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Hdr<u64>,
    bounds: Option<(u64, u64)>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        let counts = Hdr::new_with_bounds(1, VALUE_MAX, 3).expect("constant bounds that the crate documents");
        Self { counts, bounds: None }
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts.saturating_record(value);
        let (low, high) = self.bounds.unwrap_or((value, value));
        self.bounds = Some((low.min(value), high.max(value)));
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("same constant bounds");
        if let Some((low, high)) = other.bounds {
            let mine = self.bounds.unwrap_or((low, high));
            self.bounds = Some((mine.0.min(low), mine.1.max(high)));
        }
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The smallest, exact.
    pub fn min(&self) -> Option<u64> {
        self.bounds.map(|bounds| bounds.0)
    }

    /// The largest, exact.
    pub fn max(&self) -> Option<u64> {
        self.bounds.map(|bounds| bounds.1)
    }

    /// The value below which `percentile` (0 to 100) per cent lie.
    pub fn percentile(&self, percentile: f64) -> Option<u64> {
        self.bounds.map(|_| self.counts.value_at_percentile(percentile))
    }

    /// Values and their counts, ascending.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        self.counts.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }
}
