//! Quick tests: interval lines and the summary.
use netduel_model::sample::{Flow, FlowReport, LiveFigures, LiveRoundTrips, StreamReport};
use netduel_model::units::Nanos;
use netduel_model::workload::{Direction, Role, Traffic, UdpOffload, UdpStream, Workload};
use netduel_report::quick::{self, Intervals, SummaryInput};

use crate::builder::{Recipe, build};
use crate::figures::first;
use crate::{json, stamps};

fn traffic(workload: &'static str) -> Traffic {
    let run = build(&Recipe { workloads: vec![workload], blocks: 3, ..Recipe::default() });
    run.header.plan.arms[0].workloads[0].traffic.clone()
}

#[test]
fn lost_datagrams_are_counted_per_interval() {
    let traffic = traffic("udp");
    let mut intervals = Intervals::new(&traffic, 1.0, f64::INFINITY);
    let figures = |elapsed_ns, messages, missing| LiveFigures {
        elapsed_ns,
        received_bytes: messages * 1000,
        messages,
        lost: Some(missing),
        jitter_ns: Some(1_500),
        ..LiveFigures::default()
    };
    let mut line = |figures| {
        let interval = intervals.take(Role::Server, figures).unwrap();
        (interval.messages, interval.lost, quick::line(&traffic, &interval, 1.0))
    };
    let (messages, missing, first) = line(figures(1_000_000_000, 995, 5));
    assert_eq!((messages, missing), (995, Some(5)));
    assert!(first.contains("5 (0.50 %)") && first.contains("1.50 us"), "{first}");
    assert_eq!(line(figures(2_000_000_000, 1_985, 15)).1, Some(10));
    assert_eq!(line(figures(3_000_000_000, 3_000, 12)).1, Some(0));

    // Columns of large counts stay apart, below their titles, within 80 columns.
    let (_, missing, flooded) = line(figures(4_000_000_000, 722_000, 192_561));
    // A late datagram was counted as lost in the line before.
    assert_eq!(missing, Some(192_546));
    let heading = quick::heading(&traffic);
    let titles = heading.lines().last().unwrap();
    let (rate, lost) = flooded.split_once("719 k/s  ").unwrap_or_else(|| panic!("{flooded}"));
    assert!(lost.trim_start().starts_with("192546 (21.12 %)  "), "{flooded}");
    assert_eq!(rate.len() + "719 k/s".len(), titles.find("per second").unwrap() + "per second".len());
    assert_eq!((flooded.len(), titles.len()), (80, 80), "{heading}\n{flooded}");
    let (_, missing, most) = line(figures(5_000_000_000, 722_000, 1_234_567_192_561));
    assert_eq!(missing, Some(1_234_567_000_000));
    assert!(most.contains(" 1234567000000 (100.00 %) "), "{most}");
}

/// Figures are an agent's: the largest do not run into each other.
#[test]
fn cells_of_interval_lines_end_below_their_titles_and_stay_apart() {
    for workload in ["bulk", "udp", "rr", "crr"] {
        let traffic = traffic(workload);
        let line = |amount: u64| {
            let mut intervals = Intervals::new(&traffic, 1.0, f64::INFINITY);
            let round_trips = LiveRoundTrips { count: 1, p50_ns: amount, p99_ns: amount, max_ns: amount };
            let figures = LiveFigures {
                elapsed_ns: 1_000_000_000,
                received_bytes: amount,
                messages: amount,
                retransmits: Some(amount),
                cwnd_bytes: Some(amount),
                lost: Some(amount),
                jitter_ns: Some(amount),
                round_trips: Some(round_trips),
                ..LiveFigures::default()
            };
            let ends = [Role::Client, Role::Server].map(|role| intervals.take(role, figures));
            quick::line(&traffic, &ends.into_iter().flatten().next().unwrap(), 1.0)
        };
        let heading = quick::heading(&traffic);
        let titles = heading.lines().last().unwrap();
        assert_eq!(line(100).len(), titles.len(), "{heading}\n{}", line(100));
        let most = line(u64::MAX);
        // A unit that is followed by a digit, not by a space.
        let runs_together =
            most.as_bytes().windows(2).any(|pair| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit());
        assert!(!runs_together, "{workload}: {most}");
    }
}

