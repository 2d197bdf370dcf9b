//! Aborts: every thread wakes, and the counts are kept.
use netduel_load::{prepare_client, prepare_server};
use netduel_model::sample::UNACKNOWLEDGED;
use netduel_model::units::{Bytes, Nanos};
use netduel_model::workload::{
    Direction, Family, FlowTuning, ProbeProtocol, TcpEngine, Traffic, UdpOffload, UdpStream, Wait,
};

use crate::harness::{LIMIT, TOKEN, loopback, messages, notification, paced, tcp, turn, workload};

#[test]
fn abort_ends_all_threads_of_each_workload() {
    let _turn = turn();
    let udp = |rate| {
        Traffic::UdpStream(UdpStream {
            flows: 2,
            direction: Direction::Both,
            size: Bytes(500),
            rate,
            offload: UdpOffload::None,
            tuning: FlowTuning::default(),
        })
    };
    let mut all = vec![
        tcp(3, Direction::Both, TcpEngine::Lean),
        tcp(3, Direction::Up, TcpEngine::Copy),
        tcp(3, Direction::Both, TcpEngine::Zerocopy),
        tcp(3, Direction::Both, TcpEngine::IoUring),
        paced(tcp(2, Direction::Both, TcpEngine::IoUring), 1_000_000),
        paced(tcp(2, Direction::Both, TcpEngine::Lean), 1_000_000),
        udp(None),
        udp(Some(netduel_model::units::BitRate(1))),
    ];
    for wait in [Wait::Block, Wait::Spin] {
        for rate in [None, Some(1), Some(5000)] {
            all.push(Traffic::TcpRr(messages(20, 2, wait, rate)));
            all.push(Traffic::UdpRr(messages(20, 2, wait, rate)));
        }
    }
    for (wait, rate) in
        [(Wait::Block, None), (Wait::Spin, None), (Wait::Block, Some(1)), (Wait::Block, Some(500))]
    {
        all.push(crate::transaction::transactions(48, 16, 3, wait, rate));
    }
    for probe in [ProbeProtocol::Udp, ProbeProtocol::Tcp] {
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            let mut traffic = crate::loaded::load(direction, probe, TcpEngine::Lean);
            if let Traffic::LoadedLatency(settings) = &mut traffic {
                settings.idle = Nanos::from_millis(1_000);
            }
            all.push(traffic);
        }
    }
    for traffic in all {
        let what = format!("{traffic:?}");
        // An hour, or the maximum of a short idle phase: only the abort ends it.
        let duration_ms = if traffic.facts().load_begins.is_some() { 20_000 } else { 3_600_000 };
        let workload = workload(traffic, Family::Ipv4, duration_ms);
        let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
        let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
        let (notify_server, server_done) = notification();
        let (notify_client, client_done) = notification();
        let server = server.start(notify_server);
        let client = client.start(notify_client);
        while client.live().sent_bytes + client.live().received_bytes == 0 {
            std::thread::yield_now();
        }
        client.abort();
        client_done.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what}: the client goes on"));
        server.abort();
        server_done.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what}: the server goes on"));
        let report = client.join().unwrap();
        let moved = [report.sent, report.received].into_iter().flatten().map(|flow| flow.bytes).sum::<u64>();
        assert!(moved > 0, "{what}");
        server.join().unwrap();
    }
}

#[test]
fn dead_tcp_sender_ends_its_receiver_and_counts_are_kept() {
    let _turn = turn();
    let workload = workload(tcp(2, Direction::Up, TcpEngine::Lean), Family::Ipv4, 3_600_000);
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    let (notify, server_done) = notification();
    let server = server.start(notify);
    let client = client.start(Box::new(|| ()));
    while server.live().received_bytes == 0 {
        std::thread::yield_now();
    }
    client.abort();
    let sent = client.join().unwrap().sent.unwrap().bytes;
    server_done.recv_timeout(LIMIT).expect("the end of the streams ends the receiver");
    let received = server.join().unwrap().received.unwrap().bytes;
    assert!(received > 0 && received <= sent, "received {received} of {sent}");
}

#[test]
fn data_that_the_peer_never_read_is_discarded_and_counted() {
    let _turn = turn();
    let mut traffic = tcp(2, Direction::Up, TcpEngine::Copy);
    if let Traffic::TcpStream(stream) = &mut traffic {
        // More than the peer's buffer takes unread, in the first call.
        stream.block = Bytes(8 << 20);
    }
    let workload = workload(traffic, Family::Ipv4, 3_600_000);
    // Connected and never started, it reads nothing.
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    let client = client.start(Box::new(|| ()));
    while client.live().sent_bytes == 0 {
        std::thread::yield_now();
    }
    client.abort();
    let errors = client.join().unwrap().errors;
    let discarded = errors.iter().find(|error| (&*error.call, &*error.error) == UNACKNOWLEDGED);
    assert!(discarded.is_some_and(|error| (1..=2).contains(&error.count)), "{errors:?}");
}
