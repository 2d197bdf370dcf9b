//! Treatments of Azure's NICs and VMs in whole runs, with a program in place of `az` that adds and removes a virtual function in the guest: an
//! interface with the same MAC address. Each test has a network namespace of its own.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use netduel_test_support::NewNamespace;
use serde_json::{Value, json};

use crate::azure::{fake_az, prints};
use crate::azure_errors::{assert_on_page, error_line};
use crate::support::{Bench, Finished};

const MAC: &str = "02:00:00:00:00:07";
pub const UPDATE: &str = "network nic update --resource-group g --name n --accelerated-networking";
/// A treatment that moves the VM `vm1` into a proximity placement group.
pub const NEAR: &str =
    "{ azure-placement = \"near\", vm = \"vm1\", resource-group = \"g\", on = \"client\" }";

fn in_namespace(name: &str, body: fn()) {
    with_interface(&format!("azure_treatments::{name}"), body);
}

/// Runs a test, by its full name, in a network namespace with the interface of the NIC `n`.
pub fn with_interface(test: &str, body: fn()) {
    let prepare = "ip link add va address 02:00:00:00:00:07 type veth peer name va-peer; ip link set lo up";
    NewNamespace { prepare, ..NewNamespace::default() }.run(test, body);
}

/// A folder with `az` and a plan of the arms `off` and `on`, which switch the NIC `n` of the client.
pub struct Scene {
    pub bench: Bench,
    plan: PathBuf,
}

/// A NIC of Azure: while a file is there it has a virtual function, an interface with its MAC address.
struct Nic {
    name: &'static str,
    mac: &'static str,
    file: &'static str,
    function: &'static str,
}

const N: Nic = Nic { name: "n", mac: MAC, file: "on", function: "vf0" };

impl Nic {
    /// The command that makes its virtual function.
    fn add(&self) -> [String; 11] {
        let peer = format!("{}-peer", self.function);
        ["ip", "link", "add", self.function, "address", self.mac, "type", "veth", "peer", "name", &peer]
            .map(str::to_owned)
    }

    fn update(&self, on: bool) -> String {
        format!("network nic update --resource-group g --name {} --accelerated-networking {on}", self.name)
    }

    fn show(&self) -> String {
        format!("network nic show --resource-group g --name {}", self.name)
    }

    /// What `az network nic show` prints, with the MAC address or without one.
    fn printed(&self, accelerated: bool, has_mac: bool) -> String {
        let vm = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm1";
        json!({
            "name": self.name, "enableAcceleratedNetworking": accelerated,
            "macAddress": has_mac.then(|| self.mac.replace(':', "-").to_uppercase()), "virtualMachine": { "id": vm },
        })
        .to_string()
    }

    /// Answers to `az network nic show`.
    fn shown(&self) -> (String, Value) {
        let answers = json!([
            { "when": self.file, "out": self.printed(true, true) },
            { "out": self.printed(false, true) },
        ]);
        (self.show(), answers)
    }

    /// Answers to a switch while the VM runs.
    fn live(&self) -> [(String, Value); 2] {
        [
            (self.update(true), json!([{ "create": self.file, "run": self.add() }])),
            (
                self.update(false),
                json!([{ "remove": self.file, "run": ["ip", "link", "del", self.function] }]),
            ),
        ]
    }
}

/// Answers to a switch of the NIC `n` while the VM runs.
pub fn live() -> [(String, Value); 2] {
    N.live()
}

/// Answers to a switch that needs the VM stopped.
fn stopped() -> [(String, Value); 5] {
    let refused = json!({ "err": "ERROR: (NicInUse) not while the VM runs\n", "code": 1 });
    let [on, off] = live().map(|(command, answer)| {
        let mut made = answer[0].clone();
        made["when"] = json!("stopped");
        (command, json!([made, refused]))
    });
    [
        on,
        off,
        ("vm show --resource-group g --name vm1".to_owned(), json!([{ "out": "{}" }])),
        ("vm deallocate --resource-group g --name vm1".to_owned(), json!([{ "create": "stopped" }])),
        (
            "vm start --resource-group g --name vm1".to_owned(),
            json!([{ "when": "stopped", "remove": "stopped" }, {}]),
        ),
    ]
}

