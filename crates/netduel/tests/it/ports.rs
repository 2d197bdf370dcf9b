//! Data ports behind a firewall with real rules, and NAT, in namespaces: a client, a router and a server.
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use netduel_test_support::skip;

use crate::support::{Bench, Finished};

/// All types of sockets: streams, several flows, connections while traffic runs.
const ALL_SOCKETS: &str = r#"
[[workloads]]
name = "streams"
type = "tcp-stream"
streams = 3
duration = "300 ms"
[[workloads]]
name = "flows"
type = "udp-stream"
flows = 2
rate = "10 Mbit/s"
duration = "300 ms"
family = "ipv6"
[[workloads]]
name = "connections"
type = "tcp-crr"
duration = "300 ms"
"#;

/// One TCP and one UDP port.
const ROUND_TRIPS: &str = r#"
[[workloads]]
name = "tcp"
type = "tcp-rr"
duration = "300 ms"
[[workloads]]
name = "udp"
type = "udp-rr"
duration = "300 ms"
"#;

/// Client, router and server, removed when dropped.
struct Routed([String; 3]);

impl Routed {
    /// `None` after a skip. `label`: distinguishes the tests of this process.
    fn new(label: &str) -> Option<Self> {
        let names = ["a", "r", "b"].map(|side| format!("netduel-{label}-{}-{side}", std::process::id()));
        let spaces = Self(names);
        let [a, r, b] = &spaces.0;
        let lines = [
            format!("ip netns add {a}"),
            format!("ip netns add {r}"),
            format!("ip netns add {b}"),
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
        ];
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
        assert!(!format!("{output:?}").contains("syntax error"), "{output:?}");
        skip(format!("no nftables: {output:?}"));
        None
    }

    /// Rules for the packets that the router forwards.
    fn forward(&self, rules: &str) -> Option<()> {
        self.filter(&format!(
            "table inet t {{ chain c {{ type filter hook forward priority 0; policy accept;\n{rules}\n}}\n}}\n"
        ))
    }

    /// A plan that compares the pair with itself; `server`: further keys of the server.
    fn plan(&self, server: &str, workloads: &str) -> String {
        let [a, _, b] = &self.0;
        format!(
            "name = \"ports\"\nquestion = \"Are the ports open?\"\n\
             [hosts.a]\nlaunch = \"netns\"\nnetns = \"{a}\"\n\
             [hosts.b]\nlaunch = \"netns\"\nnetns = \"{b}\"\naddresses = [\"10.80.2.2\", \"fd80:2::2\"]\n{server}\n\
             [[arms]]\nname = \"routed\"\nclient = \"a\"\nserver = \"b\"\n{workloads}\n\
             [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n"
        )
    }

    fn run(&self, bench: &Bench, server: &str, workloads: &str) -> Finished {
        let plan = bench.plan(&self.plan(server, workloads));
        bench.run(["run", plan.to_str().unwrap(), "--json"])
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

#[test]
fn trials_use_the_data_ports_alone() {
    let Some(spaces) = Routed::new("alone") else { return };
    let open = "meta l4proto { icmp, ipv6-icmp } accept
        ct state established accept
        tcp dport 5310-5311 accept
        udp dport 5310-5311 accept
        drop";
    if spaces.forward(open).is_none() {
        return;
    }
    let bench = Bench::new();
    let run = spaces.run(&bench, "data_ports = \"5310-5311\"", ALL_SOCKETS);
    assert!(matches!(run.code, Some(0)), "{}\n{}", run.stderr, run.stdout);
    let document = run.json();
    assert_eq!((&document["trials_valid"], &document["trials_excluded"]), (&12.into(), &0.into()));
    assert!(!run.stdout.contains("address-translated"), "no NAT: {}", run.stdout);
    bench.assert_nothing_left();
}

#[test]
fn blocked_port_ends_the_run_before_any_trial_with_the_rule() {
    let Some(spaces) = Routed::new("blocked") else { return };
    for (rule, found, command) in [
        ("tcp dport 5310 drop", "10.80.2.2, TCP port 5310: dropped", "ufw allow 5310/tcp"),
        ("udp dport 5310 drop", "10.80.2.2, UDP port 5310: dropped", "ufw allow 5310/udp"),
        ("udp sport 5310 drop", "10.80.2.2, UDP port 5310: dropped", "ufw allow 5310/udp"),
        (
            "tcp dport 5310 reject with tcp reset",
            "TCP port 5310: refused",
            "filter input tcp dport 5310 accept",
        ),
        ("tcp dport 5310 reject with icmpx admin-prohibited", "TCP port 5310: refused", "--protocol Tcp"),
        ("udp dport 5310 reject", "UDP port 5310: refused", "IpProtocol=udp,FromPort=5310,ToPort=5310"),
    ] {
        if spaces.forward(rule).is_none() {
            return;
        }
        let bench = Bench::new();
        let run = spaces.run(&bench, "data_ports = \"5310\"", ROUND_TRIPS).expect_code(4);
        assert!(run.stderr.contains("host a does not reach host b at "), "{rule}: {}", run.stderr);
        assert!(run.stderr.contains(found), "{rule}: {}", run.stderr);
        assert!(run.stderr.contains(command), "{rule}: {}", run.stderr);
        let stored = netduel_store::Store::open(bench.store()).unwrap().read("last").unwrap();
        assert!(stored.trials.is_empty(), "{rule}: {} trials", stored.trials.len());
        bench.assert_nothing_left();
    }
}

#[test]
fn each_family_is_probed_and_the_kernel_s_ports_too() {
    let Some(spaces) = Routed::new("family") else { return };
    if spaces.forward("ip6 daddr fd80:2::2 udp dport 1024-65535 reject").is_none() {
        return;
    }
    let bench = Bench::new();
    let run = spaces.run(&bench, "", ALL_SOCKETS).expect_code(4);
    for part in [
        "host a does not reach host b at fd80:2::2, UDP port ",
        "set `data_ports = \"5210-5211\"` for b",
        "firewall-cmd --add-port=5210-5211/udp",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

#[test]
fn nat_between_the_hosts_is_a_warning_before_the_run_and_in_the_report() {
    let Some(spaces) = Routed::new("nat") else { return };
    let rules =
        "table ip t { chain c { type nat hook postrouting priority 100; oifname far masquerade; }; }\n";
    if spaces.filter(rules).is_none() {
        return;
    }
    let bench = Bench::new();
    let run = spaces.run(&bench, "data_ports = \"5310\"", ROUND_TRIPS);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let words = "host b sees host a as 10.80.2.254 instead of 10.80.1.1";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    assert!(run.json()["warnings"].to_string().contains(words), "{}", run.stdout);
    assert!(bench.run(["report", "last", "--format", "text"]).stdout.contains("NAT: host b sees host a"));
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
    let run = spaces.run(&bench, "data_ports = \"5310\"", ROUND_TRIPS).expect_code(3);
    assert!(run.stderr.contains("bind 1 TCP port of 5310 on 10.80.2.2; in use: 5310"), "{}", run.stderr);
    other.kill().unwrap();
    other.wait().unwrap();
    bench.assert_nothing_left();
}
