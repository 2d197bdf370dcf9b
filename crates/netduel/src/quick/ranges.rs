//! Checks every bound of every setting with all readers of the table of ranges: plans, their JSON Schema, the command lines of
//! quick tests and of the lab, agents and standing servers. Tests only. A type is named here only where its plan needs further settings, or
//! for a table of its own.
#[cfg(test)]
mod command_lines;
#[cfg(test)]
mod cores;
#[cfg(test)]
mod narrowed;

use std::collections::BTreeSet;

use clap::Parser as _;
use netduel_agent::treatment::{GuardCommand, TreatmentError, Treatments};
use netduel_model::ids::WorkloadName;
use netduel_model::plan::tuning::{Ring, RssSpread};
use netduel_model::plan::{self, TreatmentAction, spec::SettingsSpec};
use netduel_model::search::{Search, SearchGoal, SearchPreset};
use netduel_model::units::Nanos;
use netduel_model::workload::{
    BANDWIDTH_LIMIT, DATA_PORT, DESCRIPTORS, DESIGN, DURATION, Family, LAB, PinAuto, SEARCH_GOAL, SSH,
    Setting, SettingRange, TREATMENT, Timing, Traffic, Unit, Workload, WorkloadType,
};
use serde_json::Value;

use super::options::option;
use crate::cli::lab::LabCommand;
use crate::serve::rules::Rules;
use command_lines::{quick_test, takes_of};

const SECOND: Nanos = Nanos(1_000_000_000);
const TIMING: Timing = Timing { duration: SECOND, warmup: Nanos(0), cooldown: Nanos(0) };

/// A value of a setting and whether it is in the range.
#[derive(Clone, Copy)]
struct Case {
    kind: WorkloadType,
    setting: &'static Setting,
    range: SettingRange,
    value: u64,
    is_good: bool,
}

/// The bounds and their neighbours. Text of a number beyond the range of its type has an error of its own.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in WorkloadType::ALL {
        for setting in kind.settings() {
            let Some(range) = setting.range else { continue };
            // 1 % is the resolution of written fractions.
            let step = if range.unit == Unit::Share { 10_000 } else { 1 };
            let largest = if range.unit.is_number() { u64::from(u32::MAX) } else { i64::MAX as u64 };
            let below = range.least.checked_sub(step).map(|value| (value, false));
            let above = range.most.checked_add(step).filter(|most| *most <= largest);
            let values = [
                Some((range.least, true)),
                Some((range.most, true)),
                below,
                above.map(|value| (value, false)),
            ];
            for (value, is_good) in values.into_iter().flatten() {
                cases.push(Case { kind: *kind, setting, range, value, is_good });
            }
        }
    }
    cases
}

fn name(case: &Case) -> String {
    format!("{} = {} of {}", case.setting.key, case.range.unit.toml(case.value), case.kind.word())
}

/// Other settings that a type requires, so that nothing else is invalid.
fn beside(case: &Case) -> &'static str {
    match (case.kind, case.setting.key) {
        (WorkloadType::Failover, _) => {
            "duration = \"10 s\"\nevents = [{ at = \"2 s\", do = \"remove\" }, { at = \"4 s\", do = \"return\" }]\n"
        }
        (WorkloadType::Pps, "queues") => "generator = \"xdp\"\nflows = 1024\n",
        (WorkloadType::Pps, key) if key.starts_with("dpdk.") => "generator = \"dpdk\"\n",
        _ => "duration = \"10 s\"\n",
    }
}

fn plan_of(case: &Case) -> String {
    let text = format!(
        "{BEGIN}type = \"{}\"\n{}{} = {}\n[lab]\n",
        case.kind.word(),
        beside(case),
        case.setting.key,
        case.range.unit.toml(case.value)
    );
    // No lab has as many queues as a NIC may have.
    if case.setting.key == "queues" { elsewhere(&text) } else { text }
}

/// The same plan for hosts that are no guests of a lab.
fn elsewhere(text: &str) -> String {
    let text = text.replace("launch = \"lab\"", "launch = \"local\"\naddresses = [\"192.0.2.1\"]");
    text.replace("{ path = \"accelerated\" }, ", "")
        .replace("{ path = \"accelerated\" }", "")
        .replace("[lab]\n", "")
}

