//! The plans of `netduel azure run`: several in one command, those that do not fit the bed, and the bed that is meant.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::azure::prints;
use crate::azure_run::{PLAN, Scene, interfaces, machines, with_vms};
use crate::support::VOLUME;
use crate::vms::assert_names;

#[test]
fn several_plans_run_one_after_the_other_with_a_report_each() {
    with_vms("azure_plans::several_plans_run_one_after_the_other_with_a_report_each", |scene| {
        scene.up();
        let plan = format!("{PLAN}{VOLUME}");
        fs::write(scene.at("second.toml"), plan.replace("\"networks\"", "\"second.plan\"")).unwrap();
        // This one cannot run: its folder on the host is a file.
        let broken = plan
            .replace("\"networks\"", "\"broken\"")
            .replace("bed = \"vm1\"", "bed = \"vm1\"\nfolder = \"/dev/null/x\"");
        fs::write(scene.at("broken.toml"), broken).unwrap();
        let words = [
            "azure",
            "run",
            "plan.toml",
            "broken.toml",
            "second.toml",
            "--bed",
            "x.toml",
            "--out",
            "reports",
        ];
        let run = scene.run(&words).expect_code(3).stderr;
        assert_names(
            &run,
            &[
                "plan 1 of 3: plan.toml",
                "netduel: broken.toml: ",
                "the folder cannot be made",
                "1 of 3 plans failed: broken.toml",
            ],
        );
        for name in ["networks", "second.plan"] {
            assert!(Path::new(&scene.at(&format!("reports/{name}/report.html"))).exists(), "{name}");
        }
        let json = scene.run(&["azure", "run", "plan.toml", "second.toml", "--json"]).expect_code(2);
        assert_names(&json.stderr, &["name one plan with --json"]);
        scene.bench.assert_nothing_left();
    });
}

