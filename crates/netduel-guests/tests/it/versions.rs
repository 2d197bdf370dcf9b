//! Kernels older than that of the other scenes: traffic runs, and what the kernel lacks is named. Tests start in
//! the order of their names, and those of this module, which are short, come last.
use netduel_guests::{Bed, Kernel, Scene};
use netduel_test_support::skip;
use serde_json::Value;

use super::coordinator::{Coordinator, assert_all_valid, plan};
use super::inspected::interface;
use super::pace::Pace;
use super::scenes::with_scene;
use super::{end, prepared, run};

#[test]
fn traffic_runs_on_linux_6_1() {
    with_scene("linux-6.1", &[1], |mut bed, timed| {
        timed.check("traffic", || {
            let (_, report) = check(&mut bed, timed.pace, "6.1.", &[WORKLOADS, IO_URING].concat());
            io_uring_reports_copies(&report);
        });
        end(bed);
    });
}

#[test]
fn traffic_runs_on_linux_5_10_and_what_it_lacks_is_named() {
    let scene = Scene::named("linux-5.10").unwrap();
    assert_eq!(scene.kernel, Kernel::Bullseye);
    let Some(prepared) = prepared() else { return };
    if !prepared.has_kernel(scene.kernel) {
        return skip(
            "there is no Linux 5.10: with REQUIRE_ALL=1 `cargo xtask` fetches it, or prints before the tests why it cannot; \
             `cargo xtask guests up linux-5.10 true` fetches it, too",
        );
    }
    with_scene("linux-5.10", &[1], |mut bed, timed| {
        let (coordinator, _) = timed.check("traffic", || check(&mut bed, timed.pace, "5.10.", WORKLOADS));
        timed.check("refused workloads", || refused_workloads_are_explained(&bed, &coordinator));
        end(bed);
    });
}

/// Facts and traffic of both kernels. Returns the report as well.
fn check(bed: &mut Bed, pace: Pace, release: &str, workloads: &str) -> (Coordinator, Value) {
    for guest in bed.guests() {
        let found = run(guest, "uname -r");
        assert!(found.starts_with(release), "{found}");
    }
    let coordinator = Coordinator::new(bed, pace);
    let document = coordinator.inspect(bed, &["ssh:a", "ssh:b"]);
    for host in document["hosts"].as_array().unwrap() {
        let nic = interface(host, "virt0");
        assert_eq!((&nic["driver"], &nic["channels"]["combined"]["now"]), (&"virtio_net".into(), &2.into()));
        // The kernel tells them from Linux 6.3 on.
        assert_eq!(nic["xdp_features"], Value::Null, "{nic:#}");
    }
    let report = coordinator.report(bed, &plan("10.1.0.2", TWO_ARMS, workloads, 2));
    assert_all_valid(&report, 2 * 2 * workloads.matches("[[workloads]]").count() as u64);
    (coordinator, report)
}

/// The stable version 6.1.2 has the report of copies of Linux 6.2, so no arm has the note of kernels without it.
#[track_caller]
fn io_uring_reports_copies(report: &Value) {
    let workload = report["workloads"].as_array().unwrap().last().unwrap();
    assert_eq!(workload["name"], "ring", "{workload:#}");
    for arm in workload["arms"].as_array().unwrap() {
        let errors = arm["errors"].as_array().unwrap();
        assert!(errors.iter().all(|error| error["call"] != "io_uring SEND_ZC"), "{errors:#?}");
    }
}

/// What Linux 5.10 has no engine for, and the text that names the version with it.
const REFUSED: [(&str, &str); 2] =
    [(IO_URING, "it needs Linux 6.0 or newer"), (KERNEL_GENERATOR, "the kernel generator 5.18")];

/// A run for each: several refused workloads of an arm in a row end a run.
fn refused_workloads_are_explained(bed: &Bed, coordinator: &Coordinator) {
    for (workload, because) in REFUSED {
        let plan = coordinator.plan(&plan("10.1.0.2", TWO_ARMS, workload, 2));
        let printed = coordinator.run(bed, &["run", &plan]).expect_code(6);
        let failures: Vec<&str> = printed.stderr.lines().filter(|line| line.contains("failed:")).collect();
        assert!(
            failures.iter().any(|line| line.contains(because)),
            "{because:?} is not in {failures:#?}\n{}",
            printed.stderr
        );
    }
}

const TWO_ARMS: &[(&str, &str)] = &[("one", ""), ("two", "")];

/// One of each kind, with the engines that ask most of a kernel.
const WORKLOADS: &str = "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\nduration = \"300 ms\"\n\
     [[workloads]]\nname = \"datagrams\"\ntype = \"udp-stream\"\nduration = \"300 ms\"\nrate = \"20 Mbit/s\"\n\
     [[workloads]]\nname = \"trips\"\ntype = \"tcp-rr\"\nduration = \"300 ms\"\n\
     [[workloads]]\nname = \"packets\"\ntype = \"pps\"\nduration = \"300 ms\"\npacket_rate = \"1000 /s\"\n\
     [[workloads]]\nname = \"counted\"\ntype = \"pps\"\nduration = \"300 ms\"\npacket_rate = \"1000 /s\"\ngenerator = \"xdp\"\n\
     receiver = \"count\"\n";

const IO_URING: &str =
    "[[workloads]]\nname = \"ring\"\ntype = \"tcp-stream\"\nduration = \"300 ms\"\nengine = \"io-uring\"\n";

const KERNEL_GENERATOR: &str = "[[workloads]]\nname = \"made\"\ntype = \"pps\"\nduration = \"300 ms\"\n\
     generator = \"kernel\"\nreceiver = \"count\"\n";
