//! Round trips of a running trial, for its progress lines: the measuring thread adds each interval, the supervisor takes the sum.
use std::sync::{Mutex, PoisonError};

use netduel_model::sample::LiveRoundTrips;

use crate::interval_median::IntervalMedian;

/// Round trips since the last progress line.
#[derive(Debug, Default)]
pub(crate) struct LiveLatency(Mutex<Option<IntervalMedian>>);

impl LiveLatency {
    /// Allocates before the traffic begins.
    pub(crate) fn prepare(&self) {
        // No code panics while it holds the lock, so a poisoned one still guards a whole value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(IntervalMedian::new);
    }

    /// Adds an interval; skips it while a progress line is made, because the measuring thread must not wait.
    pub(crate) fn add(&self, interval: &IntervalMedian) {
        if let Ok(mut trips) = self.0.try_lock()
            && let Some(trips) = trips.as_mut()
        {
            trips.add(interval);
        }
    }

    /// The round trips since the last call.
    pub(crate) fn take(&self) -> Option<LiveRoundTrips> {
        let mut trips = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let trips = trips.as_mut()?;
        let (p50_ns, p99_ns) = (trips.percentile(50)?, trips.percentile(99)?);
        let summary = trips.take()?;
        Some(LiveRoundTrips { count: summary.count, p50_ns, p99_ns, max_ns: summary.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_round_trips_are_returned_once() {
        let trips = LiveLatency::default();
        assert_eq!(trips.take(), None);
        trips.prepare();
        let mut interval = IntervalMedian::new();
        (1..=100).for_each(|ns| interval.record(ns));
        trips.add(&interval);
        let taken = LiveRoundTrips { count: 100, p50_ns: 50, p99_ns: 99, max_ns: 100 };
        assert_eq!((trips.take(), trips.take()), (Some(taken), None));
    }
}
