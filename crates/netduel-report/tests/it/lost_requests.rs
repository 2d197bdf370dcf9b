//! Requests without a response: the percentiles of an arm that loses some are those of the others, so every format shows the loss.
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_model::workload::{Traffic, Workload};
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::analysis::{Cause, Limit, limit_of, value_of, warnings_about};
use netduel_report::checks::{Checks, Outcome, Rules};
use netduel_report::gate::Condition;
use netduel_report::quick::{self, SummaryInput};
use netduel_report::{
    analyse_run, csv, document, html, influx, junit, markdown, prometheus, terminal, words,
};

use crate::builder::{Recipe, build};
use crate::compare_document::document_of;
use crate::figures::{first, kinds};
use crate::json;

const SENT: u64 = 2_000;

fn lose(trial: &mut Trial, lost: u64) {
    let trips = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
    (trips.requests, trips.responses, trips.timeouts) = (SENT, SENT - lost, lost);
}

/// Requests in datagrams, of which one arm loses 4.65 % to 5.35 % in its trials, and 5 % of all.
fn lossy() -> Run {
    let mut run = build(&Recipe { workloads: vec!["open"], ..Recipe::default() });
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "accelerated") {
        lose(trial, 93 + 2 * u64::from(trial.slot.block));
    }
    run
}

const WARNING: &str = "requests lost: 800 of 16000 requests (5.0 %) in open of accelerated had no response in time and are in no percentile";
const NOTE: &str =
    "ot included: 800 of 16000 requests of accelerated in the whole trials, which had no response";

#[test]
fn lost_requests_of_one_arm_are_in_every_format() {
    let run = lossy();
    let document = document(&run);
    let page = html::page(&document).replace('\u{a0}', " ");
    let markdown = markdown::page(&document).replace('\\', "");
    let table = terminal::report(&document, 400, false);
    // The name of a warning is in bold.
    let counts = WARNING.strip_prefix("requests lost: ").unwrap();
    for (format, text) in [("terminal", &table), ("markdown", &markdown), ("html", &page)] {
        for part in ["requests lost", counts, NOTE] {
            assert!(text.contains(part), "{format} without `{part}`: {text}");
        }
    }
    for text in [&markdown, &page] {
        let has_rule = text.contains("Loss of requests") && text.contains("until 500 ms after its request");
        assert!(has_rule, "{text}");
    }
    let row = markdown.lines().find(|line| line.starts_with("| loss |")).unwrap_or_default();
    assert!(row.contains("| 5.00 % ["), "{markdown}");
    let closing = terminal::summary(&document, 400, false);
    assert!(closing.contains(WARNING), "{closing}");

    let csv = csv::trials(&run);
    assert!(csv.contains(",loss,fraction,0.0465,"), "{csv}");
    for row in ["requests-sent,1,2000,", "requests-without-response,1,93,"] {
        assert!(csv.contains(row), "{row}: {csv}");
    }
    let lines = influx::lines(&run);
    assert!(lines.contains("metric=loss,unit=fraction value=0.0465,valid=true"), "{lines}");
    let samples = prometheus::page(&run, &analyse_run(&run));
    let most =
        "netduel_loss_ratio{plan=\"demo\",workload=\"open\",arm=\"accelerated\",quantile=\"1\"} 0.0535";
    assert!(samples.contains(most), "{samples}");
}

