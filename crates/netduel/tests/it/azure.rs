//! `netduel azure` with a program in place of `az` that replays answers of the real one. Nothing leaves this machine.
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{Bench, Finished, UnderWay, signal, until};

/// Finds the answer to a command by its first words: a script of that name, or a text. Each command is written down.
const AZ: &str = r#"#!/bin/sh
here="${0%/*}"
printf '%s\n' "$*" >> "$here/calls"
case "$1" in
deployment) name="$1-$2-$3" ;;
*) name="$1-$2" ;;
esac
if [ -e "$here/$name.sh" ]; then . "$here/$name.sh"; exit; fi
cat "$here/$name"
"#;

/// Answers to each command of a bed that can be created.
const ANSWERS: [(&str, &str); 12] = [
    ("version-", r#"{"azure-cli": "2.91.0"}"#),
    ("account-show", r#"{"id": "22222222-2222-2222-2222-222222222222", "name": "fake", "state": "Enabled"}"#),
    ("group-exists.sh", "if [ -e \"$here/exists\" ]; then echo true; else echo false; fi"),
    ("group-create.sh", "touch \"$here/exists\""),
    ("group-delete.sh", "rm \"$here/exists\""),
    ("group-show", r#"{"name": "netduel-x", "location": "westeurope", "tags": {"netduel": "x", "netduel-created": "1795343407"}}"#),
    (
        "group-list",
        r#"[{"name": "netduel-x", "location": "westeurope", "tags": {"netduel": "x", "netduel-created": "1700000000", "netduel-price": "2.00 EUR",
            "netduel-shutdown": "19:00"}}]"#,
    ),
    (
        "vm-list-skus",
        r#"[{"name": "Standard_D4s_v3", "family": "standardDSv3Family", "locationInfo": [{"location": "westeurope", "zones": ["1"]}], "restrictions": [],
            "capabilities": [{"name": "AcceleratedNetworkingEnabled", "value": "True"}, {"name": "MaxNetworkInterfaces", "value": "2"}]}]"#,
    ),
    ("vm-list-usage", r#"[{"limit": "10", "currentValue": "0", "name": {"value": "standardDSv3Family"}}]"#),
    ("rest---method", r#"{"Items": []}"#),
    ("deployment-group-create", ""),
    (
        "deployment-operation-group",
        r#"[{"properties": {"provisioningState": "Succeeded", "targetResource": {"resourceName": "vm1", "resourceType": "Microsoft.Compute/virtualMachines"}}}]"#,
    ),
];
const DEPLOYED: &str = r#"{"provisioningState": "Succeeded", "outputs": {"hosts": {"type": "Array", "value": [
    {"name": "vm1", "public": "192.0.2.7", "nics": [{"name": "vm1-synthetic", "ipv4": "10.77.0.4"}]},
    {"name": "vm2", "public": "192.0.2.8", "nics": [{"name": "vm2-synthetic", "ipv4": "10.77.0.5"}]}]}}}"#;

/// A test's folder with `az`, a key and a bed.
struct Scene {
    bench: Bench,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { bench: Bench::new() };
        fs::create_dir(scene.bench.path().join("bin")).unwrap();
        for (name, text) in ANSWERS.into_iter().chain([("deployment-group-show", DEPLOYED)]) {
            scene.answer(name, text);
        }
        scene.answer("az", AZ);
        fs::set_permissions(scene.bin("az"), fs::Permissions::from_mode(0o755)).unwrap();
        let key = scene.bench.path().join("key.pub");
        fs::write(&key, "ssh-ed25519 AAAAC3Nz me@here\n").unwrap();
        scene.bed("", &format!("ssh_key = {:?}", key.display().to_string()));
        scene
    }

    fn bin(&self, name: &str) -> std::path::PathBuf {
        self.bench.path().join("bin").join(name)
    }

    /// Sets the answer to a command, a text or with `.sh` a script.
    fn answer(&self, name: &str, text: &str) {
        fs::write(self.bin(name), text).unwrap();
    }

    /// Writes x.toml with these keys, the first in place of the size.
    fn bed(&self, size: &str, keys: &str) {
        let size = if size.is_empty() { "Standard_D4s_v3" } else { size };
        let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"{size}\"\n{keys}\n");
        fs::write(self.bench.path().join("x.toml"), text).unwrap();
    }

    fn netduel(&self, words: &[&str]) -> Command {
        let mut command = self.bench.netduel(words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.bench.path().join("bin").display()));
        command
    }

    fn run(&self, words: &[&str]) -> Finished {
        Finished::from(self.netduel(words).output().unwrap())
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.bin("calls")).unwrap_or_default()
    }
}

