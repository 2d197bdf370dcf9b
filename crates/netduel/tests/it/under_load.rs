//! Instrument test: a queue of known size before a link of known rate adds the delay that it must, and no queue adds none.
use serde_json::Value;

use crate::support::{Bench, skip};

/// Of both links.
const RATE_BPS: f64 = 100e6;
/// Bytes that may wait: 50 ms and 2 ms at that rate.
const DEEP: f64 = 625_000.0;
const SHALLOW: f64 = 25_000.0;

/// The delay of a full queue, nanoseconds.
fn full(limit: f64) -> f64 {
    limit * 8.0 / RATE_BPS * 1e9
}

/// An arm whose client sends through a token bucket before which so much may wait.
fn arm(name: &str, limit: f64) -> String {
    let words = format!(
        r#""tc", "qdisc", "add", "dev", "vf0", "root", "tbf", "rate", "{RATE_BPS:.0}bit", "burst", "16kb", "limit", "{limit:.0}""#
    );
    format!(
        r#"
[[arms]]
name = "{name}"
client = "a"
server = "b"
treatments = [
    {{ path = "accelerated" }},
    {{ on = "client", command = [{words}], undo = ["tc", "qdisc", "del", "dev", "vf0", "root"] }},
]
"#
    )
}

/// What was measured on an arm of a result document.
fn percentile(arm: &Value, part: &str, percentile: f64) -> f64 {
    let parts = arm["parts"].as_array().unwrap();
    let part =
        parts.iter().find(|one| one["part"] == part).unwrap_or_else(|| panic!("no {part} in {parts:?}"));
    let percentiles = part["latency"]["percentiles"].as_array().unwrap();
    percentiles.iter().find(|one| one["percentile"] == percentile).unwrap()["value_ns"].as_f64().unwrap()
}

/// What load added to the median idle round trip of an arm: the smallest of its trials, for whatever else the machine does can
/// only add to it.
fn added(document: &Value, arm: usize, percentile: &str) -> f64 {
    let metrics = document["workloads"][0]["metrics"].as_array().unwrap();
    let smallest = |key: &str| {
        let metric = metrics.iter().find(|metric| metric["metric"] == key).unwrap();
        let values = metric["arms"][arm]["values"].as_array().unwrap();
        values.iter().map(|value| value["value"].as_f64().unwrap()).reduce(f64::min).unwrap()
    };
    smallest(&format!("latency-loaded-{percentile}")) - smallest("latency-idle-p50")
}

/// Tolerance: the deep queue's median lies between half and all of what a full queue adds, with 5 % (the sawtooth of cubic), and its
/// 99th percentile is at most 15 % less than that, for senders that fill it until it drops leave it full now and then. How
/// much more it is depends on what else the machine does, so only the median has an upper bound. The shallow queue adds
/// no more than it can hold, with 15 % and a millisecond for wake-ups.
#[test]
fn a_queue_of_known_size_adds_the_delay_that_it_must() {
    if std::process::Command::new("tc").arg("-V").output().is_err() {
        return skip("tc (iproute2) is not installed");
    }
    let bench = Bench::new();
    let plan = format!(
        r#"
name = "queues"
question = "Does a deep queue delay?"
[lab]
rules = 0
[hosts.a]
launch = "lab"
[hosts.b]
launch = "lab"
{}{}
[[workloads]]
name = "upload"
type = "loaded-latency"
direction = "up"
duration = "3 s"
warmup = "300 ms"
cooldown = "100 ms"
congestion = "cubic"
metrics = ["latency-loaded-p50", "latency-loaded-p99", "latency-idle-p50"]
[design]
blocks_min = 3
blocks_max = 3
"#,
        arm("shallow", SHALLOW),
        arm("deep", DEEP)
    );
    let plan = bench.plan(&plan);
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let document = run.json();
    let arms = document["workloads"][0]["arms"].as_array().unwrap();
    let (shallow, deep) = (&arms[0], &arms[1]);

    let (p50, p99) = (added(&document, 1, "p50"), added(&document, 1, "p99"));
    assert!(p50 > 0.5 * full(DEEP) && p50 < 1.05 * full(DEEP), "p50 {p50} ns of {} ns", full(DEEP));
    assert!(p99 > 0.85 * full(DEEP), "p99 {p99} ns of {} ns", full(DEEP));
    let p50 = added(&document, 0, "p50");
    assert!(p50 < 1.15 * full(SHALLOW) + 1e6, "p50 {p50} ns of {} ns", full(SHALLOW));
    for arm in [shallow, deep] {
        // New connections wait in the same queue: a handshake has one packet in it, as a probe has.
        let (connect, probe) = (percentile(arm, "connect", 50.0), percentile(arm, "loaded", 50.0));
        assert!(
            connect > 0.5 * probe && connect < 1.5 * probe + 3e6,
            "connect {connect} ns, probe {probe} ns"
        );
        assert!(percentile(arm, "in-band", 50.0) > 0.5 * probe, "in band no faster than beside it");
    }
    bench.assert_nothing_left();
}