#[test]
fn lost_requests_are_typed_in_json_and_mark_the_latencies() {
    let run = lossy();
    let report = json::report(&run);
    let workload = &report["workloads"][0];
    let counted = serde_json::json!({ "sent": 16_000, "without_response": 800 });
    assert_eq!(workload["arms"][1]["requests"], counted);
    assert_eq!(workload["arms"][0]["requests"]["without_response"], 0);
    let warnings = report["warnings"].as_array().unwrap();
    let index = warnings.iter().position(|one| one["kind"] == "requests-lost").unwrap();
    let figures = serde_json::json!([
        { "name": "lost", "value": 800.0, "unit": "count" },
        { "name": "requests", "value": 16_000.0, "unit": "count" },
    ]);
    assert_eq!((&warnings[index]["figures"], &warnings[index]["arm"]), (&figures, &"accelerated".into()));
    let metrics = workload["metrics"].as_array().unwrap();
    let of = |metric: &str| metrics.iter().find(|one| one["metric"] == metric).unwrap();
    for metric in ["latency-p50", "latency-p99"] {
        let marks = of(metric)["comparisons"][0]["warnings"].as_array().unwrap();
        assert!(marks.contains(&index.into()), "{metric}: {marks:?}");
    }
    let value = &of("loss")["arms"][1]["values"][0];
    assert_eq!(*value, serde_json::json!({ "block": 1, "value": 0.0465, "bound": null }));

    let analysis = analyse_run(&run);
    let sentences = words::warning_sentences(&analysis);
    let number = sentences.iter().find(|one| one.text.starts_with(WARNING)).unwrap().number.unwrap();
    let numbers = |metric| {
        let arm = "accelerated".parse().unwrap();
        words::warning_numbers(&analysis, &sentences, &analysis.workloads[0], metric, &arm)
    };
    assert!(numbers(Metric::LatencyP50).contains(&number));
    // The rate and the loss have the lost requests in them.
    for metric in [Metric::RoundTripRate, Metric::Loss, Metric::CpuPerRoundTrip] {
        assert!(!numbers(metric).contains(&number), "{metric:?}");
    }
}

#[test]
fn lost_probes_mark_the_latencies_under_load_only() {
    let run = build(&Recipe { workloads: vec!["load"], ..Recipe::default() });
    let analysis = analyse_run(&run);
    let is_lost = |warning: &Warning| matches!(warning, Warning::RequestsLost { .. });
    let index = analysis.warnings.iter().position(is_lost).unwrap();
    // This type of test has no metric of the loss.
    let text = analysis.warnings[index].to_string();
    assert!(text.contains("compare the share of lost requests of the arms as well"), "{text}");
    let arm = "accelerated".parse().unwrap();
    let is_marked = |metric| warnings_about(&analysis, &analysis.workloads[0], metric, &arm).contains(&index);
    for metric in [Metric::LatencyLoadedP50, Metric::LatencyLoadedP99] {
        assert!(is_marked(metric), "{metric:?}");
    }
    for metric in [Metric::LatencyIdleP50, Metric::Throughput] {
        assert!(!is_marked(metric), "{metric:?}");
    }
}

#[test]
fn few_lost_requests_are_noted_without_a_warning() {
    let mut run = build(&Recipe { workloads: vec!["open"], ..Recipe::default() });
    run.trials.iter_mut().for_each(|trial| lose(trial, 1));
    assert!(!kinds(&run).contains(&"requests lost".to_owned()), "0.05 %");
    let text = terminal::report(&document(&run), 400, false);
    assert!(text.contains("not included: 8 of 16000 requests of synthetic in the whole trials"), "{text}");
    run.trials.iter_mut().for_each(|trial| lose(trial, 2));
    assert!(kinds(&run).contains(&"requests lost".to_owned()), "0.1 %");
}

