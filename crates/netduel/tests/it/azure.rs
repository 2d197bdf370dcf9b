//! `netduel azure` with a program in place of `az` that replays answers of the real one. Nothing leaves this machine.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Map, Value, json};

use crate::support::{Bench, Finished, UnderWay, signal, until};

/// A test's folder with `az`, a key and a bed.
pub struct Scene {
    pub bench: Bench,
    answers: Map<String, Value>,
}

/// The program in place of `az`: cargo builds a crate's examples with its tests.
pub fn fake_az() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/fake_az")
}

/// An answer that is a JSON document.
pub fn prints(document: &Value) -> Value {
    json!([{ "out": document.to_string() }])
}

/// A failure with this text on standard error.
pub fn fails(text: &str) -> Value {
    json!([{ "err": text, "code": 1 }])
}

/// Answers to each command of a bed that can be created.
pub fn answers() -> [(&'static str, Value); 16] {
    let tags = |created: &str| json!({ "netduel": "x", "netduel-created": created, "netduel-price": "2.00 EUR", "netduel-shutdown": "19:00" });
    let group =
        |created: &str| json!({ "name": "netduel-x", "location": "westeurope", "tags": tags(created) });
    let nic = |name: &str, ipv4: &str| json!([{ "name": name, "ipv4": ipv4 }]);
    [
        ("version", prints(&json!({ "azure-cli": "2.91.0" }))),
        ("account show", prints(&json!({ "id": "22222222-2222-2222-2222-222222222222", "name": "fake" }))),
        ("group exists", json!([{ "when": "exists", "out": "true\n" }, { "out": "false\n" }])),
        ("group create", json!([{ "create": "exists" }])),
        ("tag update", json!([{}])),
        ("group delete", json!([{ "remove": "exists" }])),
        ("group show", prints(&group("1795343407"))),
        ("group list", prints(&json!([group("1700000000")]))),
        (
            "vm list-skus",
            prints(&json!([{
                "name": "Standard_D4s_v3", "family": "standardDSv3Family", "restrictions": [],
                "locationInfo": [{ "location": "westeurope", "zones": ["1"] }],
                "capabilities": [
                    { "name": "AcceleratedNetworkingEnabled", "value": "True" }, { "name": "MaxNetworkInterfaces", "value": "2" },
                ],
            }])),
        ),
        ("vm list-usage", usage("0")),
        ("resource list", prints(&json!([]))),
        ("vm list --resource-group", vms("VM running")),
        ("rest --method get", prints(&json!({ "Items": [] }))),
        ("deployment group create", json!([{}])),
        (
            "deployment group show",
            prints(
                &json!({ "provisioningState": "Succeeded", "outputs": { "hosts": { "type": "Array", "value": [
                { "name": "vm1", "public": "192.0.2.7", "nics": nic("vm1-synthetic", "10.77.0.4") },
                { "name": "vm2", "public": "192.0.2.8", "nics": nic("vm2-synthetic", "10.77.0.5") },
            ] } } }),
            ),
        ),
        ("deployment operation group list", operation("vm1", "Succeeded", &Value::Null)),
    ]
}

/// The use of a quota of 10 vCPUs.
pub fn usage(current: &str) -> Value {
    prints(&json!([{ "limit": "10", "currentValue": current, "name": { "value": "standardDSv3Family" } }]))
}

/// The VMs of the bed in a state.
fn vms(state: &str) -> Value {
    let vm = |name: &str| json!({ "name": name, "powerState": state });
    prints(&json!([vm("vm1"), vm("vm2")]))
}

/// The operations of a deployment: one of a VM.
pub fn operation(name: &str, state: &str, message: &Value) -> Value {
    let target = json!({ "resourceName": name, "resourceType": "Microsoft.Compute/virtualMachines" });
    prints(
        &json!([{ "properties": { "provisioningState": state, "targetResource": target, "statusMessage": message } }]),
    )
}

impl Scene {
    pub fn new() -> Self {
        let mut scene = Self { bench: Bench::new(), answers: Map::new() };
        fs::create_dir(scene.at("bin")).unwrap();
        symlink(fake_az(), scene.at("bin/az")).unwrap();
        for (start, answer) in answers() {
            scene.answer(start, answer);
        }
        fs::write(scene.at("key.pub"), "ssh-ed25519 AAAAC3Nz me@here\n").unwrap();
        scene.bed("Standard_D4s_v3", &format!("ssh_key = {:?}", scene.at("key.pub").display().to_string()));
        scene
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.bench.path().join(name)
    }

    /// Sets the answers to the commands that begin with these words.
    pub fn answer(&mut self, start: &str, answer: Value) {
        self.answers.insert(start.to_owned(), answer);
        fs::write(self.at("answers.json"), Value::Object(self.answers.clone()).to_string()).unwrap();
    }

    /// Writes x.toml with this size and these keys.
    pub fn bed(&self, size: &str, keys: &str) {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"{size}\"\n{keys}\n");
        fs::write(self.at("x.toml"), text).unwrap();
    }

    pub fn netduel(&self, words: &[&str]) -> Command {
        let mut command = self.bench.netduel(words);
        command.env("PATH", self.at("bin")).env("NETDUEL_FAKE_AZ", self.bench.path());
        command
    }

    pub fn run(&self, words: &[&str]) -> Finished {
        Finished::from(self.netduel(words).output().unwrap())
    }

    pub fn calls(&self) -> String {
        fs::read_to_string(self.at("calls")).unwrap_or_default()
    }
}

