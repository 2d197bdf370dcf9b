//! `netduel inspect`: this host, hosts of a lab, hosts that cannot be inspected, exit codes, and the problems printed before a run.
use std::process::Command;

use netduel_test_support::skip;

use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, short_plan};

/// An agent of another machine: a script with fixed responses.
const SCRIPTED: &str = r#"while read -r line; do
    case "$line" in
        *'"type":"hello"'*) echo '{"type":"hello","protocol":PROTOCOL,"program":"scripted"}' ;;
        *'"type":"describe"'*) echo '{"type":"described","snapshot":SNAPSHOT}' ;;
        *'"type":"bye"'*) echo '{"type":"bye","problems":[]}'; exit 0 ;;
        *) echo '{"type":"failed","kind":"environment","message":"scripted end"}' ;;
    esac
done
"#;

/// A guest on Azure whose virtual function has no driver, or one whose accelerated path works.
fn azure(boot: &str, works: bool) -> serde_json::Value {
    let driver = if works { serde_json::json!("mana") } else { serde_json::Value::Null };
    let names: &[&str] = if works { &["enP1"] } else { &[] };
    let interface = |name: &str, driver: &str, master: Option<&str>| {
        serde_json::json!({
            "name": name, "index": 2, "kind": null, "driver": driver, "mac": "00:0d:3a:00:00:01", "mtu": 1500, "up": true,
            "carrier": true, "speed_mbps": null, "master": master, "addresses": [], "tx_queues": null, "rx_queues": null,
            "qdisc": "noqueue", "features_on": [], "device": { "counters": { "vf_rx_packets": 10, "vf_tx_packets": 10 } },
        })
    };
    let mut interfaces = vec![interface("eth0", "hv_netvsc", None)];
    if works {
        interfaces.push(interface("enP1", "mana", Some("eth0")));
    }
    serde_json::json!({
        "hostname": "vm", "kernel": "6.8", "machine": "x86_64", "os": null, "platform": null, "boot_id": boot, "netns": 1,
        "cpu_model": null, "cores": 4, "memory_bytes": null, "sysctls": {}, "interfaces": interfaces,
        "cloud": { "provider": "azure", "evidence": "chassis asset tag" }, "default_routes": ["eth0"],
        "pci_functions": [{ "slot": "7870:00:00.0", "vendor": 0x1414, "device": 0x00ba, "driver": driver,
            "virtual_function": true, "interfaces": names }],
    })
}

/// The protocol version of this program, from its own agent.
fn protocol(bench: &Bench) -> String {
    let mut agent = bench.netduel(["agent"]);
    let hello = "{\"type\":\"hello\",\"protocol\":0,\"program\":\"x\",\"limits\":{\"total\":\"1 s\",\"idle\":\"1 s\"}}\n";
    std::fs::write(bench.path().join("hello"), hello).unwrap();
    agent.stdin(std::fs::File::open(bench.path().join("hello")).unwrap());
    let output = agent.output().unwrap();
    let answer: serde_json::Value =
        serde_json::from_str(String::from_utf8(output.stdout).unwrap().lines().next().unwrap()).unwrap();
    answer["protocol"].to_string()
}

/// A plan between two scripted hosts.
fn scripted_plan(bench: &Bench) -> std::path::PathBuf {
    let protocol = protocol(bench);
    let mut hosts = String::new();
    for (name, works, address) in [("a", true, "192.0.2.1"), ("b", false, "192.0.2.2")] {
        let script =
            SCRIPTED.replace("PROTOCOL", &protocol).replace("SNAPSHOT", &azure(name, works).to_string());
        let path = bench.path().join(format!("{name}.sh"));
        std::fs::write(&path, script).unwrap();
        let command = path.display();
        let table =
            format!("launch = \"command\"\ncommand = [\"sh\", \"{command}\"]\naddresses = [\"{address}\"]");
        hosts = format!("{hosts}[hosts.{name}]\n{table}\n");
    }
    bench.plan(&format!(
        "name = \"scripted\"\nquestion = \"Does it?\"\n{hosts}\n[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
         [[arms]]\nname = \"two\"\nclient = \"a\"\nserver = \"b\"\n{LATENCY}\n[design]\nblocks_min = 2\nblocks_max = 2\n"
    ))
}

#[test]
fn inspecting_this_host_changes_nothing() {
    let bench = Bench::new();
    let text = bench.run(["inspect", "--fail-on", "never"]).expect_code(0).stdout;
    assert!(text.contains("  system     ") && text.contains("kernel "), "{text}");
    let document =
        bench.run(["inspect", "--json", "--no-metadata", "--fail-on", "never"]).expect_code(0).json();
    assert_eq!(document["document"], "netduel.inspect");
    assert!(document["hosts"][0]["facts"]["cores"].as_u64().unwrap() > 0);
    assert!(document["hosts"][0]["findings"].is_array());
    // It stores nothing and needs no store.
    assert!(!bench.store().exists());
    bench.assert_nothing_left();
}

