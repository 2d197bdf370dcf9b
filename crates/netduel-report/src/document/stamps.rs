//! Round-trip composition: bars, a table and notes. One-way delay is always shown with its error.
use netduel_model::stamps::{Clocks, MissingStamps, Part};
use netduel_model::units::human_nanos;
use netduel_stats::histogram::Histogram;

use super::block::Block;
use super::chart::{Bar, Bars, Chart, Figure, Paint, Segment};
use super::table::{Cell, Column, Table};
use crate::analysis::{Composition, OneWay, Stamps, WorkloadAnalysis};
use crate::words::percent;

/// The heading over the parts of round trips.
const TITLE: &str = "Round-trip composition";

/// The section of a workload; empty when no arm has timestamps.
pub(super) fn blocks(workload: &WorkloadAnalysis) -> Vec<Block> {
    let arms: Vec<(Stamped, &Stamps)> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let stamped = Stamped { name: arm.arm.to_string(), trials: u64::from(arm.trials) };
            Some((stamped, arm.stamps.as_ref()?))
        })
        .collect();
    if arms.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading(TITLE.to_owned())];
    blocks.extend(figure(&arms).map(|figure| Block::Figure(Box::new(figure))));
    blocks.push(Block::Table(table(&arms)));
    blocks
}

/// The section for a single trial.
pub(crate) fn of_trial(stamps: &Stamps) -> Vec<Block> {
    let one = [(Stamped { name: "value".to_owned(), trials: 1 }, stamps)];
    vec![Block::Heading(TITLE.to_owned()), Block::Table(table(&one))]
}

/// Two bars for each arm: its typical and its slowest round trips.
fn figure(arms: &[(Stamped, &Stamps)]) -> Option<Figure> {
    type Of = fn(&Stamps) -> Option<&Composition>;
    let groups: [(&str, Of); 2] =
        [("middle half", |stamps| stamps.typical.as_ref()), ("slowest 1 %", |stamps| stamps.slow.as_ref())];
    let mut bars = Bars::default();
    for (which, of) in groups {
        let group: Vec<(&str, &Composition)> =
            arms.iter().filter_map(|(arm, stamps)| Some((arm.name.as_str(), of(stamps)?))).collect();
        let longest = group.iter().map(|(_, composition)| composition.whole_ns).fold(1.0, f64::max);
        bars.rows.extend(group.into_iter().map(|(arm, composition)| bar(arm, which, composition, longest)));
    }
    let parts = Part::ALL.into_iter().filter(|part| {
        bars.rows.iter().flat_map(|bar| &bar.segments).any(|segment| segment.title == part.title())
    });
    bars.legend = parts.map(|part| (part.title().to_owned(), paint(part))).collect();
    (!bars.rows.is_empty()).then(|| Figure {
        title: String::new(),
        reading: "Parts of the time-stamped round trips. Each bar is the mean of the round trips named beside it and the sum of its \
                  parts. Bars with the same name have the same scale."
            .to_owned(),
        alternative: "the parts of round trips; the table below has the numbers".to_owned(),
        chart: Chart::Bars(bars),
        data: Some(percentiles(arms)),
        in_text: false,
    })
}

fn bar(arm: &str, which: &str, composition: &Composition, longest: f64) -> Bar {
    let segment = |(part, mean): &(Part, f64)| Segment {
        title: part.title().to_owned(),
        share: mean / longest,
        label: human_nanos(*mean),
        paint: paint(*part),
    };
    Bar {
        title: arm.to_owned(),
        detail: which.to_owned(),
        whole: human_nanos(composition.whole_ns),
        segments: composition.parts.iter().map(segment).collect(),
    }
}

/// Parts of the client are blue, of the server warm colours, of the network grey.
const fn paint(part: Part) -> Paint {
    match part {
        Part::ScheduleDelay => Paint::Waiting,
        Part::ClientSend => Paint::Class(1),
        Part::Network | Part::NetworkAndServer => Paint::Class(5),
        Part::ServerReceive => Paint::Class(3),
        Part::ServerProgram => Paint::Class(4),
        Part::ServerSend => Paint::Class(2),
        Part::ClientReceive => Paint::Class(0),
    }
}

