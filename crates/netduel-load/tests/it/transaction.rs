//! Transactions with one connection each: all are counted, and their parts add up.
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use netduel_load::{LoadError, prepare_client, prepare_server};
use netduel_model::sample::{EndReport, RoundTripReport};
use netduel_model::units::{Bytes, Nanos, PerSecond};
use netduel_model::workload::{Family, Traffic, Transaction, Wait};
use netduel_sys::clock;
use netduel_test_support::NewNamespace;

use crate::harness::{
    LIMIT, TOKEN, check_flows, is_closed, loopback, notification, run_pair, run_through, turn, workload,
};
use crate::port_unknown_peers::hello;

/// Pause of a slow peer between two bytes: less than any timeout of a call of the server, more than the server may wait for a head
/// of 48 bytes divided by their number.
const BETWEEN_BYTES: Duration = Duration::from_millis(200);

pub fn transactions(request: u64, response: u64, outstanding: u32, wait: Wait, rate: Option<u64>) -> Traffic {
    Traffic::TcpCrr(Transaction {
        request: Bytes(request),
        response: Bytes(response),
        outstanding,
        wait,
        rate: rate.map(PerSecond),
        congestion: None,
    })
}

fn check(
    client: &EndReport,
    server: &EndReport,
    (request, response): (u64, u64),
    what: &str,
) -> RoundTripReport {
    assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
    let trips = client.round_trips.clone().unwrap();
    let parts = trips.parts.clone().unwrap();
    assert!(trips.responses > 0, "{what}");
    assert_eq!((trips.requests, trips.timeouts, parts.failed), (trips.responses, 0, 0), "{what}");
    for histogram in [&trips.histogram, &parts.connect, &parts.exchange] {
        assert_eq!(histogram.count, trips.responses, "{what}: the whole trial is the steady window here");
    }
    assert!(parts.connect.max <= trips.histogram.max && parts.exchange.max <= trips.histogram.max, "{what}");
    assert!(parts.connect.min + parts.exchange.min <= trips.histogram.max, "{what}");
    assert_eq!(trips.series.iter().map(|sample| sample.count).sum::<u64>(), trips.responses, "{what}");
    let (requests, responses) = (server.received.as_ref().unwrap(), server.sent.as_ref().unwrap());
    assert_eq!((requests.messages, requests.bytes), (trips.requests, trips.requests * request), "{what}");
    assert_eq!(
        (responses.messages, responses.bytes),
        (trips.responses, trips.responses * response),
        "{what}"
    );
    assert_eq!(client.sent.as_ref().map(|flow| flow.bytes), Some(requests.bytes), "{what}");
    assert_eq!(client.received.as_ref().map(|flow| flow.bytes), Some(responses.bytes), "{what}");
    check_flows(client);
    check_flows(server);
    trips
}

#[test]
fn closed_loop_counts_each_transaction() {
    for wait in [Wait::Block, Wait::Spin] {
        for outstanding in [1, 7] {
            for family in [Family::Ipv4, Family::Ipv6] {
                let what = format!("{wait:?} {outstanding} {family:?}");
                let workload = workload(transactions(48, 16, outstanding, wait, None), family, 300);
                let (client, server) = run_pair(&workload).unwrap();
                let trips = check(&client, &server, (48, 16), &what);
                assert_eq!(trips.pacing_error, None);
                assert_eq!(client.streams.len(), outstanding as usize, "{what}: a stream for each thread");
            }
        }
    }
}

#[test]
fn open_loop_starts_each_scheduled_transaction() {
    for wait in [Wait::Block, Wait::Spin] {
        let mut workload = workload(transactions(64, 64, 4, wait, Some(200)), Family::Ipv4, 300);
        let (client, server) = run_pair(&workload).unwrap();
        let trips = check(&client, &server, (64, 64), &format!("{wait:?}"));
        assert_eq!(trips.requests, 60);
        workload.timing.warmup = Nanos::from_millis(100);
        workload.timing.cooldown = Nanos::from_millis(50);
        let trips = run_pair(&workload).unwrap().0.round_trips.unwrap();
        let parts = trips.parts.unwrap();
        let counts = [trips.histogram.count, parts.connect.count, parts.exchange.count];
        assert_eq!((trips.responses, counts), (60, [30; 3]));
        assert_eq!(trips.pacing_error.map(|record| record.count), Some(30));
    }
}

