//! The interfaces of a host that the plan uses, by its description at the start of the run, and the addresses of the other ends.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::snapshot::{HostSnapshot, Interface};
use netduel_model::workload::{Family, Role, Workload};

/// The kind of the internal ports of Open vSwitch, and of the datapath above its other ports. It has the ports of all bridges below it.
pub(super) const OPEN_VSWITCH: &str = "openvswitch";
/// Kinds of interfaces that are switches: their ports have nothing to do with each other.
const SWITCHES: [&str; 2] = ["bridge", OPEN_VSWITCH];
/// The kind of a routing table whose members have nothing to do with each other.
const VRF: &str = "vrf";
/// Kinds of ports of a switch that lead to containers, VMs and overlay networks.
const GUEST_KINDS: [&str; 11] = [
    "veth",
    "netkit",
    "tun",
    "macvtap",
    "ipvtap",
    "dummy",
    "vxlan",
    "geneve",
    "gretap",
    "ip6gretap",
    OPEN_VSWITCH,
];
/// How the name of a driver of representors ends, for example `mlx5e_rep`: such a port of a switch stands for the function of a VM.
const REPRESENTOR_DRIVER: &str = "_rep";

/// The interfaces of a host that the plan uses, by name.
#[derive(Debug, Default)]
pub(super) struct Used {
    /// Those that it names, that have its addresses, or that routes lead by.
    pub(super) named: BTreeSet<String>,
    /// Those, and what is above and below them. Empty when none is known.
    pub(super) all: BTreeSet<String>,
}

impl Used {
    /// `hosts`: the descriptions at the start. A host or an arm of which nothing is known, for example of a client in a namespace without a
    /// route, adds none.
    pub(super) fn of(plan: &ResolvedPlan, host: &HostName, hosts: &BTreeMap<HostName, HostSnapshot>) -> Self {
        let Some(then) = hosts.get(host) else { return Self::default() };
        let addresses = plan.hosts.get(host).map(|host| host.addresses.as_slice()).unwrap_or_default();
        let mut named = with_address(then, addresses);
        for arm in plan.arms_of_all_blocks() {
            for role in [Role::Client, Role::Server].into_iter().filter(|role| arm.pair.host(*role) == host) {
                named.extend(of_end(plan, &arm, role, hosts));
            }
        }
        let all = around(named.clone(), then);
        Self { named, all }
    }

    pub(super) fn contains(&self, interface: &Interface) -> bool {
        self.all.contains(&interface.name)
    }

    /// Whether an interface is a hardware port of a switch beside the one that carries the test. It carries traffic of the test only when no other
    /// port of the switch does.
    pub(super) fn is_beside(&self, interface: &Interface, host: &HostSnapshot) -> bool {
        let is_sibling = |one: &&Interface| one.master == interface.master && !is_guest_port(one);
        kind_above(interface, host).is_some_and(|kind| SWITCHES.contains(&kind))
            && !self.named.contains(&interface.name)
            && host.interfaces.iter().filter(is_sibling).count() > 1
    }
}

/// The addresses of the other end of an arm, in the families of its workloads.
pub(super) fn peers(
    plan: &ResolvedPlan,
    arm: &Arm,
    role: Role,
    hosts: &BTreeMap<HostName, HostSnapshot>,
) -> Vec<IpAddr> {
    match role {
        Role::Client => {
            let families = arm.workloads.iter().map(|workload| workload.family);
            families.filter_map(|family| plan.server_address(arm, family)).collect()
        }
        Role::Server => addresses_of_client(plan, arm, hosts),
    }
}

/// The addresses that a client of an arm may send from: those of the plan, which needs none, or those of the interfaces that the arm uses there.
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
        let used = around(of_end(plan, arm, Role::Client, hosts), then);
        let is_used = |interface: &&Interface| used.contains(&interface.name);
        let of_used = then.interfaces.iter().filter(is_used).flat_map(|interface| &interface.addresses);
        addresses = of_used.copied().collect();
    }
    let is_ipv4 = |workload: &Workload| workload.family == Family::Ipv4;
    addresses.retain(|address| arm.workloads.iter().any(|workload| is_ipv4(workload) == address.is_ipv4()));
    addresses
}

