//! Calls that failed in valid trials: the report has them, because the values of the trials contain their effect.
use netduel_model::sample::ErrorCount;
use netduel_report::{document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::json;

#[test]
fn failed_calls_of_streams_and_round_trips_are_in_every_format() {
    for workload in ["bulk", "rr", "open", "load"] {
        let mut run = build(&Recipe { workloads: vec![workload], failed: vec![(5, 1)], ..Recipe::default() });
        let lossy = |block: u32| block == 1 || block == 4;
        for trial in run.trials.iter_mut().filter(|trial| lossy(trial.slot.block)) {
            if trial.slot.arm.as_str() == "accelerated" {
                let client = &mut trial.client.as_mut().unwrap().report.errors;
                let error = "EHOSTUNREACH: no route to host".to_owned();
                client.push(ErrorCount { call: "send".to_owned(), error, count: 3 });
                let server = &mut trial.server.as_mut().unwrap().report.errors;
                let error = "connection closed before the last response".to_owned();
                server.push(ErrorCount { call: "recv".to_owned(), error, count: 1 });
            }
        }
        let document = document(&run);
        let page = html::page(&document).replace('\u{a0}', " ");
        let table = terminal::report(&document, 400, false);
        for (format, text) in [("terminal", table), ("html", page)] {
            for part in ["Failed calls", "EHOSTUNREACH: no route to host", "connection closed before"] {
                assert!(text.contains(part), "{workload}, {format} without `{part}`: {text}");
            }
        }
        let markdown = markdown::page(&document).replace('\\', "");
        for row in [
            "| accelerated | client | send | EHOSTUNREACH: no route to host | 6 | 2 of 7 |",
            "| accelerated | server | recv | connection closed before the last response | 2 | 2 of 7 |",
        ] {
            assert!(markdown.contains(row), "{workload}: {markdown}");
        }
        let report = json::report(&run);
        let arms = &report["workloads"][0]["arms"];
        let first = serde_json::json!({
            "role": "client", "call": "send", "error": "EHOSTUNREACH: no route to host", "count": 6,
            "trials": 2,
        });
        assert_eq!(arms[1]["errors"][0], first, "{workload}");
        assert_eq!(arms[0]["errors"], serde_json::json!([]), "{workload}");
        assert_eq!(arms[1]["errors"].as_array().map(Vec::len), Some(2), "{workload}");
    }
}

#[test]
fn failed_calls_of_datagrams_stand_with_their_counts() {
    let mut run = build(&Recipe { workloads: vec!["udp"], ..Recipe::default() });
    for trial in &mut run.trials {
        let error = "ENETDOWN: network is down".to_owned();
        let client = &mut trial.client.as_mut().unwrap().report.errors;
        client.push(ErrorCount { call: "sendmmsg".to_owned(), error, count: 1 });
    }
    let text = markdown::page(&document(&run)).replace('\\', "");
    let words = "failed calls: sendmmsg at the sender: ENETDOWN: network is down (8 times)";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("Failed calls"), "{text}");
    assert_eq!(json::report(&run)["workloads"][0]["arms"][0]["errors"][0]["count"], 8);
}

#[test]
fn report_without_a_failed_call_has_no_table_of_them() {
    let run = build(&Recipe { workloads: vec!["bulk", "rr"], blocks: 2, ..Recipe::default() });
    assert!(!markdown::page(&document(&run)).contains("Failed calls"));
}
