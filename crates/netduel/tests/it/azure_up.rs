//! `netduel azure up` with a program in place of `az`, where the network of this machine or the state of the bed matters, and `netduel azure sizes`.
use std::fs;
use std::process::Command;

use netduel_test_support::NewNamespace;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::azure::{Scene, UP, answers, fails, operation, prints, usage};
use crate::azure_answers::{OFFLINE, QUOTA};
use crate::support::{Finished, UnderWay, signal, until};

/// Runs a test in a network namespace whose way to the Internet has this source address.
#[track_caller]
fn with_address(address: &str, test: &str, body: fn()) {
    let prepare = format!(
        "ip link add out type veth peer name peer; ip link set out up; ip link set peer up
         ip address add {address}/24 dev out; ip route add default dev out"
    );
    NewNamespace { prepare: &prepare, ..NewNamespace::default() }.run(&format!("azure_up::{test}"), body);
}

/// The parameters of the last deployment of the bed.
fn parameters(scene: &Scene) -> Value {
    let text = fs::read_to_string(scene.at("state/netduel/azure/x/parameters.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["parameters"].clone()
}

/// The answer of the service for prices: a quarter of a dollar for a VM of this size and an hour.
fn prices(size: &str) -> Value {
    let price = json!({
        "retailPrice": 0.25, "unitOfMeasure": "1 Hour", "type": "Consumption", "productName": "Linux", "skuName": "a",
        "armSkuName": size, "currencyCode": "USD", "isPrimaryMeterRegion": true,
    });
    prints(&json!({ "Items": [price] }))
}

#[test]
fn public_address_of_this_machine_may_connect_without_an_option() {
    with_address("20.0.0.7", "public_address_of_this_machine_may_connect_without_an_option", || {
        let scene = Scene::new();
        let up = scene.run(&["azure", "up", "x.toml"]).expect_code(0);
        assert!(up.stderr.contains("only 20.0.0.7/32 may connect by ssh"), "{}", up.stderr);
        assert_eq!(parameters(&scene)["sourceAddressPrefixes"]["value"], json!(["20.0.0.7/32"]));
        let up = scene.run(&["azure", "up", "x.toml", "--ssh-from", "192.0.2.1/32"]).expect_code(0);
        assert!(!up.stderr.contains("20.0.0.7"), "{}", up.stderr);
        assert_eq!(parameters(&scene)["sourceAddressPrefixes"]["value"], json!(["192.0.2.1/32"]));
    });
}

#[test]
fn private_address_of_this_machine_does_not_connect_and_nothing_is_created() {
    with_address(
        "10.1.2.3",
        "private_address_of_this_machine_does_not_connect_and_nothing_is_created",
        || {
            let scene = Scene::new();
            let error = scene.run(&["azure", "up", "x.toml"]).expect_code(2).stderr;
            assert!(error.contains("no address may connect by ssh; add --ssh-from ADDRESS/32"), "{error}");
            assert!(error.contains("`ssh HOST 'echo $SSH_CONNECTION'` prints it"), "{error}");
            assert_eq!(scene.calls(), "");
        },
    );
}

#[test]
fn design_note_has_the_number_of_calls_before_a_deployment() {
    let scene = Scene::new();
    scene.run(&UP).expect_code(0);
    let calls = scene.calls();
    let count = calls.lines().take_while(|call| !call.starts_with("deployment group create")).count();
    let note = include_str!("../../../../docs/design/0036-azure.md");
    let text = format!("`up` makes {count} calls before the deployment of a new bed starts");
    assert!(note.contains(&text), "docs/design/0036-azure.md lacks this text: {text}\n{calls}");
}

#[test]
fn subscription_of_a_bed_stays_known_where_the_files_of_a_second_up_cannot_be_written() {
    let scene = Scene::new();
    scene.run(&UP).expect_code(0);
    let folder = scene.at("state/netduel/azure/x");
    let note = || fs::read_to_string(folder.join("subscription")).ok();
    assert_eq!(note().as_deref(), Some("22222222-2222-2222-2222-222222222222"));
    fs::remove_file(folder.join("template.json")).unwrap();
    fs::create_dir(folder.join("template.json")).unwrap();
    let error = scene.run(&UP).expect_code(5).stderr;
    assert!(error.contains("failed to write"), "{error}");
    assert_eq!(note().as_deref(), Some("22222222-2222-2222-2222-222222222222"), "{error}");
}

#[test]
fn half_created_bed_is_completed_by_a_second_up() {
    let mut scene = Scene::new();
    let failed =
        json!({ "provisioningState": "Failed", "error": { "code": "DeploymentFailed", "message": "x" } });
    let cause = json!({ "error": { "code": "AllocationFailed", "message": "no room" } });
    scene.answer("deployment group show", prints(&failed));
    scene.answer("deployment operation group list", operation("vm2", "Failed", &cause));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("failed to create VM vm2") && error.contains("azure up x.toml"), "{error}");
    // Of ten vCPUs four are left: enough for the VM that is missing, and not for two.
    scene.answer("vm list --resource-group", prints(&json!([{ "name": "vm1", "powerState": "VM running" }])));
    scene.answer("vm list-usage", usage("6"));
    for (start, answer) in answers().into_iter().filter(|(start, _)| start.starts_with("deployment")) {
        scene.answer(start, answer);
    }
    let up = scene.run(&UP).expect_code(0);
    assert!(up.stderr.contains("completing the bed x"), "{}", up.stderr);
    assert!(up.stdout.starts_with("the bed x is up in westeurope\n"), "{}", up.stdout);
    let calls = scene.calls();
    let requests = calls.lines().filter(|call| call.starts_with("deployment group create"));
    assert_eq!(requests.count(), 2, "{calls}");
    // The bed has the age of its first part, and the tags that others have set stay.
    let tagged: Vec<&str> = calls.lines().filter(|call| call.starts_with("tag update")).collect();
    assert!(matches!(tagged.as_slice(), [one] if one.contains("netduel-created=1795343407")), "{calls}");
    assert_eq!(calls.lines().filter(|call| call.starts_with("group create")).count(), 1, "{calls}");
}

#[test]
fn vm_that_failed_after_azure_accepted_it_may_run_without_a_shutdown() {
    let mut scene = Scene::new();
    let all =
        json!({ "provisioningState": "Failed", "error": { "code": "DeploymentFailed", "message": "x" } });
    scene.answer("deployment group show", prints(&all));
    let error = |code: &str| json!({ "error": { "code": code, "message": "x" } });
    let may_run = "VM vm2 failed and may run without a daily shutdown: complete it with";
    for (code, is_named) in [("OSProvisioningTimedOut", true), ("AllocationFailed", false)] {
        scene.answer("deployment operation group list", operation("vm2", "Failed", &error(code)));
        let error = scene.run(&UP).expect_code(12).stderr;
        assert_eq!(error.contains(may_run), is_named, "{error}");
    }
    // No VM of this bed would have one.
    let mut scene = Scene::new();
    scene.bed("Standard_D4s_v3", &format!("ssh_key = {:?}\nshutdown = \"off\"", scene.at("key.pub")));
    scene.answer("deployment group show", prints(&all));
    let failure = operation("vm2", "Failed", &error("OSProvisioningTimedOut"));
    scene.answer("deployment operation group list", failure);
    let error = scene.run(&UP).expect_code(12).stderr;
    let may_run = "VM vm2 failed and may run, and the bed has no daily shutdown: complete it with";
    assert!(error.contains(may_run), "{error}");
}

#[test]
fn bed_of_another_user_is_neither_changed_nor_deleted_without_a_question() {
    let mut scene = Scene::new();
    let user = json!({ "name": "me@example.com", "type": "user" });
    let account = json!({ "id": "22222222-2222-2222-2222-222222222222", "name": "fake", "user": user });
    scene.answer("account show", prints(&account));
    scene.run(&UP).expect_code(0);
    let calls = scene.calls();
    assert!(!calls.contains("example.com"), "{calls}");
    let own = calls.split_once("netduel-owner=").unwrap().1[..64].to_owned();
    let group = |name: &str, owner: &str| {
        let tags = json!({ "netduel": name, "netduel-owner": owner, "netduel-created": "1700000000" });
        json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": tags })
    };
    let other = "0a".repeat(32);
    scene.answer("group show", prints(&group("x", &other)));
    scene.answer("group list", prints(&json!([group("x", &other)])));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("another user of the subscription created the bed x"), "{error}");
    for words in [&["azure", "down", "x", "--yes"][..], &["azure", "down", "--yes"]] {
        let error = scene.run(words).expect_code(12).stderr;
        assert!(error.contains("repeat the command in a terminal without --yes, which asks"), "{error}");
    }
    assert!(!scene.calls().contains("group delete"), "{}", scene.calls());
    let listed = scene.run(&["azure", "list"]).expect_code(0);
    assert!(listed.stdout.ends_with(", of another user\n"), "{}", listed.stdout);
    assert!(!listed.stderr.contains("warning"), "{}", listed.stderr);
    // Of several beds the one that is the user's is taken.
    scene.answer("group list", prints(&json!([group("x", &own), group("y", &other)])));
    let down = scene.run(&["azure", "down", "--yes", "--json"]).expect_code(0);
    assert_eq!(down.json()["removed"], json!(["x"]));
    assert!(!scene.at("exists").exists());
}

