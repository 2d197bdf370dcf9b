//! Plots of a trial over time: rates, round trips, packets at both ends.
use netduel_model::metric::Metric;
use netduel_model::workload::{Traffic, Workload};
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Plot};
use super::scale::{Scaled, number, scaled, scaled_packets, short};
use super::table::{Cell, Column, Table};
use crate::analysis::{ArmAnalysis, PacketRates, SeriesPoint, WorkloadAnalysis};
use crate::words;

const READING: &str = "Line: median over the valid trials; band: min to max. Shaded time is excluded.";

/// A trial over time: rates, round trips, or both on one time axis. Absent when no trial has a point in time.
pub(super) fn within_a_trial(workload: &WorkloadAnalysis) -> Option<Figure> {
    let any = |is: fn(&Traffic) -> bool| workload.arms.iter().any(|arm| is(&arm.workload.traffic));
    if workload.arms.iter().any(|arm| !arm.packets.is_empty()) {
        return both_ends(workload);
    }
    let bulk = any(|traffic| traffic.facts().bulk.is_some());
    let round_trips = any(|traffic| traffic.facts().has_round_trips);
    let metric = if bulk { Metric::Throughput } else { Metric::LatencyP50 };
    let main: fn(&ArmAnalysis) -> &[SeriesPoint] = |arm| &arm.series;
    let latency: fn(&ArmAnalysis) -> &[SeriesPoint] = |arm| &arm.latency_series;
    let scale = scale_of(workload, metric, main);
    let mut table = series_table();
    add_rows(&mut table, workload, if bulk { "throughput" } else { "round trip p50" }, scale, main);
    let (kind, title, data) = match (bulk, round_trips) {
        (true, true) => {
            let of_latency = scale_of(workload, Metric::LatencyP50, latency);
            add_rows(&mut table, workload, "round trip p50", of_latency, latency);
            let data = json!({
                "rates": series(workload, scale, main), "round_trips": series(workload, of_latency, latency),
            });
            ("load", "Throughput and round trip p50 within a trial", data)
        }
        (true, false) => ("series", "Throughput within a trial", series(workload, scale, main)),
        (false, _) => ("series", "Round trip p50 within a trial", series(workload, scale, main)),
    };
    let omitted = match (bulk, round_trips) {
        (_, true) => " A trial without a round trip in an interval is not in its line and band.",
        (_, false) => " A trial whose samples do not cover an interval is not in its line and band.",
    };
    // Rates and round trips are two panels.
    let rows = if bulk && round_trips { 2 } else { 1 };
    (!table.rows.is_empty()).then(|| Figure {
        title: title.to_owned(),
        reading: format!("{READING}{omitted}"),
        alternative: range_in_words(workload, scale),
        chart: Chart::Plot(Plot::new(kind, data).with_rows(rows)),
        data: Some(table),
        in_text: false,
    })
}

fn scale_of(
    workload: &WorkloadAnalysis,
    metric: Metric,
    points: fn(&ArmAnalysis) -> &[SeriesPoint],
) -> Scaled {
    scaled(metric, workload.arms.iter().flat_map(|arm| points(arm).iter().map(|point| point.median)))
}

fn range_in_words(workload: &WorkloadAnalysis, scale: Scaled) -> String {
    let range = |arm: &ArmAnalysis| {
        let medians = || arm.series.iter().map(|point| point.median);
        let (low, high) = (medians().reduce(f64::min)?, medians().reduce(f64::max)?);
        let [low, high] = [low, high].map(|value| number(Some(value), scale).text());
        Some(format!("{} from {low} to {high} {}", arm.arm, scale.unit))
    };
    let arms: Vec<String> = workload.arms.iter().filter_map(range).collect();
    format!("time series of {} within a trial, median over trials: {}", workload.name, arms.join("; "))
}

fn series_table() -> Table {
    let mut table = Table::new(vec![
        Column::key("Arm"),
        Column::key("Series"),
        Column::of("Time", "s"),
        Column::number("trials"),
    ]);
    table.columns.extend(["median", "min", "max"].map(Column::number));
    table
}

