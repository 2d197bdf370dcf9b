//! The figures of failovers in guests beside those of the lab, as the rows of a table: `cargo xtask guests failover`. They depend on the
//! machine, so no figure is judged; whether a path recovers is a fact. A command of the plan lets QEMU change the path in each trial.
use std::process::{Command, Stdio};

use netduel_test_support::not_requested;
use serde_json::Value;

use super::bond::set_up_bond;
use super::coordinator::Coordinator;
use super::failover_cases::{
    Case, Timing, assert_outcomes, cases_below_a_bond, cases_below_net_failover, change_below_a_bond,
    change_below_net_failover, document, events_of, measure, on_hosts, plan_of,
};
use super::scenes::with_scene;
use super::{end, prepared};

/// Set by `cargo xtask guests failover`.
const REQUESTED: &str = "NETDUEL_FAILOVER_TABLE";
const TIMING: Timing = Timing { away: 2, back: 7, returns_always: true, duration: 12, blocks: 3 };

#[test]
fn failovers_of_guests_stand_beside_those_of_the_lab() {
    if std::env::var_os(REQUESTED).is_none() {
        return not_requested("the table of failovers; run `cargo xtask guests failover`");
    }
    println!("| path | case | event | outage up, median and max | outage down | lost up, down | recovery |");
    println!("|---|---|---|---|---|---|---|");
    lab();
    with_scene("e1000e", &[1, 2], |mut bed, timed| {
        let cases = cases_below_net_failover();
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        let plan = plan_of("10.1.0.2", &cases, TIMING);
        let report = measure(&mut bed, &coordinator, &plan, change_below_net_failover);
        print_rows("net_failover", &report, &cases);
        end(bed);
    });
    with_scene("hotplug", &[1], |mut bed, timed| {
        set_up_bond(&mut bed);
        let cases = cases_below_a_bond();
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        let plan = plan_of("10.2.0.2", &cases, TIMING);
        let report = measure(&mut bed, &coordinator, &plan, change_below_a_bond);
        print_rows("bond", &report, &cases);
        end(bed);
    });
}

/// The same in the lab, whose machine is this one. Its traffic runs over the virtual function.
fn lab() {
    let folder = std::env::temp_dir().join(format!("netduel-failover-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cases = [
        Case::own("sysfs removal", "remove", ""),
        Case::own("graceful", "graceful", ""),
        Case::own("carrier", "carrier", ""),
        Case::own("down", "down", ""),
        Case::pair("second-nic", "add-nic", "remove-nic"),
    ];
    let cases = cases.map(|case| case.with_keys("treatments = [{ path = \"accelerated\" }]\n"));
    let text = plan_of("unused", &cases, TIMING);
    let hosts = "[lab]\nrules = 0\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n";
    let path = folder.join("plan.toml");
    std::fs::write(&path, on_hosts(&text, hosts)).unwrap();
    let mut command = Command::new(prepared().unwrap().netduel());
    command
        .args(["run", path.to_str().unwrap(), "--json"])
        .env("NETDUEL_STORE", folder.join("store"))
        .env("XDG_STATE_HOME", folder.join("state"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let report = document(&output.stdout, &output.stderr);
    print_rows("lab", &report, &cases);
}

/// Prints a row for each event, and checks that each was seen as what it is.
fn print_rows(path: &str, report: &Value, cases: &[Case]) {
    for case in cases {
        for event in events_of(report, case) {
            let (up, down) = (&event["client_to_server"], &event["server_to_client"]);
            println!(
                "| {path} | {} | {} | {} | {} | {}, {} | {} |",
                case.name,
                event["kind"].as_str().unwrap(),
                milliseconds(&numbers(&up["outage_by_trial_ns"])),
                milliseconds(&numbers(&down["outage_by_trial_ns"])),
                median(&numbers(&up["lost_by_trial"])),
                median(&numbers(&down["lost_by_trial"])),
                recovery(up)
            );
        }
    }
    assert_outcomes(report, cases, TIMING);
}

/// The numbers of a list, ascending.
fn numbers(list: &Value) -> Vec<f64> {
    let mut numbers: Vec<f64> = list.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

fn median(ascending: &[f64]) -> f64 {
    ascending.get(ascending.len() / 2).copied().unwrap_or(f64::NAN)
}

fn milliseconds(ascending_ns: &[f64]) -> String {
    let max = ascending_ns.last().copied().unwrap_or(f64::NAN);
    format!("{:.0}, {:.0} ms", median(ascending_ns) / 1e6, max / 1e6)
}

/// The median of the trials that recovered, and how many did not.
fn recovery(way: &Value) -> String {
    let dips = way["streams_by_trial"].as_array().unwrap();
    let mut times: Vec<f64> = dips.iter().filter_map(|dip| dip["recovery_ns"].as_f64()).collect();
    times.sort_by(f64::total_cmp);
    let recovered = if times.is_empty() { String::new() } else { format!("{:.0} ms", median(&times) / 1e6) };
    match dips.len() - times.len() {
        0 => recovered,
        none if times.is_empty() => format!("none in {none} trials"),
        none => format!("{recovered}; none in {none} trials"),
    }
}
