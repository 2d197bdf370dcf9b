//! Bulk UDP: what was sent is what arrived, or is counted as lost.
use netduel_load::LoadError;
use netduel_model::sample::EndReport;
use netduel_model::units::{BitRate, Bytes};
use netduel_model::workload::{Direction, Family, Traffic};

use crate::harness::{check_flows, run_pair, workload};

fn udp(flows: u32, direction: Direction, size: u64, rate: Option<u64>) -> Traffic {
    Traffic::UdpStream { flows, direction, size: Bytes(size), rate: rate.map(BitRate) }
}

/// All that the sender counted is accounted for at the receiver: it arrived, or the socket dropped it. Loopback loses
/// nothing else.
fn check_one_way(sender: &EndReport, receiver: &EndReport, size: u64) {
    let sent = sender.sent.as_ref().unwrap();
    let received = receiver.received.as_ref().unwrap();
    let count = receiver.datagrams.as_ref().unwrap();
    assert!(sent.messages > 0);
    assert_eq!(sent.bytes, sent.messages * size);
    assert_eq!(received.messages, count.unique);
    assert_eq!(received.bytes, count.unique * size);
    assert_eq!(sent.messages - count.unique, count.socket_drops.unwrap(), "{count:?}");
    assert_eq!((count.duplicates, count.reordered, count.too_late, count.foreign), (0, 0, 0, 0), "{count:?}");
    assert!(count.highest.iter().sum::<u64>() <= sent.messages);
}

#[test]
fn paced_datagrams_all_arrive_in_each_direction_and_family() {
    for family in [Family::Ipv4, Family::Ipv6] {
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            let workload = workload(udp(2, direction, 200, Some(3_200_000)), family, 200);
            let (client, server) = run_pair(&workload).unwrap();
            if direction.client_sends() {
                check_one_way(&client, &server, 200);
                // 2000 datagrams a second for 0.2 s, on the schedule to the datagram.
                assert_eq!(client.sent.as_ref().unwrap().messages, 400, "{family:?} {direction:?}");
                assert!(server.datagrams.as_ref().unwrap().jitter_ns.is_some());
            }
            if direction.server_sends() {
                check_one_way(&server, &client, 200);
                assert_eq!(server.sent.as_ref().unwrap().messages, 400, "{family:?} {direction:?}");
            }
            check_flows(&client);
            check_flows(&server);
        }
    }
}

#[test]
fn without_a_rate_every_datagram_is_accounted_for() {
    for size in [24, 64, 1472, 60_000] {
        let (client, server) =
            run_pair(&workload(udp(1, Direction::Up, size, None), Family::Ipv4, 150)).unwrap();
        check_one_way(&client, &server, size);
    }
}

#[test]
fn a_rate_below_one_datagram_in_the_trial_sends_the_first_and_keeps_the_duration() {
    let (client, server) =
        run_pair(&workload(udp(1, Direction::Up, 1000, Some(8)), Family::Ipv4, 50)).unwrap();
    check_one_way(&client, &server, 1000);
    assert_eq!(client.sent.unwrap().messages, 1);
}

#[test]
fn a_datagram_without_room_for_the_header_is_refused() {
    let Err(error) = run_pair(&workload(udp(1, Direction::Up, 23, None), Family::Ipv4, 50)) else {
        panic!("it was taken")
    };
    assert!(matches!(error, LoadError::Range { least: 24, .. }), "{error}");
}
