//! Datagrams over the lab's paths: exact counts with every segmentation, packets on the interface, and loss by location.
use netduel_model::trial::{Trial, TrialEnd};
use netduel_store::Store;
use netduel_test_support::not_compared;
use serde_json::Value;

use crate::support::{Bench, short_plan};

/// Arms over one path: an offload, a direction and a family for each.
fn arms(sets: &[(&str, &str, &str)]) -> String {
    let arm = |(name, set, treatments): &(&str, &str, &str)| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n\
             treatments = [{{ path = \"accelerated\" }}{treatments}]\nset = {{ {set} }}\n"
        )
    };
    sets.iter().map(arm).collect()
}

/// Every direction of every trial of an arm.
fn ways(document: &Value, arm: &str) -> Vec<Value> {
    let arms = document["workloads"][0]["arms"].as_array().unwrap();
    let of = arms.iter().find(|of| of["arm"] == arm).unwrap();
    let ways = of["datagrams"].as_array().unwrap().clone();
    assert!(!ways.is_empty(), "{arm}");
    ways
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Sent equals received plus lost, and the lost ones by location add up.
fn assert_exact(way: &Value) {
    let lost = &way["lost"];
    assert_eq!(number(&way["sent"]), number(&way["received"]) + number(&lost["total"]), "{way}");
    let parts = ["at_receiver_socket", "at_interface", "elsewhere"].map(|part| number(&lost[part]));
    assert_eq!(parts.iter().sum::<u64>(), number(&lost["total"]), "{way}");
    assert!(number(&way["sent"]) > 0, "{way}");
}

const SMALL: &str = r#"
[[workloads]]
name = "small"
type = "udp-stream"
duration = "300 ms"
warmup = "100 ms"
cooldown = "0 ms"
size = "64 B"
flows = 3
"#;

#[test]
fn every_offload_has_exact_counts_and_packets_per_datagram() {
    let bench = Bench::new();
    let cut =
        ", { offload = \"tx-udp-segmentation\", interface = \"vf0\", value = \"off\", on = \"client\" }";
    let arms = arms(&[
        ("apart", "offload = \"none\"", ""),
        ("cut", "offload = \"gso\"", cut),
        ("whole", "offload = \"gso\", family = \"ipv6\"", ""),
        ("merged", "offload = \"gso-gro\", direction = \"both\"", ""),
        ("down", "offload = \"none\", direction = \"down\"", ""),
    ]);
    let plan = bench.plan(&short_plan(&arms, SMALL, "blocks_min = 2\nblocks_max = 2"));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let document = run.json();
    for (arm, directions, whole) in
        [("apart", 1, false), ("cut", 1, false), ("whole", 1, true), ("merged", 2, true), ("down", 1, false)]
    {
        let ways = ways(&document, arm);
        assert_eq!(ways.len(), 2 * directions, "{arm}");
        let down = ways.iter().filter(|way| way["direction"] == "down").count();
        assert_eq!(down, if arm == "down" { 2 } else { 2 * directions - 2 }, "{arm}");
        for way in &ways {
            assert_exact(way);
            let ratio = way["datagrams_per_packet"].as_f64().unwrap();
            assert!(if whole { ratio > 30.0 } else { (0.9..1.1).contains(&ratio) }, "{arm}: {way}");
            assert_eq!(way["packets_received"]["interface"], "vf0");
            assert_eq!(way["flows"].as_array().unwrap().len(), 3);
        }
        let warned = document["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning["kind"] == "datagrams-not-packets" && warning["arm"] == arm);
        assert_eq!(warned, whole, "{arm}: {}", document["warnings"]);
    }
    for format in ["text", "md", "html"] {
        let text = bench.run(["report", "last", "--format", format]).expect_code(0).stdout;
        assert!(
            text.contains("datagrams per packet") && text.contains("datagrams are not packets"),
            "{format}"
        );
    }
    let csv = bench.run(["report", "last", "--format", "csv"]).expect_code(0).stdout;
    for row in ["datagrams-sent", "packets-received", "packet-rate", "bytes-per-packet"] {
        assert_eq!(csv.matches(row).count(), 10, "{row}");
    }
    bench.assert_nothing_left();
}

/// The volume is due within 400 ms; a late sender sends all of it before the duration is over.
const PACED: &str = r#"
[[workloads]]
name = "paced"
type = "udp-stream"
duration = "3 s"
volume = "4 MB"
warmup = "100 ms"
cooldown = "0 ms"
size = "1000 B"
rate = "80 Mbit/s"
metrics = ["loss", "packet-rate"]
"#;

/// The trials of an arm in the last run, in the order of their blocks.
fn trials_of(bench: &Bench, arm: &str) -> Vec<Trial> {
    let mut trials = Store::open(bench.store()).unwrap().read("last").unwrap().trials;
    trials.retain(|trial| trial.slot.arm.as_str() == arm);
    trials.sort_by_key(|trial| trial.slot.block);
    trials
}

/// What the kernel dropped at the hosts of a trial: buffers at the receiver's socket, and packets at `vf0` of both.
fn dropped_at_hosts(trial: &Trial) -> (u64, u64) {
    let ends: [&TrialEnd; 2] = [trial.client.as_ref().unwrap(), trial.server.as_ref().unwrap()];
    let at_socket = ends[1].report.datagrams.as_ref().unwrap().socket_drops.unwrap();
    let interfaces = ends.iter().flat_map(|end| &end.observation.interfaces);
    let dropped = interfaces.filter(|one| one.name == "vf0").map(|one| {
        let queued = one.qdisc_dropped.unwrap_or(0) + one.ingress_dropped.unwrap_or(0);
        queued + one.rx_dropped + one.tx_dropped + one.rx_errors + one.tx_errors
    });
    (at_socket, dropped.sum())
}

#[test]
fn drops_on_the_wire_are_assigned_to_the_path() {
    let bench = Bench::new();
    let arms = arms(&[
        ("apart", "offload = \"none\"", ""),
        ("together", "offload = \"gso\"", ""),
        ("merged", "offload = \"gso-gro\"", ""),
    ]);
    let capped = short_plan(&arms, PACED, "blocks_min = 2\nblocks_max = 2")
        .replace("rules = 600", "rules = 0\ncap = \"20 Mbit/s\"");
    let plan = bench.plan(&capped);
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let document = run.json();
    for arm in ["apart", "together", "merged"] {
        let trials = trials_of(&bench, arm);
        let ways = ways(&document, arm);
        assert_eq!(ways.len(), trials.len());
        for (way, trial) in ways.into_iter().zip(&trials) {
            assert_exact(&way);
            // 4000 datagrams are the volume, and the wire passes a quarter of them.
            assert_eq!(number(&way["sent"]), 4000);
            let lost = &way["lost"];
            assert!(number(&lost["total"]) > 1000, "{way}");
            // All of them are of the path, unless a host that waited for a core dropped some and counted them.
            let (at_socket, at_interface) = dropped_at_hosts(trial);
            assert!(at_socket > 0 || number(&lost["at_receiver_socket"]) == 0, "{way}");
            assert!(at_interface > 0 || number(&lost["at_interface"]) == 0, "{way}");
            if at_socket + at_interface > 0 {
                not_compared(format!("dropped by hosts: {at_socket} at a socket, {at_interface} at vf0"));
            }
            assert_eq!(way["pacing"]["requested_bps"], 80e6);
            assert!(number(&way["pacing"]["late_ns"]["count"]) > 0, "{way}");
        }
    }
    bench.assert_nothing_left();
}