#[test]
fn every_type_has_a_range_for_each_of_its_quantities() {
    let cases = cases();
    for kind in WorkloadType::ALL {
        assert!(cases.iter().any(|case| case.kind == *kind), "{}", kind.word());
    }
    assert!(cases.len() > 100, "{} cases", cases.len());
}

#[test]
fn plans_accept_settings_exactly_within_their_bounds() {
    for case in cases() {
        let parsed = plan::parse(&plan_of(&case), "p");
        match parsed {
            Ok(_) => assert!(case.is_good, "{} was taken", name(&case)),
            Err(errors) => {
                assert!(!case.is_good, "{}: {errors}", name(&case));
                let key = format!("workloads[0].{}", case.setting.key);
                assert!(
                    errors.problems.iter().any(|problem| problem.key == key),
                    "{}: {errors}",
                    name(&case)
                );
            }
        }
    }
}

/// The workload as sent to an agent or a server by a client that did not validate it.
fn workload(case: &Case) -> Workload {
    let mut spec = SettingsSpec::default();
    assert!(spec.set_number(case.setting.key, case.value), "{} cannot be set", name(case));
    Workload {
        name: WorkloadName::new("w").unwrap(),
        traffic: plan::traffic(&spec, case.kind, SECOND),
        timing: TIMING,
        family: Family::Ipv4,
        dscp: spec.dscp.and_then(|dscp| u8::try_from(dscp).ok()),
        pin_client: Vec::new(),
        pin_server: Vec::new(),
        pin_auto: PinAuto::default(),
        metrics: Vec::new(),
    }
}

#[test]
fn agents_and_servers_have_the_bounds_of_plans() {
    let rules = Rules { longest: SECOND, fastest: None, streams: u32::MAX };
    for case in cases() {
        let workload = workload(&case);
        let agent = netduel_load::check_ranges(&workload).err();
        assert_eq!(agent.is_none(), case.is_good, "agent, {}: {agent:?}", name(&case));
        let server = rules.refusal(&workload);
        assert_eq!(server.is_none(), case.is_good, "server, {}: {server:?}", name(&case));
        let names_the_key = server.is_none_or(|why| why.contains(case.setting.key));
        assert!(names_the_key, "{}", name(&case));
    }
}

#[test]
fn the_schema_has_the_bounds_of_each_type() {
    let schema = plan::schema();
    let rules = schema["$defs"]["WorkloadSpec"]["allOf"].as_array().expect("it has rules");
    for case in cases() {
        let is_its = |rule: &&Value| rule["if"]["properties"]["type"]["const"] == case.kind.word();
        let rule = rules.iter().find(is_its).expect("every type has one");
        let bounds = match case.setting.key.split_once('.') {
            Some((_, key)) => &schema["$defs"]["DpdkSpec"]["properties"][key],
            None => &rule["then"]["properties"][case.setting.key],
        };
        let SettingRange { least, most, unit, .. } = case.range;
        if unit.is_number() {
            let is_good = bounds["minimum"].as_u64() <= Some(case.value)
                && Some(case.value) <= bounds["maximum"].as_u64();
            assert_eq!(is_good, case.is_good, "{}", name(&case));
        } else {
            let expected = [unit.show(least), unit.show(most)];
            assert_eq!([&bounds["x-minimum"], &bounds["x-maximum"]], [&expected[0], &expected[1]]);
        }
    }
}

/// The plan of a case without its workload.
const BEGIN: &str = "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
    [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]\n\
    [[arms]]\nname = \"two\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]\n\
    [[workloads]]\nname = \"w\"\n";

