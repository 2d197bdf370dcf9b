//! The figures of failovers in guests beside those of the lab, as the rows of a table: `cargo xtask guests failover`. They depend on the
//! machine, so no figure is judged; whether a path recovers is a fact. A command of the plan lets QEMU change the path in each trial.
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use netduel_guests::{Bed, Guest};
use netduel_test_support::not_requested;
use serde_json::{Value, json};

use super::coordinator::{Coordinator, assert_all_valid, plan};
use super::failover::{ACTIVE_IN_BOND, join_bond, plug_into_bond, set_up_bond};
use super::scenes::with_scene;
use super::{end, prepared, run};

/// Set by `cargo xtask guests failover`.
const REQUESTED: &str = "NETDUEL_FAILOVER_TABLE";
const BLOCKS: u32 = 3;
/// The primary of net_failover as it was.
const PRIMARY_IS_BACK: &str =
    "until [ -e /sys/class/net/eth0/master ]; do usleep 50000; done; . /scene.sh; up eth0";

/// A way to lose a path and to get it back.
struct Case {
    name: &'static str,
    events: String,
    /// Whether the path carries traffic again before the second event.
    recovers: bool,
}

impl Case {
    /// Events that netduel makes.
    fn own(name: &'static str, kind: &str, interface: &str) -> Self {
        Self::of(name, &format!("do = \"{kind}\""), interface)
    }

    /// Commands in the client.
    fn commands(name: &'static str, interface: &str, away: &str, back: &str) -> Self {
        let words = |script: &str| format!("[\"sh\", \"-c\", {script:?}]");
        let what = format!("do = \"command\", command = {}, undo = {}", words(away), words(back));
        Self::of(name, &what, interface)
    }

    /// Changes that the test makes when the client waits for them.
    fn awaited(name: &'static str, interface: &str) -> Self {
        let wait = |step: &str| {
            format!(
                "touch /tmp/change-{name}-{step}; until rm /tmp/changed 2> /dev/null; do usleep 20000; done"
            )
        };
        Self::commands(name, interface, &wait("away"), &wait("back"))
    }

    fn of(name: &'static str, what: &str, interface: &str) -> Self {
        let interface =
            if interface.is_empty() { String::new() } else { format!(", interface = \"{interface}\"") };
        let events = format!(
            "events = [{{ at = \"2 s\", {what}{interface} }}, {{ at = \"7 s\", do = \"return\"{interface} }}]"
        );
        Self { name, events, recovers: true }
    }

    fn without_recovery(self) -> Self {
        Self { recovers: false, ..self }
    }
}

#[test]
fn failovers_of_guests_stand_beside_those_of_the_lab() {
    if std::env::var_os(REQUESTED).is_none() {
        return not_requested("the table of failovers; run `cargo xtask guests failover`");
    }
    println!("| path | case | event | outage up, median and max | outage down | lost up, down | recovery |");
    println!("|---|---|---|---|---|---|---|");
    lab();
    with_scene("e1000e", &[1, 2], |mut bed, _| {
        below_net_failover(&mut bed);
        end(bed);
    });
    with_scene("hotplug", &[1], |mut bed, _| {
        below_a_bond(&mut bed);
        end(bed);
    });
}

fn below_net_failover(bed: &mut Bed) {
    let cases = [
        Case::own("sysfs removal", "remove", "fo0"),
        Case::awaited("unplug", "fo0"),
        // What the standby receives is dropped while a primary is there, with or without carrier.
        Case::awaited("carrier", "fo0").without_recovery(),
        Case::awaited("second-nic", "fo0"),
    ];
    let changes = |guest: &mut Guest, change: &str| match change {
        "unplug-away" => guest.unplug("eth0").unwrap(),
        "unplug-back" => {
            guest.plug("eth0").unwrap();
            run(guest, PRIMARY_IS_BACK);
        }
        "carrier-away" => set_carrier(guest, "eth0", false),
        "carrier-back" => set_carrier(guest, "eth0", true),
        "second-nic-away" => guest.unplug("e1k0").unwrap(),
        "second-nic-back" => {
            guest.plug("e1k0").unwrap();
            let mac = guest.mac("e1k0").unwrap();
            run(guest, &format!(". /scene.sh; rename {mac} e1000e e1k0; up e1k0"));
        }
        other => panic!("no change {other}"),
    };
    measure(bed, "net_failover", "10.1.0.2", &cases, changes);
}

