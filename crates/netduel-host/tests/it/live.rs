//! The readers on this machine and in a new network namespace.
use std::net::UdpSocket;
use std::process::Command;

use netduel_host::{
    Locality, Observer, Sources, addresses_of, interface_names, mtu_range, snapshot, snapshot_of,
};
use netduel_model::link_event::LinkEvent;
use netduel_sys::ethtool::Ethtool;
use netduel_test_support::{NewNamespace, in_namespace, skip};

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

#[test]
fn this_machine_is_described() {
    // The test runs without a metadata service.
    let mut sources = Sources { metadata: None, ..Sources::live().unwrap() };
    let seen = snapshot_of(&mut sources).unwrap();
    assert!(seen.cores > 0 && seen.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    assert!(seen.boot_id.is_some() && seen.netns.is_some() && seen.kernel.is_some());
    assert!(seen.interfaces.iter().any(|interface| interface.name == "lo"));
    assert!(seen.sysctls.contains_key("net.ipv4.tcp_congestion_control"));
    let processor = seen.processor.unwrap();
    let mut cores = processor.physical_cores.concat();
    cores.sort_unstable();
    assert_eq!(cores.len(), seen.cores as usize, "every core has one place");
    let mut of_nodes: Vec<u16> = seen.numa_nodes.iter().flat_map(|node| node.cores.clone()).collect();
    of_nodes.sort_unstable();
    // A kernel without NUMA has no nodes.
    assert!(of_nodes.is_empty() || of_nodes == cores, "{of_nodes:?}");
    for function in &seen.pci_functions {
        let named =
            |interface: &&netduel_model::snapshot::Interface| function.interfaces.contains(&interface.name);
        for interface in seen.interfaces.iter().filter(named) {
            assert_eq!(interface.device.pci.as_ref(), Some(function));
        }
    }
}

#[test]
fn settings_that_are_changed_and_set_back_are_events() {
    in_namespace("live::settings_that_are_changed_and_set_back_are_events", || {
        ip("link add va type veth peer name vb");
        let mut observer = Observer::new().unwrap();
        let before = observer.before().unwrap();
        for mtu in ["1400", "1500"] {
            ip(&format!("link set va mtu {mtu}"));
        }
        let mut ethtool = Ethtool::open().unwrap();
        for enabled in [false, true] {
            ethtool.request_features("va", &[("tx-tcp-segmentation".to_owned(), enabled)]).unwrap();
        }
        let seen = before.after(&mut observer).unwrap();
        let events = seen.link_events.unwrap();
        let words: Vec<String> =
            events.iter().filter(|event| event.interface == "va").map(LinkEvent::words).collect();
        let expected = [
            ("MTU of va changed", "from 1500 B to 1400 B"),
            ("MTU of va changed", "from 1400 B to 1500 B"),
            ("tx-tcp-segmentation", "of va went off"),
            ("tx-tcp-segmentation", "of va went on"),
        ];
        // Other kinds of events may come between them.
        let mut found = words.iter();
        for (what, how) in expected {
            assert!(found.any(|words| words.contains(what) && words.ends_with(how)), "{how}: {words:?}");
        }
    });
}

#[test]
fn datagrams_over_the_loopback_are_counted() {
    in_namespace("live::datagrams_over_the_loopback_are_counted", || {
        ip("link set lo up");
        let mut observer = Observer::new().unwrap();
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for _ in 0..2 {
            let before = observer.before().unwrap();
            for _ in 0..1000 {
                b.send_to(&[7; 64], a.local_addr().unwrap()).unwrap();
                a.recv(&mut [0; 100]).unwrap();
            }
            let seen = before.after(&mut observer).unwrap();
            let loopback = seen.interfaces.iter().find(|interface| interface.name == "lo").unwrap();
            assert_eq!((loopback.rx_packets, loopback.tx_packets), (1000, 1000));
            assert_eq!(seen.protocol["Udp.InDatagrams"], 1000);
            assert!(seen.softnet.iter().map(|core| core.processed).sum::<u64>() >= 1000);
            assert!(
                seen.wall_ns > 0
                    && seen.observer_cpu_ns > 0
                    && seen.process.system_ns + seen.process.user_ns > 0
            );
            assert_eq!(seen.cores.len(), snapshot().unwrap().cores as usize);
            println!("two readings cost {} us of CPU", seen.observer_cpu_ns / 1000);
        }
    });
}

#[test]
fn drops_of_queue_and_socket_are_counted() {
    in_namespace("live::drops_of_queue_and_socket_are_counted", || {
        ip("link set lo up");
        // A queue of a few packets that sends some hundred a second.
        let shape = "qdisc add dev lo root tbf rate 1mbit burst 2000 limit 4000";
        assert!(Command::new("tc").args(shape.split(' ')).status().unwrap().success());
        let mut observer = Observer::new().unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&receiver, 1024).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = observer.before().unwrap();
        for _ in 0..100 {
            sender.send_to(&[7; 500], receiver.local_addr().unwrap()).unwrap();
        }
        let seen = before.after(&mut observer).unwrap();
        let loopback = seen.interfaces.iter().find(|interface| interface.name == "lo").unwrap();
        // The queue holds seven packets of 542 bytes; the others were sent or dropped.
        let dropped = loopback.qdisc_dropped.unwrap();
        assert!(dropped > 0 && (93..=100).contains(&(loopback.tx_packets + dropped)), "{loopback:?}");
        assert_eq!(loopback.ingress_dropped, None);
        assert!(seen.protocol["Udp.RcvbufErrors"] >= 1, "{:?}", seen.protocol);
    });
}

