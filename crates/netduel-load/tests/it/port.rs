//! Many trials through one port: connections reach their trial, and no count is mixed up.
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, channel};

use netduel_load::{ClientEnd, ControlHandler, LoadError, Port, ServerEnd, prepare_client};
use netduel_model::ids::Token;
use netduel_model::sample::EndReport;
use netduel_model::units::{BitRate, Bytes};
use netduel_model::workload::{
    Direction, Family, FlowTuning, ProbeProtocol, RoundTrip, TcpEngine, Traffic, Transaction, UdpOffload,
    UdpStream, Wait, Workload,
};
use netduel_test_support::not_compared;

use crate::harness::{LIMIT, TOKEN, loopback, messages, notification, received, sent, tcp, turn, workload};
use crate::loaded::load;

/// A port on loopback or all addresses, and its accepted control connections.
pub fn open(bind: IpAddr) -> (Port, Receiver<(TcpStream, SocketAddr)>) {
    let (sender, receiver) = channel();
    let control: ControlHandler = Box::new(move |stream, peer| {
        let _ = sender.send((stream, peer));
    });
    (Port::open(SocketAddr::new(bind, 0), control).unwrap(), receiver)
}

/// The token of trial `number`.
pub fn token(number: usize) -> Token {
    let mut token = TOKEN;
    token.0[..8].copy_from_slice(&number.to_le_bytes());
    token
}

pub fn datagrams(flows: u32, direction: Direction, rate: u64) -> Traffic {
    Traffic::UdpStream(UdpStream {
        flows,
        direction,
        size: Bytes(200),
        rate: Some(BitRate(rate)),
        offload: UdpOffload::None,
        tuning: FlowTuning::default(),
    })
}

/// A workload that lasts until data has moved; [`run_ends`] ends it, so that no test depends on scheduling delays of a busy
/// machine. Datagrams have a schedule, whose first one is sent even if it is late.
pub fn trial(traffic: Traffic, family: Family) -> Workload {
    let lasts_by_itself = matches!(traffic, Traffic::UdpStream(_));
    workload(traffic, family, if lasts_by_itself { 200 } else { 3_600_000 })
}

/// Runs both ends of a trial through the port; the client connects to `host`.
pub fn run(port: &Port, host: IpAddr, workload: &Workload, token: Token) -> (EndReport, EndReport) {
    let server = port.prepare_server(workload, token).unwrap();
    assert!(server.ports().iter().all(|number| *number == port.address().port()), "{:?}", server.ports());
    let client = prepare_client(workload, host, server.ports(), token, LIMIT).unwrap();
    run_ends(workload, client, server)
}

/// Runs both ends; those without an end of their own end once data has moved, the client before the server.
pub fn run_ends(workload: &Workload, client: ClientEnd, server: ServerEnd) -> (EndReport, EndReport) {
    let (notify_server, server_done) = notification();
    let (notify_client, client_done) = notification();
    let server = server.start(notify_server);
    let client = client.start(notify_client);
    if !matches!(workload.traffic, Traffic::UdpStream(_) | Traffic::LoadedLatency(_)) {
        while !client.is_done() && client.live().sent_bytes + client.live().received_bytes == 0 {
            std::thread::yield_now();
        }
        if let Traffic::TcpStream(_) = workload.traffic {
            server.finish();
        }
        client.finish();
    }
    client_done.recv_timeout(LIMIT).expect("the client is done");
    server.finish();
    server_done.recv_timeout(LIMIT).expect("the server is done");
    (client.join().unwrap(), server.join().unwrap())
}

/// One of each kind of traffic.
pub fn all_traffic() -> Vec<Traffic> {
    let transactions = Transaction {
        request: Bytes(100),
        response: Bytes(1000),
        outstanding: 2,
        wait: Wait::Block,
        rate: None,
        congestion: None,
    };
    vec![
        tcp(3, Direction::Both, TcpEngine::Lean),
        tcp(2, Direction::Down, TcpEngine::Copy),
        tcp(2, Direction::Both, TcpEngine::Zerocopy),
        tcp(2, Direction::Both, TcpEngine::IoUring),
        datagrams(4, Direction::Both, 1_600_000),
        Traffic::TcpRr(messages(100, 4, Wait::Block, None)),
        Traffic::UdpRr(messages(100, 4, Wait::Block, None)),
        Traffic::TcpCrr(transactions.clone()),
        Traffic::TcpCrr(Transaction { wait: Wait::Spin, ..transactions }),
    ]
}