/// The interfaces of an arm at one end: that which it names, else those with its addresses, else those of the routes to the other end, and
/// without such a route those of default routes.
fn of_end(
    plan: &ResolvedPlan,
    arm: &Arm,
    role: Role,
    hosts: &BTreeMap<HostName, HostSnapshot>,
) -> BTreeSet<String> {
    let host = arm.pair.host(role);
    let Some(then) = hosts.get(host) else { return BTreeSet::new() };
    if let Some(expected) = arm.expected(role) {
        return BTreeSet::from([expected.to_owned()]);
    }
    let of_host = plan.hosts.get(host).map(|host| host.addresses.as_slice()).unwrap_or_default();
    let of_arm = arm.server_addresses.as_slice();
    let own = if role == Role::Server && !of_arm.is_empty() { of_arm } else { of_host };
    let named = with_address(then, own);
    if !named.is_empty() {
        return named;
    }
    let peers = peers(plan, arm, role, hosts);
    let routes = peers.iter().flat_map(|peer| then.routes_to(*peer));
    let by_route: BTreeSet<String> = routes.map(|route| route.interface.clone()).collect();
    if by_route.is_empty() { then.default_routes.iter().cloned().collect() } else { by_route }
}

fn with_address(host: &HostSnapshot, addresses: &[IpAddr]) -> BTreeSet<String> {
    let has_one = |interface: &&Interface| interface.addresses.iter().any(|own| addresses.contains(own));
    host.interfaces.iter().filter(has_one).map(|interface| interface.name.clone()).collect()
}

/// These interfaces, all above them, and all below any of those, such as the ports of a bond below a VLAN or a bridge.
fn around(named: BTreeSet<String>, host: &HostSnapshot) -> BTreeSet<String> {
    let above = closed(named, host, |interface, used| {
        let is_port =
            |one: &Interface| used.contains(&one.name) && one.master.as_ref() == Some(&interface.name);
        host.interfaces.iter().any(is_port)
    });
    closed(above, host, |interface, used| {
        let is_lower =
            |one: &Interface| used.contains(&one.name) && one.lower.as_ref() == Some(&interface.name);
        host.interfaces.iter().any(is_lower) || is_member(interface, used, host)
    })
}

/// An interface and all that are above it: traffic by one of those is traffic by it.
pub(super) fn with_those_above(name: &str, host: &HostSnapshot) -> BTreeSet<String> {
    closed(BTreeSet::from([name.to_owned()]), host, |interface, used| {
        let is_below = |one: &Interface| {
            let is_port = one.master.as_ref() == Some(&interface.name);
            used.contains(&one.name) && (is_port || interface.lower.as_ref() == Some(&one.name))
        };
        host.interfaces.iter().any(is_below)
    })
}

/// These interfaces, and those that a rule adds to them until it adds none.
fn closed(
    mut used: BTreeSet<String>,
    host: &HostSnapshot,
    is_added: impl Fn(&Interface, &BTreeSet<String>) -> bool,
) -> BTreeSet<String> {
    loop {
        let is_new = |one: &&Interface| !used.contains(&one.name) && is_added(one, &used);
        let new: Vec<String> =
            host.interfaces.iter().filter(is_new).map(|interface| interface.name.clone()).collect();
        if new.is_empty() {
            return used;
        }
        used.extend(new);
    }
}

/// Whether an interface is below one of these, and bytes of the test can go through it.
pub(super) fn is_member(interface: &Interface, used: &BTreeSet<String>, host: &HostSnapshot) -> bool {
    let Some(master) = interface.master.as_ref() else { return false };
    let is_internal_port = |one: &Interface| one.kind.as_deref() == Some(OPEN_VSWITCH);
    match kind_above(interface, host) {
        Some(VRF) => false,
        // An internal port with the address of the host has no link to the port that carries its bytes.
        Some(OPEN_VSWITCH) => {
            let mut of_used = host.interfaces.iter().filter(|one| used.contains(&one.name));
            (used.contains(master) || of_used.any(is_internal_port)) && !is_guest_port(interface)
        }
        Some(kind) if SWITCHES.contains(&kind) => used.contains(master) && !is_guest_port(interface),
        _ => used.contains(master),
    }
}

/// Whether a port of a switch is that of a container, a VM or an overlay network.
fn is_guest_port(interface: &Interface) -> bool {
    interface.kind.as_deref().is_some_and(|kind| GUEST_KINDS.contains(&kind))
        || interface.driver.as_deref().is_some_and(|driver| driver.ends_with(REPRESENTOR_DRIVER))
}

/// The kind of the interface above one; `None` without one, and where that is hardware.
pub(super) fn kind_above<'h>(interface: &Interface, host: &'h HostSnapshot) -> Option<&'h str> {
    let master = interface.master.as_ref()?;
    host.interfaces.iter().find(|above| above.name == *master)?.kind.as_deref()
}
