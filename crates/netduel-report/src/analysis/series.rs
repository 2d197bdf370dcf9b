//! Time series within a trial: median and range over the trials of an arm.
use netduel_model::trial::Trial;
use netduel_model::workload::{SAMPLE_INTERVAL_NS, Workload};
use netduel_stats::summary;

use super::counted::Counted;
use super::figures;

/// Maximum number of points: more are not visible on a screen, and a report must stay small.
const POINTS_MAX: u64 = 150;

/// One point in time over all trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesPoint {
    /// Middle of the interval, seconds after the start of the trial.
    pub time_s: f64,
    /// Median over the trials.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Number of trials with a value in this interval.
    pub trials: u32,
}

/// The interval bounds of a workload, nanoseconds.
fn bins(workload: &Workload) -> Vec<(u64, u64)> {
    let duration = workload.timing.duration.0;
    let samples = duration.div_ceil(POINTS_MAX).div_ceil(SAMPLE_INTERVAL_NS).max(1);
    let width = samples * SAMPLE_INTERVAL_NS;
    (0..duration / width).map(|index| (index * width, (index + 1) * width)).collect()
}

/// The rates of one trial in the intervals of the steady window; empty for round trips, which have a histogram.
pub(super) fn steady(workload: &Workload, trial: &Trial) -> Vec<f64> {
    if workload.traffic.facts().bulk.is_none() {
        return Vec::new();
    }
    let (start, end) = figures::steady_bounds(workload);
    bins(workload)
        .into_iter()
        .filter(|(from, to)| *from >= start && *to <= end)
        // Only where all directions run: the end of one is no fall of the rate.
        .filter_map(|(from, to)| in_bin_by_direction(workload, trial, from, to)?.into_iter().sum())
        .collect()
}

fn in_bin(workload: &Workload, trial: &Trial, from: u64, to: u64) -> Option<f64> {
    if workload.traffic.facts().bulk.is_none() {
        return round_trip_in_bin(trial, from, to);
    }
    let rates = in_bin_by_direction(workload, trial, from, to)?;
    // Of volumes one direction may be over before the other.
    let is_over = |rate: &Option<f64>| rate.is_none() && workload.traffic.facts().volume().is_some();
    if rates.iter().all(Option::is_none) {
        return None;
    }
    rates.into_iter().filter(|rate| !is_over(rate)).sum()
}

/// The rate of each direction in an interval, bit/s; absent where an end has no count.
fn in_bin_by_direction(workload: &Workload, trial: &Trial, from: u64, to: u64) -> Option<Vec<Option<f64>>> {
    let rate = |received: Counted<'_>| {
        Some(received.in_interval(workload, (from, to), |sample| sample.bytes)? * 8.0)
    };
    Some(figures::receivers(workload, trial)?.into_iter().map(rate).collect())
}

/// The median round trip of an interval, nanoseconds.
fn round_trip_in_bin(trial: &Trial, from: u64, to: u64) -> Option<f64> {
    let report = trial.client.as_ref()?.report.round_trips.as_ref()?;
    let medians: Vec<f64> = report
        .series
        .iter()
        .filter(|sample| sample.count > 0 && sample.end_ns > from && sample.end_ns <= to)
        .map(|sample| sample.p50_ns as f64)
        .collect();
    summary::median(&medians)
}

/// Median and range over trials: received bit/s, or median round trip in nanoseconds for workloads without bulk data.
pub(super) fn over_trials(workload: &Workload, trials: &[&Trial]) -> Vec<SeriesPoint> {
    summarised(workload, trials, |trial, from, to| in_bin(workload, trial, from, to))
}

/// Median and range of the probes beside bulk data, nanoseconds; empty without probes.
pub(super) fn of_probes(workload: &Workload, trials: &[&Trial]) -> Vec<SeriesPoint> {
    if workload.traffic.facts().bulk.is_none() || !workload.traffic.facts().has_round_trips {
        return Vec::new();
    }
    summarised(workload, trials, round_trip_in_bin)
}

pub(super) fn summarised(
    workload: &Workload,
    trials: &[&Trial],
    in_bin: impl Fn(&Trial, u64, u64) -> Option<f64>,
) -> Vec<SeriesPoint> {
    let bins = bins(workload);
    let of_trial = |trial: &&Trial| bins.iter().map(|(from, to)| in_bin(trial, *from, *to)).collect();
    let series: Vec<Vec<Option<f64>>> = trials.iter().map(of_trial).collect();
    bins.iter()
        .enumerate()
        .filter_map(|(index, (from, to))| {
            let values: Vec<f64> =
                series.iter().filter_map(|series| series.get(index).copied().flatten()).collect();
            Some(SeriesPoint {
                time_s: from.midpoint(*to) as f64 / 1e9,
                median: summary::median(&values)?,
                min: values.iter().copied().reduce(f64::min)?,
                max: values.iter().copied().reduce(f64::max)?,
                trials: values.len() as u32,
            })
        })
        .collect()
}