#[test]
fn deletion_of_an_old_bed_warns_of_the_other_old_ones() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let group = |name: &str| {
        let tags = json!({ "netduel": name, "netduel-created": "1700000000", "netduel-shutdown": "off" });
        json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": tags })
    };
    scene.answer("group list", prints(&json!([group("x"), group("y")])));
    let down = scene.run(&["azure", "down", "x", "--yes"]).expect_code(0).stderr;
    assert!(down.contains("warning: the bed y is older than a day"), "{down}");
    assert!(!down.contains("the bed x is older"), "{down}");
}

#[test]
fn old_bed_of_this_machine_is_warned_of_by_commands_that_ask_azure_nothing() {
    let mut scene = Scene::new();
    let offline = [
        &["azure", "check", "x.toml"][..],
        &["azure", "template", "x.toml"],
        &["azure", "sizes", "--json"],
        &["azure", "schema"],
    ];
    let warned = |scene: &Scene| -> Vec<bool> {
        let list = "`netduel azure list --subscription 22222222-2222-2222-2222-222222222222` shows it";
        let of = |words: &[&str]| {
            let printed = scene.run(words).expect_code(0).stderr;
            printed.contains("warning: the bed x, which") && printed.contains(list)
        };
        offline.iter().map(|words| of(words)).collect()
    };
    // It is new.
    scene.run(&UP).expect_code(0);
    assert_eq!(warned(&scene), [false; 4]);
    // The second `up` learns from Azure that it was created in 2023.
    let tags = json!({ "netduel": "x", "netduel-created": "1700000000" });
    scene.answer(
        "group show",
        prints(&json!({ "name": "netduel-x", "location": "westeurope", "tags": tags })),
    );
    scene.run(&UP).expect_code(0);
    let calls = scene.calls();
    assert_eq!(warned(&scene), [true; 4]);
    assert_eq!(scene.calls(), calls);
    // Those that ask Azure warn of what it has.
    scene.answer("group list", prints(&json!([])));
    let listed = scene.run(&["azure", "down", "x", "--yes"]).expect_code(0).stderr;
    assert!(!listed.contains("the bed x, which"), "{listed}");
    assert_eq!(warned(&scene), [false; 4]);
    scene.bench.assert_nothing_left();
}

