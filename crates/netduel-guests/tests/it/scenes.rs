//! What guests of a scene are: one boot for all checks of a scene.
use std::fs;

use netduel_guests::{Bed, Prepared, SCENES_AT_A_TIME, Scene};

use super::azure::check_bed;
use super::coordinator::{Coordinator, FEW_ROUND_TRIPS, assert_all_valid, plan, warnings};
use super::device_treatments::{
    E1000E_IN_FORCE, E1000E_REFUSED, IGB_IN_FORCE, IGB_REFUSED, IGBVF_IN_FORCE, PRIMARY_REMOVED,
    VIRTIO_IN_FORCE, VIRTIO_REFUSED, VMXNET3_IN_FORCE, VMXNET3_REFUSED,
};
use super::failover::{check_bond, check_changes_below_net_failover, check_failovers_below_net_failover};
use super::inspected::{check_remedies, interface};
use super::killed::{check_killed, check_restored};
use super::nic_features::{
    BUSY_POLLING, Nic, assert_busy_polled, check_stamps_of_igb, check_time_stamps_and_busy_polling,
    check_time_stamps_and_xdp, check_xdp,
};
use super::places::Places;
use super::queues::{aborted_stream_sends_nothing_afterwards, dropped_buffers_are_told_from_packets};
use super::readme::example_of_the_readme_runs;
use super::states::{check_nodes, check_states};
use super::timed::Timed;
use super::treatments::{InForce, LastState, Treated, check_refused};
use super::{assert_nothing_left, end, kill, network_namespace, prepared, processes, run, run_in_both};

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
    let timed = Timed(scene.name);
    let mut bed = Bed::boot(prepared, scene).unwrap_or_else(|error| panic!("failed to {error}"));
    timed.boot(&bed);
    timed.check("guests reach each other", || guests_reach_each_other(&mut bed, subnets));
    timed.check("all checks", || checks(bed, timed));
}

fn guests_reach_each_other(bed: &mut Bed, subnets: &[u8]) {
    let printed = run_in_both(bed.guests(), |guest| {
        let peer = if guest.name() == "a" { 2 } else { 1 };
        let ping = |subnet: &u8| format!("; ping -c 1 -W 60 10.{subnet}.0.{peer}");
        format!("hostname{}", subnets.iter().map(ping).collect::<Vec<_>>().concat())
    });
    for (guest, printed) in bed.guests().iter().zip(printed) {
        assert_eq!(printed.lines().next(), Some(guest.name()), "{printed}");
        assert_eq!(printed.matches("1 packets received").count(), subnets.len(), "{printed}");
    }
}

