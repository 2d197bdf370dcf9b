//! Each path carries traffic on its own interface with its configured properties.
use netduel_model::units::BitRate;
use netduel_model::workload::LAB;
use netduel_test_support::skip;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::bench::{Bench, Standing, name_for, printed, users};

const ADDRESSES: [&str; 2] = ["10.77.0.2", "fd77::2"];
const PATHS: [(&str, &str, &str); 3] =
    [("synthetic", "syn0", "vf0"), ("accelerated", "vf0", "dir0"), ("direct", "dir0", "syn0")];

#[test]
fn each_path_carries_both_families_on_its_own_interface() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "carries", &["20"]);
        for (path, used, unused) in PATHS {
            bench.text(["path", &lab.name, path]);
            let status = bench.status(&lab.name);
            assert_eq!((&status["path"], &status["observed"]), (&path.into(), &path.into()));
            for address in ADDRESSES {
                let server = bench.serve(&lab.name, address);
                let read = |interface| ["a", "b"].map(|guest| bench.bytes(&lab.name, guest, interface));
                let before = [read(used), read(unused)];
                let words = ["ask", address, &server.tcp, &server.udp, "200"];
                printed(&bench.echo(&lab.name, "a", &words).output().unwrap());
                let after = [read(used), read(unused)];
                for guest in 0..2 {
                    let (carried, strayed) =
                        (after[0][guest] - before[0][guest], after[1][guest] - before[1][guest]);
                    // 200 round trips of 1000 bytes, over UDP and over TCP.
                    assert!(carried >= 800_000, "{path} {address}: {used} carried {carried} bytes");
                    // The kernel's multicast reports may appear at any time: some frames of 100 bytes.
                    assert!(strayed < 2_000, "{path} {address}: {unused} carried {strayed} bytes");
                }
            }
        }
    }
}

#[test]
fn connection_survives_every_path_change() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "switch", &["20"]);
        for address in ADDRESSES {
            let server = bench.serve(&lab.name, address);
            let mut client = bench
                .echo(&lab.name, "a", &["flow", address, &server.tcp])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
            let mut asks = client.stdin.take().unwrap();
            for (path, used, _) in PATHS.into_iter().cycle().take(12) {
                bench.text(["path", &lab.name, path]);
                let before = bench.bytes(&lab.name, "a", used);
                asks.write_all(b"\n").unwrap();
                lines.next().expect("the connection was lost").unwrap();
                // 50 round trips of 1000 bytes started after the change.
                let carried = bench.bytes(&lab.name, "a", used) - before;
                assert!(carried >= 100_000, "{used} carried {carried} bytes on the {path} path");
            }
            drop(asks);
            assert!(client.wait().unwrap().success());
        }
    }
}

#[test]
fn policy_has_the_requested_number_of_rules() {
    for bench in users().into_iter().filter_map(Bench::new) {
        for rules in [0, 1, 100, 101, 650] {
            let lab = Standing::up(&bench, "rules", &[&rules.to_string()]);
            let status = bench.status(&lab.name);
            for machine in 0..2 {
                assert_eq!(status["policies"][machine]["ipv4_rules"], rules);
                assert_eq!(status["policies"][machine]["ipv6_rules"], rules);
            }
        }
    }
}

#[test]
fn nft_lists_the_policy_correctly() {
    for bench in users().into_iter().filter_map(Bench::new) {
        if std::process::Command::new("nft").arg("--version").output().is_err() {
            return skip("nft is not installed");
        }
        let lab = Standing::up(&bench, "nft", &["120"]);
        let list = printed(&bench.inside(&lab.name, "h2", "nft", &["list", "ruleset"]).output().unwrap());
        let count = |text: &str| list.lines().filter(|line| line.contains(text)).count();
        assert_eq!(count("ip saddr 192.168.0."), 120, "{list}");
        assert_eq!(count("ip6 saddr fdde:ad00::"), 120, "{list}");
        assert_eq!(count("tcp dport 1-1023 drop"), 242, "{list}");
        for line in
            ["iifname \"vsyn\" jump acl", "iifname \"pf1\" jump acl", "ip saddr @deny4", "ip6 saddr @deny6"]
        {
            assert_eq!(count(line), 1, "{line} in {list}");
        }
    }
}

#[test]
fn guests_have_the_requested_mtu() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "mtu", &["0", "none", "9000"]);
        for interface in ["eth0", "syn0", "vf0", "dir0"] {
            let file = format!("/sys/class/net/{interface}/mtu");
            let mtu = printed(&bench.inside(&lab.name, "a", "cat", &[&file]).output().unwrap());
            assert_eq!(mtu.trim(), "9000", "{interface}");
        }
    }
}

