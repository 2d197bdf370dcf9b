//! Synthetic hosts for the tests of findings and drawings.
use std::collections::BTreeMap;

use netduel_model::ids::HostName;
use netduel_model::snapshot::{
    Channels, Cloud, Device, HostSnapshot, Interface, NumaNode, PciFunction, Processor, Provider,
    QueueInterrupt, Rings,
};

/// Memory of a node, bytes.
const NODE_MEMORY: u64 = 32 << 30;

/// `count` queues, queue `i` served by core `i mod cores`.
fn interrupts(count: u32, cores: u32) -> Vec<QueueInterrupt> {
    (0..count)
        .map(|queue| QueueInterrupt {
            number: 30 + queue,
            name: format!("mlx5_comp{queue}@pci:0001:00:02.0"),
            queue: Some(queue),
            cores: vec![(queue % cores) as u16],
            count: Some(1000),
        })
        .collect()
}

/// The virtual function of [`azure`].
pub fn function() -> PciFunction {
    PciFunction {
        slot: "0001:00:02.0".into(),
        vendor: 0x15b3,
        device: 0x1016,
        driver: Some("mlx5_core".into()),
        virtual_function: Some(true),
        interfaces: vec!["enP1s1".into()],
    }
}

/// Its paravirtual interface.
fn synthetic() -> Interface {
    let features = ["tx-tcp-segmentation", "tx-checksum-ip-generic", "tx-generic-segmentation", "rx-gro"];
    Interface {
        name: "eth0".into(),
        index: 2,
        driver: Some("hv_netvsc".into()),
        mac: Some("00:0d:3a:11:22:33".into()),
        mtu: Some(1500),
        up: true,
        carrier: Some(true),
        speed_mbps: Some(50_000),
        addresses: vec!["10.0.0.4".parse().unwrap(), "fd00::4".parse().unwrap()],
        qdisc: Some("mq".into()),
        features_on: features.map(str::to_owned).to_vec(),
        device: Device {
            channels: Some(Channels { combined: (8, 8), ..Channels::default() }),
            counters: [("vf_rx_packets", 5_000_000), ("vf_tx_packets", 4_000_000)]
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            qdiscs: vec!["mq".into(), "fq".into()],
            ..Device::default()
        },
        ..Interface::default()
    }
}

/// The interface of the virtual function beneath it.
fn beneath() -> Interface {
    Interface {
        name: "enP1s1".into(),
        index: 3,
        driver: Some("mlx5_core".into()),
        master: Some("eth0".into()),
        addresses: Vec::new(),
        qdisc: Some("noqueue".into()),
        device: Device {
            pci: Some(function()),
            firmware: Some("14.25.8362".into()),
            numa_node: Some(0),
            rings: Some(Rings { rx: (1024, 8192), tx: (1024, 8192) }),
            rss_entries: vec![16; 8],
            interrupts: interrupts(8, 8),
            qdiscs: vec!["noqueue".into()],
            channels: synthetic().device.channels,
            ..Device::default()
        },
        ..synthetic()
    }
}

fn loopback() -> Interface {
    Interface {
        name: "lo".into(),
        index: 1,
        up: true,
        carrier: Some(true),
        mtu: Some(65_536),
        addresses: vec!["127.0.0.1".parse().unwrap()],
        ..Interface::default()
    }
}

fn cloud() -> Cloud {
    Cloud {
        provider: Provider::Azure,
        evidence: "chassis asset tag 7783-7084-3265-9085-8269-3286-77".into(),
        size: Some("Standard_DS4_v2".into()),
        region: Some("westeurope".into()),
        zone: Some("1".into()),
        physical_zone: Some("westeurope-az2".into()),
        instance: Some("6c9c1d0e".into()),
        placement: None,
        fault_domain: Some("0".into()),
        physical_host: Some("AMS20140215".into()),
        image: None,
        metadata_failure: None,
    }
}