#[test]
fn igb_scene_is_inspected_treated_and_restored_and_ends_with_its_holder() {
    with_scene("igb", &[1, 2, 3], |mut bed, timed| {
        for text in run_in_both(bed.guests(), |_| "netduel inspect".to_owned()) {
            println!("{text}");
            inspected_as_igb(&text);
        }
        let coordinator = Coordinator::new(&mut bed);
        let mut state = LastState::default();
        timed.check("data of a client", || data_of_a_client_is_that_of_its_route(&mut bed, &coordinator));
        timed.check("remedies", || check_remedies(&mut bed, &coordinator));
        let nic = Nic { interface: "pf0", address: "10.1.0.2" };
        timed.check("XDP", || check_xdp(&mut bed, &coordinator, &mut state, nic));
        let [beside_rss, queues] = IGB_IN_FORCE;
        timed.check("treatments of a virtual function", || {
            let treated = Treated::both("10.2.0.2", &IGBVF_IN_FORCE);
            check_restored(&mut bed, &coordinator, &mut state, treated);
        });
        timed.check("refused treatments", || {
            check_refused(&mut bed, &coordinator, &mut state, "10.1.0.2", IGB_REFUSED);
        });
        timed.check("function below net_failover", || {
            function_below_net_failover_is_not_set_down(&bed, &coordinator);
        });
        timed.check("active function", || active_function_is_shown_as_active(&bed, &coordinator));
        timed.check("time stamps and busy polling", || {
            check_time_stamps_and_busy_polling(&mut bed, &coordinator, nic);
        });
        timed.check("time stamps of the NIC", || check_stamps_of_igb(&mut bed, &coordinator, nic));
        timed.check("killed processes", || {
            check_killed(&mut bed, &coordinator, &mut state, Treated::client("10.1.0.2", &[beside_rss]));
        });
        timed.check("queues after RSS", || {
            queues_can_change_after_rss(&mut bed, &coordinator, &mut state, queues);
        });
        timed.check("bed of Azure", || check_bed(&mut bed, &coordinator));
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

#[test]
fn virtio_scene_is_inspected() {
    with_scene("virtio", &[1, 2], |mut bed, timed| {
        let text = run(&bed.guests()[0], "netduel inspect");
        let [two, one] = ["virt0", "virt1"].map(|name| interface_of(&text, name));
        assert!(two.starts_with("virtio_net, up") && two.contains("queues: 2 of at most 2,"), "{text}");
        assert!(one.starts_with("virtio_net, up") && one.contains("queues: 1 of at most 1,"), "{text}");
        let coordinator = Coordinator::new(&mut bed);
        let mut state = LastState::default();
        timed.check("no KVM", || emulated_machine_has_no_kvm(&bed, &coordinator));
        timed.check("two names", || guest_with_two_names_has_its_findings_once(&bed, &coordinator));
        timed.check("remedies", || check_remedies(&mut bed, &coordinator));
        timed.check("example of the README", || example_of_the_readme_runs(&mut bed, &coordinator));
        timed.check("traffic of a trial", || {
            traffic_of_a_trial_stays_in_it_and_its_path_is_proven(&mut bed, &coordinator);
        });
        timed.check("dropped buffers", || dropped_buffers_are_told_from_packets(&bed, &coordinator));
        timed.check("aborted stream", || aborted_stream_sends_nothing_afterwards(&mut bed, &coordinator));
        for table in VIRTIO_IN_FORCE {
            timed.check("treatments", || {
                check_restored(&mut bed, &coordinator, &mut state, Treated::both("10.1.0.2", &[table]));
            });
        }
        timed.check("refused treatments", || {
            check_refused(&mut bed, &coordinator, &mut state, "10.1.0.2", VIRTIO_REFUSED);
        });
        let nic = Nic { interface: "virt0", address: "10.1.0.2" };
        timed.check("XDP", || check_xdp(&mut bed, &coordinator, &mut state, nic));
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
        let coordinator = Coordinator::new(&mut bed);
        let mut state = LastState::default();
        timed.check("remedies", || check_remedies(&mut bed, &coordinator));
        timed.check("treatments", || {
            let treated = Treated::both("10.1.0.2", &VMXNET3_IN_FORCE);
            check_restored(&mut bed, &coordinator, &mut state, treated);
        });
        timed.check("refused treatments", || {
            check_refused(&mut bed, &coordinator, &mut state, "10.1.0.2", VMXNET3_REFUSED);
        });
        timed.check("NUMA nodes", || check_nodes(&bed, &coordinator));
        end(bed);
    });
}

#[test]
fn primary_of_the_e1000e_scene_leaves_and_returns() {
    with_scene("e1000e", &[1, 2], |mut bed, timed| {
        let guest = &mut bed.guests()[0];
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "fo0").contains("active: eth0 has carried packets"), "{text}");
        assert!(interface_of(&text, "e1k0").starts_with("e1000e, up"), "{text}");
        guest.unplug("eth0").unwrap();
        let text = run(guest, "netduel inspect");
        assert!(!interface_of(&text, "fo0").contains("eth0"), "{text}");
        run(guest, "ping -c 1 -W 60 10.1.0.2");
        guest.plug("eth0").unwrap();
        run(guest, "until [ -e /sys/class/net/eth0/master ]; do usleep 50000; done; . /scene.sh; up eth0");
        run(guest, "ping -c 1 -W 60 10.1.0.2");
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "fo0").contains("active: eth0 has carried packets"), "{text}");
        let coordinator = Coordinator::new(&mut bed);
        let mut state = LastState::default();
        timed.check("remedies", || check_remedies(&mut bed, &coordinator));
        timed.check("removed primary", || removed_primary_returns_as_it_was(&mut bed, &coordinator));
        timed.check("treatments", || {
            let treated = Treated::both("10.2.0.2", &E1000E_IN_FORCE);
            check_restored(&mut bed, &coordinator, &mut state, treated);
        });
        timed.check("refused treatments", || {
            check_refused(&mut bed, &coordinator, &mut state, "10.2.0.2", E1000E_REFUSED);
        });
        let nic = Nic { interface: "e1k0", address: "10.2.0.2" };
        timed.check("time stamps and XDP", || {
            check_time_stamps_and_xdp(&mut bed, &coordinator, &mut state, nic);
        });
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
        let coordinator = Coordinator::new(&mut bed);
        timed.check("bond", || check_bond(&mut bed, &coordinator));
        end(bed);
    });
}