#[test]
fn datagrams_lost_after_the_last_arrival_are_in_the_last_line() {
    let (workload, mut trial) = first("udp");
    let mut intervals = Intervals::new(&workload.traffic, 1.0, 5.0);
    let received = trial.server.as_ref().unwrap().report.received.clone().unwrap();
    let mut live = LiveFigures {
        elapsed_ns: 1_000_000_000,
        received_bytes: received.bytes,
        messages: received.messages,
        lost: Some(0),
        ..LiveFigures::default()
    };
    assert_eq!(intervals.take(Role::Server, live).unwrap().lost, Some(0));
    // Then nothing arrives any more, and an end that is done says when it received its last data.
    live.elapsed_ns = 2_000_000_000;
    let silent = intervals.take(Role::Server, live).unwrap();
    assert!(quick::line(&workload.traffic, &silent, 1.0).contains(" - "), "no loss is known yet");
    intervals.take(Role::Server, LiveFigures { elapsed_ns: 900_000_000, ..live });
    let server = &mut trial.server.as_mut().unwrap().report;
    server.received.as_mut().unwrap().last_ns = Some(900_000_000);
    let unique = server.datagrams.as_ref().unwrap().unique;
    let sent = trial.client.as_mut().unwrap().report.sent.as_mut().unwrap();
    (sent.messages, sent.last_ns) = (unique + 4_321, Some(5_000_000_000));
    let rest = intervals.finish(&trial);
    assert_eq!(rest.len(), 1);
    assert_eq!((rest[0].start_s, rest[0].end_s, rest[0].lost), (2.0, 5.0, Some(4_321)));
}

#[test]
fn interval_lines_of_round_trips_state_how_exact_their_percentiles_are() {
    let heading = quick::heading(&traffic("rr"));
    assert!(heading.contains("; percentiles in steps of 0.8 %, exact in the result"), "{heading}");
    assert!(!quick::heading(&traffic("udp")).contains("percentiles"));
}

#[test]
fn datagrams_with_one_send_time_have_no_jitter_in_their_lines() {
    let mut traffic = traffic("udp");
    let mut jitter = |offload| {
        let Traffic::UdpStream(stream) = &mut traffic else { panic!("a stream of datagrams") };
        stream.offload = offload;
        let mut intervals = Intervals::new(&traffic, 1.0, f64::INFINITY);
        let figures = LiveFigures {
            elapsed_ns: 1_000_000_000,
            messages: 100,
            jitter_ns: Some(1_500),
            ..LiveFigures::default()
        };
        let interval = intervals.take(Role::Server, figures).unwrap();
        (interval.jitter_ns, quick::line(&traffic, &interval, 1.0).contains("1.50 us"))
    };
    assert_eq!(jitter(UdpOffload::None), (Some(1_500), true));
    assert_eq!(jitter(UdpOffload::Gso), (None, false));
    assert_eq!(jitter(UdpOffload::GsoGro), (None, false));
}

