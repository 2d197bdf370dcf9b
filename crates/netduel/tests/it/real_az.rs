//! `netduel azure` with the real `az` against a stand-in for Azure on loopback. `cargo xtask test azure` installs that `az` and runs these
//! tests; no other command does, because it has 730 MB. A call of it takes a second or more, so the tests share few scenes.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use netduel_test_support::{RealAz, az_folder};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::azure_run::PLAN;
use crate::azure_subnets::{add_routes, forwarded};
use crate::support::{Bench, Finished, UnderWay, VOLUME, signal, until};
use crate::vms::{Vms, assert_names, with_room_for_two_pairs, with_room_for_vms};

/// The beds of the repository.
const BEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../beds");
/// Its plan for two pairs of VMs.
const DUAL_STACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/azure-dual-stack.toml");
/// The arms of that plan, with the path that must carry their bytes and its name in the proofs.
const PATHS: [(&str, &str, &str); 4] = [
    ("synthetic-ipv6", "synthetic", "the synthetic path"),
    ("accelerated-ipv6", "vf", "the virtual function"),
    ("synthetic-ipv4", "synthetic", "the synthetic path"),
    ("accelerated-ipv4", "vf", "the virtual function"),
];

/// The real `az`, logged in at the stand-in.
struct Scene {
    /// It ends before its folder is removed.
    az: RealAz,
    bench: Bench,
}

impl Scene {
    /// Says why there is none.
    fn new() -> Option<Self> {
        az_folder()?;
        let bench = Bench::new();
        let command = |program: &Path| {
            let mut command = Command::new(program);
            bench.mark(&mut command);
            command
        };
        let az = RealAz::start(bench.path(), &command)?;
        let scene = Self { az, bench };
        let keys = scene.bench.path().join(".ssh");
        fs::create_dir(&keys).unwrap();
        // Where the beds of the repository expect it, with HOME in this folder.
        fs::write(keys.join("id_ed25519.pub"), "ssh-ed25519 AAAAC3Nz\n").unwrap();
        Some(scene)
    }

    /// Writes NAME.toml, a bed of this name.
    fn bed(&self, name: &str) -> String {
        self.bed_with(name, "Standard_D4s_v3", "region = \"westeurope\"")
    }

    /// The same with another size and other keys.
    fn bed_with(&self, name: &str, size: &str, keys: &str) -> String {
        let text = format!("name = \"{name}\"\nsize = \"{size}\"\nssh_from = [\"192.0.2.1/32\"]\n{keys}\n");
        fs::write(self.bench.path().join(format!("{name}.toml")), text).unwrap();
        format!("{name}.toml")
    }

    fn netduel(&self, words: &[&str]) -> Command {
        let mut command = self.bench.netduel(words);
        self.az.surround(&mut command, &self.bench.path().join("bin"));
        command.env("HOME", self.bench.path());
        command
    }

    fn run(&self, words: &[&str]) -> Finished {
        Finished::from(self.netduel(words).output().unwrap())
    }

    /// An `up` that is refused; returns what it prints.
    #[track_caller]
    fn refused(&self, bed: &str, code: i32) -> String {
        self.run(&["azure", "up", bed]).expect_code(code).stderr
    }

    /// What `netduel azure list` has.
    fn beds(&self) -> Value {
        self.run(&["azure", "list", "--json"]).expect_code(0).json()["beds"].clone()
    }
}

#[test]
fn beds_are_created_completed_listed_changed_and_deleted() {
    let Some(scene) = Scene::new() else { return };
    bed_is_created_completed_listed_and_deleted(&scene);
    template_that_was_deployed_by_other_means_is_a_bed(&scene);
    resources_of_others_in_the_group_are_named_before_they_are_deleted(&scene);
    every_bed_of_the_repository_is_created(&scene);
    nics_and_vms_are_changed_and_returned(&scene);
}

