//! Beds on guests with the real `az` against a stand-in for Azure: created, measured over a virtual function, reported and deleted. Run by
//! `cargo xtask test azure`.
use std::fs;

use netduel_guests::{Bed, guest_uuid};
use netduel_test_support::az_folder;

use super::azure::{check_bed, claim, with_networks_apart};
use super::coordinator::{Coordinator, Printed, assert_all_valid};
use super::dpdk::check_testpmd;
use super::hot_add::check_hot_add;
use super::scenes::with_scene;
use super::{end, run_in_both};

/// A plan of the repository, and the bed that its comments name.
const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/azure-throughput.toml");
const BED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../beds/two-nic.toml");

#[test]
fn bed_is_created_carries_traffic_over_a_virtual_function_and_is_deleted() {
    if az_folder().is_none() {
        return;
    }
    with_scene("igb", &[1, 2, 3], |mut bed, timed| {
        let mut coordinator = Coordinator::new(&mut bed);
        if timed.check("login of az", || coordinator.use_real_az(&bed)) {
            timed.check("bed of Azure", || check_bed(&mut bed, &coordinator));
            timed.check("plan of the repository", || plan_of_the_repository_runs(&mut bed, &coordinator));
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
        let coordinator = Coordinator::new(&mut bed);
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

/// Bed and plan are as they are in the repository; options that every user has make its trials few and short. The guests have a NIC for ssh, as
/// the VMs of this bed have.
fn plan_of_the_repository_runs(bed: &mut Bed, coordinator: &Coordinator) {
    // Where the bed expects it, with HOME in this folder.
    let keys = coordinator.folder().join(".ssh");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("id_ed25519.pub"), "ssh-ed25519 AAAAC3Nz\n").unwrap();
    // The plan has `sudo = true`, as a VM's user is not root; that of guests is.
    let sudo = r#"printf '#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nexec "$@"\n' > /bin/sudo; chmod 755 /bin/sudo"#;
    run_in_both(bed.guests(), |_| sudo.to_owned());
    let ids = [1, 2].map(guest_uuid);
    claim(coordinator, [false, true], [&ids[0], &ids[1]]);
    with_networks_apart(bed, |bed| {
        let mut up = coordinator.command(bed, &["azure", "up", BED, "--ssh-from", "192.0.2.1/32"]);
        Printed::from(up.env("HOME", coordinator.folder()).output().unwrap()).expect_code(0);
        let folder = coordinator.folder().join("report-of-the-repository");
        let out = folder.display().to_string();
        let few = ["--set", "blocks_min=2", "--set", "blocks_max=2", "--set", "duration=\"2 s\""];
        let words = [&["azure", "run", PLAN, "--bed", BED, "--out", &out, "--json"][..], &few].concat();
        let report = coordinator.run(bed, &words).expect_code(0).document();
        // Two blocks of two arms and four workloads.
        assert_all_valid(&report, 16);
        let arms = &report["plan"]["arms"];
        assert_eq!(arms[0]["expected_interface_client"], "pf0", "{arms:#}");
        assert_eq!(arms[1]["expected_path"], "vf", "{arms:#}");
        let page = fs::read_to_string(folder.join("report.html")).unwrap();
        for part in ["Test bed", "vm1-management", "Stress Testing Azure Accelerated Networking"] {
            assert!(page.contains(part), "{part:?} is missing in the report");
        }
        coordinator.run(bed, &["azure", "down", BED, "--yes"]).expect_code(0);
    });
}