/// Each end received what the other sent.
pub fn check(traffic: &Traffic, client: &EndReport, server: &EndReport) {
    let name = traffic.kind().word();
    assert!(sent(client) + sent(server) > 0, "{name}");
    let timeouts = client.round_trips.as_ref().map_or(0, |trips| trips.timeouts);
    if matches!(traffic, Traffic::UdpRr(_)) && timeouts > 0 {
        not_compared(format!("a stall of half a second timed out {timeouts} requests"));
        return;
    }
    if !matches!(traffic, Traffic::UdpStream(_)) {
        // An error of a UDP flow is acceptable: the last end marker may find the peer closed.
        assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{name}");
        assert_eq!(sent(client), received(server), "{name}: up");
        assert_eq!(sent(server), received(client), "{name}: down");
        return;
    }
    for (sender, receiver) in [(client, server), (server, client)] {
        let Some(flow) = &sender.sent else { continue };
        let count = receiver.datagrams.as_ref().unwrap();
        assert_eq!(flow.messages, count.unique, "{name}: {count:?}");
        assert_eq!((count.duplicates, count.reordered, count.unexpected), (0, 0, 0), "{name}: {count:?}");
    }
}

#[test]
fn every_workload_runs_through_one_port_over_ipv4_ipv6_and_both() {
    let _turn = turn();
    for bind in [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into(), Ipv6Addr::UNSPECIFIED.into()] {
        let (port, _control) = open(bind);
        for (number, traffic) in all_traffic().into_iter().enumerate() {
            for family in [Family::Ipv4, Family::Ipv6] {
                if bind != IpAddr::V6(Ipv6Addr::UNSPECIFIED) && bind != loopback(family) {
                    continue;
                }
                let workload = trial(traffic.clone(), family);
                let (client, server) = run(&port, loopback(family), &workload, token(number));
                check(&traffic, &client, &server);
            }
        }
    }
}

#[test]
fn loaded_latency_runs_through_one_port() {
    let _turn = turn();
    let (port, _control) = open(Ipv6Addr::UNSPECIFIED.into());
    for probe in [ProbeProtocol::Udp, ProbeProtocol::Tcp] {
        let traffic = load(Direction::Both, probe, TcpEngine::Lean);
        let workload = workload(traffic, Family::Ipv4, 600);
        let (client, server) = run(&port, loopback(Family::Ipv4), &workload, TOKEN);
        assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{probe:?}");
        assert_eq!((sent(&client), sent(&server)), (received(&server), received(&client)), "{probe:?}");
        assert!(client.round_trips.is_some_and(|trips| trips.responses > 0), "{probe:?}");
    }
}

#[test]
fn concurrent_clients_have_separate_counts() {
    let _turn = turn();
    let (port, _control) = open(Ipv6Addr::UNSPECIFIED.into());
    std::thread::scope(|scope| {
        for (number, traffic) in all_traffic().into_iter().chain(all_traffic()).enumerate() {
            let port = &port;
            let family = if number % 2 == 0 { Family::Ipv4 } else { Family::Ipv6 };
            scope.spawn(move || {
                let workload = trial(traffic.clone(), family);
                let (client, server) = run(port, loopback(family), &workload, token(number));
                check(&traffic, &client, &server);
            });
        }
    });
}

#[test]
fn flows_of_several_clients_have_separate_counts() {
    let _turn = turn();
    let (port, _control) = open(Ipv6Addr::UNSPECIFIED.into());
    // 64 flows each, each flow with another number of datagrams than its neighbours.
    std::thread::scope(|scope| {
        for number in 0..4 {
            let port = &port;
            scope.spawn(move || {
                let traffic = datagrams(if number == 3 { 64 } else { 16 }, Direction::Both, 3_200_000);
                let workload = trial(traffic.clone(), Family::Ipv4);
                let (client, server) = run(port, loopback(Family::Ipv4), &workload, token(number));
                check(&traffic, &client, &server);
            });
        }
    });
}

#[test]
fn replies_have_the_requested_source_address() {
    let _turn = turn();
    for bind in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
        let (port, _control) = open(bind);
        for (number, traffic) in all_traffic().into_iter().enumerate() {
            let workload = trial(traffic.clone(), Family::Ipv4);
            let (client, server) = run(&port, [127, 1, 2, 3].into(), &workload, token(number));
            check(&traffic, &client, &server);
        }
    }
}