#[test]
fn rate_cap_limits_all_traffic() {
    const BYTES: u64 = 4_000_000;
    const BYTES_PER_S: u64 = 12_500_000;
    /// The largest bucket size of `netlink/queueing.rs` at this rate.
    const BUCKET: u64 = 128 * 1024;
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "cap", &["20", "100 Mbit/s"]);
        // The direct path has no wire.
        for (path, ..) in PATHS.into_iter().filter(|(path, ..)| *path != "direct") {
            bench.text(["path", &lab.name, path]);
            let server = bench.serve(&lab.name, ADDRESSES[0]);
            let words = ["push", ADDRESSES[0], &server.tcp, &BYTES.to_string()];
            let ns: u64 =
                printed(&bench.echo(&lab.name, "a", &words).output().unwrap()).trim().parse().unwrap();
            // A lower bound: a busy machine can only make a transfer take longer.
            let least_ns = (BYTES - BUCKET) * 1_000_000_000 / BYTES_PER_S;
            assert!(ns >= least_ns, "{path}: {BYTES} bytes took {ns} ns");
        }
    }
}

#[test]
fn kernel_has_the_requested_cap_at_both_ends_of_the_range_of_rates() {
    let range = LAB.iter().find(|setting| setting.key == "cap").and_then(|setting| setting.range).unwrap();
    // Rates above 2^32 bytes per second have an attribute of their own.
    let rates = [range.least, range.least + range.step, 34_359_738_368, range.most];
    for bench in users().into_iter().filter_map(Bench::new) {
        for rate in rates {
            let lab = Standing::up(&bench, "exact", &["0", &BitRate(rate).to_string()]);
            let list = printed(
                &bench.inside(&lab.name, "h1", "tc", &["-j", "-s", "qdisc", "show"]).output().unwrap(),
            );
            let list: serde_json::Value = serde_json::from_str(&list).unwrap();
            let of = list.as_array().unwrap().iter().find(|qdisc| qdisc["kind"] == "tbf").unwrap();
            assert_eq!(of["options"]["rate"], rate / 8, "{list}");
            assert!(of["options"]["burst"].as_u64().unwrap() > 0, "{list}");
            // Probes and what the kernel sends when interfaces come up; a loop between the ports of a guest multiplies it.
            let sent = of["packets"].as_u64().unwrap() + of["qlen"].as_u64().unwrap();
            assert!(sent < 200, "{sent} packets passed the wire of a lab without traffic: {list}");
        }
    }
}

#[test]
fn cap_that_the_kernel_cannot_keep_is_refused() {
    for bench in users().into_iter().filter_map(Bench::new) {
        for cap in ["1 bit/s", "7 bit/s", "8004 bit/s", "10 Tbit/s"] {
            let output = bench.lab(["up", &name_for("inexact"), "0", cap]).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && stderr.contains("in steps of \"8 bit/s\""),
                "{cap}: {stderr}"
            );
        }
    }
}

#[test]
fn direct_path_has_the_requested_queues_and_is_recreated() {
    for bench in users().into_iter().filter_map(Bench::new) {
        if std::process::Command::new("ip").arg("-V").output().is_err() {
            return skip("ip (iproute2) is not installed");
        }
        let lab = Standing::up(&bench, "direct", &["0", "none", "1500", "3"]);
        let server = bench.serve(&lab.name, ADDRESSES[0]);
        for deleted_in in [None, Some("a"), Some("b")] {
            if let Some(guest) = deleted_in {
                printed(&bench.inside(&lab.name, guest, "ip", &["link", "del", "dir0"]).output().unwrap());
            }
            bench.text(["path", &lab.name, "direct"]);
            assert_eq!(bench.status(&lab.name)["observed"], "direct");
            for guest in ["a", "b"] {
                let queues = printed(
                    &bench.inside(&lab.name, guest, "ls", &["/sys/class/net/dir0/queues"]).output().unwrap(),
                );
                let count =
                    |kind: &str| queues.split_whitespace().filter(|name| name.starts_with(kind)).count();
                assert_eq!((count("rx-"), count("tx-")), (3, 3), "{guest}: {queues}");
            }
            let before = bench.bytes(&lab.name, "a", "dir0");
            let words = ["ask", ADDRESSES[0], &server.tcp, &server.udp, "50"];
            printed(&bench.echo(&lab.name, "a", &words).output().unwrap());
            assert!(bench.bytes(&lab.name, "a", "dir0") - before >= 200_000, "deleted in {deleted_in:?}");
        }
        printed(&bench.inside(&lab.name, "b", "ip", &["link", "set", "dir0", "down"]).output().unwrap());
        assert!(bench.status(&lab.name)["observed"].is_null(), "without carrier");
    }
}

