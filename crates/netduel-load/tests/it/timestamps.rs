//! Time stamps over real sockets: every timestamped round trip is split, none is counted twice, and the others have no time
//! stamps.
use std::cell::Cell;

use netduel_model::sample::{EndReport, LiveFigures};
use netduel_model::stamps::{Clocks, Part, StampReport};
use netduel_model::units::Nanos;
use netduel_model::workload::{Family, RoundTrip, Traffic, Wait};

use crate::harness::{check_flows, messages, run_pair, run_until, workload};

const WHOLE: [Part; 6] = [
    Part::ClientSend,
    Part::Network,
    Part::ServerReceive,
    Part::ServerProgram,
    Part::ServerSend,
    Part::ClientReceive,
];

fn stamped(size: u64, outstanding: u32, wait: Wait, rate: Option<u64>) -> RoundTrip {
    RoundTrip { timestamps: true, ..messages(size, outstanding, wait, rate) }
}

const WARMUP: Nanos = Nanos(200_000_000);
/// Round trips of a closed loop after the warm-up. Of 31 in a row at least one is stamped.
const STEADY: u64 = 256;

fn run(traffic: Traffic, family: Family) -> (EndReport, EndReport) {
    run_with(WARMUP, traffic, family)
}

/// Runs a closed loop until it has round trips in its steady window, however long this machine needs for them, and an open loop for
/// its duration.
fn run_with(warmup: Nanos, traffic: Traffic, family: Family) -> (EndReport, EndReport) {
    // Again when a stall of half a second timed out requests over UDP.
    let mut trials = std::iter::repeat_n(traffic, 10).map(|traffic| run_once(warmup, traffic, family));
    let in_time = |(client, _): &(EndReport, EndReport)| {
        client.round_trips.as_ref().is_none_or(|trips| trips.timeouts == 0)
    };
    let (client, server) = trials.find(in_time).expect("a trial without a stall");
    assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]));
    check_flows(&client);
    check_flows(&server);
    (client, server)
}

fn run_once(warmup: Nanos, traffic: Traffic, family: Family) -> (EndReport, EndReport) {
    let is_closed = traffic.facts().requests.is_some_and(|requests| requests.rate.is_none());
    if is_closed {
        let mut workload = workload(traffic, family, 600_000);
        workload.timing.warmup = warmup;
        let (is_steady, first) = (Cell::new(false), Cell::new(None));
        let is_enough = |live: &LiveFigures| {
            // Its messages are counted before its time is read: only those of the next figures are of the steady window.
            if !is_steady.replace(live.elapsed_ns > warmup.0) {
                return false;
            }
            first.set(first.get().or(Some(live.messages)));
            first.get().is_some_and(|first| live.messages >= first + STEADY)
        };
        run_until(&workload, <[u16]>::to_vec, is_enough).unwrap()
    } else {
        let mut workload = workload(traffic, family, 600);
        workload.timing.warmup = warmup;
        run_pair(&workload).unwrap()
    }
}

/// Invariants of every report.
fn check(client: &EndReport, expected: &[Part], what: &str) -> StampReport {
    let trips = client.round_trips.as_ref().unwrap();
    let report = client.stamps.clone().expect(what);
    // Each is in one of the two histograms; those of the warm-up are in none.
    let whole = report.round_trip.as_ref().unwrap();
    assert_eq!(whole.count, report.stamped, "{what}");
    assert!(report.stamped > 0 && trips.histogram.count > 0, "{what}");
    assert!(trips.histogram.count + whole.count <= trips.responses, "{what}");
    let kinds: Vec<Part> = report.parts.iter().map(|record| record.part).collect();
    assert_eq!(kinds, expected, "{what}");
    assert_eq!(report.inconsistent, 0, "{what}: parts that do not add up");
    for record in &report.parts {
        assert_eq!(record.histogram.count, report.complete, "{what} {:?}", record.part);
    }
    let counted: u64 = report.levels.iter().map(|level| level.count).sum();
    assert_eq!(counted, report.complete, "{what}");
    for level in &report.levels {
        assert!(level.sums_ns.iter().sum::<u64>() <= level.round_trip_max_ns * level.count, "{what}");
    }
    report
}

