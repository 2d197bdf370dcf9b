//! Rates and schedules that senders missed.
use netduel_model::trial::Trial;
use netduel_model::workload::Workload;
use netduel_stats::summary;

use super::figures;

/// An open loop is late when its p99 lateness exceeds one interval of its schedule. The threshold is at least the scheduler's
/// granularity and at most 1 ms.
const LATENESS_NS: (f64, f64) = (50_000.0, 1_000_000.0);

/// A sender below this share of the configured rate missed it.
const RATE_SHARE_MIN: f64 = 0.99;

/// The p99 lateness of the worst trial, nanoseconds, when it is above the threshold: then the schedule of an open loop was missed.
pub fn lateness(workload: &Workload, trials: &[&Trial]) -> Option<u64> {
    let interval_ns = 1e9 / workload.traffic.facts().request_rate()?.0.max(1) as f64;
    let allowed = interval_ns.clamp(LATENESS_NS.0, LATENESS_NS.1);
    trials
        .iter()
        .filter_map(|trial| {
            let record = trial.client.as_ref()?.report.round_trips.as_ref()?.pacing_error.as_ref()?;
            figures::of_record(record)?.percentile(99.0)
        })
        .max()
        .filter(|late| *late as f64 > allowed)
}

/// Configured and achieved send rate of a direction, bit/s, when the rate was missed. A trial that its volume ended has no such rate.
pub fn rate_missed(workload: &Workload, trials: &[&Trial]) -> Option<(f64, f64)> {
    let paced = workload.traffic.facts().paced?;
    let (configured, seconds) = (paced.rate.0 as f64, workload.timing.duration.0 as f64 / 1e9);
    let slower = |trial: &&Trial| {
        let ends = [&trial.client, &trial.server].into_iter().flatten();
        ends.filter_map(|end| end.report.sent.as_ref()).map(|flow| flow.bytes as f64).min_by(f64::total_cmp)
    };
    let volume = workload.traffic.facts().volume().map_or(f64::INFINITY, |volume| volume.0 as f64);
    let sent: Vec<f64> = trials.iter().filter_map(slower).filter(|bytes| *bytes < volume).collect();
    let median = summary::median(&sent)?;
    let missing = configured * seconds / 8.0 - median - paced.grain as f64;
    let sent_bps = median * 8.0 / seconds;
    (missing > 0.0 && sent_bps < configured * RATE_SHARE_MIN).then_some((configured, sent_bps))
}
