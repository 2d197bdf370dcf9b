//! Instrument test: a queue of known size before a link of known rate adds the expected delay, and a short queue adds little.
use netduel_test_support::{not_compared, skip};
use serde_json::Value;

use crate::support::Bench;

/// Rate of both links.
const RATE_BPS: f64 = 100e6;
/// Queue limits, bytes: 50 ms and 2 ms at that rate.
const DEEP: f64 = 625_000.0;
const SHALLOW: f64 = 25_000.0;

/// The delay of a full queue, nanoseconds.
fn full(limit: f64) -> f64 {
    limit * 8.0 / RATE_BPS * 1e9
}

/// An arm whose client sends through a token bucket with this queue limit.
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

/// The values of an arm of a result document.
fn percentile(arm: &Value, part: &str, percentile: f64) -> f64 {
    let parts = arm["parts"].as_array().unwrap();
    let part =
        parts.iter().find(|one| one["part"] == part).unwrap_or_else(|| panic!("no {part} in {parts:?}"));
    let percentiles = part["latency"]["percentiles"].as_array().unwrap();
    percentiles.iter().find(|one| one["percentile"] == percentile).unwrap()["value_ns"].as_f64().unwrap()
}

/// Increase of the median round trip under load in an arm: the minimum over its trials, because other load of the machine can
/// only increase it.
fn added(document: &Value, arm: usize, percentile: &str) -> f64 {
    let metrics = document["workloads"][0]["metrics"].as_array().unwrap();
    let smallest = |key: &str| {
        let metric = metrics.iter().find(|metric| metric["metric"] == key).unwrap();
        let values = metric["arms"][arm]["values"].as_array().unwrap();
        values.iter().map(|value| value["value"].as_f64().unwrap()).reduce(f64::min).unwrap()
    };
    smallest(&format!("latency-loaded-{percentile}")) - smallest("latency-idle-p50")
}

/// Tolerance: the deep queue's median is more than half of what a full queue adds (the sawtooth of cubic), and its 99th percentile is at most
/// 15 % less than that, because senders that fill it until it drops leave it full now and then. A connect and a request in band wait in the
/// same queue, so they have a lower bound, too. How much longer a delay is depends on what else the machine does: upper bounds are compared
/// as far as it lets them show. The bench `precision` measures both delays on a quiet machine.
#[test]
fn queue_of_known_size_adds_the_expected_delay() {
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
    let deep = &arms[1];

    let (p50, p99) = (added(&document, 1, "p50"), added(&document, 1, "p99"));
    assert!(p50 > 0.5 * full(DEEP), "p50 {p50} ns of {} ns", full(DEEP));
    assert!(p99 > 0.85 * full(DEEP), "p99 {p99} ns of {} ns", full(DEEP));
    // New connections wait in the same queue: a handshake has one packet in it, as a probe has.
    let [connect, in_band, probe] = ["connect", "in-band", "loaded"].map(|part| percentile(deep, part, 50.0));
    let waits = format!("connect {connect} ns, in band {in_band} ns, probe {probe} ns");
    assert!(connect > 0.25 * full(DEEP) && in_band > 0.25 * full(DEEP), "{waits}");
    let shallow = added(&document, 0, "p50");
    for (holds, relation) in [
        (p50 < 1.5 * full(DEEP), format!("p50 {p50} ns of {} ns", full(DEEP))),
        (shallow < 0.5 * p50, format!("p50 {shallow} ns of the shallow queue, {p50} ns of the deep one")),
        (connect > 0.5 * probe && connect < 1.5 * probe && in_band > 0.5 * probe, waits),
    ] {
        if !holds {
            not_compared(relation);
        }
    }
    bench.assert_nothing_left();
}
