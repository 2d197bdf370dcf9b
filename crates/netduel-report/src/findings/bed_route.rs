//! Whether the ends of an arm on a bed reach each other through the NICs in the network of the arm, by the routes of their guests.
use std::net::IpAddr;

use netduel_model::bed::layout::subnet_around;
use netduel_model::bed::{BedNic, RunBed};
use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::shell;
use netduel_model::snapshot::{HostSnapshot, Route};
use netduel_model::workload::Role;

use super::finding::{Finding, Severity};

/// Addresses of other ends that the host does not reach through its NIC in the network of an arm, with whether an arm depends on it. A guest has
/// routes to the networks of its own addresses; its default route is that of another NIC.
pub(super) fn find(
    plan: &ResolvedPlan,
    host: &HostName,
    bed: &RunBed,
    snapshot: &HostSnapshot,
) -> Vec<(Finding, bool)> {
    let mut found: Vec<(Finding, bool)> = Vec::new();
    for arm in &plan.arms {
        for role in [Role::Client, Role::Server].into_iter().filter(|role| arm.pair.host(*role) == host) {
            let Some(nic) = nic(plan, arm, role, bed) else { continue };
            for peer in peers(plan, arm, role, bed) {
                let one = missing(nic, peer, snapshot).filter(|one| !found.contains(one));
                found.extend(one);
            }
        }
    }
    found
}

/// The NIC of an end in the network of an arm.
fn nic<'b>(plan: &ResolvedPlan, arm: &Arm, role: Role, bed: &'b RunBed) -> Option<&'b BedNic> {
    let (_, vm) = plan.vms().find(|(name, _)| *name == arm.pair.host(role))?;
    bed.vm(vm)?.nic_in(arm.network?)
}

/// The addresses of the other end for an arm: at the server those of the client in the families of the arm.
fn peers(plan: &ResolvedPlan, arm: &Arm, role: Role, bed: &RunBed) -> Vec<IpAddr> {
    let of_server = &arm.server_addresses;
    match role {
        Role::Client => of_server.clone(),
        Role::Server => {
            let addresses = nic(plan, arm, Role::Client, bed).map_or(&[][..], |nic| nic.addresses.as_slice());
            let is_used = |own: &&IpAddr| of_server.iter().any(|server| server.is_ipv4() == own.is_ipv4());
            addresses.iter().filter(is_used).copied().collect()
        }
    }
}

/// The finding for one address of the other end; `None` where the route leaves by the NIC, and where routes are unknown.
fn missing(nic: &BedNic, peer: IpAddr, host: &HostSnapshot) -> Option<(Finding, bool)> {
    let interface = nic.seen.as_ref()?.interface.as_str();
    let own = *nic.addresses.iter().find(|own| own.is_ipv4() == peer.is_ipv4())?;
    let leaves_by_nic = |routes: &[&Route]| routes.iter().any(|route| route.interface == interface);
    let routes = host.routes_to(peer);
    // A snapshot with pseudonyms has addresses that do not fit its routes.
    if !leaves_by_nic(&host.routes_to(own)) || leaves_by_nic(&routes) {
        return None;
    }
    let mut finding = if routes.is_empty() {
        Finding::new("bed-route", Severity::Problem, format!("{} has no route to {peer}", nic.name))
            .why("no traffic of an arm can pass")
    } else {
        let what = format!("traffic to {peer} does not leave by {}, the NIC of the arm", nic.name);
        Finding::new("bed-route", Severity::Warning, what)
            .why("another NIC carries it, and trials whose bytes take another NIC are excluded")
    };
    finding = finding.on(interface).seen(format!("{interface} has {own}"));
    for route in &routes {
        finding = finding.seen(format!(
            "route to {peer}: {}/{} by {}, metric {}",
            route.destination, route.prefix_length, route.interface, route.metric
        ));
    }
    let finding = finding.remedy(
        "add a route to the subnet of the other end; VMs of a bed with `subnets = 2` add it at each boot (`systemctl status netduel-routes`)",
    );
    let subnets = subnet_around(peer).zip(subnet_around(own));
    let finding = match subnets {
        Some(((subnet, _), (_, gateway))) => {
            let family = if peer.is_ipv4() { "" } else { "-6 " };
            let interface = shell::word(interface);
            finding.command(format!("ip {family}route replace {subnet} via {gateway} dev {interface}"))
        }
        None => finding,
    };
    Some((finding, routes.is_empty()))
}
