//! Authentication of data connections: unknown peers neither disturb the client nor receive traffic.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use netduel_load::{LoadError, prepare_client, prepare_server};
use netduel_model::ids::Token;
use netduel_model::units::{BitRate, Bytes};
use netduel_model::workload::{
    Direction, Family, FlowTuning, TcpEngine, Traffic, UdpOffload, UdpStream, Workload,
};

use crate::harness::{
    LIMIT, TOKEN, is_closed, loopback, notification, received, run_through, sent, tcp, workload,
};

const OTHER: Token = Token(*b"some other token");

fn bulk() -> Workload {
    workload(tcp(2, Direction::Up, TcpEngine::Copy), Family::Ipv4, 50)
}

fn datagrams() -> Workload {
    let traffic = Traffic::UdpStream(UdpStream {
        flows: 2,
        direction: Direction::Both,
        size: Bytes(100),
        rate: Some(BitRate(800_000)),
        offload: UdpOffload::None,
        tuning: FlowTuning::default(),
    });
    workload(traffic, Family::Ipv4, 100)
}

#[test]
fn unknown_tcp_peers_do_not_disturb_the_client() {
    let mut foreign_clients = Vec::new();
    let (client, server) = run_through(&bulk(), |ports| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports[0]));
        // More silent peers than the limit, one that sends garbage, one that starts correctly and stops.
        for _ in 0..300 {
            foreign_clients.push(TcpStream::connect(address).unwrap());
        }
        let mut garbage = TcpStream::connect(address).unwrap();
        garbage.write_all(&[0x55; 4096]).unwrap();
        let mut half = TcpStream::connect(address).unwrap();
        half.write_all(b"NETDUEL1\x01").unwrap();
        foreign_clients.extend([garbage, half]);
        ports.to_vec()
    })
    .unwrap();
    assert!(sent(&client) > 0);
    assert_eq!(sent(&client), received(&server));
    // None of them got a response: the connection was closed or reset without a byte.
    assert!(foreign_clients.iter().all(is_closed));
}

#[test]
fn unknown_udp_peers_do_not_disturb_the_client_and_have_no_reply() {
    let foreign = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (client, server) = run_through(&datagrams(), |ports| {
        for port in ports {
            for length in [0, 1, 24, 48, 49, 1400] {
                foreign.send_to(&vec![0x4e; length], (Ipv4Addr::LOCALHOST, *port)).unwrap();
            }
        }
        ports.to_vec()
    })
    .unwrap();
    assert_eq!(client.sent.unwrap().messages, server.datagrams.unwrap().unique);
    assert_eq!(server.sent.unwrap().messages, client.datagrams.unwrap().unique);
    foreign.set_nonblocking(true).unwrap();
    assert!(foreign.recv(&mut [0; 64]).is_err());
}

#[test]
fn wrong_token_is_rejected() {
    let server = prepare_server(&bulk(), loopback(Family::Ipv4), TOKEN).unwrap();
    let Err(error) = prepare_client(&bulk(), loopback(Family::Ipv4), server.ports(), OTHER, LIMIT) else {
        panic!("it was taken")
    };
    assert!(matches!(error, LoadError::TokenRefused { .. }), "{error}");

    let server = prepare_server(&datagrams(), loopback(Family::Ipv4), TOKEN).unwrap();
    let limit = Duration::from_millis(200);
    let Err(error) = prepare_client(&datagrams(), loopback(Family::Ipv4), server.ports(), OTHER, limit)
    else {
        panic!("it was taken")
    };
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
}

#[test]
fn echo_server_gets_no_traffic() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo = std::thread::spawn(move || {
        let mut total = 0;
        let (mut peer, _) = listener.accept().unwrap();
        let mut buffer = [0; 1024];
        while let Ok(count) = peer.read(&mut buffer) {
            if count == 0 || peer.write_all(&buffer[..count]).is_err() {
                break;
            }
            total += count;
        }
        total
    });
    let one = workload(tcp(1, Direction::Up, TcpEngine::Lean), Family::Ipv4, 50);
    let Err(error) = prepare_client(&one, loopback(Family::Ipv4), &[port], TOKEN, LIMIT) else {
        panic!("an echo server was taken for an agent")
    };
    assert!(matches!(error, LoadError::NotAnAgent { .. }), "{error}");
    assert_eq!(echo.join().unwrap(), 48, "only the greeting was sent");
}

#[test]
fn udp_echo_server_gets_no_traffic() {
    let echo = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = echo.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let mut lengths = Vec::new();
        loop {
            let (length, peer) = echo.recv_from(&mut buffer).unwrap();
            if length == 1 {
                return lengths;
            }
            lengths.push(length);
            echo.send_to(&buffer[..length], peer).unwrap();
        }
    });
    let traffic = Traffic::UdpStream(UdpStream {
        flows: 1,
        direction: Direction::Up,
        size: Bytes(1000),
        rate: None,
        offload: UdpOffload::None,
        tuning: FlowTuning::default(),
    });
    let workload = workload(traffic, Family::Ipv4, 50);
    // The reply must arrive within it: on a busy machine a thread may wait for its core for a large part of a second.
    let limit = Duration::from_secs(3);
    let Err(error) = prepare_client(&workload, loopback(Family::Ipv4), &[port], TOKEN, limit) else {
        panic!("an echo server was taken for an agent")
    };
    assert!(matches!(error, LoadError::NotAnAgent { .. }), "{error}");
    let stop = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    stop.send_to(&[0], (Ipv4Addr::LOCALHOST, port)).unwrap();
    let lengths = thread.join().unwrap();
    assert!(!lengths.is_empty() && lengths.iter().all(|length| *length == 48), "{lengths:?}");
}

#[test]
fn multicast_and_broadcast_addresses_are_rejected() {
    for address in ["224.0.0.1", "255.255.255.255", "0.0.0.0"] {
        let result = prepare_client(&datagrams(), address.parse().unwrap(), &[9, 9], TOKEN, LIMIT);
        assert!(matches!(result, Err(LoadError::Peer { .. })), "{address}");
    }
    // Only the kernel knows the broadcast address of a subnet.
    let result = prepare_client(&datagrams(), "127.255.255.255".parse().unwrap(), &[9, 9], TOKEN, LIMIT);
    assert!(matches!(result, Err(LoadError::Connect { .. })));
}

#[test]
fn closed_port_is_reported_with_its_address() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let Err(error) = prepare_client(&bulk(), loopback(Family::Ipv4), &[port], TOKEN, LIMIT) else {
        panic!("no program listens there")
    };
    let text = error.to_string();
    assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains("no program listens"), "{text}");
}

#[test]
fn address_without_an_interface_is_reported_with_a_remedy() {
    let Err(error) = prepare_server(&bulk(), "192.0.2.1".parse::<std::net::IpAddr>().unwrap(), TOKEN) else {
        panic!("it was bound")
    };
    assert!(matches!(error, LoadError::Bind { .. }));
    assert!(error.to_string().contains("ip address"), "{error}");
}

#[test]
fn server_without_a_client_can_be_aborted_or_dropped() {
    for workload in [bulk(), datagrams()] {
        let (notify, done) = notification();
        let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
        let running = server.start(notify);
        running.abort();
        done.recv_timeout(LIMIT).unwrap();
        assert!(matches!(running.join(), Err(LoadError::NoClient { connected: 0, expected: 2 })));

        // The next trial may need the same port. Another program of this machine can get one of them first, but not each.
        let is_free = |_| {
            let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
            let port = server.ports()[0];
            drop(server);
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
                && UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        };
        assert!((0..10).any(is_free));
    }
}
