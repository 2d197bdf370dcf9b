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

#[test]
fn virtio_scene_is_inspected() {
    with_scene("virtio", &[1, 2], |mut bed| {
        let text = run(&bed.guests()[0], "netduel inspect");
        let [two, one] = ["virt0", "virt1"].map(|name| interface_of(&text, name));
        assert!(two.starts_with("virtio_net, up") && two.contains("queues: 2 of at most 2,"), "{text}");
        assert!(one.starts_with("virtio_net, up") && one.contains("queues: 1 of at most 1,"), "{text}");
        bed.guests()[0].power_off().unwrap();
        end(bed);
    });
}

#[test]
fn vmxnet3_scene_is_inspected() {
    with_scene("vmxnet3", &[1, 2], |mut bed| {
        let text = run(&bed.guests()[1], "netduel inspect");
        let nic = interface_of(&text, "vmx0");
        assert!(nic.starts_with("vmxnet3, up") && nic.contains("queues: 2 of at most 2,"), "{text}");
        end(bed);
    });
}

#[test]
fn primary_of_the_e1000e_scene_leaves_and_returns() {
    with_scene("e1000e", &[1, 2], |mut bed| {
        let guest = &mut bed.guests()[0];
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "fo0").contains("paired with eth0 (up)"), "{text}");
        assert!(interface_of(&text, "e1k0").starts_with("e1000e, up"), "{text}");
        guest.unplug("eth0").unwrap();
        let text = run(guest, "netduel inspect");
        assert!(!text.contains("paired with eth0"), "{text}");
        run(guest, "ping -c 1 -W 60 10.1.0.2");
        guest.plug("eth0").unwrap();
        run(guest, "until [ -e /sys/class/net/eth0/master ]; do usleep 50000; done; . /scene.sh; up eth0");
        run(guest, "ping -c 1 -W 60 10.1.0.2");
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "fo0").contains("paired with eth0 (up)"), "{text}");
        end(bed);
    });
}

#[test]
fn free_port_of_the_hotplug_scene_takes_a_nic() {
    with_scene("hotplug", &[1], |mut bed| {
        let guest = &mut bed.guests()[0];
        for (interface, model) in [("hot0", "igb"), ("hot1", "vmxnet3")] {
            guest.plug_model(interface, model).unwrap();
            let mac = guest.mac(interface).unwrap();
            run(guest, &format!(". /scene.sh; rename {mac} {model} {interface}; up {interface}"));
        }
        let text = run(guest, "netduel inspect");
        assert!(interface_of(&text, "hot0").starts_with("igb, up"), "{text}");
        assert!(interface_of(&text, "hot1").starts_with("vmxnet3, up"), "{text}");
        guest.unplug("hot0").unwrap();
        assert!(!run(guest, "ls /sys/class/net").contains("hot0"));
        end(bed);
    });
}

/// Driver, queues and virtual functions.
fn inspected_as_igb(text: &str) {
    let physical = interface_of(text, "pf0");
    assert!(physical.starts_with("igb, up") && physical.contains("queues: 2 of at most 2,"), "{text}");
    assert!(physical.contains("RSS: even over 2 queues"), "{text}");
    for name in ["vf0", "vf1"] {
        let function = interface_of(text, name);
        assert!(function.starts_with("igbvf, up") && function.contains(", virtual function\n"), "{text}");
        assert!(function.contains("queues: 1,"), "{text}");
    }
    let master = interface_of(text, "fo0");
    assert!(master.starts_with("net_failover, up") && master.contains("paired with vf0 (up)"), "{text}");
    assert!(interface_of(text, "fo0nsby").starts_with("virtio_net, up"), "{text}");
}

/// The lines of `netduel inspect` about an interface, without its name: until the next line that is indented as little.
fn interface_of<'a>(text: &'a str, name: &str) -> &'a str {
    let is_head =
        |line: &str| line.trim_start().split(' ').next() == Some(name) && line.len() > name.len() + 4;
    let head = text.lines().find(|line| is_head(line)).unwrap_or_else(|| panic!("no {name} in {text}"));
    let start = head.as_ptr().addr() - text.as_ptr().addr();
    let after = start + head.len();
    let is_detail = |line: &&str| line.starts_with("        ");
    let len: usize = text[after + 1..].lines().take_while(is_detail).map(|line| line.len() + 1).sum();
    text[start..=after + len].trim_start().trim_start_matches(name).trim_start()
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