/// Tables of settings that belong to no type: their position in the schema, and a plan with one of their keys set.
type Table = (&'static str, &'static [Setting], fn(&str, &str) -> String);
const TABLES: [Table; 8] = [
    ("LabSpec", LAB, |key, value| format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n{key} = {value}\n")),
    ("WorkloadSpec", &[DURATION], |key, value| format!("{BEGIN}type = \"tcp-rr\"\n{key} = {value}\n[lab]\n")),
    ("DesignSpec", DESIGN, |key, value| {
        // No fewer blocks at most than at least.
        let beside = if key == "blocks_min" { "blocks_max = 10000" } else { "" };
        format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n[design]\n{key} = {value}\n{beside}\n")
    }),
    ("HostSpec", BANDWIDTH_LIMIT, |key, value| {
        format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n").replacen(
            "[hosts.b]\n",
            &format!("[hosts.b]\n{key} = {value}\n"),
            1,
        )
    }),
    ("ArmSpec", BANDWIDTH_LIMIT, |key, value| {
        format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n").replacen(
            "[[arms]]\n",
            &format!("[[arms]]\n{key} = {value}\n"),
            1,
        )
    }),
    ("HostSpec", SSH, |key, value| {
        let arm = |name: &str| format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n");
        format!(
            "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"ssh\"\nhost = \"vm\"\n\
             addresses = [\"192.0.2.1\"]\n{key} = {value}\n{}{}[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n",
            arm("one"),
            arm("two")
        )
    }),
    ("TreatmentSpec", TREATMENT, |key, value| with_treatment(&format!("{key} = {value}"))),
    ("SearchGoalSpec", SEARCH_GOAL, |key, value| {
        // Equal to the trial length of the goal.
        let beside = match key {
            "initial_trial" => ", final_trial = \"1 h\"",
            "duration_sum" => ", final_trial = \"100 ms\"",
            _ => "",
        };
        format!("{BEGIN}type = \"pps\"\nsearch = [{{ {key} = {value}{beside} }}]\n[lab]\n")
    }),
];

/// A plan whose first arm has a further treatment.
fn with_treatment(change: &str) -> String {
    let treatment = format!(", {{ interface = \"eth0\", {change} }}]");
    elsewhere(&format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n").replacen(" }]", &format!(" }}{treatment}"), 1))
}

/// The bounds of a range and the values next to them, each with whether it is in the range.
fn bounds(setting: &Setting) -> impl Iterator<Item = (u64, bool)> + use<> {
    let range = setting.range.expect("it is a quantity");
    let values = [
        Some((range.least, true)),
        Some((range.most, true)),
        range.least.checked_sub(1).map(|value| (value, false)),
        Some((range.most + 1, false)),
        (range.step > 1).then_some((range.least + 1, false)),
    ];
    values.into_iter().flatten()
}

/// Checks which of these values a plan accepts.
fn check_bounds(setting: &Setting, plan: impl Fn(&str) -> String) {
    for (value, is_good) in bounds(setting) {
        let text = plan(&setting.range.expect("it is a quantity").unit.toml(value));
        let parsed = plan::parse(&text, "p");
        assert_eq!(parsed.is_ok(), is_good, "{text}: {:?}", parsed.err());
    }
}

#[test]
fn tables_of_plans_accept_settings_exactly_within_their_bounds() {
    let schema = plan::schema();
    for (definition, settings, text) in TABLES {
        for setting in settings {
            check_bounds(setting, |value| text(setting.key, value));
            let range = setting.range.expect("it is a quantity");
            let property = &schema["$defs"][definition]["properties"][setting.key];
            let description = property["description"].as_str().expect("it is described");
            assert!(description.ends_with(&format!("Range: {}.", range.words())), "{description}");
            assert_eq!(bounds_in_schema(property, range), [range.least, range.most], "{description}");
        }
    }
}

/// The bounds that a property of the schema has; those of text are compared as text.
fn bounds_in_schema(property: &Value, range: SettingRange) -> [u64; 2] {
    if range.unit.is_number() {
        return ["minimum", "maximum"].map(|key| property[key].as_u64().expect("a number"));
    }
    [("x-minimum", range.least), ("x-maximum", range.most)].map(|(key, bound)| {
        assert_eq!(property[key], range.unit.show(bound).as_str(), "{key}");
        bound
    })
}

