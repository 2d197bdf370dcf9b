//! What only the driver of a NIC has: hardware time stamps, busy polling, XDP and AF_XDP. Facts of trials, never their rates.
use netduel_guests::Bed;
use serde_json::Value;

use super::coordinator::{Coordinator, assert_all_valid, plan, warnings};
use super::inspected::interface;
use super::treatments::await_links;
use super::{run, run_in_both};

/// An interface of guest a, and the address of the same interface of guest b.
#[derive(Debug, Clone, Copy)]
pub struct Nic {
    pub interface: &'static str,
    pub address: &'static str,
}

/// Time stamps and busy polling of igb, in one run, with a server whose wall clock is ahead of that of the client, and steps. One arm has the stamps
/// of sent packets enabled in the NIC, as an administrator does it: they are as those without, because stamps of one direction have no interval.
pub fn check_time_stamps_and_busy_polling(bed: &mut Bed, coordinator: &Coordinator, nic: Nic) {
    let before = stamping(bed, nic);
    let settings = check_answers_to_modes(bed, nic);
    let (stepped, enabled) = (step_in_trial(), stamps_in_the_nic(nic, STAMPS_SENT));
    let arms = [("ahead", ""), ("stepped", stepped.as_str()), (IN_THE_NIC, enabled.as_str())];
    let plan = plan(nic.address, &arms, &[STAMPED, BUSY_POLLING].concat(), 2);
    run(&bed.guests()[1], &step('+'));
    let report = coordinator.report(bed, &plan);
    run(&bed.guests()[1], &step('-'));
    assert_all_valid(&report, 12);
    assert_stamped(&report["workloads"][0], arms.len());
    assert_busy_polled(&report, 1, arms.len());
    assert_no_step_in_delays(&report, arms.len());
    assert_enabled(bed, "tx_type 1\n");
    assert_eq!(set_mode(bed, nic, ""), settings);
    assert_eq!(stamping(bed, nic), before);
}

/// The arm with stamps of the NIC.
const IN_THE_NIC: &str = "nic";

/// Modes of the time stamps of a NIC, as hwstamp_ctl(8) takes them.
const STAMPS_SENT: &str = "-t 1 -r 0";
const STAMPS_ALL: &str = "-t 1 -r 1";
const STAMPS_NOTHING: &str = "-t 0 -r 0";

/// The answers of igb to modes, for the 82576: it stamps every packet that it sends, and of those that it
/// receives the events of PTP only.
const STAMP_ANSWERS: [(&str, &str); 4] = [
    ("-t 1 -r 1", "SIOCSHWTSTAMP failed: Numerical result out of range"),
    ("-t 1 -r 12", "new settings:\ntx_type 1\nrx_filter 12\n"),
    (STAMPS_SENT, "new settings:\ntx_type 1\nrx_filter 0\n"),
    (STAMPS_NOTHING, "new settings:\ntx_type 0\nrx_filter 0\n"),
];

/// The answers of the driver to modes of the NIC's time stamps. Returns the settings, which it has afterwards as well.
fn check_answers_to_modes(bed: &mut Bed, nic: Nic) -> String {
    let before = set_mode(bed, nic, "");
    assert!(before.contains("current settings:\ntx_type 0\nrx_filter 0\n"), "{before}");
    for (mode, answer) in STAMP_ANSWERS {
        let printed = set_mode(bed, nic, mode);
        assert!(printed.contains(answer), "{mode}: {answer:?} is not in\n{printed}");
    }
    before
}

/// Sets a mode of the NIC's time stamps, or none, and returns the answer.
fn set_mode(bed: &mut Bed, nic: Nic, mode: &str) -> String {
    run(&bed.guests()[0], &format!("{} 2>&1 || true", words_of_mode(nic, mode)))
}

fn words_of_mode(nic: Nic, mode: &str) -> String {
    format!("hwstamp_ctl -i {} {mode}", nic.interface)
}

/// Keys of an arm whose trials have this mode in the NICs of both ends.
fn stamps_in_the_nic(nic: Nic, mode: &str) -> String {
    let words = |mode: &str| words_of_mode(nic, mode);
    format!(
        "treatments = [{{ command = [\"sh\", \"-c\", \"{} && {} >/tmp/stamps\"], \
         undo = [\"sh\", \"-c\", \"{}\"], on = \"both\" }}]",
        words(mode),
        words(""),
        words(STAMPS_NOTHING)
    )
}