/// Answers for the VM `vm1`, which Azure puts into a proximity placement group and takes out of it only while it is stopped.
pub fn placement() -> [(String, Value); 6] {
    let vm = |command: &str| format!("vm {command} --resource-group g --name vm1");
    let group = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/proximityPlacementGroups/near";
    let near = json!({ "proximityPlacementGroup": { "id": group } }).to_string();
    let refused = json!({ "err": "ERROR: (OperationNotAllowed) the VM runs\n", "code": 1 });
    let update = |change: &str, option: &str| {
        (format!("{} {option}", vm("update")), json!([{ "when": "stopped", change: "near" }, refused]))
    };
    [
        (vm("show"), json!([{ "when": "near", "out": near }, { "out": "{}" }])),
        (vm("deallocate"), json!([{ "create": "stopped" }])),
        (vm("start"), json!([{ "when": "stopped", "remove": "stopped" }, {}])),
        (
            "ppg show --resource-group g --name near".to_owned(),
            json!([{ "out": json!({ "id": group }).to_string() }]),
        ),
        update("create", &format!("--ppg {group}")),
        update("remove", "--remove proximityPlacementGroup"),
    ]
}

/// A treatment that switches the NIC.
pub fn switch(on: bool) -> String {
    format!("{{ azure-nic = \"n\", resource-group = \"g\", accelerated = {on}, on = \"client\" }}")
}

impl Scene {
    pub fn new(
        answers: impl IntoIterator<Item = (String, Value)>,
        treatments: [&str; 2],
        duration: &str,
    ) -> Self {
        let arm = |name: &str, treatments: &str| {
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{treatments}]\n"
            )
        };
        let design = "seed = 5\nblocks_min = 2\nblocks_max = 2";
        let arms = format!("{}{}", arm("off", treatments[0]), arm("on", treatments[1]));
        Self::of(answers, &["a", "b"], &arms, (duration, design))
    }

    fn of(
        answers: impl IntoIterator<Item = (String, Value)>,
        hosts: &[&str],
        arms: &str,
        (duration, design): (&str, &str),
    ) -> Self {
        let bench = Bench::new();
        fs::create_dir(bench.path().join("bin")).unwrap();
        symlink(fake_az(), bench.path().join("bin/az")).unwrap();
        let answers: serde_json::Map<String, Value> = answers.into_iter().chain([N.shown()]).collect();
        fs::write(bench.path().join("answers.json"), Value::Object(answers).to_string()).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_netduel"));
        let path = format!("PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", program.parent().unwrap().display());
        let host =
            format!("launch = \"command\"\naddresses = [\"127.0.0.1\"]\ncommand = [\"env\", \"{path}\"]\n");
        let hosts: Vec<String> = hosts.iter().map(|name| format!("[hosts.{name}]\n{host}")).collect();
        let hosts = hosts.concat();
        let plan = bench.plan(&format!(
            "name = \"toggle\"\nquestion = \"q?\"\n{hosts}{arms}[[workloads]]\nname = \"w\"\n\
             type = \"tcp-rr\"\nduration = \"{duration}\"\nwarmup = \"0 s\"\n[design]\n{design}\n"
        ));
        Self { bench, plan }
    }

    /// With arms that switch accelerated networking off and on.
    fn toggle(answers: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self::new(answers, [&switch(false), &switch(true)], "100 ms")
    }

    /// Replaces the answers to the commands that begin with these words.
    pub fn answer(&self, start: &str, answer: Value) {
        let path = self.bench.path().join("answers.json");
        let mut answers: serde_json::Map<String, Value> =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        answers.insert(start.to_owned(), answer);
        fs::write(path, Value::Object(answers).to_string()).unwrap();
    }

    pub fn netduel(&self, options: &[&str]) -> Command {
        let plan = self.plan.display().to_string();
        self.command(&[&["run", plan.as_str()][..], options].concat())
    }

    /// The program with these arguments and `az`.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bench.netduel(words);
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.bench.path().join("bin").display());
        command.env("PATH", path).env("NETDUEL_FAKE_AZ", self.bench.path());
        command
    }

    pub fn run(&self, options: &[&str]) -> Finished {
        Finished::from(self.netduel(options).output().unwrap())
    }

    pub fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.bench.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs the plan, whose change is refused. Returns the error, which the page of errors has.
    #[track_caller]
    pub fn refused(&self, options: &[&str]) -> String {
        let printed = self.run(options).expect_code(12).stderr;
        // The name of the run comes before it.
        let (_, error) = error_line(&printed).split_once("failed to change").unwrap();
        let error = format!("failed to change{error}");
        assert_on_page(&error);
        error
    }

    pub fn count(&self, start: &str) -> usize {
        self.calls().iter().filter(|call| call.starts_with(start)).count()
    }

    pub fn has(&self, file: &str) -> bool {
        self.bench.path().join(file).exists()
    }
}

