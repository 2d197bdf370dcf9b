//! testpmd as generator and receiver of a plan, in the lab: its counts in the result, its failures in the trials, and clean-up.
use std::path::PathBuf;
use std::process::Command;

use netduel_test_support::skip;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, UnderWay, short_plan, signal, signal_those_left, until, wait_gone};

/// Other traffic between the guests during the trial (neighbour discovery, group membership reports): testpmd counts all packets
/// of its port and cannot separate it (docs/limits.md).
const FOREIGN: u64 = 8;

/// Folder of testpmd's files, so that a test finds leftovers.
fn temporary(bench: &Bench) -> PathBuf {
    let folder = bench.path().join("t");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn netduel(bench: &Bench, words: &[&str]) -> Command {
    let mut command = bench.netduel(words);
    command.env("TMPDIR", temporary(bench));
    command
}

/// Whether testpmd can run here; prints the reason if not.
fn able() -> bool {
    let is_there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("dpdk-testpmd").is_file()));
    let able = is_there && rustix::process::geteuid().is_root();
    if !able {
        skip("dpdk-testpmd and root are needed");
    }
    able
}

fn arm(name: &str, dpdk: &str) -> String {
    format!(
        "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ path = \"accelerated\" }}]\nset = {{ {dpdk} }}\n"
    )
}

fn plan(bench: &Bench, arms: &[(&str, &str)], duration: &str, design: &str) -> String {
    let arms: String = arms.iter().map(|(name, dpdk)| arm(name, dpdk)).collect();
    let workload = format!(
        "[[workloads]]\nname = \"frames\"\ntype = \"pps\"\ngenerator = \"dpdk\"\nreceiver = \"dpdk\"\nduration = \"{duration}\"\n"
    );
    bench.plan(&short_plan(&arms, &workload, design)).to_str().unwrap().to_owned()
}

fn run(bench: &Bench, arms: &[(&str, &str)]) -> (Value, String) {
    let plan = plan(bench, arms, "500 ms", "blocks_min = 2\nblocks_max = 2");
    let run = crate::support::Finished::from(netduel(bench, &["run", &plan, "--json"]).output().unwrap());
    (serde_json::from_str(&run.stdout).unwrap_or_default(), run.stderr)
}

/// The directions of all trials of an arm.
fn ways(document: &Value, name: &str) -> Vec<Value> {
    let arms = document["workloads"][0]["arms"].as_array().unwrap();
    arms.iter().find(|arm| arm["arm"] == name).unwrap()["datagrams"].as_array().cloned().unwrap_or_default()
}

