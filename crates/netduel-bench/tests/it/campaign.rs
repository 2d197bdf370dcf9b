//! Campaigns of one pair.
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use netduel_test_support::{not_compared, skip};
use serde_json::Value;

use super::{bench, is_refused};

/// Runs a campaign; returns the JSON file and standard output, or `None` when the machine does not permit it. On a machine whose cores
/// other programs use, a tool may be without a single round trip; then the campaign fails and names it.
fn run(words: &[&str], path: Option<&Path>) -> Option<(Value, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bench(folder.path(), words);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if is_refused(&errors) {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("BUSY MACHINE") && text.contains("NOT MEASURED: pair 1:") {
        not_compared("other programs used the cores for all of a pair");
        return None;
    }
    assert!(output.status.success(), "{errors}\n{text}");
    let json = std::fs::read_to_string(folder.path().join("peers.json")).unwrap();
    Some((serde_json::from_str(&json).unwrap(), text))
}

/// A folder with `ip` only: a machine without the other tools.
fn only_ip(folder: &Path) -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    let with_sbin = std::env::split_paths(&places).chain(["/sbin".into(), "/usr/sbin".into()]);
    let program = with_sbin.map(|place| place.join("ip")).find(|program| program.exists())?;
    symlink(program, folder.join("ip")).unwrap();
    Some(folder.to_owned())
}

#[test]
fn netduel_ends_report_metrics_and_an_injected_stall() {
    let Some((json, text)) = run(&["--only", "open-loop-stall", "--seed", "5", "--seconds", "2"], None)
    else {
        return;
    };
    assert_eq!(json["seed"], 5);
    let open = &json["results"][0]["pairs"][0]["ours"];
    // Two seconds of the schedule. A host that cannot send so many says so, and each request is one or the other.
    let sent = open["reading"]["sent"].as_u64().unwrap();
    let schedule = &open["reading"]["open_loop"];
    let left_unsent = schedule["left_unsent"].as_u64().unwrap();
    assert_eq!(sent + left_unsent, 40_000, "{open}");
    assert!(sent > 0, "{open}");
    // The metric of the schedule has all of them as its denominator.
    assert_eq!(schedule["requests"], sent, "{open}");
    assert!(schedule["scheduled"].as_f64().unwrap() >= 40_000.0, "{open}");
    // Nothing is lost over TCP.
    assert_eq!(open["reading"]["delivered"], sent, "{open}");
    if left_unsent > 0 {
        not_compared(format!("{left_unsent} of 40000 requests were left unsent"));
    }
    // Round trips of half of the stall's requests are longer than half the stall on any machine.
    let stall = &open["reading"]["stall"];
    assert!(stall["slow"].as_f64().unwrap() >= 0.95 * stall["slow_due"].as_f64().unwrap(), "{stall}");
    assert!(stall["longest_ns"].as_f64().unwrap() >= 0.99 * stall["length_ns"].as_f64().unwrap(), "{stall}");
    for end in ["client_s", "server_s"] {
        assert!(open["cost"][end].as_f64().unwrap() > 0.0, "{open}");
    }
    // While the server is stopped TCP puts several requests into one packet, so packets are not checked; their payload is at
    // least that of all requests.
    let (packets, bytes) =
        (open["interface"]["packets_in"].as_u64().unwrap(), open["interface"]["bytes_in"].as_u64().unwrap());
    // Ethernet, IPv4 and TCP with time stamps: 66 bytes of headers.
    assert!(bytes - packets * 66 >= sent * 14, "{open}");
    assert!(text.contains("open-loop-stall: closed loop"), "{text}");
}

#[test]
fn missing_tool_is_reported_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = only_ip(folder.path()) else {
        return skip("ip (iproute2) is not installed");
    };
    let Some((json, text)) = run(&["--only", "rr-spin,open-loop"], Some(&path)) else { return };
    assert!(text.contains("peer sockperf: NOT INSTALLED"), "{text}");
    assert!(text.contains("NOT MEASURED: sockperf is not installed"), "{text}");
    assert_eq!(json["results"][0]["missing"], "sockperf is not installed");
    assert_eq!(json["results"][0]["pairs"].as_array().unwrap().len(), 0);
    assert_eq!(json["results"][1]["pairs"].as_array().unwrap().len(), 1);
}

/// Every installed tool reports values that agree with the interface counters.
#[test]
fn tool_reports_agree_with_interface_counters() {
    let Some((json, _)) = run(&["--only", "udp-64,rr-block"], None) else { return };
    for result in json["results"].as_array().unwrap() {
        let Some(pair) = result["pairs"].get(0) else {
            skip(result["missing"].as_str().unwrap_or_else(|| panic!("no pair was run: {result}")));
            continue;
        };
        for side in ["ours", "theirs"] {
            let (reading, interface) = (&pair[side]["reading"], &pair[side]["interface"]);
            let packets = interface["packets_in"].as_f64().unwrap();
            let delivered = reading["delivered"].as_f64().unwrap();
            if result["kind"] == "datagrams" {
                // With segmentation off a datagram is a packet; set-up and control add a few packets.
                let sent = reading["sent"].as_f64().unwrap();
                // A busy core leaves its backlog full, and the packets that find no room in it are dropped.
                let packets = packets + interface["dropped_out"].as_f64().unwrap();
                assert!(sent <= packets, "{side}: {reading} {interface}");
                // Another tool that waits for a core goes on sending after the time that it counts, for as long as it has to wait.
                assert!(side == "theirs" || packets < sent + 500.0, "{side}: {reading} {interface}");
                assert!(delivered <= sent, "{side}: {reading}");
                // Another tool may state a rounded rate, from which the bytes are derived.
                let bytes = reading["bytes"].as_f64().unwrap() / (delivered * 64.0);
                assert!((bytes - 1.0).abs() < 0.001, "{side}: {reading}");
            } else {
                // A request is a packet, and a response carries the acknowledgement. qperf reports a mean and no count.
                assert!(
                    delivered * 0.9 < packets && packets < delivered * 1.3 + 500.0,
                    "{side}: {reading} {interface}"
                );
            }
        }
    }
}
