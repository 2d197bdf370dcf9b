//! A known set of datagrams is dropped, duplicated and delayed behind later ones, and a known set of requests is dropped: the report counts
//! exactly these.
use netduel_model::metric::Metric;
use netduel_report::analysis::value_of;

use super::bed::{Hosts, skipped_without_root, turn};
use super::fates::{Carrier, Fate, Fates};
use crate::support::Bench;

/// 40,000 datagrams per trial, 20,000 per second: a late sender sends all of them before the duration is over. Pinned, so that no
/// datagram overtakes another between the queues of two cores.
const WORKLOAD: &str = r#"
[[workloads]]
name = "numbered"
type = "udp-stream"
size = "500 B"
rate = "80 Mbit/s"
duration = "20 s"
volume = "20 MB"
warmup = "100 ms"
cooldown = "0 ms"
pin_client = [0]
"#;
const SENT: u64 = 40_000;
/// Datagrams with an action. Those after them pass, for 1.5 s: a holding thread that has no core for a second still forwards the last
/// held datagram before the receiver ends, 50 ms after the last datagram.
const DECIDED: u64 = 10_000;
const SIZE: u16 = 500;

#[test]
fn dropped_duplicated_and_delayed_datagrams_are_counted_exactly() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    // Held datagrams are also counted at the second pair.
    let (bench, hosts) = (Bench::new(), Hosts { proven: false, ..Hosts::on_a_wire() });
    hosts.send_whole_frames();
    let fates = drawn();
    let count = |wanted: Fate| fates.iter().filter(|fate| **fate == wanted).count() as u64;
    let known = [Fate::Passed, Fate::Dropped, Fate::Doubled, Fate::Held].map(count);
    let programs = Fates::decide(&hosts, SIZE, &fates);
    let run = hosts.run(&bench, WORKLOAD, 2);
    let (decided, sent_on) = programs.finish();
    let trials = run.trials.len() as u64;
    println!("known: passed, dropped, doubled, held: {known:?}; decided in {trials} trials: {decided:?}");
    // Check of the test program itself: it processed every datagram with an action in every trial.
    assert_eq!(decided, known.map(|each| each * trials));
    assert_eq!(sent_on, known[Fate::Held as usize] * trials);
    for trial in &run.trials {
        let (client, server) = (trial.client.as_ref().unwrap(), trial.server.as_ref().unwrap());
        let (sent, received) =
            (client.report.sent.as_ref().unwrap(), server.report.received.as_ref().unwrap());
        let seen = server.report.datagrams.as_ref().unwrap();
        println!(
            "read: sent {}, received {}, duplicates {}, reordered {}, outside window {}, unexpected {}, socket drops {:?}",
            sent.messages,
            seen.unique,
            seen.duplicates,
            seen.reordered,
            seen.outside_window,
            seen.unexpected,
            seen.socket_drops
        );
        assert_eq!(sent.messages, SENT);
        assert_eq!(seen.unique, SENT - known[Fate::Dropped as usize]);
        assert_eq!((received.messages, received.bytes), (seen.unique, seen.unique * u64::from(SIZE)));
        assert_eq!(seen.duplicates, known[Fate::Doubled as usize]);
        assert_eq!(seen.reordered, known[Fate::Held as usize]);
        assert_eq!((seen.outside_window, seen.unexpected, seen.socket_drops), (0, 0, Some(0)));
        assert_eq!(seen.next_sequence, [SENT]);
        let loss = value_of(Metric::Loss, &run.header.plan.arms[0].workloads[0], trial, true);
        assert_eq!(loss, Some(known[Fate::Dropped as usize] as f64 / SENT as f64));
    }
    bench.assert_nothing_left();
}

/// Requests of a trial: 2,000 per second for 2 s.
const REQUESTS: u64 = 4_000;

#[test]
fn dropped_requests_are_counted_exactly_and_are_the_loss_of_the_report() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let fates: Vec<Fate> =
        (0..REQUESTS).map(|number| if number % 10 == 3 { Fate::Dropped } else { Fate::Passed }).collect();
    for (traffic, carrier) in [("udp-rr", Carrier::Udp), ("icmp-rr", Carrier::Icmp)] {
        let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
        let programs = Fates::decide_for(carrier, &hosts, SIZE, &fates);
        // An open loop sends every request, and takes each response until half a second after the last.
        let workload = format!(
            "[[workloads]]\nname = \"asked\"\ntype = \"{traffic}\"\nsize = \"{SIZE} B\"\nrequest_rate = \"2 k/s\"\nduration = \"2 s\"\n\
             warmup = \"100 ms\"\ncooldown = \"0 ms\"\nmetrics = [\"latency-p50\", \"loss\"]\n"
        );
        let run = hosts.run(&bench, &workload, 2);
        let (decided, _) = programs.finish();
        let trials = run.trials.len() as u64;
        println!("{traffic}: decided in {trials} trials: {decided:?}");
        let lost = REQUESTS / 10;
        assert_eq!(decided, [REQUESTS - lost, lost, 0, 0].map(|each| each * trials), "{traffic}");
        for trial in &run.trials {
            let trips = trial.client.as_ref().unwrap().report.round_trips.as_ref().unwrap();
            let counts = [trips.requests, trips.responses, trips.timeouts];
            assert_eq!(counts, [REQUESTS, REQUESTS - lost, lost], "{traffic}");
            let loss = value_of(Metric::Loss, &run.header.plan.arms[0].workloads[0], trial, true);
            assert_eq!(loss, Some(0.1), "{traffic}");
        }
        let report = bench.run(["report", "last", "--json"]).expect_code(0).json();
        for arm in report["workloads"][0]["arms"].as_array().unwrap() {
            let known = serde_json::json!({ "sent": 2 * REQUESTS, "without_response": 2 * lost });
            assert_eq!(arm["requests"], known, "{traffic}");
        }
        let warnings = report["warnings"].as_array().unwrap();
        let lossy = warnings.iter().filter(|warning| warning["kind"] == "requests-lost").count();
        assert_eq!(lossy, 2, "{traffic}, one for each arm: {warnings:?}");
        let text = bench.run(["report", "last", "--format", "text"]).expect_code(0).stdout;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("not included: 800 of 8000 requests of wire in the whole trials"), "{text}");
        bench.assert_nothing_left();
    }
}

/// The action for each number, from a fixed pseudo-random sequence (Numerical Recipes' linear congruential generator). The last
/// ones pass, so that every held one is overtaken.
fn drawn() -> Vec<Fate> {
    let mut state = 20_u32;
    (0..DECIDED)
        .map(|number| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 25 {
                _ if number + 100 > DECIDED => Fate::Passed,
                0..4 => Fate::Dropped,
                4..7 => Fate::Doubled,
                7..10 => Fate::Held,
                _ => Fate::Passed,
            }
        })
        .collect()
}
