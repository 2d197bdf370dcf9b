//! `netduel azure run` with a program in place of `az`. The VMs are network namespaces with an sshd each: connections, agents, traffic and the proof
//! of its path are real.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::azure::{answers, fake_az, prints};
use crate::azure_errors::assert_on_page;
use crate::support::{Bench, Finished, UnderWay, VOLUME};
use crate::vms::{
    Vms, assert_names, move_to_physical_host, program, with_room_for_vms, with_room_for_vms_in_subnets,
};

/// A folder with `az`, a bed, a plan, and sshds where the test needs them.
pub struct Scene {
    /// They end before their folder is removed.
    vms: Option<Vms>,
    pub bench: Bench,
    answers: Map<String, Value>,
}

/// Runs a test with the VMs; says so where it cannot run.
#[track_caller]
pub fn with_vms(test: &str, body: impl FnOnce(&mut Scene)) {
    with_room_for_vms(test, || with_scene(body));
}

/// The same with two subnets for each network, and a router between them.
#[track_caller]
pub fn with_vms_in_subnets(test: &str, body: impl FnOnce(&mut Scene)) {
    with_room_for_vms_in_subnets(test, || with_scene(body));
}

fn with_scene(body: impl FnOnce(&mut Scene)) {
    let mut scene = Scene::new();
    scene.vms = Some(Vms::start(&scene.bench));
    body(&mut scene);
}

/// A VM and its NICs as Azure claims them.
fn machine(number: u8, state: &str) -> Value {
    let nic = |name: &str| json!({ "id": format!("/x/networkInterfaces/vm{number}-{name}") });
    json!({
        "name": format!("vm{number}"), "location": "westeurope", "zones": null, "vmId": null, "powerState": state,
        "publicIps": format!("192.0.2.{}", number + 6), "hardwareProfile": { "vmSize": "Standard_D4s_v3" },
        "osProfile": { "adminUsername": "root" }, "networkProfile": { "networkInterfaces": [nic("synthetic"), nic("accelerated")] },
    })
}

/// Both VMs in a state.
pub fn machines(state: &str) -> Value {
    json!([machine(1, state), machine(2, state)])
}

fn interface(number: u8, index: u8, name: &str, is_accelerated: bool) -> Value {
    let public = (index == 0).then(|| json!({ "id": format!("/x/publicIPAddresses/vm{number}-address") }));
    json!({
        "name": format!("vm{number}-{name}"), "macAddress": format!("00-0D-3A-00-0{index}-0{number}"),
        "enableAcceleratedNetworking": is_accelerated, "virtualMachine": { "id": format!("/x/virtualMachines/vm{number}") },
        "ipConfigurations": [{
            "privateIPAddress": format!("10.77.{index}.{}", number + 3), "publicIPAddress": public, "subnet": { "id": format!("/x/subnets/{name}") },
        }],
    })
}

/// The NICs of both VMs. Nothing here has a virtual function: with `is_accelerated` Azure and the guests contradict each other.
pub fn interfaces(is_accelerated: bool) -> Value {
    let of = |number: u8| {
        [interface(number, 0, "synthetic", false), interface(number, 1, "accelerated", is_accelerated)]
    };
    json!([of(1), of(2)].concat())
}

/// A plan that compares both networks; a workload follows.
pub const PLAN: &str = r#"
name = "networks"
question = "Which network is faster?"
[hosts.client]
bed = "vm1"
[hosts.server]
bed = "vm2"
[[arms]]
name = "synthetic"
client = "client"
server = "server"
network = "synthetic"
[[arms]]
name = "accelerated"
client = "client"
server = "server"
network = "accelerated"
[design]
blocks_min = 2
blocks_max = 2
"#;

#[test]
fn plan_with_programs_is_refused_by_an_option_before_azure_is_asked() {
    let scene = Scene::new();
    let network = "network = \"accelerated\"";
    let command = "treatments = [{ command = [\"true\"], undo = [\"true\"], on = \"client\" }]";
    let plan = PLAN.replacen(network, &format!("{network}\n{command}"), 1);
    scene.bench.plan(&format!("{plan}{VOLUME}"));
    let refused = scene.run(&["azure", "run", "plan.toml", "--no-commands"]).expect_code(2).stderr;
    assert!(refused.contains("runs `true`") && refused.contains("leave out --no-commands"), "{refused}");
    assert_eq!(scene.calls(), "");
}

