//! A rate of known size: a token bucket before the wire is read as what it lets through.
//!
//! What the bucket counts. `tbf_dequeue` (net/sched/sch_tbf.c) charges `qdisc_pkt_len(skb)`, which for a segment that the
//! interface is to cut is `skb->len + (gso_segs - 1) * hdr_len` (`qdisc_pkt_len_init`, net/core/dev.c): the bytes that all its
//! pieces will have on the wire, each with Ethernet, IP and TCP or UDP header, without preamble and check sequence. Its own
//! counters add up the same length. So of every 1514 bytes of rate 1448 are payload of a TCP with time stamps, and 1472 that of
//! the largest UDP datagram.
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::Flow;
use netduel_report::analysis::value_of;

use super::bed::{Hosts, skipped_without_root, turn};
use super::queue::{Reading, Sampler, cap};
use crate::support::Bench;

/// How far a reading may be from what is known.
const TOLERANCE: f64 = 0.01;
/// Ethernet, IPv4 and TCP header with time stamps.
const TCP_HEADERS: u64 = 14 + 20 + 32;
/// Ethernet, IPv4 and UDP header.
const UDP_HEADERS: u64 = 14 + 20 + 8;
/// The steady window of every trial here.
const WARMUP_NS: u64 = 300_000_000;
const DURATION_NS: u64 = 1_300_000_000;

/// A workload through a cap.
pub struct Case {
    rate: &'static str,
    rate_bps: f64,
    /// Bytes that pass at once: a whole segment of the largest kind, and what the rate carries in a millisecond.
    burst: u32,
    workload: &'static str,
    /// Of a packet, bytes.
    headers: u64,
    /// Of a packet, bytes.
    payload: u64,
}

const TCP: &str = "type = \"tcp-stream\"\ncongestion = \"cubic\"";
const UDP: &str = "type = \"udp-stream\"\nsize = \"1472 B\"";

/// A TCP stream through a cap.
pub fn tcp(rate: &'static str, rate_bps: f64, burst: u32) -> Case {
    Case { rate, rate_bps, burst, workload: TCP, headers: TCP_HEADERS, payload: 1448 }
}

#[test]
fn a_token_bucket_is_read_as_the_rate_that_it_lets_through() {
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
    };
    // Slow ones leave the cores idle, so they run beside each other.
    let together = [tcp("100mbit", 1e8, 131_072), udp("100mbit", 1e8, 131_072), tcp("1gbit", 1e9, 131_072)];
    std::thread::scope(|scope| {
        for case in &together {
            scope.spawn(|| check(case));
        }
    });
    // No core here sends 5 Gbit/s of datagrams one by one, so that rate is TCP's alone.
    check(&udp("1gbit", 1e9, 131_072));
    check(&tcp("5gbit", 5e9, 655_360));
}

fn check(case: &Case) {
    check_run(case, |hosts, bench, workload| hosts.run(bench, workload, 2));
}

/// Caps the wire, runs the case's workload by `run`, and judges every trial. Returns what was stored.
pub fn check_run(case: &Case, run: impl FnOnce(&Hosts, &Bench, &str) -> Run) -> Run {
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    cap(&hosts.a, "va", case.rate, case.burst);
    let workload = format!(
        "[[workloads]]\nname = \"capped\"\n{}\nduration = \"1300 ms\"\nwarmup = \"300 ms\"\ncooldown = \"0 ms\"",
        case.workload
    );
    let sampler = Sampler::start(&hosts.a, "va");
    let run = run(&hosts, &bench, &workload);
    let readings = sampler.finish();
    let settings = &run.header.plan.arms[0].workloads[0];
    let mut begin = 0;
    for trial in &run.trials {
        let seen = value_of(Metric::Throughput, settings, trial, true).unwrap();
        let flow = trial.server.as_ref().unwrap().report.received.as_ref().unwrap();
        let (steady, next) = steady_readings(&readings, begin, flow);
        begin = next;
        judge(case, steady, seen);
    }
    bench.assert_nothing_left();
    run
}

/// The queue's readings in the steady window of the trial that begins after reading `begin`, and where the trial ends.
///
/// The receiver's clock begins at its start, and its first byte tells when that was: the bucket is full then, so the byte
/// left the queue as it came. The error is the time between two readings; at a steady rate it does not bear on the result.
fn steady_readings<'a>(readings: &'a [Reading], begin: usize, flow: &Flow) -> (&'a [Reading], usize) {
    // What connects and greets is less than this.
    let still = |index: usize| readings[index].bytes - readings[begin].bytes < 20_000;
    let first = (begin..readings.len()).find(|index| !still(*index)).unwrap();
    let start_ns = readings[first].at_ns - flow.first_ns.unwrap();
    let at = |ns: u64| readings.partition_point(|reading| reading.at_ns < start_ns + ns);
    // A reading after which something has just left: at 100 Mbit/s a large segment leaves every 5 ms.
    let fresh = |from: usize| {
        (from..readings.len()).find(|index| readings[*index].bytes > readings[index - 1].bytes).unwrap()
    };
    let (from, to) = (fresh(at(WARMUP_NS)), fresh(at(DURATION_NS)));
    (&readings[from..=to], at(flow.last_ns.unwrap()) + 1)
}

/// Compares what was read with what the queue counted, and with its nominal rate: never more than that, and less only by
/// the share of the time in which the queue was seen to have nothing to send.
fn judge(case: &Case, steady: &[Reading], seen: f64) {
    let (first, last) = (steady.first().unwrap(), steady.last().unwrap());
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let payload = (last.bytes - first.bytes) - (last.packets - first.packets) * case.headers;
    let counted = payload as f64 * 8.0 / seconds;
    let nominal = case.rate_bps * case.payload as f64 / (case.payload + case.headers) as f64;
    let empty = steady.iter().filter(|reading| reading.backlog == 0).count() as f64 / steady.len() as f64;
    let what = format!(
        "{} {}: read {:.1} Mbit/s of payload; the queue counted {:.1} in {seconds:.3} s ({:+.2} %), its rate allows {:.1} ({:+.2} %) \
         and it was empty at {:.1} % of {} readings; {} packets dropped",
        case.rate,
        case.workload.lines().next().unwrap(),
        seen / 1e6,
        counted / 1e6,
        (seen / counted - 1.0) * 100.0,
        nominal / 1e6,
        (seen / nominal - 1.0) * 100.0,
        empty * 100.0,
        steady.len(),
        last.drops - first.drops
    );
    println!("{what}");
    assert!((seen / counted - 1.0).abs() <= TOLERANCE, "{what}");
    assert!(seen <= nominal * (1.0 + TOLERANCE), "{what}");
    assert!(seen >= nominal * (1.0 - TOLERANCE - empty), "{what}");
}
