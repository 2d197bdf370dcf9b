//! Bulk TCP: both ends count the same bytes.
use netduel_load::LoadError;
use netduel_model::sample::EndReport;
use netduel_model::units::Bytes;
use netduel_model::workload::{Direction, Family, StreamTuning, TcpEngine, TcpStream, Traffic};

use crate::harness::{check_flows, paced, received, run_pair, sent, tcp, workload};

const ENGINES: [TcpEngine; 4] = [TcpEngine::Lean, TcpEngine::Copy, TcpEngine::Zerocopy, TcpEngine::IoUring];
/// Trials of which one must have a core for its threads until its end. The first one does, unless all cores are busy.
const TRIALS_MAX: u32 = 20;

/// Every zero-copy send is completed; other engines and receiving ends have no report. Loopback copies the data of sends, but the
/// kernel joins adjacent completions and keeps the flag of the first (`skb_zerocopy_notify_extend`, net/core/skbuff.c), so their
/// number is a lower bound.
fn check_zero_copy(report: &EndReport, engine: TcpEngine) {
    let expected = matches!(engine, TcpEngine::Zerocopy | TcpEngine::IoUring) && report.sent.is_some();
    assert_eq!(report.zero_copy.is_some(), expected, "{engine:?}");
    if let Some(zero_copy) = report.zero_copy {
        assert_eq!(zero_copy.completions, zero_copy.sends, "{engine:?}: {:?}", report.errors);
        assert!(zero_copy.copied <= zero_copy.sends, "{engine:?}: {zero_copy:?}");
        assert_eq!(zero_copy.sends > 0, sent(report) > 0, "{engine:?}");
    }
}

#[test]
fn both_ends_agree_for_each_engine_direction_and_family() {
    for engine in ENGINES {
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            for family in [Family::Ipv4, Family::Ipv6] {
                let what = format!("{engine:?} {direction:?} {family:?}");
                let (client, server) = run_pair(&workload(tcp(2, direction, engine), family, 150)).unwrap();
                assert_eq!(client.sent.is_some(), direction.client_sends(), "{what}");
                assert_eq!(server.sent.is_some(), direction.server_sends(), "{what}");
                assert_eq!(sent(&client), received(&server), "{what}");
                assert_eq!(sent(&server), received(&client), "{what}");
                assert!(!direction.client_sends() || sent(&client) > 0, "{what}");
                assert!(!direction.server_sends() || sent(&server) > 0, "{what}");
                assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
                check_flows(&client);
                check_flows(&server);
                check_zero_copy(&client, engine);
                check_zero_copy(&server, engine);
                for (mine, theirs) in client.streams.iter().zip(&server.streams) {
                    assert_eq!(mine.index, theirs.index);
                    assert_eq!(mine.sent_bytes, theirs.received_bytes, "{what}");
                    assert_eq!(mine.received_bytes, theirs.sent_bytes, "{what}");
                    // All data was acknowledged; SYN and FIN have one sequence number each, the greeting 48 bytes.
                    let account = mine.tcp.as_ref().unwrap();
                    let acknowledged = account.bytes_acked.unwrap();
                    assert!(
                        (mine.sent_bytes + 48..=mine.sent_bytes + 50).contains(&acknowledged),
                        "{what}: sent {} acknowledged {acknowledged}",
                        mine.sent_bytes
                    );
                }
            }
        }
    }
}

#[test]
fn hundred_streams_are_received_to_the_byte() {
    for engine in [TcpEngine::Lean, TcpEngine::Zerocopy, TcpEngine::IoUring] {
        let (client, server) =
            run_pair(&workload(tcp(100, Direction::Up, engine), Family::Ipv4, 300)).unwrap();
        assert_eq!(client.streams.len(), 100);
        assert_eq!(
            sent(&client),
            received(&server),
            "{engine:?}: {:?} at the client, {:?} at the server",
            client.errors,
            server.errors
        );
        assert!(server.streams.iter().all(|stream| stream.received_bytes > 0));
        check_zero_copy(&client, engine);
    }
}