/// With one outstanding request no time stamp is lost, except the last, which travels with the next request.
fn check_complete(report: &StampReport, what: &str) {
    let lost = report.missing;
    assert!(report.stamped <= report.complete + 1, "{what}: {lost:?} of {}", report.stamped);
    assert_eq!(
        (lost.client_transmit, lost.client_receive, lost.server_receive),
        (0, 0, 0),
        "{what}: only the server's last transmit stamp may be unknown"
    );
}

#[test]
fn closed_loop_is_split_into_parts_and_directions() {
    for wait in [Wait::Block, Wait::Spin] {
        for family in [Family::Ipv4, Family::Ipv6] {
            for (protocol, traffic) in [
                ("tcp", Traffic::TcpRr(stamped(48, 1, wait, None))),
                ("udp", Traffic::UdpRr(stamped(64, 1, wait, None))),
            ] {
                let what = format!("{protocol} {wait:?} {family:?}");
                let (client, server) = run(traffic, family);
                let report = check(&client, &WHOLE, &what);
                check_complete(&report, &what);
                // Its times travelled with the responses.
                assert_eq!(server.stamps, None, "{what}");
                let one_way = report.one_way.expect(&what);
                assert_eq!((one_way.clocks, one_way.error_ns), (Clocks::Shared, 0), "{what}");
                assert_eq!((one_way.up.count, one_way.down.count), (report.complete, report.complete));
                assert_eq!(one_way.negative, 0, "{what}");
            }
        }
    }
}

#[test]
fn open_loop_has_lateness_as_a_part() {
    for wait in [Wait::Block, Wait::Spin] {
        for (protocol, traffic) in [
            ("tcp", Traffic::TcpRr(stamped(64, 1, wait, Some(2000)))),
            ("udp", Traffic::UdpRr(stamped(64, 1, wait, Some(2000)))),
        ] {
            let what = format!("{protocol} {wait:?}");
            let (client, _) = run(traffic, Family::Ipv4);
            let report = check(&client, &[&[Part::ScheduleDelay], &WHOLE[..]].concat(), &what);
            assert_eq!(client.round_trips.as_ref().unwrap().requests, 1200, "{what}");
            // Over TCP, delayed requests may share a segment, whose time stamp is not theirs; datagrams stay separate.
            if protocol == "udp" {
                check_complete(&report, &what);
            }
        }
    }
}

#[test]
fn small_messages_keep_server_parts_in_the_server_report() {
    for (protocol, traffic) in [
        ("tcp", Traffic::TcpRr(stamped(1, 1, Wait::Block, None))),
        ("udp", Traffic::UdpRr(stamped(32, 1, Wait::Block, None))),
    ] {
        // The window of the server begins with the server, which may be later than the client: without a warm-up it contains all
        // requests.
        let (client, server) = run_with(Nanos(0), traffic, Family::Ipv6);
        let expected = [Part::ClientSend, Part::NetworkAndServer, Part::ClientReceive];
        let report = check(&client, &expected, protocol);
        assert_eq!((report.stamped, report.one_way), (report.complete, None), "{protocol}");
        let own = server.stamps.expect(protocol);
        let kinds: Vec<Part> = own.parts.iter().map(|record| record.part).collect();
        assert_eq!(kinds, [Part::ServerReceive, Part::ServerProgram, Part::ServerSend], "{protocol}");
        assert_eq!((own.stamped, own.inconsistent), (own.complete, 0), "{protocol}: {:?}", own.missing);
        assert!(own.complete > 0 && report.complete > 0, "{protocol}");
        assert_eq!((own.round_trip, own.one_way), (None, None), "{protocol}");
    }
}

#[test]
fn time_stamps_of_concurrent_and_large_messages_are_not_confused() {
    for wait in [Wait::Block, Wait::Spin] {
        for (what, traffic) in [
            ("tcp, 16", Traffic::TcpRr(stamped(64, 16, wait, None))),
            ("udp, 16", Traffic::UdpRr(stamped(64, 16, wait, None))),
            ("tcp, 300 kB", Traffic::TcpRr(stamped(300_000, 3, wait, None))),
        ] {
            let (client, _) = run(traffic, Family::Ipv4);
            check(&client, &WHOLE, &format!("{what} {wait:?}"));
        }
    }
}

#[test]
fn workload_without_time_stamps_has_none() {
    let (client, server) = run(Traffic::TcpRr(messages(64, 1, Wait::Block, None)), Family::Ipv4);
    assert_eq!((client.stamps, server.stamps), (None, None));
}
