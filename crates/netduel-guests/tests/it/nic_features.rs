//! What only the driver of a NIC has: hardware time stamps, busy polling, XDP and AF_XDP. Facts of trials, never their rates.
use netduel_guests::Bed;
use serde_json::Value;

use super::coordinator::{Coordinator, assert_all_valid, plan, warnings};
use super::inspected::interface;
use super::run;
use super::treatments::LastState;

/// An interface of guest a, and the address of the same interface of guest b.
#[derive(Debug, Clone, Copy)]
pub struct Nic {
    pub interface: &'static str,
    pub address: &'static str,
}

/// The NIC can stamp packets. Nothing has enabled that, and netduel enables nothing: the stamps of a trial are those of the kernel.
pub fn check_time_stamps(bed: &mut Bed, coordinator: &Coordinator, nic: Nic) {
    let stamping = || format!("ethtool -T {}", nic.interface);
    let before = run(&bed.guests()[0], &stamping());
    for capability in ["hardware-transmit", "hardware-receive", "PTP Hardware Clock: "] {
        assert!(before.contains(capability), "{capability} is not in\n{before}");
    }
    assert!(!before.contains("PTP Hardware Clock: none"), "{before}");
    let workload = "[[workloads]]\nname = \"rr\"\ntype = \"udp-rr\"\nduration = \"1 s\"\nrequest_rate = \"100 /s\"\n\
         size = \"128 B\"\ntimestamps = true\n";
    let report = coordinator.report(bed, &plan(nic.address, TWO_ARMS, workload, 2));
    assert_all_valid(&report, 4);
    for arm in arms_of(&report) {
        let stamps = &arm["stamps"];
        assert!(stamps["complete"].as_u64().unwrap() > 0, "{stamps:#}");
        assert_eq!([&stamps["hardware"], &stamps["server_hardware"]], [&Value::Null; 2], "{stamps:#}");
    }
    assert_eq!(run(&bed.guests()[0], &stamping()), before);
}

/// The socket options are accepted, and the packets come from a NAPI instance that the kernel can poll.
pub fn check_busy_polling(bed: &Bed, coordinator: &Coordinator, nic: Nic) {
    let workload =
        "[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"1 s\"\nwait = \"busy-poll\"\n";
    let report = coordinator.report(bed, &plan(nic.address, TWO_ARMS, workload, 2));
    assert_all_valid(&report, 4);
    assert!(arms_of(&report).iter().all(|arm| arm["workload"]["wait"] == "busy-poll"), "{report:#}");
    let without_napi = warnings(&report).into_iter().find(|text| text.contains("no NAPI instance"));
    assert_eq!(without_napi, None);
}

/// AF_XDP at both ends, and an XDP program that counts: in the driver where that has XDP, and with frames that are copied where the driver
/// does not share them. No program stays on an interface. igb restarts the interface for its program: no trial sees that.
pub fn check_xdp(
    bed: &mut Bed,
    coordinator: &Coordinator,
    state: &mut LastState,
    nic: Nic,
    is_native: bool,
) {
    let document = coordinator.inspect(bed, &["ssh:a"]);
    let features = &interface(&document["hosts"][0], nic.interface)["xdp_features"];
    let has = |feature: &str| features.as_array().unwrap().iter().any(|one| *one == feature);
    assert_eq!(has("basic"), is_native, "{features:#}");
    let plan = plan(nic.address, XDP_ARMS, XDP, 2);
    let report = state.is_kept_by(bed, |bed| coordinator.report(bed, &plan));
    assert_all_valid(&report, 4);
    for (arm, (receiver, _)) in arms_of(&report).iter().zip(XDP_ARMS) {
        let packets = &arm["packets"][0];
        assert_eq!(packets["receiver"], *receiver, "{packets:#}");
        assert!(packets["received"].as_u64().unwrap() > 0, "{packets:#}");
        let [sending, receiving] = &packets["spread"].as_array().unwrap()[..] else {
            panic!("two ends: {packets:#}")
        };
        assert_eq!(receiving["mode"], if is_native { "native" } else { "generic" }, "{receiving:#}");
        assert_eq!(receiving["zero_copy"].is_boolean(), *receiver == "xdp", "{receiving:#}");
        // A driver that shares frames may still copy those of a device without enough queues.
        if !has("xsk-zerocopy") {
            assert_ne!(receiving["zero_copy"], true, "{receiving:#}");
            assert_eq!(sending["zero_copy"], false, "{sending:#}");
        }
    }
}

const TWO_ARMS: &[(&str, &str)] = &[("one", ""), ("two", "")];

/// An arm for each receiver that has an XDP program, by its name.
const XDP_ARMS: &[(&str, &str)] =
    &[("xdp", "set = { receiver = \"xdp\" }"), ("count", "set = { receiver = \"count\" }")];

const XDP: &str = "[[workloads]]\nname = \"packets\"\ntype = \"pps\"\ngenerator = \"xdp\"\n\
     duration = \"1 s\"\nflows = 1\npacket_rate = \"1000 /s\"\n";

/// The arms of the only workload of a report.
#[track_caller]
fn arms_of(report: &Value) -> &[Value] {
    report["workloads"][0]["arms"].as_array().unwrap()
}
