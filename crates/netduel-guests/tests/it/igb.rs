//! The scene `igb`. Tests start in the order of their names, and this one takes the longest: the name of its
//! module lets it start before the others, which fill the other places meanwhile.
use std::fs;

use netduel_guests::Bed;
use serde_json::Value;

use super::coordinator::{Coordinator, FEW_ROUND_TRIPS, plan};
use super::device_treatments::{IGB_IN_FORCE, IGB_REFUSED, IGBVF_IN_FORCE};
use super::inspected::{check_remedies, interface, interface_of};
use super::killed::{check_killed, check_restored};
use super::nic_features::{Nic, check_time_stamps_and_busy_polling, check_xdp};
use super::scenes::with_scene;
use super::states::check_states;
use super::treatments::{InForce, State, Treated, check_refused};
use super::{assert_nothing_left, end, kill, network_namespace, processes, run, run_in_both};

#[test]
fn igb_scene_is_inspected_treated_and_restored_and_ends_with_its_holder() {
    with_scene("igb", &[1, 2, 3], |mut bed, timed| {
        for text in run_in_both(bed.guests(), |_| "netduel inspect".to_owned()) {
            println!("{text}");
            inspected_as_igb(&text);
        }
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        let inspected = timed.check("remedies", || check_remedies_and_data(&mut bed, &coordinator));
        let state = timed.check("state", || State::read(&mut bed));
        timed.check("treatments of a virtual function", || {
            check_restored(&mut bed, &coordinator, Treated::both("10.2.0.2", &IGBVF_IN_FORCE));
        });
        timed.check("refused treatments", || check_refused(&bed, &coordinator, "10.1.0.2", IGB_REFUSED));
        timed.check("function below net_failover", || {
            function_below_net_failover_is_not_set_down(&bed, &coordinator);
        });
        timed.check("active function", || {
            let document = inspected_with_an_expectation(&bed, &coordinator);
            active_function_is_shown_as_active(&document);
            data_of_a_client_is_that_of_the_expected_interface(&document);
        });
        // The next checks use the physical function: the virtual ones lose their links some time after this.
        let nic = Nic { interface: "pf0", address: "10.1.0.2" };
        timed.check("XDP", || check_xdp(&mut bed, &coordinator, nic, &inspected));
        timed.check("time stamps and busy polling", || {
            check_time_stamps_and_busy_polling(&mut bed, &coordinator, nic);
        });
        let [beside_rss, queues] = IGB_IN_FORCE;
        timed.check("killed processes", || {
            check_killed(&mut bed, &coordinator, Treated::client("10.1.0.2", &[beside_rss]));
        });
        timed.check("state before queues", || state.assert_kept(&mut bed));
        timed.check("queues after RSS", || queues_can_change_after_rss(&mut bed, &coordinator, queues));
        timed.check("state afterwards", || state.assert_kept(&mut bed));
        timed.check("states", || check_states(&mut bed));
        timed.check("queues by hand", || queues_can_be_changed_by_hand(&mut bed));
        timed.check("end of a QEMU", || guest_ends_with_its_qemu(&mut bed));
        let folder = bed.folder().to_owned();
        let namespace = network_namespace(&bed.first_process().to_string()).unwrap();
        kill(bed.first_process());
        bed.wait_for_end().unwrap();
        bed.guests()[1].wait_for_end().unwrap();
        let left = processes(&folder);
        // nsenter(1) reports the end of its QEMU to the guest, which reaps it when it is dropped.
        assert!(left.iter().all(|process| is_zombie(process)), "{left:?}");
        end(bed);
        assert_nothing_left(&folder, namespace);
    });
}

/// The remedies of both guests and of their pair, from two inspections of the hosts of a plan. Returns the second one.
fn check_remedies_and_data(bed: &mut Bed, coordinator: &Coordinator) -> Value {
    let arms = [("one", ""), ("two", "")];
    let plan = coordinator.plan(&plan("10.2.0.2", &arms, FEW_ROUND_TRIPS, 2));
    let set_mtu = |mtu: u32| format!("ip link set vf1 mtu {mtu}; . /scene.sh; up vf1");
    // A difference that the finding has to see: no other interface of guest a has this MTU.
    run(&bed.guests()[0], &set_mtu(1400));
    let words = ["--plan", plan.as_str()];
    let afterwards = check_remedies(bed, coordinator, &words, data_of_a_client_is_that_of_its_route);
    let findings = findings_of_the_pair(&afterwards);
    assert!(!findings.iter().any(|one| one["id"] == "mtu-differs"), "{findings:#?}");
    run_in_both(bed.guests(), |_| set_mtu(1500));
    afterwards
}

/// The NIC that carries the data is compared, and not that of the default route.
fn data_of_a_client_is_that_of_its_route(bed: &mut Bed, inspected: &Value) {
    let findings = findings_of_the_pair(inspected);
    // Both ends have their data on vf1, and the default route nowhere.
    let mtu = findings.iter().find(|one| one["id"] == "mtu-differs");
    let mtu = mtu.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(mtu["evidence"][0], "a: 1400 B; b: 1500 B", "{mtu:#}");
    // The remedy names b, whose MTU is the larger one.
    run(&bed.guests()[1], mtu["command"].as_str().unwrap());
    let others = ["device-differs", "family-missing", "acceleration-differs"];
    assert!(!findings.iter().any(|one| others.iter().any(|id| one["id"] == *id)), "{findings:#?}");
}

