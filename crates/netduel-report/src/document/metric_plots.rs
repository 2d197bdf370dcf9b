//! Plots of one metric: each block, and the intervals of all trials.
use std::collections::BTreeMap;

use netduel_stats::summary;
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Plot};
use super::scale::{Scaled, number, scaled, scaled_packets, scaled_values, short};
use super::table::{Cell, Column, Table};
use super::verdicts::Sides;
use crate::analysis::{ArmAnalysis, ArmValues, Bound, MetricAnalysis, WorkloadAnalysis};
use crate::words;

/// Maximum number of bins on a rate axis when arms differ much.
const RATE_BINS_MAX: usize = 200;
/// Bins that the arm with the least spread fills at least, where the maximum number of bins allows it.
const RATE_BINS_LEAST: f64 = 5.0;
/// Arms whose medians differ by more than this factor get a logarithmic axis: on a linear one the lower ones fill a single bin.
const RATES_FAR: f64 = 10.0;
/// The lower end of a logarithmic axis: the lowest median divided by this.
const RATES_BELOW_MEDIAN: f64 = 30.0;
/// Steps of a cumulative distribution: half a percent each, finer than a line on a screen shows.
const CUMULATIVE_STEPS: usize = 200;

/// How a picture marks values that are bounds.
pub(super) const BOUNDS: &str = " An arrow marks a bound: the true value lies in its direction.";

/// A metric by block; absent when it has no picture. Blocks of different runs have nothing in common, so no line joins them.
pub(super) fn by_block(workload: &WorkloadAnalysis, metric: &MetricAnalysis, sides: Sides) -> Option<Figure> {
    if !is_shown(metric) {
        return None;
    }
    let scale = scaled_values(metric);
    let arms: Vec<String> =
        metric.arms.iter().map(|arm| format!("{} {}", arm.arm, words::value(metric, arm))).collect();
    let sign = |bound: Bound| bound.sign().trim_end();
    let values = |arm: &ArmValues| -> Vec<Value> {
        let point = |&(block, value): &(u32, f64)| {
            let bound = arm.bound_in(metric.metric, block).map(sign);
            json!([block.saturating_add(1), scale.plotted(value), bound])
        };
        arm.values.iter().map(point).collect()
    };
    let medians: Vec<Option<(f64, Option<Bound>)>> =
        metric.arms.iter().map(|arm| arm.quantile(metric.metric, 0.5)).collect();
    let mut data = json!({
        "title": metric.title(),
        "unit": scale.unit,
        "arms": metric.arms.iter().map(values).collect::<Vec<_>>(),
        "medians": medians.iter().map(|median| median.map(|(value, _)| scale.plotted(value)))
            .collect::<Vec<_>>(),
    });
    let bounds: Vec<Option<&str>> =
        medians.iter().map(|median| median.and_then(|(_, bound)| bound).map(sign)).collect();
    let has_bounds = bounds.iter().any(Option::is_some);
    if has_bounds {
        data["median_bounds"] = json!(bounds);
    }
    let joined = match sides {
        Sides::Arms => "A vertical line joins the trials of one block. ",
        Sides::Runs => {
            data["apart"] = true.into();
            "Each trial in the block of its run. "
        }
    };
    let has_bounds = has_bounds || metric.arms.iter().any(|arm| !arm.at_least.is_empty());
    let bounds = if has_bounds { BOUNDS } else { "" };
    let missing = without_value(metric);
    let is_contended = metric.metric.is_cpu() && workload.arms.iter().any(ArmAnalysis::has_cpu_contention);
    let contended = if is_contended { " Contains CPU time of other processes: not comparable." } else { "" };
    Some(Figure {
        title: format!("{} by block", capital(metric.title())),
        reading: format!("{joined}Horizontal lines: medians.{bounds}{missing}{contended}"),
        alternative: format!("{} of {} by block: {}", metric.title(), workload.name, arms.join("; ")),
        chart: Chart::Plot(Plot::new("blocks", data)),
        data: Some(block_table(metric, scale)),
        in_text: false,
    })
}

/// The valid trials without a mark, because their result was too bad for a value; empty without one.
fn without_value(metric: &MetricAnalysis) -> String {
    let of_arm = |arm: &ArmValues| {
        let trials = arm.without.len() as u32;
        (trials > 0).then(|| format!("{} of {}", words::plural(trials, "valid trial"), arm.arm))
    };
    let arms: Vec<String> = metric.arms.iter().filter_map(of_arm).collect();
    if arms.is_empty() { String::new() } else { format!(" No value in {}.", arms.join(" and ")) }
}

