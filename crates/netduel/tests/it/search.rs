//! Rate searches over the lab and against a standing server.
use rustix::process::Signal;
use serde_json::Value;

use crate::quick::{Served, metric};
use crate::support::{Bench, TWO_PATHS, UnderWay, short_plan, signal};

/// The wire of the lab passes 300 kB/s, and its bucket and queue hold less than 200 kB (150 kB were observed).
const CAP: &str = "cap = \"2400 kbit/s\"";
/// So a 300 ms trial without loss sends at most this many frames of 1514 bytes per second. The slowest observed sender, on two
/// cores with a load of 11, sends 11000.
const TAKEN: f64 = (300_000.0 + 200_000.0 / 0.3) / 1514.0;

const SEARCH: &str = r#"
[[workloads]]
name = "rate"
type = "pps"
flows = 2
frame = 1518
duration = "30 s"
search = [
  { final_trial = "300 ms", duration_sum = "300 ms", initial_trial = "100 ms", exceed_ratio = "0 %", settle = "0 s" },
  { final_trial = "300 ms", duration_sum = "300 ms", initial_trial = "100 ms", exceed_ratio = "0 %", settle = "0 s", loss_ratio = "2 %" },
]
"#;

fn plan_of(design: &str) -> String {
    short_plan(TWO_PATHS, SEARCH, design).replace("rules = 600", CAP)
}

fn searches(document: &Value) -> Vec<Value> {
    let arms = document["workloads"][0]["arms"].as_array().unwrap();
    arms.iter().flat_map(|arm| arm["search"]["trials"].as_array().unwrap().clone()).collect()
}

/// The counts of a step add up exactly.
fn assert_sound(step: &Value) {
    let count = |key: &str| step[key].as_u64().unwrap();
    let (sent, received) = (count("sent"), count("received"));
    assert!(sent > 0 && received <= sent, "{step}");
    let loss = step["loss_ratio"].as_f64().unwrap();
    let lost = (sent - received) as f64 / sent as f64;
    if step["generator_limited"] == true {
        assert!(loss >= lost, "{step}");
    } else {
        assert!((loss - lost).abs() < 1e-9, "{step}");
    }
    assert!(count("effective_duration_ns") >= count("elapsed_ns"), "{step}");
}

/// Duration of the final trials of [`SEARCH`], nanoseconds. One of them decides a load.
const FINAL_NS: u64 = 300_000_000;

/// The bounds by RFC 9971 for goals that allow no trial to exceed their loss ratio: a load fails with its first lossy trial, and meets
/// the goal with a final trial and no lossy one.
fn bounds_of(steps: &[Value], allowed: f64) -> (Option<u64>, Option<u64>) {
    let loss = |step: &Value| step["loss_ratio"].as_f64().unwrap();
    // The highest rate of the generator is no load that a search could find.
    let evidence: Vec<(u64, bool, bool)> = steps
        .iter()
        .filter(|step| !step["input_pps"].is_null() || loss(step) > 0.0)
        .map(|step| {
            let is_final = step["duration_ns"].as_u64().unwrap() >= FINAL_NS;
            (step["load_pps"].as_u64().unwrap(), loss(step) > allowed, is_final)
        })
        .collect();
    let fails = |load: u64| evidence.iter().any(|(at, is_lossy, _)| *at == load && *is_lossy);
    let upper = evidence.iter().filter(|step| step.1).map(|step| step.0).min();
    let is_below = |load: u64| upper.is_none_or(|upper| load < upper);
    let meets = evidence.iter().filter(|step| step.2 && !fails(step.0) && is_below(step.0));
    (meets.map(|step| step.0).max(), upper)
}

