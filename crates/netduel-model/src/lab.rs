//! The fixed names and addresses inside a local lab. Every lab lives in namespaces of its own, so they never clash.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::plan::spec::LabPath;

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

/// Guest end of the direct path: one veth pair between the guests.
pub const DIRECT_INTERFACE: &str = "dir0";

/// Addresses of a guest: IPv4 in 10.77.0.0/24 and IPv6 in fd77::/64; empty for any other name.
pub fn addresses(guest: &str) -> Vec<IpAddr> {
    let Some(index) = GUESTS.iter().position(|name| *name == guest) else { return Vec::new() };
    let last = index as u8 + 1;
    vec![
        IpAddr::V4(Ipv4Addr::new(10, 77, 0, last)),
        IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(last))),
    ]
}

/// The guest's interface that carries the bytes on a path.
pub fn interface(path: LabPath) -> &'static str {
    match path {
        LabPath::Synthetic => SYNTHETIC_INTERFACE,
        LabPath::Accelerated => ACCELERATED_INTERFACE,
        LabPath::Direct => DIRECT_INTERFACE,
    }
}