fn bed_is_created_completed_listed_and_deleted(scene: &Scene) {
    let sysctls = "{ \"net.ipv4.tcp_rmem\" = \"1 2 3\", \"net.core.somaxconn\" = \"4\" }";
    let tuned = &format!("region = \"westeurope\"\nsysctls = {sysctls}");
    let bed = scene.bed_with("x", "Standard_D4s_v3", &format!("{tuned}\nbudget = \"100 USD\""));
    let checked = scene.run(&["azure", "check", &bed, "--price"]).expect_code(0).stdout;
    assert_names(&checked, &["price      0.50 USD an hour for all VMs, as of 20"]);
    let up = scene.run(&["azure", "up", &bed]).expect_code(0);
    assert_names(&up.stdout, &["the bed x is up in westeurope", "ssh netduel@192.0.2."]);
    // The price comes from the service, through the proxy: that of Linux by the hour, for two VMs.
    assert_names(&up.stderr, &["VM vm1 created", "subscription stand-in: 0.50 USD an hour without disks"]);
    // A second `up` changes the tags of the bed, and leaves those that its user has set.
    let id = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/netduel-x";
    scene.az.ask(&["tag", "update", "--resource-id", id, "--operation", "Merge", "--tags", "owner=me"]);
    let tags = || -> Value {
        let shown = scene.az.ask(&["group", "show", "--name", "netduel-x", "--query", "tags"]);
        serde_json::from_str(&shown).unwrap()
    };
    let first = tags();
    assert_eq!((&first["owner"], &first["netduel-budget"]), (&"me".into(), &"100 USD".into()), "{first}");
    assert_eq!(first["netduel-sysctls"], "net.core.somaxconn 4; net.ipv4.tcp_rmem 1 2 3");
    scene.bed_with("x", "Standard_D4s_v3", tuned);
    scene.run(&["azure", "up", &bed]).expect_code(0);
    let second = tags();
    assert_eq!((&second["owner"], &second["netduel-budget"]), (&"me".into(), &"".into()), "{second}");
    assert_eq!(second["netduel-created"], first["netduel-created"]);
    for (key, part) in [
        ("type = \"toggle\"", "exists with the type two-nic, and the file has toggle"),
        ("shutdown = \"off\"", "a daily shutdown of vm1, vm2, and Azure keeps it"),
    ] {
        scene.bed_with("x", "Standard_D4s_v3", &format!("region = \"westeurope\"\n{key}"));
        assert_names(&scene.refused(&bed, 12), &[part]);
    }
    assert_eq!(tags(), second, "a refused `up` changes no tag");
    // The service principal of the login is a user, too.
    assert_eq!(first["netduel-owner"].as_str().map(str::len), Some(64), "{first}");
    let own = format!("netduel-owner={}", first["netduel-owner"].as_str().unwrap_or_default());
    let other = format!("netduel-owner={}", "0a".repeat(32));
    let own_by = |owner: &str| {
        let words = ["tag", "update", "--resource-id", id, "--operation", "Merge", "--tags", owner];
        scene.az.ask(&words);
    };
    own_by(&other);
    let of_other = "another user of the subscription created the bed x";
    assert_names(&scene.refused(&bed, 12), &[of_other]);
    assert_names(&scene.run(&["azure", "down", "--yes"]).expect_code(12).stderr, &[of_other]);
    own_by(&own);
    let beds = scene.beds();
    assert_eq!((&beds[0]["name"], &beds[0]["region"]), (&"x".into(), &"westeurope".into()));
    scene.run(&["azure", "down", "x", "--yes"]).expect_code(0);
    assert_eq!(scene.beds(), json!([]));
    scene.run(&["azure", "down", "x", "--yes"]).expect_code(12);
}

