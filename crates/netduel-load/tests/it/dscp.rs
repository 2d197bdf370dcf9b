//! The packets of a workload have its DSCP on the wire.
use std::cell::RefCell;

use netduel_model::units::{Bytes, PerSecond};
use netduel_model::workload::{Direction, Family, TcpEngine, Traffic, Transaction, Wait};
use netduel_sys::packet::PacketSocket;
use netduel_sys::socket::Waiting;
use netduel_test_support::{NewNamespace, skip};

use crate::harness::{messages, paced, run_through, tcp, workload};

/// Longer than every greeting, so that a frame of this payload is data.
const DATA: u64 = 700;
const ETHERNET: usize = 14;

/// Source port, destination port and DSCP of a frame, when it is TCP or UDP.
fn parse(frame: &[u8]) -> Option<(u16, u16, u8)> {
    let ip = frame.get(ETHERNET..)?;
    let (protocol, byte, header) = match ip.first()? >> 4 {
        4 => (*ip.get(9)?, *ip.get(1)?, usize::from(ip[0] & 15) * 4),
        6 => (*ip.get(6)?, (ip[0] << 4) | (*ip.get(1)? >> 4), 40),
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes([*ip.get(header + at)?, *ip.get(header + at + 1)?]));
    [6, 17].contains(&protocol).then_some((port(0)?, port(2)?, byte >> 2))
}

/// DSCPs of the data frames of a trial: to the server, and from it.
fn seen(traffic: Traffic, family: Family, dscp: Option<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let index = std::fs::read_to_string("/sys/class/net/lo/ifindex").unwrap();
    let index = index.trim().parse().unwrap();
    let mut workload = workload(traffic, family, 200);
    workload.dscp = dscp;
    let watched = RefCell::new(None);
    run_through(&workload, |own| {
        // Opened when it is this test's turn: frames of other tests would fill the buffer.
        watched.replace(Some((own.to_vec(), PacketSocket::open(index, 64 << 20))));
        own.to_vec()
    })
    .unwrap();
    let (ports, socket) = watched.into_inner().unwrap();
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => {
            skip(format!("frames cannot be captured here: {error}"));
            return None;
        }
    };
    let (mut to_server, mut from_server) = (Vec::new(), Vec::new());
    let mut frame = vec![0; 256];
    while let Ok(length) = socket.receive(&mut frame, Waiting::Never) {
        let Some((source, destination, dscp)) = parse(&frame[..length.min(frame.len())]) else { continue };
        // Only the start of a frame is captured; the IP header has the length on the wire.
        if payload(&frame) < DATA {
            continue;
        }
        if ports.contains(&destination) {
            to_server.push(dscp);
        } else if ports.contains(&source) {
            from_server.push(dscp);
        }
    }
    Some((to_server, from_server))
}

/// Length of a packet after its IP header; 0 in the header means that it does not fit the field.
fn payload(frame: &[u8]) -> u64 {
    let field = |at: usize| u64::from(u16::from_be_bytes([frame[ETHERNET + at], frame[ETHERNET + at + 1]]));
    match if frame[ETHERNET] >> 4 == 4 { field(2) } else { field(4) } {
        0 => u64::MAX,
        length => length,
    }
}

#[test]
fn data_packets_of_both_ends_have_the_dscp_of_the_workload() {
    // Bulk traffic of other tests on the loopback of this machine would fill the buffer of the capture.
    NewNamespace { prepare: "ip link set lo up", ..NewNamespace::default() }
        .run("dscp::data_packets_of_both_ends_have_the_dscp_of_the_workload", capture_each_type);
}

fn capture_each_type() {
    let request_response = |rate| messages(DATA, 1, Wait::Block, Some(rate));
    let transaction = Transaction {
        request: Bytes(DATA),
        response: Bytes(DATA),
        outstanding: 2,
        wait: Wait::Block,
        rate: Some(PerSecond(200)),
        congestion: None,
    };
    for family in [Family::Ipv4, Family::Ipv6] {
        for (traffic, both) in [
            (paced(tcp(2, Direction::Up, TcpEngine::Copy), 20_000_000), false),
            (Traffic::TcpRr(request_response(500)), true),
            (Traffic::UdpRr(request_response(500)), true),
            (Traffic::TcpCrr(transaction.clone()), true),
        ] {
            let name = traffic.kind().word();
            let Some((to_server, from_server)) = seen(traffic.clone(), family, Some(46)) else { return };
            assert!(!to_server.is_empty() && (!both || !from_server.is_empty()), "{name} {family}");
            let others = to_server.iter().chain(&from_server).filter(|dscp| **dscp != 46).count();
            assert_eq!(others, 0, "{name} {family}: {to_server:?} {from_server:?}");
            let Some((plain, _)) = seen(traffic, family, None) else { return };
            assert!(!plain.is_empty() && plain.iter().all(|dscp| *dscp == 0), "{name} {family}");
        }
    }
}
