//! Time stamps and busy-polling from the plan to the report, with agents in namespaces.
use std::process::Command;

use netduel_model::trial::Slot;
use netduel_test_support::{not_compared, skip};
use serde_json::Value;

use crate::support::{Bench, TWO_PATHS, short_plan, valid_trials};

/// Timestamped round trips of both protocols and both families, one of them in an open loop, which is longer than a stall of the machine:
/// a stall delays all requests that are due in it.
const STAMPED: &str = r#"
[[workloads]]
name = "tcp"
type = "tcp-rr"
duration = "500 ms"
warmup = "200 ms"
cooldown = "0 ms"
family = "ipv6"
timestamps = true
[[workloads]]
name = "udp"
type = "udp-rr"
duration = "1 s"
warmup = "200 ms"
cooldown = "0 ms"
request_rate = "1 k/s"
timestamps = true
"#;

const POLLING: &str = r#"
[[workloads]]
name = "polling"
type = "udp-rr"
duration = "300 ms"
warmup = "100 ms"
cooldown = "0 ms"
wait = "busy-poll"
"#;

/// Echo requests of both families, in both loops, beside round trips between programs.
const ECHO: &str = r#"
[[workloads]]
name = "ping"
type = "icmp-rr"
duration = "500 ms"
warmup = "100 ms"
cooldown = "0 ms"
[[workloads]]
name = "ping-ipv6"
type = "icmp-rr"
family = "ipv6"
request_rate = "1 k/s"
duration = "500 ms"
warmup = "100 ms"
cooldown = "0 ms"
[[workloads]]
name = "udp"
type = "udp-rr"
duration = "500 ms"
warmup = "100 ms"
cooldown = "0 ms"
"#;

const TWO_BLOCKS: &str = "blocks_min = 2\nblocks_max = 2";

fn each(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Kinds of the warnings of a result document.
fn warnings(document: &Value) -> Vec<String> {
    each(&document["warnings"])
        .iter()
        .map(|warning| warning["kind"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn timestamped_round_trips_are_split_into_parts() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, STAMPED, TWO_BLOCKS));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let document = run.json();
    for workload in each(&document["workloads"]) {
        let (name, arms) = (&workload["name"], each(&workload["arms"]));
        for arm in &arms {
            let stamps = &arm["stamps"];
            assert!(stamps["complete"].as_u64() > Some(0), "{name}: {stamps}");
            assert_eq!(stamps["inconsistent"], 0, "{name}");
            let half = &stamps["middle_half"];
            let sum: f64 = each(&half["parts"]).iter().filter_map(|part| part["mean_ns"].as_f64()).sum();
            assert!((sum - half["mean_ns"].as_f64().unwrap()).abs() < 1.0, "{name}: {half}");
            // Two guests of one lab share a clock.
            assert_eq!(
                (&stamps["one_way"]["clocks"], &stamps["one_way"]["error_ns"]),
                (&"shared".into(), &0.into())
            );
        }
        // The synthetic path evaluates 600 rules per packet, which is part of the network time: as far as other programs let it show.
        let network = |arm: &Value| {
            let parts = each(&arm["stamps"]["middle_half"]["parts"]);
            parts.iter().find(|part| part["part"] == "network").and_then(|part| part["mean_ns"].as_f64())
        };
        let [synthetic, accelerated] = [&arms[0], &arms[1]].map(|arm| network(arm).unwrap());
        assert!(synthetic > 0.0 && accelerated > 0.0, "{name}: {arms:?}");
        if synthetic <= accelerated {
            not_compared(format!("{name}: network {synthetic} ns, without rules {accelerated} ns"));
        }
    }
    assert!(!warnings(&document).contains(&"timestamps-differ".to_owned()));
    let text = bench.run(["report", "last", "--format", "text"]).expect_code(0).stdout;
    assert!(text.contains("network, both ways") && text.contains("± 0"), "{text}");
    let page = bench.run(["report", "last", "--format", "html"]).expect_code(0).stdout;
    assert!(page.contains("class=\"stack\""), "no picture");
    bench.assert_nothing_left();
}

#[test]
fn echo_round_trips_are_compared_on_proven_paths() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, ECHO, TWO_BLOCKS));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let document = run.json();
    let workloads = each(&document["workloads"]);
    assert_eq!(workloads.len(), 3);
    let text = bench.run(["report", "last", "--format", "text"]).expect_code(0).stdout;
    let valid = valid_trials(&bench);
    assert!(valid.iter().all(|trial| !trial.proofs.is_empty()));
    for workload in &workloads {
        let arms = each(&workload["arms"]);
        assert_eq!(arms.len(), 2, "{workload}");
        let name = workload["name"].as_str().unwrap();
        assert!(text.contains(name), "{name}: {text}");
        for arm in arms {
            // A machine that stalled in both of its trials leaves it without figures.
            let is_of_arm = |slot: &Slot| slot.workload.as_str() == name && slot.arm.as_str() == arm["arm"];
            if !valid.iter().any(|trial| is_of_arm(&trial.slot)) {
                continue;
            }
            let count = arm["latency"]["count"].as_u64();
            assert!(count > Some(0), "{name}: {arm}");
            // Those of the warm-up are sent, too.
            assert!(arm["requests"]["sent"].as_u64() >= count, "{name}: {arm}");
        }
    }
    // A trial is valid only if its interface carried it, and every arm has an expected interface here.
    let count = |key: &str| document[key].as_u64().unwrap();
    let excluded = count("trials_excluded");
    assert_eq!((count("trials_valid"), excluded), (valid.len() as u64, 12 - valid.len() as u64), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A line for each arm, or for each end of an arm where the shares differ.
    let proofs = words.matches(" trials proven)").count();
    assert!((2..=4).contains(&proofs), "{text}");
    assert!(excluded > 0 || words.matches("6 of 6 trials proven)").count() == proofs, "{text}");
    assert!(!text.contains("TCP connect time"), "the connection of the handshake is no part of it: {text}");
    bench.assert_nothing_left();
}