#[test]
fn both_ends_of_data_ports_have_the_bounds_of_ports() {
    let with_ports = |ports: &str| {
        let host = format!("[hosts.b]\ndata_ports = \"{ports}\"\n");
        format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n").replacen("[hosts.b]\n", &host, 1)
    };
    let range = DATA_PORT.range.expect("it is a quantity");
    for (port, is_good) in bounds(&DATA_PORT) {
        for ports in [format!("{port}-{}", range.most), format!("{}-{port}", range.least)] {
            let parsed = plan::parse(&with_ports(&ports), "p");
            assert_eq!(parsed.is_ok(), is_good, "{ports}: {:?}", parsed.err());
        }
    }
    let property = &plan::schema()["$defs"]["HostSpec"]["properties"][DATA_PORT.key];
    let expected = [range.least.to_string(), range.most.to_string()];
    assert_eq!([&property["x-minimum"], &property["x-maximum"]], [&expected[0], &expected[1]]);
}

#[test]
fn a_ring_takes_descriptors_up_to_the_bounds_and_no_further() {
    check_bounds(&DESCRIPTORS, |value| with_treatment(&format!("ring = \"rx\", value = \"{value}\"")));
    let SettingRange { least, most, .. } = DESCRIPTORS.range.expect("it is a quantity");
    let schema = plan::schema();
    let rule = &schema["$defs"]["TreatmentSpec"]["allOf"][0];
    assert_eq!(rule["if"]["required"][0], "ring");
    let bounds = &rule["then"]["properties"][DESCRIPTORS.key];
    let expected = [least.to_string(), most.to_string()];
    assert_eq!([&bounds["x-minimum"], &bounds["x-maximum"]], [&expected[0], &expected[1]]);
}

/// The treatments with the quantity of a key, on an interface that does not exist.
fn treatments(key: &str, value: u64) -> Vec<TreatmentAction> {
    let interface = || "no-such".to_owned();
    let number = u32::try_from(value).expect("a quantity of treatments has 32 bits");
    let rss = |table| TreatmentAction::Rss { interface: interface(), table };
    let ring = |ring| TreatmentAction::Ring { interface: interface(), ring, descriptors: number };
    match key {
        "mtu" => vec![TreatmentAction::Mtu { interface: interface(), mtu: number }],
        "queues" => vec![
            TreatmentAction::Queues { interface: interface(), queues: number },
            rss(RssSpread::Equal { queues: number }),
            rss(RssSpread::Weights { weights: vec![1; number as usize] }),
        ],
        "value" => vec![ring(Ring::Rx), ring(Ring::Tx)],
        _ => panic!("no treatment has {key}"),
    }
}

#[test]
fn agents_have_the_bounds_of_treatments() {
    let mut agent = Treatments::new(GuardCommand::of_this_program());
    for setting in TREATMENT.iter().chain(&[DESCRIPTORS]) {
        for (value, is_good) in bounds(setting) {
            for action in treatments(setting.key, value) {
                let refused = agent.apply(std::slice::from_ref(&action)).expect_err("no such interface");
                let is_out = matches!(refused, TreatmentError::OutOfRange { .. });
                assert_eq!(is_out, !is_good, "{action:?}: {refused}");
            }
        }
    }
}

/// A goal with the value of a key, in the unit of its range.
fn goal(key: &str, value: u64) -> SearchGoal {
    let mut goal = SearchPreset::NoDrop.goal();
    let share = value as f64 / 1e6;
    match key {
        "final_trial" => goal.final_trial = Nanos(value),
        "duration_sum" => goal.duration_sum = Nanos(value),
        "initial_trial" => goal.initial_trial = Nanos(value),
        "settle" => goal.settle = Nanos(value),
        "loss_ratio" => goal.loss_ratio = share,
        "exceed_ratio" => goal.exceed_ratio = share,
        "width" => goal.width = share,
        _ => panic!("no goal has {key}"),
    }
    goal
}