/// The daily shutdown stops the VMs during the first plan: they run at the first look, and after a start.
#[test]
fn plan_after_the_daily_shutdown_runs_only_when_its_vms_may_be_started() {
    let test = "azure_plans::plan_after_the_daily_shutdown_runs_only_when_its_vms_may_be_started";
    with_vms(test, |scene| {
        scene.up();
        let out = |state: &str| machines(state).to_string();
        scene.answer(
            "vm list --resource-group",
            json!([
                { "when": "started", "out": out("VM running") },
                { "when": "looked", "out": out("VM deallocated") },
                { "create": "looked", "out": out("VM running") },
            ]),
        );
        scene.answer("vm start --resource-group netduel-x --name vm1 --no-wait", json!([{}]));
        scene.answer(
            "vm start --resource-group netduel-x --name vm2 --no-wait",
            json!([{ "create": "started" }]),
        );
        let second = format!("{PLAN}{VOLUME}").replace("\"networks\"", "\"second\"");
        fs::write(scene.at("second.toml"), second).unwrap();
        let words = ["azure", "run", "plan.toml", "second.toml", "--out"];
        let error = scene.run(&[&words[..], &["refused"]].concat()).expect_code(12).stderr;
        assert_names(
            &error,
            &[
                "netduel: second.toml: failed to run plans: the bed x does not run: vm1 is deallocated, vm2 is deallocated",
                "--start",
                "1 of 2 plans failed: second.toml",
            ],
        );
        assert!(!scene.calls().contains("vm start"), "{}", scene.calls());
        let report = |path: &str| Path::new(&scene.at(&format!("{path}/report.html"))).exists();
        assert!(report("refused/networks") && !report("refused/second"), "{error}");

        fs::remove_file(scene.at("looked")).unwrap();
        let run = scene.run(&[&words[..], &["started-again", "--start"]].concat()).expect_code(0).stderr;
        let (_, second) = run.split_once("plan 2 of 2: second.toml").unwrap();
        assert_names(second, &["starting vm1, vm2 of the bed x"]);
        assert!(report("started-again/second"), "{run}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn plans_that_do_not_fit_the_bed_are_skipped_and_the_others_run() {
    with_vms("azure_plans::plans_that_do_not_fit_the_bed_are_skipped_and_the_others_run", |scene| {
        scene.up();
        scene.misfit("first.toml");
        let words = ["azure", "run", "first.toml", "plan.toml", "--out", "reports"];
        let run = scene.run(&words).expect_code(0).stderr;
        assert_names(
            &run,
            &["skipped: first.toml does not fit the bed: the arm accelerated uses the network test"],
        );
        assert!(!run.contains("plans failed"), "{run}");
        let report = |name: &str| Path::new(&scene.at(&format!("reports/{name}/report.html"))).exists();
        assert!(report("networks") && !report("first"), "{run}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn options_have_to_suit_the_plans_that_fit_the_bed_only() {
    with_vms("azure_plans::options_have_to_suit_the_plans_that_fit_the_bed_only", |scene| {
        scene.up();
        // Neither of these has a workload of the name that the options mean.
        scene.misfit("first.toml");
        let other = |text: &str| text.replace("name = \"stream\"", "name = \"other\"");
        let first = fs::read_to_string(scene.at("first.toml")).unwrap();
        fs::write(scene.at("first.toml"), other(&first)).unwrap();
        let third = other(&format!("{PLAN}{VOLUME}")).replace("\"networks\"", "\"third\"");
        fs::write(scene.at("third.toml"), third).unwrap();
        let run =
            |plans: &[&str], option: &[&str]| scene.run(&[&["azure", "run"][..], plans, option].concat());
        let duration = ["--set", "stream.duration=9 s"];
        let gate = ["--fail-if", "throughput of stream < -90 %"];

        let calls = scene.calls();
        let error = run(&["first.toml", "third.toml"], &duration).expect_code(2).stderr;
        assert_names(&error, &["--set stream.duration=9 s: names no workload of the plan"]);
        assert_eq!(scene.calls(), calls, "options that suit no plan need no bed to be wrong");

        let refusals = ["names no workload of the plan", "the plan has no workload stream (workloads: other"];
        for (option, refusal) in [duration, gate].iter().zip(refusals) {
            let error = run(&["plan.toml", "third.toml"], option).expect_code(2).stderr;
            assert_names(&error, &["failed to run third.toml: ", refusal]);
            assert!(!scene.bench.store().exists(), "nothing ran: {error}");
        }

        let error = run(&["first.toml", "plan.toml"], &[duration, gate].concat()).expect_code(0).stderr;
        assert_names(&error, &["skipped: first.toml does not fit the bed"]);
        let document = scene.run(&["report", "last", "--format", "json"]).expect_code(0).json();
        assert_eq!(document["trials_valid"], 4, "{document}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn several_plans_of_which_none_fits_the_bed_are_refused() {
    let scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    for file in ["first.toml", "second.toml"] {
        scene.misfit(file);
    }
    let words = ["azure", "run", "first.toml", "second.toml", "--bed", "x"];
    let error = scene.run(&words).expect_code(2).stderr;
    assert_names(
        &error,
        &[
            "skipped: first.toml does not fit",
            "skipped: second.toml does not fit",
            "none of the 2 plans fits the bed x",
        ],
    );
    scene.bench.assert_nothing_left();
}

/// `netduel azure run plans/azure-*.toml` on a bed of one type.
#[test]
fn all_plans_of_the_articles_in_one_command_run_those_of_the_type_of_the_bed() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    scene.answer("vm list --resource-group", prints(&machines("VM deallocated")));
    let tags = json!({ "netduel": "x", "netduel-created": "1795343407", "netduel-type": "two-nic" });
    let group = json!({ "name": "netduel-x", "location": "westeurope", "tags": tags });
    scene.answer("group show", prints(&group));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");
    let mut plans: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("azure-"))
        .collect();
    plans.sort();
    let paths: Vec<String> = plans.iter().map(|name| format!("{folder}/{name}")).collect();
    let words = ["azure", "run"].into_iter().chain(paths.iter().map(String::as_str)).chain(["--bed", "x"]);
    let error = scene.run(&words.collect::<Vec<_>>()).expect_code(12).stderr;
    let fits = ["azure-linux.toml", "azure-throughput.toml"];
    for name in &plans {
        let skipped = format!("skipped: {folder}/{name} does not fit the bed");
        assert_eq!(error.contains(&skipped), !fits.contains(&name.as_str()), "{name}: {error}");
    }
    // Nothing is wrong with the others but that the VMs of the bed have to be started.
    assert_names(&error, &["the bed x does not run: vm1 is deallocated, vm2 is deallocated"]);
    scene.bench.assert_nothing_left();
}

/// A VM that is started costs money until the shutdown.
#[test]
fn plan_that_stops_vms_is_refused_without_permission_before_they_are_started() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let of_toggle = |value: &Value| {
        let text = value.to_string().replace("synthetic", "management").replace("accelerated", "test");
        prints(&serde_json::from_str(&text).unwrap())
    };
    scene.answer("vm list --resource-group", of_toggle(&machines("VM deallocated")));
    scene.answer("network nic list", of_toggle(&interfaces(false)));
    let tags = json!({ "netduel": "x", "netduel-created": "1795343407", "netduel-type": "toggle" });
    let group = json!({ "name": "netduel-x", "location": "westeurope", "tags": tags });
    scene.answer("group show", prints(&group));
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/azure-latency.toml");
    let error = scene.run(&["azure", "run", plan, "--bed", "x", "--start"]).expect_code(2).stderr;
    assert_names(&error, &["in the proximity group netduel-proximity stops the VM", "--allow-deallocate"]);
    assert!(!scene.calls().contains("vm start"), "{}", scene.calls());
}

#[test]
fn plan_that_does_not_fit_the_bed_is_refused_before_anything_is_started() {
    let scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    scene.misfit("other.toml");
    let error = scene.run(&["azure", "run", "other.toml", "--bed", "x"]).expect_code(2).stderr;
    assert_names(
        &error,
        &[
            "other.toml does not fit the bed",
            "the arm accelerated uses the network test",
            "synthetic, accelerated",
        ],
    );
    let checked = scene.run(&["plan", "check", "other.toml", "--bed", "x.toml"]).expect_code(2).stderr;
    assert_names(&checked, &["the arm accelerated uses the network test"]);
    let checked = scene.run(&["plan", "check", "plan.toml", "--bed", "x.toml"]).expect_code(0).stdout;
    assert_names(&checked, &["vm1, vm2 in synthetic, accelerated; the bed x has them"]);
    assert_names(
        &checked,
        &["\n  cost       about ", " USD for the VMs of the bed during the run, by the list price of "],
    );
    let words = ["plan", "check", "plan.toml", "--json"];
    let cost = |bed: &str| scene.run(&[&words[..], &["--bed", bed]].concat()).json()["bed_cost"].clone();
    let known = cost("x.toml");
    let amount = |key: &str| known[key]["amount"].as_f64().unwrap();
    let hours = |key: &str| known[key].as_f64().unwrap() / 3.6e12;
    assert!((amount("cost_min") - amount("price_per_hour") * hours("time_min_ns")).abs() < 1e-6, "{known}");
    assert!((amount("cost_max") - amount("price_per_hour") * hours("time_max_ns")).abs() < 1e-6, "{known}");
    assert_eq!((&known["price_is_estimate"], &known["cost_max"]["currency"]), (&true.into(), &"USD".into()));
    assert_eq!(scene.run(&words).json()["bed_cost"], Value::Null);
    let bed = fs::read_to_string(scene.at("x.toml")).unwrap();
    fs::write(scene.at("spot.toml"), format!("{bed}\nspot = true\n")).unwrap();
    assert_eq!(cost("spot.toml")["cost_max"], Value::Null);
    let spot = scene.run(&["plan", "check", "plan.toml", "--bed", "spot.toml"]).expect_code(0).stdout;
    assert_names(&spot, &["\n  cost       price unknown"]);
    let unknown = scene.run(&["plan", "check", "plan.toml"]).expect_code(0).stdout;
    assert!(!unknown.contains("  cost "), "{unknown}");
    assert_names(&unknown, &["not known without --bed", "vm1 of a bed, reached by ssh as root"]);
    scene.bench.assert_nothing_left();
}

#[test]
fn redacted_error_before_a_run_keeps_arms_apart_that_differ_by_the_case_of_a_host() {
    let scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let treatment = "treatments = [{ offload = \"tso\", value = \"off\", interface = \"eth1\" }]";
    let plan = PLAN
        .replace("hosts.client", "hosts.db-prod7")
        .replace("client = \"client\"", "client = \"db-prod7\"")
        .replace("name = \"synthetic\"", "name = \"via-DB-PROD7\"")
        .replace("name = \"accelerated\"", "name = \"via-db-prod7\"")
        .replace("network = \"synthetic\"", "")
        .replace("network = \"accelerated\"", treatment);
    fs::write(scene.at("other.toml"), plan + VOLUME).unwrap();
    for words in [
        &["azure", "run", "other.toml", "--bed", "x", "--redact"][..],
        &["plan", "check", "other.toml", "--bed", "x.toml", "--redact"],
    ] {
        let error = scene.run(words).expect_code(2).stderr;
        assert!(!error.to_lowercase().contains("db-prod7"), "{error}");
        let names = error.split("the arm via-").skip(1).filter_map(|after| after.split(' ').next());
        let names: BTreeSet<&str> = names.collect();
        assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("host-")), "{error}");
    }
    scene.bench.assert_nothing_left();
}

#[test]
fn plan_is_checked_on_a_bed_by_its_name_without_asking_azure() {
    let scene = Scene::new();
    let check = ["plan", "check", "plan.toml", "--bed", "x"];
    let error = scene.run(&check).expect_code(2).stderr;
    assert_names(&error, &["failed to find the file of the bed x", "--bed BED.toml"]);
    scene.up();
    fs::remove_file(scene.at("x.toml")).unwrap();
    let calls = scene.calls();
    let checked = scene.run(&check).expect_code(0).stdout;
    assert_names(&checked, &["vm1, vm2 in synthetic, accelerated; the bed x has them"]);
    scene.misfit("other.toml");
    let error = scene.run(&["plan", "check", "other.toml", "--bed", "x"]).expect_code(2).stderr;
    assert_names(&error, &["the arm accelerated uses the network test"]);
    assert_eq!(scene.calls(), calls);
    // Another `up` waits for the answer of Azure, or was killed.
    let draft = scene.at("state/netduel/azure/x/bed.draft.toml");
    fs::write(&draft, "").unwrap();
    let error = scene.run(&check).expect_code(2).stderr;
    assert_names(&error, &["or Azure did not answer the last one"]);
    fs::remove_file(&draft).unwrap();
    scene.run(&check).expect_code(0);
    scene.run(&["azure", "down", "x", "--yes"]).expect_code(0);
    scene.run(&check).expect_code(2);
    scene.bench.assert_nothing_left();
}

#[test]
fn plan_without_a_vm_is_refused_on_a_bed_by_its_check_and_its_run() {
    let scene = Scene::new();
    let local = "name = \"x\"\nquestion = \"?\"\n[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n[[arms]]\nname = \"one\"\nclient = \"a\"\n\
                 server = \"b\"\n[design]\naa = true\n";
    fs::write(scene.at("local.toml"), format!("{local}{VOLUME}")).unwrap();
    for words in [&["azure", "run", "local.toml"][..], &["plan", "check", "local.toml", "--bed", "x.toml"]] {
        let error = scene.run(words).expect_code(2).stderr;
        assert_names(&error, &["no host with `bed`", "netduel run local.toml"]);
    }
    scene.run(&["plan", "check", "local.toml"]).expect_code(0);
    scene.bench.assert_nothing_left();
}

#[test]
fn plan_for_another_type_of_bed_is_refused_before_anything_is_started() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let tags = json!({ "netduel": "x", "netduel-created": "1795343407", "netduel-type": "two-nic" });
    let group = json!({ "name": "netduel-x", "location": "westeurope", "tags": tags });
    scene.answer("group show", prints(&group));
    scene.answer("vm list --resource-group", prints(&machines("VM deallocated")));
    for kind in ["toggle", "two-nic"] {
        fs::write(scene.at(&format!("{kind}.toml")), format!("bed_type = \"{kind}\"{PLAN}{VOLUME}")).unwrap();
    }
    let refusal = "toggle.toml does not fit the bed: line 1: bed_type is \"toggle\", and the bed x is of type \"two-nic\"";
    for words in [
        &["azure", "run", "toggle.toml", "--bed", "x", "--start"][..],
        &["plan", "check", "toggle.toml", "--bed", "x.toml"],
    ] {
        let error = scene.run(words).expect_code(2).stderr;
        assert_names(&error, &[refusal, "type = \"toggle\" in its file"]);
    }
    assert!(!scene.calls().contains("vm start"), "{}", scene.calls());
    let checked = scene.run(&["plan", "check", "two-nic.toml", "--bed", "x.toml"]).expect_code(0).stdout;
    let fits = "vm1, vm2 in synthetic, accelerated of a bed of type two-nic; the bed x has them";
    assert_names(&checked, &[fits]);
    scene.bench.assert_nothing_left();
}

#[test]
fn plan_on_a_nic_that_is_not_attached_is_refused() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let mut nics = interfaces(false);
    nics[3]["virtualMachine"] = Value::Null;
    scene.answer("network nic list", prints(&nics));
    let error = scene.run(&["azure", "run", "plan.toml", "--bed", "x"]).expect_code(2).stderr;
    assert_names(
        &error,
        &["plan.toml does not fit the bed", "the NIC vm2-accelerated of the VM vm2 is not attached"],
    );
    scene.bench.assert_nothing_left();
}

#[test]
fn bed_is_the_only_one_or_the_named_one() {
    let mut scene = Scene::new();
    let group = |name: &str| json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": { "netduel": name, "netduel-created": "1795343407" } });
    scene.answer("group list", prints(&json!([group("x"), group("y")])));
    let error = scene.run(&["azure", "run", "plan.toml"]).expect_code(2).stderr;
    assert_names(&error, &["the subscription fake has x, y", "--bed"]);
    let mut deleting = group("x");
    deleting["properties"] = json!({ "provisioningState": "Deleting" });
    scene.answer("group list", prints(&json!([deleting])));
    let error = scene.run(&["azure", "run", "plan.toml"]).expect_code(12).stderr;
    assert_names(&error, &["failed to find the bed: Azure is deleting the bed x"]);
    scene.answer("group list", prints(&json!([])));
    let error = scene.run(&["azure", "run", "plan.toml"]).expect_code(12).stderr;
    assert_names(&error, &["there is none in the subscription fake", "netduel azure up"]);
    let error = scene.run(&["azure", "run", "plan.toml", "--bed", "x"]).expect_code(12).stderr;
    assert_names(&error, &["there is no bed x"]);
    assert!(!scene.calls().contains("vm list"), "{}", scene.calls());
}

#[test]
fn only_bed_is_found_with_one_list_of_all_beds() {
    let mut scene = Scene::new();
    // It is older than its shutdown, so that it is in the warning, too.
    let tags = json!({ "netduel": "x", "netduel-created": "1700000000", "netduel-shutdown": "19:00" });
    let group = json!({ "name": "netduel-x", "location": "westeurope", "tags": tags });
    scene.answer("group list", prints(&json!([group])));
    scene.answer("vm list --resource-group", prints(&machines("VM deallocated")));
    let error = scene.run(&["azure", "run", "plan.toml"]).expect_code(12).stderr;
    assert_names(&error, &["the bed x does not run", "warning: the bed x is older than its shutdown"]);
    let lists = scene.calls().lines().filter(|call| call.starts_with("group list")).count();
    assert_eq!(lists, 1, "{}", scene.calls());
}

#[test]
fn plan_on_a_bed_is_wrong_use_of_run_and_nothing_is_started() {
    let scene = Scene::new();
    let error = scene.run(&["run", "plan.toml"]).expect_code(2).stderr;
    assert_names(
        &error,
        &[
            "failed to run plan.toml: the host client is vm1 of a bed, and `netduel run` uses no bed",
            "use `netduel azure run plan.toml`",
        ],
    );
    assert_eq!((error.lines().count(), scene.calls().as_str()), (1, ""), "{error}");
    scene.bench.assert_nothing_left();
}
