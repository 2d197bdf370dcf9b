//! Runs that are killed while a treatment has changed NICs or VMs of Azure: what their guard returns. As in `azure_treatments`, a program stands
//! for `az`, and each test has a network namespace of its own.
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::azure_treatments::{NEAR, Scene, UPDATE, live, placement, switch, with_interface};
use crate::support::{Finished, UnderWay, signal, until, wait_gone};

/// Starts a run both of whose arms have a treatment, and waits until it was applied.
fn applied(
    answers: Vec<(String, Value)>,
    treatment: &str,
    is_applied: fn(&Scene) -> bool,
) -> (Scene, UnderWay) {
    // Whichever arm is first, its first trial has the change and does not end.
    let scene = Scene::new(answers, [treatment, treatment], "600 s");
    let run = UnderWay::start(scene.netduel(&["--allow-deallocate"]));
    assert!(until(|| is_applied(&scene)), "{:?}", scene.calls());
    (scene, run)
}

/// Kills a run when its treatment was applied, and waits for the end of the guard.
fn killed(answers: Vec<(String, Value)>, treatment: &str, is_applied: fn(&Scene) -> bool) -> Scene {
    let (scene, run) = applied(answers, treatment, is_applied);
    signal(run.pid(), Signal::KILL);
    assert_eq!(run.finish().code, None);
    scene.bench.assert_nothing_left();
    scene
}

/// The NIC is read before the switch, and again when its virtual function is there.
fn is_switched(scene: &Scene) -> bool {
    scene.count("network nic show") > 1
}

/// Kills a run that has switched a NIC, and its guard before it.
fn killed_with_its_guard() -> Scene {
    let (scene, run) = applied(live().into(), &switch(true), is_switched);
    let [guard] = scene.bench.find(&["undo-guard", "--coordinator"])[..] else { panic!("no guard") };
    signal(guard, Signal::KILL);
    assert!(wait_gone(guard));
    signal(run.pid(), Signal::KILL);
    assert_eq!(run.finish().code, None);
    scene.bench.assert_nothing_left();
    assert!(scene.has("on"), "no process is left that returns it: {:?}", scene.calls());
    scene
}

/// Runs the plan again, which first returns what the run before left, and ends it when it has switched the NIC.
fn returned_by_the_next_run(scene: &Scene) {
    let mut next = UnderWay::start(scene.netduel(&[]));
    next.wait_for("restored what an earlier run left changed: `accelerated networking of n off`");
    let [on, off] = [true, false].map(|on| format!("{UPDATE} {on}"));
    assert_eq!(scene.count(&off), 1, "{:?}", scene.calls());
    let is_switched_again = || {
        let calls = scene.calls();
        let after = calls.iter().skip_while(|call| !call.starts_with(&off));
        let mut after = after.skip_while(|call| !call.starts_with(&on));
        after.any(|call| call.starts_with("network nic show"))
    };
    assert!(until(is_switched_again), "{:?}", scene.calls());
    signal(next.pid(), Signal::INT);
    next.finish().expect_code(130);
    assert!(!scene.has("on"), "{:?}", scene.calls());
    scene.bench.assert_nothing_left();
}

#[test]
fn guard_returns_the_nic_when_the_run_is_killed() {
    with_interface("azure_killed::guard_returns_the_nic_when_the_run_is_killed", || {
        let scene = killed(live().into(), &switch(true), is_switched);
        assert!(!scene.has("on"), "{:?}", scene.calls());
        assert_eq!(scene.count(&format!("{UPDATE} false")), 1, "{:?}", scene.calls());
        assert_eq!(scene.count("vm "), 0, "no VM was stopped: {:?}", scene.calls());
    });
}

/// The same command by another file of the program.
fn by(program: &Path, command: &Command) -> Command {
    let mut other = Command::new(program);
    other.args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other.current_dir(command.get_current_dir().unwrap());
    other
}

