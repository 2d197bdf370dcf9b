//! Valid trials without a value because their result was the worst there is: verdicts do not leave them out.
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::{DatagramReport, Flow};
use netduel_model::trial::{Trial, Validity};
use netduel_model::workload::{Direction, Traffic};
use netduel_report::analysis::{Withheld, value_of};
use netduel_report::document::block::{Block, Document};
use netduel_report::document::chart::{Chart, Figure};
use netduel_report::document::table::Cell;
use netduel_report::history::Selection;
use netduel_report::json::history::HistoryDocument;
use netduel_report::words::{self, Tone};
use netduel_report::{analyse_run, csv, document, html, influx, markdown, prometheus, terminal};
use netduel_stats::histogram::Histogram;
use serde_json::Value;

use crate::builder::{Recipe, build};
use crate::figures::{first, flow, report};
use crate::history::history;
use crate::json;

/// What happens in a trial.
type Event = fn(&mut Trial);

/// Of what the client sent nothing arrives.
fn lose_all(trial: &mut Trial) {
    let server = report(trial, false);
    server.received = Some(Flow::default());
    if server.datagrams.is_some() {
        server.datagrams = Some(DatagramReport::default());
    }
}

/// No probe before the load has a response.
fn lose_idle(trial: &mut Trial) {
    report(trial, true).round_trips.as_mut().unwrap().idle = Some(Histogram::new().to_record());
}

/// No new connection is made under load.
fn refuse(trial: &mut Trial) {
    let foreign = &mut report(trial, true).under_load.as_mut().unwrap().foreign;
    foreign.failed = foreign.attempted;
    (foreign.connect, foreign.exchange) = (Histogram::new().to_record(), Histogram::new().to_record());
}

/// Twelve blocks of a workload with one metric, in which the second arm is better. In every other block an event happens to an arm.
fn run(workload: &'static str, metric: Metric, arm: &str, event: Event) -> Run {
    let mut run = build(&Recipe { workloads: vec![workload], blocks: 12, ..Recipe::default() });
    for own in &mut run.header.plan.arms {
        own.workloads[0].metrics = vec![metric];
    }
    let mut idle = Histogram::new();
    (0..300).for_each(|_| idle.record(50_000));
    for trial in &mut run.trials {
        if workload == "load" && trial.slot.arm.as_str() == "accelerated" {
            report(trial, true).round_trips.as_mut().unwrap().idle = Some(idle.to_record());
        }
        if trial.slot.arm.as_str() == arm && trial.slot.block % 2 == 0 {
            event(trial);
        }
    }
    run
}

/// Of what the client sent a single datagram arrives, which is one for each flow.
fn lose_all_but_one(trial: &mut Trial) {
    let sent = report(trial, true).sent.clone().unwrap();
    lose_all(trial);
    let received = report(trial, false).received.as_mut().unwrap();
    (received.messages, received.bytes) = (1, sent.bytes / sent.messages);
}

const CASES: [(&str, Metric, Event); 8] = [
    ("udp", Metric::PacketRate, lose_all),
    ("udp", Metric::Jitter, lose_all),
    ("udp", Metric::Jitter, lose_all_but_one),
    ("udp", Metric::CpuPerDatagram, lose_all),
    ("bulk", Metric::CpuPerGigabyte, lose_all),
    ("bulk", Metric::RetransmitsPerGigabyte, lose_all),
    ("load", Metric::LatencyIdleP50, lose_idle),
    ("load", Metric::Responsiveness, refuse),
];

/// Why the trials of these cases have no value.
fn reason(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyIdleP50 => "no request before the load had a response",
        Metric::Responsiveness => "too few responses of a kind came",
        Metric::RetransmitsPerGigabyte => "nothing arrived in a direction",
        _ => "nothing arrived in a direction, or no more datagrams than flows",
    }
}