/// Fault by fault of what a first look at real drivers found.
fn data_of_a_client_is_that_of_its_route(bed: &mut Bed, coordinator: &Coordinator) {
    let arms = [("one", ""), ("two", "")];
    let plan = coordinator.plan(&plan("10.2.0.2", &arms, FEW_ROUND_TRIPS, 2));
    let set_mtu = |mtu: u32| format!("ip link set vf1 mtu {mtu}; . /scene.sh; up vf1");
    // A difference that the finding has to see: no other interface of guest a has this MTU.
    run(&bed.guests()[0], &set_mtu(1400));
    let findings = findings_of_the_pair(bed, coordinator, &plan);
    // Both ends have their data on vf1, and the default route nowhere.
    let mtu = findings.iter().find(|one| one["id"] == "mtu-differs");
    let mtu = mtu.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(mtu["evidence"][0], "a: 1400 B; b: 1500 B", "{mtu:#}");
    // The remedy names b, whose MTU is the larger one.
    run(&bed.guests()[1], mtu["command"].as_str().unwrap());
    let others = ["device-differs", "family-missing", "acceleration-differs"];
    assert!(!findings.iter().any(|one| others.iter().any(|id| one["id"] == *id)), "{findings:#?}");
    let afterwards = findings_of_the_pair(bed, coordinator, &plan);
    assert!(!afterwards.iter().any(|one| one["id"] == "mtu-differs"), "{afterwards:#?}");
    run_in_both(bed.guests(), |_| set_mtu(1500));
}

