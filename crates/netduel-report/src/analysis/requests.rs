//! Requests of round trips, and those without a response in time. No percentile contains the latter, so each report shows their number.
use netduel_model::metric::Metric;
use netduel_model::trial::Trial;
use netduel_model::workload::{Traffic, Wire, WorkUnit};

/// Requests over whole trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestCount {
    /// Requests sent.
    pub sent: u64,
    /// Of these, requests without a response in time.
    pub lost: u64,
}

impl RequestCount {
    /// The share without a response; absent without a request, and when more are lost than were sent: the record is inconsistent.
    pub fn share(self) -> Option<f64> {
        (self.sent > 0 && self.lost <= self.sent).then(|| self.lost as f64 / self.sent as f64)
    }

    /// Whether the share is so large that a difference of it is relevant.
    pub fn is_relevant(self) -> bool {
        self.share().zip(Metric::Loss.margin_min()).is_some_and(|(share, least)| share >= least)
    }

    fn and(self, other: Self) -> Self {
        Self { sent: self.sent.saturating_add(other.sent), lost: self.lost.saturating_add(other.lost) }
    }
}

/// Those of a trial; absent without round trips, and for transactions, whose failures have causes and a warning of their own.
pub fn of_trial(traffic: &Traffic, trial: &Trial) -> Option<RequestCount> {
    let report = trial.client.as_ref()?.report.round_trips.as_ref()?;
    (traffic.facts().unit != WorkUnit::Transaction)
        .then_some(RequestCount { sent: report.requests, lost: report.timeouts })
}

/// Those of a trial that travel in datagrams, which a path may lose.
pub(super) fn in_datagrams(traffic: &Traffic, trial: &Trial) -> Option<RequestCount> {
    of_trial(traffic, trial).filter(|_| matches!(traffic.facts().wire, Wire::Datagrams { .. }))
}

/// Those of all trials together.
pub(super) fn of_trials(traffic: &Traffic, trials: &[&Trial]) -> Option<RequestCount> {
    trials.iter().filter_map(|trial| of_trial(traffic, trial)).reduce(RequestCount::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_an_impossible_count_is_absent_and_small_shares_are_not_relevant() {
        let count = |sent, lost| RequestCount { sent, lost };
        assert_eq!(count(8, 2).share(), Some(0.25));
        assert_eq!((count(0, 0).share(), count(1, 2).share()), (None, None));
        assert_eq!([0, 9, 10].map(|lost| count(10_000, lost).is_relevant()), [false, false, true]);
        assert_eq!(count(u64::MAX, 1).and(count(1, 1)), count(u64::MAX, 2));
    }
}
