//! Parts of what a round trip is made of, each a histogram of its own: in the steady windows of all valid trials together.
use netduel_model::sample::{HistogramRecord, TransactionParts};
use netduel_model::trial::Trial;
use netduel_stats::histogram::Histogram;

use super::figures;

/// One part on one arm.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name in JSON, for example `connect`.
    pub key: &'static str,
    /// The words for people.
    pub title: &'static str,
    /// Every one of the steady windows, nanoseconds.
    pub histogram: Histogram,
}

/// The parts that the trials of an arm have, in the order in which they come to pass.
pub(super) fn of_trials(trials: &[&Trial]) -> Vec<Part> {
    [
        ("connect", "connect", transaction(trials, |parts| &parts.connect)),
        ("exchange", "request to response", transaction(trials, |parts| &parts.exchange)),
    ]
    .into_iter()
    .filter_map(|(key, title, histogram)| Some(Part { key, title, histogram: histogram? }))
    .collect()
}

fn transaction(trials: &[&Trial], part: impl Fn(&TransactionParts) -> &HistogramRecord) -> Option<Histogram> {
    figures::merged(
        trials
            .iter()
            .filter_map(|trial| figures::of_record(part(figures::round_trips(trial)?.parts.as_ref()?))),
    )
}