/// The last trial with a mode had these settings at both ends.
#[track_caller]
fn assert_enabled(bed: &mut Bed, settings: &str) {
    for shown in run_in_both(bed.guests(), |_| "cat /tmp/stamps; rm /tmp/stamps".to_owned()) {
        assert!(shown.contains(settings), "{shown}");
    }
}

/// Far more than any delay.
const STEP_S: u64 = 1000;

/// Sets the wall clock of a guest forward (`+`) or back (`-`).
fn step(sign: char) -> String {
    format!("date -s @$(($(date +%s) {sign} {STEP_S}))")
}

/// Keys of an arm whose trials step the clock of the server when they have received some datagrams. They are counted without a program for
/// each look, so that the step comes early in the trial. A step that has begun is completed, and its undo waits for that.
fn step_in_trial() -> String {
    let away = format!(
        "received() {{ while read -r name count rest; do case $name$count in Udp:[0-9]*) received=$count ;; esac; \
         done < /proc/net/snmp; }}; received; from=$received; \
         (until received; [ $received -ge $((from + 20)) ]; do usleep 20000; done; trap '' TERM; {}; touch /tmp/stepped) \
         > /dev/null 2>&1 < /dev/null & echo $! > /tmp/stepper",
        step('+')
    );
    let back = format!(
        "read -r stepper < /tmp/stepper; kill $stepper; while [ -e /proc/$stepper/exe ]; do usleep 20000; done; \
         if rm /tmp/stepped; then {}; fi",
        step('-')
    );
    format!(
        "treatments = [{{ command = [\"sh\", \"-c\", {away:?}], undo = [\"sh\", \"-c\", {back:?}], on = \"server\" }}]"
    )
}

/// One-way delays are those of the network, with whatever the wall clocks show, and the report names the steps. Those with stamps of the NIC are left
/// out: a packet with such a stamp may lack that of the kernel.
#[track_caller]
fn assert_no_step_in_delays(report: &Value, count: usize) {
    let half_ns = STEP_S * 1_000_000_000 / 2;
    for arm in arms_of(&report["workloads"][0], count).iter().filter(|arm| arm["arm"] != IN_THE_NIC) {
        let one_way = &arm["stamps"]["one_way"];
        // The exchanges of a trial with a step may be too few.
        if one_way.is_null() && arm["arm"] == "stepped" {
            continue;
        }
        assert_eq!(one_way["clocks"], "estimated", "{arm:#}");
        let delays = [&one_way["client_to_server"]["max_ns"], &one_way["server_to_client"]["max_ns"]];
        for ns in delays.into_iter().chain([&one_way["error_ns"]]) {
            assert!(ns.as_u64().is_some_and(|ns| ns < half_ns), "{one_way:#}");
        }
    }
    let is_step = |text: &&str| text.contains("clock step: the wall clock of host b was stepped by ");
    assert!(warnings(report).iter().any(is_step), "{:#}", report["warnings"]);
}

/// Time stamps and XDP programs, in one run: for a driver without XDP that enables the stamps of both directions, and whose emulated NIC makes none.
/// They are enabled in one arm. `inspected`: the guests, guest a first.
pub fn check_time_stamps_and_xdp(bed: &mut Bed, coordinator: &Coordinator, nic: Nic, inspected: &Value) {
    let before = stamping(bed, nic);
    let settings = set_mode(bed, nic, "");
    check_xdp_features(inspected, nic, false);
    let [plain, (name, keys)] = XDP_ARMS;
    let keys = format!("{keys}\n{}", stamps_in_the_nic(nic, STAMPS_ALL));
    let plan = plan(nic.address, &[plain, (name, keys.as_str())], &[STAMPED, XDP].concat(), 2);
    let report = coordinator.report(bed, &plan);
    assert_all_valid(&report, 8);
    assert_stamped(&report["workloads"][0], XDP_ARMS.len());
    assert_xdp(&report["workloads"][1], false);
    assert_enabled(bed, "tx_type 1\nrx_filter 1\n");
    assert_eq!(set_mode(bed, nic, ""), settings);
    assert_eq!(stamping(bed, nic), before);
}

/// XDP programs of a driver that has XDP. igb restarts the interface for its program: no trial sees that. `inspected`: the guests, guest a first.
pub fn check_xdp(bed: &mut Bed, coordinator: &Coordinator, nic: Nic, inspected: &Value) {
    check_xdp_features(inspected, nic, true);
    let plan = plan(nic.address, &XDP_ARMS, XDP, 2);
    let report = coordinator.report(bed, &plan);
    assert_all_valid(&report, 4);
    assert_xdp(&report["workloads"][0], true);
    await_links(bed);
}