#[test]
fn flows_of_datagrams_have_their_own_loss_and_jitter_and_loss_at_the_socket_its_buffer() {
    let run = build(&Recipe { workloads: vec!["udp"], blocks: 1, ..Recipe::default() });
    let (mut workload, mut trial) = (run.header.plan.arms[0].workloads[0].clone(), run.trials[0].clone());
    let Traffic::UdpStream(stream) = &mut workload.traffic else { panic!("a stream of datagrams") };
    (stream.flows, stream.direction, stream.offload) = (2, Direction::Up, UdpOffload::None);
    let size = stream.size.0;
    let flow = |index, sent, received| StreamReport {
        index,
        sent_bytes: sent * size,
        received_bytes: received * size,
        ..StreamReport::default()
    };
    let [client, server] =
        [&mut trial.client, &mut trial.server].map(|end| &mut end.as_mut().unwrap().report);
    client.streams = vec![flow(0, 1000, 0), flow(1, 500, 0)];
    server.streams = vec![flow(0, 0, 990), flow(1, 0, 500)];
    let datagrams = server.datagrams.as_mut().unwrap();
    (datagrams.unique, datagrams.socket_drops) = (datagrams.unique - 900, Some(900));
    datagrams.flows = vec![
        FlowReport { unique: 990, jitter_ns: Some(7_500.0), receive_buffer_bytes: Some(4 << 20) },
        FlowReport { unique: 500, jitter_ns: Some(2_500.0), receive_buffer_bytes: Some(212_992) },
    ];
    let text = |workload: &Workload| {
        let input =
            SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
        quick::summary(input, 200)
    };
    let shown = text(&workload);
    let row = |text: &str, end: &str, flow: &str| {
        let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|words| words.first() == Some(&flow) && words.contains(&end)).expect("a row");
        row.join(" ")
    };
    assert!(row(&shown, "sent", "1").ends_with(" 1000 - -"), "{shown}");
    assert!(row(&shown, "received", "1").ends_with(" 990 10 (1.0 %) 7.50 us"), "{shown}");
    assert!(row(&shown, "received", "2").ends_with(" 500 0 (0 %) 2.50 us"), "{shown}");
    assert!(shown.contains(" at the receiver's socket (receive buffer 208 KiB)"), "{shown}");
    let Traffic::UdpStream(stream) = &mut workload.traffic else { panic!("a stream of datagrams") };
    stream.offload = UdpOffload::Gso;
    assert!(row(&text(&workload), "received", "1").ends_with(" 990 10 (1.0 %) -"), "jitter of one send time");
}

#[test]
fn early_figures_belong_to_the_same_interval() {
    let traffic = traffic("rr");
    let mut intervals = Intervals::new(&traffic, 1.0, f64::INFINITY);
    let figures = |elapsed_ns, messages, round_trips| LiveFigures {
        elapsed_ns,
        messages,
        round_trips,
        ..LiveFigures::default()
    };
    let trips = |count, p50_ns, max_ns| Some(LiveRoundTrips { count, p50_ns, p99_ns: p50_ns * 2, max_ns });
    assert_eq!(intervals.take(Role::Client, figures(500_000_000, 30, trips(30, 40_000, 900_000))), None);
    let interval =
        intervals.take(Role::Client, figures(1_000_000_000, 100, trips(70, 50_000, 200_000))).unwrap();
    let LiveRoundTrips { count, p50_ns, p99_ns, max_ns } = interval.round_trips.unwrap();
    assert_eq!((count, p50_ns, p99_ns, max_ns), (100, 50_000, 100_000, 900_000));
    let line = quick::line(&traffic, &interval, 1.0);
    assert!(line.contains("50.0 us") && line.contains("100 us") && line.contains("900 us"), "{line}");
    // An interval without responses has no round trips, not those of the previous interval.
    let silent = intervals.take(Role::Client, figures(2_000_000_000, 100, None)).unwrap();
    assert_eq!(silent.round_trips, None);
    assert!(quick::line(&traffic, &silent, 1.0).trim_end().ends_with('-'));
}

#[test]
fn summary_and_interval_lines_state_their_time_base() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let trial = &run.trials[0];
    let mut workload = run.header.plan.arms[0].workloads[0].clone();
    let text = |workload: &Workload| {
        quick::summary(
            SummaryInput { workload, trial, shared_machine: false, expected: None, mtus: [None; 2] },
            200,
        )
    };
    let excluded = text(&workload);
    assert!(excluded.contains("warm-up") && excluded.contains(" excluded)"), "{excluded}");
    assert!(excluded.contains("Whole test, 5.00 s from the first to the last byte"), "{excluded}");
    (workload.timing.warmup, workload.timing.cooldown) = (Nanos(0), Nanos(0));
    let whole = text(&workload);
    assert!(whole.contains("(no warm-up)") && !whole.contains(" 0 ns"), "{whole}");
    let heading = quick::heading(&workload.traffic);
    assert!(heading.contains("payload received, warm-up included"), "{heading}");
}

