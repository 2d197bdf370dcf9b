//! Placements of VMs and states of NICs that Azure has before a run. As in `azure_treatments`, a program stands for `az`, and each test has a
//! network namespace of its own.
use std::fs;

use crate::azure_treatments::{NEAR, Scene, live, placement, switch, with_interface};

#[test]
fn placement_that_a_vm_has_anyway_is_no_difference_between_arms() {
    let test = "azure_placement::placement_that_a_vm_has_anyway_is_no_difference_between_arms";
    with_interface(test, || {
        let scene = Scene::new(placement(), ["", NEAR], "100 ms");
        fs::write(scene.bench.path().join("near"), "").unwrap();
        let error = scene.refused(&["--allow-deallocate"]);
        assert!(error.contains("vm1 in the proximity group near: it is there without"), "{error}");
        assert!(scene.count("vm deallocate") == 0 && scene.has("near"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn state_of_a_nic_in_which_another_arm_leaves_it_is_no_difference_between_arms() {
    let test = "azure_placement::state_of_a_nic_in_which_another_arm_leaves_it_is_no_difference_between_arms";
    with_interface(test, || {
        let scene = Scene::new(live(), ["", &switch(false)], "100 ms");
        let error = scene.refused(&[]);
        assert!(error.contains("accelerated networking of n off: it is so without"), "{error}");
        assert_eq!(scene.count("network nic update"), 0, "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}

#[test]
fn placement_that_all_arms_want_may_be_there_before_the_run() {
    let test = "azure_placement::placement_that_all_arms_want_may_be_there_before_the_run";
    with_interface(test, || {
        let [off, on] = [false, true].map(|on| format!("{NEAR}, {}", switch(on)));
        let answers = placement().into_iter().chain(live());
        let scene = Scene::new(answers, [off.as_str(), on.as_str()], "100 ms");
        fs::write(scene.bench.path().join("near"), "").unwrap();
        scene.run(&["--allow-deallocate"]).expect_code(0);
        assert!(scene.count("vm deallocate") == 0 && scene.has("near"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}
