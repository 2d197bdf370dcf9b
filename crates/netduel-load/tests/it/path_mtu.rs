//! Datagrams longer than the path MTU: rejected with the size that fits, fragmented by IP, or ended when the MTU decreases; never
//! a hang. Each test runs again in a network namespace, whose loopback has the MTU of Ethernet.
use std::process::Command;

use netduel_load::{LoadError, prepare_client, prepare_server};
use netduel_model::units::Bytes;
use netduel_model::workload::{Direction, Family, FlowTuning, Traffic, UdpOffload, UdpStream};
use netduel_test_support::NewNamespace;

use crate::harness::{LIMIT, TOKEN, loopback, notification, run_pair, turn, workload};

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

/// Runs `body` in a new network namespace, whose loopback has the MTU of Ethernet.
fn with_ethernet_mtu(name: &str, body: fn()) {
    let namespace = NewNamespace { prepare: "ip link set lo mtu 1500 up", ..NewNamespace::default() };
    namespace.run(&format!("path_mtu::{name}"), body);
}

fn udp(direction: Direction, size: u64, offload: UdpOffload) -> Traffic {
    Traffic::UdpStream(UdpStream {
        flows: 1,
        direction,
        size: Bytes(size),
        rate: None,
        offload,
        tuning: FlowTuning::default(),
    })
}

#[test]
fn datagrams_beyond_the_mtu_are_rejected_with_the_largest_size() {
    with_ethernet_mtu("datagrams_beyond_the_mtu_are_rejected_with_the_largest_size", || {
        for (family, most) in [(Family::Ipv4, 1472), (Family::Ipv6, 1452)] {
            for offload in [UdpOffload::Gso, UdpOffload::GsoGro] {
                let fits = workload(udp(Direction::Up, most, offload), family, 100);
                let (client, server) = run_pair(&fits).unwrap();
                assert!(client.sent.unwrap().messages > 0 && server.received.unwrap().messages > 0);
                for direction in [Direction::Up, Direction::Down] {
                    let traffic = udp(direction, most + 1, offload);
                    let Err(error) = run_pair(&workload(traffic, family, 100)) else { panic!("it was sent") };
                    assert!(matches!(error, LoadError::DatagramTooLarge { mtu: 1500, .. }), "{error}");
                    assert!(error.to_string().contains(&format!("leaves {most} for the payload")), "{error}");
                }
            }
        }
    });
}

#[test]
fn fragmented_datagrams_count_once() {
    with_ethernet_mtu("fragmented_datagrams_count_once", || {
        let traffic = udp(Direction::Up, 4000, UdpOffload::None);
        let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 100)).unwrap();
        let count = server.datagrams.unwrap();
        assert!(count.unique > 0 && client.sent.unwrap().messages >= count.unique);
        assert_eq!((count.duplicates, count.reordered, count.unexpected), (0, 0, 0), "{count:?}");
    });
}

#[test]
fn decreasing_mtu_ends_the_flow_and_keeps_its_counts() {
    with_ethernet_mtu("decreasing_mtu_ends_the_flow_and_keeps_its_counts", || {
        let _turn = turn();
        let workload = workload(udp(Direction::Up, 1400, UdpOffload::Gso), Family::Ipv4, 600_000);
        let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
        let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
        let (notify, done) = notification();
        let server = server.start(Box::new(|| ()));
        let client = client.start(notify);
        while client.live().sent_bytes == 0 {
            std::thread::yield_now();
        }
        ip("link set lo mtu 1300");
        done.recv_timeout(LIMIT).expect("the client ends long before its ten minutes");
        server.finish();
        let (client, server) = (client.join().unwrap(), server.join().unwrap());
        let refused = client.errors.iter().find(|entry| entry.call == "send with UDP_SEGMENT").unwrap();
        assert!(refused.error.starts_with("EMSGSIZE") || refused.error.starts_with("EINVAL"), "{refused:?}");
        assert!(client.sent.unwrap().messages >= server.datagrams.unwrap().unique);
    });
}
