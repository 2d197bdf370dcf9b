//! Paths that QEMU changes while netduel measures: hot unplug and carrier loss, under net_failover and under a bond.
use netduel_guests::{Bed, Guest};
use serde_json::{Value, json};

use super::bond::{ACTIVE_IN_BOND, plug_into_bond, set_up_bond};
use super::coordinator::{Coordinator, FEW_ROUND_TRIPS, REQUEST_BYTES, assert_all_valid, plan, warnings};
use super::device_treatments::PORT_DOWN;
use super::failover_cases::{
    Case, PRIMARY_IS_BACK, Timing, assert_outcomes, by_trial, cases_below_a_bond, cases_below_net_failover,
    change_below_a_bond, change_below_net_failover, events_of, measure, plan_of,
};
use super::killed::check_restored;
use super::stepped::{SteppedRun, Steps};
use super::treatments::{State, Treated};
use super::{answer_of, reach, run};

/// A change that netduel did not make excludes its trial.
pub fn check_changes_below_net_failover(bed: &mut Bed, coordinator: &Coordinator) {
    let path = Path { active: "eth0", beside: "e1k0", address: "10.1.0.2" };
    path.check(bed, coordinator, |guest| {
        guest.plug("eth0").unwrap();
        run(guest, PRIMARY_IS_BACK);
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
    let state = State::read(bed);
    check_restored(bed, coordinator, Treated::both("10.2.0.2", &[PORT_DOWN]));
    state.assert_kept(bed);
}

/// Paths that recover return after the traffic: longer than a bond or net_failover takes for another path.
const TIMING: Timing = Timing { away: 1, back: 4, returns_always: false, duration: 6, blocks: 2 };

/// The cases with these names, in a run.
fn measured(
    bed: &mut Bed,
    coordinator: &Coordinator,
    address: &str,
    cases: Vec<Case>,
    names: &[&str],
    change: impl FnMut(&mut Guest, &str),
) -> (Vec<Case>, Value) {
    let cases: Vec<Case> = cases.into_iter().filter(|case| names.contains(&case.name)).collect();
    assert_eq!(cases.len(), names.len(), "{names:?}");
    let report = measure(bed, coordinator, &plan_of(address, &cases, TIMING), change);
    assert_outcomes(&report, &cases, TIMING);
    (cases, report)
}

/// netduel removes the primary, with the standby up and down, and QEMU unplugs it or takes its carrier.
pub fn check_failovers_below_net_failover(bed: &mut Bed, coordinator: &Coordinator) {
    let names = ["sysfs removal", "dead", "unplug", "carrier"];
    let cases = cases_below_net_failover();
    let (cases, report) = measured(bed, coordinator, "10.1.0.2", cases, &names, change_below_net_failover);
    let events = |name: &str| events_of(&report, cases.iter().find(|case| case.name == name).unwrap());
    dead_path_is_not_recovered(events("dead"));
    // The standby carries what the client sends, and drops what it receives.
    outage_lasts_until_the_return(events("carrier"), &["server_to_client"]);
    let trials = format!("in {0} of {0} trials of dead in failover the effect had not ended", TIMING.blocks);
    let is_bound =
        |text: &&str| text.contains("the recovery of throughput is at least") && text.contains(&trials);
    assert!(warnings(&report).iter().any(is_bound), "{:#}", report["warnings"]);
}

/// Nothing arrives, and the streams come to nothing.
#[track_caller]
fn dead_path_is_not_recovered(events: &[Value]) {
    outage_lasts_until_the_return(events, &["client_to_server", "server_to_client"]);
    for dip in events[0]["client_to_server"]["streams_by_trial"].as_array().unwrap() {
        // A slow removal leaves no time for a steady state.
        assert!(dip["settled_bps"].is_null() || dip["settled_bps"] == json!(0.0), "{dip:#}");
        assert_eq!(dip["recovery_ns"], Value::Null, "{dip:#}");
    }
}

/// Nothing arrives in these directions from the end of the loss until the beginning of the return, in each trial.
#[track_caller]
fn outage_lasts_until_the_return(events: &[Value], ways: &[&str]) {
    let [loss, back] = events else { panic!("two events: {events:#?}") };
    let ended = by_trial(&loss["began_ns"]).into_iter().zip(by_trial(&loss["kernel_ns"]));
    let returned = by_trial(&back["began_ns"]).into_iter();
    let dead: Vec<f64> = returned.zip(ended).map(|(back, (began, took))| back - (began + took)).collect();
    for way in ways {
        let outages = by_trial(&loss[*way]["outage_by_trial_ns"]);
        assert_eq!((outages.len(), dead.len()), (TIMING.blocks as usize, TIMING.blocks as usize));
        assert!(outages.iter().zip(&dead).all(|(outage, dead)| outage > dead), "{dead:?}: {events:#?}");
    }
}

/// The active port goes as an event of a failover, by a command or by QEMU, and returns; and as a treatment, after which the bond has it again.
fn active_port_of_a_bond_goes_and_returns(bed: &mut Bed, coordinator: &Coordinator) {
    // An active port that is set down is a treatment below.
    let names = ["graceful", "unplug", "carrier"];
    measured(bed, coordinator, "10.2.0.2", cases_below_a_bond(), &names, change_below_a_bond);
    // Without a primary the bond would stay with the other port. Linux 6.12 takes the first port when the primary is cleared.
    let without_primary = "set -e; cd /sys/class/net/bond0/bonding; echo > primary; echo hot0 > active_slave";
    run(&bed.guests()[0], without_primary);
    assert_eq!(run(&bed.guests()[0], ACTIVE), "hot0\n");
    let before = sent_by_the_backup(&bed.guests()[0]);
    let down = "expect_interface = { client = \"hot1\", server = \"hot0\" }\n\
         treatments = [{ vf = \"down\", interface = \"bond0\", on = \"client\" }]";
    let plan = plan("10.2.0.2", &[("up", ""), ("down", down)], FEW_ROUND_TRIPS, 2);
    let report = coordinator.report(bed, &plan);
    assert_all_valid(&report, 4);
    let arms = report["workloads"][0]["arms"].as_array().unwrap();
    let down = arms.iter().find(|arm| arm["arm"] == "down").unwrap();
    // A slow sender puts several requests into a packet: their bytes are counted.
    let requested = down["requests"]["sent"].as_u64().unwrap() * REQUEST_BYTES;
    let sent = sent_by_the_backup(&bed.guests()[0]) - before;
    assert!(sent > requested && requested > 0, "{sent} B of {requested} B: {:#}", report["warnings"]);
    assert_eq!(run(&bed.guests()[0], ACTIVE), "hot0\n");
}

/// Prints the active port of the bond.
const ACTIVE: &str = "cat /sys/class/net/bond0/bonding/active_slave";

/// The bytes that the other port has sent.
fn sent_by_the_backup(guest: &Guest) -> u64 {
    run(guest, "cat /sys/class/net/hot1/statistics/tx_bytes").trim().parse().unwrap()
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
            reach(guest, &answer_of(address));
            bring_back(guest);
            reach(guest, &answer_of(address));
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
            assert!(line.contains("excluded, wrong path"), "{line}");
            assert!(line.contains(&changed) && line.contains(&what), "{what} is not in {line}");
        }
        assert!(!elsewhere.contains("excluded") && !elsewhere.contains("failed"), "{elsewhere}");
        assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&1.into(), &3.into()));
        assert!(warnings(&report).iter().any(|text| text.contains(active)), "{:#}", report["warnings"]);
    }
}

/// Takes the carrier of an interface away and gives it back, each seen by the guest.
fn interrupt(guest: &mut Guest, interface: &str) {
    for (is_up, carrier) in [(false, 0), (true, 1)] {
        guest.qmp("set_link", &json!({ "name": interface, "up": is_up })).unwrap();
        let file = format!("/sys/class/net/{interface}/carrier");
        reach(guest, &format!("[ \"$(cat {file})\" = {carrier} ]"));
    }
}