const STAMPED: &str = "[[workloads]]\nname = \"stamped\"\ntype = \"udp-rr\"\nduration = \"1 s\"\nrequest_rate = \"100 /s\"\n\
     size = \"128 B\"\ntimestamps = true\n";

/// What the NIC can stamp, which is packets.
fn stamping(bed: &mut Bed, nic: Nic) -> String {
    let printed = run(&bed.guests()[0], &format!("ethtool -T {}", nic.interface));
    for capability in ["hardware-transmit", "hardware-receive", "PTP Hardware Clock: "] {
        assert!(printed.contains(capability), "{capability} is not in\n{printed}");
    }
    assert!(!printed.contains("PTP Hardware Clock: none"), "{printed}");
    printed
}

/// The stamps of a trial are those of the kernel: netduel enables none of the NIC.
#[track_caller]
fn assert_stamped(workload: &Value, count: usize) {
    for arm in arms_of(workload, count) {
        let stamps = &arm["stamps"];
        assert!(stamps["complete"].as_u64().unwrap() > 0, "{stamps:#}");
        assert_eq!([&stamps["hardware"], &stamps["server_hardware"]], [&Value::Null; 2], "{stamps:#}");
    }
}

pub const BUSY_POLLING: &str =
    "[[workloads]]\nname = \"polled\"\ntype = \"tcp-rr\"\nduration = \"300 ms\"\nwait = \"busy-poll\"\n";

/// The socket options are accepted, and the packets come from a NAPI instance that the kernel can poll. `place` is that of the workload, `count` the
/// number of its arms.
#[track_caller]
pub fn assert_busy_polled(report: &Value, place: usize, count: usize) {
    let arms = arms_of(&report["workloads"][place], count);
    assert!(arms.iter().all(|arm| arm["workload"]["wait"] == "busy-poll"), "{report:#}");
    let without_napi = warnings(report).into_iter().find(|text| text.contains("no NAPI instance"));
    assert_eq!(without_napi, None);
}

/// An arm for each receiver that has an XDP program, by its name.
const XDP_ARMS: [(&str, &str); 2] =
    [("xdp", "set = { receiver = \"xdp\" }"), ("count", "set = { receiver = \"count\" }")];

const XDP: &str = "[[workloads]]\nname = \"packets\"\ntype = \"pps\"\ngenerator = \"xdp\"\n\
     duration = \"500 ms\"\nflows = 1\npacket_rate = \"1000 /s\"\n";

/// What XDP of the driver has in both guests. No driver here shares frames with AF_XDP sockets in Linux 6.12: virtio_net does from 6.13 on, igb
/// from 6.14.
#[track_caller]
fn check_xdp_features(inspected: &Value, nic: Nic, is_native: bool) {
    for host in inspected["hosts"].as_array().unwrap() {
        let features = interface(host, nic.interface)["xdp_features"].as_array().unwrap();
        let has = |name: &str| features.iter().any(|one| *one == name);
        assert_eq!((has("basic"), has("xsk-zerocopy")), (is_native, false), "{features:#?}");
    }
}

/// AF_XDP at both ends, and an XDP program that counts: in the driver where that has XDP, and with frames that are copied.
#[track_caller]
fn assert_xdp(workload: &Value, is_native: bool) {
    for (arm, (receiver, _)) in arms_of(workload, XDP_ARMS.len()).iter().zip(XDP_ARMS) {
        let packets = &arm["packets"][0];
        assert_eq!(packets["receiver"], receiver, "{packets:#}");
        assert!(packets["received"].as_u64().unwrap() > 0, "{packets:#}");
        let [sending, receiving] = &packets["spread"].as_array().unwrap()[..] else {
            panic!("two ends: {packets:#}")
        };
        assert_eq!(receiving["mode"], if is_native { "native" } else { "generic" }, "{receiving:#}");
        assert_eq!(receiving["zero_copy"].is_boolean(), receiver == "xdp", "{receiving:#}");
        assert_ne!(receiving["zero_copy"], true, "{receiving:#}");
        assert_eq!(sending["zero_copy"], false, "{sending:#}");
    }
}

/// The arms of a workload of a report, so many.
#[track_caller]
fn arms_of(workload: &Value, count: usize) -> &[Value] {
    let arms = workload["arms"].as_array().unwrap();
    assert_eq!(arms.len(), count, "{workload:#}");
    arms
}
