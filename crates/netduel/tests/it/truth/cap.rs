//! A known rate: the measured rate equals that of a token bucket before the wire.
//!
//! The unit of the bucket: `tbf_dequeue` (net/sched/sch_tbf.c) charges `qdisc_pkt_len(skb)`.
//! For a GSO segment that is `skb->len + (gso_segs - 1) * hdr_len` (`qdisc_pkt_len_init`, net/core/dev.c):
//! the bytes of all its packets on the wire, each with Ethernet, IP and TCP or UDP header, without preamble and check sequence. Its
//! own counters use the same length. So 1448 of every 1514 bytes are payload of TCP with time stamps, and 1472 of the largest UDP
//! datagram.
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::Flow;
use netduel_report::analysis::value_of;
use netduel_test_support::not_compared;

use super::bed::{Hosts, skipped_without_root, turn};
use super::queue::{Reading, Sampler, cap};
use crate::support::Bench;

/// Tolerance of a measured value.
const TOLERANCE: f64 = 0.01;
/// Ethernet, IPv4 and TCP header with time stamps.
const TCP_HEADERS: u64 = 14 + 20 + 32;
/// Ethernet, IPv4 and UDP header.
const UDP_HEADERS: u64 = 14 + 20 + 8;
/// Bytes that are neither payload nor header: greetings and markers.
const GREETINGS: u64 = 20_000;
/// A queue that passed this share of its rate always had something to send.
const FULL: f64 = 0.995;
/// If this many seconds are uncertain because of CPU contention, or a thread of high priority that sleeps for 2 ms was not
/// scheduled for so long, the machine stalled; then only the sum over all trials is checked.
const STANDSTILL: f64 = 0.1;
const GAP_S: f64 = 0.03;
/// Distance of timely readings from the edges of a window: sampling periods, and large segments at the lowest rate.
const BESIDE_S: f64 = 0.02;
/// Maximum sleep of a receiver that keeps up, plus wake-up time, seconds.
const SLEEP_S: f64 = 0.025;
/// What the receiver of a TCP stream takes off its socket in one call, bytes: at most, and as long as it keeps up (`DISCARD_BYTES` and
/// `LOW_WATER_BYTES` in netduel-load/src/tcp_stream.rs). That of datagrams takes 64 of them in either case.
const TCP_CALL: (f64, f64) = (4_194_304.0, 131_072.0);
const UDP_CALL: (f64, f64) = (64.0 * 1472.0, 64.0 * 1472.0);
/// The steady window of every trial here.
const WARMUP_NS: u64 = 300_000_000;
const DURATION_NS: u64 = 1_300_000_000;

/// A workload through a cap.
pub struct Case {
    rate: &'static str,
    rate_bps: f64,
    /// Burst size: a whole segment of the largest kind, and the bytes of 1 ms at the rate.
    burst: u32,
    workload: &'static str,
    /// Headers of a packet, bytes.
    headers: u64,
    /// Payload of a packet, bytes.
    payload: u64,
    /// Largest unit that leaves at once: an unsegmented GSO packet, or a datagram.
    step_bytes: f64,
    /// What one call of the receiver takes, bytes: at most, and while it keeps up.
    call_bytes: (f64, f64),
}

const TCP: &str = "type = \"tcp-stream\"\ncongestion = \"cubic\"";
const UDP: &str = "type = \"udp-stream\"\nsize = \"1472 B\"";

impl Case {
    /// Payload that left the queue between two readings, bytes.
    fn payload_of(&self, first: &Reading, last: &Reading) -> u64 {
        (last.bytes - first.bytes).saturating_sub((last.packets - first.packets) * self.headers)
    }
}

/// A TCP stream through a cap.
pub fn tcp(rate: &'static str, rate_bps: f64, burst: u32) -> Case {
    Case {
        rate,
        rate_bps,
        burst,
        workload: TCP,
        headers: TCP_HEADERS,
        payload: 1448,
        step_bytes: 65_536.0,
        call_bytes: TCP_CALL,
    }
}

#[test]
fn measured_rate_equals_that_of_a_token_bucket() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let udp = |rate, rate_bps, burst| Case {
        rate,
        rate_bps,
        burst,
        workload: UDP,
        headers: UDP_HEADERS,
        payload: 1472,
        step_bytes: 1472.0,
        call_bytes: UDP_CALL,
    };
    // Slow ones leave the cores idle, so they run concurrently.
    let together = [tcp("100mbit", 1e8, 131_072), udp("100mbit", 1e8, 131_072), tcp("1gbit", 1e9, 131_072)];
    std::thread::scope(|scope| {
        for case in &together {
            scope.spawn(|| check(case));
        }
    });
    // No core here sends 5 Gbit/s of single datagrams, so that rate is tested with TCP only.
    check(&udp("1gbit", 1e9, 131_072));
    check(&tcp("5gbit", 5e9, 655_360));
}

fn check(case: &Case) {
    check_run(case, |hosts, bench, workload| hosts.run(bench, workload, 2));
}

