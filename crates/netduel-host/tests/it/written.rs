//! Hand-written trees that imitate other machines: many cores, old kernels, devices that are added and removed.
use std::fmt::Write;

use netduel_host::{Observer, snapshot_of};
use netduel_model::observation::{InterfaceDelta, Observation, Presence};
use netduel_sys::ethtool::Rss;

use crate::fixture::{Host, Link};

const CORES: u64 = 64;

/// `/proc/interrupts` of a guest on Hyper-V with 64 cores and a ConnectX function, after `round` rounds.
fn interrupts(round: u64) -> String {
    let mut text = " ".repeat(11);
    (0..CORES).for_each(|core| write!(text, "CPU{core:<8}").unwrap());
    text.push('\n');
    for queue in 0..CORES {
        write!(text, "{:>4}:", 24 + queue).unwrap();
        (0..CORES).for_each(|core| {
            write!(text, "{:>11}", if core == queue { round * (queue + 1) } else { 0 }).unwrap();
        });
        writeln!(
            text,
            "  Hyper-V PCIe MSI {}-edge      mlx5_comp{queue}@pci:7870:00:02.0",
            4_194_304 + queue
        )
        .unwrap();
    }
    for (label, words) in [("HYP", "Hypervisor callback interrupts"), ("HVS", "Hyper-V stimer0 interrupts")] {
        write!(text, "{label:>4}:").unwrap();
        (0..CORES).for_each(|_| write!(text, "{:>11}", round * 10).unwrap());
        writeln!(text, "   {words}").unwrap();
    }
    writeln!(text, " ERR: {round:>10}\n MIS:          0").unwrap();
    text
}

fn stat(round: u64) -> String {
    let mut text = "cpu  1 2 3 4 5 6 7 8 9 0\n".to_owned();
    for core in 0..CORES {
        writeln!(
            text,
            "cpu{core} {} 0 {} {} 0 0 {} {} 0 0",
            round,
            2 * round,
            100 * round,
            core * round,
            round
        )
        .unwrap();
    }
    writeln!(text, "intr 5 0 0\nctxt {}", 1000 * round).unwrap();
    text
}

fn azure(host: &Host, round: u64) {
    host.write("proc/stat", &stat(round));
    host.write("proc/interrupts", &interrupts(round));
    // A kernel of before 2018: nine columns, without the core.
    let mut softnet = String::new();
    (0..CORES).for_each(|core| writeln!(softnet, "{:08x} {round:08x} 0 0 0 0 0 0 0", core * round).unwrap());
    host.write("proc/thread-self/net/softnet_stat", &softnet);
}

#[test]
fn machine_of_64_cores_is_read_core_by_core() {
    let host = Host::new();
    azure(&host, 1);
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let before = observer.before().unwrap();
    azure(&host, 3);
    let seen = before.after(&mut observer).unwrap();
    assert_eq!(seen.cores.len(), 64);
    let last = seen.cores[63];
    assert_eq!((last.core, last.softirq_ns / last.user_ns, last.idle_ns / last.user_ns), (63, 63, 100));
    assert_eq!(last.steal_ns, last.user_ns);
    assert_eq!(seen.interrupts["mlx5_comp63@pci:7870:00:02.0"], 2 * 64);
    assert_eq!(seen.interrupts["Hypervisor callback interrupts"], 2 * 10 * 64);
    assert_eq!(seen.interrupts["ERR"], 2);
    assert_eq!((seen.interrupts_by_core[0], seen.interrupts_by_core[63]), (2 + 40, 128 + 40));
    assert_eq!(seen.context_switches, Some(2000));
    let softnet = seen.softnet[63];
    assert_eq!((softnet.core, softnet.processed, softnet.dropped, softnet.received_rps), (63, 126, 2, 0));
}

