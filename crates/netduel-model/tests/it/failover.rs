//! Plans of failovers: what is wrong with their events is reported with line and key, and what is left out has its default.
use netduel_model::failover::{PathEvent, PathEventKind};
use netduel_model::metric::Metric;
use netduel_model::plan::parse;
use netduel_model::plan::spec::Side;
use netduel_model::units::{Bytes, Nanos, PerSecond};
use netduel_model::workload::Traffic;

/// A valid plan; each case changes one line of it.
const GOOD: &str = r#"name = "good"
question = "What does it cost?"
[lab]
[hosts.a]
launch = "lab"
[hosts.b]
launch = "lab"
[hosts.near]
launch = "netns"
netns = "near"
addresses = ["192.0.2.1"]
[hosts.far]
launch = "paired"
serve = "192.0.2.2"
addresses = ["192.0.2.2"]
[[arms]]
name = "surprise"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
[[arms]]
name = "real"
client = "near"
server = "far"
set = { events = [{ at = "1 s", do = "down", interface = "vf7" }] }
[[workloads]]
name = "lost"
type = "failover"
duration = "3 s"
request_rate = "1 k/s"
events = [{ at = "1 s", do = "remove" }, { at = "2 s", do = "return" }]
"#;

const EVENTS: &str = r#"events = [{ at = "1 s", do = "remove" }, { at = "2 s", do = "return" }]"#;
const REAL: &str = r#"set = { events = [{ at = "1 s", do = "down", interface = "vf7" }] }"#;

#[test]
fn what_is_left_out_has_its_default() {
    let plan = parse(GOOD, "p").unwrap();
    let workload = &plan.arms[0].workloads[0];
    let Traffic::Failover(failover) = &workload.traffic else { panic!("{:?}", workload.traffic) };
    assert_eq!((failover.streams, failover.size, failover.rate), (1, Bytes(64), PerSecond(1000)));
    let event = |at, kind| PathEvent {
        at: Nanos(at),
        kind,
        on: Side::Client,
        interface: None,
        command: Vec::new(),
        undo: Vec::new(),
    };
    assert_eq!(
        failover.events,
        [event(1_000_000_000, PathEventKind::Remove), event(2_000_000_000, PathEventKind::Return)]
    );
    assert_eq!(workload.metrics, [Metric::Outage, Metric::LostInOutage, Metric::RecoveryTime]);
    let Traffic::Failover(of_arm) = &plan.arms[1].workloads[0].traffic else { panic!() };
    assert_eq!(
        of_arm.events[0].interface.as_deref(),
        Some("vf7"),
        "an arm's events stand for the workload's"
    );
    let probes_alone = parse(&GOOD.replace("duration", "streams = 0\nduration"), "p").unwrap();
    assert_eq!(probes_alone.arms[0].workloads[0].metrics, [Metric::Outage, Metric::LostInOutage]);
}