fn block_table(metric: &MetricAnalysis, scale: Scaled) -> Table {
    let mut rows: BTreeMap<u32, Vec<Cell>> = BTreeMap::new();
    for (column, arm) in metric.arms.iter().enumerate() {
        let values = arm.values.iter().map(|(block, value)| {
            let sign = arm.bound_in(metric.metric, *block).map_or("", Bound::sign);
            (*block, Cell::Number(format!("{sign}{}", number(Some(*value), scale).text())))
        });
        let without = arm.without.iter().map(|block| (*block, Cell::Number("no value".to_owned())));
        for (block, cell) in values.chain(without) {
            let row = rows.entry(block).or_insert_with(|| vec![Cell::Absent; metric.arms.len()]);
            row[column] = cell;
        }
    }
    let columns = metric.arms.iter().map(|arm| Column::of(arm.arm.as_str(), scale.unit));
    let mut table = Table::new([Column::key("Block")].into_iter().chain(columns).collect());
    table.rows = rows
        .into_iter()
        .map(|(block, values)| [vec![Cell::Text(block.saturating_add(1).to_string())], values].concat())
        .collect();
    table
}

/// Whether a metric has a picture: one without a value has none, and one that is 0 in all trials needs none.
pub(super) fn is_shown(metric: &MetricAnalysis) -> bool {
    metric.arms.iter().flat_map(|arm| &arm.values).any(|(_, value)| *value != 0.0)
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The unit of a workload's intervals, which are in bit/s: packets per second for packet workloads, whose payloads have one size.
fn scaled_intervals(workload: &WorkloadAnalysis) -> Scaled {
    let first = workload.arms.first().map(|arm| &arm.workload.traffic);
    let rates = || workload.arms.iter().flat_map(|arm| arm.intervals.iter().copied());
    let Some(bytes) = first.and_then(|traffic| traffic.facts().packet_bytes()) else {
        return scaled(netduel_model::metric::Metric::Throughput, rates());
    };
    let per_bit = 1.0 / 8.0 / bytes as f64;
    let scale = scaled_packets(rates().map(|bps| bps * per_bit));
    Scaled { factor: scale.factor * per_bit, unit: scale.unit }
}

/// The title of the distribution of a workload's intervals.
fn title_of_intervals(workload: &WorkloadAnalysis) -> &'static str {
    let of_packets = workload.arms.iter().any(|arm| !arm.packets.is_empty());
    if of_packets { "Packet rate distribution" } else { "Throughput distribution" }
}

/// Quantiles of the intervals of each arm that has any.
fn interval_table(workload: &WorkloadAnalysis, scale: Scaled) -> Table {
    let mut table = Table::new(vec![Column::key("Arm"), Column::number("intervals")]);
    table.columns.extend(
        ["min", "first quartile", "median", "third quartile", "max"]
            .map(|title| Column::of(title, scale.unit)),
    );
    for arm in workload.arms.iter().filter(|arm| !arm.intervals.is_empty()) {
        let quantiles = [0.0, 0.25, 0.5, 0.75, 1.0];
        let cells = quantiles.map(|q| number(summary::quantile(&arm.intervals, q), scale));
        let head = [Cell::from(arm.arm.as_str()), Cell::Count(arm.intervals.len() as u64)];
        table.rows.push(head.into_iter().chain(cells).collect());
    }
    table
}

/// Rates of all intervals of the steady windows; absent when no trial has one.
pub(super) fn all_intervals(workload: &WorkloadAnalysis) -> Option<Figure> {
    let scale = scaled_intervals(workload);
    let table = interval_table(workload, scale);
    let data = densities(workload, scale)?;
    Some(Figure {
        title: title_of_intervals(workload).to_owned(),
        reading: format!(
            "Share of the intervals of all steady windows, in bins of equal width on the axis; all valid trials together. Their median can differ \
             from the value of the arm, the median of the trials.{}",
            below_the_axis(workload, scale, "its first bin also holds")
        ),
        alternative: in_words(&table),
        chart: Chart::Plot(Plot::new("rates", data).with_panels(workload.arms.len())),
        data: Some(table),
        in_text: false,
    })
}

/// The same as cumulative distributions, which lie over each other on one pair of axes; absent when no trial has an interval.
pub(super) fn cumulative_intervals(workload: &WorkloadAnalysis) -> Option<Figure> {
    let scale = scaled_intervals(workload);
    let table = interval_table(workload, scale);
    if table.rows.is_empty() {
        return None;
    }
    let foot = logarithmic_foot(workload);
    let arms = workload.arms.iter().map(|arm| cumulative(&arm.intervals, foot, scale));
    let data = json!({ "unit": scale.unit, "log": foot.is_some(), "cumulative": arms.collect::<Vec<_>>() });
    Some(Figure {
        title: title_of_intervals(workload).to_owned(),
        reading: format!(
            "Share of the intervals of all steady windows at or below each rate; all valid trials together. A line further right is \
             faster.{}",
            below_the_axis(workload, scale, "at its left end also lie")
        ),
        alternative: in_words(&table),
        chart: Chart::Plot(Plot::new("cumulative", data)),
        data: Some(table),
        in_text: false,
    })
}