/// The findings about the one pair of hosts of a plan.
#[track_caller]
fn findings_of_the_pair(inspected: &Value) -> &[Value] {
    assert_eq!(inspected["hosts"].as_array().unwrap().len(), 2, "{:#}", inspected["hosts"]);
    let [pair] = &inspected["pairs"].as_array().unwrap()[..] else { panic!("{:#}", inspected["pairs"]) };
    pair["findings"].as_array().unwrap()
}

/// As an event of a failover: nothing would be received until the return.
fn function_below_net_failover_is_not_set_down(bed: &Bed, coordinator: &Coordinator) {
    let workload = "[[workloads]]\nname = \"failover\"\ntype = \"failover\"\nduration = \"1 s\"\nstreams = 0\n\
         events = [{ at = \"300 ms\", do = \"down\", interface = \"vf0\" }]\n";
    let plan = coordinator.plan(&plan("10.3.0.2", &[("one", ""), ("two", "")], workload, 2));
    let printed = coordinator.run(bed, &["run", &plan]);
    assert_ne!(printed.code, Some(0));
    let why = printed.stderr.lines().find(|line| line.contains("event 1 (down) was not made: "));
    assert!(why.is_some_and(|line| line.contains("net_failover")), "{}", printed.stderr);
}

/// The treatments before these left the RSS table as the driver made it, so that the number of queues can change.
fn queues_can_change_after_rss(bed: &mut Bed, coordinator: &Coordinator, queues: &[InForce]) {
    check_restored(bed, coordinator, Treated::both("10.1.0.2", &[queues]));
}

/// The RSS table is still that of the driver. Last: virtual functions lose their links some time after this.
fn queues_can_be_changed_by_hand(bed: &mut Bed) {
    let change = "set -e; for count in 1 2; do ethtool -L pf0 combined $count; ethtool -l pf0; done";
    for printed in run_in_both(bed.guests(), |_| change.to_owned()) {
        let counts: Vec<&str> = printed.lines().filter(|line| line.starts_with("Combined:")).collect();
        // At most and in use, after each change.
        assert_eq!(counts, ["Combined:\t2", "Combined:\t1", "Combined:\t2", "Combined:\t2"], "{printed}");
    }
}

/// The hosts of a plan that expects another interface of the client than its route names.
fn inspected_with_an_expectation(bed: &Bed, coordinator: &Coordinator) -> Value {
    let expected = "expect_interface = { client = \"pf0\" }";
    let arms = [("one", expected), ("two", expected)];
    let plan = coordinator.plan(&plan("10.2.0.2", &arms, FEW_ROUND_TRIPS, 2));
    coordinator.inspect(bed, &["--plan", &plan])
}

/// The NIC that the plan names is compared, and not that of the route: only the expected one differs from that of the server.
fn data_of_a_client_is_that_of_the_expected_interface(inspected: &Value) {
    let findings = findings_of_the_pair(inspected);
    let device = findings.iter().find(|one| one["id"] == "device-differs");
    let device = device.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(device["evidence"][0], "a: driver igb; b: driver igbvf", "{device:#}");
}

/// Packets have passed the function below net_failover.
fn active_function_is_shown_as_active(document: &Value) {
    for host in document["hosts"].as_array().unwrap() {
        let states = host["accelerated_networking"].as_array().unwrap();
        let state = states.iter().find(|state| state["interface"] == "fo0").unwrap_or(&Value::Null);
        assert_eq!((&state["state"], &state["function"]), (&"active".into(), &"vf0".into()), "{states:#?}");
        assert!(interface(host, "pf0")["driver"] == "igb");
    }
}

/// Driver, queues and virtual functions.
fn inspected_as_igb(text: &str) {
    let physical = interface_of(text, "pf0");
    assert!(physical.starts_with("igb, up") && physical.contains("queues: 2 of at most 2,"), "{text}");
    assert!(physical.contains("RSS: even over 2 queues"), "{text}");
    // Values to 3 are modes of its moderation, not times, and it counts no frames.
    assert!(physical.contains("(mode 3)"), "{text}");
    assert!(!physical.contains("3 us") && !physical.contains("0 frames"), "{text}");
    for name in ["vf0", "vf1"] {
        let function = interface_of(text, name);
        assert!(function.starts_with("igbvf, up") && function.contains(", virtual function\n"), "{text}");
        assert!(function.contains("queues: 1,"), "{text}");
    }
    let master = interface_of(text, "fo0");
    assert!(
        master.starts_with("net_failover, up") && master.contains("active: vf0 has carried packets"),
        "{text}"
    );
    assert!(interface_of(text, "fo0nsby").starts_with("virtio_net, up"), "{text}");
}

/// A killed QEMU ends its guest, and the other guest goes on.
fn guest_ends_with_its_qemu(bed: &mut Bed) {
    let qemus: Vec<u32> = processes(bed.folder())
        .into_iter()
        .filter(|id| {
            fs::read_to_string(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.contains("netduel.name=a"))
        })
        .filter(|id| {
            fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("qemu"))
        })
        .map(|id| id.parse().unwrap())
        .collect();
    let [qemu] = qemus[..] else { panic!("one QEMU of guest a: {qemus:?}") };
    kill(qemu);
    bed.guests()[0].wait_for_end().unwrap();
    let refused = bed.guests()[0].ssh("true").unwrap_err().to_string();
    assert!(refused.contains("run a command in guest a"), "{refused}");
    assert_eq!(run(&bed.guests()[1], "hostname"), "b\n");
}

fn is_zombie(process: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}