/// Runs a command for the current subscription and for one that its command line names. Its message has a command that begins so, and names the
/// subscription as well then.
#[track_caller]
fn assert_named(scene: &Scene, words: &[&str], code: i32, start: &str) {
    for (option, end) in
        [(&[][..], "`"), (&["--subscription", "pay as you go"][..], " --subscription 'pay as you go'`")]
    {
        let ended = scene.run(&[&["azure"][..], words, option].concat()).expect_code(code);
        let printed = ended.stdout + &ended.stderr;
        let command = format!("{start}{end}");
        assert!(printed.contains(&command), "{command}: {printed}");
    }
}

#[test]
fn commands_of_messages_are_for_the_subscription_of_the_command_line() {
    let mut scene = Scene::new();
    assert_named(&scene, &["down", "x", "--yes"], 12, "subscription fake; `netduel azure list");
    scene.run(&UP).expect_code(0);
    // The bed is older than its shutdown.
    assert_named(&scene, &["list"], 0, "delete it with `netduel azure down x");
    let other = json!([{ "name": "archive", "type": "Microsoft.Storage/storageAccounts", "tags": null }]);
    scene.answer("resource list", prints(&other));
    assert_named(&scene, &["down", "x", "--yes"], 12, "to another group with `az resource move");
    scene.answer("resource list", prints(&json!([])));
    let group = |name: &str| json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": { "netduel": name } });
    scene.answer("group list", prints(&json!([group("x"), group("y")])));
    assert_named(&scene, &["down", "--yes"], 2, "for example `netduel azure down NAME");
    // The group stays, so that the command can be repeated.
    scene.answer("group delete", json!([{}]));
    assert_named(&scene, &["down", "x", "--yes", "--no-wait"], 0, "the bed x; `netduel azure list");
    scene.bench.assert_nothing_left();
}