/// Limits the wire, runs the case's workload by `run`, and checks every trial. Returns the stored trials.
pub fn check_run(case: &Case, run: impl FnOnce(&Hosts, &Bench, &str) -> Run) -> Run {
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    cap(&hosts.a, "va", case.rate, case.burst);
    let workload = format!(
        "[[workloads]]\nname = \"capped\"\n{}\nduration = \"1300 ms\"\nwarmup = \"300 ms\"\ncooldown = \"0 ms\"",
        case.workload
    );
    let sampler = Sampler::start(&hosts.a, "va", &hosts.b);
    let run = run(&hosts, &bench, &workload);
    let readings = sampler.finish();
    let settings = &run.header.plan.arms[0].workloads[0];
    let (mut arrived, mut compared) = (0, 0);
    for trial in &run.trials {
        let seen = value_of(Metric::Throughput, settings, trial, true).unwrap();
        let server = &trial.server.as_ref().unwrap().report;
        let flow = server.received.as_ref().unwrap();
        // What left the queue while the receiver had no core for longer than its buffer lasts: 0.3 s at 1 Gbit/s.
        let drops = server.datagrams.as_ref().and_then(|count| count.socket_drops).unwrap_or(0);
        let dropped = drops * case.payload;
        let window = steady_readings(case, &readings, arrived, flow);
        compared += u32::from(judge(case, &window, dropped, seen));
        arrived += flow.bytes + dropped;
    }
    if compared == 0 {
        not_compared(format!(
            "{}: the machine stalled in every trial; only the bytes are checked",
            case.rate
        ));
    }
    // Greetings, markers, and spurious retransmits: at most 0.1 % on any machine.
    let left = case.payload_of(readings.first().unwrap(), readings.last().unwrap());
    println!(
        "{}: {left} B of payload left the queue, {arrived} B arrived at the receiver's socket",
        case.rate
    );
    assert!(
        left.abs_diff(arrived) <= arrived / 1000 + GREETINGS,
        "{left} B left, {arrived} B arrived at the receiver's socket"
    );
    bench.assert_nothing_left();
    run
}

/// The queue's readings in a steady window.
struct Steady<'a> {
    readings: &'a [Reading],
    /// Distance of the first and last reading from the edges of the window, sum, seconds.
    beside_s: f64,
    /// Bytes missed by cutting the series at the edges of the window, from the queue's own series, sum of both edges.
    cut: f64,
    /// Least and most bytes that left the queue and were not read, at each edge.
    in_flight: [(f64, f64); 2],
    /// Most bytes that a call of the receiver took before each edge and counted after it, beyond those of a receiver that keeps up.
    taken: [f64; 2],
}

/// The queue's readings in the steady window of the trial that follows `arrived` bytes at the receiver's socket.
///
/// The receiver's times count from its start. No byte was counted before it left the queue, which was not before the last reading
/// without it; so the start is not earlier than that reading minus the sample's time. The interval with the least delay gives the
/// start.
fn steady_readings<'a>(case: &Case, readings: &'a [Reading], arrived: u64, flow: &Flow) -> Steady<'a> {
    let payload = |reading: &Reading| case.payload_of(&readings[0], reading);
    let left = |bytes: u64| {
        let with = readings.partition_point(|reading| payload(reading) < bytes);
        readings[with.max(1) - 1].at_ns
    };
    let mut counted = arrived;
    // The last bytes of a trial may be short by the few bytes of greetings; the middle is enough.
    let inner = flow.series.iter().filter(|sample| sample.bytes > 0 && sample.end_ns < DURATION_NS);
    let starts = inner.map(|sample| {
        counted += sample.bytes;
        left(counted).saturating_sub(sample.end_ns)
    });
    let start_ns = starts.max().unwrap();
    let at = |ns: u64| readings.partition_point(|reading| reading.at_ns < start_ns + ns);
    // A reading right after a departure: at 100 Mbit/s a large segment leaves every 5 ms.
    let fresh = |from: usize| {
        let fresh = (from..readings.len()).find(|index| readings[*index].bytes > readings[index - 1].bytes);
        // After a stall of the machine there may be no later reading; the last is then far from the edge, and the trial is not
        // checked.
        fresh.unwrap_or(readings.len() - 1)
    };
    let (from, to) = (fresh(at(WARMUP_NS)), fresh(at(DURATION_NS)));
    let apart = |index: usize, ns: u64| readings[index].at_ns.abs_diff(start_ns + ns) as f64 / 1e9;
    let beside = apart(from, WARMUP_NS) + apart(to, DURATION_NS);
    // An interval cut by an edge counts in proportion; the queue may have passed another share of it before the edge.
    let curve = |ns: u64| {
        let next = at(ns).clamp(1, readings.len() - 1);
        let (before, after) = (&readings[next - 1], &readings[next]);
        let length = (after.at_ns - before.at_ns) as f64;
        let part = ((start_ns + ns) as f64 - before.at_ns as f64) / length;
        payload(before) as f64 + part.clamp(0.0, 1.0) * (payload(after) - payload(before)) as f64
    };
    let cut_at = |edge: u64| {
        let interval = flow.series.iter().find(|sample| sample.end_ns >= edge && sample.length_ns > 0);
        interval.map_or(0.0, |sample| {
            let (first, last) = (sample.end_ns - sample.length_ns, sample.end_ns);
            let part = (edge - first) as f64 / sample.length_ns as f64;
            (curve(edge) - curve(first) - part * (curve(last) - curve(first))).abs()
        })
    };
    let cut = cut_at(WARMUP_NS) + cut_at(DURATION_NS);
    // A receiver without a core falls behind by megabytes within milliseconds, and the place of an edge is known to its longest sleep.
    let in_flight = [from, to].map(|index| {
        let until = readings[index].at_ns + (SLEEP_S * 1e9) as u64;
        let beside = readings[index..].iter().take_while(|reading| reading.at_ns <= until);
        let unread =
            beside.map(|reading| reading.waiting as f64 + reading.unprocessed as f64 * case.step_bytes);
        unread.fold((f64::INFINITY, 0.0_f64), |(least, most), bytes| (least.min(bytes), most.max(bytes)))
    });
    // The receiver counts what a call has taken when the call has returned. If it loses its core before that, these bytes are neither in the
    // socket nor counted. They waited in the socket before. Where a receiver keeps up, at most its low-water mark and one large segment
    // wait, so that this is nothing on an idle machine.
    let taken = [from, to].map(|index| {
        let since = readings[index].at_ns.saturating_sub((SLEEP_S * 1e9) as u64);
        let before = readings[..=index].iter().rev().take_while(|reading| reading.at_ns >= since);
        let waited = before.map(|reading| reading.waiting as f64).fold(0.0_f64, f64::max);
        let (at_most, keeping_up) = case.call_bytes;
        (waited.min(at_most) - keeping_up - case.step_bytes).max(0.0)
    });
    Steady { readings: &readings[from..=to], beside_s: beside, cut, in_flight, taken }
}