#[test]
fn each_trial_has_its_own_congestion_control() {
    let _turn = turn();
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    for (number, name) in ["reno", "cubic"].into_iter().enumerate() {
        let traffic = with_congestion(name);
        let workload = trial(traffic, Family::Ipv4);
        let (_, server) = run(&port, loopback(Family::Ipv4), &workload, token(number));
        for stream in &server.streams {
            assert_eq!(stream.tcp.as_ref().unwrap().congestion.as_deref(), Some(name));
        }
    }
    let (round_trips, transactions) = request_response_with("reno");
    for (number, traffic) in [round_trips, transactions].into_iter().enumerate() {
        let workload = trial(traffic, Family::Ipv4);
        let (client, server) = run(&port, loopback(Family::Ipv4), &workload, token(10 + number));
        for end in [&client, &server] {
            for stream in end.streams.iter().filter_map(|stream| stream.tcp.as_ref()) {
                assert_eq!(stream.congestion.as_deref(), Some("reno"));
            }
        }
        let parts = client.round_trips.as_ref().unwrap().parts.as_ref();
        let used = match parts {
            Some(parts) => parts.congestion.as_deref(),
            None => server.streams[0].tcp.as_ref().unwrap().congestion.as_deref(),
        };
        assert_eq!(used, Some("reno"));
    }
    for traffic in <[Traffic; 2]>::from(request_response_with("nonsense")) {
        let Err(error) = port.prepare_server(&trial(traffic, Family::Ipv4), TOKEN) else {
            panic!("it was taken")
        };
        assert!(
            matches!(&error, LoadError::Congestion { available, .. } if available.contains("reno")),
            "{error}"
        );
    }
    let workload = trial(with_congestion("nonsense"), Family::Ipv4);
    let Err(error) = port.prepare_server(&workload, TOKEN) else { panic!("it was taken") };
    assert!(matches!(error, LoadError::Congestion { .. }), "{error}");
}

fn request_response_with(name: &str) -> (Traffic, Traffic) {
    let congestion = Some(name.to_owned());
    let round_trips = RoundTrip { congestion: congestion.clone(), ..messages(100, 1, Wait::Block, None) };
    let Traffic::TcpCrr(transactions) = crate::transaction::transactions(100, 1000, 2, Wait::Block, None)
    else {
        unreachable!("it is a tcp-crr")
    };
    (Traffic::TcpRr(round_trips), Traffic::TcpCrr(Transaction { congestion, ..transactions }))
}

fn with_congestion(name: &str) -> Traffic {
    let Traffic::TcpStream(stream) = tcp(2, Direction::Down, TcpEngine::Copy) else {
        unreachable!("it is a tcp-stream")
    };
    Traffic::TcpStream(netduel_model::workload::TcpStream { congestion: Some(name.to_owned()), ..stream })
}

#[test]
fn token_is_unique_until_its_trial_is_dropped() {
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    for traffic in all_traffic() {
        let workload = trial(traffic, Family::Ipv4);
        let first = port.prepare_server(&workload, TOKEN).unwrap();
        let Err(error) = port.prepare_server(&workload, TOKEN) else { panic!("the token was taken twice") };
        assert!(matches!(error, LoadError::TokenTaken), "{error}");
        drop(first);
        drop(port.prepare_server(&workload, TOKEN).unwrap());
    }
}

#[test]
fn trial_of_an_unbound_ip_version_is_rejected() {
    for (bind, family) in [
        (IpAddr::V4(Ipv4Addr::LOCALHOST), Family::Ipv6),
        (Ipv4Addr::UNSPECIFIED.into(), Family::Ipv6),
        (Ipv6Addr::LOCALHOST.into(), Family::Ipv4),
    ] {
        let (port, _control) = open(bind);
        let workload = workload(tcp(1, Direction::Up, TcpEngine::Lean), family, 50);
        let Err(error) = port.prepare_server(&workload, TOKEN) else { panic!("{bind} {family}") };
        assert!(matches!(error, LoadError::Family { .. }), "{error}");
    }
}

#[test]
fn port_in_use_is_reported_with_a_remedy() {
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for address in [tcp.local_addr().unwrap(), udp.local_addr().unwrap()] {
        for bind in [address, SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port())] {
            let Err(error) = Port::open(bind, Box::new(|_, _| ())) else { panic!("{bind} was bound twice") };
            let text = error.to_string();
            assert!(text.contains(&bind.port().to_string()) && text.contains("ss -lntup"), "{text}");
        }
    }
    let Err(error) = Port::open("192.0.2.1:0".parse().unwrap(), Box::new(|_, _| ())) else {
        panic!("it was bound")
    };
    assert!(error.to_string().contains("ip address"), "{error}");
}