#[test]
fn file_of_the_bed_is_that_of_the_last_deployment_that_azure_accepted() {
    let mut scene = Scene::new();
    let key = format!("ssh_key = {:?}", scene.at("key.pub").display().to_string());
    let folder = scene.at("state/netduel/azure/x");
    let file = folder.join("bed.toml");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    scene.answer("deployment group create", fails(QUOTA));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("netduel azure down x"), "{error}");
    assert!(names().iter().all(|name| !name.starts_with("bed")), "{:?}", names());
    // The group exists, so completions of `down` have it.
    assert_eq!(scene.run(&["complete", "beds"]).expect_code(0).stdout, "x\n");

    scene.answer("deployment group create", json!([{}]));
    scene.run(&UP).expect_code(0);
    let accepted = fs::read_to_string(&file).unwrap();
    assert!(accepted.contains("two-nic"), "{accepted}");
    // Azure refuses a bed in a zone.
    scene.bed("Standard_D4s_v3", &format!("{key}\nzone = 1"));
    scene.answer("deployment group create", fails(QUOTA));
    scene.run(&UP).expect_code(12);
    assert_eq!(fs::read_to_string(&file).unwrap(), accepted);
    // netduel refuses another type.
    scene.answer("deployment group create", json!([{}]));
    let tags = json!({ "netduel": "x", "netduel-type": "two-nic" });
    let group = json!({ "name": "netduel-x", "location": "westeurope", "tags": tags });
    scene.answer("group show", prints(&group));
    scene.bed("Standard_D4s_v3", &format!("{key}\ntype = \"toggle\""));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("exists with the type two-nic"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), accepted);
    // What fails later was accepted, and is completed by the next `up`.
    scene.bed("Standard_D4s_v3", &format!("{key}\nzone = 1"));
    let failed =
        json!({ "provisioningState": "Failed", "error": { "code": "DeploymentFailed", "message": "x" } });
    scene.answer("deployment group show", prints(&failed));
    scene.run(&UP).expect_code(12);
    let zone = fs::read_to_string(&file).unwrap();
    assert!(zone.contains("zone = 1"), "{zone}");
    assert!(names().iter().all(|name| !name.starts_with("bed.draft")), "{:?}", names());
    scene.bench.assert_nothing_left();
}

#[test]
fn file_of_a_bed_is_not_known_after_a_deployment_whose_answer_did_not_come() {
    let mut scene = Scene::new();
    let key = format!("ssh_key = {:?}", scene.at("key.pub").display().to_string());
    let folder = scene.at("state/netduel/azure/x");
    let has = |name: &str| folder.join(name).exists();
    scene.run(&UP).expect_code(0);
    assert!(has("bed.toml"));
    scene.bed("Standard_D4s_v3", &format!("{key}\nzone = 1"));
    scene.answer("deployment group create", json!([{ "create": "waits", "hang": true }]));
    let up = UnderWay::start(scene.netduel(&UP));
    assert!(until(|| scene.at("waits").exists()));
    signal(up.pid(), Signal::INT);
    up.finish().expect_code(130);
    assert!(!has("bed.toml") && !has("bed.draft.toml") && has("parameters.json"));
    // The next one completes the bed.
    scene.answer("deployment group create", json!([{}]));
    scene.run(&UP).expect_code(0);
    assert!(has("bed.toml"));
    scene.answer("deployment group create", fails(OFFLINE));
    scene.run(&UP).expect_code(12);
    assert!(!has("bed.toml") && !has("bed.draft.toml"));
    scene.bench.assert_nothing_left();
}

