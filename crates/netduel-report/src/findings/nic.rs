//! Which interfaces are network hardware, and which of them carries the packets. Bridges, veth pairs, tunnels and the loopback are
//! not hardware, so no rule about hardware applies to them.
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::IpAddr;

use netduel_model::snapshot::{
    HostSnapshot, Interface, LOOPBACK, PciFunction, STANDBY_DRIVER, SYNTHETIC_DRIVERS, is_in_network,
};

/// Whether an interface is a physical or virtual network device, not one that the kernel builds on others.
pub(crate) fn is_hardware(interface: &Interface) -> bool {
    let loopback = interface.name == LOOPBACK || interface.addresses.iter().any(IpAddr::is_loopback);
    interface.kind.is_none() && !loopback && (interface.driver.is_some() || interface.device.pci.is_some())
}

/// Whether a host has an interface that is network hardware.
pub(crate) fn has_hardware(host: &HostSnapshot) -> bool {
    host.interfaces.iter().any(is_hardware)
}

/// Whether an interface keeps the address while a virtual function below it can carry the packets.
pub(super) fn is_synthetic(interface: &Interface) -> bool {
    interface.driver.as_deref().is_some_and(|driver| SYNTHETIC_DRIVERS.contains(&driver))
}

/// The interfaces directly below another.
pub(crate) fn ports_of<'a>(host: &'a HostSnapshot, name: &'a str) -> impl Iterator<Item = &'a Interface> {
    host.interfaces.iter().filter(move |interface| interface.master.as_deref() == Some(name))
}

/// The virtual function that is paired with a synthetic interface.
pub(super) fn partner<'a>(host: &'a HostSnapshot, synthetic: &'a Interface) -> Option<&'a Interface> {
    let mut ports = ports_of(host, &synthetic.name).filter(|port| is_hardware(port));
    // The standby of net_failover is paravirtual too: the other port is the virtual function.
    ports.find(|port| port.driver.as_deref() != Some(STANDBY_DRIVER))
}

/// The hardware interfaces that are up and carry packets: a synthetic one only while no function below it does.
pub(super) fn carriers(host: &HostSnapshot) -> impl Iterator<Item = &Interface> {
    host.interfaces
        .iter()
        .filter(|interface| interface.up && is_hardware(interface))
        .filter(|interface| !(is_synthetic(interface) && partner(host, interface).is_some_and(|vf| vf.up)))
}

/// The PCI function of an interface, from either place of the snapshot.
pub(super) fn pci_of<'a>(host: &'a HostSnapshot, interface: &'a Interface) -> Option<&'a PciFunction> {
    interface
        .device
        .pci
        .as_ref()
        .or_else(|| host.pci_functions.iter().find(|function| function.interfaces.contains(&interface.name)))
}

/// Receive queues in use, and the maximum of the device; absent without channels and interrupts. The number of queues that the
/// kernel allocated (`IFLA_NUM_RX_QUEUES`) is not the number in use.
pub(crate) fn queue_count(interface: &Interface) -> Option<(u32, Option<u32>)> {
    if let Some(channels) = &interface.device.channels {
        let now = channels.combined.0.saturating_add(channels.rx.0);
        let most = channels.combined.1.max(channels.rx.1);
        return (now > 0).then_some((now, Some(most.max(now))));
    }
    let queues: BTreeSet<u32> =
        interface.device.interrupts.iter().filter_map(|interrupt| interrupt.queue).collect();
    (!queues.is_empty()).then_some((queues.len() as u32, None))
}

/// The interface with the addresses of a host's data: the expected one or its master, else the one with one of these addresses, else the
/// one in the network of the peer, else the one of the first default route.
pub(super) fn data_interface<'a>(
    host: &'a HostSnapshot,
    expected: Option<&'a Interface>,
    addresses: &[IpAddr],
    of_peer: &[IpAddr],
) -> Option<&'a Interface> {
    let named = |name: &str| host.interfaces.iter().find(|interface| interface.name == name);
    if let Some(expected) = expected {
        let master = expected.master.as_deref().filter(|_| expected.addresses.is_empty());
        return Some(master.and_then(named).unwrap_or(expected));
    }
    let by_address = host
        .interfaces
        .iter()
        .find(|interface| interface.addresses.iter().any(|address| addresses.contains(address)));
    by_address
        .or_else(|| {
            let nearest = |interface: &&Interface| {
                of_peer.iter().filter_map(|peer| prefix_to(interface, *peer)).max().map(Reverse)
            };
            host.interfaces
                .iter()
                .filter(|interface| nearest(interface).is_some())
                .min_by_key(|interface| nearest(interface))
        })
        .or_else(|| named(host.default_routes.first()?))
}

/// The length of the longest prefix of an interface's networks that contains the peer, as the kernel's routes of these networks do.
fn prefix_to(interface: &Interface, peer: IpAddr) -> Option<u8> {
    let networks = interface.addresses.iter().zip(&interface.prefix_lengths);
    networks.filter(|(own, length)| is_in_network(**own, **length, peer)).map(|(_, length)| *length).max()
}
