//! Names, indices and addresses of the lab's interfaces. Data only.
//!
//! ```text
//! guest a               machine h1                                  machine h2          guest b
//! eth0 (bridge, IP)     vsw0: software switch, linear policy        (mirror image)
//!  |- syn0 --- veth --- vsyn - vsw0 - pf1
//!  |                                   | veth = the NIC's uplink
//!  |- vf0  --- veth --- vvf  - nic0 - pf0
//!  |                    nic0: the NIC's embedded switch --- wire --- nic0 ...
//!  |
//!  '- dir0 ------------- veth, with the configured number of queues --------------------------- dir0 of guest b
//! ```
use netduel_model::lab::{
    ACCELERATED_INTERFACE, ACCELERATED_PORT, DIRECT_INTERFACE, GUEST_INTERFACE, SYNTHETIC_INTERFACE,
};

use crate::netlink::link::Mac;

/// MTU of all interfaces except the guests', bytes: slightly above the maximum of the guests.
pub(crate) const MACHINE_MTU: u32 = 9100;
/// Congestion control of the guests' connections, as in the measurements of `docs/design/0004-lab.md`.
pub(crate) const CONGESTION_CONTROL: &str = "cubic";

/// An interface: its name, and its index, unique in the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Name.
    pub name: &'static str,
    /// Index.
    pub index: u32,
}

const fn interface(name: &'static str, index: u32) -> Interface {
    Interface { name, index }
}

/// Loopback; the kernel always gives it this index.
pub(crate) const LOOPBACK: Interface = interface("lo", 1);
/// The guest's bridge that holds its addresses.
pub(crate) const GUEST: Interface = interface(GUEST_INTERFACE, 10);
/// The guest's end of the synthetic path.
pub(crate) const SYNTHETIC: Interface = interface(SYNTHETIC_INTERFACE, 11);
/// The guest's end of the accelerated path.
pub(crate) const FUNCTION: Interface = interface(ACCELERATED_INTERFACE, 12);
/// The guest's second interface, if one is added.
pub(crate) const SECOND: Interface = interface("eth1", 13);
/// The machine's software switch.
pub(crate) const SWITCH: Interface = interface("vsw0", 20);
/// The switch's port to the guest.
pub(crate) const SWITCH_PORT: Interface = interface("vsyn", 21);
/// The switch's port to a guest's second interface.
pub(crate) const SECOND_PORT: Interface = interface("vsyn1", 23);
/// The switch's uplink.
pub(crate) const SWITCH_UPLINK: Interface = interface("pf1", 22);
/// The NIC's embedded switch.
pub(crate) const NIC: Interface = interface("nic0", 30);
/// The NIC's port to the guest's virtual function.
pub(crate) const NIC_FUNCTION: Interface = interface(ACCELERATED_PORT, 31);
/// The NIC's physical function, the other end of the switch's uplink.
pub(crate) const NIC_UPLINK: Interface = interface("pf0", 32);

/// A guest and its machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// The guest's name.
    pub guest: &'static str,
    /// The machine's name.
    pub machine: &'static str,
    /// The machine's end of the wire.
    pub wire: Interface,
    /// The guest's end of the direct path.
    pub direct: Interface,
    /// The guest's address, the same on every path.
    pub mac: Mac,
}

/// The two sides, in the order of `netduel_model::lab::GUESTS`.
pub(crate) const SIDES: [Side; 2] = [
    Side {
        guest: "a",
        machine: "h1",
        wire: interface("wire", 41),
        direct: interface(DIRECT_INTERFACE, 14),
        mac: [0x02, 0x70, 0x6c, 0, 0, 0x0a],
    },
    Side {
        guest: "b",
        machine: "h2",
        wire: interface("wire", 42),
        direct: interface(DIRECT_INTERFACE, 15),
        mac: [0x02, 0x70, 0x6c, 0, 0, 0x0b],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_every_veth_pair_have_different_indices() {
        let pairs = [
            (SYNTHETIC, SWITCH_PORT),
            (FUNCTION, NIC_FUNCTION),
            (SECOND, SECOND_PORT),
            (SWITCH_UPLINK, NIC_UPLINK),
            (SIDES[0].wire, SIDES[1].wire),
            (SIDES[0].direct, SIDES[1].direct),
        ];
        for (near, far) in pairs {
            assert_ne!(near.index, far.index, "{} {}", near.name, far.name);
        }
    }

    #[test]
    fn sides_have_the_host_names_of_the_model() {
        let names = [SIDES[0].guest, SIDES[1].guest, SIDES[0].machine, SIDES[1].machine];
        assert_eq!(names, netduel_model::lab::HOSTS);
    }
}