/// Percentiles of every part.
fn percentiles(arms: &[(Stamped, &Stamps)]) -> Table {
    let mut table = Table::new(vec![Column::key("Arm"), Column::key("Part"), Column::number("round trips")]);
    table.columns.extend(["p50", "p90", "p99", "p99.9", "max"].map(Column::number));
    for (arm, stamps) in arms {
        for (title, histogram, error) in histograms(stamps) {
            let at = |percentile| {
                Cell::number(
                    histogram
                        .resolved_percentile(percentile)
                        .map(|value| format!("{}{error}", human_nanos(value as f64))),
                )
            };
            let head = [Cell::from(arm.name.as_str()), Cell::Text(title), Cell::Count(histogram.count())];
            table.rows.push(head.into_iter().chain([50.0, 90.0, 99.0, 99.9, 100.0].map(at)).collect());
        }
    }
    table
}

/// Title, histogram, and the error of each figure.
fn histograms(stamps: &Stamps) -> Vec<(String, &Histogram, String)> {
    let mut rows = Vec::new();
    for (part, histogram) in &stamps.parts {
        rows.push((part.title().to_owned(), histogram, String::new()));
    }
    for (part, histogram) in &stamps.server_parts {
        rows.push((format!("{}, by the server", part.title()), histogram, String::new()));
    }
    if let Some(one_way) = &stamps.one_way {
        let error = format!(" ± {}", error(one_way));
        rows.push(("one way, up".to_owned(), &one_way.up, error.clone()));
        rows.push(("one way, down".to_owned(), &one_way.down, error));
    }
    for (title, histogram) in [
        ("network and server, by the client's NIC", &stamps.hardware),
        ("held by the server, by its NIC", &stamps.server_hardware),
    ] {
        rows.extend(histogram.as_ref().map(|histogram| (title.to_owned(), histogram, String::new())));
    }
    rows
}

/// The sources of the timestamps, and the number of trials.
struct Stamped {
    name: String,
    trials: u64,
}

fn table(arms: &[(Stamped, &Stamps)]) -> Table {
    let columns = arms.iter().map(|(arm, _)| Column::number(arm.name.as_str()));
    let mut table = Table::new(
        [Column::key("mean of the middle half (of the slowest 1 %)")].into_iter().chain(columns).collect(),
    );
    let mut row = |title: &str, cell: &dyn Fn(&Stamps) -> Option<String>| {
        let cells: Vec<Option<String>> = arms.iter().map(|(_, stamps)| cell(stamps)).collect();
        if cells.iter().any(Option::is_some) {
            table
                .rows
                .push([Cell::from(title)].into_iter().chain(cells.into_iter().map(Cell::number)).collect());
        }
    };
    for part in Part::ALL {
        row(part.title(), &|stamps| typical_and_slow(stamps, |composition| mean_of(composition, part)));
    }
    row("total", &|stamps| typical_and_slow(stamps, |composition| Some(composition.whole_ns)));
    for part in Part::ALL {
        row(&format!("{}, p50 (p99), measured by the server", part.title()), &|stamps| {
            let (_, histogram) = stamps.server_parts.iter().find(|(known, _)| *known == part)?;
            Some(format!("{} ({})", at(histogram, 50.0), at(histogram, 99.0)))
        });
    }
    for (way, histogram) in [("up", (|one| &one.up) as fn(&OneWay) -> &Histogram), ("down", |one| &one.down)]
    {
        row(&format!("one way {way}, p50 (p99) ± error"), &|stamps| {
            let one_way = stamps.one_way.as_ref()?;
            let histogram = histogram(one_way);
            Some(format!("{} ({}) ± {}", at(histogram, 50.0), at(histogram, 99.0), error(one_way)))
        });
    }
    row("network and server by the client's NIC, p50 (p99)", &|stamps| {
        let histogram = stamps.hardware.as_ref()?;
        Some(format!("{} ({})", at(histogram, 50.0), at(histogram, 99.0)))
    });
    row("held by the server, by its NIC, p50 (p99)", &|stamps| {
        let histogram = stamps.server_hardware.as_ref()?;
        Some(format!("{} ({})", at(histogram, 50.0), at(histogram, 99.0)))
    });
    row("cost of a stamp, median", &|stamps| {
        let cost = stamps.cost?;
        // One trial has no range.
        if cost.min_ns >= cost.max_ns {
            return Some(signed(cost.median_ns));
        }
        Some(format!("{} ({} to {})", signed(cost.median_ns), signed(cost.min_ns), signed(cost.max_ns)))
    });
    row("stamped requests (complete)", &|stamps| {
        let share = stamps.complete as f64 / stamps.stamped.max(1) as f64;
        Some(format!("{} ({})", stamps.stamped, percent(share)))
    });
    row("inconsistent", &|stamps| Some(stamps.inconsistent.to_string()));
    table.notes = notes(arms);
    table
}

