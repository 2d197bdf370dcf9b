//! A NIC that another program switches while its arm is measured: the guest is read again after each trial.
use crate::azure_treatments::{Scene, live, switch, with_interface};

#[test]
fn trial_whose_nic_was_switched_by_another_program_does_not_count() {
    with_interface("azure_kept::trial_whose_nic_was_switched_by_another_program_does_not_count", || {
        // The command is the other program: with another address the interface is no virtual function of the NIC any more.
        let taken = "{ command = [\"ip\", \"link\", \"set\", \"vf0\", \"address\", \"02:00:00:00:00:99\"], \
                     undo = [\"true\"], on = \"client\" }";
        let on = format!("{}, {taken}", switch(true));
        let scene = Scene::new(live(), [&switch(false), &on], "100 ms");
        let run = scene.run(&[]).expect_code(6);
        let reason = "the treatment was not in force until the end of the trial: accelerated networking of n is on, \
                      and the guest shows no virtual function of it";
        let printed = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains(reason), "{}", run.stderr);
        let report = scene.bench.run(["report", "last", "--json"]).expect_code(0).json();
        assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&2.into(), &2.into()));
        assert!(!scene.has("on"), "{:?}", scene.calls());
        scene.bench.assert_nothing_left();
    });
}
