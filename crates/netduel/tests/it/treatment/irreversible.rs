//! Treatments that are refused because their undo would not restore the host: each leaves it as it was.
use std::fs;
use std::process::Command;

use netduel_agent::treatment::Treatments;
use netduel_model::plan::TreatmentAction;
use netduel_sys::link;
use netduel_test_support::skip;

use super::{guard, in_namespace, mtu, must};

fn ip(words: &str) {
    must("ip", &words.split(' ').collect::<Vec<_>>());
}

fn shown(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Applies a treatment that has to be refused: the error has these parts, and nothing is in force.
fn assert_refused(action: &TreatmentAction, parts: &[&str]) {
    let mut treatments = Treatments::new(guard());
    let refused =
        treatments.apply(std::slice::from_ref(action)).expect_err(&format!("{action:?}")).to_string();
    for part in parts {
        assert!(refused.contains(part), "{action:?}: {part:?} is not in: {refused}");
    }
    assert_eq!(treatments.applied(), 0, "{action:?}");
}

fn sysctl(name: &str, value: &str) -> TreatmentAction {
    TreatmentAction::Sysctl { name: name.to_owned(), value: value.to_owned() }
}

#[test]
fn ipv6_is_not_disabled_because_its_addresses_would_not_return() {
    in_namespace("irreversible::ipv6_is_not_disabled_because_its_addresses_would_not_return", || {
        ip("-6 address add fd99::1/64 dev va nodad");
        let parts =
            ["disable_ipv6", "removes IPv6 addresses and routes", "`command` treatment with an `undo`"];
        for name in ["net.ipv6.conf.va.disable_ipv6", "net.ipv6.conf.all.disable_ipv6"] {
            assert_refused(&sysctl(name, "1"), &parts);
            assert!(shown("-6 address show dev va").contains("fd99::1/64"), "{name}");
        }
        assert_refused(&sysctl("net.ipv6.conf.default.disable_ipv6", "1"), &["appears meanwhile"]);
    });
}

#[test]
fn forwarding_of_all_interfaces_is_not_changed_because_other_sysctls_would_not_return() {
    in_namespace(
        "irreversible::forwarding_of_all_interfaces_is_not_changed_because_other_sysctls_would_not_return",
        || {
            // Values that a change of `ip_forward` and its undo do not leave.
            for (name, value) in [("all/accept_redirects", "0"), ("va/forwarding", "1")] {
                fs::write(format!("/proc/sys/net/ipv4/conf/{name}"), value).unwrap();
            }
            let state = || {
                [
                    "ipv4/ip_forward",
                    "ipv4/conf/all/accept_redirects",
                    "ipv4/conf/va/forwarding",
                    "ipv6/conf/va/forwarding",
                ]
                .map(|name| fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap())
            };
            let before = state();
            for (name, lost) in [
                ("net.ipv4.ip_forward", "accept_redirects"),
                ("net.ipv4.conf.all.forwarding", "accept_redirects"),
                ("net.ipv6.conf.all.forwarding", "router advertisements"),
            ] {
                assert_refused(&sysctl(name, "1"), &[name, lost, "`command` treatment with an `undo`"]);
                assert_eq!(state(), before, "{name}");
            }
            // That of one interface is its value only.
            let mut treatments = Treatments::new(guard());
            treatments.apply(&[sysctl("net.ipv4.conf.va.forwarding", "0")]).unwrap();
            assert_ne!(state(), before);
            treatments.undo_all().unwrap();
            assert_eq!(state(), before);
        },
    );
}

#[test]
fn generation_of_ipv6_addresses_is_not_changed_because_addresses_would_stay() {
    in_namespace(
        "irreversible::generation_of_ipv6_addresses_is_not_changed_because_addresses_would_stay",
        || {
            let mode = || fs::read_to_string("/proc/sys/net/ipv6/conf/va/addr_gen_mode").unwrap();
            let before = mode();
            let secret = "2001:db8:1:2:3:4:5:6";
            for (name, value, lost) in [
                ("net.ipv6.conf.va.addr_gen_mode", "3", "link-local address"),
                ("net.ipv6.conf.all.addr_gen_mode", "3", "of each interface"),
                ("net.ipv6.conf.default.addr_gen_mode", "3", "appears meanwhile"),
                ("net.ipv6.conf.va.stable_secret", secret, "also sets `addr_gen_mode`"),
                ("net.ipv6.conf.default.stable_secret", secret, "also sets `addr_gen_mode`"),
            ] {
                assert_refused(&sysctl(name, value), &[name, lost, "`command` treatment with an `undo`"]);
                assert_eq!(mode(), before, "{name}");
            }
        },
    );
}

#[test]
fn mtu_is_not_lowered_below_that_of_a_macvlan_because_it_would_not_return() {
    in_namespace(
        "irreversible::mtu_is_not_lowered_below_that_of_a_macvlan_because_it_would_not_return",
        || {
            let words = "link add link va name mv0 type macvlan";
            if !Command::new("ip").args(words.split(' ')).status().unwrap().success() {
                return skip("this kernel has no macvlan");
            }
            let parts = [
                "set the MTU of va to 1400 bytes",
                "(mv0: 1500 bytes)",
                "`command` treatment with an `undo`",
            ];
            assert_refused(&mtu(1400), &parts);
            assert_eq!((link::mtu("va").unwrap(), link::mtu("mv0").unwrap()), (1500, 1500));
            // A smaller one stays as it is.
            ip("link set mv0 mtu 1300");
            let mut treatments = Treatments::new(guard());
            treatments.apply(&[mtu(1400)]).unwrap();
            assert_eq!((link::mtu("va").unwrap(), link::mtu("mv0").unwrap()), (1400, 1300));
            treatments.undo_all().unwrap();
            assert_eq!((link::mtu("va").unwrap(), link::mtu("mv0").unwrap()), (1500, 1300));
        },
    );
}
