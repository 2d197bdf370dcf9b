//! Routes to the other ends that differ.
use std::net::IpAddr;

use netduel_model::snapshot::Route;
use netduel_model::workload::Family;

use super::*;

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
        attributes: Some(BTreeMap::new()),
    };
    let gateway = Some(address("10.0.0.254"));
    let default = Route { destination: address("0.0.0.0"), prefix_length: 0, gateway, ..network.clone() };
    vec![network, default]
}

fn certain_of(
    plan: &ResolvedPlan,
    host: &HostName,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    now: &HostSnapshot,
) -> Vec<String> {
    let found = found(plan, host, hosts, now, &Translated::new());
    assert!(found.possible.is_empty(), "{found:?}");
    found.certain
}

fn found(
    plan: &ResolvedPlan,
    host: &HostName,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    now: &HostSnapshot,
    translated: &Translated,
) -> Found {
    routes::changed(&Comparison::of(plan, host, hosts, now).unwrap(), translated)
}

fn rerouted_by(change: impl FnOnce(&mut HostSnapshot)) -> Vec<String> {
    let host = HostName::new("a").unwrap();
    let then = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    let mut now = then.clone();
    change(&mut now);
    certain_of(&plan(), &host, &BTreeMap::from([(host.clone(), then)]), &now)
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
    let attributes = |now: &mut HostSnapshot| {
        let stated =
            [("congctl", "reno"), ("advmss", "300")].map(|(name, value)| (name.into(), value.into()));
        now.routes[0].attributes = Some(BTreeMap::from(stated));
    };
    assert_eq!(rerouted_by(attributes), changed("by eth0 with advmss 300, congctl reno"));
    assert!(rerouted_by(|now| now.routes[0].attributes = None).is_empty(), "not described");
    let source = Some(address("10.0.0.9"));
    assert_eq!(rerouted_by(|now| now.routes[0].source = source), changed("by eth0 from 10.0.0.9"));
    let two = rerouted_by(|now| {
        let own = now.routes[0].clone();
        now.routes.push(Route { interface: "eth1".to_owned(), ..own });
    });
    assert_eq!(two, changed("by eth0 and by eth1"));
    assert_eq!(rerouted_by(|now| now.routes.clear()), changed("none"));
    let not_listed = rerouted_by(|now| (now.routes_listed, now.routes) = (Some(false), Vec::new()));
    assert!(not_listed.is_empty(), "{not_listed:?}");
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
    assert!(certain_of(&plan(), &host, &BTreeMap::from([(host.clone(), then)]), &now).is_empty());
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
    assert_eq!(certain_of(&plan, &server, &then, &now), expected);
}

#[test]
fn routes_of_an_earlier_version_are_not_compared() {
    let host = host_a();
    let mut then = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    then.routes_listed = None;
    let mut now = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    now.routes[0].source = Some(address("10.0.0.1"));
    assert!(certain_of(&plan(), &host, &BTreeMap::from([(host.clone(), then)]), &now).is_empty());
}

#[test]
fn client_without_an_address_uses_the_interfaces_of_its_routes_to_the_server() {
    let mut plan = plan();
    let host = host_a();
    plan.hosts.get_mut(&host).unwrap().addresses.clear();
    let mut then = HostSnapshot { default_routes: vec!["docker0".to_owned()], ..snapshot() };
    let used = |then: &HostSnapshot| compared(&plan, &host, then, then, |it| it.used.named.clone());
    assert_eq!(used(&then), BTreeSet::from(["docker0".to_owned()]));
    then.routes = routes_by_eth0();
    assert_eq!(used(&then), BTreeSet::from(["eth0".to_owned()]));
    // An arm that names an interface leaves that of another arm as it is.
    plan.arms[0].expect_client = Some("docker0".to_owned());
    let used = compared(&plan, &host, &then, &then, |it| it.used.named.clone());
    assert_eq!(used, BTreeSet::from(["docker0".to_owned(), "eth0".to_owned()]));
}

