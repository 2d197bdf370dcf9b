//! Cores near an interface, on trees that imitate machines of each kind.
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use netduel_host::{Locality, Node};

use crate::fixture::{Host, Link};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A host with one interface that has the address.
fn host(interface: &'static str) -> Host {
    let host = Host::new();
    host.set_links(&[Link { index: 2, name: interface, ..Link::default() }]);
    host.set_address(2, ADDRESS);
    host
}

fn read(host: &Host, allowed: &[u16]) -> Locality {
    Locality::read(&mut host.sources(), None, ADDRESS.into(), allowed).unwrap()
}

/// Two nodes of two physical cores with two threads each: siblings are 4 apart.
fn write_two_nodes(host: &Host) {
    host.write("sys/devices/system/cpu/online", "0-7\n");
    for core in 0..8 {
        let first = core % 4;
        host.write(
            &format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"),
            &format!("{first},{}\n", first + 4),
        );
    }
    host.write("sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    host.write("sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
}

/// Interrupts of a device: number, name, and the core that serves it.
fn write_interrupts(host: &Host, device: &str, interrupts: &[(u32, &str, &str)]) {
    let mut text = "            CPU0       CPU1\n".to_owned();
    for (number, name, core) in interrupts {
        writeln!(text, " {number}:          5          0  PCI-MSIX-0000:00:04.0   1-edge      {name}")
            .unwrap();
        host.write(&format!("{device}/msi_irqs/{number}"), "msix\n");
        host.write(&format!("proc/irq/{number}/effective_affinity_list"), &format!("{core}\n"));
    }
    host.write("proc/interrupts", &text);
}

#[test]
fn virtio_nic_has_its_queues_in_order_and_its_node() {
    let host = host("eth0");
    write_two_nodes(&host);
    host.set_driver("eth0", "virtio_net", "0000:00:04.0");
    let device = "sys/bus/pci/devices/0000:00:04.0";
    host.write(&format!("{device}/numa_node"), "1\n");
    // Two interrupts per queue, one for the configuration; the tenth queue is after the second.
    write_interrupts(
        &host,
        device,
        &[
            (40, "virtio1-config", "0"),
            (41, "virtio1-input.0", "2"),
            (42, "virtio1-output.0", "3"),
            (43, "virtio1-input.10", "7"),
            (44, "virtio1-input.1", "3"),
            (45, "virtio1-input.2", "6"),
        ],
    );
    let near = read(&host, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(near.physical, [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]]);
    assert_eq!((near.interface.as_deref(), near.device.as_deref()), (Some("eth0"), Some("eth0")));
    assert_eq!(near.node, Some(Node { number: 1, cores: vec![2, 3, 6, 7] }));
    assert_eq!(near.queue_cores, [2, 3, 6, 7]);
}

#[test]
fn vf_below_netvsc_is_the_device_and_without_one_its_channels_are() {
    let host = host("eth0");
    write_two_nodes(&host);
    host.set_driver("eth0", "hv_netvsc", "000d3a1b-0000-0000-0000-000d3a1b0000");
    host.set_driver("enP1s1", "mlx5_core", "0001:00:02.0");
    let channels = "sys/bus/vmbus/devices/000d3a1b-0000-0000-0000-000d3a1b0000/channels";
    for (channel, core) in [(14, 1), (9, 5)] {
        host.write(&format!("{channels}/{channel}/cpu"), &format!("{core}\n"));
    }
    let device = "sys/bus/pci/devices/0001:00:02.0";
    host.write(&format!("{device}/numa_node"), "0\n");
    let interrupts = [
        (24, "mlx5_async0@pci:0001:00:02.0", "0"),
        (25, "mlx5_comp0@pci:0001:00:02.0", "4"),
        (26, "mlx5_comp1@pci:0001:00:02.0", "1"),
    ];
    write_interrupts(&host, device, &interrupts);
    let allowed: Vec<u16> = (0..8).collect();
    let near = read(&host, &allowed);
    assert_eq!((near.device.as_deref(), near.queue_cores), (Some("eth0"), vec![5, 1]), "no function yet");
    assert_eq!(near.node, None);

    let link = |index, name, master| Link { index, name, master, ..Link::default() };
    host.set_links(&[link(2, "eth0", 0), link(3, "enP1s1", 2)]);
    let near = read(&host, &allowed);
    assert_eq!((near.interface.as_deref(), near.device.as_deref()), (Some("eth0"), Some("enP1s1")));
    assert_eq!(near.node.map(|node| node.number), Some(0));
    assert_eq!(near.queue_cores, [4, 1]);
}

#[test]
fn offline_and_forbidden_cores_are_omitted() {
    let host = host("eth0");
    write_two_nodes(&host);
    host.write("sys/devices/system/cpu/online", "0-2,4-7\n");
    // Core 3 is offline; 0 is not allowed, so only its sibling remains.
    assert_eq!(read(&host, &[1, 3, 4, 5, 7]).physical, [vec![1, 5], vec![4], vec![7]]);
}

#[test]
fn host_without_information_has_its_allowed_cores() {
    let host = host("veth0");
    let near = read(&host, &[3, 1]);
    assert_eq!(near.physical, [[1], [3]]);
    assert_eq!((near.interface.as_deref(), near.device), (Some("veth0"), None));
    // A guest without NUMA information, and a driver without a bus address.
    host.set_driver("veth0", "veth", "");
    host.write("sys/bus/pci/devices/0000:00:04.0/numa_node", "-1\n");
    assert_eq!(read(&host, &[1]).device, None);
    host.set_driver("veth0", "virtio_net", "0000:00:04.0");
    let near = read(&host, &[1]);
    assert_eq!((near.device.as_deref(), near.node, near.queue_cores), (Some("veth0"), None, vec![]));
    let unassigned: IpAddr = Ipv4Addr::new(192, 0, 2, 99).into();
    assert_eq!(Locality::read(&mut host.sources(), None, unassigned, &[1]).unwrap().interface, None);
}

#[test]
fn named_interface_comes_before_the_one_with_the_address() {
    let host = host("eth0");
    host.set_links(&[
        Link { index: 2, name: "eth0", ..Link::default() },
        Link { index: 3, name: "port0", ..Link::default() },
    ]);
    for (name, interface) in [(Some("port0"), "port0"), (Some("gone"), "eth0"), (None, "eth0")] {
        let found = Locality::read(&mut host.sources(), name, ADDRESS.into(), &[0]).unwrap();
        assert_eq!(found.interface.as_deref(), Some(interface), "{name:?}");
    }
}
