//! Ways to lose a path below net_failover and below a bond, and to get it back: netduel makes the change, a command of the plan, or QEMU, which a
//! command of the plan waits for.
use std::process::{Child, Stdio};

use netduel_guests::{Bed, Guest};
use serde_json::{Value, json};

use super::bond::{ACTIVE_IN_BOND, join_bond, plug_into_bond};
use super::coordinator::{Coordinator, assert_all_valid, plan};
use super::{reach, run};

/// Times of a trial on a quiet machine, seconds.
#[derive(Clone, Copy)]
pub struct Timing {
    /// When the path goes away.
    pub away: u32,
    /// When it returns.
    pub back: u32,
    /// Whether one that recovers returns then as well; otherwise it returns after the traffic, as netduel restores everything.
    pub returns_always: bool,
    /// Duration of the traffic.
    pub duration: u32,
    /// Trials of each case.
    pub blocks: u32,
}

/// Time that the traffic of an emulated machine needs for a steady state, ns.
const SETTLING_NS: f64 = 500e6;

/// A way to lose a path and to get it back.
pub struct Case {
    pub name: &'static str,
    /// The keys of both events.
    away: String,
    back: String,
    /// Further keys of the arm.
    keys: &'static str,
    /// Whether traffic has another path meanwhile.
    recovers: bool,
}

impl Case {
    /// Events that netduel makes.
    pub fn own(name: &'static str, kind: &str, interface: &str) -> Self {
        Self::of(name, &format!("do = \"{kind}\""), interface)
    }

    /// Two events without an interface.
    pub fn pair(name: &'static str, away: &str, back: &str) -> Self {
        Self { back: format!("do = \"{back}\""), ..Self::own(name, away, "") }
    }

    /// Commands in the client.
    fn commands(name: &'static str, interface: &str, away: &str, back: &str) -> Self {
        let words = |script: &str| format!("[\"sh\", \"-c\", {script:?}]");
        let what = format!("do = \"command\", command = {}, undo = {}", words(away), words(back));
        Self::of(name, &what, interface)
    }

    /// Changes that the test makes when the client waits for them. On a bed the interface can be left empty.
    pub fn awaited(name: &'static str, interface: &str) -> Self {
        let wait = |step: &str| {
            format!(
                "touch /tmp/change-{name}-{step}; until [ -e /tmp/changed ]; do usleep 20000; done; \
                 rm /tmp/changed"
            )
        };
        Self::commands(name, interface, &wait("away"), &wait("back"))
    }

    fn of(name: &'static str, what: &str, interface: &str) -> Self {
        let interface =
            if interface.is_empty() { String::new() } else { format!(", interface = \"{interface}\"") };
        Self {
            name,
            away: format!("{what}{interface}"),
            back: format!("do = \"return\"{interface}"),
            keys: "",
            recovers: true,
        }
    }

    /// The same with further keys of its arm.
    pub fn with_keys(self, keys: &'static str) -> Self {
        Self { keys, ..self }
    }

    fn without_recovery(self) -> Self {
        Self { recovers: false, ..self }
    }

    /// The name of its arm.
    fn arm(&self) -> String {
        self.name.replace(' ', "-")
    }

    /// The keys of its arm.
    fn arm_keys(&self, timing: Timing) -> String {
        let back = match self.returns_at(timing) {
            Some(at) => format!(", {{ at = \"{at} s\", {} }}", self.back),
            None => String::new(),
        };
        format!("{}set = {{ events = [{{ at = \"{} s\", {} }}{back}] }}", self.keys, timing.away, self.away)
    }

    /// When the path returns, if it does while traffic runs.
    fn returns_at(&self, timing: Timing) -> Option<u32> {
        (timing.returns_always || !self.recovers).then_some(timing.back)
    }
}

/// All cases below net_failover. QEMU unplugs when the guest has let go of the device: that is the graceful removal here.
pub fn cases_below_net_failover() -> Vec<Case> {
    vec![
        Case::own("sysfs removal", "remove", "fo0"),
        Case::own("dead", "remove", "fo0").without_recovery().with_keys(
            "treatments = [{ command = [\"ip\", \"link\", \"set\", \"fo0nsby\", \"down\"], \
             undo = [\"ip\", \"link\", \"set\", \"fo0nsby\", \"up\"], on = \"client\" }]\n",
        ),
        Case::awaited("unplug", "fo0"),
        // What the standby receives is dropped while a primary is there, with or without carrier.
        Case::awaited("carrier", "fo0").without_recovery(),
        Case::awaited("second-nic", "fo0"),
    ]
}

