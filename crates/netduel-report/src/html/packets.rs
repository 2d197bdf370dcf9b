//! Packets: the page of a performance report (environment, test, results, commentary), and what a workload's section has of them.
use maud::{Markup, html};
use netduel_model::metric::Metric;
use netduel_model::run::Run;

use super::chart_data;
use super::charts::{self, Chart};
use crate::analysis::{Analysis, PacketRates, Sweep, SweptBy, WorkloadAnalysis};
use crate::words::{self, plain};

/// The page; nothing for a run without packets.
pub(super) fn page(run: &Run, analysis: &Analysis) -> Markup {
    let workloads: Vec<&WorkloadAnalysis> =
        analysis.workloads.iter().filter(|workload| is_of_packets(workload)).collect();
    let size = words::common_size(analysis);
    html! {
        @if !workloads.is_empty() {
            section id="packets" {
                h2 { "Packets per second" }
                p.reading { "Environment, test, results and commentary of the workloads that are about packets; each has its own section \
                             with both ends over time below." }
                h3 { "Environment" }
                (environment(run, analysis))
                h3 { "Test" }
                dl.facts { @for workload in &workloads {
                    dt { (workload.name) }
                    dd { @for said in words::test_description(workload) { p { (plain(&said)) } } }
                } }
                @let commands = words::testpmd_commands(analysis);
                @if !commands.is_empty() { pre { @for line in &commands { code { (plain(line)) } "\n" } } }
                h3 { "Results" }
                (results(&workloads))
                @for said in found(&workloads) { p { (plain(&said)) "." } }
                @for said in workloads.iter().flat_map(|workload| words::published(workload, size.as_deref())) {
                    p { (plain(&said)) "." }
                }
                div.charts { @for (index, sweep) in analysis.sweeps.iter().enumerate() { (bars(index, sweep, analysis)) } }
                h3 { "Commentary" }
                (commentary(analysis, &workloads))
            }
        }
    }
}

fn is_of_packets(workload: &WorkloadAnalysis) -> bool {
    workload.arms.iter().any(|arm| !arm.packets.is_empty())
}

fn environment(run: &Run, analysis: &Analysis) -> Markup {
    let hosts = words::environment_hosts(analysis);
    html! {
        div.scroll { table.hosts {
            thead { tr { th { "" } @for host in &hosts { th scope="col" { (host) } } } }
            tbody {
                @for (title, cells) in words::environment(analysis) {
                    tr { th scope="row" { (title) } @for cell in cells {
                        td { @if let Some(cell) = cell { (cell) } @else { span.absent { "not told" } } }
                    } }
                }
                tr { th scope="row" { "netduel" } @for _ in &hosts { td { (plain(&run.header.program)) } } }
            }
        } }
    }
}

fn results(workloads: &[&WorkloadAnalysis]) -> Markup {
    let rows = workloads.iter().flat_map(|workload| {
        let arms = workload.arms.iter().filter(|arm| arm.search.is_none());
        arms.flat_map(move |arm| arm.packets.iter().map(move |way| (workload, arm, way)))
    });
    let rate = |rate: Option<f64>| rate.map(words::packet_rate);
    html! {
        div.scroll { table {
            thead { tr {
                th { "Workload" } th { "Arm" } th.number { "Frame" } th.number { "Sent, mean" } th.number { "Received, mean" }
                th.number { "Loss" } th.number { "Trials" }
            } }
            tbody { @for (workload, arm, way) in rows {
                tr {
                    td.name { (workload.name) } td.name { (arm.arm) } td.number { (way.path.frame) " B" }
                    @for cell in [rate(way.sent.map(|rates| rates.mean)), rate(way.received.map(|rates| rates.mean)),
                        way.loss().map(words::percent)] {
                        td.number { @if let Some(cell) = cell { (cell) } @else { span.absent { "not told" } } }
                    }
                    td.number { (arm.trials) }
                }
            } }
        } }
    }
}

/// What searches found on each arm.
fn found(workloads: &[&WorkloadAnalysis]) -> Vec<String> {
    let searches = workloads.iter().filter(|workload| workload.arms.iter().any(|arm| arm.search.is_some()));
    let of_workload = |workload: &&WorkloadAnalysis| -> Vec<String> {
        let metrics = workload.judged.iter().chain(&workload.unjudged);
        let rates =
            metrics.filter(|metric| matches!(metric.metric, Metric::NoDropRate | Metric::PartialDropRate));
        rates
            .flat_map(|metric| metric.arms.iter().map(move |arm| (metric, arm)))
            .map(|(metric, arm)| {
                format!("{} of {}: {} {}", workload.name, arm.arm, metric.title(), words::value(metric, arm))
            })
            .collect()
    };
    searches.flat_map(of_workload).collect()
}

