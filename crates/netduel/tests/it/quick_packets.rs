//! `netduel pps` against a standing server: exact counts for each generator and receiver, sweeps, and rejected options.
use serde_json::Value;

use crate::quick::{Served, end_of, setting};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Packets sent by the client and received by the server without duplicates, and the server's count of others.
fn counts(document: &Value) -> (u64, u64, u64) {
    let datagrams = &end_of(document, "server")["datagrams"];
    (
        number(&end_of(document, "client")["sent"]["messages"]),
        number(&datagrams["received"]),
        number(&datagrams["duplicates"]) + number(&datagrams["unexpected"]),
    )
}

#[test]
fn every_engine_receives_a_sustainable_rate_without_loss() {
    let served = Served::start("pps", &["--port", "0"]);
    let mut with_traffic = std::collections::BTreeSet::new();
    for ipv6 in [false, true] {
        let string = served.string(ipv6).to_owned();
        for (generator, receiver) in [
            ("socket", "socket"),
            ("socket", "xdp"),
            ("socket", "count"),
            ("xdp", "socket"),
            ("xdp", "xdp"),
            ("xdp", "count"),
        ] {
            let ends = ["--generator", generator, "--receiver", receiver];
            let words = [&["pps", &string, "-t", "0.3", "--rate", "5k", "-P", "3", "-J"], &ends[..]].concat();
            let document = served.client(&words).expect_code(0).quick_test();
            let (sent, received, others) = counts(&document);
            // One of these short tests may wait for a core until it is over.
            let metrics = document["metrics"].as_array().unwrap();
            let rate = metrics.iter().find(|metric| metric["metric"] == "datagram-rate");
            if rate.is_some_and(|rate| rate["value"].as_f64().is_some_and(|rate| rate > 0.0)) {
                assert!(received > 0, "{ends:?}: {document}");
                with_traffic.insert((generator, receiver));
            }
            // Packets that a busy receiver does not read in time are dropped at its socket, and counted there.
            let dropped = &end_of(&document, "server")["datagrams"]["socket_drops"];
            assert!(received <= sent, "{ends:?}: {document}");
            // Among the drops may be end markers, which are not sent packets.
            let missing = sent.saturating_sub(received + dropped.as_u64().unwrap_or(0));
            // What other programs of the machine leave too little room for in a core's backlog is dropped and counted there.
            assert!(missing <= dropped_by_cores(&document), "{missing} of {sent}, {ends:?}: {document}");
            assert_eq!(others, 0, "{ends:?}");
            let frame = if ipv6 { 82 } else { 64 };
            assert_eq!(setting(&document, "frame"), frame);
            let report = &end_of(&document, "server")["packets"];
            if receiver == "socket" {
                assert!(report.is_null(), "{report}");
            } else {
                let queues = report["queues"].as_array().unwrap();
                let taken: u64 = queues.iter().map(|queue| number(&queue["packets"])).sum();
                // The port by which the bridge reaches the peer, not the bridge, which has no native XDP.
                assert_eq!((taken, &report["interface"]), (received, &Value::from("vf0")), "{report}");
                assert_eq!(report["mode"], "native", "{report}");
            }
        }
    }
    // Each over at least one version of IP.
    assert_eq!(with_traffic.len(), 6, "{with_traffic:?}");
    served.end();
}

/// The packets that any core dropped during a trial, of all programs.
fn dropped_by_cores(document: &Value) -> u64 {
    let ends = ["client", "server"].map(|role| &end_of(document, role)["host"]["softnet"]);
    let cores = ends.iter().flat_map(|cores| cores.as_array().into_iter().flatten());
    cores.map(|core| number(&core["dropped"])).sum()
}

#[test]
fn kernel_bypass_uses_the_port_of_the_bridge_that_leads_to_the_peer() {
    let served = Served::start("ppsport", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let words = ["pps", &string, "-t", "0.3", "--generator", "kernel", "-J"];
    // Only the direct path takes frames of the kernel's generator.
    let refused = served.client(&words).expect_code(3);
    assert!(refused.stderr.contains("on vf0: its driver has no XDP transmit"), "{}", refused.stderr);
    served.select_path("direct");
    let document = served.client(&words).expect_code(0).quick_test();
    let (sent, received, others) = counts(&document);
    assert!(sent > 0 && received > 0 && received <= sent && others == 0, "{document}");
    for role in ["client", "server"] {
        let packets = &end_of(&document, role)["packets"];
        assert_eq!(packets["interface"], "dir0", "{packets}");
    }
    served.end();
}

#[test]
fn sweep_runs_a_test_per_size_and_prints_a_table() {
    let served = Served::start("ppssweep", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let words = ["pps", &string, "-t", "0.2", "--rate", "2k", "--frame", "64,512,1518"];
    let text = served.client(&words).expect_code(0).stdout;
    let table: Vec<&str> = text.lines().skip_while(|line| !line.trim_start().starts_with("frame")).collect();
    for size in ["64 B", "512 B", "1518 B"] {
        assert!(table.iter().any(|line| line.trim_start().starts_with(size)), "{size} in {table:#?}");
    }
    let json = [&words[..], &["-J"]].concat();
    let document = served.client(&json).expect_code(0).json();
    let tests = document["tests"].as_array().unwrap();
    let frames: Vec<u64> = tests.iter().map(|test| setting(test, "frame")).collect();
    assert_eq!(frames, [64, 512, 1518]);
    served.end();
}

#[test]
fn invalid_packet_options_are_rejected_in_terms_of_the_command_line() {
    let served = Served::start("ppswrong", &["--port", "0"]);
    let string = served.string(false).to_owned();
    for (options, words) in [
        (&["--frame", "63"][..], "'63' for '--frame <BYTES>': 64 to 1518 bytes is allowed"),
        (&["--frame", "64,2000"], "'2000' for '--frame <BYTES>'"),
        (
            &["--generator", "kernel", "--rate", "1k"],
            "--rate: needs a generator that keeps a rate; `kernel` does not",
        ),
        (
            &["--generator", "xdp", "-R"],
            "-R (--reverse) or --bidir: is \"down\", but without sockets only the client sends",
        ),
        (&["--queues", "2"], "--queues: is given where neither end opens queues itself"),
        (&["--generator", "pktgen"], "one of `socket`, `xdp`, `kernel`, `dpdk` is allowed"),
        (&["-b", "1M"], "this test counts events, not bits; use --rate"),
        (&["-l", "64"], "this test counts frames, not payload; use --frame"),
    ] {
        let all = [&["pps", &string, "-t", "0.2"], options].concat();
        let refused = served.client(&all).expect_code(2);
        assert!(refused.stderr.contains(words), "{options:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "", "{options:?}");
    }
    let queues = ["pps", &string, "-t", "0.2", "--generator", "xdp", "--queues", "9"];
    let refused = served.client(&queues).expect_code(2);
    assert!(refused.stderr.contains("open 9 queues of vf0: it has 1;"), "{}", refused.stderr);
    served.end();
}