#[test]
fn small_block_below_the_low_water_mark_is_received() {
    for engine in [TcpEngine::Lean, TcpEngine::IoUring] {
        let mut traffic = tcp(1, Direction::Up, engine);
        if let Traffic::TcpStream(TcpStream { block, .. }) = &mut traffic {
            *block = Bytes(1);
        }
        let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 100)).unwrap();
        assert!(sent(&client) > 0);
        assert_eq!(sent(&client), received(&server));
    }
}

#[test]
fn both_ends_use_the_congestion_control_of_the_plan() {
    let traffic = |name: &str| {
        Traffic::TcpStream(TcpStream {
            streams: 1,
            direction: Direction::Up,
            block: Bytes(65_536),
            engine: TcpEngine::Copy,
            congestion: Some(name.to_owned()),
            rate: None,
            tuning: StreamTuning::default(),
        })
    };
    let (client, server) = run_pair(&workload(traffic("reno"), Family::Ipv4, 50)).unwrap();
    for report in [client, server] {
        let account = report.streams[0].tcp.as_ref().unwrap();
        assert_eq!(account.congestion.as_deref(), Some("reno"));
    }
    let Err(error) = run_pair(&workload(traffic("nonsense"), Family::Ipv4, 50)) else {
        panic!("it was taken")
    };
    assert!(matches!(&error, LoadError::Congestion { .. }), "{error}");
    assert!(error.to_string().contains("reno"), "{error}");
}

#[test]
fn threads_run_on_their_pinned_cores_and_invalid_cores_are_rejected() {
    let core = *netduel_sys::affinity::allowed().unwrap().last().unwrap();
    let mut pinned = workload(tcp(2, Direction::Up, TcpEngine::Copy), Family::Ipv4, 50);
    pinned.pin_client = vec![core];
    let (client, server) = run_pair(&pinned).unwrap();
    assert!(client.streams.iter().all(|stream| stream.core == Some(core)));
    assert!(server.streams.iter().all(|stream| stream.core.is_none()));
    pinned.pin_server = vec![1023];
    let Err(error) = run_pair(&pinned) else { panic!("it was taken") };
    assert!(matches!(&error, LoadError::Core { core: 1023, .. }), "{error}");
    assert!(error.to_string().contains(&core.to_string()), "{error}");
}

#[test]
fn rate_of_all_streams_is_exact() {
    // 1 bit/s has its first byte after 8 s; 80 kbit/s are 1000 bytes in 100 ms; 80 Mbit/s of two streams are a million.
    for (streams, direction, rate, bytes) in [
        (1, Direction::Up, 1, 0),
        (1, Direction::Up, 80_000, 1_000),
        (2, Direction::Both, 80_000_000, 1_000_000),
        (3, Direction::Down, 80_000_000, 999_999),
    ] {
        for engine in ENGINES {
            let what = format!("{streams} {direction:?} {rate} {engine:?}");
            let traffic = paced(tcp(streams, direction, engine), rate);
            // A thread that gets no core around the end of the duration sends less, and never more.
            let is_exact = || {
                let (client, server) = run_pair(&workload(traffic.clone(), Family::Ipv4, 100)).unwrap();
                assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
                let ways = [
                    (&client, &server, direction.client_sends()),
                    (&server, &client, direction.server_sends()),
                ];
                ways.iter().all(|(sender, receiver, sends)| {
                    let expected = if *sends { bytes } else { 0 };
                    assert_eq!(sent(sender), received(receiver), "{what}");
                    assert!(sent(sender) <= expected, "{what}: {}", sent(sender));
                    sent(sender) == expected
                })
            };
            assert!((0..TRIALS_MAX).any(|_| is_exact()), "{what}: fewer bytes in each trial");
        }
    }
}

#[test]
fn unreachable_rate_is_sent_at_full_speed_and_ends_in_time() {
    // The maximum rate of plans.
    let traffic = paced(tcp(1, Direction::Up, TcpEngine::Lean), 10_000_000_000_000);
    let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 100)).unwrap();
    assert!(sent(&client) > 0);
    assert_eq!(sent(&client), received(&server));
    assert!(client.errors.is_empty(), "{:?}", client.errors);
}

