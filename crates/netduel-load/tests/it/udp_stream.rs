//! Bulk UDP: every sent datagram arrives or is counted as lost, with every segmentation and merging.
use netduel_load::{END_MARKERS, LoadError, prepare_client, prepare_server};
use netduel_model::sample::EndReport;
use netduel_model::units::{BitRate, Bytes};
use netduel_model::workload::{Direction, Family, FlowTuning, Traffic, UdpOffload, UdpStream};
use netduel_sys::clock;

use crate::harness::{LIMIT, TOKEN, check_flows, loopback, notification, run_pair, turn, workload};

const OFFLOADS: [UdpOffload; 3] = [UdpOffload::None, UdpOffload::Gso, UdpOffload::GsoGro];

fn udp(flows: u32, direction: Direction, size: u64, rate: Option<u64>, offload: UdpOffload) -> Traffic {
    Traffic::UdpStream(UdpStream {
        flows,
        direction,
        size: Bytes(size),
        rate: rate.map(BitRate),
        offload,
        tuning: FlowTuning::default(),
    })
}

/// Every datagram that the sender counted arrived at the receiver, or was dropped by its socket. Loopback loses nothing else.
fn check_one_way(sender: &EndReport, receiver: &EndReport, size: u64, offload: UdpOffload) {
    let sent = sender.sent.as_ref().unwrap();
    let received = receiver.received.as_ref().unwrap();
    let count = receiver.datagrams.as_ref().unwrap();
    let handed = sender.datagrams_sent.as_ref().unwrap();
    assert!(sent.messages > 0);
    assert_eq!(sent.bytes, sent.messages * size);
    assert_eq!(received.messages, count.unique);
    assert_eq!(received.bytes, count.unique * size);
    let (lost, drops, buffers) =
        (sent.messages - count.unique, count.socket_drops.unwrap(), count.buffers.unwrap());
    // End markers may also be dropped by a full socket.
    let markers = sender.streams.len() as u64 * END_MARKERS;
    if offload == UdpOffload::GsoGro {
        // A dropped buffer has at least 1 datagram and at most as many as the kernel merges.
        assert!((drops.saturating_sub(markers)..=drops * 128).contains(&lost), "{lost} {count:?}");
        assert!(buffers <= count.unique);
    } else {
        assert!((lost..=lost + markers).contains(&drops), "{lost} {count:?}");
        assert_eq!(buffers, count.unique);
    }
    assert_eq!(
        (count.duplicates, count.reordered, count.outside_window, count.unexpected),
        (0, 0, 0, 0),
        "{count:?}"
    );
    assert!(count.next_sequence.iter().sum::<u64>() <= sent.messages);
    assert!(handed.calls <= sent.messages && u64::from(handed.burst_max) * handed.calls >= sent.messages);
}

#[test]
fn paced_datagrams_all_arrive_in_each_direction_family_and_offload() {
    for (family, offload) in
        [Family::Ipv4, Family::Ipv6].into_iter().flat_map(|family| OFFLOADS.map(|offload| (family, offload)))
    {
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            // The volume ends the trial, so that a late sender sends all of it too.
            let mut traffic = udp(2, direction, 200, Some(3_200_000), offload);
            if let Traffic::UdpStream(UdpStream { tuning, .. }) = &mut traffic {
                tuning.volume = Some(Bytes(80_000));
            }
            let workload = workload(traffic, family, 60_000);
            let (client, server) = run_pair(&workload).unwrap();
            for (sends, sender, receiver) in
                [(direction.client_sends(), &client, &server), (direction.server_sends(), &server, &client)]
            {
                if !sends {
                    assert_eq!((&sender.sent, &sender.datagrams_sent), (&None, &None));
                    continue;
                }
                check_one_way(sender, receiver, 200, offload);
                // 2000 datagrams per second, sent one by one: those of a flow are 1 ms apart.
                assert_eq!(sender.sent.as_ref().unwrap().messages, 400, "{family:?} {direction:?}");
                let handed = sender.datagrams_sent.as_ref().unwrap();
                assert_eq!((handed.calls, handed.burst_max), (400, 1));
                assert_eq!(handed.pacing_error.as_ref().unwrap().count, 400);
                assert!(receiver.datagrams.as_ref().unwrap().jitter_ns.is_some());
            }
            check_flows(&client);
            check_flows(&server);
        }
    }
}

#[test]
fn every_datagram_is_accounted_for_without_a_rate() {
    for offload in OFFLOADS {
        for size in [24, 64, 1472, 60_000] {
            let traffic = udp(1, Direction::Up, size, None, offload);
            let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 200)).unwrap();
            check_one_way(&client, &server, size, offload);
            let handed = client.datagrams_sent.unwrap();
            let fit = netduel_sys::udp_segment::segments(size as usize) as u32;
            assert!(offload == UdpOffload::None || handed.burst_max == fit, "{handed:?}");
            assert_eq!(handed.pacing_error, None);
        }
    }
}

