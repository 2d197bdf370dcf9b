//! Groups of interfaces: a top interface with those below it, such as a virtual function below its paravirtual interface, or the
//! ports of a bridge.
use netduel_model::snapshot::{HostSnapshot, Interface};

use crate::findings::{is_hardware, ports_of};

/// Ports that are shown of one interface: a bridge of a container host has hundreds.
const PORTS_MOST: usize = 8;

/// An interface and those directly below it.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The one above.
    pub top: &'a Interface,
    /// Those below, as many as are shown.
    pub ports: Vec<&'a Interface>,
    /// How many more there are.
    pub ports_left: usize,
}

/// The interfaces that matter, those of the default routes first: hardware, and whatever has an address or ports.
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
    // A master may be unknown here: it was moved into another namespace. Then the port stands for itself.
    let is_beneath = interface
        .master
        .as_ref()
        .is_some_and(|master| host.interfaces.iter().any(|other| &other.name == master));
    !is_beneath && (is_hardware(interface) || has_address || ports_of(host, &interface.name).next().is_some())
}

/// The interfaces that no group shows: loopback, idle virtual ones.
pub fn others(host: &HostSnapshot) -> Vec<&Interface> {
    let groups = groups(host);
    let is_told = |interface: &&Interface| {
        groups.iter().any(|group| {
            group.top.name == interface.name || interface.master.as_ref() == Some(&group.top.name)
        })
    };
    host.interfaces.iter().filter(|interface| !is_told(interface)).collect()
}

/// The queues of an interface that the cores serve: core and queues, by core. A queue that may be served by several cores stands at
/// each.
pub fn queues_by_core(interface: &Interface) -> Vec<(u16, Vec<u32>)> {
    let mut by_core: std::collections::BTreeMap<u16, Vec<u32>> = std::collections::BTreeMap::new();
    for interrupt in &interface.device.interrupts {
        let Some(queue) = interrupt.queue else { continue };
        for core in &interrupt.cores {
            let queues = by_core.entry(*core).or_default();
            // A queue may have an interrupt for each direction.
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
    }
    by_core.into_iter().collect()
}