#[test]
fn trial_without_a_client_ends_by_abort_close_or_timeout() {
    let two = workload(tcp(2, Direction::Up, TcpEngine::Lean), Family::Ipv4, 1);
    let flows = workload(datagrams(2, Direction::Up, 800_000), Family::Ipv4, 1);
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    let start = |workload: &Workload, number| {
        let (notify, done) = notification();
        (port.prepare_server(workload, token(number)).unwrap().start(notify), done)
    };
    let (aborted, done) = start(&two, 0);
    aborted.abort();
    done.recv_timeout(LIMIT).unwrap();
    // After its time limit of ten seconds, without a message to it.
    let patient = [start(&two, 1), start(&flows, 2)];
    let ended = patient.map(|(running, done)| {
        done.recv_timeout(LIMIT).unwrap();
        running
    });
    let closed = [start(&two, 3), start(&flows, 4)];
    let prepared = port.prepare_server(&two, token(5)).unwrap();
    drop(port);
    let closed = closed.map(|(running, done)| {
        done.recv_timeout(LIMIT).unwrap();
        running
    });
    for running in [aborted].into_iter().chain(ended).chain(closed) {
        let error = running.join().unwrap_err();
        assert!(matches!(error, LoadError::NoClient { connected: 0, expected: 2 }), "{error}");
    }
    let (notify, done) = notification();
    let late = prepared.start(notify);
    done.recv_timeout(LIMIT).unwrap();
    assert!(matches!(late.join(), Err(LoadError::NoClient { .. })));
}

#[test]
fn running_trials_continue_when_the_port_is_closed() {
    let _turn = turn();
    for traffic in [tcp(2, Direction::Both, TcpEngine::Lean), datagrams(4, Direction::Both, 1_600_000)] {
        let workload = trial(traffic.clone(), Family::Ipv4);
        let (port, _control) = open(Ipv6Addr::UNSPECIFIED.into());
        let address = port.address();
        let server = port.prepare_server(&workload, TOKEN).unwrap();
        let host = loopback(Family::Ipv4);
        let client = prepare_client(&workload, host, server.ports(), TOKEN, LIMIT).unwrap();
        drop(port);
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let (client, server) = run_ends(&workload, client, server);
        check(&traffic, &client, &server);
    }
}

#[test]
fn lost_replies_are_requested_again() {
    let _turn = turn();
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    let workload = trial(datagrams(1, Direction::Both, 800_000), Family::Ipv4);
    let server = port.prepare_server(&workload, TOKEN).unwrap();
    let proxy = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let through = proxy.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| lose_first_answers(&proxy, port.address()));
        let host = loopback(Family::Ipv4);
        let client = prepare_client(&workload, host, &[through], TOKEN, LIMIT).unwrap();
        let (client, server) = run_ends(&workload, client, server);
        check(&workload.traffic, &client, &server);
        let stop = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        stop.send_to(b"stop", proxy.local_addr().unwrap()).unwrap();
        // The proof, and the final confirmation.
        assert_eq!(lost.join().unwrap(), [2, 4]);
    });
}

/// Forwards datagrams between a client and `server`, except the first of each kind of reply; returns these kinds.
fn lose_first_answers(proxy: &UdpSocket, server: SocketAddr) -> Vec<u8> {
    let mut client = None;
    let mut lost = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = proxy.recv_from(&mut buffer).unwrap();
        let bytes = &buffer[..length];
        if bytes == b"stop" {
            return lost;
        }
        if from != server {
            client = Some(from);
            proxy.send_to(bytes, server).unwrap();
        } else if bytes.starts_with(b"NETDUEL1") && !lost.contains(&bytes[8]) {
            lost.push(bytes[8]);
        } else {
            proxy.send_to(bytes, client.unwrap()).unwrap();
        }
    }
}

#[test]
fn tls_connection_is_passed_to_control_unread() {
    let (port, control) = open(Ipv6Addr::UNSPECIFIED.into());
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port.address().port())).unwrap();
    client.write_all(b"\x16\x03\x01rest").unwrap();
    let (mut stream, peer) = control.recv_timeout(LIMIT).unwrap();
    assert_eq!(peer, client.local_addr().unwrap(), "IPv4 is reported as IPv4");
    let mut bytes = [0; 7];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"\x16\x03\x01rest");
    stream.write_all(b"answer").unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    let mut answer = [0; 6];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer");
}
