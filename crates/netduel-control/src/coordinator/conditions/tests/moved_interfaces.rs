//! Interfaces of the path that are gone, new, down or elsewhere.
use super::*;

fn found(plan: &ResolvedPlan, host: &HostName, then: &HostSnapshot, now: &HostSnapshot) -> Found {
    compared(plan, host, then, now, interfaces::moved)
}

fn moved(plan: &ResolvedPlan, host: &HostName, then: &HostSnapshot, now: &HostSnapshot) -> Vec<String> {
    let found = found(plan, host, then, now);
    assert!(found.possible.is_empty(), "{found:?}");
    found.certain
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
    let hosts = BTreeMap::from([(host.clone(), then)]);
    let differences = differences(&plan(), &host, &hosts, &now, &Translated::new());
    assert_eq!((&differences.all[..], differences.has_movement), (&expected.map(str::to_owned)[..], true));
}

#[test]
fn interface_that_was_added_anew_is_a_movement_and_a_setting_is_none() {
    let host = HostName::new("a").unwrap();
    let then = BTreeMap::from([(host.clone(), snapshot())]);
    let of = |change: fn(&mut HostSnapshot)| {
        let mut now = snapshot();
        change(&mut now);
        differences(&plan(), &host, &then, &now, &Translated::new()).has_movement
    };
    assert!(!of(|now| now.interfaces[1].mtu = Some(1400)));
    assert!(of(|now| now.interfaces[1].index = 9));
    assert!(!of(|now| now.interfaces[2].index = 9), "the plan does not use it");
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
    let nic = "n".to_owned();
    let switched = treated(TreatmentAction::AzureNic { nic, resource_group: None, accelerated: true });
    assert!(moved(&switched, &host, &then, &now).is_empty());
}

fn of_kind(name: &str, kind: &str, master: Option<&str>) -> Interface {
    Interface { kind: Some(kind.to_owned()), master: master.map(str::to_owned), ..interface(name) }
}

fn hardware(name: &str, master: &str) -> Interface {
    Interface { master: Some(master.to_owned()), carrier: Some(true), up: true, ..interface(name) }
}

/// An interface of this kind with the address of the plan.
fn with_address(name: &str, kind: &str) -> Interface {
    let addresses = vec!["10.0.0.1".parse().unwrap()];
    Interface { addresses, carrier: Some(true), up: true, ..of_kind(name, kind, None) }
}

fn host_of(interfaces: Vec<Interface>) -> HostSnapshot {
    HostSnapshot { interfaces, routes_listed: Some(true), ..HostSnapshot::default() }
}

/// What is found when an interface loses its carrier, and when it is gone.
fn lost_and_gone(then: &HostSnapshot, name: &str) -> [Found; 2] {
    let mut lost = then.clone();
    let interface = lost.interfaces.iter_mut().find(|interface| interface.name == name).unwrap();
    interface.carrier = Some(false);
    let mut gone = then.clone();
    gone.interfaces.retain(|interface| interface.name != name);
    [lost, gone].map(|now| found(&plan(), &host_a(), then, &now))
}

fn certain(text: &str) -> Found {
    Found { certain: vec![text.to_owned()], ..Found::default() }
}

fn possible(text: &str) -> Found {
    Found { possible: vec![text.to_owned()], ..Found::default() }
}

#[test]
fn other_members_of_a_vrf_are_not_used() {
    let mut then = snapshot();
    let above = Some("above".to_owned());
    then.interfaces[0].master.clone_from(&above);
    then.interfaces.push(of_kind("above", "vrf", None));
    then.interfaces.push(hardware("eth7", "above"));
    let mut now = then.clone();
    now.interfaces.pop();
    now.interfaces.push(hardware("eth8", "above"));
    assert!(moved(&plan(), &host_a(), &then, &now).is_empty());
    now.interfaces[0].master = None;
    let expected = ["interface above eth0 is none instead of above"];
    assert_eq!(moved(&plan(), &host_a(), &then, &now), expected);
}

#[test]
fn hardware_ports_of_open_vswitch_count_and_software_ports_and_representors_do_not() {
    let representor = Interface { driver: Some("mlx5e_rep".to_owned()), ..hardware("eth0_1", "ovs-system") };
    let mut then = host_of(vec![
        with_address("br-ex", "openvswitch"),
        of_kind("ovs-system", "openvswitch", None),
        hardware("eth0", "ovs-system"),
        representor,
        of_kind("tap1", "tun", Some("ovs-system")),
    ]);
    for name in ["eth0_1", "tap1"] {
        assert_eq!(lost_and_gone(&then, name), [Found::default(), Found::default()], "{name}");
    }
    let expected = [certain("carrier of eth0 is off instead of on"), certain("eth0 is gone")];
    assert_eq!(lost_and_gone(&then, "eth0"), expected);
    // Of two ports that of the bridge is not known.
    then.interfaces.push(hardware("eth7", "ovs-system"));
    let expected = [possible("carrier of eth7 is off instead of on"), possible("eth7 is gone")];
    assert_eq!(lost_and_gone(&then, "eth7"), expected);
    let mut now = then.clone();
    now.interfaces.push(hardware("eth8", "ovs-system"));
    let added = possible("eth8 was added below ovs-system");
    assert_eq!(found(&plan(), &host_a(), &then, &now), added);
}

#[test]
fn every_level_of_stacked_interfaces_is_used() {
    let vlan = Interface { lower: Some("bond0".to_owned()), ..with_address("bond0.100", "vlan") };
    let bridge = with_address("br0", "bridge");
    for (top, above) in [(vlan, None), (bridge, Some("br0"))] {
        let bond = Interface { carrier: Some(true), up: true, ..of_kind("bond0", "bond", above) };
        let then = host_of(vec![top, bond, hardware("eth0", "bond0"), hardware("eth1", "bond0")]);
        let used = compared(&plan(), &host_a(), &then, &then, |comparison| comparison.used.all.clone());
        for name in ["bond0", "eth0", "eth1"] {
            assert!(used.contains(name), "{above:?}: {used:?}");
        }
        let expected = [certain("carrier of bond0 is off instead of on"), certain("bond0 is gone")];
        assert_eq!(lost_and_gone(&then, "bond0"), expected);
        // It may be the idle one, and the carrier and speed of the bond show what remains.
        let expected = [possible("carrier of eth1 is off instead of on"), certain("eth1 is gone")];
        assert_eq!(lost_and_gone(&then, "eth1"), expected);
    }
}

#[test]
fn port_of_a_bridge_counts_when_it_is_its_only_hardware_or_is_named() {
    let mut then = host_of(vec![
        with_address("br0", "bridge"),
        hardware("eth0", "br0"),
        of_kind("veth1", "veth", Some("br0")),
    ]);
    let lost = "carrier of eth0 is off instead of on";
    assert_eq!(lost_and_gone(&then, "eth0")[0], certain(lost));
    then.interfaces.push(hardware("eth1", "br0"));
    assert_eq!(lost_and_gone(&then, "eth0")[0], possible(lost));
    let mut named = plan();
    named.arms[0].expect_client = Some("eth0".to_owned());
    let mut now = then.clone();
    now.interfaces[1].carrier = Some(false);
    assert_eq!(found(&named, &host_a(), &then, &now), certain(lost));
    // Nor does a setting of the other port end the run.
    now.clone_from(&then);
    now.interfaces[3].mtu = Some(9000);
    let settings = compared(&named, &host_a(), &then, &now, settings::changed);
    assert_eq!(settings, possible("MTU of eth1 is 9000 instead of 1500"));
}