#[test]
fn trials_with_the_worst_result_withhold_the_verdict_that_their_arm_is_better() {
    for (workload, metric, event) in CASES {
        let analysis = analyse_run(&run(workload, metric, "accelerated", event));
        let judged = &analysis.workloads[0].judged[0];
        let arm = &judged.arms[1];
        assert_eq!((arm.values.len(), arm.without.len()), (6, 6), "{metric:?}");
        assert!(arm.quantile(metric, 0.5).unwrap().1.is_some(), "{metric:?}");
        let comparison = &judged.comparisons[0];
        assert_eq!(comparison.withheld, Some(Withheld::NoValue { trials: [0, 6] }), "{metric:?}");
        assert_eq!(words::tone(metric, comparison.judged.as_ref()), Tone::Open, "{metric:?}");
        assert_eq!(comparison.estimated(), None, "{metric:?}");
        let note = words::without_value(&analysis);
        let end = format!("in 6 of 12 valid trials of accelerated: {}", reason(metric));
        assert!(note.len() == 1 && note[0].ends_with(&end), "{note:?}");
    }
}

#[test]
fn worst_results_of_the_baseline_leave_the_verdict_that_the_arm_is_better() {
    for (workload, metric, event) in CASES {
        let analysis = analyse_run(&run(workload, metric, "synthetic", event));
        let comparison = &analysis.workloads[0].judged[0].comparisons[0];
        assert_eq!((comparison.without, comparison.withheld), ([6, 0], None), "{metric:?}");
        assert_eq!(words::tone(metric, comparison.judged.as_ref()), Tone::Better, "{metric:?}");
        assert!(comparison.has_bounds(), "{metric:?}");
    }
}

#[test]
fn arm_without_any_value_has_its_trials_in_the_verdict() {
    let mut lost = run("udp", Metric::PacketRate, "accelerated", lose_all);
    let trials = lost.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "accelerated");
    trials.for_each(lose_all);
    let analysis = analyse_run(&lost);
    let judged = &analysis.workloads[0].judged[0];
    assert_eq!(
        words::verdict(judged.metric, &judged.comparisons[0]),
        "inconclusive: no value in 12 valid trials of accelerated"
    );
    assert_eq!(judged.arms[1].quantile(judged.metric, 0.5), None, "there is no median");
}

/// A run whose second arm has no packet rate in half of its trials, because nothing arrived.
pub fn lost() -> Run {
    run("udp", Metric::PacketRate, "accelerated", lose_all)
}

/// The figure of the values by block.
fn by_block(document: &Document) -> &Figure {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let mut figures = blocks.filter_map(|block| match block {
        Block::Figure(figure) => Some(&**figure),
        _ => None,
    });
    let is_by_block = |figure: &&Figure| matches!(&figure.chart, Chart::Plot(plot) if plot.kind == "blocks");
    figures.find(is_by_block).unwrap()
}

#[test]
fn picture_by_block_states_the_trials_without_a_value_and_marks_the_median() {
    let nothing: Event = |_| {};
    let marked = serde_json::json!([null, "<"]);
    for (event, marks, end) in [
        (lose_all as Event, marked, " No value in 6 valid trials of accelerated."),
        (nothing, Value::Null, "Horizontal lines: medians."),
    ] {
        let document = document(&run("udp", Metric::PacketRate, "accelerated", event));
        let figure = by_block(&document);
        let Chart::Plot(plot) = &figure.chart else { panic!("{}", figure.title) };
        assert_eq!(plot.data["median_bounds"], marks);
        assert!(figure.reading.ends_with(end), "{}", figure.reading);
        assert_eq!(figure.reading.contains("An arrow marks a bound"), marks != Value::Null);
        let table = figure.data.as_ref().unwrap();
        let cells = table.rows.iter().filter_map(|row| row.last()).map(Cell::text);
        let without = cells.filter(|cell| cell == "no value").count();
        assert_eq!((table.rows.len(), without), (12, if marks == Value::Null { 0 } else { 6 }));
    }
}

