//! Timestamps in reports: parts that add up, delays with their error, and warnings.
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::HistogramRecord;
use netduel_model::stamps::{Clocks, MissingStamps, OneWayReport, Part, PartRecord, StampLevel, StampReport};
use netduel_model::warning::Warning;
use netduel_model::workload::Traffic;
use netduel_report::analysis::value_of;
use netduel_report::{analyse_run, document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::json;

/// Parts of a round trip of the baseline, nanoseconds; the other arm's network is faster.
const PARTS: [(Part, u64); 6] = [
    (Part::ClientSend, 4_000),
    (Part::Network, 20_000),
    (Part::ServerReceive, 6_000),
    (Part::ServerProgram, 200),
    (Part::ServerSend, 3_800),
    (Part::ClientReceive, 8_000),
];
const COUNT: u64 = 1_000;

fn record(count: u64, value: u64) -> HistogramRecord {
    HistogramRecord { count, min: value, max: value, pairs: vec![(value, count)] }
}

fn report(network: u64, clocks: Clocks) -> StampReport {
    let parts = PARTS.map(|(part, length)| (part, if part == Part::Network { network } else { length }));
    let whole: u64 = parts.iter().map(|(_, length)| length).sum();
    StampReport {
        stamped: COUNT + 1,
        complete: COUNT,
        missing: MissingStamps { server_transmit: 1, ..MissingStamps::default() },
        round_trip: Some(record(COUNT + 1, whole)),
        parts: parts
            .iter()
            .map(|(part, length)| PartRecord { part: *part, histogram: record(COUNT, *length) })
            .collect(),
        levels: vec![StampLevel {
            round_trip_max_ns: whole + 100,
            count: COUNT,
            sums_ns: parts.iter().map(|(_, length)| length * COUNT).collect(),
        }],
        one_way: Some(OneWayReport {
            up: record(COUNT, network / 2),
            down: record(COUNT, network / 2),
            error_ns: if clocks == Clocks::Shared { 0 } else { network / 2 + 10 },
            clocks,
            offset_ns: 0,
            drift_ppb: 0.0,
            negative: 0,
        }),
        ..StampReport::default()
    }
}

/// A run with timestamped round trips in these arms.
pub(crate) fn run(stamped: [bool; 2], change: impl Fn(&mut StampReport)) -> Run {
    let mut run = build(&Recipe { workloads: vec!["rr"], blocks: 3, ..Recipe::default() });
    for (arm, stamped) in run.header.plan.arms.iter_mut().zip(stamped) {
        if let Traffic::TcpRr(round_trip) = &mut arm.workloads[0].traffic {
            round_trip.timestamps = stamped;
        }
    }
    let arms: Vec<_> = run.header.plan.arms.iter().map(|arm| arm.name.clone()).collect();
    for trial in &mut run.trials {
        let index = arms.iter().position(|arm| *arm == trial.slot.arm).unwrap();
        if stamped[index] {
            let clocks = if trial.slot.block == 1 && index == 1 { Clocks::Estimated } else { Clocks::Shared };
            let mut report = report(if index == 0 { 20_000 } else { 7_000 }, clocks);
            change(&mut report);
            trial.client.as_mut().unwrap().report.stamps = Some(report);
        }
    }
    run
}

#[test]
fn every_format_shows_the_round_trip_composition() {
    let run = run([true, true], |_| ());
    insta::assert_snapshot!("stamps_terminal", terminal::report(&document(&run), 120, false));
    let markdown = markdown::page(&document(&run));
    assert!(
        markdown.contains("| network, both ways | 20.0 us (20.0 us) | 7.00 us (7.00 us) |"),
        "{markdown}"
    );
    assert!(markdown.contains("3.50 us (3.50 us) ± 3.51 us"), "{markdown}");
    let narrow = terminal::report(&document(&run), 60, false);
    assert!(narrow.contains("  - network, both ways: synthetic 20.0 us (20.0 us),"), "{narrow}");
    let page = html::page(&document(&run));
    for (part, _) in PARTS {
        assert!(page.contains(part.title()), "{part:?}");
    }
    assert!(page.contains("aria-label=\"synthetic middle half: 42.0 us "), "the bars have words");
}

#[test]
fn round_trip_parts_add_up_and_one_way_delay_has_its_worst_error() {
    let run = run([true, true], |_| ());
    let document = json::report(&run);
    let arms = document["workloads"][0]["arms"].as_array().unwrap();
    for (arm, whole, error) in [(&arms[0], 42_000.0, 0), (&arms[1], 29_000.0, 3_510)] {
        let stamps = &arm["stamps"];
        for which in ["middle_half", "slowest_hundredth"] {
            let parts = stamps[which]["parts"].as_array().unwrap();
            let sum: f64 = parts.iter().map(|part| part["mean_ns"].as_f64().unwrap()).sum();
            assert!(
                (sum - whole).abs() < 1e-6 && (stamps[which]["mean_ns"].as_f64().unwrap() - sum).abs() < 1e-6
            );
        }
        assert_eq!(stamps["one_way"]["error_ns"], error);
        assert_eq!(stamps["one_way"]["client_to_server"]["count"], 3 * COUNT);
        assert_eq!((&stamps["inconsistent"], &stamps["complete"]), (&0.into(), &(3 * COUNT).into()));
        assert_eq!(stamps["missing"]["server_transmit"], 3);
    }
    // If the clocks of one trial were estimated, the report does not claim a common clock.
    assert_eq!(arms[1]["stamps"]["one_way"]["clocks"], "estimated");
}

#[test]
fn stamped_round_trips_count_in_the_rate_only() {
    let plain = run([false, false], |_| ());
    let stamped = run([true, true], |_| ());
    let rate = |run: &Run| {
        let workload = &run.header.plan.arms[0].workloads[0];
        value_of(Metric::RoundTripRate, workload, &run.trials[0], true).unwrap()
    };
    let window_s = 4.3;
    assert!((rate(&stamped) - rate(&plain) - (COUNT + 1) as f64 / window_s).abs() < 1e-6);
    let percentile = |run: &Run| {
        let workload = &run.header.plan.arms[0].workloads[0];
        value_of(Metric::LatencyP99, workload, &run.trials[0], true)
    };
    assert_eq!(percentile(&stamped), percentile(&plain));
}

#[test]
fn unequal_and_missing_stamps_cause_warnings() {
    let warnings = |run: &Run| {
        let warnings = analyse_run(run).warnings;
        let of = |found: fn(&Warning) -> bool| warnings.iter().filter(|warning| found(warning)).count();
        (
            of(|warning| matches!(warning, Warning::TimestampsDiffer { .. })),
            of(|warning| matches!(warning, Warning::TimestampsIncomplete { .. })),
        )
    };
    assert_eq!(warnings(&run([true, true], |_| ())), (0, 0));
    assert_eq!(warnings(&run([false, false], |_| ())), (0, 0));
    assert_eq!(warnings(&run([true, false], |_| ())), (1, 0));
    assert_eq!(warnings(&run([true, true], |report| report.stamped += 200)), (0, 2));
}

/// Counts are an agent's or a run file's: wrong ones must not end the program.
#[test]
fn more_complete_than_stamped_round_trips_are_no_incomplete_ones() {
    let run = run([true, true], |report| report.complete = report.stamped + 1);
    let warnings = analyse_run(&run).warnings;
    assert!(!warnings.iter().any(|warning| matches!(warning, Warning::TimestampsIncomplete { .. })));
}
