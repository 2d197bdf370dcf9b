//! Many trials through one port: who gets where, and that nothing of one is counted for another.
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use netduel_load::{Control, Port, prepare_client};
use netduel_model::ids::Token;
use netduel_model::sample::EndReport;
use netduel_model::units::{BitRate, Bytes};
use netduel_model::workload::{Direction, Family, TcpEngine, Traffic, Transaction, Wait, Workload};

use crate::harness::{LIMIT, TOKEN, loopback, messages, received, sent, tcp, turn, workload};

/// A port on loopback or all addresses, and what it takes for control connections.
pub fn open(bind: IpAddr) -> (Port, Receiver<(TcpStream, SocketAddr)>) {
    let (sender, receiver) = channel();
    let control: Control = Box::new(move |stream, peer| {
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
    Traffic::UdpStream { flows, direction, size: Bytes(200), rate: Some(BitRate(rate)) }
}

/// Runs both ends of a trial through the port, the client going to `host`.
pub fn run(port: &Port, host: IpAddr, workload: &Workload, token: Token) -> (EndReport, EndReport) {
    let server = port.prepare_server(workload, token).unwrap();
    assert!(server.ports().iter().all(|number| *number == port.address().port()), "{:?}", server.ports());
    let client = prepare_client(workload, host, server.ports(), token, LIMIT).unwrap();
    let (sender, done) = channel();
    let from_server = sender.clone();
    let server = server.start(Box::new(move || from_server.send("server").unwrap()));
    let client = client.start(Box::new(move || sender.send("client").unwrap()));
    match done.recv_timeout(LIMIT).expect("an end is done") {
        "server" => client.finish(),
        _ => server.finish(),
    }
    done.recv_timeout(LIMIT).expect("the other end is done");
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
    };
    vec![
        tcp(3, Direction::Both, TcpEngine::Lean),
        tcp(2, Direction::Down, TcpEngine::Copy),
        datagrams(4, Direction::Both, 1_600_000),
        Traffic::TcpRr(messages(100, 4, Wait::Block, None)),
        Traffic::UdpRr(messages(100, 4, Wait::Block, None)),
        Traffic::TcpCrr(transactions),
    ]
}

/// What each end sent is what the other received.
pub fn check(traffic: &Traffic, client: &EndReport, server: &EndReport) {
    let name = traffic.type_name();
    assert!(sent(client) + sent(server) > 0, "{name}");
    match traffic {
        Traffic::UdpStream { .. } => {
            for (sender, receiver) in [(client, server), (server, client)] {
                let Some(flow) = &sender.sent else { continue };
                let count = receiver.datagrams.as_ref().unwrap();
                assert_eq!(flow.messages - count.unique, count.socket_drops.unwrap(), "{name}: {count:?}");
                assert_eq!((count.duplicates, count.foreign), (0, 0), "{name}: {count:?}");
            }
        }
        _ => {
            assert_eq!(sent(client), received(server), "{name}: up");
            assert_eq!(sent(server), received(client), "{name}: down");
        }
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
                let workload = workload(traffic.clone(), family, 100);
                let (client, server) = run(&port, loopback(family), &workload, token(number));
                check(&traffic, &client, &server);
            }
        }
    }
}

#[test]
fn a_tls_connection_goes_to_control_with_its_first_byte_unread() {
    let (port, control) = open(Ipv6Addr::UNSPECIFIED.into());
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port.address().port())).unwrap();
    client.write_all(b"\x16\x03\x01rest").unwrap();
    let (mut stream, peer) = control.recv_timeout(LIMIT).unwrap();
    assert_eq!(peer, client.local_addr().unwrap(), "IPv4 is told as IPv4");
    let mut bytes = [0; 7];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"\x16\x03\x01rest");
    stream.write_all(b"answer").unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    let mut answer = [0; 6];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer");
}