/// Makes the changes that the cases below net_failover wait for.
pub fn change_below_net_failover(guest: &mut Guest, change: &str) {
    match change {
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
    }
}

/// The primary of net_failover as it was.
pub const PRIMARY_IS_BACK: &str =
    "until [ -e /sys/class/net/eth0/master ]; do usleep 50000; done; . /scene.sh; up eth0";

/// All cases below a bond.
pub fn cases_below_a_bond() -> Vec<Case> {
    let remove = "echo 1 > /sys/class/net/hot0/device/remove";
    let other_first = format!("echo hot1 > /sys/class/net/bond0/bonding/active_slave; usleep 2000; {remove}");
    let rescan = format!("echo 1 > /sys/bus/pci/rescan; {}; {ACTIVE_IN_BOND}", join_bond("hot0"));
    vec![
        Case::own("down", "down", "bond0"),
        Case::commands("sysfs removal", "bond0", remove, &rescan),
        Case::commands("graceful", "bond0", &other_first, &rescan),
        Case::awaited("unplug", "bond0"),
        Case::awaited("carrier", "bond0"),
        Case::awaited("second-nic", "bond0"),
    ]
}

/// Makes the changes that the cases below a bond wait for.
pub fn change_below_a_bond(guest: &mut Guest, change: &str) {
    match change {
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
    }
}

/// The plan of cases.
pub fn plan_of(address: &str, cases: &[Case], timing: Timing) -> String {
    let arms: Vec<(String, String)> = cases.iter().map(|case| (case.arm(), case.arm_keys(timing))).collect();
    let arms: Vec<(&str, &str)> = arms.iter().map(|(name, keys)| (name.as_str(), keys.as_str())).collect();
    let workload = format!(
        "[[workloads]]\nname = \"failover\"\ntype = \"failover\"\nduration = \"{} s\"\nstreams = 1\n",
        timing.duration
    );
    plan(address, &arms, &workload, timing.blocks)
}

/// The plan with these tables in place of those of its hosts.
pub fn on_hosts(plan: &str, tables: &str) -> String {
    let (head, rest) = plan.split_once("[hosts.a]").unwrap();
    let (_, arms) = rest.split_once("[[arms]]").unwrap();
    format!("{head}{tables}[[arms]]{arms}")
}

/// Runs the cases and makes each change when the client waits for it. Returns the report.
pub fn measure(
    bed: &mut Bed,
    coordinator: &Coordinator,
    plan: &str,
    change: impl FnMut(&mut Guest, &str),
) -> Value {
    measure_by(bed, coordinator, &["run"], plan, change)
}

/// The same with this command of netduel.
pub fn measure_by(
    bed: &mut Bed,
    coordinator: &Coordinator,
    command: &[&str],
    plan: &str,
    mut change: impl FnMut(&mut Guest, &str),
) -> Value {
    let plan = coordinator.plan(plan);
    let words = [command, &[plan.as_str(), "--json"]].concat();
    let mut command = coordinator.command(bed, &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = std::thread::spawn({
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        move || {
            let errors = std::thread::spawn(|| std::io::read_to_string(stderr).unwrap());
            (std::io::read_to_string(stdout).unwrap(), errors.join().unwrap())
        }
    });
    // A program starts for each look, on the processor that the traffic needs.
    let next = "for round in $(seq 20); do for file in /tmp/change-*; do [ -e \"$file\" ] || continue; \
         rm \"$file\"; echo \"${file#/tmp/change-}\"; exit; done; usleep 100000; done";
    while is_running(&mut child) {
        let guest = &mut bed.guests()[0];
        let name = run(guest, next);
        if !name.is_empty() {
            change(guest, name.trim());
            run(guest, "touch /tmp/changed");
        }
    }
    let (stdout, stderr) = output.join().unwrap();
    document(stdout.as_bytes(), stderr.as_bytes())
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

fn set_carrier(guest: &mut Guest, interface: &str, is_up: bool) {
    guest.qmp("set_link", &json!({ "name": interface, "up": is_up })).unwrap();
    let file = format!("/sys/class/net/{interface}/carrier");
    reach(guest, &format!("[ \"$(cat {file})\" = {} ]", u8::from(is_up)));
}

/// The report that a run printed.
#[track_caller]
pub fn document(stdout: &[u8], stderr: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
    })
}

