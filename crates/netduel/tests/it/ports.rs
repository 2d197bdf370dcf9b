//! Data ports behind a firewall with real rules, and NAT, in namespaces: a client, a router and a server.
//!
//! Long because: each kind of rule and of NAT is a test of its own, on one topology.
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use netduel_test_support::skip;

use crate::support::{Bench, Finished, until, valid_trials};

/// Each type of workload: more flows than are probed at a time, both families, connections while traffic runs, echo requests, events of an
/// interface that carries nothing. Requests over UDP time out: here and below they run for longer than a stall of the machine, so that one of
/// them is answered.
const ALL_TYPES: &str = r#"
[[workloads]]
name = "streams"
type = "tcp-stream"
streams = 3
rate = "100 Mbit/s"
duration = "300 ms"
[[workloads]]
name = "flows"
type = "udp-stream"
flows = 2
rate = "10 Mbit/s"
duration = "300 ms"
family = "ipv6"
[[workloads]]
name = "packets"
type = "pps"
flows = 40
packet_rate = "10 k/s"
duration = "300 ms"
[[workloads]]
name = "tcp"
type = "tcp-rr"
duration = "300 ms"
family = "ipv6"
[[workloads]]
name = "udp"
type = "udp-rr"
duration = "800 ms"
[[workloads]]
name = "ping"
type = "icmp-rr"
duration = "300 ms"
[[workloads]]
name = "connections"
type = "tcp-crr"
duration = "300 ms"
[[workloads]]
name = "loaded"
type = "loaded-latency"
streams = 1
probe = "udp"
duration = "1 s"
[[workloads]]
name = "lost"
type = "failover"
streams = 1
duration = "1500 ms"
events = [{ at = "500 ms", do = "down", interface = "vf0" }, { at = "1 s", do = "return", interface = "vf0" }]
"#;

/// The number of workloads above.
const TYPES: usize = 9;

/// One TCP and one UDP port.
const ROUND_TRIPS: &str = r#"
[[workloads]]
name = "tcp"
type = "tcp-rr"
duration = "300 ms"
[[workloads]]
name = "udp"
type = "udp-rr"
duration = "800 ms"
"#;

/// One UDP port in each family.
const BOTH_FAMILIES: &str = r#"
[[workloads]]
name = "four"
type = "udp-rr"
duration = "800 ms"
[[workloads]]
name = "six"
type = "udp-rr"
duration = "800 ms"
family = "ipv6"
"#;

/// One TCP and two UDP ports by IPv6.
const FLOWS: &str = r#"
[[workloads]]
name = "streams"
type = "tcp-stream"
rate = "100 Mbit/s"
duration = "300 ms"
[[workloads]]
name = "flows"
type = "udp-stream"
flows = 2
rate = "10 Mbit/s"
duration = "300 ms"
family = "ipv6"
"#;

/// The client is compared with itself.
const ONE_WAY: &str = "[[arms]]\nname = \"routed\"\nclient = \"a\"\nserver = \"b\"\n[design]\naa = true\n";
/// Each host is the server of an arm.
const BOTH_WAYS: &str = "[[arms]]\nname = \"there\"\nclient = \"a\"\nserver = \"b\"\n\
                         [[arms]]\nname = \"back\"\nclient = \"b\"\nserver = \"a\"\n[design]\n";

/// The addresses of the server.
const SERVER: &str = "addresses = [\"10.80.2.2\", \"fd80:2::2\"]";

/// Client, router and server, removed when dropped.
struct Routed([String; 3]);

