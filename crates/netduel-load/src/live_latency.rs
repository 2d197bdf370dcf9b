//! Round trips of a trial under way, for its progress lines: the thread that measures hands over what an interval held, the supervisor
//! takes what there is.
use std::sync::{Mutex, PoisonError};

use netduel_model::sample::LiveRoundTrips;

use crate::interval_median::IntervalMedian;

/// Round trips since they were taken last.
#[derive(Debug, Default)]
pub(crate) struct LiveLatency(Mutex<Option<IntervalMedian>>);

impl LiveLatency {
    /// Makes room before the traffic begins.
    pub(crate) fn prepare(&self) {
        // No code panics while it holds the lock, so a poisoned one still guards a whole value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(IntervalMedian::new);
    }

    /// Takes over an interval's; not when a progress line is made at this moment, for which the thread that measures does not wait.
    pub(crate) fn add(&self, interval: &IntervalMedian) {
        if let Ok(mut trips) = self.0.try_lock()
            && let Some(trips) = trips.as_mut()
        {
            trips.add(interval);
        }
    }

    /// What there was since the last call.
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
    fn what_was_taken_is_not_taken_again() {
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
