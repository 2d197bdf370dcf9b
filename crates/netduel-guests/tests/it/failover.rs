//! Paths that QEMU changes while netduel measures: hot unplug and carrier loss, under net_failover and under a bond.
use netduel_guests::{Bed, Guest};
use serde_json::{Value, json};

use super::coordinator::{Coordinator, FEW_ROUND_TRIPS, assert_all_valid, plan, warnings};
use super::device_treatments::PORT_DOWN;
use super::killed::check_restored;
use super::run;
use super::stepped::{SteppedRun, Steps};
use super::treatments::{LastState, Treated};

/// A change that netduel did not make excludes its trial.
pub fn check_changes_below_net_failover(bed: &mut Bed, coordinator: &Coordinator) {
    let path = Path { active: "eth0", beside: "e1k0", address: "10.1.0.2" };
    let back = "until [ -e /sys/class/net/eth0/master ]; do usleep 50000; done; . /scene.sh; up eth0";
    path.check(bed, coordinator, |guest| {
        guest.plug("eth0").unwrap();
        run(guest, back);
    });
}

/// A change below a bond that netduel did not make excludes its trial, and its own changes are undone.
pub fn check_bond(bed: &mut Bed, coordinator: &Coordinator) {
    set_up_bond(bed);
    let path = Path { active: "hot0", beside: "virt0", address: "10.2.0.2" };
    path.check(bed, coordinator, |guest| {
        plug_into_bond(guest, "hot0");
        run(guest, ACTIVE_IN_BOND);
    });
    active_port_of_a_bond_goes_and_returns(bed, coordinator);
    check_restored(bed, coordinator, &mut LastState::default(), Treated::client("10.2.0.2", &[PORT_DOWN]));
}

/// A bond of two NICs in each guest.
pub fn set_up_bond(bed: &mut Bed) {
    let set_up = |guest: &mut Guest, number: u8| {
        run(guest, &format!("{LOAD_BONDING}; ip address add 10.2.0.{number}/24 dev bond0"));
        for interface in ["hot0", "hot1"] {
            plug_into_bond(guest, interface);
        }
        run(guest, ACTIVE_IN_BOND);
    };
    // At a time: each guest has a core of its own.
    std::thread::scope(|scope| {
        for (guest, number) in bed.guests().iter_mut().zip(1..) {
            scope.spawn(move || set_up(guest, number));
        }
    });
    run(&bed.guests()[0], "ping -c 1 -W 60 10.2.0.2");
}

/// Without `max_bonds` the module makes a bond0 of its own, in another mode.
const LOAD_BONDING: &str = "set -e; while read -r name; do insmod /modules/$name.ko max_bonds=0; done < /modules/bonding.order; \
     ip link add bond0 type bond mode active-backup miimon 100; ip link set bond0 up";

/// `hot0` carries the bond's traffic, whichever port had it.
pub const ACTIVE_IN_BOND: &str = "echo hot0 > /sys/class/net/bond0/bonding/primary; \
     until [ \"$(cat /sys/class/net/bond0/bonding/active_slave)\" = hot0 ]; do usleep 50000; done";

/// A new NIC is eth0, because all others have names of their own. Its address does not tell it from the other port: a bond gives its
/// ports one address, that of the port that it had first.
pub fn plug_into_bond(guest: &mut Guest, interface: &str) {
    guest.plug_model(interface, "e1000e").unwrap();
    run(guest, &join_bond(interface));
}

/// A new NIC joins the bond under this name.
pub fn join_bond(interface: &str) -> String {
    format!(
        "set -e; . /scene.sh; until [ -e /sys/class/net/eth0 ]; do usleep 50000; done; ip link set eth0 down; \
         ip link set eth0 name {interface}; ip link set {interface} master bond0; up {interface}"
    )
}

/// When a path goes away in a trial, seconds.
const AWAY_S: u32 = 1;
/// When it returns: so late that the bond has the other port long before, whatever else the machine does.
const RETURN_S: u32 = 8;

/// netduel itself sets the active port down, as an event of a failover and as a treatment, or a command removes it: the other port carries
/// the packets meanwhile, and the bond has its active port again afterwards.
fn active_port_of_a_bond_goes_and_returns(bed: &mut Bed, coordinator: &Coordinator) {
    // Without a primary the bond would stay with the other port. Linux 6.12 takes the first port when the primary is cleared.
    let without_primary = "set -e; cd /sys/class/net/bond0/bonding; echo > primary; echo hot0 > active_slave";
    run(&bed.guests()[0], without_primary);
    assert_eq!(run(&bed.guests()[0], ACTIVE), "hot0\n");
    let failover = format!(
        "[[workloads]]\nname = \"failover\"\ntype = \"failover\"\nduration = \"{} s\"\nstreams = 1\n",
        RETURN_S + 2
    );
    let event = |what: &str| {
        format!(
            "set = {{ events = [{{ at = \"{AWAY_S} s\", {what}, interface = \"bond0\" }}, \
             {{ at = \"{RETURN_S} s\", do = \"return\", interface = \"bond0\" }}] }}"
        )
    };
    let words = |script: &str| format!("[\"sh\", \"-c\", {script:?}]");
    // The bond takes a port as its active one when it has seen the carrier.
    let back = format!(
        "echo 1 > /sys/bus/pci/rescan; {}; until echo hot0 > /sys/class/net/bond0/bonding/active_slave; do usleep 50000; done",
        join_bond("hot0")
    );
    let (away, back) = (words("echo 1 > /sys/class/net/hot0/device/remove"), words(&back));
    let set_down = event("do = \"down\"");
    let removed = event(&format!("do = \"command\", command = {away}, undo = {back}"));
    let report = over_the_backup(bed, coordinator, &[("down", &set_down), ("command", &removed)], &failover);
    assert_paths_go_on(&report);

    let down = "expect_interface = { client = \"hot1\", server = \"hot0\" }\n\
         treatments = [{ vf = \"down\", interface = \"bond0\", on = \"client\" }]";
    // Beside few round trips the agent's own connection is too much other traffic for a proof of path on a busy machine.
    let stream = "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\nduration = \"1 s\"\n";
    over_the_backup(bed, coordinator, &[("up", ""), ("down", down)], stream);
}