/// The command that creates the bed.
pub const UP: [&str; 5] = ["azure", "up", "x.toml", "--ssh-from", "192.0.2.1/32"];

#[test]
fn bed_is_checked_and_its_template_printed_without_az() {
    let scene = Scene::new();
    let checked = scene.run(&["azure", "check", "x.toml"]).expect_code(0).stdout;
    assert!(checked.starts_with("x.toml is a valid bed: two-nic in westeurope\n"), "{checked}");
    let document = scene.run(&["azure", "check", "x.toml", "--json"]).expect_code(0).json();
    assert_eq!((&document["vcpus"], &document["size"]["name"]), (&8.into(), &"Standard_D4s_v3".into()));
    let template = scene.run(&["azure", "template", "x.toml"]).expect_code(0).stdout;
    let template: Value = serde_json::from_str(&template).unwrap();
    assert!(template["resources"].as_array().is_some_and(|resources| !resources.is_empty()));
    let schema = scene.run(&["azure", "schema"]).expect_code(0).stdout;
    assert!(schema.contains("ssh_from"), "{schema}");
    assert_eq!(scene.calls(), "");
}

#[test]
fn invalid_bed_ends_with_2_and_names_file_line_and_key() {
    let scene = Scene::new();
    scene.bed("Standard_D4s_v5", "zone = 7");
    for command in ["check", "template", "up"] {
        let error = scene.run(&["azure", command, "x.toml"]).expect_code(2).stderr;
        assert!(
            error.contains("x.toml:3: size: is Standard_D4s_v5, which requires accelerated networking"),
            "{error}"
        );
        assert!(error.contains("x.toml:4: zone: is 7"), "{error}");
    }
    assert_eq!(scene.calls(), "");
}