const UP: [&str; 5] = ["azure", "up", "x.toml", "--ssh-from", "192.0.2.1/32"];

#[test]
fn bed_is_checked_and_its_template_printed_without_az() {
    let scene = Scene::new();
    let checked = scene.run(&["azure", "check", "x.toml"]).expect_code(0).stdout;
    assert!(checked.starts_with("x.toml is a valid bed: two-nic in westeurope\n"), "{checked}");
    let document = scene.run(&["azure", "check", "x.toml", "--json"]).expect_code(0).json();
    assert_eq!((&document["vcpus"], &document["size"]["name"]), (&8.into(), &"Standard_D4s_v3".into()));
    let template = scene.run(&["azure", "template", "x.toml"]).expect_code(0).stdout;
    let template: serde_json::Value = serde_json::from_str(&template).unwrap();
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
        assert!(error.contains("x.toml:3: size: is Standard_D4s_v5, which requires accelerated networking"), "{error}");
        assert!(error.contains("x.toml:4: zone: is 7"), "{error}");
    }
    assert_eq!(scene.calls(), "");
}

#[test]
fn bed_is_created_listed_and_deleted() {
    let scene = Scene::new();
    let up = scene.run(&UP).expect_code(0);
    assert!(up.stdout.contains("the bed x is up in westeurope\n  vm1  ssh netduel@192.0.2.7; vm1-synthetic 10.77.0.4\n"), "{}", up.stdout);
    assert!(up.stdout.contains("netduel azure down x"), "{}", up.stdout);
    assert!(up.stderr.contains("creating the bed x in westeurope of fake") && up.stderr.contains("  VM vm1 created\n"), "{}", up.stderr);

    let again = scene.run(&[&UP[..], &["--json"]].concat()).expect_code(0);
    assert!(again.stderr.contains("completing the bed x"), "{}", again.stderr);
    assert_eq!(again.json()["beds"][0]["hosts"][1]["ssh"], "netduel@192.0.2.8");

    let listed = scene.run(&["azure", "list"]).expect_code(0);
    assert!(listed.stdout.starts_with("x  westeurope, ") && listed.stdout.contains("2.00 EUR an hour"), "{}", listed.stdout);
    assert!(listed.stderr.contains("warning: the bed x is older than a day"), "{}", listed.stderr);
    assert_eq!(scene.run(&["azure", "list", "--json"]).expect_code(0).json()["beds"][0]["group"], "netduel-x");

    let unasked = scene.run(&["azure", "down", "x"]).expect_code(2);
    assert!(unasked.stderr.contains("--yes") && scene.bin("exists").exists(), "{}", unasked.stderr);
    let down = scene.run(&["azure", "down", "x.toml", "--yes", "--no-wait", "--json"]).expect_code(0);
    assert_eq!(down.json()["removed"], serde_json::json!(["x"]));
    assert!(!scene.bin("exists").exists());
    let gone = scene.run(&["azure", "down", "x", "--yes"]).expect_code(11).stderr;
    assert!(gone.contains("there is no bed x in the subscription fake"), "{gone}");
    scene.bench.assert_nothing_left();
}

#[test]
fn key_and_prefixes_are_in_the_parameters_and_in_no_argument() {
    let scene = Scene::new();
    scene.run(&UP).expect_code(0);
    let calls = scene.calls();
    assert!(!calls.contains("AAAA") && !calls.contains("192.0.2.1"), "{calls}");
    let folder = scene.bench.path().join("state/netduel/azure/x");
    let parameters = fs::read_to_string(folder.join("parameters.json")).unwrap();
    assert!(parameters.contains("ssh-ed25519 AAAAC3Nz\"") && parameters.contains("192.0.2.1/32"), "{parameters}");
    assert!(folder.join("template.json").exists());
    let create = calls.lines().find(|call| call.starts_with("deployment group create")).unwrap();
    assert!(create.contains(&format!("--parameters @{}", folder.join("parameters.json").display())), "{create}");
}

