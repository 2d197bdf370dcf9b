//! Which interfaces are network hardware, and which of them carries the packets. Bridges, veth pairs, tunnels and the loopback are
//! not hardware, so no rule about hardware applies to them.
use std::collections::BTreeSet;

use netduel_model::snapshot::{HostSnapshot, Interface, LOOPBACK, PciFunction, SYNTHETIC_DRIVERS};

/// Whether an interface is a physical or virtual network device, not one that the kernel builds on others.
pub(crate) fn is_hardware(interface: &Interface) -> bool {
    let loopback =
        interface.name == LOOPBACK || interface.addresses.iter().any(std::net::IpAddr::is_loopback);
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
    ports.find(|port| port.driver.as_deref() != Some("virtio_net"))
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
        let now = channels.combined.0 + channels.rx.0;
        let most = channels.combined.1.max(channels.rx.1);
        return (now > 0).then_some((now, Some(most.max(now))));
    }
    let queues: BTreeSet<u32> =
        interface.device.interrupts.iter().filter_map(|interrupt| interrupt.queue).collect();
    (!queues.is_empty()).then_some((queues.len() as u32, None))
}

/// The interface that carries the data of a host: the one with one of these addresses, else the one of the first default route.
pub(super) fn data_interface<'a>(
    host: &'a HostSnapshot,
    addresses: &[std::net::IpAddr],
) -> Option<&'a Interface> {
    let by_address = host
        .interfaces
        .iter()
        .find(|interface| interface.addresses.iter().any(|address| addresses.contains(address)));
    by_address.or_else(|| {
        let name = host.default_routes.first()?;
        host.interfaces.iter().find(|interface| &interface.name == name)
    })
}
