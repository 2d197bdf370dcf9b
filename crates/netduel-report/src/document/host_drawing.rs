//! What the drawing of a host shows: NUMA nodes and cores, interfaces with those below them, queues and the cores that serve them.
use netduel_model::snapshot::{HostSnapshot, Interface};

use super::chart::{DrawnGroup, DrawnInterface, DrawnPort, HostDrawing};
use crate::findings::{Acceleration, accelerations, queue_count};
use crate::topology::{Group, groups, queues_by_core};
use crate::words::node_title;

/// Maximum number of interfaces drawn, each with those below it.
const GROUPS_MOST: usize = 6;
/// Maximum number of addresses drawn per interface.
const ADDRESSES_MOST: usize = 2;

/// The drawing; absent for a host without known cores and interfaces.
pub(super) fn of_host(name: &str, host: &HostSnapshot) -> Option<HostDrawing> {
    let all = groups(host);
    if host.cores == 0 && all.is_empty() {
        return None;
    }
    let shown = &all[..all.len().min(GROUPS_MOST)];
    let interfaces = shown.iter().flat_map(|group| group.ports.iter().chain([&group.top]));
    let allowed = host.processor.as_ref().and_then(|processor| processor.allowed.as_ref());
    let nodes = nodes(host);
    let cores = nodes.iter().flat_map(|(_, cores)| cores).copied();
    Some(HostDrawing {
        name: name.to_owned(),
        withheld: cores.filter(|core| allowed.is_some_and(|allowed| !allowed.contains(core))).collect(),
        busy: interfaces.flat_map(|interface| queues_by_core(interface)).map(|(core, _)| core).collect(),
        nodes,
        groups: shown.iter().map(|one| group(host, one)).collect(),
        groups_left: all.len() - shown.len(),
    })
}

/// The nodes that have cores; without any, the cores alone.
fn nodes(host: &HostSnapshot) -> Vec<(String, Vec<u16>)> {
    let is_only = host.numa_nodes.len() == 1;
    let known = host.numa_nodes.iter().filter(|node| !node.cores.is_empty());
    let nodes: Vec<_> = known.map(|node| (node_title(node, is_only), node.cores.clone())).collect();
    match host.cores as u16 {
        cores if nodes.is_empty() && cores > 0 => vec![("cores".to_owned(), (0..cores).collect())],
        _ => nodes,
    }
}

fn group(host: &HostSnapshot, group: &Group<'_>) -> DrawnGroup {
    let states = accelerations(host);
    let state = states.iter().find(|(one, _)| one.name == group.top.name).map(|(_, state)| state);
    let port = |port: &&Interface| DrawnPort { interface: interface(port), carries: is_carrier(port, state) };
    DrawnGroup {
        top: interface(group.top),
        acceleration: state.map(|state| (format!("acceleration {}", state.words()), state.is_on())),
        ports: group.ports.iter().map(port).collect(),
        ports_left: group.ports_left,
    }
}

/// Whether a port is the one that carries the packets, as far as its master knows.
fn is_carrier(port: &Interface, state: Option<&Acceleration>) -> bool {
    match state {
        Some(Acceleration::Active { function } | Acceleration::Paired { function }) => *function == port.name,
        _ => false,
    }
}

fn interface(interface: &Interface) -> DrawnInterface {
    let is_function = interface.device.pci.as_ref().is_some_and(|pci| pci.virtual_function == Some(true));
    let speed = interface.line_speed_mbps();
    let words = [
        interface.driver.clone().or_else(|| interface.kind.clone()),
        is_function.then(|| "virtual function".to_owned()),
        speed.map(|speed| format!("{} Gbit/s", f64::from(speed) / 1000.0)),
        interface.device.numa_node.map(|node| format!("node {node}")),
        (!interface.up).then(|| "down".to_owned()),
    ];
    let queues_by_core = queues_by_core(interface);
    let queues = queue_count(interface).map(|(now, _)| now);
    DrawnInterface {
        name: interface.name.clone(),
        about: words.into_iter().flatten().collect::<Vec<_>>().join(", "),
        addresses: interface.addresses.iter().take(ADDRESSES_MOST).map(ToString::to_string).collect(),
        queues: queues.filter(|now| *now > 1 || !queues_by_core.is_empty()).unwrap_or(0),
        queues_by_core,
    }
}
