//! Groups of interfaces: a top interface with those below it, such as a virtual function below its paravirtual interface, or the
//! ports of a bridge.
use netduel_model::snapshot::{HostSnapshot, Interface};

use crate::findings::{is_hardware, ports_of};

/// Maximum number of ports shown per interface: a bridge of a container host has hundreds.
const PORTS_MOST: usize = 8;

/// An interface and those directly below it.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The top interface.
    pub top: &'a Interface,
    /// The interfaces below, up to the maximum.
    pub ports: Vec<&'a Interface>,
    /// Number of further ones that are not shown.
    pub ports_left: usize,
}

/// The relevant interfaces, those of default routes first: hardware, and every interface with an address or ports.
pub fn groups(host: &HostSnapshot) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = host
        .interfaces
        .iter()
        .filter(|interface| is_shown(host, interface))
        .map(|top| {
            let mut ports: Vec<&Interface> = ports_of(host, &top.name).collect();
            let ports_left = ports.len().saturating_sub(PORTS_MOST);
            ports.truncate(PORTS_MOST);
            Group { top, ports, ports_left }
        })
        .collect();
    let route =
        |name: &String| host.default_routes.iter().position(|route| route == name).unwrap_or(usize::MAX);
    groups.sort_by_key(|group| route(&group.top.name));
    groups
}

fn is_shown(host: &HostSnapshot, interface: &Interface) -> bool {
    let has_address = interface.addresses.iter().any(|address| !address.is_loopback());
    // The master may be in another network namespace. Then the port is its own group.
    let is_beneath = interface
        .master
        .as_ref()
        .is_some_and(|master| host.interfaces.iter().any(|other| &other.name == master));
    !is_beneath && (is_hardware(interface) || has_address || ports_of(host, &interface.name).next().is_some())
}

/// The interfaces outside all groups: loopback, idle virtual ones.
pub fn others(host: &HostSnapshot) -> Vec<&Interface> {
    let groups = groups(host);
    let is_in_group = |interface: &&Interface| {
        groups.iter().any(|group| {
            group.top.name == interface.name || interface.master.as_ref() == Some(&group.top.name)
        })
    };
    host.interfaces.iter().filter(|interface| !is_in_group(interface)).collect()
}

/// The queues of an interface by core. A queue that several cores may serve is listed at each.
pub fn queues_by_core(interface: &Interface) -> Vec<(u16, Vec<u32>)> {
    let mut by_core: std::collections::BTreeMap<u16, Vec<u32>> = std::collections::BTreeMap::new();
    for interrupt in &interface.device.interrupts {
        let Some(queue) = interrupt.queue else { continue };
        for core in &interrupt.cores {
            let queues = by_core.entry(*core).or_default();
            // A queue may have one interrupt per direction.
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
    }
    by_core.into_iter().collect()
}
