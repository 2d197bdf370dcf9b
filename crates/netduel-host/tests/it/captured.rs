//! A tree of files captured on a guest with two cores: a bridge `eth0` over `syn0` and `vf0`. Between its two halves 50
//! datagrams went over the loopback, `syn0` and its peer were deleted, and a pair `late0`, `late1` was made.
use netduel_host::{Observer, snapshot_of};
use netduel_model::observation::Presence;
use netduel_sys::ethtool::Feature;

use crate::fixture::Host;

#[test]
fn snapshot_contains_the_facts_of_the_tree() {
    let host = Host::new();
    host.take("virtio-2-cores/before");
    {
        let feature =
            |name: &str, active| Feature { name: name.to_owned(), fixed: false, requested: active, active };
        let mut kernel = host.kernel.lock().unwrap();
        kernel.driver.insert("vf0".to_owned(), "veth".to_owned());
        kernel.speed.insert("vf0".to_owned(), 10_000);
        kernel
            .features
            .insert("vf0".to_owned(), vec![feature("rx-gro", false), feature("tx-tcp-segmentation", true)]);
    }
    let seen = snapshot_of(&mut host.sources()).unwrap();
    assert_eq!(seen.hostname.as_deref(), Some("guest-a"));
    assert_eq!((seen.kernel.as_deref(), seen.machine.as_deref()), (Some("6.18.44"), Some("x86_64")));
    assert_eq!(seen.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    assert_eq!(seen.boot_id.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
    assert_eq!((seen.netns, seen.cores), (Some(4_026_531_833), 2));
    assert_eq!((seen.cpu_model.as_deref(), seen.memory_bytes), (Some("AMD EPYC"), Some(24_684_084 * 1024)));
    assert_eq!(seen.platform, None);
    assert_eq!(seen.sysctls["net.ipv4.tcp_rmem"], "4096 131072 33554432");
    assert_eq!(seen.sysctls["net.ipv4.tcp_available_congestion_control"], "reno bbr cubic");
    assert!(!seen.sysctls.contains_key("net.core.default_qdisc"));

    let of = |name: &str| seen.interfaces.iter().find(|interface| interface.name == name).unwrap();
    let (bridge, vf) = (of("eth0"), of("vf0"));
    assert_eq!((bridge.kind.as_deref(), bridge.mac.as_deref()), (Some("bridge"), Some("02:00:00:00:00:0a")));
    let addresses: Vec<String> = bridge.addresses.iter().map(ToString::to_string).collect();
    assert!(addresses.starts_with(&["10.0.0.1".to_owned(), "2001:db8::1".to_owned()]), "{addresses:?}");
    assert_eq!((bridge.driver.as_deref(), bridge.speed_mbps, bridge.up), (None, None, true));
    assert_eq!((vf.kind.as_deref(), vf.master.as_deref()), (Some("veth"), Some("eth0")));
    assert_eq!((vf.driver.as_deref(), vf.speed_mbps, vf.carrier), (Some("veth"), Some(10_000), Some(true)));
    assert_eq!(vf.features_on, ["tx-tcp-segmentation"]);
    assert_eq!(
        (vf.qdisc.as_deref(), of("vvf").mtu, of("lo").mac.as_deref()),
        (Some("noqueue"), Some(9000), None)
    );
    assert!(vf.tx_queues.is_some_and(|queues| queues > 0) && vf.rx_queues.is_some_and(|queues| queues > 0));
}

#[test]
fn observation_contains_the_differences_of_the_readings() {
    let host = Host::new();
    host.take("virtio-2-cores/before");
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let before = observer.before().unwrap();
    host.take("virtio-2-cores/after");
    let seen = before.after(&mut observer).unwrap();

    let of = |name: &str| seen.interfaces.iter().find(|interface| interface.name == name).unwrap();
    let loopback = of("lo");
    // 50 datagrams of 100 bytes, each with 8 bytes of UDP and 20 of IPv4; the loopback counts no Ethernet header.
    assert_eq!((loopback.rx_packets, loopback.rx_bytes, loopback.tx_bytes), (50, 50 * 128, 50 * 128));
    assert_eq!(seen.protocol["Udp.InDatagrams"], 50);
    assert_eq!(seen.protocol["Udp.OutDatagrams"], 50);
    assert!(!seen.protocol.contains_key("Udp.InErrors"));
    assert!(of("eth0").is_master && !of("vf0").is_master);
    assert_eq!(of("vf0").master.as_deref(), Some("eth0"));
    let presence = |name: &str| of(name).presence;
    assert_eq!(
        [presence("vf0"), presence("syn0"), presence("vsyn")],
        [Presence::Unchanged, Presence::Removed, Presence::Removed]
    );
    assert_eq!([presence("late0"), presence("late1")], [Presence::Added, Presence::Added]);
    assert_eq!(of("syn0").master.as_deref(), Some("eth0"));

    assert_eq!(seen.cores.len(), 2);
    assert!(seen.cores.iter().any(|core| core.total_ns(0) > 0));
    assert!(seen.context_switches.is_some_and(|switches| switches > 0));
    assert!(seen.interrupts.contains_key("Local timer interrupts"), "{:?}", seen.interrupts);
    assert_eq!(seen.interrupts_by_core.len(), 2);
    assert_eq!(seen.interrupts_by_core.iter().sum::<u64>(), seen.interrupts.values().sum::<u64>());
    assert!(seen.softnet.iter().map(|core| core.processed).sum::<u64>() >= 50);
    assert!(seen.driver.is_empty());
}

#[test]
fn reused_observer_does_not_mix_its_readings() {
    let host = Host::new();
    host.take("virtio-2-cores/after");
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    for _ in 0..3 {
        let seen = observer.before().unwrap().after(&mut observer).unwrap();
        assert!(seen.protocol.is_empty() && seen.interrupts.is_empty(), "{seen:?}");
        assert!(seen.interfaces.iter().all(|interface| interface.presence == Presence::Unchanged));
    }
    // After a shorter file nothing of the longer one remains.
    host.write("proc/interrupts", "     CPU0       CPU1\n 24:   7   0  IO-APIC   5-edge      short\n");
    let before = observer.before().unwrap();
    host.write("proc/interrupts", "     CPU0       CPU1\n 24:   9   0  IO-APIC   5-edge      short\n");
    let seen = before.after(&mut observer).unwrap();
    assert_eq!(seen.interrupts.into_iter().collect::<Vec<_>>(), [("short".to_owned(), 2)]);
}