#[test]
fn two_labs_can_run_at_the_same_time() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let (one, two) = (Standing::up(&bench, "one", &["5"]), Standing::up(&bench, "two", &["7"]));
        assert!(bench.networks(&one.name).is_disjoint(&bench.networks(&two.name)));
        assert!(bench.lists(&one.name) && bench.lists(&two.name));
        bench.text(["path", &one.name, "accelerated"]);
        assert_eq!(bench.status(&two.name)["path"], "synthetic");
        for lab in [&one, &two] {
            let server = bench.serve(&lab.name, ADDRESSES[0]);
            let words = ["ask", ADDRESSES[0], &server.tcp, &server.udp, "20"];
            printed(&bench.echo(&lab.name, "a", &words).output().unwrap());
        }
    }
}

#[test]
fn removed_vf_is_replaced_by_the_synthetic_path_until_it_returns() {
    for bench in users().into_iter().filter_map(Bench::new) {
        if std::process::Command::new("ip").arg("-V").output().is_err() {
            return skip("ip (iproute2) is not installed");
        }
        let lab = Standing::up(&bench, "yank", &["20"]);
        let server = bench.serve(&lab.name, ADDRESSES[0]);
        let exchange = || {
            let words = ["ask", ADDRESSES[0], &server.tcp, &server.udp, "50"];
            printed(&bench.echo(&lab.name, "a", &words).output().unwrap());
        };
        for words in [["set", "vf0", "down"].as_slice(), &["del", "vf0"]] {
            bench.text(["path", &lab.name, "accelerated"]);
            let ip: Vec<&str> = std::iter::once("link").chain(words.iter().copied()).collect();
            printed(&bench.inside(&lab.name, "a", "ip", &ip).output().unwrap());
            assert!(bench.status(&lab.name)["observed"].is_null(), "after {words:?}");
            let before = bench.bytes(&lab.name, "a", "syn0");
            exchange();
            assert!(bench.bytes(&lab.name, "a", "syn0") - before >= 200_000, "after {words:?}");
            bench.text(["path", &lab.name, "accelerated"]);
            let before = bench.bytes(&lab.name, "a", "vf0");
            exchange();
            assert!(bench.bytes(&lab.name, "a", "vf0") - before >= 200_000, "after setting the path again");
        }
    }
}

#[test]
fn path_is_restored_and_counters_show_which_path_carried_the_bytes() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "events", &["20"]);
        let server = bench.serve(&lab.name, ADDRESSES[0]);
        let exchange = || {
            let words = ["ask", ADDRESSES[0], &server.tcp, &server.udp, "50"];
            printed(&bench.echo(&lab.name, "a", &words).output().unwrap());
        };
        let perform = |kind: &str, guest: &str| -> serde_json::Value {
            serde_json::from_str(&bench.text(["perform", &lab.name, kind, guest])).unwrap()
        };
        bench.text(["path", &lab.name, "accelerated"]);
        for (kind, guest) in
            [("remove", "a"), ("graceful", "b"), ("carrier", "b"), ("carrier", "a"), ("down", "a")]
        {
            let done = perform(kind, guest);
            assert!(done["began_ns"].as_u64() <= done["ended_ns"].as_u64(), "{kind}: {done}");
            let before = bench.bytes(&lab.name, guest, "syn0");
            exchange();
            assert!(bench.bytes(&lab.name, guest, "syn0") - before >= 200_000, "after {kind} of {guest}");
            let done = perform("return", guest);
            assert_eq!(
                bench.status(&lab.name)["observed"],
                "accelerated",
                "after the return of {kind}: {done}"
            );
            let before = bench.bytes(&lab.name, guest, "vf0");
            exchange();
            assert!(bench.bytes(&lab.name, guest, "vf0") - before >= 200_000, "after the return of {kind}");
        }
        perform("remove", "a");
        perform("add-nic", "b");
        exchange();
        bench.text(["restore", &lab.name]);
        assert_eq!(bench.status(&lab.name)["observed"], "accelerated");
        // Adding it again succeeds only if it was removed.
        perform("add-nic", "b");
        perform("remove-nic", "b");
    }
}