/// Runs two arms. All trials are valid, the other port carries packets, and the active port is the same again.
fn over_the_backup(bed: &mut Bed, coordinator: &Coordinator, arms: &[(&str, &str)], workload: &str) -> Value {
    let sent = sent_by_the_backup(&bed.guests()[0]);
    let report = coordinator.report(bed, &plan("10.2.0.2", arms, workload, 2));
    assert_all_valid(&report, 4);
    assert!(sent_by_the_backup(&bed.guests()[0]) > sent + 100, "{sent}: {:#}", report["warnings"]);
    assert_eq!(run(&bed.guests()[0], ACTIVE), "hot0\n");
    report
}

/// The first event of each arm, of which the name of the arm is the kind, has an outage that ends before the return, and the streams go on
/// until then. How long it is, and how soon they are steady again, depends on the machine.
fn assert_paths_go_on(report: &Value) {
    // An event may begin late.
    let until_return_ns = f64::from(RETURN_S - AWAY_S - 1) * 1e9;
    let arms = report["workloads"][0]["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 2, "{arms:#?}");
    for arm in arms {
        let event = &arm["failover"]["events"][0];
        assert_eq!(event["kind"], arm["arm"], "{event:#}");
        for way in ["client_to_server", "server_to_client"] {
            assert!(event[way]["outage_ns"]["max"].as_f64().unwrap() < until_return_ns, "{event:#}");
        }
        let dips = event["client_to_server"]["streams_by_trial"].as_array().unwrap();
        assert_eq!(dips.len(), 2, "{event:#}");
        assert!(dips.iter().all(|dip| dip["settled_bps"].as_f64().unwrap() > 0.0), "{event:#}");
    }
}

/// Prints the active port of the bond.
const ACTIVE: &str = "cat /sys/class/net/bond0/bonding/active_slave";

/// The packets that the other port has sent.
fn sent_by_the_backup(guest: &Guest) -> u64 {
    run(guest, "cat /sys/class/net/hot1/statistics/tx_packets").trim().parse().unwrap()
}

/// What carries the data of both guests.
struct Path {
    /// The interface below that with the address, which carries the packets.
    active: &'static str,
    /// An interface on another wire.
    beside: &'static str,
    /// The server's.
    address: &'static str,
}

impl Path {
    /// A change in each trial. `bring_back` plugs the active interface of a guest again and waits until it carries packets.
    fn check(&self, bed: &mut Bed, coordinator: &Coordinator, bring_back: impl Fn(&mut Guest)) {
        let Self { active, beside, address } = *self;
        let steps = Steps { address, before: "", after: "", seconds: 4 };
        let mut stepped = SteppedRun::start(bed, coordinator, &steps);
        let lost_carrier = stepped.trial(bed, |bed| interrupt(&mut bed.guests()[0], active));
        let removed = stepped.trial(bed, |bed| {
            let guest = &mut bed.guests()[0];
            guest.unplug(active).unwrap();
            // The way that is left carries traffic.
            run(guest, &format!("ping -c 1 -W 60 {address}"));
            bring_back(guest);
            run(guest, &format!("ping -c 1 -W 60 {address}"));
        });
        let at_the_server = stepped.trial(bed, |bed| interrupt(&mut bed.guests()[1], active));
        let elsewhere = stepped.trial(bed, |bed| interrupt(&mut bed.guests()[0], beside));
        let (report, _) = stepped.report();
        for (line, end, what) in [
            (&lost_carrier, "client", format!("{active} lost carrier")),
            (&removed, "client", format!("{active} was removed")),
            (&at_the_server, "server", format!("{active} lost carrier")),
        ] {
            let changed = format!("at the {end} the path changed during the trial: ");
            assert!(line.contains("invalid, wrong path"), "{line}");
            assert!(line.contains(&changed) && line.contains(&what), "{what} is not in {line}");
        }
        assert!(!elsewhere.contains("invalid") && !elsewhere.contains("failed"), "{elsewhere}");
        assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&1.into(), &3.into()));
        assert!(warnings(&report).iter().any(|text| text.contains(active)), "{:#}", report["warnings"]);
    }
}

/// Takes the carrier of an interface away and gives it back, each seen by the guest.
fn interrupt(guest: &mut Guest, interface: &str) {
    for (is_up, carrier) in [(false, 0), (true, 1)] {
        guest.qmp("set_link", &json!({ "name": interface, "up": is_up })).unwrap();
        let file = format!("/sys/class/net/{interface}/carrier");
        run(guest, &format!("until [ \"$(cat {file})\" = {carrier} ]; do usleep 50000; done"));
    }
}