fn add_rows(
    table: &mut Table,
    workload: &WorkloadAnalysis,
    what: &str,
    scale: Scaled,
    points: fn(&ArmAnalysis) -> &[SeriesPoint],
) {
    for arm in &workload.arms {
        table.rows.extend(points(arm).iter().map(|point| point_row(arm, what, point, scale)));
    }
}

fn point_row(arm: &ArmAnalysis, what: &str, point: &SeriesPoint, scale: Scaled) -> Vec<Cell> {
    let value = |value: f64| Cell::Number(format!("{} {}", number(Some(value), scale).text(), scale.unit));
    vec![
        Cell::from(arm.arm.as_str()),
        what.into(),
        Cell::Number(format!("{:.2}", point.time_s)),
        Cell::Count(u64::from(point.trials)),
        value(point.median),
        value(point.min),
        value(point.max),
    ]
}

fn points(series: &[SeriesPoint], scale: Scaled) -> Vec<Value> {
    let point = |point: &SeriesPoint| {
        json!([
            short(point.time_s),
            scale.plotted(point.median),
            scale.plotted(point.min),
            scale.plotted(point.max)
        ])
    };
    series.iter().map(point).collect()
}

fn series(workload: &WorkloadAnalysis, scale: Scaled, of: fn(&ArmAnalysis) -> &[SeriesPoint]) -> Value {
    let mut data = axis(workload, scale);
    data["arms"] = workload.arms.iter().map(|arm| points(of(arm), scale)).collect();
    data
}

/// Unit and time axis, with the excluded spans.
fn axis(workload: &WorkloadAnalysis, scale: Scaled) -> Value {
    let first = workload.arms.first().map(|arm| &arm.workload);
    json!({
        "unit": scale.unit,
        "duration_s": first.map(|settings| settings.timing.duration.as_secs_f64()),
        "cut": first.map(cut),
    })
}

/// The excluded spans of a trial (warm-up, cool-down), in seconds after the start, with their names.
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

/// Packets of both ends over time, one panel for each arm; absent without a point in time.
fn both_ends(workload: &WorkloadAnalysis) -> Option<Figure> {
    let ways = || {
        workload
            .arms
            .iter()
            .enumerate()
            .flat_map(|(index, arm)| arm.packets.iter().map(move |way| (index, arm, way)))
    };
    let all = ways().flat_map(|(_, _, way)| way.sent_series.iter().chain(&way.received_series));
    let scale = scaled_packets(all.map(|point| point.median));
    let median = |rates: Option<PacketRates>| {
        rates.map_or("not known".to_owned(), |rates| words::packet_rate(rates.median))
    };
    let rates: Vec<String> = ways()
        .map(|(_, arm, way)| {
            format!("{} sent {}, received {}", arm.arm, median(way.sent), median(way.received))
        })
        .collect();
    let mut table = series_table();
    for (_, arm, way) in ways() {
        for (what, series) in [("sent", &way.sent_series), ("received", &way.received_series)] {
            table.rows.extend(series.iter().map(|point| point_row(arm, what, point, scale)));
        }
    }
    let mut data = axis(workload, scale);
    data["ways"] = ways()
        .map(|(index, arm, way)| {
            json!({
                "arm": index,
                "direction": (arm.packets.len() > 1).then(|| words::direction(way.sender)),
                "ends": [points(&way.sent_series, scale), points(&way.received_series, scale)],
            })
        })
        .collect();
    (!table.rows.is_empty()).then(|| Figure {
        title: "Packets sent and received within a trial".to_owned(),
        reading: format!("{READING} Dashed: sent."),
        alternative: format!("packets per second of {} at both ends: {}", workload.name, rates.join("; ")),
        chart: Chart::Plot(Plot::new("ends", data).with_rows((ways().count() * 3).div_ceil(4))),
        data: Some(table),
        in_text: false,
    })
}