#[test]
fn bed_that_azure_is_deleting_is_marked_and_is_none_of_several() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let group = |name: &str, state: &str| {
        let tags = json!({ "netduel": name });
        let properties = json!({ "provisioningState": state });
        json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": tags, "properties": properties })
    };
    scene.answer("group list", prints(&json!([group("gone", "Deleting"), group("x", "Succeeded")])));
    let listed = scene.run(&["azure", "list"]).expect_code(0).stdout;
    let marked: Vec<bool> = listed.lines().map(|line| line.ends_with(", being deleted")).collect();
    assert_eq!(marked, [true, false], "{listed}");
    let document = scene.run(&["azure", "list", "--json"]).expect_code(0).json();
    let marks = [0_usize, 1].map(|index| &document["beds"][index]["is_being_deleted"]);
    assert_eq!(marks, [&Value::from(true), &Value::from(false)], "{document}");
    let down = scene.run(&["azure", "down", "--yes", "--json"]).expect_code(0);
    assert_eq!(down.json()["removed"], json!(["x"]));
}

#[test]
fn check_warns_of_a_bed_that_exceeds_its_budget_where_the_price_is_known() {
    let mut scene = Scene::new();
    scene.answer("rest --method get", prices("Standard_D4s_v3"));
    let check = |scene: &Scene, budget: &str, words: &[&str]| {
        scene.bed("Standard_D4s_v3", &format!("shutdown = \"off\"\nbudget = \"{budget}\""));
        scene.run(&[&["azure", "check", "x.toml"][..], words].concat()).expect_code(0).stderr
    };
    let warning = "warning: `netduel azure up` would refuse the bed: the bed costs 12.00 USD a day";
    let estimate = check(&scene, "11 USD", &[]);
    let by_list = "warning: by the list price of 2026-06-18 `netduel azure up` would refuse the bed: the bed costs 11.52 USD a day";
    assert!(estimate.contains(by_list), "{estimate}");
    assert_eq!(check(&scene, "11 EUR", &[]), "");
    for (budget, words, is_exceeded) in
        [("11 USD", &["--price"][..], true), ("11 USD", &[][..], true), ("13 USD", &[][..], false)]
    {
        let printed = check(&scene, budget, words);
        assert_eq!(printed.contains(warning), is_exceeded, "{budget}: {printed}");
    }
}

#[test]
fn price_is_looked_up_by_a_check_on_request_and_kept() {
    let mut scene = Scene::new();
    scene.answer("rest --method get", prices("Standard_D4s_v3"));
    let estimate = scene.run(&["azure", "check", "x.toml"]).expect_code(0).stdout;
    let part = "price      estimate: 0.48 USD an hour for all VMs (list price of westeurope, 2026-06-18; ";
    assert!(estimate.contains(part), "{estimate}");
    let json = scene.run(&["azure", "check", "x.toml", "--json"]).expect_code(0).json();
    assert_eq!(json["price_per_hour"]["amount"], 0.48);
    assert_eq!(json["price_is_estimate"], true);
    assert_eq!(scene.calls(), "");
    let price = |words: &[&str]| {
        let words = [&["azure", "check", "x.toml", "--json"][..], words].concat();
        scene.run(&words).expect_code(0).json()["price_per_hour"]["amount"].clone()
    };
    assert_eq!(price(&["--price"]), 0.5);
    let calls = scene.calls();
    assert!(calls.starts_with("rest --method get") && calls.lines().count() == 1, "{calls}");
    assert_eq!(price(&[]), 0.5);
    assert_eq!(scene.calls(), calls);
}