#[test]
fn bed_is_created_listed_and_deleted() {
    let scene = Scene::new();
    let up = scene.run(&UP).expect_code(0);
    assert!(
        up.stdout.contains(
            "the bed x is up in westeurope\n  vm1  ssh netduel@192.0.2.7; vm1-synthetic 10.77.0.4\n"
        ),
        "{}",
        up.stdout
    );
    assert!(up.stdout.contains("netduel azure down x"), "{}", up.stdout);
    assert!(
        up.stderr.contains("creating the bed x in westeurope, subscription fake: price unknown\n")
            && up.stderr.contains("  VM vm1 created\n"),
        "{}",
        up.stderr
    );

    let again = scene.run(&[&UP[..], &["--json"]].concat()).expect_code(0);
    assert!(again.stderr.contains("completing the bed x"), "{}", again.stderr);
    assert_eq!(again.json()["beds"][0]["hosts"][1]["ssh"], "netduel@192.0.2.8");

    let listed = scene.run(&["azure", "list"]).expect_code(0);
    assert!(
        listed.stdout.starts_with("x  westeurope, ") && listed.stdout.contains("2.00 EUR an hour"),
        "{}",
        listed.stdout
    );
    // Every command that asks Azure says so.
    let old = "warning: the bed x is older than its shutdown at 19:00 UTC";
    assert!(listed.stderr.contains(old) && again.stderr.contains(old), "{}", listed.stderr);
    let document = scene.run(&["azure", "list", "--json"]).expect_code(0);
    assert_eq!(document.json()["beds"][0]["group"], "netduel-x");
    assert!(document.stderr.contains(old), "{}", document.stderr);

    let unasked = scene.run(&["azure", "down", "x"]).expect_code(2);
    assert!(unasked.stderr.contains("--yes") && scene.at("exists").exists(), "{}", unasked.stderr);
    let completed = || scene.run(&["complete", "beds"]).expect_code(0).stdout;
    assert_eq!(completed(), "x\n");
    let down = scene.run(&["azure", "down", "x.toml", "--yes", "--no-wait", "--json"]).expect_code(0);
    assert_eq!(down.json()["removed"], json!(["x"]));
    assert_eq!(completed(), "");
    assert!(!scene.at("exists").exists());
    let gone = scene.run(&["azure", "down", "x", "--yes"]).expect_code(12).stderr;
    assert!(gone.contains("there is no bed x in the subscription fake"), "{gone}");
    scene.bench.assert_nothing_left();
}

#[test]
fn bed_that_was_deleted_by_other_means_is_forgotten() {
    let mut scene = Scene::new();
    let completed = |scene: &Scene| scene.run(&["complete", "beds"]).expect_code(0).stdout;
    let account = |id: &str| prints(&json!({ "id": id, "name": "fake" }));
    scene.answer("group list", prints(&json!([])));
    for (words, code) in [
        (&["azure", "list"][..], 0),
        (&["azure", "down", "--yes"][..], 12),
        (&["azure", "down", "x", "--yes"][..], 12),
    ] {
        scene.run(&UP).expect_code(0);
        fs::remove_file(scene.at("exists")).unwrap();
        // Another subscription does not know of it.
        scene.answer("account show", account("33333333-3333-3333-3333-333333333333"));
        scene.run(words).expect_code(code);
        assert_eq!(completed(&scene), "x\n", "{words:?}");
        scene.answer("account show", account("22222222-2222-2222-2222-222222222222"));
        scene.run(words).expect_code(code);
        assert_eq!(completed(&scene), "", "{words:?}");
    }
    scene.bench.assert_nothing_left();
}

#[test]
fn resources_of_others_are_named_and_deleted_only_on_request() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let own =
        json!({ "name": "vm1", "type": "Microsoft.Compute/virtualMachines", "tags": { "netduel": "x" } });
    let other = json!({ "name": "archive", "type": "Microsoft.Storage/storageAccounts", "tags": null });
    scene.answer("resource list --resource-group netduel-x", prints(&json!([own, other])));
    let refused = scene.run(&["azure", "down", "x", "--yes"]).expect_code(12).stderr;
    let named =
        "the resource group netduel-x has 1 resource that netduel did not create: storageAccounts archive";
    assert!(refused.contains(named) && refused.contains("--with-everything"), "{refused}");
    assert!(!scene.calls().contains("group delete"), "{}", scene.calls());
    scene.run(&["azure", "down", "x", "--yes", "--with-everything"]).expect_code(0);
    assert!(!scene.at("exists").exists());
}