#[test]
fn test_without_data_has_the_reason_in_place_of_its_throughput() {
    let (workload, mut trial) = first("bulk");
    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        for flow in [&mut end.report.sent, &mut end.report.received].into_iter().flatten() {
            *flow = Flow::default();
        }
    }
    let (workload, trial) = (&workload, &trial);
    let input = SummaryInput { workload, trial, shared_machine: false, expected: None, mtus: [None; 2] };
    let text = quick::summary(input, 200);
    assert!(text.contains("none: no data arrived in the steady window; raise the rate"), "{text}");
}

#[test]
fn summary_counts_one_retransmit_in_the_singular() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let (workload, mut trial) = (&run.header.plan.arms[0].workloads[0], run.trials[0].clone());
    for (number, words) in [(1, " 1 retransmit,"), (2, " 2 retransmits,")] {
        let streams = &mut trial.client.as_mut().unwrap().report.streams;
        for (index, tcp) in streams.iter_mut().filter_map(|stream| stream.tcp.as_mut()).enumerate() {
            tcp.retransmits = Some(if index == 0 { number } else { 0 });
        }
        let input =
            SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
        let text = quick::summary(input, 200);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn stamped_test_shows_the_round_trip_composition() {
    let run = stamps::run([true, true], |_| {});
    let (workload, trial) = (&run.header.plan.arms[0].workloads[0], &run.trials[0]);
    let input = SummaryInput { workload, trial, shared_machine: false, expected: None, mtus: [None; 2] };
    let text = quick::summary(input, 80);
    assert!(text.contains("network, both ways") && text.contains("one way up"), "{text}");
    assert!(text.contains("mean of the middle half (of the slowest 1 %)"), "{text}");
    let cost = text.lines().find(|line| line.contains("cost of a stamp")).expect("it has a cost");
    assert!(!cost.contains(" to "), "a range over one trial: {cost}");
    let document = json::quick_test(&run, input);
    assert_eq!(document["tests"][0]["stamps"]["complete"], 1_000, "{document}");
}

#[test]
fn interval_of_both_directions_waits_for_both_ends() {
    let mut traffic = traffic("udp");
    if let Traffic::UdpStream(UdpStream { direction, .. }) = &mut traffic {
        *direction = Direction::Both;
    }
    let mut intervals = Intervals::new(&traffic, 1.0, f64::INFINITY);
    let figures = |seconds: u64, bytes| LiveFigures {
        elapsed_ns: seconds * 1_000_000_000,
        received_bytes: bytes,
        ..LiveFigures::default()
    };
    // The server's figures come late; its bytes still belong to the line.
    assert_eq!(intervals.take(Role::Client, figures(1, 100)), None);
    let interval = intervals.take(Role::Server, figures(1, 1_000)).unwrap();
    assert_eq!((interval.bytes, interval.by_direction), (1_100, Some([1_000, 100])));
    let line = quick::line(&traffic, &interval, 1.0);
    let lines: Vec<&str> = line.lines().map(str::trim).collect();
    assert!(lines[1].starts_with("to server") && lines[1].ends_with("8.00 kbit/s"), "{line}");
    assert!(lines[2].starts_with("to client") && lines[2].ends_with("800 bit/s"), "{line}");
    assert_eq!(intervals.take(Role::Server, figures(2, 2_000)), None);
    assert_eq!(intervals.take(Role::Client, figures(2, 200)).unwrap().bytes, 1_100);
}

#[test]
fn closed_connections_keep_their_last_figures() {
    let traffic = traffic("bulk");
    let mut intervals = Intervals::new(&traffic, 1.0, f64::INFINITY);
    let sender = |elapsed_ns, retransmits| LiveFigures { elapsed_ns, retransmits, ..LiveFigures::default() };
    intervals.take(Role::Client, sender(900_000_000, Some(7)));
    intervals.take(Role::Client, sender(1_000_000_000, None));
    let line =
        intervals.take(Role::Server, LiveFigures { elapsed_ns: 1_000_000_000, ..LiveFigures::default() });
    assert_eq!(line.unwrap().retransmits, Some(7));
}

#[test]
fn rest_of_a_test_is_part_of_its_last_interval_and_a_long_drain_a_line_of_its_own() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let traffic = run.header.plan.arms[0].workloads[0].traffic.clone();
    let lines = |last_ns: u64, early_ns: u64| {
        let mut trial = run.trials[0].clone();
        let streams = &mut trial.client.as_mut().unwrap().report.streams;
        for (index, tcp) in streams.iter_mut().filter_map(|stream| stream.tcp.as_mut()).enumerate() {
            tcp.retransmits = Some(if index == 0 { 9 } else { 0 });
        }
        let received = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
        (received.bytes, received.last_ns) = (2_500, Some(last_ns));
        let mut intervals = Intervals::new(&traffic, 1.0, 2.0);
        let figures = |role, seconds: u64| LiveFigures {
            elapsed_ns: seconds * 1_000_000_000 - early_ns,
            received_bytes: if role == Role::Server { seconds * 1_000 } else { 0 },
            retransmits: (role == Role::Client).then_some(seconds),
            ..LiveFigures::default()
        };
        let mut shown = Vec::new();
        for seconds in [1, 2] {
            for role in [Role::Server, Role::Client] {
                shown.extend(intervals.take(role, figures(role, seconds)));
            }
        }
        shown.extend(intervals.finish(&trial));
        shown
    };
    let all = |shown: &[quick::Interval]| -> Vec<(f64, u64, bool)> {
        shown.iter().map(|interval| (interval.end_s, interval.bytes, interval.is_drain)).collect()
    };
    let short = lines(2_100_000_000, 0);
    assert_eq!(all(&short), [(1.0, 1_000, false), (2.1, 1_500, false)]);
    // The sender's figures come after the receiver's; the line waits for them.
    assert_eq!(short[0].retransmits, Some(1));
    // The last line has what came after the last figures, so that the lines add up to the total.
    let retransmits =
        |shown: &[quick::Interval]| shown.iter().filter_map(|interval| interval.retransmits).sum::<u64>();
    assert_eq!(retransmits(&short), 9);
    let long = lines(3_500_000_000, 0);
    assert_eq!(all(&long), [(1.0, 1_000, false), (2.0, 1_000, false), (3.5, 500, true)]);
    assert!(quick::line(&traffic, &long[2], 1.0).ends_with("received after the end of the test"));
    assert_eq!(retransmits(&long), 9);
    // The thread that reports may be a little early by the clock of the test.
    let drained = |shown: &[quick::Interval]| shown.iter().map(|one| one.is_drain).collect::<Vec<_>>();
    assert_eq!(drained(&lines(3_500_000_000, 10_000_000)), [false, false, true]);
    assert_eq!(retransmits(&lines(2_000_000_000, 0)), 9);
}