#[test]
fn flows_share_threads_and_each_is_reported_with_its_ports() {
    for offload in OFFLOADS {
        let traffic = udp(300, Direction::Both, 100, Some(4_800_000), offload);
        let (client, server) = run_pair(&workload(traffic, Family::Ipv6, 300)).unwrap();
        check_one_way(&client, &server, 100, offload);
        check_one_way(&server, &client, 100, offload);
        // 6000 datagrams per second are 20 for each flow: 6 of each in 0.3 s, evenly shifted. A late thread sends fewer.
        let next = &server.datagrams.as_ref().unwrap().next_sequence;
        assert!(next.len() == 300 && next.iter().all(|next| (1..=6).contains(next)), "{next:?}");
        assert_eq!(client.sent.as_ref().unwrap().messages, next.iter().sum::<u64>());
        // Each flow has its own count, jitter and buffer.
        let flows = &server.datagrams.as_ref().unwrap().flows;
        assert_eq!(&flows.iter().map(|flow| flow.unique).collect::<Vec<_>>(), next);
        for (flow, next) in flows.iter().zip(next) {
            assert_eq!(
                flow.jitter_ns.is_some(),
                *next > 1,
                "a jitter needs two arrivals: {flow:?} of {next}"
            );
            assert!(flow.receive_buffer_bytes > Some(0), "{flow:?}");
        }
        let mut ports = Vec::new();
        for (here, there) in client.streams.iter().zip(&server.streams) {
            assert!((100..=600).contains(&here.sent_bytes) && here.sent_bytes == there.received_bytes);
            assert!(here.local.is_some() && here.incoming_core.is_some());
            assert_eq!((here.local, here.peer), (there.peer, there.local));
            ports.push(here.local.unwrap().port());
        }
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 300);
    }
}

#[test]
fn flows_share_the_cores_that_they_are_pinned_to() {
    let core = netduel_sys::affinity::allowed().unwrap()[0];
    let mut workload = workload(udp(3, Direction::Up, 100, None, UdpOffload::Gso), Family::Ipv4, 200);
    workload.pin_client = vec![core];
    workload.pin_server = vec![core];
    let (client, server) = run_pair(&workload).unwrap();
    check_one_way(&client, &server, 100, UdpOffload::Gso);
    for report in [client, server] {
        assert!(report.streams.iter().all(|stream| stream.core == Some(core)), "{:?}", report.streams);
    }
}

#[test]
fn rate_below_one_datagram_sends_the_first_and_keeps_the_duration() {
    for rate in [1, 8] {
        let traffic = udp(1, Direction::Up, 1000, Some(rate), UdpOffload::Gso);
        let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 50)).unwrap();
        check_one_way(&client, &server, 1000, UdpOffload::Gso);
        assert_eq!(client.sent.unwrap().messages, 1);
    }
}

#[test]
fn unreachable_rate_is_not_caught_up_after_the_duration() {
    let traffic = udp(2, Direction::Up, 1400, Some(10_000_000_000_000), UdpOffload::None);
    let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 1_000)).unwrap();
    check_one_way(&client, &server, 1400, UdpOffload::None);
    // A call begins before the end of the second; its time of sending is that of its beginning.
    let sent = client.sent.as_ref().unwrap();
    assert!(sent.messages > 0 && sent.last_ns < Some(1_000_000_000), "{:?}", sent.last_ns);
    let burst = client.datagrams_sent.unwrap().burst_max;
    assert_eq!(burst, 16);
}

/// The server's socket is not read until the client has finished, so everything beyond its buffer is dropped there.
#[test]
fn drops_of_the_receivers_socket_are_counted_exactly() {
    for offload in [UdpOffload::None, UdpOffload::Gso] {
        let _turn = turn();
        // A volume of several times the buffer: a sender that waits for a core may send nothing within a short duration.
        let mut traffic = udp(1, Direction::Up, 1000, Some(4_000_000_000), offload);
        if let Traffic::UdpStream(UdpStream { tuning, .. }) = &mut traffic {
            tuning.volume = Some(Bytes(40_000_000));
        }
        let workload = workload(traffic, Family::Ipv4, 60_000);
        let address = loopback(Family::Ipv4);
        let server = prepare_server(&workload, address, TOKEN).unwrap();
        let client = prepare_client(&workload, address, server.ports(), TOKEN, LIMIT).unwrap();
        let (notify, done) = notification();
        let client = client.start(notify);
        done.recv_timeout(LIMIT).unwrap();
        let server = server.start(Box::new(|| ()));
        server.finish();
        let (client, server) = (client.join().unwrap(), server.join().unwrap());
        check_one_way(&client, &server, 1000, offload);
        let count = server.datagrams.unwrap();
        assert!(count.socket_drops > Some(0) && count.unique > 0, "{count:?}");
    }
}

