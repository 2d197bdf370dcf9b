//! Beds on guests with the real `az` against a stand-in for Azure: created, measured over a virtual function, reported and deleted. Run by
//! `cargo xtask test azure`.
use netduel_test_support::az_folder;

use super::azure::check_bed;
use super::coordinator::Coordinator;
use super::dpdk::check_testpmd;
use super::end;
use super::hot_add::check_hot_add;
use super::scenes::with_scene;
use super::shipped_plans::{check_latency, check_linux, check_throughput};

#[test]
fn bed_is_created_carries_traffic_over_a_virtual_function_and_is_deleted() {
    if az_folder().is_none() {
        return;
    }
    with_scene("igb", &[1, 2, 3], |mut bed, timed| {
        let mut coordinator = Coordinator::new(&mut bed, timed.pace);
        if timed.check("login of az", || coordinator.use_real_az(&bed)) {
            timed.check("bed of Azure", || check_bed(&mut bed, &coordinator));
            timed.check("azure-throughput", || check_throughput(&mut bed, &coordinator));
        }
        // The stand-in runs in the bed.
        drop(coordinator);
        end(bed);
    });
}

/// Plans of the repository that need more queues, or a virtual function that comes and goes.
#[test]
fn plans_of_the_repository_run_on_their_beds() {
    if az_folder().is_none() {
        return;
    }
    with_scene("azure", &[1, 2], |mut bed, timed| {
        let mut coordinator = Coordinator::new(&mut bed, timed.pace);
        if timed.check("login of az", || coordinator.use_real_az(&bed)) {
            timed.check("azure-linux", || check_linux(&mut bed, &coordinator));
            timed.check("azure-latency", || check_latency(&mut bed, &coordinator));
        }
        // The stand-in runs in the bed.
        drop(coordinator);
        end(bed);
    });
}

/// An experiment on a bed, so it is one of these tests; `az` answers nothing here that matters for it, and a script stands for it.
#[test]
fn spare_nic_of_a_bed_comes_and_goes_under_traffic() {
    if az_folder().is_none() {
        return;
    }
    with_scene("hotplug", &[1], |mut bed, timed| {
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        timed.check("NIC that comes and goes", || check_hot_add(&mut bed, &coordinator));
        end(bed);
    });
}

/// The experiment of beds of type `dpdk`. It stands here because the tests in guests that everybody runs may take eight minutes.
#[test]
fn testpmd_drives_nics_behind_an_iommu_and_the_kernel_gets_them_back() {
    if az_folder().is_some() {
        check_testpmd();
    }
}
