//! Links and addresses from the kernel's netlink lists. Pure: bytes in, facts out.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netduel_sys::netlink::{self, RTM_NEWADDR, RTM_NEWLINK, attributes, messages, u32_at, u64_at};

/// Attributes of a link (include/uapi/linux/if_link.h).
mod attribute {
    pub const ADDRESS: u16 = 1;
    pub const NAME: u16 = 3;
    pub const MTU: u16 = 4;
    pub const LOWER: u16 = 5;
    pub const QDISC: u16 = 6;
    pub const MASTER: u16 = 10;
    pub const LINK_INFO: u16 = 18;
    pub const STATISTICS: u16 = 23;
    pub const TX_QUEUES: u16 = 31;
    pub const RX_QUEUES: u16 = 32;
    pub const CARRIER: u16 = 33;
    pub const LOWER_NAMESPACE: u16 = 37;
    pub const PORT_NAME: u16 = 38;
    pub const MTU_MIN: u16 = 50;
    pub const MTU_MAX: u16 = 51;
    pub const PARENT_DEVICE: u16 = 56;
    pub const PARENT_BUS: u16 = 57;
    /// Within `LINK_INFO`.
    pub const INFO_KIND: u16 = 1;
}
/// `IFA_ADDRESS`: the address, or the peer's on a point-to-point link.
const ADDRESS_PEER: u16 = 1;
/// `IFA_LOCAL`: the host's own on a point-to-point link.
const ADDRESS_LOCAL: u16 = 2;
/// `IFF_UP`.
const FLAG_UP: u32 = 1;
/// `AF_UNSPEC`, the family of a link's own messages.
const FAMILY_ANY: u8 = 0;
/// Bytes of `struct ifinfomsg`.
const LINK_HEAD_LEN: usize = 16;
/// Bytes of `struct ifaddrmsg`.
const ADDRESS_HEAD_LEN: usize = 8;

/// Counters of a link (`struct rtnl_link_stats64`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

/// One link. Fields that the kernel did not report are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Link {
    pub index: u32,
    pub name: String,
    pub up: bool,
    pub kind: Option<String>,
    pub mac: Option<String>,
    pub mtu: Option<u32>,
    pub mtu_min: Option<u32>,
    pub mtu_max: Option<u32>,
    pub qdisc: Option<String>,
    pub carrier: Option<bool>,
    pub master: Option<u32>,
    /// The link beneath a VLAN or macvlan, the peer of a veth; none when it is in another namespace.
    pub lower: Option<u32>,
    pub tx_queues: Option<u32>,
    pub rx_queues: Option<u32>,
    /// The device behind it and its bus, as `0002:00:02.0` on `pci`; Linux 5.14 and later.
    pub device: Option<String>,
    pub bus: Option<String>,
    /// The name of its port (`IFLA_PHYS_PORT_NAME`), as its driver reports it.
    pub port: Option<String>,
    pub counters: Option<Counters>,
}

/// The links of a list, in the kernel's order.
pub(crate) fn links(list: &[u8]) -> Vec<Link> {
    messages(list)
        .filter(|message| message.kind == RTM_NEWLINK)
        .filter_map(|message| link(message.payload))
        .collect()
}

/// The link of one message; absent for bridge port messages (`AF_BRIDGE`), which have the same type.
pub(crate) fn link(payload: &[u8]) -> Option<Link> {
    payload.first().filter(|family| **family == FAMILY_ANY)?;
    let index = u32_at(payload, 4)?;
    let up = u32_at(payload, 8)? & FLAG_UP != 0;
    let mut link = Link { index, up, ..Link::default() };
    let mut lower_is_elsewhere = false;
    for (kind, value) in attributes(payload.get(LINK_HEAD_LEN..)?) {
        match kind {
            attribute::ADDRESS => link.mac = mac(value),
            attribute::NAME => link.name = text(value),
            attribute::MTU => link.mtu = u32_at(value, 0),
            // 0: the driver has no limit.
            attribute::MTU_MIN => link.mtu_min = u32_at(value, 0).filter(|mtu| *mtu > 0),
            attribute::MTU_MAX => link.mtu_max = u32_at(value, 0).filter(|mtu| *mtu > 0),
            attribute::LOWER => link.lower = u32_at(value, 0).filter(|lower| *lower > 0 && *lower != index),
            attribute::LOWER_NAMESPACE => lower_is_elsewhere = true,
            attribute::QDISC => link.qdisc = Some(text(value)),
            attribute::MASTER => link.master = u32_at(value, 0).filter(|index| *index > 0),
            attribute::TX_QUEUES => link.tx_queues = u32_at(value, 0),
            attribute::RX_QUEUES => link.rx_queues = u32_at(value, 0),
            attribute::CARRIER => link.carrier = value.first().map(|carrier| *carrier != 0),
            attribute::PARENT_DEVICE => link.device = Some(text(value)),
            attribute::PORT_NAME => link.port = Some(text(value)),
            attribute::PARENT_BUS => link.bus = Some(text(value)),
            attribute::STATISTICS => link.counters = counters(value),
            attribute::LINK_INFO => {
                link.kind = netlink::attribute(value, attribute::INFO_KIND).map(text);
            }
            _ => {}
        }
    }
    // The index is one of the other namespace.
    link.lower = link.lower.filter(|_| !lower_is_elsewhere);
    (!link.name.is_empty()).then_some(link)
}

fn counters(value: &[u8]) -> Option<Counters> {
    let field = |index: usize| u64_at(value, index * 8);
    Some(Counters {
        rx_packets: field(0)?,
        tx_packets: field(1)?,
        rx_bytes: field(2)?,
        tx_bytes: field(3)?,
        rx_errors: field(4)?,
        tx_errors: field(5)?,
        rx_dropped: field(6)?,
        tx_dropped: field(7)?,
    })
}

/// A string with or without its final zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// A link-layer address; the zeros of the loopback and the IPv4 address of a tunnel are not link-layer addresses.
fn mac(value: &[u8]) -> Option<String> {
    let real = value.len() >= 6 && value.iter().any(|byte| *byte != 0);
    real.then(|| value.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
}

/// The addresses of a list, each with the index of its link.
pub(crate) fn addresses(list: &[u8]) -> Vec<(u32, IpAddr)> {
    networks(list).into_iter().map(|(index, address, _)| (index, address)).collect()
}

/// The same with the prefix length of each.
pub(crate) fn networks(list: &[u8]) -> Vec<(u32, IpAddr, u8)> {
    messages(list)
        .filter(|message| message.kind == RTM_NEWADDR)
        .filter_map(|message| {
            let index = u32_at(message.payload, 4)?;
            let attributes = message.payload.get(ADDRESS_HEAD_LEN..)?;
            let of = |kind: u16| netlink::attribute(attributes, kind);
            let prefix_length = *message.payload.get(1)?;
            Some((index, ip(of(ADDRESS_LOCAL).or_else(|| of(ADDRESS_PEER))?)?, prefix_length))
        })
        .collect()
}

pub(crate) fn ip(value: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(value) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(value).ok().map(|sixteen| Ipv6Addr::from(sixteen).into())
}

/// Limits of the MTU of a link by its driver, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuRange {
    /// Smallest.
    pub min: Option<u32>,
    /// Largest.
    pub max: Option<u32>,
}

/// A link on another one: a VLAN, a macvlan or the like, or the other end of a pair in the same network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackedLink {
    /// Its name.
    pub name: String,
    /// Its kind, as `macvlan`.
    pub kind: String,
    /// Its MTU, bytes.
    pub mtu: u32,
}