impl Scene {
    pub fn new() -> Self {
        let mut scene = Self { vms: None, bench: Bench::new(), answers: Map::new() };
        for folder in ["bin", "tmp"] {
            fs::create_dir(scene.bench.path().join(folder)).unwrap();
        }
        symlink(fake_az(), scene.at("bin/az")).unwrap();
        for (start, answer) in answers() {
            scene.answer(start, answer);
        }
        scene.answer("vm list --resource-group", prints(&machines("VM running")));
        scene.answer("network nic list", prints(&interfaces(false)));
        fs::write(scene.at("key.pub"), "ssh-ed25519 AAAAC3Nz me@here\n").unwrap();
        let bed = format!(
            "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\nssh_key = {:?}\n",
            scene.at("key.pub")
        );
        fs::write(scene.at("x.toml"), bed).unwrap();
        scene.bench.plan(&format!("{PLAN}{VOLUME}"));
        scene
    }

    pub fn at(&self, name: &str) -> String {
        self.bench.path().join(name).display().to_string()
    }

    pub fn answer(&mut self, start: &str, answer: Value) {
        self.answers.insert(start.to_owned(), answer);
        fs::write(self.at("answers.json"), Value::Object(self.answers.clone()).to_string()).unwrap();
    }

    pub fn netduel(&self, words: &[&str]) -> Command {
        let mut command = self.bench.netduel(words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.at("bin"))).env("NETDUEL_FAKE_AZ", self.bench.path());
        command.env("TMPDIR", self.at("tmp")).env_remove("XDG_RUNTIME_DIR");
        command
    }

    pub fn run(&self, words: &[&str]) -> Finished {
        Finished::from(self.netduel(words).output().unwrap())
    }

    /// Writes a plan with an arm in a network that the bed does not have. Its name is that of the file.
    pub fn misfit(&self, file: &str) {
        let name = format!("\"{}\"", file.trim_end_matches(".toml"));
        let plan = PLAN.replace("\"networks\"", &name).replace("network = \"accelerated\"", "");
        fs::write(self.at(file), plan + VOLUME).unwrap();
    }

    pub fn calls(&self) -> String {
        fs::read_to_string(self.at("calls")).unwrap_or_default()
    }

    /// The bed in the header of the stored run.
    fn stored_bed(&self) -> Value {
        let files = fs::read_dir(self.bench.store()).unwrap().flatten().map(|entry| entry.path());
        let run =
            files.into_iter().find(|path| path.extension().is_some_and(|one| one == "netduel")).unwrap();
        let text = fs::read_to_string(run).unwrap();
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        find(&head, "bed").expect("the header has the bed").clone()
    }

    /// Creates the bed, as a user would.
    pub fn up(&self) {
        self.run(&["azure", "up", "x.toml", "--ssh-from", "192.0.2.1/32"]).expect_code(0);
    }
}

