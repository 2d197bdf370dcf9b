//! The numbers behind the charts, scaled to readable units, as JSON for the script and as rows for the tables.
use netduel_model::metric::Metric;
use netduel_model::workload::Workload;
use netduel_stats::histogram::Histogram;
use serde_json::{Value, json};

use crate::analysis::{
    Analysis, ArmAnalysis, MetricAnalysis, SeriesPoint, Sweep, SweepPoint, WorkloadAnalysis,
};

/// Bins of a density: enough for two modes, few enough that noise does not look like modes.
const DENSITY_BINS: usize = 70;

/// Bins on the axis of rates at most, when arms lie far apart.
const RATE_BINS_MAX: usize = 200;

/// Machines with more cores than this show only the cores that did something.
const CORES_SHOWN_ALL: usize = 16;

/// A core that worked less than this share of the time did nothing worth a row.
const CORE_BUSY_MIN: f64 = 0.02;

/// Numbers are multiplied by `factor` and then have `unit`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaled {
    pub(super) factor: f64,
    pub(super) unit: &'static str,
}

/// The unit in which the largest of some values of a metric has one to three digits before the point.
pub(super) fn scaled(metric: Metric, values: impl Iterator<Item = f64>) -> Scaled {
    let max = values.map(f64::abs).fold(0.0, f64::max);
    let choose = |steps: &[(f64, &'static str)]| {
        let (size, unit) = steps.iter().rev().find(|(size, _)| max >= *size).copied().unwrap_or(steps[0]);
        Scaled { factor: 1.0 / size, unit }
    };
    match metric {
        Metric::Throughput => {
            choose(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")])
        }
        Metric::DatagramRate
        | Metric::PacketRate
        | Metric::NoDropRate
        | Metric::PartialDropRate
        | Metric::RoundTripRate => choose(&[(1.0, "/s"), (1e3, "thousand/s"), (1e6, "million/s")]),
        Metric::Responsiveness => choose(&[(1.0, "RPM"), (1e3, "thousand RPM")]),
        Metric::Jitter
        | Metric::Outage
        | Metric::RecoveryTime
        | Metric::LatencyP50
        | Metric::LatencyP99
        | Metric::LatencyP999
        | Metric::LatencyIdleP50
        | Metric::LatencyLoadedP50
        | Metric::LatencyLoadedP99 => choose(&[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")]),
        Metric::Loss => Scaled { factor: 100.0, unit: "%" },
        Metric::CpuPerGigabyte
        | Metric::CpuPerRoundTrip
        | Metric::CpuPerDatagram
        | Metric::LostInOutage
        | Metric::RetransmitsPerGigabyte => Scaled { factor: 1.0, unit: metric.unit() },
    }
}

/// The unit of a metric's values over all arms.
pub(super) fn scaled_values(metric: &MetricAnalysis) -> Scaled {
    let values = metric.arms.iter().flat_map(|arm| arm.values.iter().map(|(_, value)| *value));
    if metric.is_packet_rate() { scaled_packets(values) } else { scaled(metric.metric, values) }
}

/// The unit of rates of packets.
pub(super) fn scaled_packets(rates: impl Iterator<Item = f64>) -> Scaled {
    let max = rates.map(f64::abs).fold(0.0, f64::max);
    let (size, unit) = match max {
        max if max >= 1e6 => (1e6, "Mpps"),
        max if max >= 1e3 => (1e3, "kpps"),
        _ => (1.0, "pps"),
    };
    Scaled { factor: 1.0 / size, unit }
}

/// The unit of a workload's series: bit/s, or nanoseconds for round trips.
pub(super) fn scaled_series(workload: &WorkloadAnalysis) -> Scaled {
    let metric = if has_bulk(workload) { Metric::Throughput } else { Metric::LatencyP50 };
    scaled(metric, workload.arms.iter().flat_map(|arm| arm.series.iter().map(|point| point.median)))
}

/// The unit of a workload's intervals, which are bit/s: packets per second of packets, whose payloads are all alike.
pub(super) fn scaled_intervals(workload: &WorkloadAnalysis) -> Scaled {
    let first = workload.arms.first().map(|arm| &arm.workload.traffic);
    let Some(bytes) = first.and_then(|traffic| traffic.facts().packet_bytes()) else {
        return scaled_series(workload);
    };
    let per_bit = 1.0 / 8.0 / bytes as f64;
    let rates = workload.arms.iter().flat_map(|arm| arm.intervals.iter().map(|bps| bps * per_bit));
    let scale = scaled_packets(rates);
    Scaled { factor: scale.factor * per_bit, unit: scale.unit }
}

/// The unit of the round trips within a trial, beside bulk data.
pub(super) fn scaled_latency_series(workload: &WorkloadAnalysis) -> Scaled {
    let points = workload.arms.iter().flat_map(|arm| arm.latency_series.iter());
    scaled(Metric::LatencyP50, points.map(|point| point.median))
}

/// The unit of a workload's round trips, by their 99th percentile.
pub(super) fn scaled_latency(workload: &WorkloadAnalysis) -> Scaled {
    let histograms = workload.arms.iter().filter_map(|arm| arm.latency.as_ref());
    scaled(
        Metric::LatencyP99,
        histograms.filter_map(|histogram| histogram.percentile(99.0)).map(|value| value as f64),
    )
}

/// Whether the workload has requests and responses.
pub(super) fn has_round_trips(workload: &WorkloadAnalysis) -> bool {
    workload.arms.iter().any(|arm| arm.workload.traffic.facts().has_round_trips)
}

/// Whether it moves bulk data.
pub(super) fn has_bulk(workload: &WorkloadAnalysis) -> bool {
    workload.arms.iter().any(|arm| arm.workload.traffic.facts().bulk.is_some())
}

/// Whether its round trips are told apart into parts.
pub(super) fn has_parts(workload: &WorkloadAnalysis) -> bool {
    workload.arms.iter().any(|arm| !arm.parts.is_empty())
}

/// Every part, with the arms of each: title, arm, histogram.
pub(super) fn parts_of(workload: &WorkloadAnalysis) -> Vec<(&'static str, &ArmAnalysis, &Histogram)> {
    let mut titles: Vec<&'static str> = Vec::new();
    for part in workload.arms.iter().flat_map(|arm| &arm.parts) {
        if !titles.contains(&part.title) {
            titles.push(part.title);
        }
    }
    let parts = titles.into_iter().flat_map(|title| {
        workload.arms.iter().filter_map(move |arm| {
            Some((title, arm, &arm.parts.iter().find(|part| part.title == title)?.histogram))
        })
    });
    parts.collect()
}

/// The unit of a workload's parts, by the largest median.
pub(super) fn scaled_parts(workload: &WorkloadAnalysis) -> Scaled {
    let parts = parts_of(workload);
    let medians = parts.iter().filter_map(|(_, _, histogram)| histogram.percentile(50.0));
    scaled(Metric::LatencyP50, medians.map(|value| value as f64))
}

/// Everything the script draws, as the text of a JSON script element. Every `<` is escaped, so that no text can end the
/// element; the line separators that JavaScript once refused in strings are escaped too.
pub(super) fn embedded(analysis: &Analysis) -> String {
    let data = json!({
        "arms": analysis.plan.arms.iter().map(|arm| &arm.name).collect::<Vec<_>>(),
        "workloads": analysis.workloads.iter().map(workload).collect::<Vec<_>>(),
        "sweeps": analysis.sweeps.iter().map(|one| sweep(one, analysis)).collect::<Vec<_>>(),
    });
    data.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Four significant digits: more than a screen shows, and a third of the bytes.
fn short(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(if value == 0.0 { Some(0.0) } else { None });
    }
    let digits = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    json!((value * digits).round() / digits)
}

fn workload(workload: &WorkloadAnalysis) -> Value {
    let latency = scaled_latency(workload);
    json!({
        "name": workload.name,
        "metrics": workload.judged.iter().map(metric).collect::<Vec<_>>(),
        "series": series(workload, scaled_series(workload), |arm| &arm.series),
        "latency_series": (has_bulk(workload) && has_round_trips(workload))
            .then(|| series(workload, scaled_latency_series(workload), |arm| &arm.latency_series)),
        "latency": has_round_trips(workload).then(|| json!({
            "unit": latency.unit,
            "tail": workload.arms.iter().map(|arm| tail(arm, latency)).collect::<Vec<_>>(),
            "density": workload.arms.iter().map(|arm| arm.latency.as_ref().map(|histogram| density(histogram, latency)))
                .collect::<Vec<_>>(),
        })),
        "rates": (has_bulk(workload) && !has_round_trips(workload)).then(|| rates(workload)),
        "ends": is_of_packets(workload).then(|| ends(workload)),
        "parts": has_parts(workload).then(|| parts(workload)),
        "machines": (0..machine_count(workload)).map(|index| cores(workload, index)).collect::<Vec<_>>(),
    })
}

fn metric(metric: &MetricAnalysis) -> Value {
    let scale = scaled_values(metric);
    json!({
        "title": metric.title(),
        "unit": scale.unit,
        "arms": metric.arms.iter().map(|arm| {
            arm.values.iter().map(|(block, value)| json!([block + 1, short(value * scale.factor)])).collect::<Vec<_>>()
        }).collect::<Vec<_>>(),
    })
}

/// Spans of a trial that do not count, in seconds after the start, with their names.
fn cut(workload: &Workload) -> Vec<Value> {
    let timing = &workload.timing;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (duration, warmup, cooldown) = (timing.duration.0, timing.warmup.0, timing.cooldown.0);
    let mut spans = vec![(0, warmup, "warm-up")];
    if let Some(idle) = workload.traffic.facts().load_begins {
        spans.push((idle.0.saturating_sub(cooldown), idle.0.saturating_add(warmup), "load begins"));
    }
    spans.push((duration.saturating_sub(cooldown), duration, "cool-down"));
    let spans = spans.into_iter().filter(|(from, to, _)| to > from);
    spans.map(|(from, to, name)| json!({ "from": seconds(from), "to": seconds(to), "name": name })).collect()
}

fn series(
    workload: &WorkloadAnalysis,
    scale: Scaled,
    points: impl Fn(&ArmAnalysis) -> &Vec<SeriesPoint>,
) -> Value {
    let first = workload.arms.first().map(|arm| &arm.workload);
    json!({
        "unit": scale.unit,
        "duration_s": first.map(|settings| settings.timing.duration.as_secs_f64()),
        "cut": first.map(cut),
        "arms": workload.arms.iter().map(|arm| points(arm).iter().map(|point| json!([
            short(point.time_s),
            short(point.median * scale.factor),
            short(point.min * scale.factor),
            short(point.max * scale.factor),
        ])).collect::<Vec<_>>()).collect::<Vec<_>>(),
    })
}

/// Share beyond a percentile and its round trip. The maximum stands at one sample in all.
fn tail(arm: &ArmAnalysis, scale: Scaled) -> Vec<Value> {
    let Some(histogram) = &arm.latency else { return Vec::new() };
    let least = 1.0 / histogram.count() as f64;
    histogram
        .cdf_tail()
        .into_iter()
        .map(|(percentile, value)| {
            let beyond = (1.0 - percentile / 100.0).max(least);
            json!([short(1.0 / beyond), short(value as f64 * scale.factor), percentile])
        })
        .collect()
}

/// Shares of round trips in bins of equal width on a logarithmic axis, from the smallest to the 99.9th percentile.
fn density(histogram: &Histogram, scale: Scaled) -> Vec<Value> {
    let (Some(min), Some(top)) = (histogram.min(), histogram.percentile(99.9)) else { return Vec::new() };
    let (low, high) = ((min.max(1) as f64).ln(), ((top + 1) as f64).ln());
    let width = ((high - low) / DENSITY_BINS as f64).max(0.01);
    let mut shares = vec![0.0; DENSITY_BINS];
    for (value, count) in histogram.pairs() {
        let bin = (((value.max(1) as f64).ln() - low) / width).max(0.0) as usize;
        if let Some(share) = shares.get_mut(bin) {
            *share += count as f64 / histogram.count() as f64;
        }
    }
    shares
        .into_iter()
        .enumerate()
        .map(|(bin, share)| {
            let edge = |index: usize| short((low + width * index as f64).exp() * scale.factor);
            json!([edge(bin), edge(bin + 1), short(share * 100.0)])
        })
        .collect()
}

/// Shares of the steady intervals of each arm in bins of equal width that all arms have in common.
fn rates(workload: &WorkloadAnalysis) -> Value {
    let scale = scaled_intervals(workload);
    let range = |rates: &[f64]| {
        Some((rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?))
    };
    let all: Vec<f64> = workload.arms.iter().flat_map(|arm| arm.intervals.iter().copied()).collect();
    let Some((low, high)) = range(&all) else { return Value::Null };
    // As wide as the arm that varies most needs for its number of samples, and never so narrow that the axis has too many.
    let width = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let (low, high) = range(&arm.intervals)?;
            Some((high - low) / (arm.intervals.len() as f64).sqrt().clamp(6.0, 30.0))
        })
        .fold((high - low) / RATE_BINS_MAX as f64, f64::max)
        .max(high.abs() * 1e-6)
        .max(1e-9);
    let arms = workload.arms.iter().map(|arm| {
        let mut counts = vec![0_u32; RATE_BINS_MAX + 1];
        for rate in &arm.intervals {
            counts[(((rate - low) / width) as usize).min(RATE_BINS_MAX)] += 1;
        }
        // Bins before the first and after the last that hold something would only draw a line along zero.
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let edge = |bin: usize| short((low + width * bin as f64) * scale.factor);
        let share = |bin: usize| short(f64::from(counts[bin]) * 100.0 / arm.intervals.len().max(1) as f64);
        (first..end).map(|bin| json!([edge(bin), edge(bin + 1), share(bin)])).collect::<Vec<_>>()
    });
    json!({ "unit": scale.unit, "density": arms.collect::<Vec<_>>() })
}

/// Whether packets are what it is about.
pub(super) fn is_of_packets(workload: &WorkloadAnalysis) -> bool {
    workload.arms.iter().any(|arm| !arm.packets.is_empty())
}

/// The unit of both ends of all arms.
pub(super) fn scaled_ends(workload: &WorkloadAnalysis) -> Scaled {
    let ways = workload.arms.iter().flat_map(|arm| &arm.packets);
    let points = ways.flat_map(|way| way.sent_series.iter().chain(&way.received_series));
    scaled_packets(points.map(|point| point.median))
}

/// The course of what was sent and received, by arm.
fn ends(workload: &WorkloadAnalysis) -> Value {
    let scale = scaled_ends(workload);
    let scaled = |value: f64| short(value * scale.factor);
    let points = |series: &[SeriesPoint]| -> Vec<Value> {
        let point = |point: &SeriesPoint| {
            json!([short(point.time_s), scaled(point.median), scaled(point.min), scaled(point.max)])
        };
        series.iter().map(point).collect()
    };
    let first = workload.arms.first().map(|arm| &arm.workload);
    let arms = workload.arms.iter().enumerate();
    let ways = arms.flat_map(|(index, arm)| arm.packets.iter().map(move |way| (index, way)));
    json!({
        "unit": scale.unit,
        "duration_s": first.map(|settings| settings.timing.duration.as_secs_f64()),
        "cut": first.map(cut),
        "ways": ways.map(|(arm, way)| json!({
            "arm": arm,
            "direction": (workload.arms[arm].packets.len() > 1).then(|| crate::words::direction(way.sender)),
            "ends": [points(&way.sent_series), points(&way.received_series)],
        })).collect::<Vec<_>>(),
    })
}

/// What was published of the size of a run's machines: a size of frames that a sweep has, bytes, and packets per second received.
pub(super) fn published(sweep: &Sweep, analysis: &Analysis) -> Option<(u32, f64)> {
    let size = crate::words::common_size(analysis)?;
    let figures = crate::published::of_size(&size);
    let figure =
        figures.iter().find(|figure| sweep.points.iter().any(|point| point.frame == figure.frame))?;
    Some((figure.frame, figure.receiver_pps))
}

/// The unit of a sweep.
pub(super) fn scaled_sweep(sweep: &Sweep, published: Option<(u32, f64)>) -> Scaled {
    let means = sweep.points.iter().filter_map(|point| point.received).map(|rates| rates.mean);
    scaled_packets(means.chain(published.map(|(_, received)| received)))
}

fn sweep(sweep: &Sweep, analysis: &Analysis) -> Value {
    let published = published(sweep, analysis);
    let scale = scaled_sweep(sweep, published);
    let scaled = |value: f64| short(value * scale.factor);
    let arm = |point: &SweepPoint| analysis.plan.arms.iter().position(|arm| arm.name == point.arm);
    json!({
        "unit": scale.unit,
        "points": sweep.points.iter().map(|point| json!({
            "label": point.label,
            "published": published.filter(|(frame, _)| *frame == point.frame).map(|(_, received)| scaled(received)),
            "arm": arm(point),
            "sent": point.sent.map(|rates| scaled(rates.mean)),
            "received": point.received.map(|rates| scaled(rates.mean)),
            "low": point.range.map(|range| scaled(range.0)),
            "high": point.range.map(|range| scaled(range.1)),
        })).collect::<Vec<_>>(),
    })
}

/// Median and 99th percentile of each part on each arm.
fn parts(workload: &WorkloadAnalysis) -> Value {
    let scale = scaled_parts(workload);
    let position = |name| workload.arms.iter().position(|arm: &ArmAnalysis| arm.arm == name);
    let rows = parts_of(workload).into_iter().map(|(title, arm, histogram)| {
        let at =
            |percentile| histogram.percentile(percentile).map(|value| short(value as f64 * scale.factor));
        json!([title, position(arm.arm.clone()), at(50.0), at(99.0), histogram.count()])
    });
    json!({ "unit": scale.unit, "rows": rows.collect::<Vec<_>>() })
}

/// Machines of a workload: arms with other pairs may have others, so the longest list counts.
pub(super) fn machine_count(workload: &WorkloadAnalysis) -> usize {
    workload.arms.iter().map(|arm| arm.machines.len()).max().unwrap_or(0)
}

/// Cores of a machine that are worth a row, over all arms, ascending.
pub(super) fn shown_cores(workload: &WorkloadAnalysis, machine: usize) -> Vec<u16> {
    let all = || {
        workload
            .arms
            .iter()
            .filter_map(move |arm| arm.machines.get(machine))
            .flat_map(|machine| &machine.cores)
    };
    let mut cores: Vec<u16> = all().map(|core| core.core).collect();
    cores.sort_unstable();
    cores.dedup();
    if cores.len() > CORES_SHOWN_ALL {
        let busy = |wanted: &u16| {
            all().any(|core| {
                core.core == *wanted
                    && core.classes().iter().map(|class| class.1).sum::<f64>() >= CORE_BUSY_MIN
            })
        };
        cores.retain(busy);
    }
    cores
}

fn cores(workload: &WorkloadAnalysis, index: usize) -> Value {
    let shown = shown_cores(workload, index);
    let rows: Vec<Value> = workload
        .arms
        .iter()
        .enumerate()
        .filter_map(|(arm, figures)| Some((arm, figures.machines.get(index)?)))
        .flat_map(|(arm, machine)| machine.cores.iter().map(move |core| (arm, core)))
        .filter(|(_, core)| shown.contains(&core.core))
        .flat_map(|(arm, core)| {
            core.classes()
                .into_iter()
                .enumerate()
                .map(move |(class, (_, share))| json!([arm, core.core, class, short(share * 100.0)]))
        })
        .collect();
    json!({ "cores": shown, "rows": rows })
}