/// A correctly configured virtual machine on Azure: 8 cores on two nodes, accelerated networking active, a queue per core.
pub fn azure() -> HostSnapshot {
    HostSnapshot {
        hostname: Some("vm-a".into()),
        kernel: Some("6.8.0-1017-azure".into()),
        machine: Some("x86_64".into()),
        os: Some("Ubuntu 24.04.1 LTS".into()),
        platform: Some("Microsoft Corporation / Virtual Machine / 7783-7084-3265-9085-8269-3286-77".into()),
        boot_id: Some("3c7d2c54-0c29-4b08-9f0e-1f2a3b4c5d6e".into()),
        netns: Some(4_026_531_840),
        cpu_model: Some("Intel(R) Xeon(R) Platinum 8272CL CPU @ 2.60GHz".into()),
        cores: 8,
        memory_bytes: Some(2 * NODE_MEMORY),
        interfaces: vec![loopback(), synthetic(), beneath()],
        sysctls: sysctls(),
        processor: Some(Processor {
            sockets: Some(2),
            physical_cores: (0..4).map(|core| vec![2 * core, 2 * core + 1]).collect(),
            ..Processor::default()
        }),
        numa_nodes: (0..2).map(|number| node(number, u16::try_from(number).unwrap() * 4)).collect(),
        hypervisor: Some("Hyper-V 10.0.20348.1-1-0".into()),
        cloud: Some(cloud()),
        pci_functions: vec![function()],
        default_routes: vec!["eth0".into()],
        ..HostSnapshot::default()
    }
}

fn node(number: u32, first: u16) -> NumaNode {
    NumaNode {
        number,
        cores: (first..first + 4).collect(),
        memory_bytes: Some(NODE_MEMORY),
        distances: if number == 0 { vec![10, 21] } else { vec![21, 10] },
        huge_pages: Vec::new(),
    }
}

fn sysctls() -> BTreeMap<String, String> {
    [
        ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
        ("net.ipv4.tcp_wmem", "4096 65536 67108864"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// The other end of a pair with [`azure`]: the same configuration, another machine.
pub fn other() -> HostSnapshot {
    let mut host = azure();
    host.hostname = Some("vm-b".into());
    host.boot_id = Some("b1e0a5aa-5f6c-4f1c-8d44-0a1b2c3d4e5f".into());
    host.interfaces[1].addresses = vec!["10.0.0.5".parse().unwrap(), "fd00::5".parse().unwrap()];
    if let Some(cloud) = &mut host.cloud {
        cloud.physical_host = Some("AMS20140399".into());
        cloud.fault_domain = Some("1".into());
    }
    host
}

/// A lab guest: a bridge with two ports, all software interfaces.
pub fn lab_guest() -> HostSnapshot {
    let made = |name: &str, kind: &str, master: Option<&str>| Interface {
        name: name.into(),
        kind: Some(kind.into()),
        driver: Some(kind.into()),
        mtu: Some(1500),
        up: true,
        carrier: Some(true),
        speed_mbps: Some(10_000),
        master: master.map(str::to_owned),
        tx_queues: Some(1),
        rx_queues: Some(1),
        qdisc: Some("noqueue".into()),
        ..Interface::default()
    };
    let mut bridge = made("eth0", "bridge", None);
    bridge.addresses = vec!["10.77.0.1".parse().unwrap()];
    HostSnapshot {
        hostname: Some("bench".into()),
        kernel: Some("6.18.44".into()),
        boot_id: Some("one".into()),
        netns: Some(1),
        cores: 2,
        interfaces: vec![
            made("down0", "dummy", None),
            bridge,
            made("syn0", "veth", Some("eth0")),
            made("vf0", "veth", Some("eth0")),
        ],
        sysctls: sysctls(),
        ..HostSnapshot::default()
    }
}

/// The hosts that were captured, or written from the kernel's tables, by name.
pub fn captured() -> Vec<(String, HostSnapshot)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    let mut hosts: Vec<(String, HostSnapshot)> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|file| {
            let name = file.path().file_stem().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap())
        })
        .collect();
    hosts.sort_by(|a, b| a.0.cmp(&b.0));
    hosts
}

/// Hosts of a run: `a` without faults; `b`, whose virtual function is down, with one core for all interrupts; and a lab guest.
pub fn of_a_run() -> BTreeMap<HostName, HostSnapshot> {
    let mut faulty = other();
    faulty.interfaces[2].up = false;
    faulty.interfaces[1].device.interrupts = interrupts(8, 1);
    faulty.interfaces[1].mtu = Some(3900);
    faulty.irqbalance = Some(true);
    [("a", azure()), ("b", faulty), ("guest", lab_guest())]
        .map(|(name, host)| (name.parse().unwrap(), host))
        .into()
}
