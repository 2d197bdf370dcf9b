//! Whether traffic to the other ends of a host's arms still takes the routes of the start of the run. It reads descriptions only, which have the
//! main table: policy rules are not followed.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::snapshot::{HostSnapshot, Interface, Route};
use netduel_model::workload::{Family, Role, Workload};

use super::{known_to_be_used, same_device};

/// The routes to other ends that differ, each as `route to 10.0.0.2 is by eth1 instead of by eth0 via 10.0.1.1`. `hosts`: the descriptions at the
/// start. Metric and prefix length do not count: another route of the same next hop is the same path. Nothing where the provider's treatments
/// add and remove virtual functions, whose path is verified when they do.
pub(super) fn changed(
    plan: &ResolvedPlan,
    host: &HostName,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    now: &HostSnapshot,
) -> Vec<String> {
    let mut changes = Vec::new();
    let Some(then) = hosts.get(host) else { return changes };
    // A host whose routes cannot be listed, or that has too many, describes none.
    if plan.has_provider_treatments() || now.routes.is_empty() {
        return changes;
    }
    let used = known_to_be_used(plan, host, then);
    let name_now = |name: &str| {
        let old = then.interfaces.iter().find(|interface| interface.name == name);
        let new = old.and_then(|old| same_device(old, then, now));
        new.map_or(name, |new| new.name.as_str()).to_owned()
    };
    let mut known = BTreeSet::new();
    for peer in peer_addresses(plan, host, hosts) {
        let routes = then.routes_to(peer);
        // A route by another interface is not the one that traffic takes: a policy rule selects another table.
        let is_of_path = |route: &&Route| used.is_empty() || used.contains(route.interface.as_str());
        if !routes.iter().any(is_of_path) {
            continue;
        }
        let was = words(&routes, then, name_now);
        let is = words(&now.routes_to(peer), now, str::to_owned);
        if was != is && known.insert((was.clone(), is.clone())) {
            changes.push(format!("route to {peer} is {is} instead of {was}"));
        }
    }
    changes
}

/// The addresses of the other ends of a host's arms, in the families of their workloads, without those that traffic reaches without a described
/// route: those of the host itself, and link-local ones.
fn peer_addresses(
    plan: &ResolvedPlan,
    host: &HostName,
    hosts: &BTreeMap<HostName, HostSnapshot>,
) -> BTreeSet<IpAddr> {
    let mut peers = BTreeSet::new();
    for arm in plan.arms_of_all_blocks() {
        if arm.pair.host(Role::Client) == host {
            let families = arm.workloads.iter().map(|workload| workload.family);
            peers.extend(families.filter_map(|family| plan.server_address(&arm, family)));
        }
        if arm.pair.host(Role::Server) == host {
            peers.extend(addresses_of_client(plan, &arm, hosts));
        }
    }
    let own = hosts.get(host).into_iter().flat_map(|then| &then.interfaces);
    for address in own.flat_map(|interface| &interface.addresses) {
        peers.remove(address);
    }
    peers.retain(|address| !address.is_loopback() && !is_link_local(*address));
    peers
}

/// The addresses that a client of an arm may send from: those of the plan, which needs none, or those of the interfaces that the plan uses there.
fn addresses_of_client(
    plan: &ResolvedPlan,
    arm: &Arm,
    hosts: &BTreeMap<HostName, HostSnapshot>,
) -> Vec<IpAddr> {
    let client = arm.pair.host(Role::Client);
    let mut addresses = plan.hosts.get(client).map(|host| host.addresses.clone()).unwrap_or_default();
    if addresses.is_empty()
        && let Some(then) = hosts.get(client)
    {
        let used = known_to_be_used(plan, client, then);
        let is_used = |interface: &&Interface| used.contains(interface.name.as_str());
        let of_used = then.interfaces.iter().filter(is_used).flat_map(|interface| &interface.addresses);
        addresses = of_used.copied().collect();
    }
    let is_ipv4 = |workload: &Workload| workload.family == Family::Ipv4;
    addresses.retain(|address| arm.workloads.iter().any(|workload| is_ipv4(workload) == address.is_ipv4()));
    addresses
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The next hops of routes of a host, in a fixed order. `name`: what an interface is called now.
fn words(routes: &[&Route], host: &HostSnapshot, name: impl Fn(&str) -> String) -> String {
    let of = |route: &&Route| {
        // The kernel itself writes the MTU of an interface into its IPv6 routes when that changes and is restored.
        let interface = host.interfaces.iter().find(|interface| interface.name == route.interface);
        let mtu_of_interface = interface.and_then(|interface| interface.mtu);
        let mtu = route.mtu.filter(|mtu| Some(*mtu) != mtu_of_interface);
        let parts = [
            Some(format!("by {}", name(&route.interface))),
            route.gateway.map(|gateway| format!("via {gateway}")),
            route.source.map(|source| format!("from {source}")),
            mtu.map(|mtu| format!("with MTU {mtu}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let hops: BTreeSet<String> = routes.iter().map(of).collect();
    if hops.is_empty() {
        return "none".to_owned();
    }
    hops.into_iter().collect::<Vec<_>>().join(" and ")
}
