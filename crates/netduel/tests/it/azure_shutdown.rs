//! Azure in the way of treatments: the daily shutdown of a bed, other operations on a VM, and refusals that no stop of a VM cures. A program stands
//! for `az`.
use std::fs;

use serde_json::json;

use crate::azure_errors::{assert_on_page, error_line};
use crate::azure_run::{PLAN, Scene as BedScene};
use crate::azure_treatments::{NEAR, Scene, UPDATE, live, placement, switch, with_interface};
use crate::support::{Finished, VOLUME};
use crate::vms::{assert_names, with_room_for_vms};

/// Runs the command with which a guard returns a resource of the group `g`.
fn undo(scene: &Scene, words: &[&str]) -> Finished {
    let words = [&["azure-undo"][..], words, &["--resource-group", "g"]].concat();
    let mut command = scene.bench.netduel(words);
    command.env("PATH", scene.bench.path().join("bin")).env("NETDUEL_FAKE_AZ", scene.bench.path());
    Finished::from(command.output().unwrap())
}

/// The VM `vm1` in these states, each the name of a file.
fn vm(states: &[&str]) -> Scene {
    let scene = Scene::new(placement(), ["", NEAR], "100 ms");
    for state in states {
        fs::write(scene.bench.path().join(state), "").unwrap();
    }
    scene
}

#[test]
fn undo_leaves_a_vm_stopped_after_its_daily_shutdown() {
    let scene = vm(&["near"]);
    let ended = undo(&scene, &["placement", "vm1", "--shutdown-at", "1"]).expect_code(0).stderr;
    assert!(ended.contains("the VM was not started, because its daily shutdown has passed"), "{ended}");
    assert!(scene.has("stopped") && !scene.has("near"), "{:?}", scene.calls());
    undo(&scene, &["start", "vm1", "--shutdown-at", "1"]).expect_code(0);
    assert_eq!(scene.count("vm start"), 0, "{:?}", scene.calls());
    // Before the shutdown it runs again.
    let ended = undo(&scene, &["start", "vm1", "--shutdown-at", "99999999999"]).expect_code(0).stderr;
    assert!(!scene.has("stopped") && !ended.contains("not started"), "{ended} {:?}", scene.calls());
    scene.bench.assert_nothing_left();
}

#[test]
fn undo_that_azure_accepts_and_does_not_make_names_the_stop_of_the_vm() {
    let scene = Scene::new(live(), [&switch(false), &switch(true)], "100 ms");
    scene.answer(&format!("{UPDATE} true"), json!([{}]));
    let error = undo(&scene, &["nic", "n", "--accelerated", "true"]).expect_code(12).stderr;
    assert_on_page(error_line(&error));
    assert_eq!(scene.count("vm "), 0, "{:?}", scene.calls());
    scene.bench.assert_nothing_left();
}

#[test]
fn undo_without_az_and_after_the_login_has_expired_ends_with_3() {
    let words = ["nic", "n", "--accelerated", "true"];
    let scene = Scene::new(live(), [&switch(false), &switch(true)], "100 ms");
    let expired = "ERROR: Please run 'az login' to setup account.\n";
    scene.answer(&format!("{UPDATE} true"), json!([{ "err": expired, "code": 1 }]));
    let error = undo(&scene, &words).expect_code(3).stderr;
    assert!(error.contains("failed to restore accelerated networking of n: "), "{error}");
    fs::remove_dir_all(scene.bench.path().join("bin")).unwrap();
    let error = undo(&scene, &words).expect_code(3).stderr;
    assert!(error.contains("install the Azure CLI"), "{error}");
    scene.bench.assert_nothing_left();
}

#[test]
fn undo_waits_until_another_operation_on_the_vm_has_ended() {
    let scene = vm(&["stopped", "busy"]);
    let busy = "ERROR: (AnotherOperationInProgress) another operation has not ended\n";
    let answers = json!([
        { "when": "busy", "remove": "busy", "err": busy, "code": 1 },
        { "when": "stopped", "remove": "stopped" },
    ]);
    scene.answer("vm start --resource-group g --name vm1", answers);
    undo(&scene, &["start", "vm1"]).expect_code(0);
    assert_eq!(scene.count("vm start"), 2, "{:?}", scene.calls());
    assert!(!scene.has("stopped"), "{:?}", scene.calls());
    scene.bench.assert_nothing_left();
}

#[test]
fn refusal_that_no_stop_cures_stops_no_vm() {
    with_interface("azure_shutdown::refusal_that_no_stop_cures_stops_no_vm", || {
        let scene = Scene::new(live(), [&switch(false), &switch(true)], "100 ms");
        let refused = "ERROR: (AuthorizationFailed) the client has no permission\n";
        scene.answer(&format!("{UPDATE} true"), json!([{ "err": refused, "code": 1 }]));
        let error = scene.refused(&["--allow-deallocate"]);
        assert!(error.contains("(AuthorizationFailed)"), "{error}");
        assert_eq!(scene.count("vm "), 0, "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn run_that_may_reach_the_daily_shutdown_has_a_warning() {
    with_room_for_vms("azure_shutdown::run_that_may_reach_the_daily_shutdown_has_a_warning", || {
        // No sshd listens in these VMs, so nothing runs. The plan takes more than a day.
        let scene = BedScene::new();
        fs::write(scene.at("exists"), "").unwrap();
        let plan = PLAN.replace("blocks_max = 2", "blocks_max = 10000");
        scene.bench.plan(&format!("{plan}{VOLUME}"));
        let error = scene.run(&["azure", "run", "plan.toml"]).expect_code(3).stderr;
        assert_names(&error, &["warning: the daily shutdown of the bed x at 19:00 UTC is in "]);
        scene.bench.assert_nothing_left();
    });
}