#[test]
fn down_without_a_bed_deletes_the_only_one_and_none_of_several() {
    let mut scene = Scene::new();
    scene.run(&UP).expect_code(0);
    let group = |name: &str| json!({ "name": format!("netduel-{name}"), "location": "westeurope", "tags": { "netduel": name } });
    scene.answer("group list", prints(&json!([group("x"), group("y")])));
    let error = scene.run(&["azure", "down", "--yes"]).expect_code(2).stderr;
    assert!(
        error.contains("the subscription fake has x, y") && error.contains("netduel azure down NAME"),
        "{error}"
    );
    assert!(scene.at("exists").exists());
    scene.answer("group list", prints(&json!([group("x")])));
    let lists = |scene: &Scene| scene.calls().lines().filter(|call| call.starts_with("group list")).count();
    let before = lists(&scene);
    let down = scene.run(&["azure", "down", "--yes", "--json"]).expect_code(0);
    assert_eq!(down.json()["removed"], json!(["x"]));
    assert_eq!(lists(&scene) - before, 1, "{}", scene.calls());
    assert!(!scene.at("exists").exists() && scene.calls().contains("group delete --name netduel-x"));
    scene.answer("group list", prints(&json!([])));
    let none = scene.run(&["azure", "down", "--yes"]).expect_code(12).stderr;
    assert!(none.contains("none in the subscription fake; name another subscription with --sub"), "{none}");
    scene.bench.assert_nothing_left();
}

#[test]
fn key_and_prefixes_are_in_the_parameters_and_in_no_argument() {
    let scene = Scene::new();
    scene.run(&UP).expect_code(0);
    let calls = scene.calls();
    assert!(!calls.contains("AAAA") && !calls.contains("192.0.2.1"), "{calls}");
    let folder = scene.at("state/netduel/azure/x");
    let parameters = fs::read_to_string(folder.join("parameters.json")).unwrap();
    assert!(
        parameters.contains("ssh-ed25519 AAAAC3Nz\"") && parameters.contains("192.0.2.1/32"),
        "{parameters}"
    );
    assert!(folder.join("template.json").exists());
    let create = calls.lines().find(|call| call.starts_with("deployment group create")).unwrap();
    assert!(
        create.contains(&format!("--parameters @{}", folder.join("parameters.json").display())),
        "{create}"
    );
}

#[test]
fn nothing_is_created_with_ssh_from_the_whole_world_or_without_a_public_key() {
    let scene = Scene::new();
    let world = scene.run(&["azure", "up", "x.toml", "--ssh-from", "0.0.0.0/0"]).expect_code(2).stderr;
    assert!(world.contains("too many addresses"), "{world}");
    let key = scene.at("key.pub");
    fs::write(&key, "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n").unwrap();
    let error = scene.run(&UP).expect_code(2).stderr;
    assert!(error.contains("it is a private key") && !error.contains("secret"), "{error}");
    fs::remove_file(&key).unwrap();
    let error = scene.run(&UP).expect_code(2).stderr;
    assert!(error.contains("key.pub") && error.contains("ssh-keygen"), "{error}");
    assert_eq!(scene.calls(), "");
}

#[test]
fn bed_and_key_that_are_no_regular_files_are_refused_unread() {
    let scene = Scene::new();
    let pipe = scene.at("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for file in [pipe.to_str().unwrap(), "/dev/zero"] {
        let error = scene.run(&["azure", "check", file]).expect_code(2).stderr;
        let expected = format!("failed to read the bed {file}: it is not a regular file");
        assert!(error.contains(&expected), "{error}");
        scene.bed("Standard_D4s_v3", &format!("ssh_key = {file:?}"));
        let error = scene.run(&UP).expect_code(2).stderr;
        let expected = format!("failed to read the public key {file}: it is not a regular file");
        assert!(error.contains(&expected), "{error}");
    }
    assert_eq!(scene.calls(), "");
}

