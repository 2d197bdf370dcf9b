//! Chooses cores for the threads of an end with `pin_client` or `pin_server` = "auto": near the queues of the interface, near its memory,
//! one physical core each. Pure but for [`placed`], which reads what the choice is made of.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netduel_control::agent::WorkError;
use netduel_host::{Locality, Sources};
use netduel_model::observation::Placement;
use netduel_model::workload::{Role, Threads, Traffic, Workload};
use netduel_sys::local_bind::{self, DISCARD_PORT, LocalBind};

use crate::failure::environment;

/// By which address of this host the data goes.
#[derive(Debug, Clone, Copy)]
pub enum DataAddress<'a> {
    /// This one.
    Own(IpAddr),
    /// The one that the kernel's route to a peer uses, from sockets with this bind.
    Towards(IpAddr, &'a LocalBind),
}

impl DataAddress<'_> {
    /// The address of this host.
    pub fn own(self) -> io::Result<IpAddr> {
        match self {
            Self::Own(address) => Ok(address),
            Self::Towards(peer, bind) => towards(peer, bind),
        }
    }
}

/// The workload with the cores that this end has chosen, and the choice; unchanged without `pin_client` or `pin_server` = "auto".
pub fn placed(
    workload: &Workload,
    role: Role,
    address: DataAddress<'_>,
) -> Result<(Workload, Option<Placement>), WorkError> {
    let mut workload = workload.clone();
    if !workload.pin_auto.of(role) {
        return Ok((workload, None));
    }
    let allowed = netduel_sys::affinity::allowed().map_err(environment)?;
    let address = address.own().map_err(environment)?;
    let mut sources = Sources::live().map_err(environment)?;
    // Kernel bypass and testpmd may use another interface than the route.
    let interface = workload.traffic.facts().packets.and_then(|packets| packets.interface(role));
    let locality = Locality::read(&mut sources, interface, address, &allowed).map_err(environment)?;
    let placement = choose(&locality, threads(&workload.traffic, role), role);
    match role {
        Role::Client => workload.pin_client.clone_from(&placement.cores),
        Role::Server => workload.pin_server.clone_from(&placement.cores),
    }
    Ok((workload, Some(placement)))
}

/// The local address of the route to a peer: a datagram socket that is connected sends nothing.
fn towards(peer: IpAddr, bind: &LocalBind) -> io::Result<IpAddr> {
    let any: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = local_bind::udp(bind, any)?;
    socket.connect((peer, DISCARD_PORT))?;
    let own = socket.local_addr()?.ip();
    // What goes to this host's own address goes over the loopback, whichever interface has that address.
    let loopback: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    Ok(if own == peer { loopback } else { own })
}

/// The threads of an end: those of testpmd, or those of our own.
fn threads(traffic: &Traffic, role: Role) -> Threads {
    let facts = traffic.facts();
    match facts.packets.and_then(|packets| packets.dpdk(role)) {
        // A core for each queue, and one for the prompt.
        Some(dpdk) => Threads::Bulk(dpdk.queues(role) + 1),
        None => facts.threads,
    }
}

/// Chooses; the rules are those of `docs/design/0012-placement.md`.
fn choose(locality: &Locality, demand: Threads, role: Role) -> Placement {
    let Locality { physical, interface, device, node, queue_cores } = locality;
    let on_node = |core: &u16| node.as_ref().is_none_or(|node| node.cores.contains(core));
    let mut near: Vec<Vec<u16>> = physical
        .iter()
        .map(|threads| threads.iter().copied().filter(on_node).collect::<Vec<_>>())
        .filter(|threads| !threads.is_empty())
        .collect();
    let is_near = !near.is_empty();
    if !is_near {
        near.clone_from(physical);
    }
    let name = match (device, interface) {
        (Some(device), Some(interface)) if device != interface => format!("{device} below {interface}"),
        (Some(name), _) | (None, Some(name)) => name.clone(),
        (None, None) => "the data".to_owned(),
    };
    let place = match node {
        Some(node) if is_near => format!(" on node {}", node.number),
        Some(node) => format!("; no core of its node {} may be used", node.number),
        None => String::new(),
    };
    let mut queues: Vec<u16> = Vec::new();
    for core in queue_cores {
        if near.iter().flatten().any(|other| other == core) && !queues.contains(core) {
            queues.push(*core);
        }
    }
    let has_queue = |threads: &[u16]| threads.iter().any(|core| queues.contains(core));
    let free: Vec<Vec<u16>> = near.iter().filter(|threads| !has_queue(threads)).cloned().collect();
    let (order, reason) = match demand {
        Threads::RoundTrips(_) if !queues.is_empty() && !free.is_empty() => {
            (by_level(&free), format!("beside the queues of {name}{place}"))
        }
        _ if !queues.is_empty() => (from_queues(&near, &queues), format!("queues of {name}{place}")),
        _ if device.is_some() => (by_level(&near), format!("no queues known, near {name}{place}")),
        // A veth or the loopback: the peer may be on this machine, and begins at the other end.
        _ => {
            if role == Role::Server {
                near.reverse();
            }
            let end = if role == Role::Server { "last" } else { "first" };
            (by_level(&near), format!("no device known for {name}, allowed cores from the {end}"))
        }
    };
    let (Threads::Bulk(threads) | Threads::RoundTrips(threads)) = demand;
    Placement { cores: order.into_iter().take(threads.max(1) as usize).collect(), reason }
}

