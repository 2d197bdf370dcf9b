//! Addresses and their routes over rtnetlink (include/uapi/linux/if_addr.h, rtnetlink.h).
use std::net::IpAddr;

use netduel_sys::netlink::{
    AF_INET, AF_INET6, CREATE, EXCL, RT_TABLE_MAIN, RTA_DST, RTA_OIF, RTM_NEWADDR, RTM_NEWROUTE, RTN_UNICAST,
    Request,
};

use super::socket::{Netlink, Step};
use crate::error::LabError;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u32 = 0x02;
const IFA_F_NOPREFIXROUTE: u32 = 0x200;

const RTA_METRICS: u16 = 8;
const RTAX_CC_ALGO: u16 = 16;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_UNIVERSE: u8 = 0;

const IPV6: &str = "IPv6 (CONFIG_IPV6; remove ipv6.disable=1 from the kernel's command line)";

/// Family, bytes and prefix length of the lab's subnets.
pub(crate) fn parts(address: IpAddr) -> (u8, Vec<u8>, u8) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec(), 24),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec(), 64),
    }
}

/// Adds an address that works at once (no duplicate address detection), without a route to its subnet.
pub(crate) fn add_address(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    object: &str,
) -> Result<(), LabError> {
    let (family, bytes, prefix) = parts(address);
    let mut body = [family, prefix, 0, 0, 0, 0, 0, 0];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let message = Request::new(RTM_NEWADDR, CREATE | EXCL, &body)
        .bytes(IFA_LOCAL, &bytes)
        .bytes(IFA_ADDRESS, &bytes)
        .u32(IFA_FLAGS, IFA_F_NODAD | IFA_F_NOPREFIXROUTE);
    let feature = (family == AF_INET6).then_some(IPV6);
    netlink.request(message, Step { operation: "add address to", object, feature })
}

/// Routes the subnet of `address` to an interface and sets the congestion control of its connections. Per route, because a
/// namespace of an ordinary user may not change the default, and the machine's default may pace.
pub(crate) fn add_subnet_route(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    congestion_control: &str,
    object: &str,
) -> Result<(), LabError> {
    let (family, mut bytes, prefix) = parts(address);
    for byte in bytes.iter_mut().skip(usize::from(prefix) / 8) {
        *byte = 0;
    }
    let scope = if family == AF_INET { RT_SCOPE_LINK } else { RT_SCOPE_UNIVERSE };
    let mut body = [family, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0, 0, 0, 0];
    body[8..12].copy_from_slice(&0u32.to_ne_bytes());
    let message = Request::new(RTM_NEWROUTE, CREATE | EXCL, &body)
        .bytes(RTA_DST, &bytes)
        .u32(RTA_OIF, index)
        .nested(RTA_METRICS, |metrics| metrics.text(RTAX_CC_ALGO, congestion_control));
    let operation = format!("route with congestion control {congestion_control} through");
    netlink.request(message, Step { operation: &operation, object, feature: None })
}
