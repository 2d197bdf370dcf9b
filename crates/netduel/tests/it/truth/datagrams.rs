//! Datagrams of which a known set is dropped, doubled and delayed behind later ones: the report is exact to the datagram.
use netduel_model::metric::Metric;
use netduel_report::analysis::value_of;

use super::bed::{Hosts, skipped_without_root, turn};
use super::fates::{Fate, Fates};
use crate::support::Bench;

/// 20,000 datagrams a second, 10,000 a trial. Pinned, so that no datagram overtakes another between two cores' queues.
const WORKLOAD: &str = r#"
[[workloads]]
name = "numbered"
type = "udp-stream"
size = "500 B"
rate = "80 Mbit/s"
duration = "500 ms"
warmup = "100 ms"
cooldown = "0 ms"
pin_client = [0]
"#;
const SENT: u64 = 10_000;
const SIZE: u16 = 500;

#[test]
fn what_was_dropped_doubled_and_delayed_is_counted_to_the_datagram() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    // Held datagrams are counted at the second pair too.
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
    // The oracle itself: every datagram met its fate in every trial.
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

/// A fate for each number, by a fixed pseudo-random sequence (Numerical Recipes' linear congruence). The last ones pass, so
/// that every held one is overtaken.
fn drawn() -> Vec<Fate> {
    let mut state = 20_u32;
    (0..SENT)
        .map(|number| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 25 {
                _ if number + 100 > SENT => Fate::Passed,
                0..4 => Fate::Dropped,
                4..7 => Fate::Doubled,
                7..10 => Fate::Held,
                _ => Fate::Passed,
            }
        })
        .collect()
}