/// A bar for each point of a sweep, with the table of its numbers.
fn bars(index: usize, sweep: &Sweep, analysis: &Analysis) -> Markup {
    let rate = match sweep.search {
        Some(metric) => format!("Highest {}", metric.title()),
        None => "Packets received".to_owned(),
    };
    let (title, what) = match sweep.by {
        SweptBy::Frames => (format!("{rate} by size of frame: {}", sweep.name), "size"),
        SweptBy::Queues => (format!("{rate} by queues: {}", sweep.name), "queues"),
    };
    let published = chart_data::published(sweep, analysis);
    let scale = chart_data::scaled_sweep(sweep, published);
    let number = |value: Option<f64>| {
        value.map(|value| netduel_model::units::three_digits(value * scale.factor)).unwrap_or_default()
    };
    let said: Vec<String> = sweep
        .points
        .iter()
        .map(|point| {
            let received =
                point.received.map_or("not told".to_owned(), |rates| words::packet_rate(rates.mean));
            format!("{} {} {received}", point.arm, point.label)
        })
        .collect();
    html! {
        figure.chart.sweep {
            figcaption {
                b { (title) }
                span.reading { (reading(sweep))
                    @if published.is_some() { " Dashed: what was published of this size of machine." } }
            }
            div.plot role="img" aria-label={ (title) ": " (said.join("; ")) } data-chart="sweep" data-workload="0"
                data-index=(index) {}
            details { summary { "Data" } div.scroll { table {
                thead { tr { th { (what) } th { "Arm" } @for title in ["Sent, mean", "Received, mean", "Smallest trial", "Largest trial"] {
                    th.number { (title) ", " (scale.unit) } } th.number { "n" } } }
                tbody { @for point in &sweep.points { tr {
                    td { (point.label) } td { (point.arm) }
                    td.number { (number(point.sent.map(|rates| rates.mean))) }
                    td.number { (number(point.received.map(|rates| rates.mean))) }
                    td.number { (number(point.range.map(|range| range.0))) }
                    td.number { (number(point.range.map(|range| range.1))) }
                    td.number { (point.received.map_or(0, |rates| rates.trials)) }
                } } }
            } } }
        }
    }
}

fn reading(sweep: &Sweep) -> &'static str {
    match sweep.search {
        Some(_) => "Bar: mean of what the searches found; line: from the smallest to the largest.",
        None => {
            "Bar: mean received of the valid trials; line: from the smallest trial to the largest; tick: mean sent."
        }
    }
}

/// What limited each workload, and what its queues and cores say.
fn commentary(analysis: &Analysis, workloads: &[&WorkloadAnalysis]) -> Markup {
    html! {
        @for workload in workloads {
            @let limits = words::limits(workload);
            @if !limits.is_empty() {
                p.settings { b { (workload.name) } }
                ul { @for said in limits { li { (plain(&said)) } } }
            }
        }
        @for sentence in words::packets_commentary(analysis) { p { (plain(&sentence)) } }
    }
}

/// Both ends of each arm, in a workload's section.
pub(super) fn section(workload: &WorkloadAnalysis) -> Markup {
    let table = words::packets(workload);
    html! {
        @if let Some(table) = table {
            h3 { (words::PACKETS_TITLE) }
            div.scroll { table {
                thead { tr { @for (column, title) in table.header.iter().enumerate() {
                    th.number[(2..6).contains(&column)] { (title) }
                } } }
                tbody { @for row in &table.rows { tr { @for (column, cell) in row.iter().enumerate() {
                    td.number[(2..6).contains(&column)].name[column == 0] { (cell) }
                } } } }
            } }
            ul { @for note in &table.notes { li { (plain(note)) } } }
        }
    }
}

/// Packets of both ends within a trial, under each other for each arm.
pub(super) fn both_ends(index: usize, workload: &WorkloadAnalysis) -> Markup {
    let scale = chart_data::scaled_ends(workload);
    let ways = || workload.arms.iter().flat_map(|arm| arm.packets.iter().map(move |way| (arm, way)));
    let mean = |rates: Option<PacketRates>| {
        rates.map_or("not told".to_owned(), |rates| words::packet_rate(rates.mean))
    };
    let said: Vec<String> = ways()
        .map(|(arm, way)| format!("{} sent {}, received {}", arm.arm, mean(way.sent), mean(way.received)))
        .collect();
    let mut rows = Vec::new();
    for (arm, way) in ways() {
        for (end, series) in [("sent", &way.sent_series), ("received", &way.received_series)] {
            rows.extend(series.iter().map(|point| {
                let rates =
                    [point.median, point.min, point.max].map(|rate| charts::number(Some(rate), scale));
                [
                    arm.arm.to_string(),
                    end.to_owned(),
                    format!("{:.2}", point.time_s),
                    point.trials.to_string(),
                ]
                .into_iter()
                .chain(rates)
                .collect()
            }));
        }
    }
    let header = ["Arm", "End", "Time, s", "n"].map(str::to_owned).into_iter();
    let header =
        header.chain(["median", "smallest", "largest"].map(|title| format!("{title}, {}", scale.unit)));
    let chart = Chart {
        kind: "ends",
        workload: index,
        index: 0,
        title: "Packets sent and received within a trial".to_owned(),
        reading: "Line: median over the valid trials; band: from the smallest to the largest. Dashed: sent. Shaded time does not count."
            .to_owned(),
        label: format!("packets per second of {} at both ends: {}", workload.name, said.join("; ")),
    };
    charts::figure(&chart, &charts::table(header.collect(), rows))
}