#[test]
fn search_bounds_match_a_known_limit_and_reports_have_the_steps() {
    let bench = Bench::new();
    let plan = bench.plan(&plan_of("blocks_min = 2\nblocks_max = 2"));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    assert!(run.stderr.contains("trying the maximum for 100 ms: "), "{}", run.stderr);
    let document = run.json();
    let searches = searches(&document);
    assert_eq!(searches.len(), 4, "{document}");
    for search in &searches {
        let steps = search["steps"].as_array().unwrap();
        steps.iter().for_each(assert_sound);
        assert!(steps.iter().any(|step| step["high_loss"] == true), "the limit was met: {search}");
        let goals = [(0.0, 0.01), (0.02, 0.02)];
        for (result, (allowed, width)) in search["results"].as_array().unwrap().iter().zip(goals) {
            let found = (result["lower_pps"].as_u64(), result["upper_pps"].as_u64());
            assert_eq!(found, bounds_of(steps, allowed), "{result} of {search}");
            let arrives = result["conditional_throughput_pps"].as_f64();
            assert_eq!(arrives.is_some(), found.0.is_some(), "{result}");
            if let (Some(lower), Some(arrives)) = (found.0, arrives) {
                let lower = lower as f64;
                assert!(lower <= TAKEN / 0.98, "more than the wire can take: {result}");
                assert!(arrives <= lower && arrives >= 0.98 * lower, "{result}");
            }
            let is_narrow = |(lower, upper): (u64, u64)| {
                lower < upper && (upper - lower) as f64 <= (width * upper as f64).max(1.0)
            };
            assert_eq!(result["state"] == "regular", found.0.zip(found.1).is_some_and(is_narrow), "{result}");
        }
    }
    let metrics = document["workloads"][0]["metrics"].as_array().unwrap();
    let keys: Vec<&str> = metrics.iter().filter_map(|metric| metric["metric"].as_str()).collect();
    assert_eq!(keys, ["no-drop-rate", "partial-drop-rate"]);
    for format in ["text", "md", "html"] {
        let text = bench.run(["report", "last", "--format", format]).expect_code(0).stdout;
        assert!(text.contains("Rate search") && text.contains("goal-1"), "{format}");
        assert!(text.contains("loss above goal"), "{format}");
    }
    bench.assert_nothing_left();
}

#[test]
fn interrupted_search_stops_between_steps_and_its_block_is_repeated() {
    let bench = Bench::new();
    let plan = bench.plan(&plan_of("blocks_min = 2\nblocks_max = 2"));
    let mut under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    under_way.wait_for("trying the maximum");
    signal(under_way.pid(), Signal::INT);
    let stopped = under_way.finish().expect_code(130);
    assert!(stopped.stderr.contains("--resume"), "{}", stopped.stderr);
    bench.assert_nothing_left();
    let resumed = bench.run(["run", "--resume", "last", "--json"]);
    assert!(matches!(resumed.code, Some(0 | 6)), "{}", resumed.stderr);
    assert_eq!(searches(&resumed.json()).len(), 4);
    bench.assert_nothing_left();
}

#[test]
fn quick_test_searches_and_prints_the_result() {
    let served = Served::start("ppssearch", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let found = served
        .client(&["pps", &string, "--search", "no-drop", "--search-time", "10", "-P", "2", "-J"])
        .expect_code(0)
        .quick_test();
    let search = &found["search"];
    search["steps"].as_array().unwrap().iter().for_each(assert_sound);
    let result = &search["results"][0];
    let arrives = result["conditional_throughput_pps"].as_f64();
    assert_eq!(arrives.is_some(), result["lower_pps"].is_u64(), "{result}");
    if let Some(arrives) = arrives {
        assert!((metric(&found, "no-drop-rate") - arrives).abs() < 1e-9, "{result}");
    }
    let words = ["pps", &string, "--search", "partial-drop", "--search-time", "10", "-P", "2"];
    let text = served.client(&words).expect_code(0).stdout;
    assert!(
        text.contains("\ntrying the maximum for 500 ms: ") && text.contains("\n  partial-drop "),
        "{text}"
    );
    for (options, words) in [
        (&["--search", "most"][..], "one of `no-drop`"),
        (&["--search", "no-drop,no-drop"], "--search: is listed twice"),
        (
            &["--search", "no-drop", "--generator", "kernel"],
            "--search: needs a generator that keeps a rate; `kernel` does not",
        ),
        (&["--search", "no-drop", "--rate", "1k"], "cannot be used with"),
        (&["--search", "no-drop", "-t", "5"], "--search-time limits the time of a search"),
        (&["--search-time", "5"], "--search <GOAL>"),
    ] {
        let refused = served.client(&[&["pps", &string], options].concat()).expect_code(2);
        assert!(refused.stderr.contains(words), "{options:?}: {}", refused.stderr);
    }
    served.end();
}
