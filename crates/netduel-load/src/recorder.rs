//! The recorder of round trips: the histogram of the steady window, and median and maximum of each interval.
use std::sync::Arc;

use netduel_model::sample::{RoundTripReport, RoundTripSample};
use netduel_model::workload::{SAMPLE_INTERVAL_NS, Timing};
use netduel_stats::histogram::Histogram;

use crate::interval_median::IntervalMedian;
use crate::live_latency::LiveLatency;

/// Time beyond the duration for which the series has capacity, nanoseconds: responses may still arrive.
const TAIL_NS: u64 = 12_000_000_000;

/// The times of a round trip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trip {
    /// Send time or, in an open loop, scheduled time, nanoseconds.
    pub start_ns: u64,
    /// Arrival of the response, nanoseconds.
    pub now_ns: u64,
}

/// The steady window, nanoseconds of the monotonic clock: round trips that begin in it count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    from_ns: u64,
    to_ns: u64,
}

impl Window {
    /// The steady window of an end that started at `started_ns`.
    pub(crate) fn steady(started_ns: u64, timing: Timing) -> Self {
        let to_ns = started_ns + timing.duration.0.saturating_sub(timing.cooldown.0);
        Self { from_ns: started_ns.saturating_add(timing.warmup.0), to_ns }
    }

    /// Whether a round trip that begins at `start_ns` counts.
    #[inline]
    pub(crate) fn contains(&self, start_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&start_ns)
    }
}

/// Collects the round trips of one client. Recording allocates nothing.
pub(crate) struct Recorder {
    started_ns: u64,
    steady: Window,
    histogram: Histogram,
    /// The same for the idle part before the load.
    idle: Option<(Window, Histogram)>,
    pacing: Option<Histogram>,
    interval: IntervalMedian,
    interval_end_ns: u64,
    /// Round trips for progress lines.
    live: Option<Arc<LiveLatency>>,
    series: Vec<RoundTripSample>,
    /// Requests sent.
    pub requests: u64,
    /// Responses received.
    pub responses: u64,
    /// Requests that reached the timeout.
    pub timeouts: u64,
}

impl Recorder {
    /// Of a client that started at `started_ns` of the monotonic clock.
    pub(crate) fn new(started_ns: u64, timing: Timing, open_loop: bool) -> Self {
        let intervals = (timing.duration.0 + TAIL_NS) / SAMPLE_INTERVAL_NS + 1;
        Self {
            started_ns,
            steady: Window::steady(started_ns, timing),
            histogram: Histogram::new(),
            idle: None,
            pacing: open_loop.then(Histogram::new),
            interval: IntervalMedian::new(),
            interval_end_ns: started_ns + SAMPLE_INTERVAL_NS,
            live: None,
            series: Vec::with_capacity(intervals as usize),
            requests: 0,
            responses: 0,
            timeouts: 0,
        }
    }

    /// Records the round trips before the load separately.
    pub(crate) fn with_idle(mut self, timing: Option<Timing>) -> Self {
        self.idle = timing.map(|timing| (Window::steady(self.started_ns, timing), Histogram::new()));
        self
    }

    /// Shares the round trips with progress lines.
    pub(crate) fn shown_live(mut self, live: &Arc<LiveLatency>) -> Self {
        live.prepare();
        self.live = Some(Arc::clone(live));
        self
    }

    /// Records a round trip that began at `start_ns` (sent or, in an open loop, scheduled) and ended at `now_ns`.
    #[inline]
    pub(crate) fn round_trip(&mut self, start_ns: u64, now_ns: u64) {
        self.count(start_ns, now_ns);
        if self.steady.contains(start_ns) {
            self.histogram.record(now_ns.saturating_sub(start_ns));
        } else if let Some((window, histogram)) = &mut self.idle
            && window.contains(start_ns)
        {
            histogram.record(now_ns.saturating_sub(start_ns));
        }
    }

    /// As [`Self::round_trip`]. Time-stamped ones have their own histogram.
    #[inline]
    pub(crate) fn trip(&mut self, trip: Trip, is_stamped: bool) {
        if is_stamped {
            self.count(trip.start_ns, trip.now_ns);
        } else {
            self.round_trip(trip.start_ns, trip.now_ns);
        }
    }

    #[inline]
    fn count(&mut self, start_ns: u64, now_ns: u64) {
        if now_ns >= self.interval_end_ns {
            self.end_intervals(now_ns);
        }
        self.interval.record(now_ns.saturating_sub(start_ns));
        self.responses += 1;
    }

    /// Whether a round trip that begins at `start_ns` counts.
    #[inline]
    pub(crate) fn is_steady(&self, start_ns: u64) -> bool {
        self.steady.contains(start_ns)
    }

