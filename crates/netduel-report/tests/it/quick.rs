//! Quick tests: interval lines and the summary.
use netduel_model::sample::{LiveFigures, LiveRoundTrips};
use netduel_model::units::Nanos;
use netduel_model::workload::{Direction, Role, Traffic, UdpStream, Workload};
use netduel_report::quick::{self, Intervals, SummaryInput};

use crate::builder::{Recipe, build};
use crate::{json, stamps};

fn traffic(workload: &'static str) -> Traffic {
    let run = build(&Recipe { workloads: vec![workload], blocks: 3, ..Recipe::default() });
    run.header.plan.arms[0].workloads[0].traffic.clone()
}

#[test]
fn lost_datagrams_are_counted_per_interval() {
    let traffic = traffic("udp");
    let mut intervals = Intervals::new(&traffic, 1.0);
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
        (interval.messages, interval.lost, quick::line(&traffic, &interval))
    };
    let (messages, missing, first) = line(figures(1_000_000_000, 995, 5));
    assert_eq!((messages, missing), (995, Some(5)));
    assert!(first.contains("5 (0.50 %)") && first.contains("1.50 us"), "{first}");
    assert_eq!(line(figures(2_000_000_000, 1_985, 15)).1, Some(10));
    assert_eq!(line(figures(3_000_000_000, 3_000, 12)).1, Some(0));
}

#[test]
fn early_figures_belong_to_the_same_interval() {
    let traffic = traffic("rr");
    let mut intervals = Intervals::new(&traffic, 1.0);
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
    let line = quick::line(&traffic, &interval);
    assert!(line.contains("50.0 us") && line.contains("100 us") && line.contains("900 us"), "{line}");
    // An interval without responses has no round trips, not those of the previous interval.
    let silent = intervals.take(Role::Client, figures(2_000_000_000, 100, None)).unwrap();
    assert_eq!(silent.round_trips, None);
    assert!(quick::line(&traffic, &silent).trim_end().ends_with('-'));
}

#[test]
fn summary_and_interval_lines_state_their_time_base() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let trial = &run.trials[0];
    let mut workload = run.header.plan.arms[0].workloads[0].clone();
    let text = |workload: &Workload| {
        quick::summary(SummaryInput { workload, trial, shared_machine: false, expected: None }, 200)
    };
    let excluded = text(&workload);
    assert!(excluded.contains("warm-up") && excluded.contains(" excluded)"), "{excluded}");
    assert!(excluded.contains("Whole test, from the first to the last byte"), "{excluded}");
    (workload.timing.warmup, workload.timing.cooldown) = (Nanos(0), Nanos(0));
    let whole = text(&workload);
    assert!(whole.contains("(no warm-up)") && !whole.contains(" 0 ns"), "{whole}");
    let heading = quick::heading(&workload.traffic);
    assert!(heading.contains("payload received, warm-up included"), "{heading}");
}

#[test]
fn stamped_test_shows_the_round_trip_composition() {
    let run = stamps::run([true, true], |_| {});
    let (workload, trial) = (&run.header.plan.arms[0].workloads[0], &run.trials[0]);
    let input = SummaryInput { workload, trial, shared_machine: false, expected: None };
    let text = quick::summary(input, 80);
    assert!(text.contains("network, both ways") && text.contains("one way up"), "{text}");
    let document = json::quick_test(&run, input);
    assert_eq!(document["tests"][0]["stamps"]["complete"], 1_000, "{document}");
}

#[test]
fn interval_of_both_directions_waits_for_both_ends() {
    let mut traffic = traffic("udp");
    if let Traffic::UdpStream(UdpStream { direction, .. }) = &mut traffic {
        *direction = Direction::Both;
    }
    let mut intervals = Intervals::new(&traffic, 1.0);
    let figures = |seconds: u64, bytes| LiveFigures {
        elapsed_ns: seconds * 1_000_000_000,
        received_bytes: bytes,
        ..LiveFigures::default()
    };
    // The server's figures come late; its bytes still belong to the line.
    assert_eq!(intervals.take(Role::Client, figures(1, 100)), None);
    assert_eq!(intervals.take(Role::Server, figures(1, 1_000)).unwrap().bytes, 1_100);
    assert_eq!(intervals.take(Role::Server, figures(2, 2_000)), None);
    assert_eq!(intervals.take(Role::Client, figures(2, 200)).unwrap().bytes, 1_100);
}

#[test]
fn closed_connections_keep_their_last_figures() {
    let traffic = traffic("bulk");
    let mut intervals = Intervals::new(&traffic, 1.0);
    let sender = |elapsed_ns, retransmits| LiveFigures { elapsed_ns, retransmits, ..LiveFigures::default() };
    intervals.take(Role::Client, sender(900_000_000, Some(7)));
    intervals.take(Role::Client, sender(1_000_000_000, None));
    let line =
        intervals.take(Role::Server, LiveFigures { elapsed_ns: 1_000_000_000, ..LiveFigures::default() });
    assert_eq!(line.unwrap().retransmits, Some(7));
}