#[test]
fn nic_is_switched_for_its_arm_and_returns_at_the_end_of_the_run() {
    in_namespace("nic_is_switched_for_its_arm_and_returns_at_the_end_of_the_run", || {
        let scene = Scene::toggle(live());
        let run = scene.run(&[]).expect_code(0);
        assert!(run.stderr.contains("changing accelerated networking of n on (a)"), "{}", run.stderr);
        let (on, off) = (scene.count(&format!("{UPDATE} true")), scene.count(&format!("{UPDATE} false")));
        // Two blocks of two trials; the last state is undone.
        assert!((1..=2).contains(&on) && on == off, "{:?}", scene.calls());
        assert!(!scene.has("on"));
        assert_eq!(scene.count("vm "), 0, "no VM was stopped: {:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn crossover_switches_each_nic_once_after_half_of_the_blocks() {
    in_namespace("crossover_switches_each_nic_once_after_half_of_the_blocks", || {
        const M: Nic = Nic { name: "m", mac: "02:00:00:00:00:08", file: "on-m", function: "vf1" };
        let must =
            |words: &[String]| assert!(Command::new(&words[0]).args(&words[1..]).status().unwrap().success());
        must(
            &["ip", "link", "add", "vb", "address", M.mac, "type", "veth", "peer", "name", "vb-peer"]
                .map(str::to_owned),
        );
        must(&M.add());
        let arm = |name: &str, [client, server]: [&str; 2], nic: &str, on: bool| {
            let treatment = switch(on).replace("\"n\"", &format!("\"{nic}\""));
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"{client}\"\nserver = \"{server}\"\ntreatments = [{treatment}]\n"
            )
        };
        let arms = arm("off", ["a", "b"], "n", false) + &arm("on", ["c", "d"], "m", true);
        let answers = live().into_iter().chain(M.live()).chain([M.shown()]);
        let design = "seed = 5\ncrossover = true\nblocks_max = 4";
        let scene = Scene::of(answers, &["a", "b", "c", "d"], &arms, ("100 ms", design));
        // As in a bed of two pairs: the second one has accelerated networking.
        fs::write(scene.bench.path().join(M.file), "").unwrap();
        let run = scene.run(&[]);
        assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
        let switched: Vec<String> =
            scene.calls().into_iter().filter(|call| call.starts_with("network nic update")).collect();
        let [half, end] = [&switched[..2], &switched[2..]].map(|calls| {
            let mut calls = calls.to_vec();
            calls.sort();
            calls
        });
        assert_eq!(half, [M.update(false), N.update(true)], "{switched:?}");
        assert_eq!(end, [M.update(true), N.update(false)], "{switched:?}");
        assert!(!scene.has(N.file) && scene.has(M.file));
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn nic_is_switched_and_returned_in_the_subscription_that_has_it() {
    in_namespace("nic_is_switched_and_returned_in_the_subscription_that_has_it", || {
        let place = "--resource-group g --name n --subscription s-1";
        let moved = |command: String| command.replace("--resource-group g --name n", place);
        let scene = Scene::toggle(live().map(|(command, made)| (moved(command), made)));
        let shown = |accelerated: bool| {
            let mut nic: Value = serde_json::from_str(&N.printed(accelerated, true)).unwrap();
            nic["id"] = json!("/subscriptions/s-1/resourceGroups/g/providers/x/networkInterfaces/n");
            nic.to_string()
        };
        scene.answer(&N.show(), json!([{ "when": N.file, "out": shown(true) }, { "out": shown(false) }]));
        scene.run(&[]).expect_code(0);
        let update = format!("network nic update {place} --accelerated-networking");
        let [on, off] = [true, false].map(|on| scene.count(&format!("{update} {on}")));
        assert!(on > 0 && on == off && !scene.has("on"), "{:?}", scene.calls());
    });
}

#[test]
fn vm_is_stopped_only_with_permission_and_runs_again() {
    in_namespace("vm_is_stopped_only_with_permission_and_runs_again", || {
        let scene = Scene::toggle(stopped());
        let error = scene.refused(&[]);
        assert!(error.contains("not while the VM runs") && error.contains("--allow-deallocate"), "{error}");
        assert_eq!(scene.count("vm "), 0, "{:?}", scene.calls());
        scene.run(&["--allow-deallocate"]).expect_code(0);
        assert!(scene.count("vm deallocate") >= 2, "{:?}", scene.calls());
        assert!(!scene.has("on") && !scene.has("stopped"), "{:?}", scene.calls());
        // Each stop is followed by a start before anything else of the VM.
        let vm: Vec<String> = scene.calls().into_iter().filter(|call| call.starts_with("vm ")).collect();
        let stop = |call: &String| call.starts_with("vm deallocate");
        assert!(vm.windows(2).all(|two| !(stop(&two[0]) && stop(&two[1]))), "{vm:?}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn vm_of_an_availability_set_is_not_stopped() {
    in_namespace("vm_of_an_availability_set_is_not_stopped", || {
        let scene = Scene::toggle(stopped());
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/availabilitySets/together";
        let shown = json!({ "availabilitySet": { "id": id } }).to_string();
        scene.answer("vm show --resource-group g --name vm1", json!([{ "out": shown }]));
        let error = scene.refused(&["--allow-deallocate"]);
        assert!(error.contains("vm1 is in the availability set together"), "{error}");
        assert_eq!(scene.count("vm deallocate"), 0, "{:?}", scene.calls());
        assert!(!scene.has("on"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn placement_is_made_with_the_vm_stopped_and_returns() {
    in_namespace("placement_is_made_with_the_vm_stopped_and_returns", || {
        let scene = Scene::new(placement(), ["", NEAR], "100 ms");
        let run = scene.run(&["--allow-deallocate"]).expect_code(0);
        assert!(run.stderr.contains("changing vm1 in the proximity group near (a)"), "{}", run.stderr);
        let update = "vm update --resource-group g --name vm1";
        let into = scene.count(&format!("{update} --ppg /"));
        let out = scene.count(&format!("{update} --remove proximityPlacementGroup"));
        // Two blocks of two trials; the last state is undone.
        assert!((1..=2).contains(&into) && into == out, "{:?}", scene.calls());
        assert_eq!(scene.count("vm deallocate"), into + out, "{:?}", scene.calls());
        assert!(!scene.has("near") && !scene.has("stopped"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn run_that_changes_resources_of_azure_warns_of_a_forgotten_bed() {
    in_namespace("run_that_changes_resources_of_azure_warns_of_a_forgotten_bed", || {
        let tags = json!({ "netduel": "x", "netduel-created": "1700000000", "netduel-shutdown": "19:00" });
        let azure = [
            ("version", json!({ "azure-cli": "2.91.0" })),
            ("account show", json!({ "id": "22222222-2222-2222-2222-222222222222", "name": "fake" })),
            ("group list", json!([{ "name": "netduel-x", "location": "westeurope", "tags": tags }])),
        ];
        let azure = azure.map(|(command, document)| (command.to_owned(), prints(&document)));
        let scene = Scene::toggle(live().into_iter().chain(azure));
        let run = scene.run(&[]).expect_code(0);
        let warning = "warning: the bed x is older than its shutdown at 19:00 UTC";
        assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.stderr);
        let looking = "looking for beds on Azure that are older than their shutdown\n";
        let (before, _) = run.stderr.split_once(warning).unwrap();
        assert!(before.contains(looking), "{}", run.stderr);
        // The warning is no progress.
        let quiet = scene.run(&["--quiet"]).expect_code(0).stderr;
        assert!(!quiet.contains(looking) && quiet.contains(warning), "{quiet}");
        // The run itself has no use for a newer `az`.
        scene.answer("version", prints(&json!({ "azure-cli": "2.1.0" })));
        let old = scene.run(&[]).expect_code(0).stderr;
        assert!(!old.contains("warning: the bed") && !old.contains("az upgrade"), "{old}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn switch_that_no_guest_can_verify_is_no_success() {
    in_namespace("switch_that_no_guest_can_verify_is_no_success", || {
        let scene = Scene::toggle(live());
        scene.answer(
            &N.show(),
            json!([{ "when": N.file, "out": N.printed(true, false) }, { "out": N.printed(false, false) }]),
        );
        let error = scene.refused(&[]);
        assert!(error.contains("Azure names no MAC address of n") && !scene.has("on"), "{error}");
        // Nor does a stop of its VM give it one.
        for (command, answer) in stopped() {
            scene.answer(&command, answer);
        }
        let error = scene.refused(&["--allow-deallocate"]);
        assert!(error.contains("although its machine was stopped"), "{error}");
        assert!(!scene.has("on") && !scene.has("stopped"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn switch_that_azure_accepts_and_does_not_make_needs_the_vm_stopped() {
    in_namespace("switch_that_azure_accepts_and_does_not_make_needs_the_vm_stopped", || {
        let scene = Scene::toggle(stopped());
        // While the VM runs, Azure says yes and the NIC stays as it is.
        for on in [true, false] {
            let [for_on, for_off] = live().map(|(_, answer)| answer[0].clone());
            let mut made = if on { for_on } else { for_off };
            made["when"] = json!("stopped");
            scene.answer(&N.update(on), json!([made, {}]));
        }
        scene.refused(&[]);
        assert_eq!(scene.count("vm "), 0, "{:?}", scene.calls());
        scene.run(&["--allow-deallocate"]).expect_code(0);
        assert!(scene.count("vm deallocate") >= 2, "{:?}", scene.calls());
        assert!(!scene.has("on") && !scene.has("stopped"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn switch_that_azure_does_not_make_with_the_vm_stopped_ends_the_run() {
    in_namespace("switch_that_azure_does_not_make_with_the_vm_stopped_ends_the_run", || {
        let scene = Scene::toggle(stopped());
        scene.answer(&N.update(true), json!([{}]));
        let error = scene.refused(&["--allow-deallocate"]);
        assert!(error.contains("although its machine was stopped"), "{error}");
        assert!(!error.contains("--allow-deallocate") && !error.contains("stop the VM"), "{error}");
        assert_eq!(scene.count("vm deallocate"), 1, "{:?}", scene.calls());
        assert!(!scene.has("on") && !scene.has("stopped"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn nic_that_is_not_attached_has_no_vm_to_stop() {
    in_namespace("nic_that_is_not_attached_has_no_vm_to_stop", || {
        let scene = Scene::toggle(stopped());
        let spare = json!({ "name": "n", "enableAcceleratedNetworking": false, "virtualMachine": null });
        scene.answer(&N.show(), json!([{ "out": spare.to_string() }]));
        scene.refused(&["--allow-deallocate"]);
        assert_eq!(scene.count("vm "), 0, "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn mac_address_of_a_nic_is_read_when_its_vm_runs_again() {
    in_namespace("mac_address_of_a_nic_is_read_when_its_vm_runs_again", || {
        let scene = Scene::toggle(stopped());
        scene.answer(
            &N.show(),
            json!([
                { "when": [N.file, "stopped"], "out": N.printed(true, false) },
                { "when": N.file, "out": N.printed(true, true) },
                { "when": "stopped", "out": N.printed(false, false) },
                { "out": N.printed(false, true) },
            ]),
        );
        scene.run(&["--allow-deallocate"]).expect_code(0);
        let calls = scene.calls();
        let start = calls.iter().position(|call| call.starts_with("vm start")).unwrap();
        assert!(calls[start + 1].starts_with("network nic show"), "{calls:?}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn plan_that_stops_a_vm_is_refused_without_permission_before_anything_is_asked() {
    let scene = Scene::new(live(), ["", NEAR], "100 ms");
    let error = scene.run(&[]).expect_code(2).stderr;
    assert!(error.contains("vm1 in the proximity group near stops the VM"), "{error}");
    assert!(error.contains("--allow-deallocate"), "{error}");
    assert_on_page(error_line(&error));
    assert_eq!(scene.calls(), Vec::<String>::new());
    let nowhere = "{ azure-nic = \"n\", accelerated = true, on = \"client\" }";
    let scene = Scene::new(live(), ["", nowhere], "100 ms");
    let error = scene.run(&[]).expect_code(2).stderr;
    let folder = format!("{}/", scene.bench.path().display());
    assert_on_page(&error_line(&error).replace(&folder, ""));
    assert_eq!(scene.calls(), Vec::<String>::new());
}