#[test]
fn invalid_sizes_and_interfaces_are_rejected() {
    for (size, rate) in [(0, None), (23, None), (65_508, None), (100, Some(0)), (100, Some(1 << 63))] {
        let traffic = udp(1, Direction::Up, size, rate, UdpOffload::None);
        let Err(error) = run_pair(&workload(traffic, Family::Ipv4, 50)) else { panic!("it was taken") };
        assert!(matches!(error, LoadError::Range { .. }), "{error}");
    }
}

#[test]
fn volume_is_sent_exactly_over_all_flows() {
    for (direction, offload) in [(Direction::Up, UdpOffload::None), (Direction::Both, UdpOffload::GsoGro)] {
        // A buffer holds all datagrams of a flow, so that no socket drops any; the duration is long: the volume ends the trial.
        let mut traffic = udp(3, direction, 200, Some(8_000_000), offload);
        if let Traffic::UdpStream(UdpStream { tuning, .. }) = &mut traffic {
            *tuning = FlowTuning { volume: Some(Bytes(200_001)), window: Some(Bytes(160 << 10)) };
        }
        let workload = workload(traffic, Family::Ipv4, 60_000);
        let (client, server) = run_pair(&workload).unwrap();
        for (sends, sender, receiver) in
            [(direction.client_sends(), &client, &server), (direction.server_sends(), &server, &client)]
        {
            if sends {
                check_one_way(sender, receiver, 200, offload);
                assert_eq!(
                    sender.sent.as_ref().unwrap().messages,
                    1001,
                    "a part of a datagram is a whole one"
                );
                assert_eq!(receiver.received.as_ref().unwrap().bytes, 200_200);
                let shares: Vec<u64> = sender.streams.iter().map(|flow| flow.sent_bytes / 200).collect();
                assert_eq!(shares, [334, 334, 333]);
            }
        }
        assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]));
    }
}

#[test]
fn server_that_also_sends_begins_with_the_first_data_of_the_client() {
    let _turn = turn();
    let mut traffic = udp(2, Direction::Both, 200, Some(3_200_000), UdpOffload::None);
    if let Traffic::UdpStream(UdpStream { tuning, .. }) = &mut traffic {
        tuning.volume = Some(Bytes(80_000));
    }
    let workload = workload(traffic, Family::Ipv4, 60_000);
    let address = loopback(workload.family);
    let server = prepare_server(&workload, address, TOKEN).unwrap();
    let client = prepare_client(&workload, address, server.ports(), TOKEN, LIMIT).unwrap();
    let ((notify, done_server), (notify_client, done_client)) = (notification(), notification());
    let server = server.start(notify);
    // Its first datagram would be due at once.
    while server.live().elapsed_ns < 50_000_000 {
        std::thread::yield_now();
    }
    assert_eq!(server.live().sent_bytes, 0, "the client reads nothing yet");
    let client = client.start(notify_client);
    for done in [done_client, done_server] {
        done.recv_timeout(LIMIT).unwrap();
    }
    let (client, server) = (client.join().unwrap(), server.join().unwrap());
    for (sender, receiver) in [(&client, &server), (&server, &client)] {
        check_one_way(sender, receiver, 200, UdpOffload::None);
        assert_eq!(sender.sent.as_ref().unwrap().messages, 400);
        check_flows(sender);
    }
}

#[test]
fn server_sends_although_the_data_of_the_client_do_not_arrive() {
    let _turn = turn();
    let traffic = udp(1, Direction::Both, 200, Some(3_200_000), UdpOffload::None);
    let workload = workload(traffic, Family::Ipv4, 400);
    let address = loopback(workload.family);
    let server = prepare_server(&workload, address, TOKEN).unwrap();
    let client = prepare_client(&workload, address, server.ports(), TOKEN, LIMIT).unwrap();
    let (notify, done) = notification();
    // The client is connected, and never starts.
    let started_ns = clock::monotonic_ns();
    let server = server.start(notify);
    while server.live().sent_bytes == 0 && !server.is_done() {
        assert!(clock::monotonic_ns() - started_ns < LIMIT.as_nanos() as u64, "the server waits without end");
        std::thread::yield_now();
    }
    assert!(clock::monotonic_ns() - started_ns >= 200_000_000, "it waits for half of the duration");
    server.finish();
    done.recv_timeout(LIMIT).unwrap();
    assert!(server.join().unwrap().sent.unwrap().messages > 0);
    drop(client);
}