#[test]
fn loss_that_a_plan_judges_fails_a_gate_and_is_compared_between_runs() {
    let mut run = lossy();
    for workload in run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
        workload.metrics.push(Metric::Loss);
    }
    let texts = ["loss > 1 points", "latency-p50 > 5 %"];
    let conditions: [Condition; 2] = texts.map(|text| text.parse().unwrap());
    let rules = Rules { conditions: &conditions, strict: false };
    let checks = Checks::of_run(&run, &analyse_run(&run), rules);
    let check = |name: &str| checks.checks.iter().find(|check| check.name == name).unwrap();
    assert_eq!(check("loss of open").outcome, Outcome::Failed, "{:?}", check("loss of open"));
    assert!(check("loss of open").verdict.contains("percentage points higher"), "{checks:?}");
    // A latency that passes says that requests are missing in it.
    let latency = check("round trip p50 of open");
    assert!(latency.notes.iter().any(|note| note.contains("requests lost: 800 of 16000")), "{latency:?}");
    assert!(junit::page(&checks).contains("requests lost: 800 of 16000"), "{checks:?}");

    let clean = build(&Recipe { workloads: vec!["open"], seed: 3, ..Recipe::default() });
    let (before, after) = (analyse_run(&clean), analyse_run(&run));
    let comparison = compare(&[Side::of(&run, &after), Side::of(&clean, &before)], &[]);
    let subject = comparison.subjects.iter().find(|subject| subject.arm.as_str() == "accelerated").unwrap();
    assert!(subject.verdicts.iter().any(|verdict| verdict.metric == Metric::Loss), "{subject:?}");
    let text = terminal::report(&document_of(&comparison), 400, false);
    assert!(text.contains(WARNING), "{text}");
    let baseline = json::baseline(&run);
    let warnings = baseline["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|one| one["kind"] == "requests-lost"), "{warnings:?}");
}

/// The value of the loss of a trial that lost this many of its requests.
fn loss(workload: &Workload, trial: &Trial, lost: u64) -> Option<f64> {
    let mut trial = trial.clone();
    lose(&mut trial, lost);
    value_of(Metric::Loss, workload, &trial, true)
}

#[test]
fn loss_is_that_of_requests_in_datagrams_only() {
    let (workload, trial) = first("open");
    assert_eq!([0, 100].map(|lost| loss(&workload, &trial, lost)), [Some(0.0), Some(0.05)]);
    let mut broken = trial.clone();
    broken.client.as_mut().unwrap().report.round_trips.as_mut().unwrap().requests = 0;
    assert_eq!(value_of(Metric::Loss, &workload, &broken, true), None, "no request was sent");
    let (workload, trial) = first("rr");
    assert_eq!(loss(&workload, &trial, 100), None, "TCP sends them again");
}

/// The bottleneck of a trial of five seconds that lost this many requests.
fn limit(name: &'static str, lost: u64) -> Limit {
    let (mut workload, mut trial) = first(name);
    if let Traffic::TcpRr(settings) = workload.traffic.clone() {
        workload.traffic = Traffic::UdpRr(settings);
    }
    lose(&mut trial, lost);
    limit_of(&workload, &trial, false, None).unwrap()
}

#[test]
fn closed_loop_that_waits_for_lost_requests_is_not_latency_bound() {
    for (lost, cause) in [(0, Cause::RoundTrip), (2, Cause::RoundTrip), (4, Cause::RequestsLost)] {
        assert_eq!(limit("rr", lost).cause, cause, "{lost} lost");
    }
    let words =
        "10 of 2000 requests (0.5 %) had no response within 500 ms: 100 % of the time of the closed loop";
    assert_eq!(limit("rr", 10).evidence[0], words);
    let open = limit("open", 100);
    assert_eq!(open.cause, Cause::RequestsLost, "{open:?}");
    assert_eq!(open.evidence[0], "100 of 2000 requests (5.0 %) had no response");
    assert_ne!(limit("open", 10).cause, Cause::RequestsLost);
}

#[test]
fn quick_test_states_its_lost_requests() {
    let run = build(&Recipe { workloads: vec!["open"], blocks: 1, ..Recipe::default() });
    let workload = &run.header.plan.arms[0].workloads[0];
    let test = |lost| {
        let mut trial = run.trials[0].clone();
        lose(&mut trial, lost);
        let input =
            SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
        let document = json::quick_test(&run, input);
        let warnings = document["tests"][0]["warnings"].as_array().unwrap().clone();
        let is_warned = warnings.iter().any(|one| one["kind"] == "requests-lost");
        (quick::summary(input, 200), is_warned)
    };
    let (text, is_warned) = test(100);
    assert!(text.contains("100 of 2000 without a response (5.0 %)") && is_warned, "{text}");
    let (text, is_warned) = test(0);
    assert!(text.contains("0 of 2000 without a response (0 %)") && !is_warned, "{text}");
}
