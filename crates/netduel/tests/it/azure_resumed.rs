//! `netduel run --resume` of a run on a bed, also of one that switches a NIC of Azure. As in `azure_run`, a program stands for `az`, and the VMs
//! are network namespaces.
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use netduel_model::plan::spec::Side;
use netduel_model::plan::{Treatment, TreatmentAction};
use netduel_store::{Store, bytes_of};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::azure::prints;
use crate::azure_errors::{assert_on_page, error_line};
use crate::azure_run::{PLAN, Scene, machines, switch, with_vms};
use crate::support::{UnderWay, VOLUME, signal};
use crate::vms::assert_names;

/// Both VMs, of which the first has this id.
fn with_id(id: &str) -> Value {
    let mut vms = machines("VM running");
    vms[0]["vmId"] = id.into();
    prints(&vms)
}

fn subscription(digit: &str, name: &str) -> Value {
    let id = [8, 4, 4, 4, 12].map(|count| digit.repeat(count)).join("-");
    prints(&json!({ "id": id, "name": name }))
}

#[test]
fn run_on_a_bed_is_resumed_only_in_the_subscription_that_has_its_vms() {
    let test = "azure_resumed::run_on_a_bed_is_resumed_only_in_the_subscription_that_has_its_vms";
    with_vms(test, |scene| {
        scene.up();
        scene.switching_plan(6);
        scene.answer("vm list --resource-group", with_id("00000000-0000-0000-0000-00000000000A"));
        // The guests have no such id.
        let words = ["azure", "run", "plan.toml", "--allow-disagreement"];
        let mut run = UnderWay::start(scene.netduel(&words));
        run.wait_for(" 1/12");
        signal(run.pid(), Signal::INT);
        run.finish().expect_code(130);

        let resume = ["run", "--resume", "last"];
        let calls = |scene: &Scene| scene.calls().matches("network nic show").count();
        let before = calls(scene);
        scene.answer("account show", subscription("3", "other"));
        fs::remove_file(scene.at("exists")).unwrap();
        let error = scene.run(&resume).expect_code(12).stderr;
        assert_names(
            &error,
            &["there is no bed x in the subscription other", "`az account set --subscription NAME` changes"],
        );
        assert_on_page(error_line(&error));
        // Another bed of this name.
        fs::write(scene.at("exists"), "").unwrap();
        scene.answer("vm list --resource-group", with_id("00000000-0000-0000-0000-00000000000B"));
        let error = scene.run(&resume).expect_code(12).stderr;
        assert_names(
            &error,
            &["the VM vm1 of the bed x is not the one with which the run began", "az account set"],
        );
        // The name of the run comes before it.
        let (_, why) = error_line(&error).split_once(": the VM").unwrap();
        assert_on_page(&format!("the VM{why}"));
        assert_eq!(calls(scene), before, "{}", scene.calls());

        scene.answer("account show", subscription("2", "fake"));
        scene.answer("vm list --resource-group", with_id("00000000-0000-0000-0000-00000000000A"));
        scene.run(&resume).expect_code(0);
        assert!(calls(scene) > before, "{}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

/// A run that switches a NIC, and was interrupted after its first trial.
fn interrupt_a_switching_run(scene: &mut Scene) {
    scene.switching_plan(6);
    let mut run = UnderWay::start(scene.netduel(&["azure", "run", "plan.toml"]));
    run.wait_for(" 1/12");
    signal(run.pid(), Signal::INT);
    run.finish().expect_code(130);
}

#[test]
fn run_file_that_is_replaced_while_the_bed_is_read_is_not_resumed() {
    let test = "azure_resumed::run_file_that_is_replaced_while_the_bed_is_read_is_not_resumed";
    with_vms(test, |scene| {
        scene.up();
        interrupt_a_switching_run(scene);

        let mut run = Store::at(scene.bench.store()).read("last").unwrap();
        let stored = scene.bench.store().join(format!("{}.netduel", run.header.id));
        let [ran, other] = ["ran", "other"].map(|name| scene.at(name));
        let words = |program: &str| vec![program.to_owned(), ran.clone()];
        let action = TreatmentAction::Command { command: words("touch"), undo: words("stat") };
        run.header.plan.arms.first_mut().unwrap().treatments.push(Treatment { action, on: Side::Client });
        fs::write(&other, bytes_of(&run).unwrap()).unwrap();
        let mut replaces = prints(&machines("VM running"));
        replaces[0]["run"] = json!(["cp", other, stored.display().to_string()]);
        scene.answer("vm list --resource-group", replaces);
        // The first reading has no command.
        let refused = scene.run(&["run", "--resume", "last", "--no-commands"]).expect_code(5).stderr;
        assert_names(&refused, &["another program changed its file at the same time"]);
        assert!(!Path::new(&ran).exists(), "the other plan was run");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn resumed_run_returns_a_nic_to_its_state_before_the_run_where_an_undo_was_lost() {
    let test = "azure_resumed::resumed_run_returns_a_nic_to_its_state_before_the_run_where_an_undo_was_lost";
    with_vms(test, |scene| {
        scene.up();
        interrupt_a_switching_run(scene);
        // As when the machine restarts before the guard has returned the NIC.
        scene.switch_on();
        let resumed = scene.run(&["run", "--resume", "last"]).expect_code(0).stderr;
        let part = "accelerated networking of vm1-synthetic on: an earlier part of the run left it so";
        assert_names(&resumed, &[part]);
        assert!(!Path::new(&scene.at("on")).exists(), "{}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

/// Leaves the NIC switched on, and the record of a run that was killed with its guard.
fn leave_switched_on(scene: &Scene) {
    scene.switch_on();
    let words = "/proc/self/exe azure-undo nic --resource-group netduel-x \
                 --subscription 22222222-2222-2222-2222-222222222222 --accelerated false vm1-synthetic";
    let undo: Vec<&str> = words.split(' ').collect();
    let what = ["accelerated networking of vm1-synthetic off"];
    let undo = json!({ "kind": "command", "command": what, "undo": undo, "mark": "none", "limit_s": 600 });
    let head = json!({ "journal": 1, "program": "netduel", "boot": "another", "namespace": 1, "made_ns": 1 });
    let keep = json!({ "keep": { "id": 1, "undo": undo, "running": false } });
    let folder = scene.at("state/netduel/undo");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let record = format!("{folder}/undo-coordinator-1");
    let mut record = OpenOptions::new().write(true).create_new(true).mode(0o600).open(record).unwrap();
    write!(record, "{head}\n{keep}\n").unwrap();
}

#[test]
fn nic_that_a_killed_run_left_is_returned_before_the_bed_is_read() {
    let test = "azure_resumed::nic_that_a_killed_run_left_is_returned_before_the_bed_is_read";
    with_vms(test, |scene| {
        scene.up();
        scene.switching_plan(2);
        leave_switched_on(scene);
        let earlier = scene.calls().len();
        let run = scene.run(&["azure", "run", "plan.toml"]).expect_code(0).stderr;
        let part = "restored what an earlier run left changed: `accelerated networking of vm1-synthetic off`";
        assert_names(&run, &[part]);
        let calls = scene.calls().split_off(earlier);
        let place = |start: &str| calls.lines().position(|call| call.starts_with(start));
        // The header of the run has the state that is read, to which a resumed run returns the NIC.
        let (returned, read) = (place(&switch(false)), place("network nic list"));
        assert!(returned.is_some() && returned < read, "{calls}");
        assert!(!Path::new(&scene.at("on")).exists(), "{calls}");
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn resumed_run_connects_to_no_vm_whose_host_key_is_unknown() {
    with_vms("azure_resumed::resumed_run_connects_to_no_vm_whose_host_key_is_unknown", |scene| {
        scene.up();
        scene.bench.plan(&format!("{}{VOLUME}", PLAN.replace("= 2", "= 6")));
        let mut run = UnderWay::start(scene.netduel(&["azure", "run", "plan.toml"]));
        run.wait_for(" 1/12");
        signal(run.pid(), Signal::INT);
        run.finish().expect_code(130);

        // As after `netduel azure down`, when a VM of another user may have the address.
        let (keys, kept) = (scene.at("state/netduel/azure/x/known_hosts"), scene.at("kept"));
        fs::rename(&keys, &kept).unwrap();
        let refused = scene.run(&["run", "--resume", "last"]).expect_code(3).stderr;
        assert_names(
            &refused,
            &["Host key verification failed", &keys, "begin a new run when the bed was deleted"],
        );
        assert!(!Path::new(&keys).exists(), "the key of a VM was accepted");

        fs::rename(&kept, &keys).unwrap();
        scene.run(&["run", "--resume", "last"]).expect_code(0);
        scene.bench.assert_nothing_left();
    });
}
