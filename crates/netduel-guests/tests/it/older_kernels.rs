//! Kernels older than that of the other scenes: traffic runs, and what the kernel lacks is named.
use netduel_guests::{Bed, Kernel, Scene};
use netduel_test_support::not_requested;
use serde_json::Value;

use super::coordinator::{Coordinator, assert_all_valid, plan};
use super::inspected::interface;
use super::scenes::with_scene;
use super::{end, prepared, run};

#[test]
fn traffic_runs_on_linux_6_1() {
    with_scene("linux-6.1", &[1], |mut bed, _| {
        check(&mut bed, "6.1.");
        end(bed);
    });
}

#[test]
fn traffic_runs_on_linux_5_10() {
    let scene = Scene::named("linux-5.10").unwrap();
    assert_eq!(scene.kernel, Kernel::Bullseye);
    if prepared().is_some_and(|prepared| !prepared.has_kernel(scene.kernel)) {
        return not_requested(
            "Linux 5.10; run `cargo xtask guests up linux-5.10 true` first, which fetches it",
        );
    }
    with_scene("linux-5.10", &[1], |mut bed, _| {
        check(&mut bed, "5.10.");
        end(bed);
    });
}

fn check(bed: &mut Bed, release: &str) {
    for guest in bed.guests() {
        let found = run(guest, "uname -r");
        assert!(found.starts_with(release), "{found}");
    }
    let coordinator = Coordinator::new(bed);
    let document = coordinator.inspect(bed, &["ssh:a", "ssh:b"]);
    for host in document["hosts"].as_array().unwrap() {
        let nic = interface(host, "virt0");
        assert_eq!((&nic["driver"], &nic["channels"]["combined"]["now"]), (&"virtio_net".into(), &2.into()));
        // The kernel tells them from Linux 6.3 on.
        assert_eq!(nic["xdp_features"], Value::Null, "{nic:#}");
    }
    let report = coordinator.report(bed, &plan("10.1.0.2", TWO_ARMS, WORKLOADS, 2));
    assert_all_valid(&report, 2 * 2 * WORKLOADS.matches("[[workloads]]").count() as u64);
}

const TWO_ARMS: &[(&str, &str)] = &[("one", ""), ("two", "")];

/// One of each kind, with the engines that ask most of a kernel.
const WORKLOADS: &str = "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\nduration = \"300 ms\"\n\
     [[workloads]]\nname = \"datagrams\"\ntype = \"udp-stream\"\nduration = \"300 ms\"\nrate = \"20 Mbit/s\"\n\
     [[workloads]]\nname = \"trips\"\ntype = \"tcp-rr\"\nduration = \"300 ms\"\n\
     [[workloads]]\nname = \"packets\"\ntype = \"pps\"\nduration = \"300 ms\"\npacket_rate = \"1000 /s\"\n\
     [[workloads]]\nname = \"counted\"\ntype = \"pps\"\nduration = \"300 ms\"\npacket_rate = \"1000 /s\"\ngenerator = \"xdp\"\n\
     receiver = \"count\"\n";
