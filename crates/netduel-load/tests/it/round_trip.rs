//! Requests and responses, closed and open loop, blocking and spinning.
use netduel_model::sample::{EndReport, RoundTripReport};
use netduel_model::units::Nanos;
use netduel_model::workload::{Family, RoundTrip, Traffic, Wait};

use crate::harness::{check_flows, messages, run_in_time, run_pair, waits, workload};

fn check(client: &EndReport, server: &EndReport, size: u64, what: &str) -> RoundTripReport {
    let trips = client.round_trips.clone().unwrap();
    assert!(trips.responses > 0, "{what}");
    assert_eq!(trips.requests, trips.responses + trips.timeouts, "{what}: {trips:?}");
    assert_eq!(trips.timeouts, 0, "{what}");
    assert_eq!(trips.histogram.count, trips.responses, "{what}: the whole trial is the steady window here");
    assert_eq!(trips.histogram.pairs.iter().map(|pair| pair.1).sum::<u64>(), trips.histogram.count);
    assert_eq!(trips.series.iter().map(|sample| sample.count).sum::<u64>(), trips.responses, "{what}");
    assert_eq!(trips.series.iter().map(|sample| sample.max_ns).max(), Some(trips.histogram.max), "{what}");
    let (requests, responses) = (server.received.as_ref().unwrap(), server.sent.as_ref().unwrap());
    assert_eq!((requests.messages, requests.bytes), (trips.requests, trips.requests * size), "{what}");
    assert_eq!((responses.messages, responses.bytes), (trips.responses, trips.responses * size), "{what}");
    assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
    assert!(server.round_trips.is_none());
    check_flows(client);
    check_flows(server);
    trips
}

fn both_protocols(settings: &RoundTrip) -> [(&'static str, Traffic); 2] {
    [("tcp", Traffic::TcpRr(settings.clone())), ("udp", Traffic::UdpRr(settings.clone()))]
}

#[test]
fn closed_loop_counts_each_round_trip() {
    for wait in waits() {
        for outstanding in [1, 7] {
            for family in [Family::Ipv4, Family::Ipv6] {
                for (protocol, traffic) in both_protocols(&messages(16, outstanding, wait, None)) {
                    let what = format!("{protocol} {wait:?} {outstanding} {family:?}");
                    let (client, server) = run_in_time(&workload(traffic, family, 200));
                    let trips = check(&client, &server, 16, &what);
                    assert_eq!(trips.pacing_error, None);
                    assert!(trips.responses >= u64::from(outstanding), "{what}");
                }
            }
        }
    }
}

#[test]
fn open_loop_keeps_its_schedule_exactly() {
    for wait in waits() {
        for (protocol, traffic) in both_protocols(&messages(64, 1, wait, Some(2000))) {
            let what = format!("{protocol} {wait:?}");
            let (client, server) = run_in_time(&workload(traffic, Family::Ipv4, 200));
            let trips = check(&client, &server, 64, &what);
            assert_eq!(trips.requests, 400, "{what}");
            assert_eq!(trips.pacing_error.map(|record| record.count), Some(400), "{what}");
        }
    }
}

/// Each request is a system call: no host makes three million of them in the time.
#[test]
fn schedule_beyond_the_host_ends_and_is_reported() {
    for wait in [Wait::Block, Wait::Spin] {
        for (protocol, traffic) in both_protocols(&messages(64, 1, wait, Some(10_000_000))) {
            let what = format!("{protocol} {wait:?}");
            let (client, _) = run_pair(&workload(traffic, Family::Ipv4, 3000)).unwrap();
            let is_reported =
                client.errors.iter().any(|error| error.error.contains("higher than this host can send"));
            assert!(is_reported, "{what}: {:?}", client.errors);
            let trips = client.round_trips.unwrap();
            assert!(trips.responses > 0 && trips.requests < 30_000_000, "{what}: {}", trips.requests);
        }
    }
}

/// In the open loop all 20 requests are due within 20 ms, less than one takes: both directions are full on any machine.
#[test]
fn large_messages_do_not_deadlock() {
    for (rate, duration_ms) in [(None, 200), (Some(1000), 20)] {
        for wait in [Wait::Block, Wait::Spin] {
            let traffic = Traffic::TcpRr(messages(4 << 20, 8, wait, rate));
            let (client, server) = run_pair(&workload(traffic, Family::Ipv4, duration_ms)).unwrap();
            let trips = check(&client, &server, 4 << 20, &format!("{rate:?} {wait:?}"));
            assert!(rate.is_none() || trips.requests == 20, "{wait:?}: {} requests", trips.requests);
        }
    }
}

#[test]
fn warm_up_and_cool_down_are_in_the_series_only() {
    let mut workload = workload(Traffic::TcpRr(messages(1, 1, Wait::Block, Some(1000))), Family::Ipv4, 300);
    workload.timing.warmup = Nanos::from_millis(100);
    workload.timing.cooldown = Nanos::from_millis(50);
    let (client, _) = run_pair(&workload).unwrap();
    let trips = client.round_trips.unwrap();
    assert_eq!(trips.responses, 300);
    assert_eq!(trips.histogram.count, 150);
    assert_eq!(trips.pacing_error.map(|record| record.count), Some(150));
    assert_eq!(trips.series.iter().map(|sample| sample.count).sum::<u64>(), 300);
}

#[test]
fn busy_polling_reports_that_loopback_has_no_napi_instance() {
    let napi = |report: &EndReport| report.streams.iter().map(|stream| stream.napi_id).collect::<Vec<_>>();
    for wait in waits() {
        for rate in [None, Some(2000)] {
            for (protocol, traffic) in both_protocols(&messages(16, 1, wait, rate)) {
                let (client, server) = run_pair(&workload(traffic, Family::Ipv6, 100)).unwrap();
                let expected = vec![(wait == Wait::BusyPoll).then_some(0)];
                assert_eq!(
                    (napi(&client), napi(&server)),
                    (expected.clone(), expected),
                    "{protocol} {wait:?} {rate:?}"
                );
            }
        }
    }
}
