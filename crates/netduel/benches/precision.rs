//! Measured values against known truths on a quiet machine: the delay of queues of known size, and the rate of token buckets. The
//! tests of the same properties allow what a busy machine adds; the limits here do not.
//!
//! One run per property; its arms are interleaved in blocks. Each value is divided by the truth. The median over the blocks must be
//! within the limits; the range is printed beside it. A block whose trial is invalid or has no value, for example no round trip in the
//! stream, does not count, and its number is printed; most blocks must count.
mod support;

use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::{HistogramRecord, UnderLoad};
use netduel_model::trial::Trial;
use netduel_model::workload::Workload;
use netduel_report::analysis::value_of;
use netduel_stats::histogram::Histogram;
use netduel_stats::summary::quantile;
use support::stored_run;

/// Blocks of a run: the number of values of each arm.
const BLOCKS: usize = 7;
/// Blocks with a value, at least: the majority.
const COUNTED_MIN: usize = BLOCKS / 2 + 1;
/// Rate of the links with a queue, bit/s.
const QUEUE_RATE_BPS: f64 = 100e6;
/// Queue limits, bytes: 2 ms and 50 ms at that rate.
const SHALLOW: u64 = 25_000;
const DEEP: u64 = 625_000;
/// Wake-ups of the two ends of a round trip, nanoseconds: the shallow queue may add so much more.
const WAKE_UPS_NS: f64 = 1e6;
/// Share of payload in a packet of a TCP stream with time stamps on Ethernet, as a token bucket charges it.
const TCP_PAYLOAD: f64 = 1448.0 / 1514.0;

/// A property: the value of each block that has one, divided by the truth.
struct Property {
    name: &'static str,
    ratios: Vec<f64>,
    /// Limits of the median.
    least: f64,
    most: f64,
}

fn main() {
    let mut properties = queues();
    properties.extend(rates());
    let mut outside = Vec::new();
    for Property { name, ratios, least, most } in &properties {
        let missing = BLOCKS.saturating_sub(ratios.len());
        if ratios.len() < COUNTED_MIN {
            println!(
                "precision: {name}: {missing} of {BLOCKS} blocks without a value, at most {} are allowed",
                BLOCKS - COUNTED_MIN
            );
            outside.push(*name);
            continue;
        }
        let [low, middle, high] =
            [0.0, 0.5, 1.0].map(|share| quantile(ratios, share).expect("there are values"));
        let count = ratios.len();
        let apart = if missing > 0 {
            format!("; {missing} of {BLOCKS} blocks did not count: no value")
        } else {
            String::new()
        };
        println!(
            "precision: {name}: {middle:.3} [{low:.3}, {high:.3}], n = {count}; limits {least} to {most}{apart}"
        );
        println!("figure {name} {middle:.4} ratio");
        if !(*least..=*most).contains(&middle) {
            outside.push(*name);
        }
    }
    assert!(outside.is_empty(), "outside of the limits, or without enough values: {}", outside.join(", "));
}

fn connect(load: &UnderLoad) -> &HistogramRecord {
    &load.foreign.connect
}

fn in_band(load: &UnderLoad) -> &HistogramRecord {
    &load.in_band
}

