//! Runs that are killed while a treatment has changed NICs or VMs of Azure: what their guard returns. As in `azure_treatments`, a program stands
//! for `az`, and each test has a network namespace of its own.
use rustix::process::Signal;
use serde_json::Value;

use crate::azure_treatments::{NEAR, Scene, UPDATE, live, placement, switch, with_interface};
use crate::support::{UnderWay, signal, until};

/// Kills a run both of whose arms have a treatment, when it was applied, and waits for the end of the guard.
fn killed(answers: Vec<(String, Value)>, treatment: &str, is_applied: fn(&Scene) -> bool) -> Scene {
    // Whichever arm is first, its first trial has the change and does not end.
    let scene = Scene::new(answers, [treatment, treatment], "600 s");
    let run = UnderWay::start(scene.netduel(&["--allow-deallocate"]));
    assert!(until(|| is_applied(&scene)), "{:?}", scene.calls());
    signal(run.pid(), Signal::KILL);
    assert_eq!(run.finish().code, None);
    scene.bench.assert_nothing_left();
    scene
}

#[test]
fn guard_returns_the_nic_when_the_run_is_killed() {
    with_interface("azure_killed::guard_returns_the_nic_when_the_run_is_killed", || {
        // The NIC is read before the switch, and again when its virtual function is there.
        let scene = killed(live().into(), &switch(true), |scene| scene.count("network nic show") > 1);
        assert!(!scene.has("on"), "{:?}", scene.calls());
        assert_eq!(scene.count(&format!("{UPDATE} false")), 1, "{:?}", scene.calls());
        assert_eq!(scene.count("vm "), 0, "no VM was stopped: {:?}", scene.calls());
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