#[test]
fn schedule_faster_than_the_host_ends_and_its_unsent_requests_are_reported() {
    // A connection for each of a million requests: no host makes them within the time that late ones have.
    let workload = workload(transactions(64, 64, 4, Wait::Block, Some(10_000_000)), Family::Ipv4, 100);
    let (client, _) = run_pair(&workload).unwrap();
    let trips = client.round_trips.unwrap();
    assert!(trips.responses > 0 && trips.requests < 1_000_000, "{} requests", trips.requests);
    let unsent = client.errors.iter().filter(|error| error.error.contains("higher than this host can send"));
    assert_eq!(unsent.map(|error| error.count).collect::<Vec<_>>(), [1], "{:?}", client.errors);
}

#[test]
fn requests_and_responses_may_be_large_and_differ_in_size() {
    for (request, response) in [(48, 1 << 20), (1 << 20, 16), (100_001, 70_003)] {
        for wait in [Wait::Block, Wait::Spin] {
            let workload = workload(transactions(request, response, 2, wait, None), Family::Ipv4, 300);
            let (client, server) = run_pair(&workload).unwrap();
            check(&client, &server, (request, response), &format!("{request} {response} {wait:?}"));
        }
    }
}

#[test]
fn unknown_peers_get_no_response_and_do_not_stop_the_client() {
    let workload = workload(transactions(64, 64, 2, Wait::Block, None), Family::Ipv4, 600_000);
    let _turn = turn();
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.ports()[0]));
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    let (notify, done) = notification();
    let server = server.start(Box::new(|| ()));
    let client = client.start(notify);
    while client.live().messages == 0 {
        std::thread::yield_now();
    }
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    for bytes in [
        &[0x55; 200][..],
        b"NETDUEL1\x05 of another trial, or of no trial at all ....",
        b"GET / HTTP/1.1\r\n",
    ] {
        let mut foreign = TcpStream::connect(address).unwrap();
        foreign.write_all(bytes).unwrap();
        assert!(is_closed(&foreign), "a foreign client was answered, or is still awaited");
    }
    client.finish();
    done.recv_timeout(LIMIT).unwrap();
    server.finish();
    let (client, server) = (client.join().unwrap(), server.join().unwrap());
    drop(silent);
    assert_eq!(client.errors, []);
    let trips = client.round_trips.unwrap();
    assert_eq!(trips.requests, trips.responses);
    assert_eq!(server.received.unwrap().messages, trips.requests, "foreign clients are not counted");
    assert!(
        server.errors.iter().any(|error| error.error.contains("without the token of this trial")),
        "{:?}",
        server.errors
    );
}

#[test]
fn head_that_arrives_byte_by_byte_is_not_awaited() {
    let workload = workload(transactions(64, 64, 1, Wait::Block, None), Family::Ipv4, 100);
    let _turn = turn();
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.ports()[0]));
    // Its standing connection lets the server start.
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    let server = server.start(Box::new(|| ()));
    let mut foreign = TcpStream::connect(address).unwrap();
    foreign.set_read_timeout(Some(BETWEEN_BYTES)).unwrap();
    // The server closes the connection long before the last byte of a head.
    let is_cut = (0..47).any(|_| {
        let sent = foreign.write_all(b"N");
        sent.is_err()
            || !matches!(foreign.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    });
    server.abort();
    let report = server.join().unwrap();
    drop(client);
    assert!(is_cut, "47 bytes of a head were awaited: {:?}", report.errors);
    assert!(report.errors.iter().any(|error| error.error == "request timed out"), "{:?}", report.errors);
}

#[test]
fn request_that_stops_is_given_up_on_connections_from_before_the_start() {
    let workload = workload(transactions(64, 64, 1, Wait::Block, None), Family::Ipv4, 100);
    let _turn = turn();
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.ports()[0]));
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    // The acceptor closes what connects before it has handed the listener over.
    let mut connections = Vec::new();
    let mut stopped = || {
        let mut stopped = TcpStream::connect(address).unwrap();
        // The head of a transaction, and nothing of the rest.
        stopped.write_all(&hello(5, TOKEN)).unwrap();
        connections.push(stopped);
    };
    stopped();
    let server = server.start(Box::new(|| ()));
    stopped();
    assert!(connections.iter().all(is_closed));
    server.abort();
    drop(client);
    let report = server.join().unwrap();
    assert!(report.errors.iter().any(|error| error.error == "request timed out"), "{:?}", report.errors);
}

