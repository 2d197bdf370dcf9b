//! Plots of round trips: percentiles, distribution, parts.
use netduel_model::metric::Metric;
use netduel_model::units::human_nanos;
use netduel_stats::histogram::Histogram;
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Plot};
use super::metric_plots::in_words;
use super::scale::{Scaled, number, scaled, short};
use super::table::{Cell, Column, Table};
use crate::analysis::{ArmAnalysis, WorkloadAnalysis};
use crate::words;

/// Bins of a density plot: enough for two modes, few enough that noise does not look like modes.
const DENSITY_BINS: usize = 70;

/// The percentiles of the table of round trips.
const PERCENTILES: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// How the percentiles of the table differ from those of the verdicts.
const POOLED: &str = "all round trips of all these trials together; the latency of a verdict is a median over the trials, so the two differ";

/// The unit of a workload's round trips, by their 99th percentile.
fn scaled_latency(workload: &WorkloadAnalysis) -> Scaled {
    let histograms = workload.arms.iter().filter_map(|arm| arm.latency.as_ref());
    let values = histograms.filter_map(|histogram| histogram.percentile(99.0)).map(|value| value as f64);
    scaled(Metric::LatencyP99, values)
}

/// Percentiles and distribution of the round trips; none without a round trip.
pub(super) fn distribution(workload: &WorkloadAnalysis) -> Vec<Figure> {
    if workload.arms.iter().all(|arm| arm.latency.is_none()) {
        return Vec::new();
    }
    let under_load = workload.arms.iter().any(|arm| arm.workload.traffic.facts().bulk.is_some());
    let left_out = without_stalled(workload);
    let titled = |title: &str| format!("{title}{}{left_out}", if under_load { " under load" } else { "" });
    let scale = scaled_latency(workload);
    let table = percentiles(workload, scale);
    let plot = |key: &str, of: &dyn Fn(&ArmAnalysis) -> Value| {
        let mut data = json!({ "unit": scale.unit });
        data[key] = workload.arms.iter().map(of).collect();
        data
    };
    let tail = plot("tail", &|arm| tail(arm, scale).into());
    let density =
        plot("density", &|arm| arm.latency.as_ref().map(|histogram| density(histogram, scale)).into());
    let omitted: Vec<String> =
        words::not_included(workload).iter().map(|note| format!(" Not included: {note}.")).collect();
    let omitted = omitted.concat();
    let alternative = format!("round trips of {}: {}", workload.name, in_words(&table));
    vec![
        Figure {
            title: titled("Latency percentiles"),
            reading: format!(
                "Latency by percentile, over the round trips of all valid trials together. Each step to the right divides the share of slower \
                 round trips by ten.{omitted}"
            ),
            alternative: alternative.clone(),
            chart: Chart::Plot(Plot::new("tail", tail)),
            data: Some(table),
            in_text: true,
        },
        Figure {
            title: titled("Latency distribution"),
            reading: format!(
                "Share of round trips in bins of equal width on the logarithmic axis, up to the 99.9th percentile.{omitted}"
            ),
            alternative,
            chart: Chart::Plot(Plot::new("density", density).with_panels(workload.arms.len())),
            // The percentiles beside it have its numbers.
            data: None,
            in_text: false,
        },
    ]
}

/// ` without 1 of 8 trials of a (stalled)`: the tail of an arm looks better without them; empty where none stalled.
fn without_stalled(workload: &WorkloadAnalysis) -> String {
    let stalled = workload.arms.iter().filter(|arm| !arm.stalled.is_empty());
    let left_out: Vec<String> =
        stalled.map(|arm| format!("{} of {} trials of {}", arm.stalled.len(), arm.trials, arm.arm)).collect();
    if left_out.is_empty() { String::new() } else { format!(" without {} (stalled)", left_out.join(", ")) }
}

/// The title of a percentile.
fn title(percentile: f64) -> String {
    match percentile {
        p if p <= 0.0 => "min".to_owned(),
        p if p >= 100.0 => "max".to_owned(),
        p => format!("p{p}"),
    }
}

/// Why percentiles of the table have no value; absent where each has one.
fn without_value(workload: &WorkloadAnalysis) -> Option<String> {
    let histograms = || workload.arms.iter().filter_map(|arm| arm.latency.as_ref());
    let is_missing =
        |p: &f64| histograms().any(|histogram: &Histogram| histogram.resolved_percentile(*p).is_none());
    let needed = |p: f64| format!("{}: {}", title(p), Histogram::samples_to_resolve(p));
    let missing: Vec<String> = PERCENTILES.into_iter().filter(is_missing).map(needed).collect();
    (!missing.is_empty()).then(|| {
        format!("no value (-): fewer round trips than the percentile needs ({})", missing.join(", "))
    })
}