#[test]
fn nothing_is_created_without_an_address_for_ssh_or_a_public_key() {
    let scene = Scene::new();
    let error = scene.run(&["azure", "up", "x.toml"]).expect_code(2).stderr;
    assert!(error.contains("--ssh-from ADDRESS/32"), "{error}");
    let world = scene.run(&["azure", "up", "x.toml", "--ssh-from", "0.0.0.0/0"]).expect_code(2).stderr;
    assert!(world.contains("too many addresses"), "{world}");
    let key = scene.bench.path().join("key.pub");
    fs::write(&key, "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n").unwrap();
    let error = scene.run(&UP).expect_code(2).stderr;
    assert!(error.contains("it is a private key") && !error.contains("secret"), "{error}");
    fs::remove_file(&key).unwrap();
    let error = scene.run(&UP).expect_code(2).stderr;
    assert!(error.contains("key.pub") && error.contains("ssh-keygen"), "{error}");
    assert_eq!(scene.calls(), "");
}

#[test]
fn missing_old_and_logged_out_az_end_with_3() {
    let scene = Scene::new();
    scene.answer("version-", r#"{"azure-cli": "2.1.0"}"#);
    let error = scene.run(&UP).expect_code(3).stderr;
    assert!(error.contains("az upgrade"), "{error}");
    scene.answer("version-", r#"{"azure-cli": "2.91.0"}"#);
    scene.answer("account-show.sh", "echo \"ERROR: Please run 'az login' to setup account.\" >&2\nexit 1");
    let error = scene.run(&["azure", "list", "--json"]).expect_code(3);
    assert!(error.stderr.contains("run `az login`"), "{}", error.stderr);
    assert_eq!(error.json()["error"]["exit_code"], 3);
    let mut command = scene.netduel(&["azure", "list"]);
    command.env("PATH", scene.bench.path().join("nothing"));
    let error = Finished::from(command.output().unwrap()).expect_code(3).stderr;
    assert!(error.contains("failed to start `az`") && error.contains("install the Azure CLI"), "{error}");
}

#[test]
fn quota_and_foreign_group_end_with_11_before_anything_is_created() {
    let scene = Scene::new();
    scene.answer("vm-list-usage", r#"[{"limit": "10", "currentValue": "4", "name": {"value": "standardDSv3Family"}}]"#);
    let error = scene.run(&UP).expect_code(11).stderr;
    assert!(error.contains("request a quota of 12 "), "{error}");
    scene.answer("group-exists.sh", "echo true");
    scene.answer("group-show", r#"{"name": "netduel-x", "location": "westeurope", "tags": {"owner": "me"}}"#);
    for words in [&UP[..], &["azure", "down", "x", "--yes"]] {
        let error = scene.run(words).expect_code(11).stderr;
        assert!(error.contains("it lacks the tag netduel=x"), "{error}");
    }
    let calls = scene.calls();
    assert!(!calls.contains("create") && !calls.contains("delete"), "{calls}");
}

#[test]
fn failed_deployment_says_why_and_how_to_delete_what_exists() {
    let scene = Scene::new();
    scene.answer("deployment-group-show", r#"{"provisioningState": "Failed", "error": {"code": "DeploymentFailed", "message": "x"}}"#);
    scene.answer(
        "deployment-operation-group",
        r#"[{"properties": {"provisioningState": "Failed", "targetResource": {"resourceName": "vm2", "resourceType": "Microsoft.Compute/virtualMachines"},
            "statusMessage": {"error": {"code": "SkuNotAvailable", "message": "not now"}}}}]"#,
    );
    let error = scene.run(&UP).expect_code(11).stderr;
    for part in ["failed to create VM vm2: ", "(not now)", "netduel azure up x.toml", "netduel azure down x"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A text of Azure cannot control the terminal.
    scene.answer("deployment-group-create.sh", "printf 'ERROR: (Strange) \\033[2Jred\\n' >&2; exit 1");
    let error = scene.run(&UP).expect_code(11).stderr;
    assert!(error.contains("red") && !error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn interrupt_says_what_may_exist_and_leaves_no_process() {
    let scene = Scene::new();
    scene.answer("deployment-group-show.sh", "touch \"$here/waits\"\nexec sleep 1000");
    let up = UnderWay::start(scene.netduel(&UP));
    assert!(until(|| scene.bin("waits").exists()));
    signal(up.pid(), Signal::INT);
    let ended = up.finish().expect_code(130);
    assert!(ended.stderr.contains("interrupted") && ended.stderr.contains("netduel azure down x"), "{}", ended.stderr);
    scene.bench.assert_nothing_left();
}