/// What is there, what stands there instead, and what is reported.
const WRONG: &[(&str, &str, &str)] = &[
    (EVENTS, "", "p:26: workload \"lost\", events: has no event"),
    (EVENTS, "events = []", "p:31: workload \"lost\", events: has no event"),
    (EVENTS, r#"events = [{ do = "remove" }]"#, "p:31: workload \"lost\", event 1, at: is missing"),
    (
        EVENTS,
        r#"events = [{ at = "1 s", do = "remov" }]"#,
        "p:31: workload \"lost\", event 1, do: is the text \"remov\"; did you mean \"remove\"?",
    ),
    (
        EVENTS,
        r#"events = [{ at = "3 s", do = "remove" }]"#,
        "p:31: workload \"lost\", event 1, at: is \"3 s\", and the traffic is over after \"3 s\"",
    ),
    (EVENTS, r#"events = [{ at = "0 s", do = "remove" }]"#, "p:31: workload \"lost\", event 1, at: is 0"),
    (
        EVENTS,
        r#"events = [{ at = "2 s", do = "remove" }, { at = "2 s", do = "return" }]"#,
        "p:31: workload \"lost\", event 2, at: is \"2 s\", not later than the event before at \"2 s\"",
    ),
    (
        EVENTS,
        r#"events = [{ at = "1 s", do = "return" }]"#,
        "p:31: workload \"lost\", event 1, do: is \"return\", which restores a path that was not changed",
    ),
    (
        EVENTS,
        r#"events = [{ at = "1 s", do = "remove" }, { at = "2 s", do = "carrier" }]"#,
        "p:31: workload \"lost\", event 2, do: is \"carrier\", which changes a path that is changed already",
    ),
    (
        EVENTS,
        r#"events = [{ at = "1 s", do = "remove-nic" }]"#,
        "p:31: workload \"lost\", event 1, do: is \"remove-nic\", which removes a second interface",
    ),
    (
        EVENTS,
        r#"events = [{ at = "1 s", do = "remove", interface = "vf0" }]"#,
        "p:31: workload \"lost\", event 1, interface: names an interface, but guests of the lab have one",
    ),
    (
        r#"path = "accelerated""#,
        r#"path = "synthetic""#,
        "p:31: workload \"lost\", event 1, do: is \"remove\", on an arm whose traffic does not run over the virtual function",
    ),
    (
        REAL,
        r#"set = { events = [{ at = "1 s", do = "carrier", interface = "vf7" }] }"#,
        "p:25: arm \"real\", set, event 1, do: is \"carrier\", which only guests of the lab have",
    ),
    (
        REAL,
        r#"set = { events = [{ at = "1 s", do = "command", interface = "vf7", undo = ["true"] }] }"#,
        "p:25: arm \"real\", set, event 1, command: names no program",
    ),
    (
        REAL,
        r#"set = { events = [{ at = "1 s", do = "command", interface = "vf7", command = ["true"] }] }"#,
        "p:25: arm \"real\", set, event 1, undo: names no program",
    ),
    (
        REAL,
        r#"set = { events = [{ at = "1 s", do = "down", interface = "vf7", command = ["true"] }] }"#,
        "p:25: arm \"real\", set, event 1, command: is set, and the event is \"down\"",
    ),
    (
        EVENTS,
        r#"events = [{ at = "1 s", do = "command", command = ["true"], undo = ["true"] }]"#,
        "p:31: workload \"lost\", event 1, do: is \"command\", which guests of the lab do not have",
    ),
    (
        REAL,
        r#"set = { events = [{ at = "1 s", do = "down" }] }"#,
        "p:25: arm \"real\", set, event 1, interface: is missing",
    ),
    (
        REAL,
        r#"set = { events = [{ at = "1 s", do = "down", interface = "vf7", on = "server" }] }"#,
        "p:25: arm \"real\", set, event 1: takes from the `netduel serve` at 192.0.2.2",
    ),
    (
        "request_rate = \"1 k/s\"",
        "request_rate = \"1 /s\"",
        "p:30: workload \"lost\", request_rate: is \"1 /s\"; \"10 /s\" to",
    ),
    (
        "duration = \"3 s\"",
        "duration = \"1 h\"",
        "p:29: workload \"lost\", duration: is \"60 min\", in which 3600000 probes",
    ),
    (
        "type = \"failover\"",
        "type = \"failover\"\nstreams = 0\nmetrics = [\"outage\", \"recovery-time\"]",
        "p:30: workload \"lost\", metrics, element 2: \"recovery-time\" is measured with streams, and `streams` is 0; set `streams` to 1",
    ),
    (
        "type = \"failover\"",
        "type = \"tcp-stream\"",
        "p:25: arm \"real\", set.events: overrides a setting that no workload",
    ),
];

#[test]
fn wrong_events_are_reported_at_their_line_and_key() {
    for (good, wrong, expected) in WRONG {
        assert_eq!(GOOD.matches(*good).count(), 1, "{good:?} is there once");
        let reported = parse(&GOOD.replace(*good, wrong), "p").expect_err(wrong).to_string();
        assert!(reported.lines().any(|line| line.starts_with(*expected)), "for {wrong:?}:\n{reported}");
    }
}