fn percentiles(workload: &WorkloadAnalysis, scale: Scaled) -> Table {
    let mut table =
        Table::new(vec![Column::key("arm"), Column::number("trials"), Column::number("round trips")]);
    table.columns.extend(PERCENTILES.map(|percentile| Column::of(title(percentile), scale.unit)));
    for (arm, histogram) in workload.arms.iter().filter_map(|arm| Some((arm, arm.latency.as_ref()?))) {
        let values = PERCENTILES.map(|percentile| {
            number(histogram.resolved_percentile(percentile).map(|value| value as f64), scale)
        });
        let trials = Cell::Number(format!("{} of {}", arm.latency_trials, arm.trials));
        let head = [Cell::from(arm.arm.as_str()), trials, Cell::Count(histogram.count())];
        table.rows.push(head.into_iter().chain(values).collect());
    }
    table.notes.extend(without_value(workload));
    table.notes.push(POOLED.to_owned());
    table.notes.extend(words::few_round_trips(workload, &workload.judged));
    table.notes.extend(words::not_included(workload).iter().map(|note| format!("not included: {note}")));
    table
}

/// Share of round trips above a percentile, and the round trip. The maximum is at a share of one sample.
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

/// Shares of round trips in bins of equal width on a logarithmic axis, from the minimum to the 99.9th percentile.
fn density(histogram: &Histogram, scale: Scaled) -> Vec<Value> {
    let (Some(min), Some(top)) = (histogram.min(), histogram.percentile(99.9)) else { return Vec::new() };
    let (low, high) = ((min.max(1) as f64).ln(), (top as f64 + 1.0).ln());
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

/// Every part, with the arms of each: title, arm, histogram.
fn parts_of(workload: &WorkloadAnalysis) -> Vec<(&'static str, &ArmAnalysis, &Histogram)> {
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

/// The parts of round trips; absent for workloads without parts.
pub(super) fn parts(workload: &WorkloadAnalysis) -> Option<Figure> {
    let parts = parts_of(workload);
    if parts.is_empty() {
        return None;
    }
    let medians = parts.iter().filter_map(|(_, _, histogram)| histogram.percentile(50.0));
    let scale = scaled(Metric::LatencyP50, medians.map(|value| value as f64));
    let samples = if workload.has_connect_time() { "connections" } else { "samples" };
    let mut table = Table::new(vec![Column::key("part"), Column::key("arm"), Column::number(samples)]);
    // Parts differ by orders of magnitude: each value has its own unit. Values of one part have one.
    let is_one_part = parts.iter().all(|(title, ..)| *title == parts[0].0);
    let titles = ["p50", "p90", "p99", "p99.9", "max"];
    table.columns.extend(
        titles.map(|title| if is_one_part { Column::of(title, scale.unit) } else { Column::number(title) }),
    );
    let shown = |value: Option<f64>| {
        if is_one_part { number(value, scale) } else { Cell::number(value.map(human_nanos)) }
    };
    let mut rows = Vec::new();
    for (title, arm, histogram) in parts {
        let at = |percentile| histogram.resolved_percentile(percentile).map(|value| value as f64);
        let head = [title.into(), Cell::from(arm.arm.as_str()), Cell::Count(histogram.count())];
        let cells = [50.0, 90.0, 99.0, 99.9, 100.0].map(|percentile| shown(at(percentile)));
        table.rows.push(head.into_iter().chain(cells).collect());
        let plotted = |percentile| at(percentile).map(|value| scale.plotted(value));
        let position = workload.arms.iter().position(|other| other.arm == arm.arm);
        // Too few samples for a 99th percentile: the line ends at the maximum.
        let end = plotted(99.0).map_or((plotted(100.0), "max"), |end| (Some(end), "p99"));
        rows.push(json!({
            "part": title,
            "arm": position,
            "p50": plotted(50.0),
            "p99": end.0,
            "count": histogram.count(),
            "end": end.1,
        }));
    }
    table.notes = words::load_effects(workload);
    if !workload.has_connect_time() {
        table.notes.extend(words::not_included(workload).iter().map(|note| format!("not included: {note}")));
    }
    Some(Figure {
        title: words::parts_title(workload).to_owned(),
        reading: "Dot: median over all valid trials; line: to the 99th percentile, or to the maximum with fewer than 100 samples.".to_owned(),
        alternative: in_words(&table),
        chart: Chart::Plot(Plot::new("parts", json!({ "unit": scale.unit, "rows": rows }))),
        data: Some(table),
        in_text: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of a changed run file.
    #[test]
    fn longest_round_trip_may_be_the_largest_number() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        let bins = density(&histogram, Scaled { factor: 1.0, unit: "ns" });
        assert!(bins.len() == DENSITY_BINS && bins[0][2] == json!(100.0), "{bins:?}");
    }
}