/// The commands of docs/beds.md.
fn template_that_was_deployed_by_other_means_is_a_bed(scene: &Scene) {
    let bed = scene.bed("own");
    let template = scene.run(&["azure", "template", &bed]).expect_code(0).stdout;
    let file = scene.bench.path().join("template.json").display().to_string();
    fs::write(&file, template).unwrap();
    let group = ["group", "create", "--name", "netduel-own", "--location", "westeurope"];
    scene.az.ask(&[&group[..], &["--tags", "netduel=own", "netduel-type=two-nic"]].concat());
    let deployment = ["deployment", "group", "create", "-g", "netduel-own", "-n", "netduel", "--no-wait"];
    let key = "sshPublicKey=ssh-ed25519 AAAAC3Nz me@here";
    let (prefixes, tags) = (r#"sourceAddressPrefixes=["192.0.2.1/32"]"#, r#"tags={"netduel": "own"}"#);
    let parameters = ["--template-file", &file, "--parameters", key, prefixes, tags];
    scene.az.ask(&[&deployment[..], &parameters].concat());
    let beds = scene.beds();
    let listed = &beds[0];
    assert_eq!((&listed["name"], &listed["price_per_hour"]), (&"own".into(), &Value::Null), "{listed}");
    // Nothing in the group is of others.
    scene.run(&["azure", "down", "own", "--yes"]).expect_code(0);
    assert_eq!(scene.beds(), json!([]));
}

fn resources_of_others_in_the_group_are_named_before_they_are_deleted(scene: &Scene) {
    let bed = scene.bed("shared");
    scene.run(&["azure", "up", &bed]).expect_code(0);
    let refused = scene.run(&["azure", "down", "shared", "--yes"]).expect_code(12).stderr;
    assert_names(&refused, &["has 1 resource that netduel did not create: storageAccounts archive"]);
    scene.run(&["azure", "down", "shared", "--yes", "--with-everything"]).expect_code(0);
    scene.run(&["azure", "down", "shared", "--yes"]).expect_code(12);
}

/// All types, one with IPv6, one with a budget and one in a zone. The bed `toggle` stays.
fn every_bed_of_the_repository_is_created(scene: &Scene) {
    let names = ["dpdk", "hot-add", "toggle", "two-nic", "two-pairs"];
    let mut files: Vec<String> =
        fs::read_dir(BEDS).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, names.map(|name| format!("{name}.toml")));
    for name in names {
        let file = format!("{BEDS}/{name}.toml");
        let up = scene.run(&["azure", "up", &file, "--ssh-from", "192.0.2.1/32", "--json"]).expect_code(0);
        let hosts = up.json()["beds"][0]["hosts"].clone();
        let vms = if name == "two-pairs" { 4 } else { 2 };
        assert_eq!(hosts.as_array().map(Vec::len), Some(vms), "{name}: {hosts}");
        let has_ipv6 = hosts.to_string().contains("fd77:6e64:0:1::");
        assert_eq!(has_ipv6, name == "two-pairs", "{name}: {hosts}");
    }
    let beds = scene.beds();
    let listed: Vec<&str> = beds.as_array().unwrap().iter().filter_map(|bed| bed["name"].as_str()).collect();
    assert_eq!(listed, names);
    let zone = ["vm", "show", "-g", "netduel-hot-add", "-n", "vm1", "--query", "zones[0]", "-o", "tsv"];
    assert_eq!(scene.az.ask(&zone), "1");
    scene.run(&["azure", "down", "dpdk", "--yes", "--no-wait"]).expect_code(0);
    assert!(!scene.beds().to_string().contains("\"dpdk\""));
}

/// The commands of the treatments, by the command that undoes them: it reads, stops, changes and starts.
fn nics_and_vms_are_changed_and_returned(scene: &Scene) {
    let group = ["--resource-group", "netduel-toggle"];
    let undo = |words: &[&str]| scene.run(&[&["azure-undo"][..], words, &group].concat()).expect_code(0);
    let show = |kind: &[&str], name: &str, query: &str| {
        scene.az.ask(&[kind, &["show", "-n", name, "--query", query, "-o", "tsv"], &group].concat())
    };
    let flag = || show(&["network", "nic"], "vm1-test", "enableAcceleratedNetworking");
    let before = flag();
    let other = if before == "true" { "false" } else { "true" };
    undo(&["nic", "vm1-test", "--accelerated", other]);
    assert_eq!(flag(), other);
    undo(&["nic", "vm1-test", "--accelerated", &before, "--stop"]);
    assert_eq!(flag(), before);

    let placement = || show(&["vm"], "vm1", "proximityPlacementGroup.id || 'none'");
    assert_eq!(placement(), "none");
    undo(&["placement", "vm1", "--group", "netduel-proximity"]);
    assert!(placement().ends_with("/proximityPlacementGroups/netduel-proximity"), "{}", placement());
    undo(&["placement", "vm1"]);
    assert_eq!(placement(), "none");

    // What a run does where Azure refuses the change of a NIC in use.
    let bed = scene.bed("in-use");
    scene.run(&["azure", "up", &bed]).expect_code(0);
    let words =
        ["azure-undo", "nic", "vm1-synthetic", "--accelerated", "true", "--resource-group", "netduel-in-use"];
    let error = scene.run(&words).expect_code(12).stderr;
    assert_names(&error, &["NicInUse"]);
    scene.run(&[&words[..], &["--stop"]].concat()).expect_code(0);
    let state = ["vm", "list", "-d", "-g", "netduel-in-use", "--query", "[].powerState", "-o", "tsv"];
    assert_eq!(scene.az.ask(&state), "VM running\nVM running");
    scene.run(&["azure-undo", "start", "vm1", "--resource-group", "netduel-in-use"]).expect_code(0);
    let gone = ["azure-undo", "nic", "vm9-test", "--accelerated", "true"];
    scene.run(&[&gone[..], &group].concat()).expect_code(0);
}