/// What a full queue adds to a round trip, to a TCP handshake beside it, and to a request in the data of a loaded connection.
fn queues() -> Vec<Property> {
    let arms: String = [("shallow", SHALLOW), ("deep", DEEP)]
        .map(|(name, limit)| arm(name, &format!("{QUEUE_RATE_BPS:.0}bit"), 16_384, limit))
        .concat();
    let run = run(
        &arms,
        "[[workloads]]\nname = \"upload\"\ntype = \"loaded-latency\"\ndirection = \"up\"\nduration = \"3 s\"\nwarmup = \"300 ms\"\n\
         cooldown = \"100 ms\"\ncongestion = \"cubic\"",
    );
    let full = |limit: u64| limit as f64 * 8.0 / QUEUE_RATE_BPS * 1e9;
    let added = |arm: &'static str, metric: Metric, truth: f64| {
        ratios(&run, arm, |workload, trial| {
            let of = |metric: Metric| value_of(metric, workload, trial, true);
            Some((of(metric)? - of(Metric::LatencyIdleP50)?) / truth)
        })
    };
    // A connection has one packet in the queue during its handshake, as a probe has.
    let beside = |arm: &'static str, record: fn(&UnderLoad) -> &HistogramRecord| {
        ratios(&run, arm, |workload, trial| {
            let load = trial.client.as_ref()?.report.under_load.as_ref()?;
            let median = Histogram::from_record(record(load)).ok()?.percentile(50.0)?;
            Some(median as f64 / value_of(Metric::LatencyLoadedP50, workload, trial, true)?)
        })
    };
    vec![
        Property {
            name: "queue-deep-p50",
            ratios: added("deep", Metric::LatencyLoadedP50, full(DEEP)),
            least: 0.5,
            most: 1.05,
        },
        Property {
            name: "queue-deep-p99",
            ratios: added("deep", Metric::LatencyLoadedP99, full(DEEP)),
            least: 0.85,
            most: 1.15,
        },
        Property {
            name: "queue-shallow-p50",
            ratios: added("shallow", Metric::LatencyLoadedP50, 1.15 * full(SHALLOW) + WAKE_UPS_NS),
            least: 0.0,
            most: 1.0,
        },
        Property { name: "connect-deep", ratios: beside("deep", connect), least: 0.5, most: 1.5 },
        Property { name: "connect-shallow", ratios: beside("shallow", connect), least: 0.5, most: 1.5 },
        Property { name: "in-band-deep", ratios: beside("deep", in_band), least: 0.5, most: f64::INFINITY },
        Property {
            name: "in-band-shallow",
            ratios: beside("shallow", in_band),
            least: 0.5,
            most: f64::INFINITY,
        },
    ]
}

/// Throughput behind a token bucket.
fn rates() -> Vec<Property> {
    let names = [("rate-100-mbit", "100mbit", 1e8), ("rate-1-gbit", "1gbit", 1e9)];
    let arms: String = names.map(|(name, rate, _)| arm(name, rate, 131_072, 16 << 20)).concat();
    let run = run(
        &arms,
        "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\nduration = \"2 s\"\nwarmup = \"500 ms\"\ncooldown = \"0 ms\"\n\
         congestion = \"cubic\"",
    );
    names
        .into_iter()
        .map(|(name, _, bps)| {
            let ratios = ratios(&run, name, |workload, trial| {
                Some(value_of(Metric::Throughput, workload, trial, true)? / (bps * TCP_PAYLOAD))
            });
            Property { name, ratios, least: 0.99, most: 1.01 }
        })
        .collect()
}

/// An arm whose client sends through a token bucket.
fn arm(name: &str, rate: &str, burst: u64, limit: u64) -> String {
    format!(
        "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ path = \"accelerated\" }}, {{ on = \"client\", command = \
         [\"tc\", \"qdisc\", \"add\", \"dev\", \"vf0\", \"root\", \"tbf\", \"rate\", \"{rate}\", \"burst\", \"{burst}\", \"limit\", \
         \"{limit}\"], undo = [\"tc\", \"qdisc\", \"del\", \"dev\", \"vf0\", \"root\"] }}]\n"
    )
}

/// Runs the arms in a lab, and returns the stored run.
fn run(arms: &str, workload: &str) -> Run {
    let text = format!(
        "name = \"precision\"\nquestion = \"Is the measured value the truth?\"\n[lab]\nrules = 0\n[hosts.a]\nlaunch = \"lab\"\n\
         [hosts.b]\nlaunch = \"lab\"\n{arms}{workload}\n[design]\nblocks_min = {BLOCKS}\nblocks_max = {BLOCKS}\n"
    );
    // 6: no verdict, which is not needed here.
    stored_run(&text, &[0, 6])
}

/// A ratio of each valid trial of an arm that has it.
fn ratios(run: &Run, arm: &str, ratio: impl Fn(&Workload, &Trial) -> Option<f64>) -> Vec<f64> {
    let arms = &run.header.plan.arms;
    let workload =
        &arms.iter().find(|of| of.name.as_str() == arm).expect("the plan has the arm").workloads[0];
    let trials = run.trials.iter().filter(|trial| trial.slot.arm.as_str() == arm && trial.is_valid());
    trials.filter_map(|trial| ratio(workload, trial)).collect()
}
