//! What guests of a scene are: one boot for all checks of a scene.
use netduel_guests::{Bed, Prepared, SCENES_AT_A_TIME, Scene};

use super::bond::ADD_BOND;
use super::coordinator::{Coordinator, assert_all_valid, plan, warnings};
use super::device_treatments::{
    E1000E_IN_FORCE, E1000E_REFUSED, PRIMARY_REMOVED, VIRTIO_IN_FORCE, VIRTIO_REFUSED, VMXNET3_IN_FORCE,
    VMXNET3_REFUSED,
};
use super::failover::{check_bond, check_changes_below_net_failover, check_failovers_below_net_failover};
use super::failover_cases::PRIMARY_IS_BACK;
use super::inspected::{BOTH, check_remedies, interface_of};
use super::killed::check_restored;
use super::nic_features::{BUSY_POLLING, Nic, assert_busy_polled, check_time_stamps_and_xdp, check_xdp};
use super::pace::ProcessorTime;
use super::places::Places;
use super::queues::{
    MORE_THAN_THE_PATH, aborted_stream_sends_nothing_afterwards, assert_own_packets,
    dropped_buffers_are_reported_as_buffers, slow_down,
};
use super::readme::example_of_the_readme_runs;
use super::states::check_nodes;
use super::timed::Timed;
use super::treatments::{State, Treated, check_refused};
use super::{answer_of, end, prepared, reach, run, run_in_both, until};

/// Also where another program than xtask runs the tests.
static SCENES: Places = Places::new(SCENES_AT_A_TIME);

/// Boots a scene, checks that both guests answer and reach each other in the subnets, and passes the bed on.
pub fn with_scene(name: &str, subnets: &[u8], checks: impl FnOnce(Bed, Timed)) {
    let Some(prepared) = prepared() else { return };
    // A test that failed has left nothing: its bed ended with it.
    let _place = SCENES.take();
    boot(&prepared, name, subnets, checks);
}

/// The same for checks that mostly wait, beside the scenes that use the cores.
pub fn with_waiting_scene(name: &str, subnets: &[u8], checks: impl FnOnce(Bed, Timed)) {
    if let Some(prepared) = prepared() {
        boot(&prepared, name, subnets, checks);
    }
}

fn boot(prepared: &Prepared, name: &str, subnets: &[u8], checks: impl FnOnce(Bed, Timed)) {
    let scene = Scene::named(name).unwrap();
    let timed = Timed::new(scene.name);
    let processors = ProcessorTime::read();
    let mut bed = Bed::boot(prepared, scene).unwrap_or_else(|error| panic!("failed to {error}"));
    timed.boot(&bed);
    timed.check("guests reach each other", || guests_reach_each_other(&mut bed, subnets));
    let timed = timed.paced_since(&processors);
    timed.check("all checks", || checks(bed, timed));
}

fn guests_reach_each_other(bed: &mut Bed, subnets: &[u8]) {
    let printed = run_in_both(bed.guests(), |guest| {
        let peer = if guest.name() == "a" { 2 } else { 1 };
        let answered = |subnet: &u8| format!("; {}", until(&answer_of(&format!("10.{subnet}.0.{peer}"))));
        format!("hostname{}", subnets.iter().map(answered).collect::<Vec<_>>().concat())
    });
    for (guest, printed) in bed.guests().iter().zip(printed) {
        assert_eq!(printed.trim(), guest.name());
    }
}

#[test]
fn virtio_scene_is_inspected() {
    with_scene("virtio", &[1, 2], |mut bed, timed| {
        let text = run(&bed.guests()[0], "netduel inspect");
        let [two, one] = ["virt0", "virt1"].map(|name| interface_of(&text, name));
        assert!(two.starts_with("virtio_net, up") && two.contains("queues: 2 of at most 2,"), "{text}");
        assert!(one.starts_with("virtio_net, up") && one.contains("queues: 1 of at most 1,"), "{text}");
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        timed.check("inspected with two names", || {
            let document = coordinator.inspect(&bed, &["ssh:a", "ssh:vm1"]);
            emulated_machine_has_no_kvm(&document);
            guest_with_two_names_has_its_findings_once(&document);
        });
        let inspected = timed.check("remedies", || check_remedies(&mut bed, &coordinator, &BOTH, |_, _| {}));
        timed.check("example of the README", || example_of_the_readme_runs(&mut bed, &coordinator));
        timed.check("traffic of a trial", || {
            traffic_of_a_trial_stays_in_it_and_its_path_is_proven(&mut bed, &coordinator);
        });
        timed.check("dropped buffers", || dropped_buffers_are_reported_as_buffers(&mut bed, &coordinator));
        timed.check("aborted stream", || aborted_stream_sends_nothing_afterwards(&mut bed, &coordinator));
        let state = timed.check("state", || State::read(&mut bed));
        let [before_queues, queues] = VIRTIO_IN_FORCE;
        timed.check("treatments", || {
            check_restored(&mut bed, &coordinator, Treated::both("10.1.0.2", &[before_queues]));
        });
        timed.check("state before queues", || state.assert_kept(&mut bed));
        timed.check("treatments with queues", || {
            check_restored(&mut bed, &coordinator, Treated::both("10.1.0.2", &[queues]));
        });
        timed.check("refused treatments", || check_refused(&bed, &coordinator, "10.1.0.2", VIRTIO_REFUSED));
        let nic = Nic { interface: "virt0", address: "10.1.0.2" };
        timed.check("XDP", || check_xdp(&mut bed, &coordinator, nic, &inspected));
        timed.check("state afterwards", || state.assert_kept(&mut bed));
        bed.guests()[0].power_off().unwrap();
        end(bed);
    });
}