#[test]
fn refusals_of_azure_have_words_and_faults_do_not_end_an_up() {
    let Some(scene) = Scene::new() else { return };
    refusals_of_a_group_have_words(&scene);
    refusals_of_a_size_or_price_have_words(&scene);
    missing_login_has_words(&scene);
    interrupt_says_what_exists(&scene);
    faults_beyond_the_retries_of_az_do_not_end_an_up(&scene);
    up_whose_request_was_lost_is_completed_by_the_next(&scene);
}

fn refusals_of_a_group_have_words(scene: &Scene) {
    for (name, code, part) in [
        ("quota", 12, "request a quota of 12 "),
        ("conflict", 12, "failed to create VM vm1, VM vm2: Azure has no capacity"),
        ("capacity", 12, "failed to create VM vm1, VM vm2: Azure has no capacity"),
        ("size", 12, "Azure does not offer this size there to this subscription (The requested VM size"),
        ("accelerated", 12, "on this size; choose one of Standard_DS3_v2"),
        ("change", 12, "Azure cannot change this of a VM that exists"),
        ("expired", 3, "run `az login`"),
        ("gone", 12, "there is no connection to Azure"),
        ("owned", 12, "the resource group netduel-owned exists and is not the bed owned"),
    ] {
        let bed = scene.bed(name);
        let error = scene.refused(&bed, code);
        assert!(error.contains(part), "{name}: {error}");
    }
}

fn refusals_of_a_size_or_price_have_words(scene: &Scene) {
    let here = "region = \"westeurope\"";
    let with = |key: &str| format!("{here}\n{key}");
    let size = "Standard_D4s_v3";
    for (size, keys, part) in [
        ("Standard_D64s_v3", here.to_owned(), "does not offer Standard_D64s_v3 in westeurope"),
        ("Standard_D32s_v3", here.to_owned(), "the subscription is restricted (NotAvailableForSubscription)"),
        ("Standard_D8s_v3", here.to_owned(), "no accelerated networking for Standard_D8s_v3 in westeurope"),
        ("Standard_D16s_v3", here.to_owned(), "Standard_D16s_v3 has 1 NIC in westeurope"),
        (size, with("zone = 2"), "the size is not in zone 2"),
        (size, "region = \"francecentral\"".to_owned(), "request a quota of 1003 "),
        (size, with("budget = \"11 USD\"\nshutdown = \"off\""), "the bed costs 12.00 USD a day"),
        (size, with("budget = \"11 EUR\""), "the price of Standard_D4s_v3 in westeurope is unknown"),
    ] {
        let bed = scene.bed_with("refused", size, &keys);
        let error = scene.refused(&bed, 12);
        assert!(error.contains(part), "{size}, {keys}: {error}");
    }
    assert_eq!(
        scene.az.ask(&["group", "exists", "-n", "netduel-refused"]),
        "false",
        "before anything is created"
    );
}

fn missing_login_has_words(scene: &Scene) {
    let mut command = scene.netduel(&["azure", "list"]);
    command.env("AZURE_CONFIG_DIR", scene.bench.path().join("nobody"));
    // Without it a process of its own would send telemetry.
    command.env("AZURE_CORE_COLLECT_TELEMETRY", "no");
    let error = Finished::from(command.output().unwrap()).expect_code(3).stderr;
    assert_names(&error, &["the login of `az` is missing", "run `az login`"]);
}

fn interrupt_says_what_exists(scene: &Scene) {
    let bed = scene.bed("long");
    let mut up = UnderWay::start(scene.netduel(&["azure", "up", &bed]));
    up.wait_for("VM vm1 in progress");
    signal(up.pid(), Signal::INT);
    let error = up.finish().expect_code(130).stderr;
    assert_names(&error, &["interrupted; Azure continues the deployment", "netduel azure down long"]);
}