#[test]
fn bridge_and_its_ports_are_recognized() {
    in_namespace("live::bridge_and_its_ports_are_recognized", || {
        ip("link add br0 type bridge");
        ip("link add va mtu 1400 type veth peer name vb");
        ip("link set va master br0");
        ip("link set va up");
        ip("link set vb up");
        ip("addr add 10.1.2.3/24 dev br0");
        let snapshot = snapshot().unwrap();
        let of = |name: &str| snapshot.interfaces.iter().find(|interface| interface.name == name).unwrap();
        let (bridge, port) = (of("br0"), of("va"));
        assert_eq!(
            (port.driver.as_deref(), port.kind.as_deref(), port.mtu),
            (Some("veth"), Some("veth"), Some(1400))
        );
        assert_eq!((port.master.as_deref(), port.speed_mbps, port.up), (Some("br0"), Some(10_000), true));
        assert!(port.features_on.iter().any(|name| name == "tx-tcp-segmentation"), "{:?}", port.features_on);
        assert_eq!((bridge.driver.as_deref(), bridge.up), (Some("bridge"), false));
        assert_eq!(addresses_of("br0").unwrap(), ["10.1.2.3".parse::<std::net::IpAddr>().unwrap()]);
        let range = mtu_range("va").unwrap().unwrap();
        assert_eq!((range.min, range.max, mtu_range("vx").unwrap()), (Some(68), Some(65_535), None));
        assert!(interface_names().unwrap().contains(&"vb".to_owned()));

        let mut observer = Observer::new().unwrap();
        let before = observer.before().unwrap();
        ip("link del va");
        ip("link add va type veth peer name vb");
        let seen = before.after(&mut observer).unwrap();
        assert!(seen.interfaces.iter().any(|interface| interface.name == "br0" && interface.is_master));
        assert_eq!(seen.interfaces.iter().filter(|interface| interface.name == "va").count(), 2);
    });
}

#[test]
fn every_allowed_core_of_this_machine_is_listed_once() {
    let allowed = netduel_sys::affinity::allowed().unwrap();
    let mut sources = Sources::live().unwrap();
    for interface in snapshot().unwrap().interfaces {
        for address in &interface.addresses {
            let near = Locality::read(&mut sources, None, *address, &allowed).unwrap();
            println!("{address}: {near:?}");
            let mut cores = near.physical.concat();
            cores.sort_unstable();
            assert_eq!(cores, allowed, "{}", interface.name);
            assert!(near.interface.is_some(), "{address}");
            assert!(near.device.is_some() || near.queue_cores.is_empty(), "{near:?}");
        }
    }
}