#[test]
fn volume_is_sent_exactly_over_all_streams() {
    let cases = [(Direction::Up, 3), (Direction::Both, 2)];
    for ((direction, streams), engine) in
        cases.into_iter().flat_map(|case| ENGINES.map(|engine| (case, engine)))
    {
        let mut traffic = tcp(streams, direction, engine);
        if let Traffic::TcpStream(TcpStream { tuning, .. }) = &mut traffic {
            tuning.volume = Some(Bytes(10_000_019));
        }
        // The duration is long: the volume ends the trial.
        let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 60_000)).unwrap();
        assert_eq!(server.received.unwrap().bytes, 10_000_019);
        if direction == Direction::Both {
            assert_eq!(client.received.unwrap().bytes, 10_000_019);
        }
    }
}

#[test]
fn segment_size_applies_in_both_directions() {
    for direction in [Direction::Up, Direction::Down] {
        let mut traffic = tcp(1, direction, TcpEngine::Lean);
        if let Traffic::TcpStream(TcpStream { tuning, .. }) = &mut traffic {
            tuning.mss = Some(600);
        }
        let (client, server) = run_pair(&workload(traffic, Family::Ipv4, 100)).unwrap();
        let sender = if direction == Direction::Up { client } else { server };
        let mss = sender.streams[0].tcp.as_ref().unwrap().snd_mss.unwrap();
        // It includes the options of each segment, 12 bytes of time stamps.
        assert!((580..=600).contains(&mss), "{mss}");
    }
}

#[test]
fn two_thousand_connections_are_reported_in_groups() {
    for (engine, direction) in [(TcpEngine::Lean, Direction::Up), (TcpEngine::Copy, Direction::Both)] {
        let mut traffic = tcp(2_000, direction, engine);
        if let Traffic::TcpStream(TcpStream { tuning, .. }) = &mut traffic {
            tuning.volume = Some(Bytes(100_000_019));
        }
        let (client, server) = run_pair(&workload(traffic, Family::Ipv6, 60_000)).unwrap();
        assert_eq!(server.received.as_ref().unwrap().bytes, 100_000_019);
        assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]));
        for (end, moved) in
            [(&client, client.sent.as_ref().unwrap()), (&server, server.received.as_ref().unwrap())]
        {
            assert_eq!(end.streams.len(), netduel_model::sample::STREAM_REPORTS_MAX);
            assert_eq!(end.streams.iter().map(|group| group.members).sum::<u32>(), 2_000);
            let sum: u64 = end.streams.iter().map(|group| group.sent_bytes.max(group.received_bytes)).sum();
            assert_eq!(sum, moved.bytes);
            let spread = end.fairness.as_ref().unwrap();
            // The volume is divided into parts that differ by at most one byte.
            assert_eq!((spread.count, spread.min_bytes, spread.max_bytes), (2_000, 50_000, 50_001));
        }
        let connections = client.connections.as_ref().unwrap();
        assert_eq!(connections.connect.count, 2_000);
        assert!(connections.elapsed_ns >= connections.connect.max && connections.connect.min > 0);
        assert_eq!(server.connections, None);
    }
}

#[test]
fn rate_is_shared_by_connections_that_share_threads() {
    for engine in [TcpEngine::Lean, TcpEngine::Copy] {
        let traffic = paced(tcp(200, Direction::Up, engine), 80_000_000);
        // A thread that gets no core around the end of the duration sends less, and never more.
        let is_shared = || {
            let (client, server) = run_pair(&workload(traffic.clone(), Family::Ipv4, 500)).unwrap();
            assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]));
            assert_eq!(sent(&client), received(&server));
            assert!(sent(&client) <= 5_000_000, "{}", sent(&client));
            sent(&client) >= 3_000_000 && client.fairness.as_ref().unwrap().jain_index.unwrap() > 0.9
        };
        assert!((0..TRIALS_MAX).any(|_| is_shared()), "{engine:?}: less or unevenly in each trial");
    }
}

#[test]
fn too_many_streams_are_rejected_with_the_engines_that_allow_fewer() {
    let traffic = tcp(1025, Direction::Up, TcpEngine::IoUring);
    let Err(error) = run_pair(&workload(traffic, Family::Ipv4, 50)) else { panic!("it was taken") };
    assert_eq!(
        error.to_string(),
        "run the workload: streams is 1025; 1 to 1024 with the engines `zerocopy` and `io-uring` is allowed"
    );
}
