//! The subscription of Azure is the user's: a run and its reports keep neither its id nor its name. A program stands for `az`.
use std::fs;

use serde_json::json;

use crate::azure_run::with_vms;
use crate::azure_treatments::{Scene, live, switch, with_interface};
use crate::support::Bench;

const ID: &str = "22222222-2222-2222-2222-222222222222";

/// The run file of the only run.
#[track_caller]
fn stored(bench: &Bench) -> String {
    let files = fs::read_dir(bench.store()).unwrap().flatten().map(|entry| entry.path());
    let runs: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "netduel")).collect();
    let [run] = runs.as_slice() else { panic!("{runs:?}") };
    fs::read_to_string(run).unwrap()
}

#[test]
fn refused_change_and_failed_undo_are_kept_without_the_subscription() {
    let test = "azure_subscription::refused_change_and_failed_undo_are_kept_without_the_subscription";
    with_interface(test, || {
        let place = format!("--resource-group g --name n --subscription {ID}");
        let update = |on: bool| format!("network nic update {place} --accelerated-networking {on}");
        let scope = format!("/subscriptions/{ID}/resourceGroups/g");
        let refused = format!(
            "ERROR: (AuthorizationFailed) no permission over scope '{scope}' of the subscription '{ID}'\n"
        );
        let refused = json!([{ "err": refused, "code": 1 }]);
        // The NIC cannot be switched off again, neither for the other arm nor at the end.
        let [(_, on), (_, off)] = live();
        let answers = [(update(true), on), (update(false), refused)];
        let scene = Scene::new(answers, [&switch(false), &switch(true)], "100 ms");
        let shown = |accelerated: bool| {
            let id = format!("{scope}/providers/Microsoft.Network/networkInterfaces/n");
            let mac = "02-00-00-00-00-07";
            json!({ "name": "n", "id": id, "enableAcceleratedNetworking": accelerated, "macAddress": mac })
                .to_string()
        };
        let answer = json!([{ "when": "on", "out": shown(true) }, { "out": shown(false) }]);
        scene.answer("network nic show --resource-group g --name n", answer);
        scene.run(&[]).expect_code(12);
        assert!(scene.has("on"), "{:?}", scene.calls());

        let run = stored(&scene.bench);
        assert!(run.contains("over scope '/subscriptions/SUBSCRIPTION/resourceGroups/g'"), "{run}");
        assert!(run.contains("azure-undo nic --resource-group g --subscription SUBSCRIPTION "), "{run}");
        assert!(!run.contains(ID), "{run}");
        for format in ["text", "html", "md", "json", "junit"] {
            let report = scene.bench.run(["report", "last", "--format", format]).stdout;
            assert!(!report.contains(ID), "{format}: {report}");
        }
        // The next run returns the NIC, and does not name it with `--redact`: it may be none of its own.
        scene.answer(&update(false), off);
        let next = scene.run(&["--redact"]).expect_code(0).stderr;
        assert!(next.contains("restored what an earlier run left changed: 1 change\n"), "{next}");
        assert!(!scene.has("on"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn run_on_a_bed_keeps_no_name_of_the_subscription() {
    with_vms("azure_subscription::run_on_a_bed_keeps_no_name_of_the_subscription", |scene| {
        scene.up();
        scene.switching_plan(2);
        // Azure accepts the switch and does not make it, and the error proposes a command in this subscription.
        let update = format!(
            "network nic update --resource-group netduel-x --name vm1-synthetic --subscription {ID} --accelerated-networking true"
        );
        scene.answer(&update, json!([{}]));
        for command in ["show", "deallocate", "start"] {
            let words = format!("vm {command} --resource-group netduel-x --name vm1");
            scene.answer(&words, json!([{ "out": "{}" }]));
        }
        let words =
            ["azure", "run", "plan.toml", "--allow-deallocate", "--subscription", "Contoso Production"];
        scene.run(&words).expect_code(12);
        let run = stored(&scene.bench);
        let command = "az monitor activity-log list --resource-group netduel-x --subscription SUBSCRIPTION`";
        assert!(run.contains(command), "{run}");
        assert!(!run.contains("Contoso") && !run.contains(ID), "{run}");
        scene.bench.assert_nothing_left();
    });
}
