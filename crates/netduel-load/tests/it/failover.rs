//! Probes of a failover on a path that nothing is taken from: each is kept, both ways, beside streams or alone.
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

/// The arrivals that one end kept are those that it counted, and those that the other sent.
fn check_probes(from: &EndReport, to: &EndReport, what: &str) {
    let sent = from.failover.as_ref().unwrap().probes_sent;
    let arrivals = &to.failover.as_ref().unwrap().arrivals;
    let numbers: BTreeSet<u64> = arrivals.iter().map(|arrival| arrival.number).collect();
    let counted = to.datagrams.as_ref().unwrap();
    assert_eq!(sent, DURATION_MS * 500 / 1000, "{what}");
    assert_eq!(numbers, (0..sent).collect(), "{what}");
    assert_eq!((counted.unique, counted.unexpected), (sent, 0), "{what}");
    assert_eq!(arrivals.len() as u64, counted.unique + counted.duplicates, "{what}");
    assert!(arrivals.iter().all(|arrival| arrival.delay_ns >= 0), "{what}: both ends have one clock");
}

#[test]
fn every_probe_is_kept_both_ways_with_streams_and_without() {
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
        // To the end, without a hole, and at most one for each interval: a late thread has fewer.
        let intervals: BTreeSet<u64> = series.iter().map(|sample| sample.end_ns / FINE_INTERVAL_NS).collect();
        let length: u64 = series.iter().map(|sample| sample.length_ns).sum();
        assert!(series.last().unwrap().end_ns >= DURATION_MS * 1_000_000, "{what}");
        assert_eq!((intervals.len(), length), (series.len(), series.last().unwrap().end_ns), "{what}");
        let bytes: u64 = series.iter().map(|sample| sample.bytes).sum();
        assert!(bytes > 0 && bytes <= received(&server), "{what}: {bytes} in the fine series");
        assert_eq!(client.streams.len(), streams as usize, "{what}");
    }
}
