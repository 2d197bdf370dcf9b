//! `--redact` in commands that ask Azure: they print no name of another bed, of the subscription, or of a resource that only Azure has. A program
//! stands for `az`.
use std::fs;

use serde_json::{Value, json};

use crate::azure::prints;
use crate::azure_run::{Scene as BedScene, machines};
use crate::azure_treatments::{Scene, UPDATE, live, switch, with_interface};
use crate::support::Finished;

/// Names of beds, of their subscription, and of the VM of a NIC with what it is in; lower case.
const NAMES: [&str; 6] = ["acme7", "mallory7", "contoso", "billing7", "payments7", "together7"];

/// All that a command has printed, which has none of the names.
#[track_caller]
fn hidden(finished: &Finished) -> String {
    let printed = format!("{}{}", finished.stdout, finished.stderr);
    let shown = NAMES.iter().find(|name| printed.to_lowercase().contains(**name));
    assert_eq!(shown, None, "{printed}");
    printed
}

/// The resource groups of two beds that are older than their shutdown.
fn groups() -> [Value; 2] {
    ["acme7", "mallory7"].map(|name| {
        let tags = json!({ "netduel": name, "netduel-created": "1700000000", "netduel-shutdown": "19:00" });
        json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": tags })
    })
}

fn account() -> Value {
    prints(&json!({ "id": "22222222-2222-2222-2222-222222222222", "name": "Contoso Production" }))
}

#[test]
fn run_on_a_bed_shows_no_name_of_another_bed_or_of_the_subscription() {
    let mut scene = BedScene::new();
    scene.answer("account show", account());
    scene.answer("group list", prints(&json!(groups())));
    let run = |scene: &BedScene, options: &[&str]| {
        scene.run(&[&["azure", "run", "plan.toml", "--redact"][..], options].concat())
    };
    let several = hidden(&run(&scene, &[]).expect_code(2));
    assert!(several.contains("has 2 beds; name one with --bed"), "{several}");
    let named = ["--bed", "acme7", "--subscription", "Contoso Production"];
    let none = hidden(&run(&scene, &named).expect_code(12));
    assert!(none.contains("there is no bed resource-1 in the subscription resource-2"), "{none}");

    fs::write(scene.at("exists"), "").unwrap();
    let [acme7, _] = groups();
    scene.answer("group show", prints(&acme7));
    scene.answer("vm list --resource-group", prints(&machines("VM deallocated")));
    let list = "`netduel azure list";
    for (options, list) in
        [(&named[..2], format!("{list}`")), (&named[..], format!("{list} --subscription SUBSCRIPTION`"))]
    {
        let stopped = hidden(&run(&scene, options).expect_code(12));
        let old = format!("or than a day without one: 2; they cost money, and {list} shows them");
        assert!(stopped.contains(&old) && stopped.contains("vm1 is deallocated"), "{stopped}");
    }
    scene.bench.assert_nothing_left();
}

#[test]
fn run_with_treatments_of_azure_shows_no_name_that_only_azure_has() {
    with_interface("azure_redacted::run_with_treatments_of_azure_shows_no_name_that_only_azure_has", || {
        let azure = [
            ("version", prints(&json!({ "azure-cli": "2.91.0" }))),
            ("account show", account()),
            ("group list", prints(&json!(groups()))),
        ];
        let azure = azure.map(|(command, answer)| (command.to_owned(), answer));
        let scene = Scene::new(live().into_iter().chain(azure), [&switch(false), &switch(true)], "100 ms");
        let id = |resource: &str| format!("/subscriptions/s/resourceGroups/payments7/providers/x/{resource}");
        let nic = json!({
            "name": "n", "enableAcceleratedNetworking": false, "macAddress": "02-00-00-00-00-07",
            "virtualMachine": { "id": id("virtualMachines/billing7") },
        });
        scene.answer("network nic show --resource-group g --name n", prints(&nic));
        let refused = json!([{ "err": "ERROR: (NicInUse) not while the VM runs\n", "code": 1 }]);
        scene.answer(&format!("{UPDATE} true"), refused);
        let set = json!({ "availabilitySet": { "id": id("availabilitySets/together7") } });
        scene.answer("vm show --resource-group payments7 --name billing7", prints(&set));
        let run = hidden(&scene.run(&["--redact", "--allow-deallocate"]).expect_code(12));
        assert!(run.contains("is in the availability set resource-"), "{run}");
        assert!(run.contains("or than a day without one: 2; they cost money"), "{run}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn guard_of_a_change_that_cannot_be_undone_shows_no_name() {
    with_interface("azure_redacted::guard_of_a_change_that_cannot_be_undone_shows_no_name", || {
        let scene = Scene::new(live(), [&switch(false), &switch(true)], "100 ms");
        // Neither for the other arm, nor by the run, nor by its guard.
        let refused =
            "ERROR: (AuthorizationFailed) no permission over /subscriptions/s/resourceGroups/payments7\n";
        scene.answer(&format!("{UPDATE} false"), json!([{ "err": refused, "code": 1 }]));
        let run = hidden(&scene.run(&["--redact"]).expect_code(12));
        assert!(run.contains("netduel undo-guard: the names of the other changes"), "{run}");
        assert!(scene.has("on"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}