/// `az` repeats a request itself, some times. Each of these faults lasts until it has given up: what follows is the work of netduel.
fn faults_beyond_the_retries_of_az_do_not_end_an_up(scene: &Scene) {
    for name in ["slow", "cut", "half"] {
        let bed = scene.bed(name);
        scene.az.forget_failures();
        scene.run(&["azure", "up", &bed]).expect_code(0);
        assert!(scene.az.has_failed(), "{name}: az did not give up, so nothing of netduel was tested");
    }
}

/// The request reaches Azure, and its connection ends before the answer.
fn up_whose_request_was_lost_is_completed_by_the_next(scene: &Scene) {
    let bed = scene.bed("lost");
    scene.az.forget_failures();
    let error = scene.refused(&bed, 12);
    assert_names(
        &error,
        &[
            "there is no connection to Azure",
            "the resource group netduel-lost may exist with a part of the bed and cost money",
            "complete it with `netduel azure up lost.toml`",
        ],
    );
    let up = scene.run(&["azure", "up", &bed]).expect_code(0);
    assert_names(&up.stderr, &["completing the bed lost"]);
}

#[test]
fn bed_with_vms_is_created_carries_a_plan_and_is_deleted() {
    if az_folder().is_none() {
        return;
    }
    with_room_for_vms("real_az::bed_with_vms_is_created_carries_a_plan_and_is_deleted", || {
        let Some(scene) = Scene::new() else { return };
        let vms = Vms::start(&scene.bench);
        let bed = scene.bed("x");
        scene.run(&["azure", "up", &bed]).expect_code(0);
        scene.bench.plan(&format!("{PLAN}{VOLUME}"));
        // The template asks for an accelerated NIC, and a namespace has no virtual function.
        let refused = scene.run(&["azure", "run", "plan.toml", "--bed", &bed]).expect_code(12).stderr;
        assert_names(
            &refused,
            &["vm1-accelerated has no virtual function, and Azure claims that it is accelerated"],
        );
        assert!(!refused.contains("vm1-synthetic"), "{refused}");
        let words = ["azure", "run", "plan.toml", "--allow-disagreement", "--out", "report", "--json"];
        let document = scene.run(&words).expect_code(0).json();
        assert_eq!(
            (&document["trials_valid"], &document["trials_excluded"]),
            (&4.into(), &0.into()),
            "{document}"
        );
        assert_eq!(document["plan"]["arms"][1]["expected_interface_client"], "eth1");
        assert!(scene.bench.path().join("report/report.html").exists());
        scene.run(&["azure", "down", "x", "--yes"]).expect_code(0);

        let stopped = scene.bed("stopped");
        scene.run(&["azure", "up", &stopped]).expect_code(0);
        let words = ["azure", "run", "plan.toml", "--allow-disagreement"];
        let refused = scene.run(&words).expect_code(12).stderr;
        assert_names(&refused, &["vm1 is deallocated, vm2 is deallocated", "--start"]);
        let run = scene.run(&[&words[..], &["--start"]].concat()).expect_code(0);
        assert_names(&run.stderr, &["starting vm1, vm2 of the bed stopped"]);
        drop(vms);
        // The stand-in ends with the scene.
        assert!(until(|| scene.bench.processes().len() == 1), "{:?}", scene.bench.processes());
    });
}

