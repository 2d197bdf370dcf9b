//! The addresses for which a server prints pairing strings, in a network namespace of its own: without any address, and with those of
//! loopback only.
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use netduel_test_support::in_namespace;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::support::{Bench, assert_fits, signal};

/// What a server prints until it accepts tests: its greeting, or one line of JSON.
fn greeting(bench: &Bench, options: &[&str]) -> String {
    let words = ["serve", "--ephemeral", "--port", "0"];
    let mut server = bench.netduel(words.iter().chain(options)).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    for line in BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap) {
        text.push_str(&line);
        text.push('\n');
        if line.starts_with("Ctrl-C") || line.starts_with('{') {
            break;
        }
    }
    signal(Pid::from_child(&server), Signal::TERM);
    assert_eq!(server.wait().unwrap().code(), Some(0), "{text}");
    text
}

#[test]
fn server_that_no_other_host_can_reach_states_the_reason_and_the_option() {
    let test = "serve_addresses::server_that_no_other_host_can_reach_states_the_reason_and_the_option";
    in_namespace(test, || {
        let bench = Bench::new();
        // In a new namespace loopback is down.
        for has_loopback in [false, true] {
            if has_loopback {
                assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
            }
            let text = greeting(&bench, &[]);
            assert!(text.contains("\nwarning: no interface that is up has an "), "{text}");
            assert!(text.contains("name this host with --advertise HOST\n"), "{text}");
            assert_eq!(text.contains("Pairing strings"), has_loopback, "{text}");
            let ready: Value = serde_json::from_str(&greeting(&bench, &["--json"])).unwrap();
            assert_fits(&ready);
            let warning = ready["warning"].as_str().unwrap();
            assert!(warning.ends_with("name this host with --advertise HOST"), "{ready}");
            assert_eq!(ready["pairings"] != json!([]), has_loopback, "{ready}");
        }
        let options = ["--json", "--advertise", "bench.example.org"];
        let named: Value = serde_json::from_str(&greeting(&bench, &options)).unwrap();
        assert_eq!((&named["warning"], &named["pairings"][0]["host"]), (&json!(null), &json!(options[2])));
        bench.assert_nothing_left();
    });
}
