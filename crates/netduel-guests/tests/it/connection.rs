//! A run over an ssh connection that is slow and loses packets. Copying the program over it takes minutes, in which the cores are idle, so this
//! test has a scene of its own beside the others, and a name that starts first.
use netduel_guests::Bed;

use super::coordinator::{Coordinator, FEW_ROUND_TRIPS, assert_all_valid, plan};
use super::scenes::with_waiting_scene;
use super::{end, run};

#[test]
fn run_is_whole_over_a_slow_and_lossy_connection() {
    with_waiting_scene("virtio", &[1], |mut bed, timed| {
        let coordinator = Coordinator::new(&mut bed);
        timed.check("slow and lossy connection", || check_connection(&mut bed, &coordinator));
        end(bed);
    });
}

/// ssh to both guests has a long delay and loses packets, also while one gets its copy of the program; the data has its own interface.
fn check_connection(bed: &mut Bed, coordinator: &Coordinator) {
    let load = "while read -r name; do grep -q \"^$name \" /proc/modules || insmod /modules/$name.ko; done < /modules/sch_netem.order";
    for guest in bed.guests() {
        run(guest, &format!("set -e; {load}; tc qdisc add dev mgmt root netem delay 200ms loss 1%"));
    }
    run(&bed.guests()[1], "rm -r ~/.cache/netduel");
    let plan = coordinator.plan(&plan("10.1.0.2", &[("one", ""), ("two", "")], FEW_ROUND_TRIPS, 2));
    let printed = coordinator.run(bed, &["run", &plan, "--json"]).expect_code(0);
    assert_eq!(printed.copies(), 1, "{}", printed.stderr);
    assert_all_valid(&printed.document(), 4);
    for guest in bed.guests() {
        let shown = run(guest, "tc qdisc show dev mgmt");
        assert!(shown.contains("delay 200ms loss 1%"), "{shown}");
        run(guest, "tc qdisc del dev mgmt root");
    }
}