/// The plan and the bed of the repository as they are; options that every user has make the trials few, short and slow.
#[test]
fn two_pairs_carry_both_families_and_exchange_their_arms() {
    if az_folder().is_none() {
        return;
    }
    with_room_for_two_pairs("real_az::two_pairs_carry_both_families_and_exchange_their_arms", || {
        let Some(scene) = Scene::new() else { return };
        let vms = Vms::start_two_pairs(&scene.bench);
        let bed = format!("{BEDS}/two-pairs.toml");
        scene.run(&["azure", "up", &bed, "--ssh-from", "192.0.2.1/32"]).expect_code(0);
        let template = scene.run(&["azure", "template", &bed]).expect_code(0).stdout;
        add_routes(&template, &["vm1", "vm2", "vm3", "vm4"]);
        for vm in ["vm1", "vm2"] {
            let mut switch = Command::new(scene.bench.path().join("bin/switch"));
            Finished::from(switch.args([vm, "on"]).output().unwrap()).expect_code(0);
        }
        let before = forwarded();
        // A namespace has no PCI function, so the comparison with what Azure claims finds no virtual function. The switches of the NICs and
        // the proof of path do find it.
        let words = ["azure", "run", DUAL_STACK, "--bed", &bed, "--out", "report", "--json"];
        let few = ["--set", "blocks_max=2", "--set", "duration=500 ms", "--set", "rate=300 Mbit/s"];
        let run = scene.run(&[&words[..], &few, &["--allow-disagreement"]].concat()).expect_code(0);
        let after = forwarded();
        assert!(before.iter().zip(after).all(|(before, after)| *before < after), "{before:?}, {after:?}");
        assert_carried_and_exchanged(&run);
        assert_switched_back(&scene);
        let page = fs::read_to_string(scene.bench.path().join("report/report.html")).unwrap();
        assert_names(
            &page,
            &[
                "Test bed",
                "vm4-test",
                "Accelerated NIC and IPv6 dual stack",
                "0.25 USD for Standard_DS4_v2",
                "Arms exchange their hosts after block 1: synthetic-ipv6 and accelerated-ipv6",
                " and synthetic-ipv4 and accelerated-ipv4.",
            ],
        );
        scene.run(&["azure", "down", &bed, "--yes"]).expect_code(0);
        assert_eq!(scene.beds(), json!([]));
        drop(vms);
        // The stand-in ends with the scene.
        assert!(until(|| scene.bench.processes().len() == 1), "{:?}", scene.bench.processes());
    });
}

/// Three workloads on four arms in two blocks: each trial is valid and its path proven, in both halves.
fn assert_carried_and_exchanged(run: &Finished) {
    let document = run.json();
    assert_eq!(
        (&document["trials_valid"], &document["trials_excluded"]),
        (&24.into(), &0.into()),
        "{document}"
    );
    assert_eq!(document["plan"]["design"]["crossover"], true);
    let of = |key: &str| document[key].as_array().cloned().unwrap_or_default();
    let proofs: Vec<Value> = of("path_proofs");
    let proofs: Vec<&str> = proofs.iter().filter_map(Value::as_str).collect();
    for (index, (name, path, words)) in PATHS.into_iter().enumerate() {
        let arm = &document["plan"]["arms"][index];
        assert_eq!((&arm["name"], &arm["expected_path"]), (&name.into(), &path.into()), "{arm}");
        let start = format!("{name}: ");
        let of_arm: Vec<&&str> = proofs.iter().filter(|proof| proof.starts_with(&start)).collect();
        let is_proven = |proof: &&&str| proof.contains(words) && proof.contains("6 of 6 trials proven)");
        assert!(!of_arm.is_empty() && of_arm.iter().all(is_proven), "{name}: {proofs:#?}");
    }
    // The template asks for virtual functions of the first pair only.
    let warnings = of("warnings");
    let disagreeing = warnings.iter().filter(|one| one["kind"] == "bed-disagrees");
    let hosts: BTreeSet<&str> = disagreeing.filter_map(|one| one["host"].as_str()).collect();
    assert_eq!(hosts, BTreeSet::from(["accelerated-client", "accelerated-server"]), "{warnings:#?}");
    assert_names(
        &run.stderr,
        &[
            "changing accelerated networking of vm1-test off (accelerated-client)",
            "changing accelerated networking of vm2-test off (accelerated-server)",
            "changing accelerated networking of vm3-test on (synthetic-client)",
            "changing accelerated networking of vm4-test on (synthetic-server)",
        ],
    );
}

/// At the end every NIC has its original flag, and its VM shows it.
fn assert_switched_back(scene: &Scene) {
    for (vm, is_accelerated) in [("vm1", true), ("vm2", true), ("vm3", false), ("vm4", false)] {
        let nic = format!("{vm}-test");
        let query = ["--query", "enableAcceleratedNetworking", "-o", "tsv"];
        let show = ["network", "nic", "show", "-g", "netduel-two-pairs", "-n", &nic];
        assert_eq!(scene.az.ask(&[&show[..], &query].concat()), is_accelerated.to_string(), "{nic}");
        let shown = Command::new("ip").args(["-n", vm, "link", "show", "vf0"]).output().unwrap();
        assert_eq!(shown.status.success(), is_accelerated, "{vm}: {shown:?}");
    }
}