#[test]
fn agents_and_servers_have_the_bounds_of_search_goals() {
    let rules = Rules { longest: SECOND, fastest: None, streams: u32::MAX };
    let pps = cases().into_iter().find(|case| case.kind == WorkloadType::Pps && case.is_good);
    let pps = workload(&pps.expect("pps has quantities"));
    for setting in SEARCH_GOAL {
        for (value, is_good) in bounds(setting) {
            let mut workload = pps.clone();
            let Traffic::Pps(settings) = &mut workload.traffic else { panic!("it is pps") };
            // The second goal is checked as the first is.
            let goals = vec![SearchPreset::NoDrop.goal(), goal(setting.key, value)];
            settings.packets.search = Some(Search { goals, trials_max: 1 });
            let agent = netduel_load::check_ranges(&workload).err();
            assert_eq!(agent.is_none(), is_good, "agent, {} = {value}: {agent:?}", setting.key);
            let server = rules.refusal(&workload);
            assert_eq!(server.is_none(), is_good, "server, {} = {value}: {server:?}", setting.key);
            assert!(server.is_none_or(|why| why.contains(setting.key)), "{}", setting.key);
        }
    }
}

#[test]
fn agents_and_servers_have_the_maximum_duration_of_plans() {
    let case = cases()[0];
    for (value, is_good) in [(24 * 3_600_000_000_000, true), (24 * 3_600_000_000_001, false)] {
        let mut workload =
            Workload { timing: Timing { duration: Nanos(value), ..TIMING }, ..workload(&case) };
        workload.traffic = plan::traffic(&SettingsSpec::default(), WorkloadType::TcpRr, SECOND);
        assert_eq!(netduel_load::check_ranges(&workload).is_ok(), is_good);
        let rules = Rules { longest: Nanos(u64::MAX), fastest: None, streams: u32::MAX };
        assert_eq!(rules.refusal(&workload).is_none(), is_good);
    }
}

/// Quantities that quick tests do not have as an option: they do not start testpmd.
const WITHOUT_OPTION: &[&str] = &["dpdk.queues", "dpdk.receive_queues", "dpdk.descriptors"];

/// Other options that a quick test requires, so that nothing else is invalid.
fn options_beside(case: &Case) -> &'static [&'static str] {
    match (case.kind, case.setting.key) {
        (WorkloadType::Pps, "queues") => &["--generator", "xdp", "-P", "1024"],
        _ => &[],
    }
}

#[test]
fn quick_tests_have_the_bounds_of_plans() {
    let mut commands = BTreeSet::new();
    for case in cases() {
        let (key, test) = (case.setting.key, quick_test(case.kind));
        let Some(test) = test.filter(|_| !WITHOUT_OPTION.contains(&key)) else { continue };
        commands.insert(test.name);
        let words = option(key).unwrap_or_else(|| panic!("{}: add an option, or list it", name(&case)));
        let option = words.split(' ').next().unwrap_or(words);
        let value = case.value.to_string();
        let words = [options_beside(&case), &[option, &value]].concat();
        assert_eq!(takes_of(&test, &words), case.is_good, "{}: {words:?}", name(&case));
    }
    assert_eq!(commands, BTreeSet::from(["crr", "pps", "rr", "tcp", "udp"]));
    for key in WITHOUT_OPTION {
        assert!(cases().iter().any(|case| case.setting.key == *key), "no type has {key}");
    }
}

#[test]
fn quick_tests_have_the_bounds_of_duration_and_bandwidth_limit() {
    for (setting, option) in [(&DURATION, "-t"), (&BANDWIDTH_LIMIT[0], "--expect-mbps")] {
        let unit = setting.range.expect("it is a quantity").unit;
        for test in WorkloadType::ALL.iter().filter_map(|kind| quick_test(*kind)) {
            for (value, is_good) in bounds(setting) {
                let value = unit.show(value);
                assert_eq!(takes_of(&test, &[option, &value]), is_good, "{}: {option} {value}", test.name);
            }
        }
    }
}

#[derive(clap::Parser)]
struct LabLine {
    #[command(subcommand)]
    _command: LabCommand,
}

#[test]
fn lab_up_has_the_bounds_of_plans() {
    for setting in LAB {
        let (option, unit) = (format!("--{}", setting.key), setting.range.expect("it is a quantity").unit);
        for (value, is_good) in bounds(setting) {
            let value = unit.show(value);
            let parsed = LabLine::try_parse_from(["lab", "up", &option, &value]);
            assert_eq!(parsed.is_ok(), is_good, "{option} {value}: {:?}", parsed.err());
        }
    }
}
