//! Rejected requests and their error messages.
use std::os::fd::OwnedFd;
use std::process::Command;

use netduel_lab::{KeeperCommand, Lab, LabError, Lifetime};
use netduel_model::ids::LabName;
use netduel_model::plan::resolved;
use netduel_test_support::skip;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::{Value, json};

use crate::bench::{Bench, Standing, User, name_for, users};

const SPEC: resolved::Lab = resolved::Lab { rules: 0, cap: None, mtu: 1500, queues: 1 };

#[test]
fn missing_lab_is_reported() {
    let name = LabName::new(format!("nowhere-{}", std::process::id())).unwrap();
    assert_eq!(Lab::connect(&name).unwrap_err(), LabError::NoSuchLab { name: name.clone() });
    let error = netduel_lab::exec(&name, "a", &["true".into()]).unwrap_err();
    assert_eq!(error, LabError::NoSuchLab { name });
}

/// A socket of the kind that keepers have.
fn socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// The answer of a keeper to a request.
fn answer(keeper: &OwnedFd, request: &Value) -> Value {
    rustix::net::send(keeper, request.to_string().as_bytes(), SendFlags::empty()).unwrap();
    let mut buffer = [0; 4096];
    let (length, _) = rustix::net::recv(keeper, &mut buffer, RecvFlags::empty()).unwrap();
    serde_json::from_slice(&buffer[..length]).unwrap()
}

#[test]
fn keeper_refuses_other_versions_and_always_obeys_down() {
    let Some(bench) = Bench::new(User::Own) else { return };
    let lab = Standing::up(&bench, "versions", &["0"]);
    let table = std::fs::read("/proc/net/unix").unwrap();
    let table = String::from_utf8_lossy(&table);
    let end = format!("-{}", lab.name);
    let name =
        table.split_whitespace().find_map(|word| word.strip_prefix('@').filter(|name| name.ends_with(&end)));
    let address = SocketAddrUnix::new_abstract_name(name.unwrap().as_bytes()).unwrap();
    let keeper = socket();
    rustix::net::connect(&keeper, &address).unwrap();
    let refused = json!({ "answer": "other-version" });
    // Version 1 had the same request, and answered with other documents.
    assert_eq!(answer(&keeper, &json!({ "version": 1, "ask": { "ask": "status" } })), refused);
    let newer = json!({ "version": 9999, "ask": { "ask": "down" } });
    assert_eq!(answer(&keeper, &newer), json!({ "answer": "done" }));
}

#[test]
fn unknown_host_is_rejected_with_the_known_ones() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "hosts", &["0"]);
        let output = bench.inside(&lab.name, "c", "true", &[]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains("find host c") && stderr.contains("h1"),
            "{stderr}"
        );
    }
}

#[test]
fn error_of_a_dead_keeper_has_its_last_output() {
    let name = LabName::new(format!("dies-{}", std::process::id())).unwrap();
    for lifetime in [Lifetime::Attached, Lifetime::Standing] {
        let words = ["-c", "echo the disk is on fire >&2; exit 1"].map(str::to_owned).to_vec();
        let keeper = KeeperCommand { program: "/bin/sh".into(), words };
        match Lab::up(&name, &SPEC, lifetime, &keeper).unwrap_err() {
            LabError::KeeperDied { last_words, .. } => {
                assert_eq!(last_words.as_deref(), Some("the disk is on fire"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn invalid_keeper_program_is_named_in_the_error() {
    let name = LabName::new(format!("absent-{}", std::process::id())).unwrap();
    let keeper = KeeperCommand { program: "/no/such/program".into(), words: Vec::new() };
    let error = Lab::up(&name, &SPEC, Lifetime::Attached, &keeper).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

#[test]
fn refused_mtu_is_reported_with_its_interface() {
    let Some(bench) = users().first().copied().and_then(Bench::new) else { return };
    let output = bench.lab(["up", &name_for("mtu"), "0", "none", "20"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("a/eth0"), "{stderr}");
}

#[test]
fn error_without_namespaces_names_the_sysctl() {
    let Some(bench) = users().first().copied().and_then(Bench::new) else { return };
    // In a user namespace that permits no further ones, without the privilege to work without.
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script, "sh"])
        .arg(bench.program("lab"))
        .args(["up", &name_for("refused"), "0"])
        .output();
    let Ok(output) = output else { return skip("unshare (util-linux) is not installed") };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the lab was built");
    assert!(stderr.contains("user.max_user_namespaces") && stderr.contains("run as root"), "{stderr}");
}
