//! A quick test as JSON: one document, or a line for each interval. Units stand in the names.
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunHeader;
use serde_json::{Value, json};

use super::intervals::Interval;
use super::summary::SummaryInput;
use crate::analysis::{self, value_of};
use crate::json::stamped;

/// Version of the document.
/// - 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// The document of a finished test: figures, limit, and everything raw.
pub fn document(
    plan: &ResolvedPlan,
    header: Option<&RunHeader>,
    input: SummaryInput<'_>,
    intervals: &[Interval],
) -> Value {
    let SummaryInput { workload, trial, shared_machine, expected } = input;
    let metrics: Vec<Value> = workload
        .traffic
        .facts()
        .possible_metrics
        .iter()
        .map(|metric| {
            json!({
                "metric": metric.key(),
                "unit": metric.unit(),
                "value": value_of(*metric, workload, trial, shared_machine),
            })
        })
        .collect();
    json!({
        "format": "netduel-quick",
        "format_version": FORMAT_VERSION,
        "run": header.map(|header| &header.id),
        "hosts": header.map(|header| &header.hosts),
        "workload": workload,
        "settings": crate::words::workload(workload),
        "metrics": metrics,
        "percentiles_ns": analysis::round_trip_histogram(trial).map(|histogram| histogram.cdf_tail().iter()
            .map(|(percentile, value)| json!({ "percentile": percentile, "value_ns": value })).collect::<Vec<_>>()),
        "stamps": analysis::stamps_of(trial).as_ref().map(stamped),
        "limit": analysis::limit_of(workload, trial, shared_machine, expected),
        "expected": expected,
        "validity": &trial.validity,
        "intervals": intervals.iter().map(interval).collect::<Vec<_>>(),
        "shared_machine": shared_machine,
        "addresses": plan.hosts.values().flat_map(|host| &host.addresses).collect::<Vec<_>>(),
        "trial": trial,
    })
}

/// The document of a test without a result: what failed, with which exit code, and the intervals until then.
pub fn failure(error: &str, exit_code: i32, intervals: &[Interval]) -> Value {
    json!({
        "format": "netduel-quick",
        "format_version": FORMAT_VERSION,
        "error": error,
        "exit_code": exit_code,
        "intervals": intervals.iter().map(interval).collect::<Vec<_>>(),
    })
}

/// An interval.
pub fn interval(interval: &Interval) -> Value {
    let seconds = interval.end_s - interval.start_s;
    json!({
        "start_s": interval.start_s,
        "end_s": interval.end_s,
        "bytes": interval.bytes,
        "bits_per_second": if seconds > 0.0 { Some(interval.bytes as f64 * 8.0 / seconds) } else { None },
        "messages": interval.messages,
        "retransmits": interval.retransmits,
        "cwnd_bytes": interval.cwnd_bytes,
        "missing": interval.missing,
        "jitter_ns": interval.jitter_ns,
        "round_trips": interval.round_trips,
    })
}
