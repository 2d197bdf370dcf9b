//! Neighbours of addresses and forwarding entries of bridges over rtnetlink (include/uapi/linux/neighbour.h).
use std::net::IpAddr;

use netduel_sys::netlink::{
    AF_BRIDGE, CREATE, NDA_DST, NDA_LLADDR, REPLACE, RTM_GETNEIGH, RTM_NEWNEIGH, Request, attribute, u16_at,
    u32_at,
};

use super::link::Mac;
use super::socket::{Netlink, Step};
use crate::error::LabError;

const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NTF_MASTER: u8 = 0x04;

/// `struct ndmsg`.
fn body(family: u8, index: u32, state: u16, flags: u8) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[0] = family;
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..10].copy_from_slice(&state.to_ne_bytes());
    bytes[10] = flags;
    bytes
}

/// Sets a permanent link-layer address for an address, so that a path change does not wait for neighbour discovery.
pub(crate) fn set_neighbour(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    mac: Mac,
    object: &str,
) -> Result<(), LabError> {
    let (family, bytes, _) = super::address::parts(address);
    let message = Request::new(RTM_NEWNEIGH, CREATE | REPLACE, &body(family, index, NUD_PERMANENT, 0))
        .bytes(NDA_DST, &bytes)
        .bytes(NDA_LLADDR, &mac);
    netlink.request(message, Step { operation: "set neighbour of", object, feature: None })
}

/// Makes the bridge of the port send frames for an address out of this port, in place of any other.
pub(crate) fn steer(netlink: &mut Netlink, port: u32, mac: Mac, object: &str) -> Result<(), LabError> {
    let message = Request::new(RTM_NEWNEIGH, CREATE | REPLACE, &body(AF_BRIDGE, port, NUD_NOARP, NTF_MASTER))
        .bytes(NDA_LLADDR, &mac);
    netlink.request(message, Step { operation: "steer traffic to", object, feature: None })
}

/// The ports of all bridges in the namespace to which frames for an address are sent.
pub(crate) fn steered_to(netlink: &mut Netlink, mac: Mac, object: &str) -> Result<Vec<u32>, LabError> {
    // A dump of forwarding entries starts with `struct ifinfomsg` (net/core/rtnetlink.c, rtnl_fdb_dump).
    let mut body = [0; 16];
    body[0] = AF_BRIDGE;
    let step = Step { operation: "read the forwarding entries of", object, feature: None };
    let rows = netlink.dump(&Request::new(RTM_GETNEIGH, 0, &body), step)?;
    Ok(rows
        .iter()
        .filter(|row| {
            let attributes = row.get(12..).unwrap_or_default();
            attribute(attributes, NDA_LLADDR) == Some(&mac) && u16_at(row, 8) == Some(NUD_NOARP)
        })
        .filter_map(|row| u32_at(row, 4))
        .collect())
}