    /// Records that a request due at `due_ns` leaves at `now_ns`.
    #[inline]
    pub(crate) fn leaves(&mut self, due_ns: u64, now_ns: u64) {
        if let Some(pacing) = &mut self.pacing
            && self.steady.contains(due_ns)
        {
            pacing.record(now_ns.saturating_sub(due_ns));
        }
    }

    #[cold]
    fn end_intervals(&mut self, now_ns: u64) {
        // An interval without a round trip has no median, so it has no sample.
        self.push(self.interval_end_ns);
        let whole = (now_ns - self.started_ns) / SAMPLE_INTERVAL_NS + 1;
        self.interval_end_ns = self.started_ns + whole * SAMPLE_INTERVAL_NS;
    }

    fn push(&mut self, end_ns: u64) {
        if let Some(live) = &self.live {
            live.add(&self.interval);
        }
        if let Some(summary) = self.interval.take() {
            self.series.push(RoundTripSample {
                end_ns: end_ns - self.started_ns,
                count: summary.count,
                p50_ns: summary.median,
                max_ns: summary.max,
            });
        }
    }

    /// The report.
    pub(crate) fn finish(mut self) -> RoundTripReport {
        self.push(self.interval_end_ns);
        RoundTripReport {
            requests: self.requests,
            responses: self.responses,
            timeouts: self.timeouts,
            histogram: self.histogram.to_record(),
            pacing_error: self.pacing.as_ref().map(Histogram::to_record),
            series: self.series,
            idle: self.idle.as_ref().map(|(_, histogram)| histogram.to_record()),
            parts: None,
        }
    }

    /// Adds the counts of the sending thread.
    pub(crate) fn take_in_sender(&mut self, requests: u64, pacing: Histogram) {
        self.requests = requests;
        self.pacing = Some(pacing);
    }

    /// The pacing error that was recorded.
    pub(crate) fn into_pacing(self) -> (u64, Histogram) {
        (self.requests, self.pacing.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::units::Nanos;

    use super::*;

    /// The warm-up is that of a message, and has no range.
    #[test]
    fn window_behind_the_largest_warmup_is_empty() {
        let second = Nanos(1_000_000_000);
        let window =
            Window::steady(1, Timing { duration: second, warmup: Nanos(u64::MAX), cooldown: Nanos(0) });
        assert!(!window.contains(1) && !window.contains(second.0));
    }

    fn timing() -> Timing {
        Timing {
            duration: Nanos::from_millis(1000),
            warmup: Nanos::from_millis(200),
            cooldown: Nanos::from_millis(100),
        }
    }

    #[test]
    fn only_round_trips_that_begin_in_the_steady_window_enter_the_histogram() {
        let mut recorder = Recorder::new(1_000, timing(), false);
        let at = |ms: u64| 1_000 + ms * 1_000_000;
        for (started, over) in [(0, 1), (199, 250), (200, 201), (899, 950), (900, 901)] {
            recorder.round_trip(at(started), at(over));
        }
        let report = recorder.finish();
        assert_eq!((report.responses, report.histogram.count), (5, 2));
        assert_eq!((report.histogram.min, report.histogram.max), (1_000_000, 51_000_000));
        let ends: Vec<_> =
            report.series.iter().map(|sample| (sample.end_ns / 1_000_000, sample.count)).collect();
        assert_eq!(ends, [(100, 1), (300, 2), (1000, 2)]);
    }

    #[test]
    fn round_trips_before_the_load_are_kept_apart() {
        let loaded = Timing { warmup: Nanos::from_millis(600), ..timing() };
        let idle = Timing { duration: Nanos::from_millis(400), ..timing() };
        let mut recorder = Recorder::new(0, loaded, true).with_idle(Some(idle));
        for start_ms in [100, 200, 299, 300, 500, 600, 899] {
            recorder.round_trip(start_ms * 1_000_000, start_ms * 1_000_000 + start_ms);
        }
        let report = recorder.finish();
        let idle = report.idle.unwrap();
        assert_eq!((idle.count, idle.min, idle.max), (2, 200, 299));
        assert_eq!((report.histogram.count, report.histogram.min, report.histogram.max), (2, 600, 899));
    }

    #[test]
    fn a_closed_loop_has_no_pacing_error() {
        let mut recorder = Recorder::new(0, timing(), false);
        recorder.leaves(300_000_000, 300_000_100);
        assert_eq!(recorder.finish().pacing_error, None);
        let mut recorder = Recorder::new(0, timing(), true);
        recorder.leaves(300_000_000, 300_000_100);
        assert_eq!(recorder.finish().pacing_error.map(|record| record.max), Some(100));
    }
}
