//! The steady window of a receiver, which starts before its sender and whose data may stop early.
use netduel_model::metric::Metric;
use netduel_model::sample::{Flow, IntervalSample};
use netduel_model::units::Bytes;
use netduel_model::workload::{Direction, Role, Traffic};
use netduel_report::analysis::{Bound, bound_of, rate_received_by, value_of};

use crate::figures::{SECOND, first, flow, report};

#[test]
fn window_of_a_receiver_that_waited_for_its_sender_begins_with_the_data() {
    let (mut workload, mut trial) = first("bulk");
    workload.timing.duration.0 = 5 * SECOND;
    workload.timing.warmup.0 = SECOND;
    workload.timing.cooldown.0 = SECOND;
    let late = |late_ns: u64| {
        let mut flow = flow(1_000_000);
        let moved = |sample: &mut IntervalSample| sample.end_ns += late_ns;
        flow.series.iter_mut().for_each(moved);
        let idle = IntervalSample { end_ns: late_ns, length_ns: late_ns, bytes: 0, messages: 0 };
        flow.series.insert(0, idle);
        (flow.first_ns, flow.last_ns) = (Some(late_ns), Some(late_ns + 5 * SECOND));
        flow
    };
    report(&mut trial, true).sent = Some(Flow { last_ns: Some(5 * SECOND), ..flow(1_000_000) });
    // Less than the warm-up, in the window, and after all of it.
    for late_ns in [SECOND / 10, 2 * SECOND, 9 * SECOND] {
        report(&mut trial, false).received = Some(late(late_ns));
        let value = value_of(Metric::Throughput, &workload, &trial, true).unwrap();
        assert!((value - 8e6).abs() < 1.0, "{late_ns}: {value}");
    }
}

#[test]
fn data_that_stop_or_begin_late_on_the_path_lower_the_rate() {
    let (mut workload, mut trial) = first("bulk");
    workload.timing.duration.0 = 5 * SECOND;
    workload.timing.warmup.0 = SECOND;
    workload.timing.cooldown.0 = 0;
    report(&mut trial, true).sent = Some(Flow { last_ns: Some(5 * SECOND), ..flow(1_000_000) });
    // The receiver has no samples after the last data.
    let arrived = |seconds: std::ops::Range<usize>| {
        let mut flow = flow(1_000_000);
        flow.series.truncate(seconds.end);
        for sample in &mut flow.series[..seconds.start] {
            (sample.bytes, sample.messages) = (0, 0);
        }
        (flow.first_ns, flow.last_ns) =
            (Some(seconds.start as u64 * SECOND), Some(seconds.end as u64 * SECOND));
        flow
    };
    for (seconds, megabits, bound) in
        [(0..5, 8.0, None), (0..3, 4.0, None), (3..5, 4.0, None), (0..1, 0.0, Some(Bound::LessThan))]
    {
        report(&mut trial, false).received = Some(arrived(seconds.clone()));
        let value = value_of(Metric::Throughput, &workload, &trial, true).unwrap();
        assert!((value / 1e6 - megabits).abs() < 1e-5, "{seconds:?}: {value}");
        assert_eq!(bound_of(Metric::Throughput, &workload, &trial, true), bound, "{seconds:?}");
    }
}

#[test]
fn volumes_both_ways_have_the_rate_of_the_time_that_both_took() {
    let (mut workload, mut trial) = first("bulk");
    (workload.timing.duration.0, workload.timing.warmup.0, workload.timing.cooldown.0) = (60 * SECOND, 0, 0);
    let Traffic::TcpStream(stream) = &mut workload.traffic else { panic!("bulk data") };
    (stream.direction, stream.tuning.volume) = (Direction::Both, Some(Bytes(40_000_000)));
    // The same volume in 1 s and in 4 s.
    let volume = |seconds: u64| {
        let sample = |second: u64| IntervalSample {
            end_ns: (second + 1) * SECOND,
            length_ns: SECOND,
            bytes: 40_000_000 / seconds,
            messages: 40,
        };
        Flow {
            bytes: 40_000_000,
            messages: 40 * seconds,
            first_ns: Some(0),
            last_ns: Some(seconds * SECOND),
            series: (0..seconds).map(sample).collect(),
        }
    };
    let metric = Metric::Throughput;
    for (up_s, down_s) in [(1, 4), (4, 1)] {
        for (is_client, sends_s, receives_s) in [(true, up_s, down_s), (false, down_s, up_s)] {
            let end = report(&mut trial, is_client);
            (end.sent, end.received) = (Some(volume(sends_s)), Some(volume(receives_s)));
        }
        let value = value_of(metric, &workload, &trial, true).unwrap();
        assert!((value / 1e6 - 160.0).abs() < 1e-3, "640 Mbit in 4 s, not 320 Mbit/s and 80 Mbit/s: {value}");
        for (role, seconds) in [(Role::Server, up_s), (Role::Client, down_s)] {
            let value = rate_received_by(role, metric, &workload, &trial).unwrap();
            assert!((value / 1e6 - 320.0 / seconds as f64).abs() < 1e-3, "{role:?}: {value}");
        }
    }
}
