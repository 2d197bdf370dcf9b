//! The section of a workload: where its difference comes from, and its charts, each with the table of its numbers.
use std::collections::BTreeMap;

use maud::{Markup, html};
use netduel_model::units::three_digits;
use netduel_stats::summary;

use super::chart_data::{self, Scaled};
use super::datagrams;
use crate::analysis::{ArmAnalysis, Counter, MetricAnalysis, SeriesPoint, Spread, WorkloadAnalysis};
use crate::words;

/// Classes of CPU time in the order in which a bar stacks them, as [`crate::analysis::CoreShare::classes`] has them.
const CPU_CLASSES: [&str; 5] = ["user", "system", "hard interrupt", "soft interrupt", "stolen"];

/// The percentiles of the table of round trips.
const PERCENTILES: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// Everything about one workload.
pub(super) fn workload(index: usize, workload: &WorkloadAnalysis) -> Markup {
    let (round_trips, bulk) = (chart_data::has_round_trips(workload), chart_data::has_bulk(workload));
    // A failover has a picture of its own, with the events, and so has a search, with its steps.
    let is_drawn = workload.arms.iter().any(|arm| arm.failover.is_some() || arm.search.is_some());
    html! {
        section.workload {
            h2 { (workload.name) }
            @for (arm, settings) in settings(workload) {
                p.settings { @if let Some(arm) = arm { b { (arm) } ": " } (settings) }
            }
            (super::limits::of(workload))
            (origin(workload))
            (super::stamps::section(workload))
            (super::failover::section(workload)) (super::search::section(workload))
            (super::packets::section(workload))
            (datagrams::of(workload)) (super::limits::queues(workload)) (placements(workload))
            div.charts {
                @for (position, metric) in workload.judged.iter().enumerate() {
                    (figure(&Chart {
                        kind: "blocks", workload: index, index: position,
                        title: format!("{} by block", capital(metric.title())),
                        reading: "A line joins the arms of one block: they ran within moments of each other.".to_owned(),
                        label: blocks_label(workload, metric),
                    }, &blocks_table(metric)))
                }
                @if !is_drawn { (within_a_trial(index, workload, round_trips, bulk)) }
                @if round_trips {
                    (figure(&Chart {
                        kind: "tail", workload: index, index: 0,
                        title: if bulk { "Round trips under load, the tail" } else { "Round trips, the tail" }.to_owned(),
                        reading: "Share of round trips that took no longer. Every step to the right is ten times rarer.".to_owned(),
                        label: tail_label(workload),
                    }, &tail_table(workload)))
                    (figure(&Chart {
                        kind: "density", workload: index, index: 0,
                        title: if bulk { "Round trips under load, all of them" } else { "Round trips, all of them" }.to_owned(),
                        reading: "Share of round trips in bins of equal width on the logarithmic axis, up to the 99.9th percentile."
                            .to_owned(),
                        label: tail_label(workload),
                    }, &tail_table(workload)))
                } @else if !is_drawn {
                    (all_intervals(index, workload))
                }
                @if chart_data::has_parts(workload) {
                    (figure(&Chart {
                        kind: "parts", workload: index, index: 0,
                        title: words::parts_title(workload).to_owned(),
                        reading: "Dot: median of all valid trials together; line: to the 99th percentile.".to_owned(),
                        label: words::parts(workload).join(". "),
                    }, &parts_table(workload)))
                }
                @for machine in 0..chart_data::machine_count(workload) {
                    (figure(&Chart {
                        kind: "cores", workload: index, index: machine,
                        title: format!("CPU by core: {}", machine_title(workload, machine)),
                        reading: "Share of the time of all valid trials that each core spent in each class; the rest is idle.".to_owned(),
                        label: "CPU time by core, class and arm; the numbers are in the table beneath".to_owned(),
                    }, &cores_table(workload, machine)))
                }
            }
            @if !workload.unjudged.is_empty() { (also_measured(workload)) }
        }
    }
}