fn below_a_bond(bed: &mut Bed) {
    set_up_bond(bed);
    let remove = "echo 1 > /sys/class/net/hot0/device/remove";
    let other_first = format!("echo hot1 > /sys/class/net/bond0/bonding/active_slave; usleep 2000; {remove}");
    let rescan = format!("echo 1 > /sys/bus/pci/rescan; {}; {ACTIVE_IN_BOND}", join_bond("hot0"));
    let cases = [
        Case::own("down", "down", "bond0"),
        Case::commands("sysfs removal", "bond0", remove, &rescan),
        Case::commands("graceful", "bond0", &other_first, &rescan),
        Case::awaited("unplug", "bond0"),
        Case::awaited("carrier", "bond0"),
        Case::awaited("second-nic", "bond0"),
    ];
    let changes = |guest: &mut Guest, change: &str| match change {
        "unplug-away" => guest.unplug("hot0").unwrap(),
        "unplug-back" => {
            plug_into_bond(guest, "hot0");
            run(guest, ACTIVE_IN_BOND);
        }
        "carrier-away" => set_carrier(guest, "hot0", false),
        "carrier-back" => {
            set_carrier(guest, "hot0", true);
            run(guest, ACTIVE_IN_BOND);
        }
        "second-nic-away" => guest.unplug("hot1").unwrap(),
        "second-nic-back" => plug_into_bond(guest, "hot1"),
        other => panic!("no change {other}"),
    };
    measure(bed, "bond", "10.2.0.2", &cases, changes);
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
        Case {
            events: "events = [{ at = \"2 s\", do = \"add-nic\" }, { at = \"7 s\", do = \"remove-nic\" }]"
                .to_owned(),
            ..Case::own("second-nic", "down", "")
        },
    ];
    let arms = arms_of(&cases, "treatments = [{ path = \"accelerated\" }]\n");
    let text = plan("unused", &borrowed(&arms), WORKLOAD, BLOCKS);
    let hosts = "[lab]\nrules = 0\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n";
    let (head, rest) = text.split_once("[hosts.a]").unwrap();
    let (_, rest) = rest.split_once("[[arms]]").unwrap();
    let path = folder.join("plan.toml");
    std::fs::write(&path, format!("{head}{hosts}[[arms]]{rest}")).unwrap();
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

const WORKLOAD: &str =
    "[[workloads]]\nname = \"failover\"\ntype = \"failover\"\nduration = \"12 s\"\nstreams = 1\n";

fn arms_of(cases: &[Case], further: &str) -> Vec<(String, String)> {
    let arm = |case: &Case| (case.name.replace(' ', "-"), format!("{further}set = {{ {} }}", case.events));
    cases.iter().map(arm).collect()
}

fn borrowed(arms: &[(String, String)]) -> Vec<(&str, &str)> {
    arms.iter().map(|(name, keys)| (name.as_str(), keys.as_str())).collect()
}

/// Runs the cases, makes each change when the client waits for it, and prints their rows.
fn measure(
    bed: &mut Bed,
    path: &str,
    address: &str,
    cases: &[Case],
    mut change: impl FnMut(&mut Guest, &str),
) {
    let coordinator = Coordinator::new(bed);
    let arms = arms_of(cases, "");
    let plan = coordinator.plan(&plan(address, &borrowed(&arms), WORKLOAD, BLOCKS));
    let mut command = coordinator.command(bed, &["run", &plan, "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = std::thread::spawn({
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        move || {
            let errors = std::thread::spawn(|| std::io::read_to_string(stderr).unwrap());
            (std::io::read_to_string(stdout).unwrap(), errors.join().unwrap())
        }
    });
    let next = "for round in $(seq 40); do for file in /tmp/change-*; do [ -e \"$file\" ] || continue; \
         rm \"$file\"; echo \"${file#/tmp/change-}\"; exit; done; usleep 50000; done";
    while is_running(&mut child) {
        let guest = &mut bed.guests()[0];
        let name = run(guest, next);
        if !name.is_empty() {
            change(guest, name.trim());
            run(guest, "touch /tmp/changed");
        }
    }
    let (stdout, stderr) = output.join().unwrap();
    let report = document(stdout.as_bytes(), stderr.as_bytes());
    print_rows(path, &report, cases);
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

fn set_carrier(guest: &mut Guest, interface: &str, is_up: bool) {
    guest.qmp("set_link", &json!({ "name": interface, "up": is_up })).unwrap();
    let file = format!("/sys/class/net/{interface}/carrier");
    run(guest, &format!("until [ \"$(cat {file})\" = {} ]; do usleep 20000; done", u8::from(is_up)));
}

#[track_caller]
fn document(stdout: &[u8], stderr: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
    })
}

/// Prints a row for each event, and checks that each was seen as what it is.
fn print_rows(path: &str, report: &Value, cases: &[Case]) {
    assert_all_valid(report, cases.len() as u64 * u64::from(BLOCKS));
    let arms = report["workloads"][0]["arms"].as_array().unwrap();
    let names: BTreeSet<&str> = arms.iter().filter_map(|arm| arm["arm"].as_str()).collect();
    assert_eq!(names.len(), cases.len(), "{names:?}");
    for case in cases {
        let arm = arms.iter().find(|arm| arm["arm"] == *case.name.replace(' ', "-")).unwrap();
        let events = arm["failover"]["events"].as_array().unwrap();
        for event in events {
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
        let until_return_ns = 4.5e9;
        for way in ["client_to_server", "server_to_client"] {
            let outages = numbers(&events[0][way]["outage_by_trial_ns"]);
            // A path that is lost in one direction carries no stream in either.
            if case.recovers {
                assert!(outages.iter().all(|ns| *ns < until_return_ns), "{}: {outages:?}", case.name);
            }
        }
        let dips = events[0]["client_to_server"]["streams_by_trial"].as_array().unwrap();
        assert_eq!(dips.len(), BLOCKS as usize);
        if !case.recovers {
            assert!(dips.iter().all(|dip| dip["recovery_ns"].is_null()), "{}: {dips:#?}", case.name);
        }
    }
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