#[test]
fn missing_old_and_logged_out_az_end_with_3() {
    let mut scene = Scene::new();
    scene.answer("version", prints(&json!({ "azure-cli": "2.1.0" })));
    let error = scene.run(&UP).expect_code(3).stderr;
    assert!(error.contains("az upgrade"), "{error}");
    scene.answer("version", prints(&json!({ "azure-cli": "2.91.0" })));
    scene.answer("account show", fails("ERROR: Please run 'az login' to setup account.\n"));
    let error = scene.run(&["azure", "list", "--json"]).expect_code(3);
    assert!(error.stderr.contains("run `az login`"), "{}", error.stderr);
    assert_eq!(error.json()["error"]["exit_code"], 3);
    let mut command = scene.netduel(&["azure", "list"]);
    command.env("PATH", scene.at("nothing"));
    let error = Finished::from(command.output().unwrap()).expect_code(3).stderr;
    assert!(error.contains("failed to start `az`") && error.contains("install the Azure CLI"), "{error}");
}

#[test]
fn quota_and_foreign_group_end_with_12_before_anything_is_created() {
    let mut scene = Scene::new();
    scene.answer("vm list-usage", usage("4"));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("request a quota of 12 "), "{error}");
    scene.answer("group exists", json!([{ "out": "true" }]));
    scene.answer(
        "group show",
        prints(&json!({ "name": "netduel-x", "location": "westeurope", "tags": { "owner": "me" } })),
    );
    for (words, remedy) in [
        (&UP[..], "give the bed another name"),
        (&["azure", "down", "x", "--yes"][..], "`netduel azure list` shows all beds"),
    ] {
        let error = scene.run(words).expect_code(12).stderr;
        let end = format!(": it lacks the tag netduel=x; {remedy}");
        assert!(error.trim_end().ends_with(&end), "{error}");
    }
    let calls = scene.calls();
    assert!(!calls.contains("create") && !calls.contains("delete"), "{calls}");
}