#[test]
fn guard_returns_the_nic_although_the_program_was_removed_since() {
    let test = "azure_killed::guard_returns_the_nic_although_the_program_was_removed_since";
    with_interface(test, || {
        let scene = Scene::new(live(), [&switch(true), &switch(true)], "600 s");
        let program = scene.bench.path().join("netduel-of-today");
        fs::copy(env!("CARGO_BIN_EXE_netduel"), &program).unwrap();
        let run = UnderWay::start(by(&program, &scene.netduel(&[])));
        assert!(until(|| is_switched(&scene)), "{:?}", scene.calls());
        // As an update or a cleaner of temporary files does.
        fs::remove_file(&program).unwrap();
        signal(run.pid(), Signal::KILL);
        assert_eq!(run.finish().code, None);
        scene.bench.assert_nothing_left();
        assert!(!scene.has("on"), "{:?}", scene.calls());
    });
}

#[test]
fn nic_of_a_run_that_was_killed_with_its_guard_is_returned_by_the_next_run_and_by_no_agent() {
    let test = "azure_killed::nic_of_a_run_that_was_killed_with_its_guard_is_returned_by_the_next_run_and_by_no_agent";
    with_interface(test, || {
        let scene = killed_with_its_guard();
        let calls = scene.calls();
        let words = ["inspect", "local", "--no-metadata", "--fail-on", "never"];
        Finished::from(scene.command(&words).output().unwrap()).expect_code(0);
        assert_eq!(scene.calls(), calls, "an agent has called az");
        returned_by_the_next_run(&scene);
    });
}

#[test]
fn nic_of_a_killed_run_is_returned_after_a_restart_of_the_machine() {
    let test = "azure_killed::nic_of_a_killed_run_is_returned_after_a_restart_of_the_machine";
    with_interface(test, || {
        let scene = killed_with_its_guard();
        let folder = scene.bench.path().join("state/netduel/undo");
        let records =
            || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let left = records();
        let [record] = &left[..] else { panic!("{left:?}") };
        let text = fs::read_to_string(record).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let mut head: Value = serde_json::from_str(first).unwrap();
        // The network namespace of a container is a new one, too.
        head["boot"] = "another boot".into();
        head["namespace"] = 1.into();
        fs::write(record, format!("{head}\n{rest}")).unwrap();
        returned_by_the_next_run(&scene);
        assert!(records().is_empty(), "{:?}", records());
    });
}

#[test]
fn record_that_a_restart_of_the_machine_may_remove_is_named_before_the_first_change() {
    let test =
        "azure_killed::record_that_a_restart_of_the_machine_may_remove_is_named_before_the_first_change";
    with_interface(test, || {
        let scene = || Scene::new(live(), [&switch(false), &switch(true)], "100 ms");
        let warning = "warning: the original state of resources is recorded in ";
        let run = scene().run(&[]).expect_code(0);
        assert!(!run.stderr.contains(warning), "{}", run.stderr);
        let scene = scene();
        // Other users could replace a record there.
        let folder = scene.bench.path().join("state/netduel/undo");
        DirBuilder::new().recursive(true).create(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        let run = scene.run(&[]).expect_code(0);
        assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains(&format!("let {} be a folder", folder.display())), "{}", run.stderr);
        // By the seed the arm with the present state is first.
        let places = ["trial   1/4", warning, "trial   2/4"].map(|part| run.stderr.find(part));
        assert!(places[0] < places[1] && places[1] < places[2], "{}", run.stderr);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    });
}

#[test]
fn guard_returns_the_placement_and_starts_the_vm_when_the_run_is_killed() {
    let test = "azure_killed::guard_returns_the_placement_and_starts_the_vm_when_the_run_is_killed";
    with_interface(test, || {
        // The VM is stopped while it joins the group.
        let scene = killed(placement().into(), NEAR, |scene| scene.has("near"));
        assert!(!scene.has("near") && !scene.has("stopped"), "{:?}", scene.calls());
        let out = "vm update --resource-group g --name vm1 --remove proximityPlacementGroup";
        assert_eq!(scene.count(out), 1, "{:?}", scene.calls());
    });
}
