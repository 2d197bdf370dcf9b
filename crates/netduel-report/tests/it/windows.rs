//! The steady window of a receiver, which starts before its sender and whose data may stop early.
use netduel_model::metric::Metric;
use netduel_model::sample::{Flow, IntervalSample};
use netduel_model::units::{BitRate, Bytes};
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

/// Datagrams of 65507 bytes at 10 Mbit/s, which arrive a millisecond after the receiver began.
#[test]
fn volume_of_few_datagrams_has_the_rate_of_their_schedule() {
    const SIZE: u64 = 65_507;
    const GAP_NS: u64 = 52_405_600;
    const LATE_NS: u64 = SECOND / 1000;
    let (mut workload, mut trial) = first("udp");
    (workload.timing.warmup.0, workload.timing.cooldown.0) = (0, 0);
    let mut value = |datagrams: u64, flows: u64, rate: Option<BitRate>, has_volume: bool| {
        let bytes = datagrams * SIZE;
        let over_ns = (datagrams - 1) * GAP_NS;
        workload.timing.duration.0 = over_ns;
        let Traffic::UdpStream(stream) = &mut workload.traffic else { panic!("datagrams") };
        (stream.size, stream.rate) = (Bytes(SIZE), rate);
        stream.tuning.volume = has_volume.then_some(Bytes(bytes));
        // Of two flows the sample ends between the last datagrams of both.
        let end_ns = LATE_NS + over_ns - (flows - 1) * GAP_NS / 2;
        let sample = IntervalSample { end_ns, length_ns: end_ns, bytes, messages: datagrams };
        let flow = |begins_ns: u64| Flow {
            bytes,
            messages: datagrams,
            first_ns: Some(begins_ns),
            last_ns: Some(begins_ns + over_ns),
            series: vec![sample],
        };
        report(&mut trial, true).sent = Some(flow(0));
        report(&mut trial, false).received = Some(flow(LATE_NS));
        let bps = value_of(Metric::Throughput, &workload, &trial, true).unwrap();
        let of_receiver = rate_received_by(Role::Server, Metric::Throughput, &workload, &trial).unwrap();
        let per_s = value_of(Metric::DatagramRate, &workload, &trial, true).unwrap();
        assert!((bps - of_receiver).abs() < 1.0 && (bps - per_s * SIZE as f64 * 8.0).abs() < 1.0);
        bps / 1e6
    };
    let rate = Some(BitRate(10_000_000));
    for (datagrams, flows) in [(2, 1), (3, 1), (1000, 1), (2, 2), (10, 2)] {
        let megabits = value(datagrams, flows, rate, true);
        assert!((megabits - 10.0).abs() < 1e-3, "{datagrams} of {flows}: {megabits}");
    }
    // Without a rate there is no schedule, and with an end by time another window.
    for (rate, has_volume) in [(None, true), (rate, false)] {
        let megabits = value(3, 1, rate, has_volume);
        assert!((megabits - 15.0).abs() < 1e-3, "{rate:?}, {has_volume}: {megabits}");
    }
}
