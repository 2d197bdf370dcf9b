//! Loaded latency: separate round trips of the idle and the loaded phase, and a regular end.
use netduel_load::{prepare_client, prepare_server};
use netduel_model::sample::EndReport;
use netduel_model::units::{Bytes, Nanos, PerSecond};
use netduel_model::workload::{
    Direction, Family, LoadedLatency, ProbeProtocol, TcpEngine, Timing, Traffic, Workload,
};

use crate::harness::{
    LIMIT, TOKEN, check_flows, loopback, notification, received, run_pair, sent, turn, workload,
};

const DURATION_MS: u64 = 1000;
const IDLE_MS: u64 = 400;

pub fn load(direction: Direction, probe: ProbeProtocol, engine: TcpEngine) -> Traffic {
    Traffic::LoadedLatency(LoadedLatency {
        streams: 2,
        direction,
        block: Bytes(64 << 10),
        engine,
        congestion: None,
        probe,
        size: Bytes(64),
        rate: PerSecond(200),
        idle: Nanos::from_millis(IDLE_MS),
    })
}

fn with_times(traffic: Traffic, family: Family) -> Workload {
    let timing = Timing {
        duration: Nanos::from_millis(DURATION_MS),
        warmup: Nanos::from_millis(100),
        cooldown: Nanos::from_millis(50),
    };
    Workload { timing, ..workload(traffic, family, DURATION_MS) }
}

/// No load was moved in the idle phase: intervals end at most 0.1 s after their nominal time.
fn is_idle_first(report: &EndReport) -> bool {
    [&report.sent, &report.received].into_iter().flatten().all(|flow| {
        flow.first_ns.is_some_and(|first| first >= IDLE_MS * 1_000_000)
            && flow
                .series
                .iter()
                .filter(|sample| sample.end_ns <= IDLE_MS * 1_000_000)
                .all(|sample| sample.bytes == 0)
    })
}

#[test]
fn each_phase_has_its_own_round_trips() {
    let mut in_band = 0;
    for (probe, family) in [(ProbeProtocol::Udp, Family::Ipv4), (ProbeProtocol::Tcp, Family::Ipv6)] {
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            let engine = if probe == ProbeProtocol::Udp { TcpEngine::Lean } else { TcpEngine::Copy };
            let what = format!("{probe:?} {direction:?}");
            let (client, server) = run_pair(&with_times(load(direction, probe, engine), family)).unwrap();
            assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");

            let trips = client.round_trips.as_ref().unwrap();
            assert_eq!((trips.requests, trips.responses, trips.timeouts), (200, 200, 0), "{what}");
            // 100 to 350 ms of the idle phase, 500 to 950 ms of the whole; one probe in 5 ms.
            assert_eq!(trips.idle.as_ref().map(|record| record.count), Some(50), "{what}");
            assert_eq!(trips.histogram.count, 90, "{what}");
            assert_eq!(trips.series.iter().map(|sample| sample.count).sum::<u64>(), 200, "{what}");

            let under_load = client.under_load.as_ref().unwrap();
            let foreign = &under_load.foreign;
            assert_eq!((foreign.attempted, foreign.failed), (30, 0), "{what}");
            assert_eq!(
                (foreign.connect.count, foreign.exchange.count),
                (23, 23),
                "{what}: 500 to 950 ms, one in 20"
            );
            // A stream that waits for a core until the load ends carries none.
            assert!(under_load.in_band_requests <= 30, "{what}");
            assert!(under_load.in_band.count <= under_load.in_band_requests, "{what}");
            in_band += under_load.in_band.count;

            // Both ends count the same bytes of load, and probes are not part of it.
            for (from, to, sends) in
                [(&client, &server, direction.client_sends()), (&server, &client, direction.server_sends())]
            {
                assert_eq!(from.sent.is_some(), sends, "{what}");
                assert_eq!(to.received.is_some(), sends, "{what}");
                if sends {
                    // How much it is depends on the cores that other programs leave.
                    assert!(sent(from) > 0, "{what}: the load runs");
                    assert_eq!(sent(from), received(to), "{what}");
                }
            }
            check_flows(&client);
            check_flows(&server);
            assert!(is_idle_first(&client), "{what}: {:?}", client.sent.as_ref().map(|flow| flow.first_ns));
            assert_eq!(client.streams.len(), 3, "{what}: two streams and the one that carries round trips");
            assert!(client.streams.iter().all(|stream| stream.tcp.is_some()), "{what}");
            assert!(server.round_trips.is_none() && server.under_load.is_none(), "{what}");
        }
    }
    assert!(in_band > 0);
}

#[test]
fn server_load_starts_by_the_clients_clock() {
    let _turn = turn();
    let workload = with_times(load(Direction::Down, ProbeProtocol::Udp, TcpEngine::Lean), Family::Ipv4);
    let server = prepare_server(&workload, loopback(Family::Ipv4), TOKEN).unwrap();
    let client = prepare_client(&workload, loopback(Family::Ipv4), server.ports(), TOKEN, LIMIT).unwrap();
    let server = server.start(Box::new(|| ()));
    // The idle part is over by the clock of the server before that of the client starts. A load that starts by it sends its first
    // bytes before the time that the last assertion allows.
    while server.live().elapsed_ns < IDLE_MS * 1_000_000 {
        std::thread::yield_now();
    }
    let (notify, done) = notification();
    let client = client.start(notify);
    done.recv_timeout(LIMIT).unwrap();
    server.finish();
    let (client, server) = (client.join().unwrap(), server.join().unwrap());
    assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]));
    assert!(is_idle_first(&client), "{:?}", client.received.map(|flow| flow.first_ns));
    assert!(server.sent.unwrap().first_ns.unwrap() >= 2 * IDLE_MS * 1_000_000);
}