/// Compares the measured value with the queue's counters, and with its nominal rate if its own counters reached it. CPU
/// contention, as reported by the kernel, widens the tolerance: data that waited at the edges of the window in the receiver's
/// queues for more than its maximum sleep, data that it had taken from there and not counted yet, late readings, rate changes within the
/// intervals cut by the edges, and the `dropped` bytes of the trial at the receiver's socket. Returns whether the values were compared: false
/// after a stall. How close they are on a quiet machine is measured by the bench `precision`.
fn judge(case: &Case, window: &Steady<'_>, dropped: u64, seen: f64) -> bool {
    let steady = window.readings;
    let (first, last) = (steady.first().unwrap(), steady.last().unwrap());
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let payload = case.payload_of(first, last) as f64;
    let counted = payload * 8.0 / seconds;
    let nominal = case.rate_bps * case.payload as f64 / (case.payload + case.headers) as f64;
    let asleep = nominal / 8.0 * SLEEP_S;
    let ([before, after], [taken_before, taken_after]) = (window.in_flight, window.taken);
    let late: f64 = [before, after].map(|(_, most)| (most - asleep).max(0.0)).iter().sum();
    // What left the queue before the window and was counted in it, less what left in it and was counted after it.
    let shifted = (before.1 + taken_before - after.0).max(after.1 + taken_after - before.0);
    // A large segment is a step in the queue's course, and no change of its rate.
    let cut = (window.cut - 2.0 * case.step_bytes).max(0.0);
    // Where the queue was not always full, its rate varies between zero and its limit, also between the readings and the edges; and the
    // place of the window is known to the longest sleep of the receiver, whose times it has.
    let beside = if counted < nominal * FULL {
        (window.beside_s + SLEEP_S) * nominal / counted / seconds
    } else {
        (window.beside_s - BESIDE_S).max(0.0) / seconds
    };
    let allowed = TOLERANCE + (late + shifted + cut + dropped as f64) / payload + beside;
    let gap_s = steady.windows(2).map(|two| two[1].at_ns - two[0].at_ns).max().unwrap_or(0) as f64 / 1e9;
    let what = format!(
        "{} {}: read {:.1} Mbit/s of payload; the queue counted {:.1} in {seconds:.3} s ({:+.2} %), its rate allows {:.1} ({:+.2} %); \
         allowed are {:.2} %, the longest time without a reading {:.1} ms",
        case.rate,
        case.workload.lines().next().unwrap(),
        seen / 1e6,
        counted / 1e6,
        (seen / counted - 1.0) * 100.0,
        nominal / 1e6,
        (seen / nominal - 1.0) * 100.0,
        allowed * 100.0,
        gap_s * 1e3
    );
    assert_eq!(first.drops, last.drops, "the queue is long enough: {what}");
    if allowed > STANDSTILL || gap_s > GAP_S {
        println!("not compared, the machine stalled: {what}");
        return false;
    }
    println!("{what}");
    assert!((seen / counted - 1.0).abs() <= allowed, "{what}");
    assert!(seen <= nominal * (1.0 + allowed), "{what}");
    assert!(counted < nominal * FULL || seen >= nominal * (1.0 - allowed), "{what}");
    true
}