#[test]
fn devices_filter_and_routes_are_those_of_the_namespace() {
    in_namespace("live::devices_filter_and_routes_are_those_of_the_namespace", || {
        ip("link add va numtxqueues 2 numrxqueues 2 type veth peer name vb");
        ip("addr add 10.1.2.3/24 dev va");
        ip("link set va up");
        ip("link set vb up");
        ip("route add default via 10.1.2.1 dev va");
        ip("route add 10.9.0.0/16 dev vb metric 50 mtu 1400 advmss 300 initcwnd 20 congctl reno");
        let sees_rules =
            nft("add table ip t; add chain ip t c; add rule ip t c accept; add rule ip t c drop");
        let tc = [
            "qdisc add dev va root handle 1: htb",
            "class add dev va parent 1: classid 1:1 htb rate 1mbit",
            "qdisc add dev va parent 1:1 tbf rate 1mbit burst 2000 limit 4000",
        ];
        for words in tc {
            assert!(Command::new("tc").args(words.split(' ')).status().unwrap().success(), "tc {words}");
        }
        let seen = snapshot().unwrap();
        assert_eq!(seen.default_routes, ["va"]);
        let routes: Vec<String> = seen
            .routes
            .iter()
            .filter(|route| route.destination.is_ipv4())
            .map(|one| format!("{}/{} {} {}", one.destination, one.prefix_length, one.interface, one.metric))
            .collect();
        assert_eq!(routes, ["0.0.0.0/0 va 0", "10.1.2.0/24 va 0", "10.9.0.0/16 vb 50"]);
        let of_vb = seen.routes.iter().find(|route| route.metric == 50).unwrap();
        let attributes = of_vb.attributes.iter().flatten().map(|(name, value)| format!("{name} {value}"));
        let attributes: Vec<String> = attributes.collect();
        assert_eq!(
            (of_vb.mtu, attributes),
            (Some(1400), ["advmss 300", "congctl reno", "initcwnd 20"].map(str::to_owned).to_vec())
        );
        if sees_rules {
            assert_eq!(seen.firewall.as_ref().and_then(|filter| filter.nft_rules), Some(2));
        }
        let va = seen.interfaces.iter().find(|interface| interface.name == "va").unwrap();
        assert_eq!(va.device.qdiscs, ["htb", "tbf"]);
        let channels = va.device.channels.unwrap();
        assert_eq!(channels.rx.1.max(channels.combined.1), 2, "{channels:?}");
        // `/sys` still shows the original namespace of the test.
        assert!(va.device.receive_steering.is_empty(), "{:?}", va.device);
        assert!(va.device.bus_address.is_none() && va.device.interrupts.is_empty());
    });
}

#[test]
fn steering_of_queues_is_read_when_sysfs_shows_this_namespace() {
    let prepare = "mount -t sysfs sysfs /sys; ip link add va numrxqueues 2 type veth peer name vb";
    NewNamespace { prepare, ..NewNamespace::default() }.run(
        "live::steering_of_queues_is_read_when_sysfs_shows_this_namespace",
        || {
            let steering = || {
                let seen = snapshot().unwrap();
                let va = seen.interfaces.iter().find(|interface| interface.name == "va").unwrap();
                va.device.receive_steering.clone()
            };
            let seen = steering();
            assert_eq!(seen.len(), 2, "{seen:?}");
            assert!(seen.iter().all(|queue| queue.cores.is_empty() && queue.flows == 0));
            // In a user namespace the kernel refuses this.
            if std::fs::write("/sys/class/net/va/queues/rx-1/rps_cpus", "1").is_ok() {
                assert_eq!(steering()[1].cores, [0]);
            }
        },
    );
}

/// Whether the rules were accepted: not every machine has nft(8) and a kernel with nftables.
fn nft(commands: &str) -> bool {
    let output = Command::new("nft").arg(commands).output();
    let taken = output.as_ref().is_ok_and(|output| output.status.success());
    if !taken {
        skip(format!("no nftables to be read: {output:?}"));
    }
    taken
}