fn mean_of(composition: &Composition, part: Part) -> Option<f64> {
    composition.parts.iter().find(|(known, _)| *known == part).map(|(_, mean)| *mean)
}

fn typical_and_slow(stamps: &Stamps, of: impl Fn(&Composition) -> Option<f64>) -> Option<String> {
    let (typical, slow) = (stamps.typical.as_ref().and_then(&of)?, stamps.slow.as_ref().and_then(&of)?);
    Some(format!("{} ({})", human_nanos(typical), human_nanos(slow)))
}

fn at(histogram: &Histogram, percentile: f64) -> String {
    histogram.percentile(percentile).map_or_else(|| "-".to_owned(), |value| human_nanos(value as f64))
}

fn signed(nanos: f64) -> String {
    if nanos < 0.0 { format!("-{}", human_nanos(-nanos)) } else { human_nanos(nanos) }
}

/// The error of a one-way delay.
fn error(one_way: &OneWay) -> String {
    match one_way.error_ns {
        0 => "0".to_owned(),
        ns => human_nanos(ns as f64),
    }
}

fn notes(arms: &[(Stamped, &Stamps)]) -> Vec<String> {
    let mut notes = vec![
        "Parts are means over the middle half of the stamped round trips (in brackets: over their slowest 1 %); they add up to the total. \
         Only some requests are stamped; the metrics above cover the others. Cost of a stamp: difference of the medians by trial (min to max of several trials); \
         within the noise of the trials it can be negative."
            .to_owned(),
    ];
    let ways: Vec<&OneWay> = arms.iter().filter_map(|(_, stamps)| stamps.one_way.as_ref()).collect();
    if ways.iter().any(|one_way| one_way.clocks == Clocks::Estimated) {
        notes.push(
            "One way: the clock offset of the two hosts is estimated from the exchanges of each trial. An offset error makes one direction \
             longer and the other shorter by the same amount, at most by the error shown."
                .to_owned(),
        );
    } else if !ways.is_empty() {
        notes.push("One way: both ends use the same clock, so the error is 0.".to_owned());
    }
    notes
        .extend(arms.iter().filter_map(|(arm, stamps)| {
            missing(arm, stamps).map(|counts| format!("{}: {counts}", arm.name))
        }));
    notes
}

/// Missing timestamps of an arm. The server's last transmit timestamp of each trial is always missing, because it travels with
/// the next response.
fn missing(arm: &Stamped, stamps: &Stamps) -> Option<String> {
    let MissingStamps { client_transmit, client_receive, server_receive, server_transmit } = stamps.missing;
    let negative = stamps.one_way.as_ref().map_or(0, |one_way| one_way.negative);
    let server_transmit = if server_transmit > arm.trials { server_transmit } else { 0 };
    let counts: Vec<String> = [
        (client_transmit, "transmit stamps of the client are missing"),
        (client_receive, "receive stamps of the client are missing or belong to another segment"),
        (server_receive, "receive stamps of the server are missing or belong to another segment"),
        (server_transmit, "transmit stamps of the server are missing"),
        (stamps.clock_steps, "round trips were excluded because the wall clock was stepped"),
        (negative, "exchanges were below 0 in one direction and count as 0"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    (!counts.is_empty()).then(|| format!("{}.", counts.join(", ")))
}
