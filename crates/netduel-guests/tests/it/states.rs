//! States of virtual functions, queues and NUMA nodes as `inspect` shows them, made on real drivers, and remedies that end them.
use netduel_guests::{Bed, Guest};
use serde_json::Value;

use super::coordinator::INSPECT;
use super::inspected::interface;
use super::run;

/// Waits until the other guest answers over net_failover.
pub const REACH_PEER: &str = "until ping -c 1 -W 1 10.3.0.2; do usleep 50000; done";

/// States of virtual functions and queues are inspected and remedied. The function with an address of its own is gone afterwards.
pub fn check_states(bed: &mut Bed) {
    one_core_for_all_queues_and_a_link_that_is_down_are_found(bed);
    down_function_is_idle(bed);
    unbound_function_has_no_driver(bed);
    removed_functions_leave_the_synthetic_path(bed);
    function_with_a_late_address_is_unpaired(bed);
    one_queue_of_two_is_found(bed);
}

/// The NICs of the scene are at the second of two NUMA nodes. `inspected`: the guests.
pub fn check_nodes(inspected: &Value) {
    let host = &inspected["hosts"][0];
    let nodes = host["facts"]["numa_nodes"].as_array().unwrap();
    let cores: Vec<&Value> = nodes.iter().map(|node| &node["cores"]).collect();
    assert_eq!(cores, [&Value::from(vec![0]), &Value::from(vec![1])], "{nodes:#?}");
    for name in ["vmx0", "virt0"] {
        assert_eq!(interface(host, name)["numa_node"], 1, "{:#}", interface(host, name));
    }
}

/// Ends when the interrupts of the queues of pf0 are where they were sent: one that is moved stays until it occurs, as igb makes each do every
/// two seconds.
const INTERRUPTS_MOVED: &str = "for i in $(ls /sys/class/net/pf0/device/msi_irqs); do case $(ls /proc/irq/$i) in *pf0-*) \
     until [ $(cat /proc/irq/$i/smp_affinity_list) = $(cat /proc/irq/$i/effective_affinity_list) ]; do usleep 50000; done ;; esac; done";

/// Each remedy ends what its finding is about. What is found there leaves the function below net_failover active.
fn one_core_for_all_queues_and_a_link_that_is_down_are_found(bed: &mut Bed) {
    let make = "for i in $(ls /sys/class/net/pf0/device/msi_irqs); do case $(ls /proc/irq/$i) in *pf0-*) \
         echo 1 > /proc/irq/$i/smp_affinity_list ;; esac; done; ip link set vf1 down";
    let guest = &bed.guests()[0];
    run(guest, make);
    run(guest, INTERRUPTS_MOVED);
    let found = [("interrupts-on-one-core", "pf0"), ("link-down", "vf1")];
    let host = inspected(guest);
    assert_eq!(host.state(), ("active", Some("vf0")));
    for (id, interface) in found {
        remedy(guest, host.finding(id, interface));
    }
    run(guest, INTERRUPTS_MOVED);
    let host = inspected(guest);
    for finding in host.findings() {
        assert!(
            !found.iter().any(|(id, interface)| finding["id"] == *id && finding["interface"] == *interface),
            "its command did not help: {finding:#}"
        );
    }
}

/// Fails when the other guest answers over net_failover, and ends when its packets have come to the standby, however late.
const LOST_AT_THE_STANDBY: &str = "received() { cat /sys/class/net/fo0nsby/statistics/rx_packets; }; before=$(received); \
     while :; do if ping -c 1 -W 1 10.3.0.2; then exit 1; fi; [ $(received) -eq $before ] || exit 0; done";

/// Paired and down: nothing is received until the remedy has run.
fn down_function_is_idle(bed: &mut Bed) {
    run(&bed.guests()[0], "ip link set vf0 down");
    let host = inspected(&bed.guests()[0]);
    assert_eq!(host.state(), ("idle", Some("vf0")));
    let guest = &bed.guests()[0];
    run(guest, LOST_AT_THE_STANDBY);
    let finding = host.finding("vf-idle", "fo0");
    assert_eq!(finding["severity"], "warning", "{finding:#}");
    assert!(finding["why"].as_str().unwrap().contains("nothing is received"), "{finding:#}");
    remedy(guest, finding);
    run(guest, &format!(". /scene.sh; up vf0; {REACH_PEER}"));
    assert_eq!(inspected(&bed.guests()[0]).state(), ("active", Some("vf0")));
}