#[test]
fn last_price_is_shown_with_a_warning_where_none_can_be_looked_up() {
    let mut scene = Scene::new();
    scene.answer("rest --method get", fails("ERROR: Max retries exceeded\n"));
    let unreachable = scene.run(&["azure", "check", "x.toml", "--price"]).expect_code(0);
    let warning = "the price of Standard_D4s_v3 in westeurope cannot be looked up now: `az rest` failed: ";
    let printed = &unreachable.stderr;
    assert!(printed.contains(warning) && printed.contains("Max retries exceeded"), "{printed}");
    let part = "price      estimate: 0.48 USD an hour for all VMs (list price of westeurope, 2026-06-18)\n";
    assert!(unreachable.stdout.contains(part), "{}", unreachable.stdout);
    scene.answer("rest --method get", prints(&json!({ "Items": [] })));
    let none = scene.run(&["azure", "check", "x.toml", "--price"]).expect_code(0);
    assert!(none.stderr.contains("no price of Standard_D4s_v3 in westeurope"), "{}", none.stderr);
    // Where Azure has no price, a list price is none either.
    assert!(none.stdout.contains("price      unknown\n"), "{}", none.stdout);
    let mut command = scene.netduel(&["azure", "check", "x.toml", "--price"]);
    let missing = command.env("PATH", scene.at("nothing")).output().unwrap();
    assert!(Finished::from(missing).expect_code(3).stderr.contains("install the Azure CLI"));
}

#[test]
fn shipped_beds_are_created_as_they_are() {
    with_address("20.0.0.7", "shipped_beds_are_created_as_they_are", || {
        let beds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../beds");
        let mut count = 0;
        for entry in fs::read_dir(beds).unwrap().flatten() {
            let mut scene = Scene::new();
            let path = entry.path().display().to_string();
            let checked = scene.run(&["azure", "check", &path, "--json"]).expect_code(0).json();
            let size = checked["size"]["name"].as_str().unwrap();
            let zones = json!([{ "location": "westeurope", "zones": ["1"] }]);
            let sku = json!([{ "name": size, "family": "a", "locationInfo": zones }]);
            scene.answer("vm list-skus", prints(&sku));
            // A bed with a budget is created only where its price is known.
            scene.answer("rest --method get", prices(size));
            fs::create_dir(scene.at(".ssh")).unwrap();
            fs::rename(scene.at("key.pub"), scene.at(".ssh/id_ed25519.pub")).unwrap();
            let mut up = scene.netduel(&["azure", "up", &path]);
            let up = Finished::from(up.env("HOME", scene.bench.path()).output().unwrap()).expect_code(0);
            let name = checked["name"].as_str().unwrap();
            assert!(up.stdout.contains(&format!("the bed {name} is up")), "{}", up.stdout);
            let template = scene.run(&["azure", "template", &path]).expect_code(0).stdout;
            let deployed = scene.at(&format!("state/netduel/azure/{name}/template.json"));
            assert_eq!(fs::read_to_string(&deployed).unwrap(), template, "{name}");
            let sum = Command::new("sha256sum").arg(&deployed).output().unwrap().stdout;
            let tag = format!("netduel-template={}", String::from_utf8(sum[..64].to_vec()).unwrap());
            assert!(scene.calls().contains(&tag), "{tag}: {}", scene.calls());
            count += 1;
        }
        assert!(count >= 5, "one of each type: {count}");
    });
}

#[test]
fn sizes_of_a_type_of_bed_are_listed_without_az() {
    let scene = Scene::new();
    let sizes = |words: &[&str]| scene.run(&[&["azure", "sizes"][..], words].concat()).expect_code(0);
    let all = sizes(&[]).stdout;
    assert!(all.contains("\nStandard_DS4_v2 ") && all.contains("\nStandard_D8s_v5 "), "{all}");
    let toggle = sizes(&["--type", "toggle"]).stdout;
    assert!(toggle.contains("\nStandard_DS4_v2 ") && !toggle.contains("Standard_D8s_v5"), "{toggle}");
    let json = sizes(&["--json"]).json();
    assert_eq!(json["sizes"].as_array().unwrap().len(), netduel_model::size::table().len());
    scene.run(&["azure", "sizes", "--type", "triangle"]).expect_code(2);
    assert_eq!(scene.calls(), "");
}
