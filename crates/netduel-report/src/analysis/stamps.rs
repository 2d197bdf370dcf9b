//! Timestamped round trips of an arm, over all trials: their parts, one-way delays, and the cost of timestamps.
use std::collections::BTreeMap;

use crate::total::{self, Total};
use netduel_model::sample::HistogramRecord;
use netduel_model::stamps::{Clocks, MissingStamps, Part, PartRecord, StampLevel, StampReport};
use netduel_model::trial::Trial;
use netduel_stats::histogram::Histogram;
use netduel_stats::summary;

/// Percentile range of typical round trips: the middle half.
const TYPICAL: (f64, f64) = (0.25, 0.75);
/// Percentile range of slow round trips: the slowest 1 %.
const SLOW: (f64, f64) = (0.99, 1.0);

/// The timestamp analysis of an arm.
#[derive(Debug, Clone)]
pub struct Stamps {
    /// Number of timestamped round trips in the steady windows.
    pub stamped: u64,
    /// Number of these that have all timestamps and whose parts add up.
    pub complete: u64,
    /// Number of missing timestamps.
    pub missing: MissingStamps,
    /// Number of round trips whose parts do not add up.
    pub inconsistent: u64,
    /// Number of round trips during which the wall clock was stepped.
    pub clock_steps: u64,
    /// The parts as measured by the client, in the order of a round trip.
    pub parts: Vec<(Part, Histogram)>,
    /// Parts that only the server measured, because responses were too small to carry them to the client.
    pub server_parts: Vec<(Part, Histogram)>,
    /// Composition of the middle half of the round trips.
    pub typical: Option<Composition>,
    /// Composition of the slowest 1 % of the round trips.
    pub slow: Option<Composition>,
    /// Cost of a transmit timestamp.
    pub cost: Option<StampCost>,
    /// Network and server time by the clock of the client's NIC.
    pub hardware: Option<Histogram>,
    /// Service time of the server by the clock of its NIC.
    pub server_hardware: Option<Histogram>,
    /// One-way delays.
    pub one_way: Option<OneWay>,
}

/// The mean round trip of a percentile range. Its parts add up to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// Mean round trip, nanoseconds.
    pub whole_ns: f64,
    /// Number of round trips in the mean. A histogram level that the range cuts counts in part.
    pub count: f64,
    /// Mean of each part in order, nanoseconds.
    pub parts: Vec<(Part, f64)>,
}

/// Median of timestamped round trips minus that of the others, by trial: both ran at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StampCost {
    /// Median over the trials, nanoseconds.
    pub median_ns: f64,
    /// Minimum of a trial.
    pub min_ns: f64,
    /// Maximum of a trial.
    pub max_ns: f64,
    /// Number of trials.
    pub trials: usize,
}

/// One-way delays with their error.
#[derive(Debug, Clone)]
pub struct OneWay {
    /// Client to server, nanoseconds.
    pub up: Histogram,
    /// Server to client, nanoseconds.
    pub down: Histogram,
    /// Maximum error of either direction over the trials, nanoseconds.
    pub error_ns: u64,
    /// Clock relation: estimated, unless both ends shared one clock in all trials.
    pub clocks: Clocks,
    /// Number of exchanges with a negative delay.
    pub negative: u64,
}

/// The timestamp report of a trial; absent without timestamps.
pub fn of_trial(trial: &Trial) -> Option<Stamps> {
    of(&[trial])
}

/// The timestamp analysis of an arm; absent for workloads without timestamps.
pub(super) fn of(trials: &[&Trial]) -> Option<Stamps> {
    let reports = |client: bool| {
        trials.iter().filter_map(move |trial| {
            let end = if client { &trial.client } else { &trial.server };
            end.as_ref()?.report.stamps.as_ref()
        })
    };
    reports(true).next()?;
    let mut stamps = Stamps {
        stamped: 0,
        complete: 0,
        missing: MissingStamps::default(),
        inconsistent: 0,
        clock_steps: 0,
        parts: merged_parts(reports(true)),
        server_parts: merged_parts(reports(false)),
        typical: None,
        slow: None,
        cost: cost(trials),
        hardware: merged(reports(true).filter_map(|report| report.hardware.as_ref())),
        server_hardware: merged(reports(false).filter_map(|report| report.hardware.as_ref())),
        one_way: one_way(reports(true)),
    };
    for report in reports(true) {
        total::add(&mut stamps.stamped, report.stamped);
        total::add(&mut stamps.complete, report.complete);
    }
    for report in reports(true).chain(reports(false)) {
        total::add(&mut stamps.inconsistent, report.inconsistent);
        total::add(&mut stamps.clock_steps, report.clock_steps);
        total::add(&mut stamps.missing.client_transmit, report.missing.client_transmit);
        total::add(&mut stamps.missing.client_receive, report.missing.client_receive);
        total::add(&mut stamps.missing.server_receive, report.missing.server_receive);
        total::add(&mut stamps.missing.server_transmit, report.missing.server_transmit);
    }
    let levels = merged_levels(reports(true).flat_map(|report| &report.levels));
    let kinds: Vec<Part> = stamps.parts.iter().map(|(part, _)| *part).collect();
    stamps.typical = composition(&levels, &kinds, TYPICAL);
    stamps.slow = composition(&levels, &kinds, SLOW);
    Some(stamps)
}