/// On the bus without a driver: the standby carries the traffic, and the remedy gives the function its driver again.
fn unbound_function_has_no_driver(bed: &mut Bed) {
    let guest = &bed.guests()[0];
    let slot = run(guest, "basename $(readlink /sys/class/net/vf0/device)").trim().to_owned();
    let mac = guest.mac("fo0").unwrap();
    run(guest, &format!("echo {slot} > /sys/bus/pci/drivers/igbvf/unbind; {REACH_PEER}"));
    let host = inspected(&bed.guests()[0]);
    assert_eq!(host.state(), ("no-driver", None));
    assert_eq!(host.accelerated()["slot"], slot.as_str());
    let finding = host.finding("function-without-driver", "fo0");
    assert_eq!(finding["severity"], "problem", "{finding:#}");
    let guest = &bed.guests()[0];
    remedy(guest, finding);
    run(guest, &format!(". /scene.sh; rename {mac} igbvf vf0; up vf0; {REACH_PEER}"));
    assert_eq!(inspected(&bed.guests()[0]).state(), ("active", Some("vf0")));
}

/// Taken away by the physical function: there is no function, which outside of a cloud is no fault.
fn removed_functions_leave_the_synthetic_path(bed: &mut Bed) {
    let remove = format!("echo 0 > /sys/class/net/pf0/device/sriov_numvfs; {REACH_PEER}");
    run(&bed.guests()[0], &remove);
    let host = inspected(&bed.guests()[0]);
    assert_eq!(host.state(), ("synthetic-only", None));
    let about_functions =
        ["vf-idle", "vf-unpaired", "vf-without-interface", "function-without-driver", "synthetic-only"];
    let found: Vec<&Value> =
        host.findings().filter(|one| about_functions.iter().any(|id| one["id"] == *id)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The kernel pairs a function when its interface appears. This one gets the address of the standby afterwards; its physical function
/// gives it the same address when its driver is bound again.
fn function_with_a_late_address_is_unpaired(bed: &mut Bed) {
    let guest = &bed.guests()[0];
    let mac = guest.mac("fo0").unwrap();
    let script = format!(
        "set -e; echo 1 > /sys/class/net/pf0/device/sriov_numvfs; folder=/sys/class/net/pf0/device/virtfn0/net; \
         until [ -e $folder/* ]; do usleep 50000; done; name=$(ls $folder); \
         ip link set $name address {mac}; ip link set pf0 vf 0 mac {mac}; ip link set $name name late0"
    );
    run(guest, &script);
    let host = inspected(&bed.guests()[0]);
    assert_eq!(host.state(), ("unpaired", Some("late0")));
    let finding = host.finding("vf-unpaired", "fo0");
    assert_eq!(finding["severity"], "problem", "{finding:#}");
    let guest = &bed.guests()[0];
    remedy(guest, finding);
    run(guest, &format!(". /scene.sh; rename {mac} igbvf vf0; up vf0; {REACH_PEER}"));
    assert_eq!(inspected(&bed.guests()[0]).state(), ("active", Some("vf0")));
}

/// Fewer queues than cores, and the remedy takes as many as there are.
fn one_queue_of_two_is_found(bed: &mut Bed) {
    run(&bed.guests()[0], "ethtool -L pf0 combined 1");
    let host = inspected(&bed.guests()[0]);
    assert_eq!(host.queues_of("pf0"), (1, 2));
    remedy(&bed.guests()[0], host.finding("one-queue", "pf0"));
    let host = inspected(&bed.guests()[0]);
    assert_eq!(host.queues_of("pf0"), (2, 2));
    assert_eq!(host.findings().find(|one| one["id"] == "one-queue" && one["interface"] == "pf0"), None);
}

/// Guest a in a document of `inspect`.
struct Inspected(Value);

/// By the program in the guest itself: a coordinator would make a connection and read the program each time.
#[track_caller]
fn inspected(guest: &Guest) -> Inspected {
    let text = run(guest, &format!("netduel {}", INSPECT.join(" ")));
    let mut document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Inspected(document["hosts"][0].take())
}

impl Inspected {
    /// The state of the interface above the function.
    #[track_caller]
    fn accelerated(&self) -> &Value {
        let states = self.0["accelerated_networking"].as_array().unwrap();
        states.iter().find(|state| state["interface"] == "fo0").unwrap_or_else(|| panic!("{states:#?}"))
    }

    /// The name of that state and the function.
    #[track_caller]
    fn state(&self) -> (&str, Option<&str>) {
        let state = self.accelerated();
        (state["state"].as_str().unwrap(), state["function"].as_str())
    }

    /// Queues in use, and at most.
    #[track_caller]
    fn queues_of(&self, name: &str) -> (u64, u64) {
        let combined = &interface(&self.0, name)["channels"]["combined"];
        (combined["now"].as_u64().unwrap(), combined["max"].as_u64().unwrap())
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.0["findings"].as_array().unwrap().iter()
    }

    #[track_caller]
    fn finding(&self, id: &str, interface: &str) -> &Value {
        self.findings()
            .find(|finding| finding["id"] == id && finding["interface"] == interface)
            .unwrap_or_else(|| panic!("no {id} of {interface}: {:#}", self.0["findings"]))
    }
}

/// Runs the command of a finding.
#[track_caller]
fn remedy(guest: &Guest, finding: &Value) {
    run(guest, finding["command"].as_str().unwrap());
}