#[test]
fn missing_worst_values_leave_no_mean_and_no_quantile_without_a_sign() {
    let lost = lost();
    let values = &json::report(&lost)["workloads"][0]["metrics"][0]["arms"][1];
    assert_eq!((&values["n"], &values["median_bound"]), (&6.into(), &"less-than".into()), "{values}");
    assert!(values["mean"].is_null() && values["standard_error"].is_null(), "{values}");
    let page = prometheus::page(&lost, &analyse_run(&lost));
    let has = |part: &str, quantile: &str| {
        let is_it = |line: &str| {
            line.starts_with(&format!("netduel_interface_packets_per_second{part}{{"))
                && line.contains("arm=\"accelerated\"")
                && line.contains(quantile)
        };
        page.lines().any(is_it)
    };
    assert!(has("", "quantile=\"1\"") && has("_count", ""), "{page}");
    assert!(!has("", "quantile=\"0.5\"") && !has("_sum", ""), "{page}");
}

#[test]
fn exports_by_trial_have_a_row_without_a_value_and_with_the_reason() {
    for (workload, metric, event) in CASES {
        let mut run = run(workload, metric, "accelerated", event);
        let (key, unit) = (metric.key(), metric.unit());
        let reason = format!("no value: {}", reason(metric));
        let table = csv::trials(&run);
        let rows: Vec<&str> =
            table.lines().filter(|row| row.contains(&format!(",{key},{unit},,,,"))).collect();
        assert_eq!(rows.len(), 6, "{table}");
        assert!(rows.iter().all(|row| row.contains(",true,") && row.contains(&reason)), "{rows:?}");
        let text = influx::lines(&run);
        let of_metric = text.lines().filter(|line| line.contains(&format!(",metric={key},")));
        let lines: Vec<&str> = of_metric.filter(|line| !line.contains(" value=")).collect();
        assert_eq!(lines.len(), 6, "{text}");
        assert!(lines.iter().all(|line| line.contains(&format!(",doubt=\"{reason}\""))), "{lines:?}");
        let page = prometheus::page(&run, &analyse_run(&run));
        let sample = format!(
            "netduel_trials_without_value{{plan=\"demo\",workload=\"{workload}\",arm=\"accelerated\",metric=\"{key}\"}} 6\n"
        );
        assert!(page.contains(&sample), "{page}");
        // The value of an excluded trial is not missing from a result.
        for trial in &mut run.trials {
            trial.validity = Validity::Failed { reason: "no answer".to_owned() };
        }
        assert!(!csv::trials(&run).contains("no value") && !influx::lines(&run).contains("no value"));
        assert!(!prometheus::page(&run, &analyse_run(&run)).contains("netduel_trials_without_value"));
    }
}

/// Runs of three days, which judge a metric. On the day `of_loss` nothing arrives in any trial of these arms.
fn three_days(metric: Metric, of_loss: u64, arms: &[&str]) -> Vec<Run> {
    let of_day = |day: u64| {
        let mut run = run("udp", metric, "accelerated", |_| {});
        run.header.id = format!("demo-{day:02}").parse().unwrap();
        run.header.started_unix_ms += day * 86_400_000;
        if day == of_loss {
            let trials = run.trials.iter_mut().filter(|trial| arms.contains(&trial.slot.arm.as_str()));
            trials.for_each(lose_all);
        }
        run
    };
    (0..3).map(of_day).collect()
}

#[test]
fn run_without_a_value_is_named_in_every_format_of_a_history() {
    let history = history(&three_days(Metric::PacketRate, 2, &["accelerated"]), &Selection::default());
    let [synthetic, accelerated] = history.series.as_slice() else { panic!("{:?}", history.series) };
    assert_eq!((synthetic.points.len(), accelerated.points.len(), accelerated.other_runs), (3, 2, 0));
    let title = format!("{} of udp on accelerated", accelerated.metric.title());
    let reason = reason(Metric::PacketRate);
    let named = format!("{title}: no value in 12 valid trials ({reason})");
    let left_out: Vec<Vec<String>> = history.runs.iter().map(|run| run.left_out.clone()).collect();
    assert_eq!(left_out, [vec![], vec![], vec![named.clone()]]);
    let shown = document::of_history(&history);
    let terminal = terminal::report(&shown, 400, false);
    let overview = terminal.lines().filter(|line| line.contains(&title)).find(|line| !line.contains(&named));
    assert!(overview.unwrap().ends_with(" -"), "an earlier run is not the newest: {overview:?}");
    let markdown = markdown::page(&shown).replace('\\', "");
    for page in [terminal, markdown, html::page(&shown)] {
        assert!(page.contains(&named), "{page}");
    }
    let json = json::printed(&HistoryDocument::of(&history, &json::origin()));
    assert_eq!(json["runs"][2]["left_out"], serde_json::json!([named]));
}

