//! No output contains a non-number (NaN, infinity), whatever the records contain.
use netduel_model::failover::PathEventRecord;
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::{HistogramRecord, ZeroCopyReport};
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_report::analysis::value_of;
use netduel_report::{analyse_run, csv, document, html, markdown, terminal};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::builder::{Recipe, build};
use crate::{failover, json};

/// Every output of a run, the page without its scripts.
fn outputs(run: &Run) -> Vec<(&'static str, String)> {
    let page = html::page(&document(run));
    let (before, data) = page.split_once("type=\"application/json\">").unwrap();
    let (_, body) = before.split_once("</style>").unwrap();
    vec![
        ("terminal", terminal::report(&document(run), 100, false)),
        ("markdown", markdown::page(&document(run))),
        ("json", json::report(run).to_string()),
        ("csv", csv::trials(run)),
        ("page", body.to_owned()),
        ("chart data", data.split_once("</script>").unwrap().0.to_owned()),
    ]
}

fn assert_sense(run: &Run) {
    for (format, text) in outputs(run) {
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            assert!(
                !["nan", "inf", "infx", "nanx", "undefined", "infinity"]
                    .contains(&word.to_lowercase().as_str()),
                "{format} says `{word}`"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_contains_nan_or_infinity(
        blocks in 0_u32..12,
        effect in prop_oneof![Just(1.0), 0.01_f64..50.0],
        noise in prop_oneof![Just(0.0), 0.0_f64..1.2],
        loss in prop_oneof![Just([0.0, 0.0]), Just([1.0, 0.0]), Just([1.0, 1.0]), [0.0_f64..0.9, 0.0_f64..0.9]],
        failed in proptest::collection::vec((0_u32..12, 0_usize..2), 0..6),
        wrong_path in proptest::collection::vec((0_u32..12, 0_usize..2), 0..3),
        workload in prop_oneof![Just("bulk"), Just("udp"), Just("rr"), Just("open")],
        seed in any::<u64>(),
    ) {
        let recipe = Recipe { blocks, effect, noise, loss, failed, wrong_path, workloads: vec![workload], seed, ..Recipe::default() };
        assert_sense(&build(&recipe));
    }
}

#[test]
fn empty_records_give_no_figures() {
    let mut run = build(&Recipe::default());
    for trial in &mut run.trials {
        trial.proofs.clear();
        for end in [&mut trial.client, &mut trial.server] {
            let end = end.as_mut().unwrap();
            end.observation = netduel_model::observation::Observation::default();
            for flow in [&mut end.report.sent, &mut end.report.received].into_iter().flatten() {
                *flow = netduel_model::sample::Flow::default();
            }
            end.report.datagrams =
                end.report.datagrams.take().map(|_| netduel_model::sample::DatagramReport::default());
            if let Some(round_trips) = &mut end.report.round_trips {
                round_trips.histogram = HistogramRecord::default();
                round_trips.series.clear();
                round_trips.responses = 0;
            }
        }
    }
    assert_sense(&run);
    let analysis = analyse_run(&run);
    assert!(
        analysis
            .workloads
            .iter()
            .flat_map(|workload| &workload.judged)
            .flat_map(|metric| &metric.arms)
            .all(|arm| arm.values.is_empty())
    );
}

#[test]
fn single_arm_without_trials_is_printed() {
    let mut run = build(&Recipe::default());
    run.header.plan.arms.truncate(1);
    assert_sense(&run);
    run.trials.clear();
    assert_sense(&run);
    run.header.plan.workloads.clear();
    assert_sense(&run);
}

/// Numbers that are added to others: times of cores and processes, datagrams, blocks.
const NUMBERS: [&str; 5] = [
    "/slot/block",
    "/observation/cores/",
    "/observation/process/",
    "/process_cpu_ns/",
    "/datagrams/duplicates",
];

/// The places of all numbers of a record, of lists in their first element only.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(values) => {
            values.iter().take(1).for_each(|value| numbers(value, &format!("{at}/0"), found));
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| numbers(value, &format!("{at}/{}", key.replace('/', "~1")), found)),
        _ => {}
    }
}

/// The records with one number each that is the largest of its type.
fn with_largest_numbers<T: Serialize + DeserializeOwned>(record: &T) -> impl Iterator<Item = T> {
    let (value, mut found) = (serde_json::to_value(record).unwrap(), Vec::new());
    numbers(&value, "", &mut found);
    found.retain(|at| NUMBERS.iter().any(|part| at.contains(part)));
    found.into_iter().map(move |at| {
        let of = |largest: u64| {
            let mut value = value.clone();
            *value.pointer_mut(&at).unwrap() = largest.into();
            serde_json::from_value(value).ok()
        };
        let types = [u64::MAX, i64::MAX as u64, u32::MAX.into(), u16::MAX.into(), u8::MAX.into()];
        types.into_iter().find_map(of).unwrap_or_else(|| panic!("{at} takes no number"))
    })
}

