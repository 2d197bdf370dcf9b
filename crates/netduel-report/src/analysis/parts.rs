//! Parts of the round trips of a workload, each with a histogram over the steady windows of all valid trials.
use netduel_model::sample::{EndReport, HistogramRecord, TransactionParts, UnderLoad};
use netduel_model::trial::Trial;
use netduel_model::workload::Traffic;
use netduel_stats::histogram::Histogram;

use super::figures;

/// One part of the round trips on one arm.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name in JSON, for example `connect`.
    pub key: &'static str,
    /// The label in reports.
    pub title: &'static str,
    /// All samples of the steady windows, nanoseconds.
    pub histogram: Histogram,
}

/// The key of the time that connections took to be established, in workloads whose round trips have no parts.
const SET_UP: &str = "set-up";

impl Part {
    /// Whether it is the time that connections took to be established.
    pub fn is_connect_time(&self) -> bool {
        self.key == SET_UP
    }
}

/// The parts in the trials of an arm; empty for workloads without parts.
pub(super) fn of_trials(traffic: &Traffic, trials: &[&Trial]) -> Vec<Part> {
    let all = || figures::merged_latency(trials);
    let has = |part: fn(&EndReport) -> bool| {
        trials.iter().filter_map(|trial| trial.client.as_ref()).any(|client| part(&client.report))
    };
    let mut parts = Vec::new();
    if has(|report| report.round_trips.as_ref().is_some_and(|report| report.parts.is_some())) {
        parts.push(("whole", "whole transaction", all()));
        parts.push(("connect", "connect", transaction(trials, |parts| &parts.connect)));
        parts.push(("exchange", "request to response", transaction(trials, |parts| &parts.exchange)));
    }
    if traffic.facts().load_begins.is_some() {
        let idle = figures::merged(trials.iter().filter_map(|trial| figures::idle(trial)));
        parts.push(("idle", "probe, idle path", idle));
        parts.push(("loaded", "probe, under load", all()));
        let connect = under_load(trials, |load| &load.foreign.connect);
        parts.push(("connect", "new connection under load: connect", connect));
        let exchange = under_load(trials, |load| &load.foreign.exchange);
        parts.push(("exchange", "new connection under load: request to response", exchange));
        let in_band = under_load(trials, |load| &load.in_band);
        parts.push(("in-band", "in the data of a loaded connection", in_band));
    }
    // A connection that was only opened is not part of the traffic.
    if parts.is_empty() && traffic.facts().sockets.accounted > 0 {
        let set_up = trials.iter().filter_map(|trial| {
            figures::of_record(&trial.client.as_ref()?.report.connections.as_ref()?.connect)
        });
        parts.push((SET_UP, "connect, from SYN to established", figures::merged(set_up)));
    }
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

/// Latency that load adds, nanoseconds: percentile of the probes under load minus that of the idle path. Negative when the loaded
/// path was faster, which can happen where idle cores sleep.
pub fn added_by_load(parts: &[Part], percentile: f64) -> Option<f64> {
    let at = |key| {
        let part = parts.iter().find(|part| part.key == key)?;
        part.histogram.percentile(percentile).map(|value| value as f64)
    };
    Some(at("loaded")? - at("idle")?)
}