#[test]
fn summary_of_an_open_loop_states_a_missed_schedule_and_a_missed_rate() {
    let run = build(&Recipe { workloads: vec!["open"], blocks: 1, ..Recipe::default() });
    let (workload, mut trial) = (&run.header.plan.arms[0].workloads[0], run.trials[0].clone());
    let client = &mut trial.client.as_mut().unwrap().report;
    let round_trips = client.round_trips.as_mut().unwrap();
    let mut late = netduel_stats::histogram::Histogram::new();
    (0..1000).for_each(|_| late.record(400_000_000));
    round_trips.pacing_error = Some(late.to_record());
    client.received.as_mut().unwrap().series = (1..=5)
        .map(|second| netduel_model::sample::IntervalSample {
            end_ns: second * 1_000_000_000,
            length_ns: 1_000_000_000,
            bytes: 64_000,
            messages: 1_000,
        })
        .collect();
    let input =
        SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
    let text = quick::summary(input, 200);
    assert!(
        text.contains("schedule missed") && text.contains("/s answered of the configured 20.0 k/s"),
        "{text}"
    );
    let document = json::quick_test(&run, input);
    let kinds = document["tests"][0]["warnings"].as_array().unwrap().iter().map(|warning| &warning["kind"]);
    let kinds: Vec<&str> = kinds.filter_map(|kind| kind.as_str()).collect();
    assert!(kinds.contains(&"rate-missed") && kinds.contains(&"schedule-missed"), "{kinds:?}");
}