#[test]
fn vmxnet3_scene_is_inspected() {
    with_scene("vmxnet3", &[1, 2], |mut bed, timed| {
        let text = run(&bed.guests()[1], "netduel inspect");
        let nic = interface_of(&text, "vmx0");
        assert!(nic.starts_with("vmxnet3, up") && nic.contains("queues: 2 of at most 2,"), "{text}");
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        let inspected = timed.check("remedies", || check_remedies(&mut bed, &coordinator, &BOTH, |_, _| {}));
        check_nodes(&inspected);
        let state = timed.check("state", || State::read(&mut bed));
        timed.check("treatments", || {
            check_restored(&mut bed, &coordinator, Treated::both("10.1.0.2", &VMXNET3_IN_FORCE));
        });
        timed.check("refused treatments", || check_refused(&bed, &coordinator, "10.1.0.2", VMXNET3_REFUSED));
        timed.check("state afterwards", || state.assert_kept(&mut bed));
        end(bed);
    });
}

#[test]
fn primary_of_the_e1000e_scene_leaves_and_returns() {
    with_scene("e1000e", &[1, 2], |mut bed, timed| {
        let guest = &mut bed.guests()[0];
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "fo0").contains("active: eth0 has carried packets"), "{text}");
        let nic = interface_of(&text, "e1k0");
        assert!(nic.starts_with("e1000e, up") && nic.contains("(mode 3)"), "{text}");
        assert!(!nic.contains("3 us") && !nic.contains("0 frames"), "{text}");
        guest.unplug("eth0").unwrap();
        let text = run(guest, "netduel inspect");
        assert!(!interface_of(&text, "fo0").contains("eth0"), "{text}");
        reach(guest, &answer_of("10.1.0.2"));
        guest.plug("eth0").unwrap();
        run(guest, PRIMARY_IS_BACK);
        reach(guest, &answer_of("10.1.0.2"));
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "fo0").contains("active: eth0 has carried packets"), "{text}");
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        let inspected = timed.check("remedies", || check_remedies(&mut bed, &coordinator, &BOTH, |_, _| {}));
        timed.check("removed primary", || removed_primary_returns_as_it_was(&mut bed, &coordinator));
        // For the treatments that it refuses. It stays, down and without ports.
        run(&bed.guests()[0], ADD_BOND);
        let state = timed.check("state", || State::read(&mut bed));
        timed.check("treatments", || {
            check_restored(&mut bed, &coordinator, Treated::both("10.2.0.2", &E1000E_IN_FORCE));
        });
        timed.check("refused treatments", || check_refused(&bed, &coordinator, "10.2.0.2", E1000E_REFUSED));
        let nic = Nic { interface: "e1k0", address: "10.2.0.2" };
        timed.check("time stamps and XDP", || {
            check_time_stamps_and_xdp(&mut bed, &coordinator, nic, &inspected);
        });
        timed.check("state afterwards", || state.assert_kept(&mut bed));
        // Last: they change the guests themselves.
        timed.check("failovers", || check_failovers_below_net_failover(&mut bed, &coordinator));
        timed.check("changes below net_failover", || {
            check_changes_below_net_failover(&mut bed, &coordinator);
        });
        end(bed);
    });
}

#[test]
fn free_ports_of_the_hotplug_scene_take_nics_and_a_bond_of_them_fails_over() {
    with_scene("hotplug", &[1], |mut bed, timed| {
        let guest = &mut bed.guests()[0];
        for (interface, model) in [("hot0", "igb"), ("hot1", "vmxnet3")] {
            guest.plug_model(interface, model).unwrap();
            let mac = guest.mac(interface).unwrap();
            run(guest, &format!(". /scene.sh; rename {mac} {model} {interface}; up {interface}"));
        }
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "hot0").starts_with("igb, up"), "{text}");
        assert!(interface_of(&text, "hot1").starts_with("vmxnet3, up"), "{text}");
        for interface in ["hot0", "hot1"] {
            guest.unplug(interface).unwrap();
            assert!(!run(guest, "ls /sys/class/net").contains(interface));
        }
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        timed.check("bond", || check_bond(&mut bed, &coordinator));
        end(bed);
    });
}

