//! Parts that the round trips of a workload are told apart into, each a histogram of its own: those of the steady windows of
//! all valid trials together.
use netduel_model::sample::{HistogramRecord, TransactionParts, UnderLoad};
use netduel_model::trial::Trial;
use netduel_model::workload::Traffic;
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

/// The parts that the trials of an arm have; none for workloads that tell none apart.
pub(super) fn of_trials(traffic: &Traffic, trials: &[&Trial]) -> Vec<Part> {
    let all = || figures::merged_latency(trials);
    let parts = match traffic {
        Traffic::TcpCrr(_) => vec![
            ("whole", "whole transaction", all()),
            ("connect", "connect", transaction(trials, |parts| &parts.connect)),
            ("exchange", "request to response", transaction(trials, |parts| &parts.exchange)),
        ],
        Traffic::TcpStream { .. } | Traffic::TcpRr(_) => vec![(
            "set-up",
            "connect, from SYN to established",
            figures::merged(trials.iter().filter_map(|trial| {
                figures::of_record(&trial.client.as_ref()?.report.connections.as_ref()?.connect)
            })),
        )],
        Traffic::LoadedLatency(_) => vec![
            (
                "idle",
                "probe, idle path",
                figures::merged(trials.iter().filter_map(|trial| figures::idle(trial))),
            ),
            ("loaded", "probe, under load", all()),
            (
                "connect",
                "new connection under load: connect",
                under_load(trials, |load| &load.foreign.connect),
            ),
            (
                "exchange",
                "new connection under load: request to response",
                under_load(trials, |load| &load.foreign.exchange),
            ),
            ("in-band", "in the data of a loaded connection", under_load(trials, |load| &load.in_band)),
        ],
        _ => Vec::new(),
    };
    let found =
        |(key, title, histogram): (_, _, Option<Histogram>)| Some(Part { key, title, histogram: histogram? });
    parts.into_iter().filter_map(found).collect()
}

fn transaction(trials: &[&Trial], part: impl Fn(&TransactionParts) -> &HistogramRecord) -> Option<Histogram> {
    figures::merged(
        trials
            .iter()
            .filter_map(|trial| figures::of_record(part(figures::round_trips(trial)?.parts.as_ref()?))),
    )
}

fn under_load(trials: &[&Trial], part: impl Fn(&UnderLoad) -> &HistogramRecord) -> Option<Histogram> {
    figures::merged(
        trials
            .iter()
            .filter_map(|trial| figures::of_record(part(trial.client.as_ref()?.report.under_load.as_ref()?))),
    )
}

/// What load adds to a round trip, nanoseconds: percentile of the probes under load less that of the idle path. Below zero when
/// the loaded path was faster, as it may be where idle cores sleep.
pub fn added_by_load(parts: &[Part], percentile: f64) -> Option<f64> {
    let at = |key| {
        let part = parts.iter().find(|part| part.key == key)?;
        part.histogram.percentile(percentile).map(|value| value as f64)
    };
    Some(at("loaded")? - at("idle")?)
}

/// Probes of all trials that no response came to, and probes in all; absent when the workload has none.
pub(super) fn probes_lost(traffic: &Traffic, trials: &[&Trial]) -> Option<(u64, u64)> {
    if !matches!(traffic, Traffic::LoadedLatency(_)) {
        return None;
    }
    let reports: Vec<_> = trials.iter().filter_map(|trial| figures::round_trips(trial)).collect();
    let sum = |of: fn(&netduel_model::sample::RoundTripReport) -> u64| {
        reports.iter().map(|report| of(report)).sum()
    };
    (!reports.is_empty()).then(|| (sum(|report| report.timeouts), sum(|report| report.requests)))
}