/// Rates of all intervals of the steady windows.
fn all_intervals(index: usize, workload: &WorkloadAnalysis) -> Markup {
    let of_packets = chart_data::is_of_packets(workload);
    let title = if of_packets { "Packets received in all intervals" } else { "Throughput of all intervals" };
    let chart = Chart {
        kind: "rates",
        workload: index,
        index: 0,
        title: title.to_owned(),
        reading:
            "Share of the intervals of all steady windows, in bins of equal width; all valid trials together."
                .to_owned(),
        label: series_label(workload),
    };
    figure(&chart, &intervals_table(workload))
}

/// The course of a trial: one chart, or throughput and round trips under each other on one axis of time.
fn within_a_trial(index: usize, workload: &WorkloadAnalysis, round_trips: bool, bulk: bool) -> Markup {
    let reading = "Line: median over the valid trials; band: from the smallest to the largest. Shaded time does not count.";
    if chart_data::is_of_packets(workload) {
        return super::packets::both_ends(index, workload);
    }
    let both = bulk && round_trips;
    let chart = Chart {
        kind: if both { "load" } else { "series" },
        workload: index,
        index: 0,
        title: match (bulk, round_trips) {
            (true, true) => "Throughput and round trip p50 within a trial",
            (true, false) => "Throughput within a trial",
            (false, _) => "Round trip p50 within a trial",
        }
        .to_owned(),
        reading: reading.to_owned(),
        label: series_label(workload),
    };
    let scale = chart_data::scaled_series(workload);
    let mut data = series_table(workload, scale, |arm| &arm.series);
    if both {
        let latency = chart_data::scaled_latency_series(workload);
        data = html! { (data) (series_table(workload, latency, |arm| &arm.latency_series)) };
    }
    figure(&chart, &data)
}

/// The settings in words: once when all arms agree, else by arm.
fn settings(workload: &WorkloadAnalysis) -> Vec<(Option<String>, String)> {
    let all: Vec<(Option<String>, String)> =
        workload.arms.iter().map(|arm| (Some(arm.arm.to_string()), words::workload(&arm.workload))).collect();
    match all.first() {
        Some((_, first)) if all.iter().all(|(_, other)| other == first) => vec![(None, first.clone())],
        _ => all,
    }
}

fn origin(workload: &WorkloadAnalysis) -> Markup {
    html! {
        @if !workload.explanation.is_empty() {
            h3 { "What the counters say, medians of the trials" }
            ul.explanation { @for sentence in &workload.explanation { li { (words::plain(sentence)) } } }
        }
        @if !workload.counters.is_empty() {
            details {
                summary { "Counters per unit of work" }
                div.scroll { table {
                    thead { tr { th { "Median over valid trials [range]" }
                        @for arm in &workload.arms { th.number scope="col" { (arm.arm) } } } }
                    tbody { @for counter in &workload.counters {
                        tr { th scope="row" { (counter.title) }
                            @for (_, spread) in &counter.arms { td.number { (counted(counter, spread.as_ref())) } } }
                    } }
                } }
            }
        }
    }
}

fn counted(counter: &Counter, spread: Option<&Spread>) -> String {
    match spread {
        Some(spread) => format!(
            "{} [{}, {}] (n {})",
            counter.human(spread.median),
            counter.human(spread.min),
            counter.human(spread.max),
            spread.trials
        ),
        None => "not counted".to_owned(),
    }
}

/// A chart: what the script draws, and what a reader who does not see it is told.
pub(super) struct Chart {
    pub(super) kind: &'static str,
    pub(super) workload: usize,
    pub(super) index: usize,
    pub(super) title: String,
    pub(super) reading: String,
    pub(super) label: String,
}

