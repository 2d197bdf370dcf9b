//! Whether traffic to the other ends of a host's arms still takes the routes of the start of the run. It reads descriptions only, which have the
//! main table: policy rules are not followed.
use std::collections::BTreeSet;
use std::net::IpAddr;

use netduel_model::plan::TreatmentAction;
use netduel_model::snapshot::{HostSnapshot, Route};
use netduel_model::workload::Role;

use super::Translated;
use super::comparison::{Comparison, Found};
use super::used::{peers, with_those_above};

/// A next hop: the interface, as it is called now, and all of it in words.
type Hop = (String, String);

/// The routes to other ends that differ, each as `route to 10.0.0.2 is by eth1 instead of by eth0 via 10.0.1.1`. Metric and prefix length do not
/// count: another route of the same next hop is the same path. Nothing where the provider's treatments add and remove virtual functions,
/// whose path is verified when they do.
pub(super) fn changed(comparison: &Comparison<'_>, translated: &Translated) -> Found {
    let mut found = Found::default();
    let (then, now) = (comparison.then, comparison.now);
    // A host whose routes cannot be listed, or that has too many, describes none. An earlier version described less of them.
    let are_listed = |host: &HostSnapshot| host.routes_listed == Some(true);
    if comparison.plan.has_provider_treatments() || !are_listed(then) || !are_listed(now) {
        return found;
    }
    let treated = with_treated_mtu(comparison);
    // An earlier version described no attributes.
    let has_attributes = |host: &HostSnapshot| host.routes.iter().all(|route| route.attributes.is_some());
    let with_attributes = has_attributes(then) && has_attributes(now);
    let mut known = BTreeSet::new();
    for (peer, expected) in ways(comparison, translated) {
        let Some((routes, stack)) = routes_of_path(comparison, peer, expected.as_deref()) else { continue };
        let was = hops(&routes, then, &treated, with_attributes, |name| comparison.name_now(name));
        let stack: Option<BTreeSet<String>> =
            stack.map(|stack| stack.iter().map(|name| comparison.name_now(name)).collect());
        let is_by = |name: &str| stack.as_ref().is_none_or(|stack| stack.contains(name));
        let is = hops(&now.routes_to_by(peer, is_by), now, &treated, with_attributes, str::to_owned);
        if was != is && known.insert((was.clone(), is.clone())) {
            // Of several IPv6 routers that advertise themselves the lifetime of one ends, and the kernel used one of them.
            let is_possible = peer.is_ipv6() && is_rest(&is, &was);
            let text = format!("route to {peer} is {} instead of {}", words(&is), words(&was));
            found.extend(is_possible, vec![text]);
        }
    }
    found
}

/// The routes of the start to another end; where the plan expects an interface, those by it or by what is above it, with these. `None` where
/// none is by an interface of the path: then a policy rule selects another table.
fn routes_of_path<'c>(
    comparison: &Comparison<'c>,
    peer: IpAddr,
    expected: Option<&str>,
) -> Option<(Vec<&'c Route>, Option<BTreeSet<String>>)> {
    let then = comparison.then;
    if let Some(expected) = expected {
        let stack = with_those_above(expected, then);
        let routes = then.routes_to_by(peer, |name| stack.contains(name));
        if !routes.is_empty() {
            return Some((routes, Some(stack)));
        }
    }
    let used = &comparison.used.all;
    let routes = then.routes_to(peer);
    let is_of_path = |route: &&Route| used.is_empty() || used.contains(&route.interface);
    let is_known = routes.iter().any(is_of_path);
    is_known.then_some((routes, None))
}

/// The addresses of the other ends of a host's arms, each with the interface that the plan expects. Without those that traffic reaches without
/// a described route: those of the host itself, and link-local ones; and without clients behind a NAT, whose addresses the server does not see.
fn ways(comparison: &Comparison<'_>, translated: &Translated) -> BTreeSet<(IpAddr, Option<String>)> {
    let mut ways = BTreeSet::new();
    for arm in comparison.plan.arms_of_all_blocks() {
        let pair = (arm.pair.client.clone(), arm.pair.server.clone());
        let is_hidden = |role: Role| role == Role::Server && translated.contains(&pair);
        for role in [Role::Client, Role::Server] {
            if arm.pair.host(role) == comparison.host && !is_hidden(role) {
                let expected = arm.expected(role).map(str::to_owned);
                let peers = peers(comparison.plan, &arm, role, comparison.hosts);
                ways.extend(peers.into_iter().map(|peer| (peer, expected.clone())));
            }
        }
    }
    let own: BTreeSet<IpAddr> =
        comparison.then.interfaces.iter().flat_map(|interface| &interface.addresses).copied().collect();
    ways.retain(|(peer, _)| !own.contains(peer) && !peer.is_loopback() && !is_link_local(*peer));
    ways
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The interfaces whose MTU an arm changes on the host, and those above them, by both names: the kernel rewrites the MTU of routes when that of
/// an interface changes.
fn with_treated_mtu(comparison: &Comparison<'_>) -> BTreeSet<String> {
    let mut treated = BTreeSet::new();
    for arm in comparison.plan.arms_of_all_blocks() {
        for role in [Role::Client, Role::Server] {
            if arm.pair.host(role) != comparison.host {
                continue;
            }
            for action in arm.agent_treatments(role) {
                if let TreatmentAction::Mtu { interface, .. } = action {
                    treated.extend(with_those_above(&interface, comparison.then));
                }
            }
        }
    }
    let now: Vec<String> = treated.iter().map(|name| comparison.name_now(name)).collect();
    treated.extend(now);
    treated
}

/// The next hops of routes of a host. `treated`: interfaces whose routes have the MTU of a treatment. `name`: what an interface is called now.
fn hops(
    routes: &[&Route],
    host: &HostSnapshot,
    treated: &BTreeSet<String>,
    with_attributes: bool,
    name: impl Fn(&str) -> String,
) -> BTreeSet<Hop> {
    let of = |route: &&Route| {
        // The kernel itself writes the MTU of an interface into its IPv6 routes when that changes and is restored.
        let interface = host.interfaces.iter().find(|interface| interface.name == route.interface);
        let mtu_of_interface = interface.and_then(|interface| interface.mtu);
        let is_of_route = |mtu: &u32| Some(*mtu) != mtu_of_interface && !treated.contains(&route.interface);
        let mtu = route.mtu.filter(is_of_route).map(|mtu| format!("MTU {mtu}"));
        let attributes = route.attributes.iter().flatten().filter(|_| with_attributes);
        let stated: Vec<String> =
            mtu.into_iter().chain(attributes.map(|(name, value)| format!("{name} {value}"))).collect();
        let by = name(&route.interface);
        let parts = [
            Some(format!("by {by}")),
            route.gateway.map(|gateway| format!("via {gateway}")),
            route.source.map(|source| format!("from {source}")),
            (!stated.is_empty()).then(|| format!("with {}", stated.join(", "))),
        ];
        (by, parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    };
    routes.iter().map(of).collect()
}

/// Whether next hops are a part of others, by the same interfaces.
fn is_rest(is: &BTreeSet<Hop>, was: &BTreeSet<Hop>) -> bool {
    let interfaces =
        |hops: &BTreeSet<Hop>| hops.iter().map(|(by, _)| by.clone()).collect::<BTreeSet<String>>();
    is.is_subset(was) && interfaces(is) == interfaces(was)
}

fn words(hops: &BTreeSet<Hop>) -> String {
    if hops.is_empty() {
        return "none".to_owned();
    }
    hops.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(" and ")
}
