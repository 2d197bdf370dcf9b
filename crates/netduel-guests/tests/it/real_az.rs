//! A bed on guests with the real `az` against a stand-in for Azure: created, measured over a virtual function, reported and deleted. Run by
//! `cargo xtask test azure`.
use netduel_test_support::az_folder;

use super::azure::check_bed;
use super::coordinator::Coordinator;
use super::end;
use super::scenes::with_scene;

#[test]
fn bed_is_created_carries_traffic_over_a_virtual_function_and_is_deleted() {
    if az_folder().is_none() {
        return;
    }
    with_scene("igb", &[1, 2, 3], |mut bed, timed| {
        let mut coordinator = Coordinator::new(&mut bed);
        if timed.check("login of az", || coordinator.use_real_az(&bed)) {
            timed.check("bed of Azure", || check_bed(&mut bed, &coordinator));
        }
        // The stand-in runs in the bed.
        drop(coordinator);
        end(bed);
    });
}