/// A run file may be from elsewhere, and agents send what is in it.
#[test]
fn times_counts_and_blocks_may_be_the_largest_numbers() {
    let runs = ["bulk", "rr", "open", "udp", "crr", "load"]
        .map(|kind| build(&Recipe { blocks: 1, workloads: vec![kind], ..Recipe::default() }));
    let stamped = crate::stamps::run([true, true], |_| {});
    for mut run in runs.into_iter().chain([stamped]) {
        run.trials.truncate(2);
        let trials = with_largest_numbers(&run.trials[0])
            .map(|trial| Run { trials: vec![trial, run.trials[1].clone()], ..run.clone() });
        for run in trials {
            let document = document(&run);
            assert!(!terminal::report(&document, 100, false).is_empty());
            assert!(!csv::trials(&run).is_empty());
            json::report(&run);
        }
    }
}

/// Connections, and directions, of which each has the largest numbers.
#[test]
fn sums_of_the_largest_numbers_end_no_output() {
    let mut bulk = build(&Recipe { blocks: 1, workloads: vec!["bulk"], ..Recipe::default() });
    for trial in &mut bulk.trials {
        let streams = &mut trial.client.as_mut().unwrap().report.streams;
        let tcp = streams[0].tcp.as_mut().unwrap();
        (tcp.busy_us, tcp.rwnd_limited_us) = (Some(u64::MAX), Some(u64::MAX));
        let other = streams[0].clone();
        streams.push(other);
        let (sends, completions, copied, deferred) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            end.report.zero_copy = Some(ZeroCopyReport { sends, completions, copied, deferred });
        }
    }
    let mut udp = build(&Recipe { blocks: 1, workloads: vec!["udp"], ..Recipe::default() });
    for trial in &mut udp.trials {
        let (client, server) = (trial.client.as_mut().unwrap(), trial.server.as_mut().unwrap());
        client.report.datagrams.clone_from(&server.report.datagrams);
        server.report.sent.clone_from(&client.report.sent);
        for end in [client, server] {
            end.report.sent.as_mut().unwrap().messages = u64::MAX;
            let count = end.report.datagrams.as_mut().unwrap();
            (count.duplicates, count.outside_window) = (u64::MAX, u64::MAX);
            for counter in ["Ip.ReasmReqds", "Ip6.ReasmReqds", "Ip.FragCreates", "Ip6.FragCreates"] {
                end.observation.protocol.insert(counter.to_owned(), i64::MAX);
            }
        }
    }
    for run in [bulk, udp] {
        let document = document(&run);
        assert!(!terminal::report(&document, 100, false).is_empty());
        assert!(!csv::trials(&run).is_empty());
        json::report(&run);
    }
}

#[test]
fn longest_duration_of_a_changed_run_file_ends_no_analysis() {
    let mut run = build(&Recipe { blocks: 1, workloads: vec!["bulk"], ..Recipe::default() });
    for arm in &mut run.header.plan.arms {
        arm.workloads[0].timing.duration.0 = u64::MAX;
    }
    assert_eq!(analyse_run(&run).trials_valid, 2);
}

#[test]
fn very_many_warnings_of_a_run_file_are_reported() {
    let mut run = build(&Recipe::default());
    let host = run.header.plan.arms[0].pair.client.clone();
    let failed = |number: u32| Warning::UndoFailed {
        host: host.clone(),
        detail: format!("change {number}"),
        reports: 1,
    };
    run.warnings = (0..100_000).chain([7]).map(failed).collect();
    let analysis = analyse_run(&run);
    let of_the_run = analysis.warnings.iter().filter_map(|warning| match warning {
        Warning::UndoFailed { reports, .. } => Some(*reports),
        _ => None,
    });
    let reports: Vec<_> = of_the_run.collect();
    assert_eq!((reports.len(), reports[6], reports[7], reports[8]), (100_000, 1, 2, 1));
    run.warnings.truncate(5_000);
    assert!(markdown::page(&document(&run)).contains("change 4999"));
}

#[test]
fn events_that_the_plan_does_not_have_change_no_figure() {
    let probes = || failover::probes(1000..1012);
    let mut trial = failover::trial("surprise", probes(), probes(), |_| 20_000_000);
    let plan = failover::plan();
    let workload = &plan.arms[0].workloads[0];
    let outage = |trial: &Trial| value_of(Metric::Outage, workload, trial, true);
    let expected = outage(&trial);
    assert!(expected.is_some());
    let events = &mut trial.lab_events.as_mut().unwrap().events;
    let last = events.last().unwrap().clone();
    events.extend((2..200_000).map(|index| PathEventRecord { index, ..last.clone() }));
    assert_eq!(outage(&trial), expected);
}