/// Rates with the share of all rates at or below each, percent. Rates below the foot of a logarithmic axis are shown at it.
fn cumulative(rates: &[f64], foot: Option<f64>, scale: Scaled) -> Vec<Value> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = |rate: f64| scale.plotted(foot.map_or(rate, |foot| rate.max(foot)));
    let last = sorted.len().saturating_sub(1);
    let steps = last.clamp(1, CUMULATIVE_STEPS);
    let at = |step: usize| {
        let index = step * last / steps;
        let rate = sorted.get(index)?;
        Some(json!([place(*rate), short((index + 1) as f64 * 100.0 / sorted.len() as f64)]))
    };
    let start = sorted.first().map(|rate| json!([place(*rate), 0]));
    start.into_iter().chain((0..=steps).filter_map(at)).collect()
}

/// The numbers of a plot as a table, for readers who cannot see the plot.
pub(super) fn in_words(table: &Table) -> String {
    table.rows.iter().map(|row| table.sentence(row)).collect::<Vec<_>>().join("; ")
}

/// The lower end of a logarithmic axis; absent when a linear axis is readable. Slower intervals count in the lowest bin, so that
/// a pause does not stretch the axis.
fn logarithmic_foot(workload: &WorkloadAnalysis) -> Option<f64> {
    let medians = workload.arms.iter().filter_map(|arm| summary::median(&arm.intervals));
    let (low, high) =
        medians.fold((f64::INFINITY, 0.0_f64), |(low, high), median| (low.min(median), high.max(median)));
    (low > 0.0 && low.is_finite() && high > low * RATES_FAR).then_some(low / RATES_BELOW_MEDIAN)
}

/// What stands at the lower end of a logarithmic axis besides its own values; empty when there is none.
fn below_the_axis(workload: &WorkloadAnalysis, scale: Scaled, place: &str) -> String {
    let Some(foot) = logarithmic_foot(workload) else { return String::new() };
    let below = |arm: &ArmAnalysis| {
        let all = arm.intervals.len();
        let below = arm.intervals.iter().filter(|rate| **rate < foot).count();
        let zero = arm.intervals.iter().filter(|rate| **rate == 0.0).count();
        (below > 0).then(|| format!("{} {below} of {all} ({zero} of them 0)", arm.arm))
    };
    let arms: Vec<String> = workload.arms.iter().filter_map(below).collect();
    if arms.is_empty() {
        return String::new();
    }
    let foot = number(Some(foot), scale).text();
    let unit = scale.unit;
    format!(" The axis begins at {foot} {unit}; {place} slower intervals: {}.", arms.join(", "))
}

/// Shares of the steady intervals of each arm in bins of equal width, common to all arms.
fn densities(workload: &WorkloadAnalysis, scale: Scaled) -> Option<Value> {
    let foot = logarithmic_foot(workload);
    let place = |rate: f64| foot.map_or(rate, |foot| rate.max(foot).ln());
    let rate_at = |place: f64| if foot.is_some() { place.exp() } else { place };
    let places = |arm: &ArmAnalysis| -> Vec<f64> { arm.intervals.iter().map(|rate| place(*rate)).collect() };
    let range = |places: &[f64]| {
        Some((places.iter().copied().reduce(f64::min)?, places.iter().copied().reduce(f64::max)?))
    };
    let (low, high) = range(&workload.arms.iter().flat_map(places).collect::<Vec<_>>())?;
    let spans = workload.arms.iter().filter_map(|arm| {
        let (low, high) = range(&places(arm))?;
        Some((high - low, arm.intervals.len() as f64))
    });
    // The bin width suits the number of samples of the most variable arm, as long as the arm that varies least fills several bins: in one
    // bin it would be a block of 100 %. It is wide enough for the maximum number of bins.
    let suits = spans.clone().map(|(span, count)| span / count.sqrt().clamp(6.0, 30.0)).fold(0.0, f64::max);
    let least = spans.map(|(span, _)| span / RATE_BINS_LEAST).filter(|width| *width > 0.0);
    let width =
        least.fold(suits, f64::min).max((high - low) / RATE_BINS_MAX as f64).max(high.abs() * 1e-6).max(1e-9);
    let arms = workload.arms.iter().map(|arm| {
        let mut counts = vec![0_u32; RATE_BINS_MAX + 1];
        for place in places(arm) {
            counts[(((place - low) / width) as usize).min(RATE_BINS_MAX)] += 1;
        }
        // Empty bins at both ends would only draw a line along zero.
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let edge = |bin: usize| short(rate_at(low + width * bin as f64) * scale.factor);
        let share = |bin: usize| short(f64::from(counts[bin]) * 100.0 / arm.intervals.len().max(1) as f64);
        (first..end).map(|bin| json!([edge(bin), edge(bin + 1), share(bin)])).collect::<Vec<_>>()
    });
    Some(json!({ "unit": scale.unit, "log": foot.is_some(), "density": arms.collect::<Vec<_>>() }))
}
