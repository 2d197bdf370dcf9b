//! The part of `docs/azure-errors.md` about errors before a run; `azure_errors` writes the page.
use std::fs;

use serde_json::{Value, json};

use crate::azure::{Scene, prints};
use crate::azure_answers::{EXPIRED, deleting, group};
use crate::azure_errors::{Case, case, interrupted};
use crate::azure_run::{PLAN, interfaces, machines};
use crate::support::STREAM;

/// A deployed bed whose VMs have this state, and `plan.toml`, which is to run on it.
fn deployed(state: &str) -> Vec<(&'static str, Value)> {
    let bed = group("westeurope", &json!({ "netduel": "x", "netduel-shutdown": "19:00" }));
    let vms = [
        ("vm list --resource-group", prints(&machines(state))),
        ("network nic list", prints(&interfaces(true))),
    ];
    bed.into_iter().chain(vms).collect()
}

/// A plan for the networks of the bed. It has no warning of few blocks.
fn plan(scene: &Scene) {
    let plan = PLAN.replace("[design]\nblocks_min = 2\nblocks_max = 2\n", "");
    scene.bench.plan(&format!("{plan}{STREAM}"));
}

/// The plan with an arm in a network that the bed does not have.
fn other_plan(scene: &Scene) {
    plan(scene);
    let file = scene.at("plan.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("network = \"accelerated\"", "network = \"test\"")).unwrap();
}

/// Two plans with an arm in a network that the bed does not have.
fn other_plans(scene: &Scene) {
    other_plan(scene);
    let text = fs::read_to_string(scene.at("plan.toml")).unwrap();
    fs::write(scene.at("other.toml"), text.replace("name = \"networks\"", "name = \"other\"")).unwrap();
}

/// A bed whose VMs are stopped, with the price of its last `up` and a budget that it exceeds.
fn expensive() -> Vec<(&'static str, Value)> {
    let tags = json!({ "netduel": "x", "netduel-price": "2 EUR", "netduel-budget": "40 EUR", "netduel-shutdown": "off" });
    deployed("VM deallocated").into_iter().chain(group("westeurope", &tags)).collect()
}

/// A bed whose VMs are stopped, and do not run after a request to start them.
fn starting() -> Vec<(&'static str, Value)> {
    starting_with(&json!({ "when": "requested", "create": "waits", "hang": true }))
}

/// The same with this answer to a look at the VMs after the request.
fn starting_with(look: &Value) -> Vec<(&'static str, Value)> {
    let stopped = machines("VM deallocated").to_string();
    let vms = json!([look, { "out": stopped }]);
    let requests = [("vm list --resource-group", vms), ("vm start", json!([{ "create": "requested" }]))];
    deployed("VM deallocated").into_iter().chain(requests).collect()
}

/// The plan, and another file with the same one.
fn equal_plans(scene: &Scene) {
    plan(scene);
    fs::copy(scene.at("plan.toml"), scene.at("other.toml")).unwrap();
}

/// A plan whose hosts are no VMs of a bed.
fn plan_of_a_lab(scene: &Scene) {
    let arm = |name: &str, path: &str| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ path = \"{path}\" }}]\n"
        )
    };
    let arms = arm("one", "synthetic") + &arm("other", "accelerated");
    let hosts = "[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n";
    scene.bench.plan(&format!("name = \"x\"\nquestion = \"?\"\n{hosts}{arms}{STREAM}"));
}

pub fn before_a_run() -> Vec<Case> {
    let of = |title, answers: Vec<(&'static str, Value)>, code| Case {
        words: vec!["azure", "run", "plan.toml"],
        prepare: plan,
        code,
        ..case(title, answers)
    };
    let named = |case: Case| Case { words: vec!["azure", "run", "plan.toml", "--bed", "x"], ..case };
    let start = vec!["azure", "run", "plan.toml", "--bed", "x", "--start"];
    let started = |case: Case| Case { words: start.clone(), ..case };
    let several = ["azure", "run", "plan.toml", "other.toml"];
    let bed = |name: &str| json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": { "netduel": name } });
    let logged_out = json!({ "when": "requested", "err": EXPIRED, "code": 1 });
    let two = vec![("group list", prints(&json!([bed("x"), bed("y")])))];
    vec![
        of("There is no bed", Vec::new(), 12),
        of("There are several beds", two, 2),
        named(of("The bed is being deleted", deleting().to_vec(), 12)),
        named(of("The VMs do not run", deployed("VM deallocated"), 12)),
        started(of("The VMs would cost more than the budget", expensive(), 12)),
        started(Case { run: interrupted, ..of("Ctrl-C while the VMs start", starting(), 130) }),
        started(of("The login expires while the VMs start", starting_with(&logged_out), 3)),
        Case { prepare: plan_of_a_lab, ..of("The plan has no VM of a bed", Vec::new(), 2) },
        named(Case { prepare: other_plan, ..of("The plan does not fit the bed", deployed("VM running"), 2) }),
        Case {
            words: [&several[..], &["--bed", "x"]].concat(),
            prepare: other_plans,
            ..of("None of several plans fits the bed", deployed("VM running"), 2)
        },
        Case {
            words: [&several[..], &["--json"]].concat(),
            prepare: other_plans,
            ..of("Several plans and one JSON document", Vec::new(), 2)
        },
        Case {
            words: [&several[..], &["--out", "report.html"]].concat(),
            prepare: other_plans,
            ..of("Several plans and one report", Vec::new(), 2)
        },
        Case { words: several.to_vec(), prepare: equal_plans, ..of("Two plans of one name", Vec::new(), 2) },
        Case {
            words: vec!["plan", "check", "plan.toml", "--bed", "x"],
            ..of("No bed file of this name is stored", Vec::new(), 2)
        },
    ]
}