pub(super) fn figure(chart: &Chart, table: &Markup) -> Markup {
    html! {
        figure class={ "chart " (chart.kind) } {
            figcaption {
                b { (chart.title) }
                span.reading { (chart.reading) }
                @if chart.kind == "cores" {
                    span.legend { @for (class, name) in CPU_CLASSES.iter().enumerate() {
                        span { i style={ "background:var(--class-" (class) ")" } {} (name) }
                    } }
                }
            }
            div.plot role="img" aria-label=(chart.label) data-chart=(chart.kind) data-workload=(chart.workload) data-index=(chart.index) {}
            details { summary { "Data" } div.scroll { (table) } }
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn blocks_label(workload: &WorkloadAnalysis, metric: &MetricAnalysis) -> String {
    let arms: Vec<String> =
        metric.arms.iter().map(|arm| format!("{} {}", arm.arm, words::value(metric, arm))).collect();
    format!("{} of {} by block: {}", metric.title(), workload.name, arms.join("; "))
}

fn blocks_table(metric: &MetricAnalysis) -> Markup {
    let scale = chart_data::scaled_values(metric);
    let mut rows: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::new();
    for (column, arm) in metric.arms.iter().enumerate() {
        for (block, value) in &arm.values {
            let row = rows.entry(*block).or_insert_with(|| vec![None; metric.arms.len()]);
            row[column] = Some(*value);
        }
    }
    let header = std::iter::once("Block".to_owned())
        .chain(metric.arms.iter().map(|arm| format!("{}, {}", arm.arm, scale.unit)))
        .collect();
    let rows = rows
        .into_iter()
        .map(|(block, values)| {
            std::iter::once((block + 1).to_string())
                .chain(values.into_iter().map(|value| number(value, scale)))
                .collect()
        })
        .collect();
    table(header, rows)
}

fn intervals_table(workload: &WorkloadAnalysis) -> Markup {
    let scale = chart_data::scaled_intervals(workload);
    let header = ["Arm", "n", "smallest", "quarter", "median", "three quarters", "largest"]
        .into_iter()
        .enumerate()
        .map(|(column, title)| if column < 2 { title.to_owned() } else { format!("{title}, {}", scale.unit) })
        .collect();
    let rows = workload
        .arms
        .iter()
        .map(|arm| {
            let quantiles = [0.0, 0.25, 0.5, 0.75, 1.0];
            [arm.arm.to_string(), arm.intervals.len().to_string()]
                .into_iter()
                .chain(quantiles.map(|q| number(summary::quantile(&arm.intervals, q), scale)))
                .collect()
        })
        .collect();
    table(header, rows)
}

fn series_label(workload: &WorkloadAnalysis) -> String {
    let scale = chart_data::scaled_series(workload);
    let arms: Vec<String> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let medians: Vec<f64> = arm.series.iter().map(|point| point.median).collect();
            let (low, high) =
                (medians.iter().copied().reduce(f64::min)?, medians.iter().copied().reduce(f64::max)?);
            Some(format!(
                "{} from {} to {} {}",
                arm.arm,
                number(Some(low), scale),
                number(Some(high), scale),
                scale.unit
            ))
        })
        .collect();
    format!("course of {} within a trial, median over trials: {}", workload.name, arms.join("; "))
}

fn series_table(
    workload: &WorkloadAnalysis,
    scale: Scaled,
    points: impl Fn(&ArmAnalysis) -> &Vec<SeriesPoint>,
) -> Markup {
    let header = std::iter::once("Arm".to_owned())
        .chain(["Time, s".to_owned(), "n".to_owned()])
        .chain(["median", "smallest", "largest"].map(|title| format!("{title}, {}", scale.unit)))
        .collect();
    let rows = workload
        .arms
        .iter()
        .flat_map(|arm| {
            points(arm).iter().map(|point| {
                vec![
                    arm.arm.to_string(),
                    format!("{:.2}", point.time_s),
                    point.trials.to_string(),
                    number(Some(point.median), scale),
                    number(Some(point.min), scale),
                    number(Some(point.max), scale),
                ]
            })
        })
        .collect();
    table(header, rows)
}

fn tail_label(workload: &WorkloadAnalysis) -> String {
    let scale = chart_data::scaled_latency(workload);
    let arms: Vec<String> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let histogram = arm.latency.as_ref()?;
            let at = |percentile| number(histogram.percentile(percentile).map(|value| value as f64), scale);
            Some(format!("{} p50 {}, p99 {}, p99.9 {} {}", arm.arm, at(50.0), at(99.0), at(99.9), scale.unit))
        })
        .collect();
    format!("round trips of {}: {}", workload.name, arms.join("; "))
}

