//! The fixed names and addresses inside a local lab. Every lab lives in namespaces of its own, so they never clash.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::plan::resolved::{Lab, TreatmentAction};
use crate::plan::spec::LabPath;

/// The name of a lab that is given no other one.
pub const DEFAULT_NAME: &str = "local";
/// The guests.
pub const GUESTS: [&str; 2] = ["a", "b"];
/// All hosts of a lab: two guests, and the two machines that carry them.
pub const HOSTS: [&str; 4] = ["a", "b", "h1", "h2"];
/// The guest's interface that holds its addresses, whatever path lies beneath.
pub const GUEST_INTERFACE: &str = "eth0";
/// Guest end of the synthetic path.
pub const SYNTHETIC_INTERFACE: &str = "syn0";
/// Guest end of the accelerated path: the virtual function.
pub const ACCELERATED_INTERFACE: &str = "vf0";
/// The other end of the virtual function, on the machine that carries the guest.
pub const ACCELERATED_PORT: &str = "vvf";

/// Guest end of the direct path: one veth pair between the guests.
pub const DIRECT_INTERFACE: &str = "dir0";

/// The two interfaces of a guest of which one takes over while the other is down.
pub const PAIR: [&str; 2] = [ACCELERATED_INTERFACE, SYNTHETIC_INTERFACE];

/// All interfaces of a guest.
pub const GUEST_INTERFACES: [&str; 5] =
    ["lo", GUEST_INTERFACE, SYNTHETIC_INTERFACE, ACCELERATED_INTERFACE, DIRECT_INTERFACE];

/// The path of a lab until a treatment sets another one.
pub const INITIAL_PATH: LabPath = LabPath::Synthetic;

/// Addresses of a guest: IPv4 in 10.77.0.0/24 and IPv6 in fd77::/64; empty for any other name.
pub fn addresses(guest: &str) -> Vec<IpAddr> {
    let Some(index) = GUESTS.iter().position(|name| *name == guest) else { return Vec::new() };
    let last = index as u8 + 1;
    vec![
        IpAddr::V4(Ipv4Addr::new(10, 77, 0, last)),
        IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(last))),
    ]
}

/// The machine that carries a guest; `None` for any other name.
pub fn machine(guest: &str) -> Option<&'static str> {
    let index = GUESTS.iter().position(|name| *name == guest)?;
    HOSTS.get(GUESTS.len() + index).copied()
}

/// The guest's interface that carries the bytes on a path.
pub fn interface(path: LabPath) -> &'static str {
    match path {
        LabPath::Synthetic => SYNTHETIC_INTERFACE,
        LabPath::Accelerated => ACCELERATED_INTERFACE,
        LabPath::Direct => DIRECT_INTERFACE,
    }
}

/// Receive queues, and transmit queues, of a guest's interface on a path, as the lab creates it.
pub fn queues(path: LabPath, lab: &Lab) -> u32 {
    match path {
        LabPath::Synthetic | LabPath::Accelerated => 1,
        LabPath::Direct => lab.queues,
    }
}

/// Whether the far end of a guest's interface takes frames of the generator `kernel`: it has to serve its queues by NAPI, which the lab
/// enables on the direct path only ([`FRAMES_REJECTED`](crate::packet_path::FRAMES_REJECTED)).
pub fn takes_frames_of_the_kernel(path: LabPath) -> bool {
    path == LabPath::Direct
}

/// The key of a treatment that no interface of a guest has, and what it lacks: all are veths, a bridge and the loopback.
pub fn lacks(action: &TreatmentAction) -> Option<(&'static str, &'static str)> {
    match action {
        TreatmentAction::Pci { .. } => Some(("pci", "PCI function")),
        TreatmentAction::Ring { .. } => Some(("ring", "rings")),
        TreatmentAction::IrqAffinity { .. } => Some(("irq_affinity", "interrupts")),
        TreatmentAction::Rss { .. } => Some(("rss", "RSS table")),
        TreatmentAction::Coalesce { .. } => Some(("coalesce", "interrupt coalescing")),
        TreatmentAction::Path { .. }
        | TreatmentAction::Offload { .. }
        | TreatmentAction::Mtu { .. }
        | TreatmentAction::Sysctl { .. }
        | TreatmentAction::Vf { .. }
        | TreatmentAction::Queues { .. }
        | TreatmentAction::Rps { .. }
        | TreatmentAction::Xps { .. }
        | TreatmentAction::AzureNic { .. }
        | TreatmentAction::AzurePlacement { .. }
        | TreatmentAction::Command { .. } => None,
    }
}