/// The events of a case in a report.
#[track_caller]
pub fn events_of<'a>(report: &'a Value, case: &Case) -> &'a [Value] {
    let arms = report["workloads"][0]["arms"].as_array().unwrap();
    let arm = arms.iter().find(|arm| arm["arm"] == *case.arm()).unwrap_or_else(|| panic!("{arms:#?}"));
    arm["failover"]["events"].as_array().unwrap()
}

/// A list of a report with a number for each trial.
#[track_caller]
pub fn by_trial(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

/// Each trial is valid, and each case has an outage and goes on or not as it should: how long an outage is depends on the machine. So does whether
/// the streams are steady enough for a recovery, which they rarely are on emulated processors beside other work. Tests of `analysis::dip` in
/// netduel-report demand it of series that are given.
#[track_caller]
pub fn assert_outcomes(report: &Value, cases: &[Case], timing: Timing) {
    assert_all_valid(report, cases.len() as u64 * u64::from(timing.blocks));
    for case in cases {
        let events = events_of(report, case);
        let away = &events[0];
        let kind = case.away.split('"').nth(1).unwrap();
        assert_eq!(away["kind"], kind, "{}", case.name);
        let dips = away["client_to_server"]["streams_by_trial"].as_array().unwrap();
        assert_eq!(dips.len(), timing.blocks as usize, "{}: {dips:#?}", case.name);
        if case.recovers {
            assert_recovery(events, timing, case.name);
        } else {
            let is_dead = |dip: &Value| dip["recovery_ns"].is_null();
            assert!(dips.iter().all(is_dead), "{}: {dips:#?}", case.name);
        }
    }
}

/// The path carries probes again while it is away, and its streams go on; where probes were lost there was an outage.
#[track_caller]
fn assert_recovery(events: &[Value], timing: Timing, name: &str) {
    let away = &events[0];
    let began = by_trial(&away["began_ns"]);
    for way in ["client_to_server", "server_to_client"] {
        let [outages, lost] = ["outage_by_trial_ns", "lost_by_trial"].map(|key| by_trial(&away[way][key]));
        assert_eq!(outages.len(), timing.blocks as usize, "{name}: {away:#}");
        // Probes followed each outage: before the end of the traffic, and before the return where it is an event.
        assert_eq!(away[way]["outages_open_ended"], 0, "{name}: {away:#}");
        if let Some(back) = events.get(1) {
            let times = by_trial(&back["began_ns"]).into_iter().zip(&began).map(|(back, away)| back - away);
            let are_over = outages.iter().zip(times).all(|(outage, time)| *outage < time);
            assert!(are_over, "{name}: {events:#?}");
        }
        let is_any = |values: &[f64]| values.iter().any(|value| *value > 0.0);
        assert!(!is_any(&lost) || is_any(&outages), "{name}: {away:#}");
    }
    let second_ns = away["at_ns"].as_f64().unwrap() / f64::from(timing.away);
    let end_ns = f64::from(timing.duration) * second_ns;
    let until = match events.get(1) {
        Some(back) => by_trial(&back["began_ns"]),
        None => vec![end_ns; began.len()],
    };
    let ended = began.iter().zip(by_trial(&away["kernel_ns"])).map(|(began, took)| began + took);
    let rests = until.iter().zip(ended).map(|(until, ended)| until - ended);
    let spans = until.iter().zip(&began).map(|(until, began)| until - began);
    let dips = away["client_to_server"]["streams_by_trial"].as_array().unwrap();
    // A reader that was stalled has no steady state. An emulated machine may be stopped for the whole of a short one, after a slow event.
    let goes_on = |dip: &Value| dip["settled_bps"].as_f64().is_none_or(|rate| rate > 0.0);
    let is_right = dips.iter().zip(rests).all(|(dip, rest)| rest < SETTLING_NS || goes_on(dip));
    let is_within =
        |dip: &Value, span| dip["recovery_ns"].as_f64().is_none_or(|took| took < span && goes_on(dip));
    let is_right = is_right && dips.iter().zip(spans).all(|(dip, span)| is_within(dip, span));
    assert!(is_right, "{name}: {away:#}");
}