fn tail_table(workload: &WorkloadAnalysis) -> Markup {
    let scale = chart_data::scaled_latency(workload);
    let header = std::iter::once("Percentile".to_owned())
        .chain(workload.arms.iter().map(|arm| {
            let count = arm.latency.as_ref().map_or(0, netduel_stats::histogram::Histogram::count);
            format!("{}, {} (n {count})", arm.arm, scale.unit)
        }))
        .collect();
    let rows = PERCENTILES
        .into_iter()
        .map(|percentile| {
            let values = workload.arms.iter().map(|arm| {
                number(
                    arm.latency
                        .as_ref()
                        .and_then(|histogram| histogram.percentile(percentile))
                        .map(|value| value as f64),
                    scale,
                )
            });
            let name = match percentile {
                p if p <= 0.0 => "smallest".to_owned(),
                p if p >= 100.0 => "largest".to_owned(),
                p => format!("{p} %"),
            };
            std::iter::once(name).chain(values).collect()
        })
        .collect();
    table(header, rows)
}

fn parts_table(workload: &WorkloadAnalysis) -> Markup {
    let scale = chart_data::scaled_parts(workload);
    let header = ["Part", "Arm", "n"]
        .map(str::to_owned)
        .into_iter()
        .chain(["p50", "p90", "p99", "p99.9"].map(|title| format!("{title}, {}", scale.unit)))
        .collect();
    let rows = chart_data::parts_of(workload)
        .into_iter()
        .map(|(title, arm, histogram)| {
            let at = |percentile| number(histogram.percentile(percentile).map(|value| value as f64), scale);
            [title.to_owned(), arm.arm.to_string(), histogram.count().to_string()]
                .into_iter()
                .chain([50.0, 90.0, 99.0, 99.9].map(at))
                .collect()
        })
        .collect();
    table(header, rows)
}

fn machine_title(workload: &WorkloadAnalysis, index: usize) -> String {
    workload
        .arms
        .iter()
        .find_map(|arm| arm.machines.get(index))
        .map(|machine| machine.title.clone())
        .unwrap_or_default()
}

/// Nothing where no end chose its cores.
fn placements(workload: &WorkloadAnalysis) -> Markup {
    let said = words::placements(workload);
    html! {
        @if !said.is_empty() {
            h3 { (words::PLACEMENTS_TITLE) }
            ul { @for placement in said { li { (words::plain(&placement)) } } }
        }
    }
}

fn cores_table(workload: &WorkloadAnalysis, index: usize) -> Markup {
    let header = [
        "Arm",
        "Core",
        "user, %",
        "system, %",
        "hard interrupt, %",
        "soft interrupt, %",
        "stolen, %",
        "idle, %",
    ]
    .map(str::to_owned)
    .to_vec();
    let rows = workload
        .arms
        .iter()
        .filter_map(|arm| Some((arm, arm.machines.get(index)?)))
        .flat_map(|(arm, machine)| machine.cores.iter().map(move |core| (arm, core)))
        .map(|(arm, core)| {
            let shares = core.classes().into_iter().map(|(_, share)| share).chain([core.idle]);
            [arm.arm.to_string(), core.core.to_string()]
                .into_iter()
                .chain(shares.map(|share| format!("{:.1}", share * 100.0)))
                .collect()
        })
        .collect();
    table(header, rows)
}

/// Metrics that no verdict is about, so that nobody takes a wide look for a test.
fn also_measured(workload: &WorkloadAnalysis) -> Markup {
    let header = std::iter::once("Metric".to_owned())
        .chain(workload.arms.iter().map(|arm| arm.arm.to_string()))
        .collect();
    let rows = workload
        .unjudged
        .iter()
        .map(|metric| {
            std::iter::once(metric.title().to_owned())
                .chain(metric.arms.iter().map(|arm| words::value(metric, arm)))
                .collect()
        })
        .collect();
    html! { details { summary { "Also measured, not judged" } div.scroll { (table(header, rows)) } } }
}

pub(super) fn number(value: Option<f64>, scale: Scaled) -> String {
    value.map(|value| three_digits(value * scale.factor)).unwrap_or_default()
}

/// A plain table: texts left, numbers right.
pub(super) fn table(header: Vec<String>, rows: Vec<Vec<String>>) -> Markup {
    let is_number =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-') || text.is_empty();
    html! {
        table {
            thead { tr { @for title in header { th scope="col" { (title) } } } }
            tbody { @for row in rows { tr { @for cell in row { td class=[is_number(&cell).then_some("number")] { (cell) } } } } }
        }
    }
}