impl Routed {
    /// `None` after a skip. `label`: distinguishes the tests of this process.
    fn new(label: &str) -> Option<Self> {
        let names = ["a", "r", "b"].map(|side| format!("netduel-{label}-{}-{side}", std::process::id()));
        let spaces = Self(names);
        let [a, r, b] = &spaces.0;
        let own = [a, r, b].into_iter().flat_map(|name| {
            // Addresses are in use at once, without a wait for another host that has them.
            let at_once = "net.ipv6.conf.default.accept_dad=0";
            [format!("ip netns add {name}"), format!("ip netns exec {name} sysctl -qw {at_once}")]
        });
        let lines = own.chain([
            format!("ip link add near netns {a} type veth peer name near netns {r}"),
            format!("ip link add far netns {r} type veth peer name far netns {b}"),
            format!("ip -n {a} address add 10.80.1.1/24 dev near"),
            format!("ip -n {r} address add 10.80.1.254/24 dev near"),
            format!("ip -n {r} address add 10.80.2.254/24 dev far"),
            format!("ip -n {b} address add 10.80.2.2/24 dev far"),
            format!("ip -n {a} address add fd80:1::1/64 dev near nodad"),
            format!("ip -n {r} address add fd80:1::fe/64 dev near nodad"),
            format!("ip -n {r} address add fd80:2::fe/64 dev far nodad"),
            format!("ip -n {b} address add fd80:2::2/64 dev far nodad"),
            format!("ip -n {a} link set near up"),
            format!("ip -n {r} link set near up"),
            format!("ip -n {r} link set far up"),
            format!("ip -n {b} link set far up"),
            format!("ip -n {a} route add default via 10.80.1.254"),
            format!("ip -n {b} route add default via 10.80.2.254"),
            format!("ip -n {a} route add default via fd80:1::fe"),
            format!("ip -n {b} route add default via fd80:2::fe"),
            format!("ip netns exec {r} sysctl -qw net.ipv4.ip_forward=1"),
            format!("ip netns exec {r} sysctl -qw net.ipv6.conf.all.forwarding=1"),
        ]);
        for line in lines {
            spaces.take(&line)?;
        }
        assert!(until(|| spaces.is_ready()), "the links between the namespaces were never ready");
        Some(spaces)
    }