#[test]
fn testpmd_runs_at_both_ends_and_leaves_nothing_behind() {
    if !able() {
        return;
    }
    let bench = Bench::new();
    let (document, log) = run(
        &bench,
        &[
            ("packet-socket", "dpdk = { device = \"net_af_packet\" }"),
            ("memory", "dpdk = { device = \"net_memif\" }"),
        ],
    );
    for (name, carried_by) in [("packet-socket", Some("vf0")), ("memory", None)] {
        let ways = ways(&document, name);
        assert_eq!(ways.len(), 2, "{name}: {log}");
        for way in &ways {
            let (sent, received) = (way["sent"].as_u64().unwrap(), way["received"].as_u64().unwrap());
            assert!(received > 0 && received <= sent + FOREIGN, "{name}: {way}");
            if carried_by.is_some() {
                assert_eq!(way["packets_sent"]["interface"], "vf0", "{way}");
                assert_eq!(way["packets_sent"]["packets"].as_u64(), Some(sent), "{way}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(temporary(&bench)).unwrap().count(), 0, "files of testpmd are left");
    bench.assert_nothing_left();
}

#[test]
fn huge_pages_are_reserved_for_testpmd_and_released() {
    if !able() {
        return;
    }
    let reserved = || std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
    let before = reserved();
    let bench = Bench::new();
    let (document, log) = run(
        &bench,
        &[
            ("small", "dpdk = { device = \"net_null\" }"),
            ("huge", "dpdk = { device = \"net_null\", huge_pages = true }"),
        ],
    );
    for name in ["small", "huge"] {
        let ways = ways(&document, name);
        assert_eq!(ways.len(), 2, "{name}: {log}");
        assert!(ways.iter().all(|way| way["sent"].as_u64() > Some(0)), "{name}: {log}");
    }
    assert_eq!(reserved(), before, "{log}");
    bench.assert_nothing_left();
}

#[test]
fn packets_of_another_engine_are_counted_by_testpmd() {
    if !able() {
        return;
    }
    let bench = Bench::new();
    let (document, log) = run(
        &bench,
        &[
            ("slow", "generator = \"xdp\", packet_rate = \"1 k/s\""),
            ("slower", "generator = \"xdp\", packet_rate = \"500 /s\""),
        ],
    );
    let mut all = 0;
    for name in ["slow", "slower"] {
        for way in ways(&document, name) {
            let (sent, received) = (way["sent"].as_u64().unwrap(), way["received"].as_u64().unwrap());
            // Greetings were sent before testpmd started, and it gets no end markers.
            assert!(received <= sent + FOREIGN, "{name}: {way}\n{log}");
            all += received;
        }
    }
    assert!(all > 0, "{log}");
}

#[test]
fn missing_requirements_of_testpmd_fail_the_trial_with_the_reason() {
    if !able() {
        return;
    }
    let bench = Bench::new();
    let (_, log) = run(
        &bench,
        &[
            ("missing", "dpdk = { program = \"/nonexistent/testpmd\" }"),
            ("mana", "dpdk = { device = \"mana\" }"),
            ("no-bus", "dpdk = { device = \"0000:00:05.0\" }"),
            ("refused", "dpdk = { device = \"net_af_xdp\", args = [\"--no-such-word\"] }"),
        ],
    );
    for expected in [
        "failed to start /nonexistent/testpmd",
        "not loaded",
        "`0000:00:05.0` is not that of",
        "--no-such-word",
    ] {
        assert!(log.contains(expected), "{expected:?} is not in:\n{log}");
    }
    bench.assert_nothing_left();
}

/// Waits until this many testpmd processes run, and returns them.
fn running(bench: &Bench, count: usize) -> Vec<rustix::process::Pid> {
    let mut found = Vec::new();
    let is_running = || {
        found = bench.find(&["dpdk-testpmd"]);
        found.len() >= count
    };
    assert!(until(is_running), "testpmd was not started");
    found
}

#[test]
fn killed_testpmd_fails_its_trial_and_the_run_continues() {
    if !able() {
        return;
    }
    let bench = Bench::new();
    let arms = [("one", "dpdk = { queues = 1 }"), ("two", "dpdk = { queues = 2 }")];
    let plan = plan(&bench, &arms, "4 s", "blocks_min = 2\nblocks_max = 2");
    let mut under_way = UnderWay::start(netduel(&bench, &["run", &plan]));
    let programs = running(&bench, 2);
    signal_those_left(programs.iter().copied(), Signal::KILL);
    assert!(programs.into_iter().all(wait_gone));
    under_way.wait_for("testpmd ended with signal 9");
    under_way.wait_for("trial   2/");
    signal(under_way.pid(), Signal::INT);
    under_way.finish();
    bench.assert_nothing_left();
    assert_eq!(std::fs::read_dir(temporary(&bench)).unwrap().count(), 0, "files of testpmd are left");
}

#[test]
fn killed_agent_ends_its_testpmd() {
    if !able() {
        return;
    }
    let bench = Bench::new();
    let arms = [("one", "dpdk = { queues = 1 }"), ("two", "dpdk = { queues = 2 }")];
    let plan = plan(&bench, &arms, "20 s", "blocks_min = 2\nblocks_max = 2");
    let mut under_way = UnderWay::start(netduel(&bench, &["run", &plan]));
    let programs = running(&bench, 2);
    let wrappers = bench.find(&["lab", "exec"]);
    let agents = bench.find(&["agent"]).into_iter().filter(|pid| !wrappers.contains(pid));
    signal_those_left(agents, Signal::KILL);
    assert!(programs.into_iter().all(wait_gone));
    under_way.wait_for("failed:");
    signal(under_way.pid(), Signal::INT);
    under_way.finish();
    bench.assert_nothing_left();
}