#[test]
fn routes_by_the_expected_interface_are_compared_with_each_other() {
    let mut plan = plan();
    let host = host_a();
    for arm in &mut plan.arms {
        arm.expect_client = Some("vf".to_owned());
    }
    let gateway = |last: &str| Some(address(last));
    let mut then = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    // The network of eth0 has a longer prefix than the default routes of this one.
    let by_docker = Route { interface: "docker0".to_owned(), ..then.routes[1].clone() };
    then.interfaces[1].master = None;
    then.routes[1].interface = "vf".to_owned();
    then.routes.push(by_docker);
    let mut now = then.clone();
    now.routes[1].gateway = gateway("10.0.0.253");
    let hosts = BTreeMap::from([(host.clone(), then.clone())]);
    let expected = ["route to 10.0.0.2 is by vf via 10.0.0.253 instead of by vf via 10.0.0.254"];
    assert_eq!(certain_of(&plan, &host, &hosts, &now), expected);
    now.routes[1].gateway = gateway("10.0.0.254");
    now.routes[0].gateway = gateway("10.0.0.253");
    assert!(certain_of(&plan, &host, &hosts, &now).is_empty(), "the other interface does not carry the arm");
}

#[test]
fn mtu_of_a_route_does_not_count_where_an_arm_changes_that_of_its_interface() {
    let host = host_a();
    let then = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    let mut now = then.clone();
    now.routes[0].mtu = Some(1280);
    let hosts = BTreeMap::from([(host.clone(), then)]);
    assert_eq!(certain_of(&plan(), &host, &hosts, &now).len(), 1);
    for (interface, differences) in [("eth0", 0), ("docker0", 1)] {
        let mtu = TreatmentAction::Mtu { interface: interface.to_owned(), mtu: 1400 };
        assert_eq!(certain_of(&treated(mtu), &host, &hosts, &now).len(), differences, "{interface}");
    }
}

#[test]
fn server_behind_a_nat_is_not_compared_by_the_address_of_its_client() {
    let (client, server) = (host_a(), HostName::new("b").unwrap());
    let mut of_server = HostSnapshot { routes: routes_by_eth0(), ..snapshot() };
    of_server.interfaces[0].addresses = vec![address("10.0.0.2")];
    let mut now = of_server.clone();
    now.routes[0].interface = "eth1".to_owned();
    let hosts = BTreeMap::from([(client.clone(), snapshot()), (server.clone(), of_server)]);
    assert!(!found(&plan(), &server, &hosts, &now, &Translated::new()).is_empty());
    let translated = Translated::from([(client, server.clone())]);
    assert!(found(&plan(), &server, &hosts, &now, &translated).is_empty());
}

#[test]
fn ipv6_router_whose_lifetime_ended_beside_another_one_is_only_possible_to_matter() {
    let mut plan = plan();
    let host = host_a();
    for arm in &mut plan.arms {
        arm.server_addresses = vec![address("fd77::2")];
        for workload in &mut arm.workloads {
            workload.family = Family::Ipv6;
        }
    }
    let router = |gateway: &str, interface: &str| Route {
        destination: address("::"),
        prefix_length: 0,
        interface: interface.to_owned(),
        metric: 1024,
        gateway: Some(address(gateway)),
        source: None,
        mtu: None,
        attributes: None,
    };
    let both = vec![router("fe80::1", "eth0"), router("fe80::2", "eth0")];
    let then = HostSnapshot { routes: both, ..snapshot() };
    let hosts = BTreeMap::from([(host.clone(), then.clone())]);
    let of = |routes: Vec<Route>| {
        let now = HostSnapshot { routes, ..then.clone() };
        let found = found(&plan, &host, &hosts, &now, &Translated::new());
        (found.certain.len(), found.possible.len())
    };
    assert_eq!(of(vec![router("fe80::2", "eth0")]), (0, 1));
    assert_eq!(of(vec![router("fe80::3", "eth0")]), (1, 0));
    assert_eq!(of(vec![router("fe80::2", "vf")]), (1, 0));
    assert_eq!(of(Vec::new()), (1, 0));
}