    /// Runs a command, split at spaces; `None` after a skip.
    fn take(&self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let output = Command::new(words[0]).args(&words[1..]).output();
        if output.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(());
        }
        skip(format!("`{line}` in {:?}: {output:?}", self.0));
        None
    }

    /// Whether every interface has carrier and a link-local address that is no longer tentative. Before that a router has no address from
    /// which it asks for its neighbours by IPv6.
    fn is_ready(&self) -> bool {
        self.0.iter().zip([1, 2, 1]).all(|(name, interfaces)| {
            let words = ["-n", name.as_str(), "-6", "-o", "address", "show", "scope", "link"];
            let output = Command::new("ip").args(words).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().count() == interfaces && !text.contains("tentative")
        })
    }

    /// Interfaces of the client that carry nothing: a pair beneath a bridge, of which one may go down. `None` after a skip.
    fn add_pair(&self) -> Option<()> {
        let a = &self.0[0];
        self.take(&format!("ip -n {a} link add spare type bridge"))?;
        for name in netduel_model::lab::PAIR {
            // Its other end gives it a carrier.
            self.take(&format!("ip -n {a} link add {name} type veth peer name {name}-end"))?;
            self.take(&format!("ip -n {a} link set {name} master spare"))?;
            self.take(&format!("ip -n {a} link set {name}-end up"))?;
            self.take(&format!("ip -n {a} link set {name} up"))?;
        }
        self.take(&format!("ip -n {a} link set spare up"))
    }

    /// Replaces the rules of the router; `None` after a skip.
    fn filter(&self, rules: &str) -> Option<()> {
        let mut nft = Command::new("ip");
        nft.args(["netns", "exec", &self.0[1], "nft", "-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        let output = nft.spawn().and_then(|mut nft| {
            nft.stdin.take().unwrap().write_all(format!("flush ruleset\n{rules}").as_bytes())?;
            nft.wait_with_output()
        });
        if output.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(());
        }
        assert!(!format!("{output:?}").contains("syntax error"), "{rules}: {output:?}");
        skip(format!("no nftables: {output:?}"));
        None
    }

    /// Rules for the packets that the router forwards.
    fn forward(&self, rules: &str) -> Option<()> {
        self.filter(&format!(
            "table inet t {{ chain c {{ type filter hook forward priority 0; policy accept;\n{rules}\n}}\n}}\n"
        ))
    }

    /// A plan for these hosts. `server`: the keys of the server beside its launcher.
    fn plan(&self, server: &str, arms: &str, workloads: &str) -> String {
        let [a, _, b] = &self.0;
        format!(
            "name = \"ports\"\nquestion = \"Are the ports open?\"\n\
             [hosts.a]\nlaunch = \"netns\"\nnetns = \"{a}\"\naddresses = [\"10.80.1.1\", \"fd80:1::1\"]\ndata_ports = \"5310\"\n\
             [hosts.b]\nlaunch = \"netns\"\nnetns = \"{b}\"\n{server}\n\
             {arms}blocks_min = 2\nblocks_max = 2\n{workloads}\n"
        )
    }

    /// Runs it: one arm from the client to the server with these data ports.
    fn run(&self, bench: &Bench, data_ports: &str, workloads: &str) -> Finished {
        let server = format!("{SERVER}\ndata_ports = \"{data_ports}\"");
        run(bench, &self.plan(&server, ONE_WAY, workloads))
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn run(bench: &Bench, plan: &str) -> Finished {
    let plan = bench.plan(plan);
    bench.run(["run", plan.to_str().unwrap(), "--json"])
}

/// The run has all of its trials, and each is valid, or this machine stalled for all of its duration.
#[track_caller]
fn assert_complete(bench: &Bench, run: &Finished, workloads: usize) {
    // 6: so few blocks may have no verdict, which is not needed here.
    assert!(matches!(run.code, Some(0 | 6)), "{:?}\n{}\n{}", run.code, run.stderr, run.stdout);
    let document = run.json();
    let valid = valid_trials(bench).len();
    assert_eq!(document["trials_valid"], valid, "{}", run.stderr);
    // Two arms in two blocks.
    assert_eq!(document["trials_excluded"], 4 * workloads - valid, "{}", run.stderr);
}

#[track_caller]
fn holds(rule: &str, run: &Finished, parts: &[&str]) {
    for part in parts {
        assert!(run.stderr.contains(part), "{rule}: {part:?} is not in:\n{}", run.stderr);
    }
}

/// A run with this rule of the router ends before its first trial, and names the blocked protocol and these words once.
#[track_caller]
fn assert_blocked(spaces: &Routed, (rule, protocol): (&str, &str), parts: &[&str]) -> Option<()> {
    spaces.forward(rule)?;
    let bench = Bench::new();
    let run = spaces.run(&bench, "5310", ROUND_TRIPS).expect_code(4);
    let at = format!("host a does not reach host b at 10.80.2.2, {protocol} port 5310: ");
    holds(rule, &run, &[&at]);
    holds(rule, &run, parts);
    assert_eq!(run.stderr.matches(&at).count(), 1, "{}", run.stderr);
    let stored = netduel_store::Store::open(bench.store()).unwrap().read("last").unwrap();
    assert!(stored.trials.is_empty(), "{rule}: {} trials", stored.trials.len());
    bench.assert_nothing_left();
    Some(())
}

#[test]
fn every_type_of_workload_keeps_to_the_data_ports() {
    let Some(spaces) = Routed::new("types") else { return };
    // Without connection tracking: each packet has a data port at one of its ends.
    let open = "meta l4proto { 1, 58 } accept
        tcp dport 5310-5349 accept
        tcp sport 5310-5349 accept
        udp dport 5310-5349 accept
        udp sport 5310-5349 accept
        drop";
    if spaces.add_pair().is_none() || spaces.forward(open).is_none() {
        return;
    }
    let bench = Bench::new();
    let run = spaces.run(&bench, "5310-5349", ALL_TYPES);
    assert_complete(&bench, &run, TYPES);
    assert!(!run.stdout.contains("address-translated"), "no NAT: {}", run.stdout);
    bench.assert_nothing_left();
}

#[test]
fn dropped_packets_and_dropped_answers_have_rules_for_different_hosts() {
    let Some(spaces) = Routed::new("dropped") else { return };
    let there = "; allow it on b:\n  nftables: nft insert rule inet filter input ";
    let back = "; allow it on a:\n  nftables: nft insert rule inet filter input ip saddr 10.80.2.2 ";
    let arrived = "the answer is dropped: b received packets of a from 10.80.1.1 and answered";
    let cases: [(&str, &str, &[&str]); 4] = [
        (
            "tcp dport 5310 drop",
            "TCP",
            &[
                "dropped, no answer within 5 s; b did not receive the SYN segments of a",
                there,
                "ufw allow 5310/tcp",
            ],
        ),
        ("tcp sport 5310 drop", "TCP", &[arrived, back, "ufw allow proto tcp from 10.80.2.2 port 5310"]),
        (
            "udp dport 5310 drop",
            "UDP",
            &[
                "dropped, no answer within 5 s; b did not receive the datagrams of a",
                there,
                "ufw allow 5310/udp",
            ],
        ),
        ("udp sport 5310 drop", "UDP", &[arrived, back, "firewall-cmd --add-source-port=5310/udp"]),
    ];
    for (rule, protocol, parts) in cases {
        if assert_blocked(&spaces, (rule, protocol), parts).is_none() {
            return;
        }
    }
}

#[test]
fn both_protocols_that_are_blocked_are_in_one_error() {
    let Some(spaces) = Routed::new("both") else { return };
    let rule = "udp sport 5310 drop; tcp dport 5310 drop";
    let parts = [
        "; allow it on b:\n  nftables: nft insert rule inet filter input tcp dport 5310 accept\n",
        "\nhost a does not reach host b at 10.80.2.2, UDP port 5310: the answer is dropped",
        "ufw allow proto udp from 10.80.2.2 port 5310\n",
    ];
    assert_blocked(&spaces, (rule, "TCP"), &parts);
}

#[test]
fn rejected_packets_end_the_run_with_the_rule() {
    let Some(spaces) = Routed::new("rejected") else { return };
    let cases: [(&str, &str, &[&str]); 3] = [
        ("tcp dport 5310 reject with tcp reset", "TCP", &["refused (", "input tcp dport 5310 accept"]),
        (
            "tcp dport 5310 reject with icmpx type admin-prohibited",
            "TCP",
            &[
                "refused (",
                "--protocol Tcp --source-address-prefixes 10.80.1.1/32 --destination-port-ranges 5310",
            ],
        ),
        ("udp dport 5310 reject", "UDP", &["refused (", "IpProtocol=udp,FromPort=5310,ToPort=5310"]),
    ];
    for (rule, protocol, parts) in cases {
        if assert_blocked(&spaces, (rule, protocol), parts).is_none() {
            return;
        }
    }
}

#[test]
fn each_family_of_the_workloads_is_probed_and_no_other() {
    let Some(spaces) = Routed::new("family") else { return };
    for (rule, blocked, open) in [
        ("ip6 daddr fd80:2::2 udp dport 5310 reject with icmpx type admin-prohibited", "fd80:2::2", "ipv4"),
        ("ip daddr 10.80.2.2 udp dport 5310 reject", "10.80.2.2", "ipv6"),
    ] {
        if spaces.forward(rule).is_none() {
            return;
        }
        let bench = Bench::new();
        let run = spaces.run(&bench, "5310", BOTH_FAMILIES).expect_code(4);
        holds(rule, &run, &[&format!("host a does not reach host b at {blocked}, UDP port 5310: refused")]);
        let other = format!(
            "[[workloads]]\nname = \"one\"\ntype = \"udp-rr\"\nduration = \"800 ms\"\nfamily = \"{open}\"\n"
        );
        assert_complete(&bench, &spaces.run(&bench, "5310", &other), 1);
        bench.assert_nothing_left();
    }
}

#[test]
fn each_ordered_pair_is_probed() {
    let Some(spaces) = Routed::new("pairs") else { return };
    let rule = "ip daddr 10.80.1.1 tcp dport 5310 reject with tcp reset";
    if spaces.forward(rule).is_none() {
        return;
    }
    let bench = Bench::new();
    let server = format!("{SERVER}\ndata_ports = \"5310\"");
    let finished = run(&bench, &spaces.plan(&server, BOTH_WAYS, ROUND_TRIPS)).expect_code(4);
    holds(rule, &finished, &["host b does not reach host a at 10.80.1.1, TCP port 5310: refused"]);
    // The arm whose server is open, alone.
    assert_complete(&bench, &spaces.run(&bench, "5310", ROUND_TRIPS), 2);
    bench.assert_nothing_left();
}

#[test]
fn client_that_accepts_no_connections_needs_no_open_port() {
    let Some(spaces) = Routed::new("client") else { return };
    if spaces.forward("ip daddr 10.80.1.1 ct state new drop").is_none() {
        return;
    }
    let bench = Bench::new();
    assert_complete(&bench, &spaces.run(&bench, "5310", ROUND_TRIPS), 2);
    bench.assert_nothing_left();
}

#[test]
fn ports_that_the_kernel_chooses_are_probed_and_the_error_names_the_key() {
    let Some(spaces) = Routed::new("kernel") else { return };
    let rule = "ip6 daddr fd80:2::2 udp dport 1024-65535 reject";
    if spaces.forward(rule).is_none() {
        return;
    }
    let bench = Bench::new();
    let finished = run(&bench, &spaces.plan(SERVER, ONE_WAY, FLOWS)).expect_code(4);
    let parts = [
        "host a does not reach host b at fd80:2::2, UDP port ",
        "set `data_ports = \"5210-5211\"` for b, and allow it on b:",
        "firewall-cmd --add-port=5210-5211/udp",
    ];
    holds(rule, &finished, &parts);
    bench.assert_nothing_left();
}

#[test]
fn nat_of_the_source_is_a_warning_before_the_run_and_in_the_report() {
    let Some(spaces) = Routed::new("snat") else { return };
    let rules =
        "table ip t { chain c { type nat hook postrouting priority 100; oifname \"far\" masquerade; }; }\n";
    if spaces.filter(rules).is_none() {
        return;
    }
    let bench = Bench::new();
    let run = spaces.run(&bench, "5310", ROUND_TRIPS);
    assert_complete(&bench, &run, 2);
    let words = "host b sees host a as 10.80.2.254 instead of 10.80.1.1";
    let (before, _) = run.stderr.split_once(": at most ").unwrap();
    assert!(before.contains(words), "{}", run.stderr);
    assert!(run.json()["warnings"].to_string().contains(words), "{}", run.stdout);
    let report = bench.run(["report", "last", "--format", "text"]).expect_code(0);
    assert!(report.stdout.contains("NAT: host b sees host a"), "{}", report.stdout);
    bench.assert_nothing_left();
}

#[test]
fn resumed_run_is_probed_again_and_keeps_one_warning_of_its_nat() {
    let Some(spaces) = Routed::new("resumed") else { return };
    let nat =
        "table ip t { chain c { type nat hook postrouting priority 100; oifname \"far\" masquerade; }; }\n";
    let block = "table ip6 f { chain c { type filter hook forward priority 0; policy accept; udp dport 5310 reject; }; }\n";
    if spaces.filter(&format!("{nat}{block}")).is_none() {
        return;
    }
    let bench = Bench::new();
    let words = "host b sees host a as 10.80.2.254 instead of 10.80.1.1";
    let blocked = spaces.run(&bench, "5310", BOTH_FAMILIES).expect_code(4);
    holds(block, &blocked, &[words, "host a does not reach host b at fd80:2::2, UDP port 5310: refused"]);
    if spaces.filter(nat).is_none() {
        return;
    }
    let resumed = bench.run(["run", "--resume", "last", "--json"]);
    assert_complete(&bench, &resumed, 2);
    let document = resumed.json();
    let warnings = document["warnings"].as_array().unwrap().iter();
    let of_nat: Vec<_> = warnings.filter(|warning| warning["kind"] == "address-translated").collect();
    assert_eq!(of_nat.len(), 1, "{of_nat:?}");
    bench.assert_nothing_left();
}

#[test]
fn nat_of_the_destination_ends_the_run_with_the_addresses_of_the_server() {
    let Some(spaces) = Routed::new("dnat") else { return };
    let rules = "table ip t { chain c { type nat hook prerouting priority -100; ip daddr 10.80.1.254 dnat to 10.80.2.2; }; }\n";
    if spaces.filter(rules).is_none() {
        return;
    }
    let bench = Bench::new();
    let server = "addresses = [\"10.80.1.254\"]\ndata_ports = \"5310\"";
    let finished = run(&bench, &spaces.plan(server, ONE_WAY, ROUND_TRIPS)).expect_code(4);
    let (wrong, remedy) = finished.stderr.split_once("; the host has ").unwrap();
    assert!(wrong.contains("host b does not have the address 10.80.1.254 of the plan"), "{wrong}");
    assert!(remedy.contains("10.80.2.2") && remedy.contains("fd80:2::2"), "{remedy}");
    bench.assert_nothing_left();
}

#[test]
fn data_port_of_another_program_is_named() {
    let Some(spaces) = Routed::new("taken") else { return };
    let bench = Bench::new();
    let mut other = Command::new("ip");
    other.args(["netns", "exec", &spaces.0[2], env!("CARGO_BIN_EXE_netduel")]);
    other.args(["serve", "--ephemeral", "--port", "5310", "--json", "--advertise", "10.80.2.2"]);
    bench.mark(&mut other);
    let mut other = other.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("\"string\""), "{ready}");
    let run = spaces.run(&bench, "5310", ROUND_TRIPS).expect_code(3);
    assert!(run.stderr.contains("bind 1 TCP port of 5310 on 10.80.2.2; in use: 5310"), "{}", run.stderr);
    other.kill().unwrap();
    other.wait().unwrap();
    bench.assert_nothing_left();
}

#[test]
fn range_that_is_too_small_is_refused_before_a_host_is_reached() {
    let bench = Bench::new();
    let plan = "name = \"ports\"\nquestion = \"Are there enough?\"\n[hosts.a]\nlaunch = \"netns\"\nnetns = \"none-a\"\n\
                [hosts.b]\nlaunch = \"netns\"\nnetns = \"none-b\"\naddresses = [\"192.0.2.7\", \"2001:db8::7\"]\n\
                data_ports = \"5310-5348\"\n";
    let plan = bench.plan(&format!("{plan}{ONE_WAY}{ALL_TYPES}"));
    let check = bench.run(["plan", "check", plan.to_str().unwrap()]).expect_code(2);
    let part = "hosts.b.data_ports: is \"5310-5348\", but the workload \"packets\" needs 40 ports";
    assert!(check.stderr.contains(part), "{}", check.stderr);
}