#[test]
fn bed_is_created_carries_a_plan_over_both_networks_and_is_deleted() {
    with_vms("azure_run::bed_is_created_carries_a_plan_over_both_networks_and_is_deleted", |scene| {
        scene.up();
        // Packages are being installed when the run begins.
        let installing = scene.at("installing");
        fs::write(&installing, "").unwrap();
        program(
            &scene.bench,
            "vm-bin/cloud-init",
            &format!(
                "[ \"$*\" = 'status --wait' ] || exit 9\n[ ! -e {installing} ] && echo 'status: done' && exit 0\nrm {installing}\nexit 124"
            ),
        );
        let run = scene.run(&["azure", "run", "plan.toml", "--out", "report", "--json"]).expect_code(0);
        assert_names(
            &run.stderr,
            &[
                "client: cloud-init still runs after",
                "arm synthetic: network synthetic of the bed x, server 10.77.0.5; must use eth0 at both ends",
                "arm accelerated: network accelerated of the bed x, server 10.77.1.5; must use eth1 at both ends",
            ],
        );
        let document = run.json();
        assert_eq!(
            (&document["trials_valid"], &document["trials_excluded"]),
            (&4.into(), &0.into()),
            "{document}"
        );
        assert_eq!(document["plan"]["hosts"][1]["vm"], "vm2");
        assert_eq!(document["plan"]["arms"][1]["network"], "accelerated");
        assert_eq!(document["plan"]["arms"][1]["expected_interface_server"], "eth1");
        assert_eq!(document["plan"]["hosts"][0]["launch"]["user"], "root");
        let kinds: Vec<&Value> =
            document["warnings"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
        assert!(
            !kinds.contains(&&"bed-disagrees".into()) && !kinds.contains(&&"arm-not-proven".into()),
            "{kinds:?}"
        );
        assert!(
            fs::read_to_string(scene.at("report/report.html")).unwrap().contains("Which network is faster?")
        );
        // The host keys are the bed's, not the user's.
        let keys = scene.at("state/netduel/azure/x/known_hosts");
        assert_names(&fs::read_to_string(&keys).unwrap(), &["192.0.2.7", "192.0.2.8"]);
        // What Azure claimed and what the guests showed.
        let bed = scene.stored_bed();
        assert_eq!((&bed["name"], &bed["vms"][0]["name"]), (&"x".into(), &"vm1".into()), "{bed}");
        assert_eq!(bed["vms"][1]["nics"][1]["seen"]["interface"], "eth1");

        scene.run(&["azure", "down", "x", "--yes"]).expect_code(0);
        assert!(!Path::new(&keys).exists());
        scene.bench.assert_nothing_left();
    });
}

/// The first value of a key with an object, at any depth.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map
            .get(key)
            .filter(|inner| inner.is_object())
            .or_else(|| map.values().find_map(|inner| find(inner, key))),
        Value::Array(list) => list.iter().find_map(|inner| find(inner, key)),
        _ => None,
    }
}