/// The first thread of each physical core, then the second ones.
fn by_level(physical: &[Vec<u16>]) -> Vec<u16> {
    let levels = physical.iter().map(Vec::len).max().unwrap_or(0);
    (0..levels)
        .flat_map(|level| physical.iter().filter_map(move |threads| threads.get(level)))
        .copied()
        .collect()
}

/// The cores of queues in the order of these, one for each physical core; then a thread of the other physical cores; then the
/// siblings, those with a queue first.
fn from_queues(physical: &[Vec<u16>], queues: &[u16]) -> Vec<u16> {
    let mut order: Vec<u16> = Vec::new();
    let candidates: Vec<u16> = queues.iter().copied().chain(by_level(physical)).collect();
    for core in &candidates {
        let siblings = physical.iter().find(|threads| threads.contains(core));
        if siblings.is_some_and(|threads| threads.iter().all(|thread| !order.contains(thread))) {
            order.push(*core);
        }
    }
    for core in candidates {
        if !order.contains(&core) {
            order.push(core);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use netduel_host::Node;

    /// Two nodes of four physical cores with two threads each: 0..8 and 8..16, siblings 4 apart.
    fn two_nodes() -> Locality {
        let physical = [0, 1, 2, 3, 8, 9, 10, 11].map(|core| vec![core, core + 4]).to_vec();
        Locality {
            physical,
            interface: Some("eth0".into()),
            device: Some("eth0".into()),
            node: Some(Node { number: 1, cores: (8..16).collect() }),
            queue_cores: Vec::new(),
        }
    }

    fn virtual_interface(cores: u16) -> Locality {
        Locality {
            physical: (0..cores).map(|core| vec![core]).collect(),
            interface: Some("veth0".into()),
            ..Locality::default()
        }
    }

    #[test]
    fn streams_run_on_the_cores_of_queues_of_the_interfaces_node_one_physical_core_each() {
        // Queue 1 shares a physical core with queue 0; queue 3 is served on the other node.
        let locality = Locality { queue_cores: vec![9, 13, 8, 2], ..two_nodes() };
        let placement = choose(&locality, Threads::Bulk(16), Role::Client);
        assert_eq!(placement.cores, [9, 8, 10, 11, 13, 12, 14, 15]);
        assert_eq!(placement.reason, "queues of eth0 on node 1");
        assert_eq!(choose(&locality, Threads::Bulk(2), Role::Server).cores, [9, 8]);
    }

    #[test]
    fn a_round_trip_keeps_off_the_cores_of_interrupts_while_a_physical_one_is_free() {
        let some = Locality { queue_cores: vec![8, 9], ..two_nodes() };
        let placement = choose(&some, Threads::RoundTrips(1), Role::Client);
        assert_eq!(
            (placement.cores, placement.reason.as_str()),
            (vec![10], "beside the queues of eth0 on node 1")
        );
        let all = Locality { queue_cores: (8..16).collect(), ..two_nodes() };
        assert_eq!(choose(&all, Threads::RoundTrips(1), Role::Client).cores, [8]);
    }

    #[test]
    fn without_queues_the_node_decides_and_physical_cores_come_first() {
        let placement = choose(&two_nodes(), Threads::Bulk(6), Role::Server);
        assert_eq!(placement.cores, [8, 9, 10, 11, 12, 13]);
        assert_eq!(placement.reason, "no queues known, near eth0 on node 1");
    }

    #[test]
    fn cores_of_other_nodes_are_chosen_with_the_reason_where_none_of_the_node_is_allowed() {
        let physical = vec![vec![0, 4], vec![1]];
        let locality = Locality { physical, queue_cores: vec![8], ..two_nodes() };
        let placement = choose(&locality, Threads::Bulk(8), Role::Client);
        assert_eq!(placement.cores, [0, 1, 4]);
        assert!(placement.reason.contains("no core of its node 1 may be used"), "{}", placement.reason);
    }

    #[test]
    fn a_virtual_function_is_named_with_its_master() {
        let locality = Locality { device: Some("enP1s1".into()), queue_cores: vec![8], ..two_nodes() };
        let placement = choose(&locality, Threads::Bulk(1), Role::Client);
        assert_eq!(placement.reason, "queues of enP1s1 below eth0 on node 1");
    }

    #[test]
    fn two_ends_on_one_machine_share_no_core_while_there_are_enough() {
        for (cores, threads) in [(2, 1), (4, 2), (8, 4)] {
            let locality = virtual_interface(cores);
            let client = choose(&locality, Threads::Bulk(threads), Role::Client).cores;
            let server = choose(&locality, Threads::Bulk(threads), Role::Server).cores;
            assert_eq!([client.len(), server.len()], [threads as usize; 2]);
            assert!(client.iter().all(|core| !server.contains(core)), "{client:?} {server:?}");
        }
        // One core is shared rather than none used.
        assert_eq!(choose(&virtual_interface(1), Threads::RoundTrips(1), Role::Server).cores, [0]);
    }

    #[test]
    fn the_route_to_this_host_itself_is_the_loopback() {
        // All of 127.0.0.0/8 is this host's own, and so is what else it has.
        let peer: IpAddr = Ipv4Addr::new(127, 0, 0, 7).into();
        assert_eq!(towards(peer, &LocalBind::ANY).unwrap(), Ipv4Addr::LOCALHOST);
        let interfaces = netduel_host::snapshot().unwrap().interfaces;
        for own in interfaces.iter().flat_map(|found| &found.addresses).filter(|own| own.is_ipv4()) {
            assert_eq!(towards(*own, &LocalBind::ANY).unwrap(), Ipv4Addr::LOCALHOST, "{own}");
        }
    }
}
