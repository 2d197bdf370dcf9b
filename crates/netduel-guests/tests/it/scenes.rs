//! What guests of a scene are: one boot for all checks of a scene.
use std::fs;

use netduel_guests::{Bed, Scene};

use super::{assert_nothing_left, end, kill, network_namespace, prepared, processes};

/// Boots a scene, checks that both guests answer and reach each other in the subnets, and passes the bed on.
fn with_scene(name: &str, subnets: &[u8], checks: impl FnOnce(Bed)) {
    let Some(prepared) = prepared() else { return };
    let scene = Scene::named(name).unwrap();
    let mut bed = Bed::boot(&prepared, scene).unwrap_or_else(|error| panic!("failed to {error}"));
    for (guest, peer) in bed.guests().iter().zip([2, 1]) {
        assert_eq!(run(guest, "hostname"), format!("{}\n", guest.name()));
        for subnet in subnets {
            let pinged = run(guest, &format!("ping -c 1 -W 60 10.{subnet}.0.{peer}"));
            assert!(pinged.contains("1 packets received"), "{pinged}");
        }
    }
    checks(bed);
}

fn run(guest: &netduel_guests::Guest, script: &str) -> String {
    guest.ssh(script).unwrap_or_else(|error| panic!("failed to {error}"))
}

#[test]
fn igb_scene_is_inspected_and_ends_with_its_holder() {
    with_scene("igb", &[1, 2, 3], |mut bed| {
        for guest in bed.guests() {
            let text = run(guest, "netduel inspect");
            println!("{}:\n{text}", guest.name());
            inspected_as_igb(&text);
        }
        guest_ends_with_its_qemu(&mut bed);
        let folder = bed.folder().to_owned();
        let namespace = network_namespace(&bed.first_process().to_string()).unwrap();
        kill(bed.first_process());
        bed.wait_for_end().unwrap();
        bed.guests()[1].wait_for_end().unwrap();
        let left = processes(&folder);
        // nsenter(1) reports the end of its QEMU to the guest, which reaps it when it is dropped.
        assert!(left.iter().all(|process| is_zombie(process)), "{left:?}");
        end(bed);
        assert_nothing_left(&folder, namespace);
    });
}

/// Driver, queues and virtual functions.
fn inspected_as_igb(text: &str) {
    assert!(text.contains("igb"), "{text}");
}

/// A killed QEMU ends its guest, and the other guest goes on.
fn guest_ends_with_its_qemu(bed: &mut Bed) {
    let qemus: Vec<u32> = processes(bed.folder())
        .into_iter()
        .filter(|id| {
            fs::read_to_string(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.contains("netduel.name=a"))
        })
        .filter(|id| {
            fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("qemu"))
        })
        .map(|id| id.parse().unwrap())
        .collect();
    let [qemu] = qemus[..] else { panic!("one QEMU of guest a: {qemus:?}") };
    kill(qemu);
    bed.guests()[0].wait_for_end().unwrap();
    let refused = bed.guests()[0].ssh("true").unwrap_err().to_string();
    assert!(refused.contains("run a command in guest a"), "{refused}");
    assert_eq!(run(&bed.guests()[1], "hostname"), "b\n");
}

fn is_zombie(process: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}