#[test]
fn arms_with_different_time_stamps_cause_a_warning() {
    let bench = Bench::new();
    let arms = TWO_PATHS.replace(
        "treatments = [{ path = \"accelerated\" }]",
        "treatments = [{ path = \"accelerated\" }]\nset = { timestamps = false }",
    );
    let plan = bench.plan(&short_plan(&arms, STAMPED, TWO_BLOCKS));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let doubted = warnings(&run.json()).iter().filter(|kind| *kind == "timestamps-differ").count();
    assert_eq!(doubted, 2, "one for each workload");
}

/// Two namespaces with a veth pair, removed when dropped.
struct Spaces([String; 2]);

impl Spaces {
    /// `has_napi`: each end polls its ring, as a veth does with GRO.
    fn new(has_napi: bool) -> Option<Self> {
        let names = ["a", "b"].map(|side| format!("netduel-it-{}-{side}", std::process::id()));
        let spaces = Self(names);
        let [a, b] = &spaces.0;
        let mut lines = vec![
            format!("ip netns add {a}"),
            format!("ip netns add {b}"),
            format!("ip link add veth0 netns {a} type veth peer name veth0 netns {b}"),
            format!("ip -n {a} address add 10.79.0.1/24 dev veth0"),
            format!("ip -n {b} address add 10.79.0.2/24 dev veth0"),
            format!("ip -n {a} link set veth0 up"),
            format!("ip -n {b} link set veth0 up"),
        ];
        if has_napi {
            for space in [a, b] {
                lines.push(format!("ip netns exec {space} ethtool -K veth0 tso off"));
                lines.push(format!("ip netns exec {space} ethtool -K veth0 gro on"));
            }
        }
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let output = Command::new(words[0]).args(&words[1..]).output();
            if !output.as_ref().is_ok_and(|output| output.status.success()) {
                skip(format!("`{line}`: {output:?}"));
                return None;
            }
        }
        Some(spaces)
    }

    /// A plan with these hosts that compares an arm with itself.
    fn plan(&self, workloads: &str) -> String {
        let [a, b] = &self.0;
        format!(
            "name = \"polling\"\nquestion = \"Is there something to poll?\"\n\
             [hosts.a]\nlaunch = \"netns\"\nnetns = \"{a}\"\n\
             [hosts.b]\nlaunch = \"netns\"\nnetns = \"{b}\"\naddresses = [\"10.79.0.2\"]\n\
             [[arms]]\nname = \"veth\"\nclient = \"a\"\nserver = \"b\"\n{workloads}\n\
             [design]\naa = true\n{TWO_BLOCKS}\n"
        )
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

#[test]
fn busy_polling_without_a_napi_instance_causes_a_warning() {
    for has_napi in [false, true] {
        let Some(spaces) = Spaces::new(has_napi) else { return };
        let bench = Bench::new();
        let plan = bench.plan(&spaces.plan(POLLING));
        let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
        assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
        let doubted = warnings(&run.json()).contains(&"no-napi-instance".to_owned());
        assert_eq!(doubted, !has_napi, "{}", run.stderr);
        bench.assert_nothing_left();
    }
}