fn emulated_machine_has_no_kvm(document: &serde_json::Value) {
    let facts = &document["hosts"][0]["facts"];
    for key in ["platform", "hypervisor"] {
        assert!(!facts[key].as_str().unwrap_or_default().contains("KVM"), "{:#}", facts[key]);
    }
    // The firmware of QEMU is the same with KVM.
    assert_eq!(facts["cloud"]["provider"], "qemu", "{:#}", facts["cloud"]);
}

/// The findings of a guest that is named twice are those of one host.
fn guest_with_two_names_has_its_findings_once(document: &serde_json::Value) {
    let notes = |of: &serde_json::Value| {
        let findings = of["findings"].as_array().unwrap();
        findings.iter().filter(|finding| finding["severity"] == "note").count()
    };
    let (hosts, pairs) = (document["hosts"].as_array().unwrap(), document["pairs"].as_array().unwrap());
    let [one, other] = &hosts[..] else { panic!("{hosts:#?}") };
    assert_eq!((notes(one) > 0, notes(one)), (true, notes(other)), "{hosts:#?}");
    let of_pairs: usize = pairs.iter().map(notes).sum();
    assert_eq!(document["counts"]["note"], notes(one) + of_pairs, "{:#}", one["findings"]);
}

/// So few that the packets of ssh on another interface are more than a tenth of theirs.
const LESS_THAN_SSH: &str = "[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"1 s\"\n\
     request_rate = \"20 /s\"\nsize = \"100 B\"\n";

/// A seed whose order has a trial of round trips at a given rate after each trial of `pps`.
const ORDER: &str = "seed = 12\n";

/// What `pps` leaves in queues does not reach the next trial, and ssh on an interface of its own is no other path. Busy polling is in the
/// same run.
fn traffic_of_a_trial_stays_in_it_and_its_path_is_proven(bed: &mut Bed, coordinator: &Coordinator) {
    let expected = "expect_interface = { client = \"virt0\", server = \"virt0\" }";
    let workloads = format!(
        "{LESS_THAN_SSH}{MORE_THAN_THE_PATH}[[workloads]]\nname = \"datagrams\"\ntype = \"udp-rr\"\n\
         duration = \"1 s\"\nrequest_rate = \"100 /s\"\n{BUSY_POLLING}"
    );
    let plan = plan("10.1.0.2", &[("one", expected), ("two", expected)], &workloads, 2) + ORDER;
    run(&bed.guests()[0], &slow_down(coordinator, "virt0"));
    let report = coordinator.report(bed, &plan);
    run(&bed.guests()[0], "tc qdisc del dev virt0 root");
    assert_all_valid(&report, 16);
    assert_busy_polled(&report, 3, 2);
    assert_own_packets(&coordinator.trials(&report), "virt0", &["rr", "datagrams"]);
    let disagreeing = |text: &&&str| text.contains("counts disagree") || text.contains("other traffic");
    assert_eq!(warnings(&report).iter().find(disagreeing), None);
}

/// Removal by the bus, under net_failover, of primaries with a name that the kernel does not give and settings that their driver does not make.
fn removed_primary_returns_as_it_was(bed: &mut Bed, coordinator: &Coordinator) {
    let settings = "ethtool -G prim0 rx 1024; ethtool -K prim0 gro off; \
         echo 1 > /sys/class/net/prim0/queues/rx-0/rps_cpus; ip link set prim0 mtu 1400";
    let renamed =
        format!("ip link set eth0 down; ip link set eth0 name prim0; {settings}; . /scene.sh; up prim0");
    run_in_both(bed.guests(), |_| renamed.clone());
    let state = State::read(bed);
    check_restored(bed, coordinator, Treated::both("10.1.0.2", &[PRIMARY_REMOVED]));
    state.assert_kept(bed);
    let look = "cat /sys/class/net/prim0/carrier; basename $(readlink /sys/class/net/prim0/master)";
    // The defaults of its driver: what returns from a removal by the hypervisor has them.
    let defaults = "ethtool -G prim0 rx 256 tx 256; ethtool -K prim0 gro on; \
         echo 0 > /sys/class/net/prim0/queues/rx-0/rps_cpus; ip link set prim0 mtu 1500";
    let renamed = "ip link set prim0 down; ip link set prim0 name eth0; . /scene.sh; up eth0";
    for shown in run_in_both(bed.guests(), |_| format!("{look}; {defaults}; {renamed}")) {
        assert!(shown.starts_with("1\nfo0\n"), "{shown}");
    }
}
