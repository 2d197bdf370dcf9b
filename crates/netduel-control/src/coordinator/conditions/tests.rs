//! Hosts whose settings, interfaces or routes differ from those at the start.
use std::net::IpAddr;

use netduel_model::plan::spec::Side;
use netduel_model::plan::{Treatment, TreatmentAction, parse};
use netduel_model::snapshot::{
    Channels, Coalescing, KernelSettings, Processor, QueueInterrupt, ReceiveSteering, Rings, Route,
};

use super::*;

fn plan() -> ResolvedPlan {
    let host = |name: &str, last: u8| {
        format!("[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"x\"]\naddresses = [\"10.0.0.{last}\"]\n")
    };
    let text = format!(
        "name = \"p\"\nquestion = \"?\"\n{}{}[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
         [[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n[design]\naa = true\n",
        host("a", 1),
        host("b", 2)
    );
    parse(&text, "p").unwrap()
}

fn interface(name: &str) -> Interface {
    Interface { name: name.to_owned(), mtu: Some(1500), ..Interface::default() }
}

/// `eth0` with the address of the plan, its virtual function below it, and `docker0`, which the plan does not use.
fn snapshot() -> HostSnapshot {
    let device = Device {
        channels: Some(Channels { combined: (4, 8), ..Channels::default() }),
        rings: Some(Rings { rx: (512, 4096), tx: (512, 4096) }),
        coalescing: Some(Coalescing { rx_usecs: 8, adaptive_tx: true, ..Coalescing::default() }),
        rss_entries: vec![32, 32],
        receive_steering: vec![ReceiveSteering::default(); 2],
        transmit_steering: vec![vec![0], vec![1]],
        interrupts: vec![QueueInterrupt { number: 45, cores: vec![1], ..QueueInterrupt::default() }],
        qdiscs: vec!["mq".to_owned(), "fq".to_owned()],
        ..Device::default()
    };
    let eth0 = Interface {
        speed_mbps: Some(10_000),
        qdisc: Some("mq".to_owned()),
        addresses: vec!["10.0.0.1".parse().unwrap()],
        features_on: vec!["tx-tcp-segmentation".to_owned()],
        device,
        ..interface("eth0")
    };
    let vf = Interface { master: Some("eth0".to_owned()), ..interface("vf") };
    let sysctls = [("net.ipv4.tcp_sack", "1"), (NO_SETTINGS[0], "reno cubic"), (NO_SETTINGS[1], "8")];
    HostSnapshot {
        kernel: Some("6.8".to_owned()),
        build: Some("a1".to_owned()),
        cores: 4,
        processor: Some(Processor { governor: Some("performance".to_owned()), ..Processor::default() }),
        kernel_settings: Some(kernel_settings("madvise", "on")),
        interfaces: vec![eth0, vf, interface("docker0")],
        sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        irqbalance: Some(false),
        ..HostSnapshot::default()
    }
}

fn kernel_settings(huge_pages: &str, smt: &str) -> KernelSettings {
    let text = |text: &str| Some(text.to_owned());
    KernelSettings { transparent_huge_pages: text(huge_pages), smt: text(smt), ..KernelSettings::default() }
}

fn changed(change: impl FnOnce(&mut HostSnapshot)) -> Vec<String> {
    let mut now = snapshot();
    change(&mut now);
    changes(&plan(), &HostName::new("a").unwrap(), &snapshot(), &now)
}

#[test]
fn settings_that_bear_on_results_are_named_with_both_values() {
    assert!(changed(|_| ()).is_empty());
    let all = changed(|now| {
        now.kernel = Some("6.9".to_owned());
        now.build = Some("b2".to_owned());
        now.cores = 2;
        let governor = Some("powersave".to_owned());
        now.processor = Some(Processor { governor, ..Processor::default() });
        now.kernel_settings = Some(kernel_settings("always", "off"));
        now.sysctls.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
        now.interfaces[0].mtu = Some(1300);
        now.interfaces[0].features_on = vec!["rx-gro".to_owned()];
        now.interfaces[0].device.channels = Some(Channels { combined: (2, 8), ..Channels::default() });
        now.interfaces[0].device.rings = Some(Rings { rx: (1024, 4096), tx: (512, 4096) });
        now.interfaces[0].speed_mbps = Some(1_000);
        let device = &mut now.interfaces[0].device;
        device.qdiscs = vec!["tbf".to_owned()];
        device.coalescing =
            Some(Coalescing { rx_usecs: 64, tx_usecs: 9, adaptive_tx: true, ..Coalescing::default() });
        device.rss_entries = vec![64, 0];
        device.receive_steering[1] = ReceiveSteering { cores: vec![0, 2], flows: 4096 };
        device.transmit_steering[1].clear();
        device.interrupts[0].cores = vec![3];
        now.interfaces[1].mtu = Some(1400);
    });
    assert_eq!(
        all,
        [
            "kernel is 6.9 instead of 6.8",
            "build of netduel is b2 instead of a1",
            "number of cores online is 2 instead of 4",
            "governor of the clock rate is powersave instead of performance",
            "setting of transparent huge pages is always instead of madvise",
            "SMT is off instead of on",
            "net.ipv4.tcp_sack is 0 instead of 1",
            "MTU of eth0 is 1300 instead of 1500",
            "tx-tcp-segmentation of eth0 is off instead of on",
            "rx-gro of eth0 is on instead of off",
            "number of combined channels of eth0 is 2 instead of 4",
            "number of descriptors of the receive ring of eth0 is 1024 instead of 512",
            "qdisc of eth0 is tbf instead of mq, fq",
            "rx-usecs of eth0 is 64 instead of 8",
            "number of RSS entries of queue 0 of eth0 is 64 instead of 32",
            "RPS of queue 1 of eth0 is 0,2 instead of off",
            "RFS of queue 1 of eth0 is 4096 instead of 0",
            "XPS of queue 1 of eth0 is off instead of 1",
            "speed (Mbit/s) of eth0 is 1000 instead of 10000",
            "core of interrupt 45 of eth0 is 3 instead of 1",
            "MTU of vf is 1400 instead of 1500",
        ]
    );
}

#[test]
fn what_the_plan_does_not_use_may_change() {
    let none = changed(|now| {
        now.interfaces[2].mtu = Some(9000);
        now.sysctls.insert(NO_SETTINGS[0].to_owned(), "reno cubic bbr".to_owned());
        now.sysctls.insert(NO_SETTINGS[1].to_owned(), "12".to_owned());
        now.interfaces[0].addresses.clear();
        now.hostname = Some("other".to_owned());
    });
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn values_that_another_part_of_the_system_adapts_are_no_settings() {
    let none = changed(|now| {
        now.irqbalance = Some(true);
        let device = &mut now.interfaces[0].device;
        device.interrupts[0].cores = vec![3];
        device.coalescing.as_mut().unwrap().tx_usecs = 64;
        // The kernel did not list the tree; its root is the same.
        device.qdiscs.clear();
    });
    assert!(none.is_empty(), "{none:?}");
    let mut treated = plan();
    let action = TreatmentAction::Mtu { interface: "eth0".to_owned(), mtu: 1400 };
    treated.arms[0].treatments.push(Treatment { action, on: Side::Client });
    let mut now = snapshot();
    now.interfaces[0].device.interrupts[0].cores = vec![3];
    let none = changes(&treated, &HostName::new("a").unwrap(), &snapshot(), &now);
    assert!(none.is_empty(), "its device may have requested the interrupt anew: {none:?}");
}

#[test]
fn every_interface_counts_where_none_is_known_to_be_used() {
    let then = HostSnapshot { interfaces: vec![interface("va")], ..HostSnapshot::default() };
    let mut now = then.clone();
    now.interfaces[0].mtu = Some(1300);
    // The plan has no address of a host that it does not name.
    let all = changes(&plan(), &HostName::new("c").unwrap(), &then, &now);
    assert_eq!(all, ["MTU of va is 1300 instead of 1500"]);
}

#[test]
fn what_a_host_did_not_report_is_no_change() {
    let none = changed(|now| {
        now.sysctls.clear();
        (now.kernel, now.build, now.processor, now.cores) = (None, None, None, 0);
        now.interfaces[0].mtu = None;
        now.interfaces[0].device.channels = None;
    });
    assert!(none.is_empty(), "{none:?}");
}

fn moved_by(change: impl FnOnce(&mut HostSnapshot)) -> Vec<String> {
    let mut now = snapshot();
    change(&mut now);
    moved(&plan(), &HostName::new("a").unwrap(), &snapshot(), &now)
}

#[test]
fn interface_of_the_path_that_is_gone_new_down_or_elsewhere_is_a_change() {
    assert!(moved_by(|_| ()).is_empty());
    assert_eq!(moved_by(|now| drop(now.interfaces.remove(1))), ["vf is gone"]);
    let other = Interface { master: Some("eth0".to_owned()), ..interface("vf2") };
    assert_eq!(moved_by(|now| now.interfaces.push(other)), ["vf2 was added below eth0"]);
    assert_eq!(moved_by(|now| now.interfaces[1].up = true), ["vf is up instead of down"]);
    let freed = moved_by(|now| now.interfaces[1].master = None);
    assert_eq!(freed, ["interface above vf is none instead of eth0"]);
    // The plan does not use it.
    assert!(moved_by(|now| drop(now.interfaces.remove(2))).is_empty());
}

#[test]
fn lost_carrier_of_an_interface_of_the_path_is_a_movement() {
    let host = HostName::new("a").unwrap();
    let mut then = snapshot();
    for interface in &mut then.interfaces {
        (interface.up, interface.carrier) = (true, Some(true));
    }
    let mut now = then.clone();
    now.interfaces[0].carrier = Some(false);
    // The plan does not use it.
    now.interfaces[2].carrier = Some(false);
    // It is down, so it has no carrier.
    (now.interfaces[1].up, now.interfaces[1].carrier) = (false, Some(false));
    let expected = ["carrier of eth0 is off instead of on", "vf is down instead of up"];
    let differences = differences(&plan(), &host, &BTreeMap::from([(host.clone(), then)]), &now);
    assert_eq!((&differences.all[..], differences.has_movement), (&expected.map(str::to_owned)[..], true));
}

#[test]
fn interface_that_was_added_anew_is_a_movement_and_a_setting_is_none() {
    let host = HostName::new("a").unwrap();
    let then = BTreeMap::from([(host.clone(), snapshot())]);
    let of = |change: fn(&mut HostSnapshot)| {
        let mut now = snapshot();
        change(&mut now);
        differences(&plan(), &host, &then, &now).has_movement
    };
    assert!(!of(|now| now.interfaces[1].mtu = Some(1400)));
    assert!(of(|now| now.interfaces[1].index = 9));
    assert!(!of(|now| now.interfaces[2].index = 9), "the plan does not use it");
}

#[test]
fn other_members_of_a_vrf_or_of_open_vswitch_are_not_used() {
    let host = HostName::new("a").unwrap();
    for kind in GROUPS {
        let mut then = snapshot();
        let above = Some("above".to_owned());
        then.interfaces[0].master.clone_from(&above);
        then.interfaces.push(Interface { kind: Some(kind.to_owned()), ..interface("above") });
        then.interfaces.push(Interface { master: above.clone(), ..interface("eth7") });
        let mut now = then.clone();
        now.interfaces.pop();
        now.interfaces.push(Interface { master: above.clone(), ..interface("eth8") });
        assert!(moved(&plan(), &host, &then, &now).is_empty(), "{kind}");
        assert!(!known_to_be_used(&plan(), &host, &then).contains("eth7"), "{kind}");
        now.interfaces[0].master = None;
        assert_eq!(moved(&plan(), &host, &then, &now), ["interface above eth0 is none instead of above"]);
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The network of the plan's addresses, on `eth0`, and a default route.
fn routes_by_eth0() -> Vec<Route> {
    let network = Route {
        destination: address("10.0.0.0"),
        prefix_length: 24,
        interface: "eth0".to_owned(),
        metric: 100,
        gateway: None,
        source: None,
        mtu: None,
    };
    let gateway = Some(address("10.0.0.254"));
    let default = Route { destination: address("0.0.0.0"), prefix_length: 0, gateway, ..network.clone() };
    vec![network, default]
}

fn rerouted_by(change: impl FnOnce(&mut HostSnapshot)) -> Vec<String> {
    let host = HostName::new("a").unwrap();
    let then = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    let mut now = then.clone();
    change(&mut now);
    routes::changed(&plan(), &host, &BTreeMap::from([(host.clone(), then)]), &now)
}

#[test]
fn other_next_hop_to_the_other_end_is_named() {
    let changed = |is: &str| [format!("route to 10.0.0.2 is {is} instead of by eth0")];
    let tunnel = |now: &mut HostSnapshot| {
        let gateway = Some(address("10.9.0.1"));
        let own = now.routes[0].clone();
        let (destination, interface) = (address("10.0.0.2"), "wg0".to_owned());
        now.routes.push(Route { destination, prefix_length: 32, interface, gateway, ..own });
    };
    assert_eq!(rerouted_by(tunnel), changed("by wg0 via 10.9.0.1"));
    assert_eq!(rerouted_by(|now| drop(now.routes.remove(0))), changed("by eth0 via 10.0.0.254"));
    assert_eq!(rerouted_by(|now| now.routes[0].mtu = Some(1400)), changed("by eth0 with MTU 1400"));
    let source = Some(address("10.0.0.9"));
    assert_eq!(rerouted_by(|now| now.routes[0].source = source), changed("by eth0 from 10.0.0.9"));
    let two = rerouted_by(|now| {
        let own = now.routes[0].clone();
        now.routes.push(Route { interface: "eth1".to_owned(), ..own });
    });
    assert_eq!(two, changed("by eth0 and by eth1"));
    assert!(rerouted_by(|now| now.routes.clear()).is_empty(), "the list may have failed");
}

#[test]
fn route_that_traffic_does_not_take_or_that_leads_the_same_way_may_change() {
    let unchanged: [fn(&mut HostSnapshot); 5] = [
        |_| (),
        |now| now.routes[0].metric = 20_100,
        // The kernel writes it after a change of the MTU that was undone.
        |now| now.routes[0].mtu = Some(1500),
        |now| now.routes[1].gateway = None,
        |now| {
            let destination = address("172.17.0.0");
            let own = now.routes[0].clone();
            now.routes.push(Route { destination, interface: "docker0".to_owned(), ..own });
        },
    ];
    for change in unchanged {
        assert_eq!(rerouted_by(change), [""; 0]);
    }
    // A device that came back with another name.
    let renamed = rerouted_by(|now| {
        now.interfaces[0].name = "eth9".to_owned();
        for route in &mut now.routes {
            route.interface = "eth9".to_owned();
        }
    });
    assert_eq!(renamed, ["route to 10.0.0.2 is by eth9 instead of by eth0"], "nothing identifies it");
    let host = HostName::new("a").unwrap();
    let mut then = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    then.interfaces[0].mac = Some("02:00:00:00:00:01".to_owned());
    let mut now = then.clone();
    now.interfaces[0].name = "eth9".to_owned();
    for route in &mut now.routes {
        route.interface = "eth9".to_owned();
    }
    assert!(routes::changed(&plan(), &host, &BTreeMap::from([(host.clone(), then)]), &now).is_empty());
}

#[test]
fn server_is_compared_by_the_addresses_of_its_client() {
    let mut plan = plan();
    let (client, server) = (HostName::new("a").unwrap(), HostName::new("b").unwrap());
    plan.hosts.get_mut(&client).unwrap().addresses.clear();
    let of_client = HostSnapshot { default_routes: vec!["eth0".to_owned()], ..snapshot() };
    let mut of_server = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    of_server.interfaces[0].addresses = vec![address("10.0.0.2")];
    let mut now = of_server.clone();
    now.routes[0].interface = "eth1".to_owned();
    let then = BTreeMap::from([(client, of_client), (server.clone(), of_server)]);
    let expected = ["route to 10.0.0.1 is by eth1 instead of by eth0"];
    assert_eq!(routes::changed(&plan, &server, &then, &now), expected);
}

#[test]
fn device_that_comes_back_with_another_name_is_the_same() {
    let mut then = snapshot();
    then.interfaces[1].device.bus_address = Some("0001:00:02.0".to_owned());
    then.interfaces[1].mac = Some("02:00:00:00:00:01".to_owned());
    let host = HostName::new("a").unwrap();
    for is_at_its_place in [true, false] {
        let mut now = then.clone();
        let vf = &mut now.interfaces[1];
        (vf.name, vf.mtu) = ("eth1".to_owned(), Some(1400));
        if is_at_its_place {
            vf.mac = Some("02:00:00:00:00:02".to_owned());
        } else {
            vf.device.bus_address = Some("0002:00:02.0".to_owned());
        }
        assert!(moved(&plan(), &host, &then, &now).is_empty());
        assert_eq!(changes(&plan(), &host, &then, &now), ["MTU of vf is 1400 instead of 1500"]);
    }
}

#[test]
fn one_returned_port_does_not_stand_for_two_with_its_address() {
    let mut then = snapshot();
    for port in ["ens1f0", "ens1f1"] {
        let mac = Some("02:00:00:00:00:01".to_owned());
        then.interfaces.push(Interface { master: Some("eth0".to_owned()), mac, ..interface(port) });
    }
    let mut now = then.clone();
    now.interfaces.retain(|one| !one.name.starts_with("ens"));
    let returned = then.interfaces.last().unwrap().clone();
    now.interfaces.push(Interface { name: "eth4".to_owned(), ..returned });
    let host = HostName::new("a").unwrap();
    let expected = ["ens1f0 is gone", "ens1f1 is gone", "eth4 was added below eth0"];
    assert_eq!(moved(&plan(), &host, &then, &now), expected);
}

#[test]
fn interfaces_that_may_come_and_go_are_no_change() {
    let host = HostName::new("a").unwrap();
    // A VM is started beside the NIC in a bridge, and another one ends.
    let tap = |name: &str| Interface {
        kind: Some("tun".to_owned()),
        master: Some("eth0".to_owned()),
        ..interface(name)
    };
    let mut then = snapshot();
    then.interfaces[0].kind = Some("bridge".to_owned());
    let mut now = then.clone();
    then.interfaces.push(tap("tap1"));
    now.interfaces.push(tap("tap2"));
    assert!(moved(&plan(), &host, &then, &now).is_empty());
    now.interfaces.remove(1);
    assert_eq!(moved(&plan(), &host, &then, &now), ["vf is gone"]);
    // No interface is known to be used.
    let other = HostName::new("c").unwrap();
    assert!(moved(&plan(), &other, &then, &now).is_empty());
    // The provider adds and removes the virtual function.
    let mut switched = plan();
    let action = TreatmentAction::AzureNic { nic: "n".to_owned(), resource_group: None, accelerated: true };
    switched.arms[0].treatments.push(Treatment { action, on: Side::Client });
    assert!(moved(&switched, &host, &then, &now).is_empty());
}