/// The findings about the one pair of hosts of a plan.
fn findings_of_the_pair(bed: &Bed, coordinator: &Coordinator, plan: &str) -> Vec<serde_json::Value> {
    let document = coordinator.inspect(bed, &["--plan", plan]);
    assert_eq!(document["hosts"].as_array().unwrap().len(), 2, "{:#}", document["hosts"]);
    let [pair] = &document["pairs"].as_array().unwrap()[..] else { panic!("{:#}", document["pairs"]) };
    pair["findings"].as_array().unwrap().clone()
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
fn queues_can_change_after_rss(
    bed: &mut Bed,
    coordinator: &Coordinator,
    state: &mut LastState,
    queues: &[InForce],
) {
    check_restored(bed, coordinator, state, Treated::both("10.1.0.2", &[queues]));
}

/// The RSS table is still that of the driver. Last: virtual functions lose their links some time after this.
fn queues_can_be_changed_by_hand(bed: &mut Bed) {
    run_in_both(bed.guests(), |_| "ethtool -L pf0 combined 1; ethtool -L pf0 combined 2".to_owned());
}

/// Packets have passed the function below net_failover.
fn active_function_is_shown_as_active(bed: &Bed, coordinator: &Coordinator) {
    let document = coordinator.inspect(bed, &["ssh:a", "ssh:b"]);
    for host in document["hosts"].as_array().unwrap() {
        let states = host["accelerated_networking"].as_array().unwrap();
        let state =
            states.iter().find(|state| state["interface"] == "fo0").unwrap_or(&serde_json::Value::Null);
        assert_eq!((&state["state"], &state["function"]), (&"active".into(), &"vf0".into()), "{states:#?}");
        assert!(interface(host, "pf0")["driver"] == "igb");
    }
}

fn emulated_machine_has_no_kvm(bed: &Bed, coordinator: &Coordinator) {
    let document = coordinator.inspect(bed, &["ssh:a"]);
    let facts = &document["hosts"][0]["facts"];
    for key in ["platform", "hypervisor"] {
        assert!(!facts[key].as_str().unwrap_or_default().contains("KVM"), "{:#}", facts[key]);
    }
    // The firmware of QEMU is the same with KVM.
    assert_eq!(facts["cloud"]["provider"], "qemu", "{:#}", facts["cloud"]);
}

/// The findings of a guest that is named twice are those of one host.
fn guest_with_two_names_has_its_findings_once(bed: &Bed, coordinator: &Coordinator) {
    let document = coordinator.inspect(bed, &["ssh:a", "ssh:vm1"]);
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

/// What `pps` leaves in queues does not reach the next trial, and ssh on an interface of its own is no other path. Busy polling is in the
/// same run.
fn traffic_of_a_trial_stays_in_it_and_its_path_is_proven(bed: &mut Bed, coordinator: &Coordinator) {
    let expected = "expect_interface = { client = \"virt0\", server = \"virt0\" }";
    let workloads = format!(
        "{LESS_THAN_SSH}[[workloads]]\nname = \"packets\"\ntype = \"pps\"\nduration = \"1 s\"\n\
         [[workloads]]\nname = \"datagrams\"\ntype = \"udp-rr\"\nduration = \"1 s\"\nrequest_rate = \"100 /s\"\n\
         {BUSY_POLLING}"
    );
    let report =
        coordinator.report(bed, &plan("10.1.0.2", &[("one", expected), ("two", expected)], &workloads, 2));
    assert_all_valid(&report, 16);
    assert_busy_polled(&report, 3);
    let disagreeing = |text: &&&str| text.contains("counts disagree") || text.contains("other traffic");
    assert_eq!(warnings(&report).iter().find(disagreeing), None);
}

/// Removal by the bus, under net_failover, of a primary with a name that the kernel does not give and settings that its driver does not make.
fn removed_primary_returns_as_it_was(bed: &mut Bed, coordinator: &Coordinator) {
    let settings = "ethtool -G prim0 rx 1024; ethtool -K prim0 gro off; \
         echo 1 > /sys/class/net/prim0/queues/rx-0/rps_cpus; ip link set prim0 mtu 1400";
    let renamed =
        format!("ip link set eth0 down; ip link set eth0 name prim0; {settings}; . /scene.sh; up prim0");
    run(&bed.guests()[0], &renamed);
    let treated = Treated::client("10.1.0.2", &[PRIMARY_REMOVED]);
    check_restored(bed, coordinator, &mut LastState::default(), treated);
    let guest = &bed.guests()[0];
    let shown =
        run(guest, "cat /sys/class/net/prim0/carrier; basename $(readlink /sys/class/net/prim0/master)");
    assert_eq!(shown, "1\nfo0\n");
    // The defaults of its driver: what returns from a removal by the hypervisor has them.
    let defaults = "ethtool -G prim0 rx 256 tx 256; ethtool -K prim0 gro on; \
         echo 0 > /sys/class/net/prim0/queues/rx-0/rps_cpus; ip link set prim0 mtu 1500";
    run(
        guest,
        &format!("{defaults}; ip link set prim0 down; ip link set prim0 name eth0; . /scene.sh; up eth0"),
    );
}

/// Driver, queues and virtual functions.
fn inspected_as_igb(text: &str) {
    let physical = interface_of(text, "pf0");
    assert!(physical.starts_with("igb, up") && physical.contains("queues: 2 of at most 2,"), "{text}");
    assert!(physical.contains("RSS: even over 2 queues"), "{text}");
    // Values to 3 are modes of its moderation, not times.
    assert!(physical.contains("(mode 3)") && !physical.contains("3 us"), "{text}");
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

/// The lines of `netduel inspect` about an interface, without its name: until the next line that is indented as little.
fn interface_of<'a>(text: &'a str, name: &str) -> &'a str {
    let is_head =
        |line: &str| line.trim_start().split(' ').next() == Some(name) && line.len() > name.len() + 4;
    let head = text.lines().find(|line| is_head(line)).unwrap_or_else(|| panic!("no {name} in {text}"));
    let start = head.as_ptr().addr() - text.as_ptr().addr();
    let after = start + head.len();
    let is_detail = |line: &&str| line.starts_with("        ");
    let len: usize = text[after + 1..].lines().take_while(is_detail).map(|line| line.len() + 1).sum();
    text[start..=after + len].trim_start().trim_start_matches(name).trim_start()
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
