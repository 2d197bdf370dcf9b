//! Failover probes on a path without events: each is recorded, in both directions, with and without streams.
use std::collections::BTreeSet;

use netduel_model::failover::FINE_INTERVAL_NS;
use netduel_model::sample::EndReport;
use netduel_model::units::{Bytes, PerSecond};
use netduel_model::workload::{Direction, Failover, Family, TcpEngine, Traffic};

use crate::harness::{received, run_pair, sent, workload};

const DURATION_MS: u64 = 600;

fn failover(streams: u32, direction: Direction) -> Traffic {
    Traffic::Failover(Failover {
        streams,
        direction,
        block: Bytes(64 << 10),
        engine: TcpEngine::Lean,
        congestion: None,
        size: Bytes(64),
        rate: PerSecond(500),
        events: Vec::new(),
    })
}

/// The recorded arrivals of an end match its counters, and the probes that the other end sent.
fn check_probes(from: &EndReport, to: &EndReport, what: &str) {
    let sent = from.failover.as_ref().unwrap().probes_sent;
    let arrivals = &to.failover.as_ref().unwrap().arrivals;
    let numbers: BTreeSet<u64> = arrivals.iter().map(|arrival| arrival.number).collect();
    let counted = to.datagrams.as_ref().unwrap();
    // A probe that is late at the end is not sent.
    assert!(sent > 0 && sent <= DURATION_MS * 500 / 1000, "{what}: {sent}");
    assert_eq!(numbers, (0..sent).collect(), "{what}");
    assert_eq!((counted.unique, counted.unexpected), (sent, 0), "{what}");
    assert_eq!(arrivals.len() as u64, counted.unique + counted.duplicates, "{what}");
    assert!(arrivals.iter().all(|arrival| arrival.delay_ns >= 0), "{what}: both ends have one clock");
}

#[test]
fn every_probe_is_recorded_in_both_directions() {
    let cases = [
        (0, Direction::Up, Family::Ipv6),
        (1, Direction::Up, Family::Ipv4),
        (2, Direction::Both, Family::Ipv4),
    ];
    for (streams, direction, family) in cases {
        let what = format!("{streams} streams {direction:?}");
        let (client, server) =
            run_pair(&workload(failover(streams, direction), family, DURATION_MS)).unwrap();
        assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
        check_probes(&client, &server, &what);
        check_probes(&server, &client, &what);
        assert_eq!(sent(&client), received(&server), "{what}");
        let series = &server.failover.as_ref().unwrap().series;
        if streams == 0 {
            assert!(series.is_empty() && client.sent.is_none(), "{what}");
            continue;
        }
        // To the end, without a gap, and at most one per interval: a late thread sends fewer.
        let intervals: BTreeSet<u64> = series.iter().map(|sample| sample.end_ns / FINE_INTERVAL_NS).collect();
        let length: u64 = series.iter().map(|sample| sample.length_ns).sum();
        assert!(series.last().unwrap().end_ns >= DURATION_MS * 1_000_000, "{what}");
        assert_eq!((intervals.len(), length), (series.len(), series.last().unwrap().end_ns), "{what}");
        let bytes: u64 = series.iter().map(|sample| sample.bytes).sum();
        assert!(bytes > 0 && bytes <= received(&server), "{what}: {bytes} in the fine series");
        assert_eq!(client.streams.len(), streams as usize, "{what}");
    }
}
