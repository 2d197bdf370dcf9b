//! Measured values against known truths on a quiet machine: the delay of queues of known size, and the rate of token buckets. The
//! tests of the same properties allow what a busy machine adds; the limits here do not.
//!
//! One run per property; its arms are interleaved in blocks. Each value is divided by the truth. The median over the blocks must be
//! within the limits; the range is printed beside it.
mod support;

use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::{HistogramRecord, UnderLoad};
use netduel_model::trial::Trial;
use netduel_report::analysis::value_of;
use netduel_stats::histogram::Histogram;
use netduel_stats::summary::quantile;
use support::stored_run;

/// Blocks of a run: the number of values of each arm.
const BLOCKS: usize = 7;
/// Rate of the links with a queue, bit/s.
const QUEUE_RATE_BPS: f64 = 100e6;
/// Queue limits, bytes: 2 ms and 50 ms at that rate.
const SHALLOW: u64 = 25_000;
const DEEP: u64 = 625_000;
/// Wake-ups of the two ends of a round trip, nanoseconds: the shallow queue may add so much more.
const WAKE_UPS_NS: f64 = 1e6;
/// Share of payload in a packet of a TCP stream with time stamps on Ethernet, as a token bucket charges it.
const TCP_PAYLOAD: f64 = 1448.0 / 1514.0;

/// A property: the value of each block divided by the truth.
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
        assert_eq!(ratios.len(), BLOCKS, "{name}: values are missing");
        let [low, middle, high] =
            [0.0, 0.5, 1.0].map(|share| quantile(ratios, share).expect("there are values"));
        println!(
            "precision: {name}: {middle:.3} [{low:.3}, {high:.3}], n = {BLOCKS}; limits {least} to {most}"
        );
        println!("figure {name} {middle:.4} ratio");
        if !(*least..=*most).contains(&middle) {
            outside.push(*name);
        }
    }
    assert!(outside.is_empty(), "outside of the limits: {}", outside.join(", "));
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
        let idle = values(&run, arm, Metric::LatencyIdleP50);
        let loaded = values(&run, arm, metric);
        loaded.iter().zip(idle).map(|(loaded, idle)| (loaded - idle) / truth).collect()
    };
    // A connection has one packet in the queue during its handshake, as a probe has.
    let beside = |arm: &'static str, of: fn(&UnderLoad) -> &HistogramRecord| -> Vec<f64> {
        let probes = values(&run, arm, Metric::LatencyLoadedP50);
        let medians = trials(&run, arm).filter_map(|trial| {
            let load = trial.client.as_ref()?.report.under_load.as_ref()?;
            Histogram::from_record(of(load)).ok()?.percentile(50.0)
        });
        medians.zip(probes).map(|(median, probe)| median as f64 / probe).collect()
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
            let rates = values(&run, name, Metric::Throughput);
            let ratios = rates.iter().map(|value| value / (bps * TCP_PAYLOAD)).collect();
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

/// The valid trials of an arm, in the order of the blocks.
fn trials<'a>(run: &'a Run, arm: &'a str) -> impl Iterator<Item = &'a Trial> {
    run.trials.iter().filter(move |trial| trial.slot.arm.as_str() == arm && trial.is_valid())
}

/// The values of an arm.
fn values(run: &Run, arm: &str, metric: Metric) -> Vec<f64> {
    let arms = &run.header.plan.arms;
    let workload =
        &arms.iter().find(|of| of.name.as_str() == arm).expect("the plan has the arm").workloads[0];
    trials(run, arm).filter_map(|trial| value_of(metric, workload, trial, true)).collect()
}