#[test]
fn gso_packets_are_those_above_the_mtu_and_a_short_test_has_no_cpu_time() {
    let run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    let (workload, mut trial) = (&run.header.plan.arms[0].workloads[0], run.trials[0].clone());
    for interface in &mut trial.client.as_mut().unwrap().observation.interfaces {
        interface.tx_packets = interface.tx_bytes / 1519;
        interface.rx_packets = interface.rx_bytes / 66;
    }
    let text = |trial: &netduel_model::trial::Trial, mtu: Option<u32>| {
        quick::summary(
            SummaryInput { workload, trial, shared_machine: false, expected: None, mtus: [mtu, None] },
            200,
        )
    };
    assert!(text(&trial, Some(1500)).contains(": unsegmented GSO packets"));
    assert!(!text(&trial, Some(1501)).contains("GSO") && !text(&trial, None).contains("GSO"));
    let whole = text(&trial, None);
    assert!(whole.contains("s/GB (CPU"), "{whole}");
    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        end.observation.wall_ns = 99_000_000;
    }
    let short = text(&trial, None);
    assert!(short.contains("shorter than 100 ms") && !short.contains("s/GB"), "{short}");
}

#[test]
fn jitter_is_that_of_the_end_and_absent_for_bursts_and_refused_calls_are_stated() {
    let run = build(&Recipe { workloads: vec!["udp"], blocks: 1, ..Recipe::default() });
    let (workload, mut trial) = (&run.header.plan.arms[0].workloads[0], run.trials[0].clone());
    let mut text = |burst_max, refused| {
        trial.client.as_mut().unwrap().report.datagrams_sent =
            Some(netduel_model::sample::DatagramSendReport {
                calls: 9,
                burst_max,
                refused,
                pacing_error: None,
            });
        let input =
            SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
        quick::summary(input, 200)
    };
    let single = text(1, 0);
    assert!(single.contains("at the end of the test (RFC 3550)") && !single.contains("refused"), "{single}");
    let bursts = text(45, 3);
    assert!(!bursts.contains("RFC 3550") && bursts.contains("3 send calls refused"), "{bursts}");
    assert!(bursts.contains("not available, because a send call had up to 45 datagrams"), "{bursts}");
    assert!(!single.contains("not available"), "{single}");
}

#[test]
fn congestion_windows_of_both_ends_are_headed_as_a_total() {
    let mut traffic = traffic("bulk");
    if let Traffic::TcpStream(stream) = &mut traffic {
        (stream.streams, stream.direction) = (1, Direction::Up);
    }
    assert!(!quick::heading(&traffic).contains("total cwnd"));
    if let Traffic::TcpStream(stream) = &mut traffic {
        stream.direction = Direction::Both;
    }
    assert!(quick::heading(&traffic).contains("total cwnd"));
}

#[test]
fn tiny_interval_has_no_rate() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let traffic = run.header.plan.arms[0].workloads[0].traffic.clone();
    let mut intervals = Intervals::new(&traffic, 1.0, 10.0);
    let mut trial = run.trials[0].clone();
    let received = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
    (received.bytes, received.last_ns) = (1_050_000, Some(1_000));
    let shown = intervals.finish(&trial);
    let line = quick::line(&traffic, &shown[0], 1.0);
    assert!(line.contains("1.05 MB") && !line.contains("bit/s"), "{line}");
}

#[test]
fn test_of_both_directions_shows_the_rate_of_each() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let mut workload = run.header.plan.arms[0].workloads[0].clone();
    let mut trial = run.trials[0].clone();
    let text = |workload: &Workload, trial: &_| {
        quick::summary(
            SummaryInput { workload, trial, shared_machine: false, expected: None, mtus: [None; 2] },
            200,
        )
    };
    assert!(!text(&workload, &trial).contains("to server"), "one direction is the headline itself");
    if let Traffic::TcpStream(stream) = &mut workload.traffic {
        stream.direction = Direction::Both;
    }
    let received = trial.server.as_ref().unwrap().report.received.clone();
    trial.client.as_mut().unwrap().report.received = received;
    let both = text(&workload, &trial);
    for words in ["both directions together", "to server", "to client", "TCP          client: "] {
        assert!(both.contains(words), "{words}: {both}");
    }
}