#[test]
fn history_of_runs_without_any_value_names_them_and_has_no_series() {
    let mut lost = lost();
    lost.trials.iter_mut().for_each(lose_all);
    let history = history(&[lost], &Selection::default());
    assert!(history.series.is_empty());
    let run = &history.runs[0];
    assert_eq!(run.left_out.len(), 2, "{:?}", run.left_out);
    let named = run.left_out.iter().map(|what| format!("{}: {what}", run.id));
    assert_eq!(history.without_point, named.collect::<Vec<_>>());
}

#[test]
fn metric_that_is_not_judged_has_no_value_where_all_results_were_the_worst() {
    let runs = three_days(Metric::DatagramRate, 1, &["synthetic", "accelerated"]);
    let selection = Selection { metric: Some(Metric::Jitter), ..Selection::default() };
    let history = history(&runs, &selection);
    assert_eq!(history.series.len(), 2, "both arms");
    for series in &history.series {
        assert_eq!((series.points.len(), series.other_runs), (2, 0), "{:?}", series.arm);
    }
    let left_out: Vec<usize> = history.runs.iter().map(|run| run.left_out.len()).collect();
    assert_eq!(left_out, [0, 2, 0], "{:?}", history.without_point);
    // A report, a comparison and a baseline file have these trials, too.
    let analysis = analyse_run(&runs[1]);
    let jitter = analysis.workloads[0].unjudged.iter().find(|one| one.metric == Metric::Jitter).unwrap();
    assert!(jitter.arms.iter().all(|arm| arm.without.len() == 12), "{jitter:?}");
}

#[test]
fn trials_that_show_no_result_are_no_worst_ones() {
    let nothing_sent: Event = |trial| {
        lose_all(trial);
        report(trial, true).sent = Some(Flow::default());
    };
    let short: Event = |trial| {
        lose_all(trial);
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            end.observation.wall_ns = 99_000_000;
        }
    };
    let without_counter: Event = |trial| {
        lose_all(trial);
        report(trial, true).streams[0].tcp.as_mut().unwrap().retransmits = None;
    };
    let without_interface: Event = |trial| {
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            end.observation.interfaces.clear();
        }
    };
    for (workload, metric, event) in [
        ("udp", Metric::PacketRate, nothing_sent),
        ("udp", Metric::PacketRate, without_interface),
        ("udp", Metric::CpuPerDatagram, short),
        ("bulk", Metric::RetransmitsPerGigabyte, without_counter),
    ] {
        let analysis = analyse_run(&run(workload, metric, "accelerated", event));
        let judged = &analysis.workloads[0].judged[0];
        let arm = &judged.arms[1];
        assert_eq!((arm.values.len(), arm.without.len()), (6, 0), "{metric:?}");
        assert_eq!(judged.comparisons[0].withheld, None, "{metric:?}");
    }
}

#[test]
fn jitter_of_both_directions_needs_both() {
    let (mut workload, mut trial) = first("udp");
    if let Traffic::UdpStream(settings) = &mut workload.traffic {
        settings.direction = Direction::Both;
    }
    let datagrams = |jitter_ns| Some(DatagramReport { jitter_ns, ..DatagramReport::default() });
    report(&mut trial, false).sent = Some(flow(1_000_000));
    report(&mut trial, false).datagrams = datagrams(Some(3_000.0));
    report(&mut trial, true).datagrams = datagrams(Some(5_000.0));
    assert_eq!(value_of(Metric::Jitter, &workload, &trial, true), Some(4_000.0));
    report(&mut trial, true).datagrams = datagrams(None);
    assert_eq!(value_of(Metric::Jitter, &workload, &trial, true), None, "half of a mean is not a figure");
}