#[test]
fn port_of_another_program_receives_the_handshake_only() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let (mut peer, _) = listener.accept().unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        peer.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let workload = workload(transactions(64, 64, 2, Wait::Block, None), Family::Ipv4, 100);
    let Err(error) = prepare_client(&workload, loopback(Family::Ipv4), &[port], TOKEN, LIMIT) else {
        panic!("it was taken for an agent")
    };
    assert!(matches!(error, LoadError::TokenRefused { .. }), "{error}");
    assert_eq!(thread.join().unwrap(), 48);
}

/// Connects of this network namespace that failed (RFC 4022, tcpAttemptFails).
fn failed_connects() -> u64 {
    let text = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let index = names.split(' ').position(|name| name == "AttemptFails").unwrap();
    values.split(' ').nth(index).unwrap().parse().unwrap()
}

/// For a network namespace in which nothing else connects.
fn with_a_dead_server() {
    // No machine stalls for so long: the client is finished when it has met the closed port.
    let workload = workload(transactions(64, 64, 2, Wait::Block, None), Family::Ipv4, 600_000);
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    let (notify, done) = notification();
    let server = server.start(Box::new(|| ()));
    let client = client.start(notify);
    while client.live().messages == 0 {
        std::thread::yield_now();
    }
    server.abort();
    server.join().unwrap();
    let (before, give_up_ns) = (failed_connects(), clock::monotonic_ns() + LIMIT.as_nanos() as u64);
    while failed_connects() == before {
        assert!(clock::monotonic_ns() < give_up_ns && !client.is_done(), "the client goes on connecting");
        std::thread::yield_now();
    }
    client.finish();
    done.recv_timeout(LIMIT).expect("a client without a server ends");
    let report = client.join().unwrap();
    let trips = report.round_trips.unwrap();
    let parts = trips.parts.unwrap();
    assert!(parts.failed > 0 && trips.responses > 0, "{parts:?}");
    assert_eq!((trips.requests, parts.attempted), (trips.responses + parts.failed, trips.requests));
    let refused = report.errors.iter().find(|error| error.call == "connect").expect("connects fail");
    assert!(refused.error.contains("ECONNREFUSED"), "{refused:?}");
}

#[test]
fn dead_server_causes_errors_by_call_and_a_timely_end() {
    let namespace = NewNamespace { prepare: "ip link set lo up", ..NewNamespace::default() };
    namespace.run("transaction::dead_server_causes_errors_by_call_and_a_timely_end", with_a_dead_server);
}

#[test]
fn sizes_without_room_for_the_token_are_rejected() {
    for (request, response, what) in [(47, 64, "size"), (64, 15, "response_size")] {
        let workload = workload(transactions(request, response, 1, Wait::Block, None), Family::Ipv4, 100);
        let Err(error) = prepare_server(&workload, loopback(Family::Ipv4), TOKEN) else {
            panic!("it was taken")
        };
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// For a network namespace with ten local ports.
fn with_ten_local_ports() {
    // The listener uses one of the ten, the permanent connection another, and these seven: one is left for transactions.
    let _used: Vec<TcpListener> = (0..7).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let workload = workload(transactions(64, 1 << 20, 32, Wait::Block, None), Family::Ipv4, 300);
    let (client, _) = run_through(&workload, <[u16]>::to_vec).unwrap();
    let texts: Vec<String> = client
        .errors
        .iter()
        .map(|error| format!("{}: {} ({})", error.call, error.error, error.count))
        .collect();
    assert!(texts.iter().any(|text| text.contains("EADDRNOTAVAIL")), "{texts:?}");
    let remark = texts.iter().find(|text| text.contains("ip_local_port_range")).expect("the range is named");
    assert!(remark.contains("40000 to 40009 has 10 ports") && remark.ends_with("(1)"), "{remark}");
    let trips = client.round_trips.unwrap();
    assert!(trips.responses > 0, "those that have a port go on");
    assert_eq!(trips.requests, trips.responses + trips.parts.unwrap().failed);
}

#[test]
fn exhausted_port_range_is_reported_with_its_rate() {
    let prepare = "ip link set lo up; echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";
    let namespace = NewNamespace { prepare, ..NewNamespace::default() };
    namespace.run("transaction::exhausted_port_range_is_reported_with_its_rate", with_ten_local_ports);
}