#[test]
fn failed_deployment_says_why_and_how_to_delete_what_exists() {
    let mut scene = Scene::new();
    scene.answer("deployment group show", prints(&json!({ "provisioningState": "Failed", "error": { "code": "DeploymentFailed", "message": "x" } })));
    let error = json!({ "error": { "code": "SkuNotAvailable", "message": "not now" } });
    scene.answer("deployment operation group list", operation("vm2", "Failed", &error));
    let error = scene.run(&UP).expect_code(12).stderr;
    for part in ["failed to create VM vm2: ", "(not now)", "netduel azure up x.toml", "netduel azure down x"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    // They look for it in its own subscription.
    scene.bed("Standard_D4s_v3", &format!("ssh_key = {:?}\nsubscription = \"paid\"", scene.at("key.pub")));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("`netduel azure down x --subscription paid`"), "{error}");
    // The command can be pasted, whatever the name of the file is.
    fs::copy(scene.at("x.toml"), scene.at("x; reboot.toml")).unwrap();
    let error = scene.run(&["azure", "up", "x; reboot.toml", "--ssh-from", "192.0.2.1/32"]).expect_code(12);
    assert!(
        error.stderr.contains("`netduel azure up 'x; reboot.toml' --ssh-from 192.0.2.1/32`"),
        "{}",
        error.stderr
    );
    // A text of Azure cannot control the terminal.
    scene.answer("deployment group create", fails("ERROR: (Strange) \u{1b}[2Jred\n"));
    let error = scene.run(&UP).expect_code(12).stderr;
    assert!(error.contains("red") && !error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn interrupt_says_what_may_exist_and_leaves_no_process() {
    let mut scene = Scene::new();
    scene.answer("deployment group show", json!([{ "create": "waits", "hang": true }]));
    let up = UnderWay::start(scene.netduel(&UP));
    assert!(until(|| scene.at("waits").exists()));
    signal(up.pid(), Signal::INT);
    let ended = up.finish().expect_code(130);
    assert!(
        ended.stderr.contains("interrupted") && ended.stderr.contains("netduel azure down x"),
        "{}",
        ended.stderr
    );
    scene.bench.assert_nothing_left();
}

#[test]
fn completed_bed_whose_vms_are_deallocated_does_not_run() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    scene.answer("vm list --resource-group", vms("VM deallocated"));
    let up = scene.run(&UP).expect_code(0);
    assert!(up.stdout.starts_with("the bed x exists in westeurope\n"), "{}", up.stdout);
    let warning = "warning: the bed x does not run: vm1 is deallocated, vm2 is deallocated; `netduel azure run` with --start starts";
    assert!(up.stderr.contains(warning), "{}", up.stderr);
    // The bed exists all the same, and its addresses are known.
    let up = scene.run(&[&UP[..], &["--json"]].concat()).expect_code(0);
    assert!(up.stderr.contains(warning) && up.json()["beds"][0]["name"] == "x", "{}", up.stderr);
    scene.answer("vm list --resource-group netduel-x --show-details", fails("ERROR: Max retries exceeded\n"));
    let up = scene.run(&UP).expect_code(0);
    assert!(up.stderr.contains("warning: the states of the VMs are unknown"), "{}", up.stderr);
}

#[test]
fn interrupt_names_what_is_created_and_what_is_in_progress() {
    let mut scene = Scene::new();
    scene.answer("deployment group show", prints(&json!({ "provisioningState": "Running" })));
    let vm = |name: &str, state: &str| {
        let target = json!({ "resourceName": name, "resourceType": "Microsoft.Compute/virtualMachines" });
        json!({ "properties": { "provisioningState": state, "targetResource": target } })
    };
    let operations = json!([vm("vm1", "Succeeded"), vm("vm2", "Running")]);
    scene.answer("deployment operation group list", prints(&operations));
    let mut up = UnderWay::start(scene.netduel(&UP));
    up.wait_for("VM vm2 in progress");
    signal(up.pid(), Signal::INT);
    let error = up.finish().expect_code(130).stderr;
    let part = "netduel-x has a part of the bed, which costs money (created: VM vm1; in progress: VM vm2): complete it with";
    assert!(error.contains(part) && error.contains("netduel azure down x"), "{error}");
    scene.bench.assert_nothing_left();
}

#[test]
fn price_that_was_looked_up_is_kept_with_its_date_for_commands_without_network() {
    let mut scene = Scene::new();
    let checked = scene.run(&["azure", "check", "x.toml"]).expect_code(0).stdout;
    assert!(checked.contains("price      estimate: "), "{checked}");
    let price = json!({
        "retailPrice": 0.25, "unitOfMeasure": "1 Hour", "type": "Consumption", "productName": "Virtual Machines DSv3 Series",
        "skuName": "D4s v3", "armSkuName": "Standard_D4s_v3", "currencyCode": "USD", "isPrimaryMeterRegion": true,
    });
    scene.answer("rest --method get", prints(&json!({ "Items": [price] })));
    let up = scene.run(&UP).expect_code(0);
    assert!(up.stderr.contains("0.50 USD an hour") && !up.stderr.contains("as of"), "{}", up.stderr);
    let created = scene.calls();
    assert!(
        created.contains("netduel-price=0.5 USD") && created.contains("netduel-price-read="),
        "{created}"
    );
    let checked = scene.run(&["azure", "check", "x.toml"]).expect_code(0).stdout;
    assert!(checked.contains("0.50 USD an hour for all VMs, as of "), "{checked}");
    // The service cannot be reached, and the earlier price is still known.
    scene.answer("rest --method get", fails("ERROR: Max retries exceeded\n"));
    let again = scene.run(&UP).expect_code(0);
    let part = "0.50 USD an hour without disks, addresses and traffic (as of 2";
    assert!(again.stderr.contains(part), "{}", again.stderr);
    // An answer without the price is no reason to use an old one.
    scene.answer("rest --method get", prints(&json!({ "Items": [] })));
    let unknown = scene.run(&UP).expect_code(0);
    assert!(unknown.stderr.contains("subscription fake: price unknown"), "{}", unknown.stderr);
    // Another size has another price.
    scene.bed("Standard_D8s_v4", "");
    let other = scene.run(&["azure", "check", "x.toml"]).expect_code(0).stdout;
    assert!(other.contains("price      estimate: "), "{other}");
}
