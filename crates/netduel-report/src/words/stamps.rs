//! Where the time of round trips goes, as a table of texts and some sentences. One-way delay never stands without its error.
use netduel_model::stamps::{Clocks, MissingStamps, Part};
use netduel_model::units::human_nanos;
use netduel_stats::histogram::Histogram;

use super::text::percent;
use crate::analysis::{Composition, OneWay, Stamps, WorkloadAnalysis};

/// What the table of [`stamps`] is about.
pub const STAMPS_TITLE: &str = "Where a round trip's time goes (time stamps of both kernels)";

/// A table of texts: a column for each stamped arm.
#[derive(Debug, Clone)]
pub struct StampTable {
    /// Names of the arms.
    pub arms: Vec<String>,
    /// What the cells of a row are, and the cells by arm; empty where an arm has nothing.
    pub rows: Vec<(String, Vec<String>)>,
    /// How to read it, and what is missing.
    pub notes: Vec<String>,
}

/// The table of a workload; absent when no arm has stamps.
pub fn stamps(workload: &WorkloadAnalysis) -> Option<StampTable> {
    let arms: Vec<(Stamped, &Stamps)> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let stamped = Stamped { name: arm.arm.to_string(), trials: u64::from(arm.trials) };
            Some((stamped, arm.stamps.as_ref()?))
        })
        .collect();
    (!arms.is_empty()).then(|| table(&arms))
}

/// The same of one trial.
pub fn stamps_of_trial(stamps: &Stamps) -> StampTable {
    table(&[(Stamped { name: "the test".to_owned(), trials: 1 }, stamps)])
}

/// Whose stamps they are, and of how many trials.
struct Stamped {
    name: String,
    trials: u64,
}

fn table(arms: &[(Stamped, &Stamps)]) -> StampTable {
    let mut rows = Vec::new();
    let mut row = |title: &str, cell: &dyn Fn(&Stamps) -> Option<String>| {
        let cells: Vec<Option<String>> = arms.iter().map(|(_, stamps)| cell(stamps)).collect();
        if cells.iter().any(Option::is_some) {
            rows.push((title.to_owned(), cells.into_iter().map(Option::unwrap_or_default).collect()));
        }
    };
    for part in Part::ALL {
        row(part.title(), &|stamps| typical_and_slow(stamps, |composition| mean_of(composition, part)));
    }
    row("together", &|stamps| typical_and_slow(stamps, |composition| Some(composition.whole_ns)));
    for part in Part::ALL {
        row(&format!("{}, p50 (p99), counted there", part.title()), &|stamps| {
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
        Some(format!("{} ({} to {})", signed(cost.median_ns), signed(cost.min_ns), signed(cost.max_ns)))
    });
    row("stamped, split of them", &|stamps| {
        let share = stamps.complete as f64 / stamps.stamped.max(1) as f64;
        Some(format!("{}, {}", stamps.stamped, percent(share)))
    });
    row("does not add up", &|stamps| Some(stamps.inconsistent.to_string()));
    let names = arms.iter().map(|(arm, _)| arm.name.clone()).collect();
    StampTable { arms: names, rows, notes: notes(arms) }
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

/// How wrong a one-way delay may be.
pub fn error(one_way: &OneWay) -> String {
    match one_way.error_ns {
        0 => "0".to_owned(),
        ns => human_nanos(ns as f64),
    }
}

fn notes(arms: &[(Stamped, &Stamps)]) -> Vec<String> {
    let mut notes = vec![
        "Parts are means of the middle half of the stamped round trips (in brackets: of their slowest 1 %), and add up. Some requests \
         are stamped; the metrics above are of the others, and the cost of a stamp is the difference of the medians by trial (smallest \
         to largest)."
            .to_owned(),
    ];
    let ways: Vec<&OneWay> = arms.iter().filter_map(|(_, stamps)| stamps.one_way.as_ref()).collect();
    if ways.iter().any(|one_way| one_way.clocks == Clocks::Estimated) {
        notes.push(
            "One way: the offset of the two hosts' clocks is estimated from the exchanges of each trial and may be wrong by the error; then \
             one way is longer and the other shorter by as much."
                .to_owned(),
        );
    } else if !ways.is_empty() {
        notes.push("One way: both ends read one clock, so the error is 0.".to_owned());
    }
    notes.extend(
        arms.iter()
            .filter_map(|(arm, stamps)| missing(arm, stamps).map(|said| format!("{}: {said}", arm.name))),
    );
    notes
}

/// What an arm lacks; nothing when it lacks no more than the server's last transmit stamp of each trial, which travels with a next
/// response that never comes.
fn missing(arm: &Stamped, stamps: &Stamps) -> Option<String> {
    let MissingStamps { client_transmit, client_receive, server_receive, server_transmit } = stamps.missing;
    let negative = stamps.one_way.as_ref().map_or(0, |one_way| one_way.negative);
    let server_transmit = if server_transmit > arm.trials { server_transmit } else { 0 };
    let said: Vec<String> = [
        (client_transmit, "stamps of the client's sending are missing"),
        (client_receive, "stamps of the client's receiving are missing or another segment's"),
        (server_receive, "stamps of the server's receiving are missing or another segment's"),
        (server_transmit, "stamps of the server's sending are missing"),
        (stamps.clock_steps, "round trips were left out because the wall clock was stepped"),
        (negative, "exchanges came out below 0 one way and count as 0"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    (!said.is_empty()).then(|| format!("{}.", said.join(", ")))
}