#[test]
fn dmi_names_the_platform_in_its_own_words() {
    let host = Host::new();
    host.write("sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
    host.write("sys/class/dmi/id/product_name", "Virtual Machine\n");
    host.write("sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
    let seen = snapshot_of(&mut host.sources()).unwrap();
    assert_eq!(
        seen.platform.as_deref(),
        Some("Microsoft Corporation / Virtual Machine / 7783-7084-3265-9085-8269-3286-77")
    );
}

#[test]
fn host_without_information_has_absent_fields_and_no_error() {
    let host = Host::new();
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let seen = observer.before().unwrap().after(&mut observer).unwrap();
    assert_eq!((seen.context_switches, seen.cores.len(), seen.softnet.len()), (None, 0, 0));
    assert!(seen.interrupts.is_empty() && seen.interrupts_by_core.is_empty() && seen.protocol.is_empty());
    assert!(seen.interfaces.is_empty() && seen.driver.is_empty());
    let snapshot = snapshot_of(&mut host.sources()).unwrap();
    assert_eq!(
        (snapshot.hostname, snapshot.platform, snapshot.memory_bytes, snapshot.cores),
        (None, None, None, 0)
    );
    assert!(snapshot.sysctls.is_empty());
}

/// The observation when the links change from one list to another.
fn between(before: &[Link], after: &[Link]) -> Observation {
    let host = Host::new();
    host.set_links(before);
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let first = observer.before().unwrap();
    host.set_links(after);
    first.after(&mut observer).unwrap()
}

fn link(index: u32, name: &'static str, packets: u64) -> Link {
    let counters = [packets, packets, packets * 100, packets * 100, 0, 0, 0, 0];
    Link { index, name, counters, ..Link::default() }
}

fn interfaces(seen: &Observation) -> Vec<(&str, u32, Presence, u64)> {
    let words = |delta: &InterfaceDelta| (delta.index, delta.presence, delta.rx_packets);
    seen.interfaces
        .iter()
        .map(|delta| (delta.name.as_str(), words(delta)))
        .map(|(n, (i, p, r))| (n, i, p, r))
        .collect()
}

#[test]
fn replaced_device_of_the_same_name_is_two_devices() {
    let seen =
        between(&[link(2, "eth0", 10), link(3, "vf0", 500)], &[link(2, "eth0", 11), link(7, "vf0", 20)]);
    assert_eq!(
        interfaces(&seen),
        [
            ("eth0", 2, Presence::Unchanged, 1),
            ("vf0", 7, Presence::Added, 20),
            ("vf0", 3, Presence::Removed, 0)
        ]
    );
}

#[test]
fn renamed_device_stays_the_same_device() {
    let seen = between(&[link(3, "eth1", 5)], &[link(3, "enP30832s1", 9)]);
    assert_eq!(interfaces(&seen), [("enP30832s1", 3, Presence::Unchanged, 4)]);
}

#[test]
fn counters_that_are_set_back_are_those_since_then_and_the_device_counts_as_new() {
    let seen = between(&[link(3, "vf0", 5000)], &[link(3, "vf0", 30)]);
    assert_eq!(interfaces(&seen), [("vf0", 3, Presence::Added, 30)]);
    assert_eq!(seen.interfaces[0].rx_bytes, 3000);
}

#[test]
fn drops_that_step_back_are_no_event() {
    let mut first = link(3, "vf0", 5);
    first.counters[6] = 9;
    let mut last = link(3, "vf0", 8);
    last.counters[6] = 8;
    let seen = between(&[first], &[last]);
    assert_eq!(interfaces(&seen), [("vf0", 3, Presence::Unchanged, 3)]);
    assert_eq!(seen.interfaces[0].rx_dropped, 0);
}

#[test]
fn interface_stays_a_master_when_its_last_port_is_removed() {
    let port = |packets| Link { master: 2, ..link(3, "vf0", packets) };
    let seen = between(&[link(2, "eth0", 10), port(10)], &[link(2, "eth0", 20)]);
    assert!(seen.interfaces[0].is_master);
    assert_eq!(
        (seen.interfaces[1].presence, seen.interfaces[1].master.as_deref()),
        (Presence::Removed, Some("eth0"))
    );
}

#[test]
fn driver_counters_are_matched_by_name_when_queues_come() {
    let host = Host::new();
    host.set_links(&[link(1, "lo", 0), link(3, "eth0", 0)]);
    host.set_statistics("eth0", &[("rx_packets", 100), ("vf_tx_dropped", 3), ("gauge", 50)]);
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let before = observer.before().unwrap();
    host.set_statistics(
        "eth0",
        &[("gauge", 20), ("rx_packets", 130), ("queue_1_rx", 4), ("vf_tx_dropped", 3)],
    );
    let seen = before.after(&mut observer).unwrap();
    let eth0: Vec<(&str, i64)> =
        seen.driver["eth0"].iter().map(|(name, change)| (name.as_str(), *change)).collect();
    assert_eq!(eth0, [("gauge", -30), ("queue_1_rx", 4), ("rx_packets", 30)]);
    assert_eq!(seen.driver.len(), 1);
    // The names are remembered, and the next trial starts from the new ones.
    let seen = observer.before().unwrap().after(&mut observer).unwrap();
    assert!(seen.driver.is_empty());
}

#[test]
fn new_device_under_an_old_name_counts_from_zero() {
    let host = Host::new();
    host.set_links(&[link(3, "eth0", 0)]);
    host.set_statistics("eth0", &[("rx_packets", 100)]);
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let before = observer.before().unwrap();
    host.set_links(&[link(4, "eth0", 0)]);
    host.set_statistics("eth0", &[("rx_packets", 7)]);
    let seen = before.after(&mut observer).unwrap();
    assert_eq!(seen.driver["eth0"]["rx_packets"], 7);
}

#[test]
fn before_linux_5_14_containers_change_nothing_of_what_a_host_is_and_a_nic_still_has_a_bus() {
    let host = Host::new();
    let nic = Link { index: 2, name: "eth0", mac: Some([2, 0, 0, 0, 0, 1]), ..Link::default() };
    let pair = |index: u32, name: &'static str| Link { index, name, kind: Some("veth"), ..Link::default() };
    host.set_driver("veth1", "veth", "");
    host.set_driver("veth2", "veth", "");
    host.set_driver("eth0", "mlx5_core", "0002:00:02.0");
    host.write("sys/bus/pci/devices/0002:00:02.0/vendor", "0x15b3\n");
    host.write("sys/bus/pci/devices/0002:00:02.0/device", "0x1016\n");
    let mut observer = Observer::with_sources(host.sources()).unwrap();
    let mut seen = |links: &[Link]| {
        host.set_links(links);
        observer.before().unwrap().after(&mut observer).unwrap()
    };
    let alone = seen(std::slice::from_ref(&nic));
    let identity = alone.identity.unwrap();
    assert_eq!(identity.nics.len(), 1);
    assert_eq!(
        (identity.nics[0].driver.as_str(), identity.nics[0].model.as_deref()),
        ("mlx5_core", Some("15b3:1016"))
    );
    let bus = |name: &str| alone.interfaces.iter().find(|one| one.name == name).unwrap().bus.clone();
    assert_eq!(bus("eth0").as_deref(), Some("pci"));
    let beside = seen(&[nic, pair(7, "veth1"), pair(8, "veth2")]);
    assert_eq!(beside.identity.unwrap().nics, identity.nics);
}

#[test]
fn interface_below_a_vlan_is_named_and_the_other_end_of_a_veth_is_not_below_it() {
    let host = Host::new();
    let above = |index, name, kind| Link { index, name, kind: Some(kind), lower: 2, ..Link::default() };
    let nic = Link { index: 2, name: "eth0", ..Link::default() };
    host.set_links(&[nic, above(3, "eth0.100", "vlan"), above(4, "veth1", "veth")]);
    let seen = snapshot_of(&mut host.sources()).unwrap();
    let lower: Vec<Option<&str>> = seen.interfaces.iter().map(|one| one.lower.as_deref()).collect();
    assert_eq!(lower, [None, Some("eth0"), None]);
}

#[test]
fn rss_table_with_an_impossible_queue_is_omitted() {
    let host = Host::new();
    host.set_links(&[Link { index: 2, name: "eth0", ..Link::default() }]);
    let entries = |indirection: &[u32]| {
        let rss = Rss { indirection: indirection.to_vec(), ..Rss::default() };
        host.kernel.lock().unwrap().rss.insert("eth0".to_owned(), rss);
        let seen = snapshot_of(&mut host.sources()).unwrap();
        seen.interfaces.iter().find(|one| one.name == "eth0").unwrap().device.rss_entries.clone()
    };
    assert_eq!(entries(&[0, 2, 0]), [2, 0, 1]);
    assert!(entries(&[0, u32::MAX]).is_empty());
}