fn merged<'a>(records: impl Iterator<Item = &'a HistogramRecord>) -> Option<Histogram> {
    let mut all: Option<Histogram> = None;
    for histogram in records.filter_map(|record| Histogram::from_record(record).ok()) {
        match &mut all {
            Some(all) => all.merge(&histogram),
            None => all = Some(histogram),
        }
    }
    all.filter(|all| all.count() > 0)
}

fn merged_parts<'a>(reports: impl Iterator<Item = &'a StampReport>) -> Vec<(Part, Histogram)> {
    let mut by_part: BTreeMap<Part, Vec<&HistogramRecord>> = BTreeMap::new();
    for PartRecord { part, histogram } in reports.flat_map(|report| &report.parts) {
        by_part.entry(*part).or_default().push(histogram);
    }
    by_part.into_iter().filter_map(|(part, records)| Some((part, merged(records.into_iter())?))).collect()
}

/// Counts and sums by histogram level.
fn merged_levels<'a>(levels: impl Iterator<Item = &'a StampLevel>) -> BTreeMap<u64, (u64, Vec<u64>)> {
    let mut all: BTreeMap<u64, (u64, Vec<u64>)> = BTreeMap::new();
    for level in levels {
        let known = all.entry(level.round_trip_max_ns).or_insert_with(|| (0, vec![0; level.sums_ns.len()]));
        total::add(&mut known.0, level.count);
        for (sum, more) in known.1.iter_mut().zip(&level.sums_ns) {
            total::add(sum, *more);
        }
    }
    all
}

/// The mean of the round trips in a percentile range. A level that the range cuts counts by the share that lies inside.
fn composition(
    levels: &BTreeMap<u64, (u64, Vec<u64>)>,
    kinds: &[Part],
    (from, to): (f64, f64),
) -> Option<Composition> {
    let total: u64 = levels.values().map(|(count, _)| count).total();
    let (from, to) = (total as f64 * from, total as f64 * to);
    let mut means = vec![0.0; kinds.len()];
    let (mut below, mut counted) = (0.0, 0.0);
    // A run file may have a level without round trips, whose mean is no number.
    for (count, sums) in levels.values().filter(|(count, _)| *count > 0) {
        let end = below + *count as f64;
        let inside = (end.min(to) - f64::max(below, from)).max(0.0);
        for (mean, sum) in means.iter_mut().zip(sums) {
            *mean += *sum as f64 * inside / *count as f64;
        }
        counted += inside;
        below = end;
    }
    if counted <= 0.0 {
        return None;
    }
    let parts: Vec<(Part, f64)> = kinds.iter().copied().zip(means.iter().map(|sum| sum / counted)).collect();
    Some(Composition { whole_ns: parts.iter().map(|(_, mean)| mean).sum(), count: counted, parts })
}

fn cost(trials: &[&Trial]) -> Option<StampCost> {
    let differences: Vec<f64> = trials
        .iter()
        .filter_map(|trial| {
            let report = &trial.client.as_ref()?.report;
            let median = |record: &HistogramRecord| Histogram::from_record(record).ok()?.percentile(50.0);
            let plain = median(&report.round_trips.as_ref()?.histogram)?;
            let stamped = median(report.stamps.as_ref()?.round_trip.as_ref()?)?;
            Some(stamped as f64 - plain as f64)
        })
        .collect();
    Some(StampCost {
        median_ns: summary::median(&differences)?,
        min_ns: differences.iter().copied().reduce(f64::min)?,
        max_ns: differences.iter().copied().reduce(f64::max)?,
        trials: differences.len(),
    })
}

fn one_way<'a>(reports: impl Iterator<Item = &'a StampReport>) -> Option<OneWay> {
    let all: Vec<_> = reports.filter_map(|report| report.one_way.as_ref()).collect();
    Some(OneWay {
        up: merged(all.iter().map(|one| &one.up))?,
        down: merged(all.iter().map(|one| &one.down))?,
        error_ns: all.iter().map(|one| one.error_ns).max()?,
        clocks: all.iter().map(|one| one.clocks).max()?,
        negative: all.iter().map(|one| one.negative).total(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: &[(u64, u64, u64, u64)]) -> BTreeMap<u64, (u64, Vec<u64>)> {
        of.iter().map(|(whole, count, first, second)| (*whole, (*count, vec![*first, *second]))).collect()
    }

    const KINDS: [Part; 2] = [Part::ClientSend, Part::Network];

    #[test]
    fn middle_half_is_weighted_by_the_levels_it_covers() {
        // 50 round trips of 10 + 90, 50 of 10 + 190: the quarter on either side of the middle.
        let levels = levels(&[(103, 50, 500, 4_500), (207, 50, 500, 9_500)]);
        let typical = composition(&levels, &KINDS, TYPICAL).unwrap();
        assert_eq!((typical.whole_ns, typical.count), (150.0, 50.0));
        assert_eq!(typical.parts, [(Part::ClientSend, 10.0), (Part::Network, 140.0)]);
        let slow = composition(&levels, &KINDS, SLOW).unwrap();
        assert_eq!((slow.whole_ns, slow.count), (200.0, 1.0));
    }

    #[test]
    fn composition_of_no_round_trips_is_absent() {
        assert_eq!(composition(&levels(&[]), &KINDS, TYPICAL), None);
        let with_empty = levels(&[(103, 2, 20, 180), (207, 0, 7, 0)]);
        let slow = composition(&with_empty, &KINDS, SLOW).unwrap();
        assert!((slow.whole_ns - 100.0).abs() < 1e-9, "{slow:?}");
    }
}