#[test]
fn contradiction_of_an_arm_stops_the_run_unless_it_is_allowed() {
    with_vms("azure_run::contradiction_of_an_arm_stops_the_run_unless_it_is_allowed", |scene| {
        scene.up();
        scene.answer("network nic list", prints(&interfaces(true)));
        let refused = scene.run(&["azure", "run", "plan.toml"]).expect_code(12).stderr;
        assert_names(
            &refused,
            &[
                "problem at vm1: vm1-accelerated has no virtual function, and Azure claims that it is accelerated",
                "accelerated networking of vm1-accelerated is on; eth1 (driver veth) has no virtual function",
                "az vm deallocate --resource-group netduel-x --name vm1",
                "vm2: vm2-accelerated has no virtual function",
                "--allow-disagreement",
            ],
        );
        let shown = refused.find("problem at vm1").map(|start| &refused[start..]);
        assert_on_page(shown.unwrap_or(&refused));
        let paid = scene.run(&["azure", "run", "plan.toml", "--subscription", "paid"]).expect_code(12).stderr;
        let of = "--resource-group netduel-x --name vm1 --subscription paid";
        assert_names(&paid, &[format!("az vm deallocate {of} && az vm start {of}").as_str()]);
        assert!(
            !scene.bench.store().exists()
                || fs::read_dir(scene.bench.store()).unwrap().flatten().next().is_none(),
            "{refused}"
        );
        let run = scene.run(&["azure", "run", "plan.toml", "--allow-disagreement", "--json"]).expect_code(0);
        let document = run.json();
        let warnings = document["warnings"].as_array().unwrap();
        let of_bed: Vec<&Value> = warnings.iter().filter(|one| one["kind"] == "bed-disagrees").collect();
        assert_eq!(of_bed.iter().map(|one| &one["host"]).collect::<Vec<_>>(), ["client", "server"]);
        let findings = document["hosts"][0]["findings"].to_string();
        assert!(findings.contains("bed-no-vf"), "{findings}");
        assert_eq!(document["trials_valid"], 4);
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn treatment_changes_the_nic_of_its_arm_and_no_other() {
    with_vms("azure_run::treatment_changes_the_nic_of_its_arm_and_no_other", |scene| {
        scene.up();
        let plan = |interface: &str| {
            let network = "network = \"synthetic\"\n";
            let treatment = format!("treatments = [{{ offload = \"tso\", value = \"off\"{interface} }}]\n");
            PLAN.replace(network, &format!("{network}{treatment}")) + VOLUME
        };
        // With two NICs eth1 is the accelerated one.
        scene.bench.plan(&plan(", interface = \"eth1\""));
        let refused = scene.run(&["azure", "run", "plan.toml"]).expect_code(2).stderr;
        assert_names(
            &refused,
            &[
                "plan.toml does not fit the bed: the arm synthetic changes eth1 of the VM vm1",
                "its traffic uses eth0 there, in the network synthetic; leave `interface` out",
                "eth1 of the VM vm2",
            ],
        );
        scene.bench.plan(&plan(""));
        let document = scene.run(&["azure", "run", "plan.toml", "--json"]).expect_code(0).json();
        assert_eq!(document["trials_valid"], 4, "{document}");
        let treatments = document["plan"]["arms"][0]["treatments"].as_array().unwrap();
        assert_eq!(treatments.len(), 1, "{treatments:?}");
        assert_eq!(treatments[0]["target"], "tso of eth0");
        scene.bench.assert_nothing_left();
    });
}

/// The NIC `vm1-synthetic` in its subscription, without which `az` has no answer.
const SWITCHED: &str =
    "--resource-group netduel-x --name vm1-synthetic --subscription 22222222-2222-2222-2222-222222222222";

/// It as `az network nic show` prints it.
fn switched(is_accelerated: bool) -> String {
    let vm = "/subscriptions/s/resourceGroups/netduel-x/providers/Microsoft.Compute/virtualMachines/vm1";
    json!({
        "name": "vm1-synthetic", "macAddress": "00-0D-3A-00-00-01", "enableAcceleratedNetworking": is_accelerated,
        "virtualMachine": { "id": vm },
    })
    .to_string()
}

/// The command that switches it.
pub fn switch(is_on: bool) -> String {
    format!("network nic update {SWITCHED} --accelerated-networking {is_on}")
}

impl Scene {
    /// Writes a plan whose arms switch the NIC, and which names neither its group nor its subscription.
    pub fn switching_plan(&mut self, blocks: u32) {
        let add = "ip -n vm1 link add vf1 address 00:0d:3a:00:00:01 type veth peer name vf1-peer";
        let words = |command: &str| command.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let shown = json!([{ "when": "on", "out": switched(true) }, { "out": switched(false) }]);
        self.answer(&format!("network nic show {SWITCHED}"), shown);
        self.answer(&switch(true), json!([{ "create": "on", "run": words(add) }]));
        self.answer(&switch(false), json!([{ "remove": "on", "run": words("ip -n vm1 link del vf1") }]));
        let arm = |on: bool| {
            let switch = format!("{{ azure-nic = \"vm1-synthetic\", accelerated = {on}, on = \"client\" }}");
            format!("network = \"synthetic\"\ntreatments = [{switch}]\n")
        };
        let plan = PLAN.replace("network = \"synthetic\"\n", &arm(false));
        let plan = plan.replace("network = \"accelerated\"\n", &arm(true));
        let plan = plan.replace("= 2", &format!("= {blocks}"));
        self.bench.plan(&format!("{plan}{VOLUME}"));
    }

    /// Switches the NIC on, as a run does.
    pub fn switch_on(&self) {
        let (words, mut az) = (switch(true), Command::new(self.at("bin/az")));
        let status = az.args(words.split(' ')).env("NETDUEL_FAKE_AZ", self.bench.path()).status();
        assert!(status.unwrap().success(), "{az:?}");
    }
}

#[test]
fn nic_of_the_bed_is_switched_in_its_group_and_subscription_and_returns() {
    with_vms("azure_run::nic_of_the_bed_is_switched_in_its_group_and_subscription_and_returns", |scene| {
        scene.up();
        scene.switching_plan(2);
        let run = scene.run(&["azure", "run", "plan.toml", "--json"]).expect_code(0);
        assert_names(&run.stderr, &["changing accelerated networking of vm1-synthetic on (client)"]);
        assert_eq!(run.stderr.matches("warning: the bed x is older than").count(), 1, "{}", run.stderr);
        let document = run.json();
        assert_eq!(document["trials_valid"], 4, "{document}");
        let calls = scene.calls();
        let count = |start: &str| calls.lines().filter(|call| call.starts_with(start)).count();
        let (on, off) = (count(&switch(true)), count(&switch(false)));
        // Two blocks of two trials; the last state is undone.
        assert!((1..=2).contains(&on) && on == off, "{calls}");
        assert!(!Path::new(&scene.at("on")).exists() && count("vm deallocate") == 0, "{calls}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn vm_that_moves_between_blocks_is_a_warning_of_the_run() {
    with_vms("azure_run::vm_that_moves_between_blocks_is_a_warning_of_the_run", |scene| {
        scene.up();
        move_to_physical_host("AMS01");
        let plan = PLAN.replace("= 2", "= 6");
        scene.bench.plan(&format!("{plan}{VOLUME}"));
        let mut run = UnderWay::start(scene.netduel(&["azure", "run", "plan.toml"]));
        // The trials after it take longer than this test may wait for a core.
        run.wait_for(" 1/12");
        move_to_physical_host("AMS02");
        run.finish().expect_code(0);
        let document = scene.run(&["report", "last", "--format", "json"]).expect_code(0).json();
        let warnings = document["warnings"].as_array().unwrap();
        let moved: Vec<String> = warnings
            .iter()
            .filter(|one| one["kind"] == "placement-changed")
            .map(|one| one["text"].to_string())
            .collect();
        assert!(!moved.is_empty(), "{warnings:?}");
        assert_names(
            &moved.concat(),
            &["host client", "host server", "moved from physical host AMS01 to AMS02"],
        );
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn vm_whose_cloud_init_failed_is_a_warning() {
    with_vms("azure_run::vm_whose_cloud_init_failed_is_a_warning", |scene| {
        scene.up();
        program(&scene.bench, "vm-bin/cloud-init", "echo 'status: error'\nexit 1");
        let run = scene.run(&["azure", "run", "plan.toml"]).expect_code(0).stderr;
        let is_warning = |line: &&str| line.starts_with("warning: client: cloud-init");
        assert_on_page(run.lines().find(is_warning).unwrap_or(&run));
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn vm_that_ssh_does_not_reach_ends_the_run_with_what_opens_it() {
    with_room_for_vms("azure_run::vm_that_ssh_does_not_reach_ends_the_run_with_what_opens_it", || {
        // No sshd listens in these VMs.
        let scene = Scene::new();
        fs::write(scene.at("exists"), "").unwrap();
        let error = scene.run(&["azure", "run", "plan.toml"]).expect_code(3).stderr;
        let remedy = error.find("the bed x accepts ssh").map_or(error.as_str(), |start| &error[start..]);
        assert_on_page(remedy);
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn stopped_vms_are_started_only_on_request() {
    with_vms("azure_run::stopped_vms_are_started_only_on_request", |scene| {
        scene.up();
        fs::write(scene.at("stopped"), "").unwrap();
        let out = |state: &str| machines(state).to_string();
        scene.answer(
            "vm list --resource-group",
            json!([{ "when": "stopped", "out": out("VM deallocated") }, { "out": out("VM running") }]),
        );
        scene.answer("vm start --resource-group netduel-x --name vm1 --no-wait", json!([{}]));
        scene.answer(
            "vm start --resource-group netduel-x --name vm2 --no-wait",
            json!([{ "remove": "stopped" }]),
        );
        let refused = scene.run(&["azure", "run", "plan.toml"]).expect_code(12).stderr;
        assert_names(&refused, &["vm1 is deallocated, vm2 is deallocated", "--start", "19:00 UTC"]);
        assert!(!scene.calls().contains("vm start"), "{}", scene.calls());
        let run = scene.run(&["azure", "run", "plan.toml", "--start"]).expect_code(0);
        assert_names(&run.stderr, &["starting vm1, vm2 of the bed x"]);
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn start_of_vms_that_exceeds_the_budget_of_the_bed_is_refused() {
    let mut scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    scene.answer("vm list --resource-group", prints(&machines("VM deallocated")));
    let tags = json!({ "netduel": "x", "netduel-price": "2 EUR", "netduel-budget": "40 EUR", "netduel-shutdown": "off" });
    let group = json!({ "name": "netduel-x", "location": "westeurope", "tags": tags });
    scene.answer("group show", prints(&group));
    let words = ["azure", "run", "plan.toml", "--bed", "x", "--start"];
    let error = scene.run(&words).expect_code(12).stderr;
    assert_names(
        &error,
        &[
            "failed to start the bed x: the bed costs 48.00 EUR a day",
            "its budget is 40.00 EUR",
            "netduel azure up",
        ],
    );
    assert!(!scene.calls().contains("vm start"), "{}", scene.calls());
}