#[test]
fn inspection_is_written_as_a_page() {
    let bench = Bench::new();
    let inspect = |out: &str, words: &[&str]| {
        bench.run([&["inspect", "--no-metadata", "--fail-on", "never", "--out", out][..], words].concat())
    };
    for (out, path, beginning) in [
        ("hosts.html", "hosts.html", "<!DOCTYPE html>"),
        ("pages", "pages/report.html", "<!DOCTYPE html>"),
        ("made/hosts.md", "made/hosts.md", "# Inspection of "),
        ("hosts.json", "hosts.json", "{"),
        ("hosts.txt", "hosts.txt", ""),
    ] {
        assert_eq!(inspect(out, &[]).expect_code(0).stdout.trim(), path);
        let text = std::fs::read_to_string(bench.path().join(path)).unwrap();
        assert!(text.starts_with(beginning), "{path}: {}", text.lines().next().unwrap_or_default());
        assert!(text.contains("kernel") && !text.contains('\u{1b}'), "{path} has no facts");
    }
    for (out, words, reason) in [
        ("hosts.csv", &[][..], "use .txt, .html, .pdf, .md or .json"),
        ("hosts.docx", &[], "write .txt, .html, .pdf, .md or .json"),
        ("hosts.html", &["--paper", "a4"], "--paper"),
    ] {
        let refused = inspect(out, words).expect_code(2);
        assert!(refused.stderr.contains(reason), "{out}: {}", refused.stderr);
    }
    assert!(!bench.path().join("hosts.csv").exists());
    bench.assert_nothing_left();
}

#[test]
fn host_whose_facts_cannot_be_read_is_not_called_healthy() {
    let bench = Bench::new();
    // A /proc without files, in a mount namespace that ends with the command.
    let script = "mount -t tmpfs tmpfs /proc || exit 77; exec \"$0\" inspect --no-metadata";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "--user", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_netduel")).current_dir(bench.path());
    bench.mark(&mut command);
    let inspected = Finished::from(command.output().unwrap());
    if inspected.code == Some(77) {
        return skip("a tmpfs cannot be mounted in a user namespace here");
    }
    let inspected = inspected.expect_code(8);
    assert!(inspected.stdout.contains("facts-unread"), "{}", inspected.stdout);
    assert!(!inspected.stdout.contains("None."), "{}", inspected.stdout);
}

#[test]
fn guests_of_a_plans_lab_are_inspected_and_the_lab_is_removed() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    let document = bench.run(["inspect", "--plan", plan.to_str().unwrap(), "--json"]).expect_code(0).json();
    let names: Vec<&str> =
        document["hosts"].as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    let interfaces = document["hosts"][0]["facts"]["interfaces"].as_array().unwrap();
    assert!(interfaces.iter().any(|interface| interface["name"] == "vf0"), "not the guest's interfaces");
    // Sharing a machine is intended in a lab: only a note.
    assert_eq!(document["pairs"][0]["findings"][0]["id"], "same-machine");
    assert_eq!(document["pairs"][0]["findings"][0]["severity"], "note");
    let one = bench.run(["inspect", "--plan", plan.to_str().unwrap(), "b"]).expect_code(0).stdout;
    assert!(one.contains("Findings on b") && !one.contains("Findings on a"), "{one}");
    bench.assert_nothing_left();
}

#[test]
fn problem_is_printed_with_its_command_and_exit_code() {
    let bench = Bench::new();
    let plan = scripted_plan(&bench);
    let plan = plan.to_str().unwrap();
    let found = bench.run(["inspect", "--plan", plan]).expect_code(8);
    for needle in
        ["function-without-driver", "$ modprobe mana", "acceleration-differs", "Findings between a and b"]
    {
        assert!(found.stdout.contains(needle), "no {needle}:\n{}", found.stdout);
    }
    bench.run(["inspect", "--plan", plan, "--fail-on", "never"]).expect_code(0);
    // The other host alone has no problem, and no pair.
    bench.run(["inspect", "--plan", plan, "a"]).expect_code(0);
    bench.assert_nothing_left();
}

#[test]
fn problems_of_hosts_are_printed_before_the_first_trial() {
    let bench = Bench::new();
    let plan = scripted_plan(&bench);
    let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(3);
    let lines: Vec<&str> = run.stderr.lines().collect();
    let at = |needle: &str| {
        lines
            .iter()
            .position(|line| line.contains(needle))
            .unwrap_or_else(|| panic!("no {needle}: {}", run.stderr))
    };
    let problem = at("problem at b: the network function at 7870:00:00.0 has no driver");
    assert!(problem < at("scripted end"));
    assert!(at("netduel inspect") > problem);
}

#[test]
fn unreachable_host_does_not_prevent_inspecting_the_others() {
    let bench = Bench::new();
    let name = format!("nd-none-{}", std::process::id());
    let namespace = format!("netns:{name}");
    let words = ["inspect", "local", &namespace, "--fail-on", "never"];
    let inspected = bench.run(words).expect_code(3);
    assert!(inspected.stdout.contains("Findings on local"), "{}", inspected.stdout);
    assert!(
        inspected.stdout.contains("Inspection failed: ")
            && inspected.stderr.contains(&format!("there is no network namespace {name}; make it with")),
        "{}",
        inspected.stderr
    );
    assert!(!inspected.stderr.contains("02-netns"), "an internal name: {}", inspected.stderr);
    // The word for this host is no name.
    let redacted = bench.run([&words[..], &["--redact"]].concat()).expect_code(3);
    assert!(redacted.stdout.contains("Findings on local"), "{}", redacted.stdout);
    bench.assert_nothing_left();
}

#[test]
fn invalid_host_argument_and_missing_pairing_have_different_codes() {
    let bench = Bench::new();
    for word in ["ssh:-oProxyCommand=x", "netns:../x", ""] {
        bench.run(["inspect", word]).expect_code(2);
    }
    bench.run(["inspect", "unpaired-host:1"]).expect_code(10);
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    let unknown = bench.run(["inspect", "--plan", plan.to_str().unwrap(), "c"]).expect_code(2);
    assert!(unknown.stderr.contains("it has a, b"), "{}", unknown.stderr);
}
