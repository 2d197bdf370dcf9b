//! Interfaces over rtnetlink (include/uapi/linux/if_link.h): veth pairs, bridges, ports and counters.
use std::os::fd::{AsRawFd, BorrowedFd};

use netduel_sys::netlink::{
    AF_INET6, CREATE, EXCL, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, Request, attribute, u32_at, u64_at,
};

use super::socket::{Netlink, Step};
use crate::error::{Errno, LabError};

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
const VETH_INFO_PEER: u16 = 1;

const IFLA_BR_FORWARD_DELAY: u16 = 1;
const IFLA_BR_STP_STATE: u16 = 5;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;

const IFLA_BRPORT_STATE: u16 = 1;
const IFLA_BRPORT_LEARNING: u16 = 8;
const IFLA_BRPORT_UNICAST_FLOOD: u16 = 9;
const IFLA_BRPORT_MCAST_FLOOD: u16 = 27;
const IFLA_BRPORT_BCAST_FLOOD: u16 = 30;
const IFLA_BRPORT_ISOLATED: u16 = 33;
const IFLA_BRPORT_BACKUP_PORT: u16 = 34;

const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

const IFF_UP: u32 = 1;
const OPERSTATE_UP: u8 = 6;
const PORT_FORWARDING: u8 = 3;

/// Kernel option for veth pairs.
const VETH: &str = "veth pairs (CONFIG_VETH, `modprobe veth`)";
/// Kernel option for bridges.
const BRIDGE: &str = "Ethernet bridges (CONFIG_BRIDGE, `modprobe bridge`)";

/// A link-layer address.
pub(crate) type Mac = [u8; 6];

/// One end of a veth pair, or a bridge, to be created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewLink<'a> {
    /// Name.
    pub name: &'a str,
    /// Index; the lab selects it so that both ends of a pair differ. With equal indices in two namespaces the kernel takes a pair
    /// for one device and may report its carrier a second late (net/core/link_watch.c).
    pub index: u32,
    /// Bytes.
    pub mtu: u32,
    /// Fixed address; the kernel generates one when absent.
    pub mac: Option<Mac>,
    /// Queues in each direction; the kernel's default when absent.
    pub queues: Option<u32>,
}

/// Settings of a bridge port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PortSettings {
    /// Whether it does not forward to other isolated ports.
    pub isolated: bool,
    /// Whether frames to unknown, multicast and broadcast addresses are sent out of it.
    pub flood: bool,
    /// The port that takes over its traffic while it has no carrier.
    pub backup: Option<u32>,
}

/// Counters of an interface since its creation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Counters {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

/// The state of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkState {
    /// Up, with carrier.
    pub operational: bool,
    /// Whether it is a bridge port that forwards; absent for other interfaces.
    pub forwarding: Option<bool>,
    /// Counters.
    pub counters: Counters,
}

/// `struct ifinfomsg`.
fn body(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..16].copy_from_slice(&change.to_ne_bytes());
    bytes
}

/// Attributes of every new interface. Without link-local addresses, so that no port sends router solicitations or listener
/// reports, which the counters of a path would include.
fn describe(message: Request, link: NewLink<'_>) -> Request {
    let message = message.text(IFLA_IFNAME, link.name).u32(IFLA_MTU, link.mtu);
    let message = match link.mac {
        Some(mac) => message.bytes(IFLA_ADDRESS, &mac),
        None => message,
    };
    match link.queues {
        Some(queues) => message.u32(IFLA_NUM_TX_QUEUES, queues).u32(IFLA_NUM_RX_QUEUES, queues),
        None => message,
    }
}

/// Creates a bridge without spanning tree and without multicast snooping.
pub(crate) fn create_bridge(netlink: &mut Netlink, link: NewLink<'_>, object: &str) -> Result<(), LabError> {
    let message = describe(Request::new(RTM_NEWLINK, CREATE | EXCL, &body(link.index, 0, 0)), link).nested(
        IFLA_LINKINFO,
        |info| {
            info.text(IFLA_INFO_KIND, "bridge").nested(IFLA_INFO_DATA, |data| {
                data.u32(IFLA_BR_FORWARD_DELAY, 0).u32(IFLA_BR_STP_STATE, 0).u8(IFLA_BR_MCAST_SNOOPING, 0)
            })
        },
    );
    netlink.request(message, Step { operation: "create bridge", object, feature: Some(BRIDGE) })
}

/// Creates a veth pair: `near` in the socket's namespace, `far` in `far_namespace`.
pub(crate) fn create_veth(
    netlink: &mut Netlink,
    near: NewLink<'_>,
    far: NewLink<'_>,
    far_namespace: BorrowedFd<'_>,
    object: &str,
) -> Result<(), LabError> {
    let message = describe(Request::new(RTM_NEWLINK, CREATE | EXCL, &body(near.index, 0, 0)), near).nested(
        IFLA_LINKINFO,
        |info| {
            info.text(IFLA_INFO_KIND, "veth").nested(IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    describe(peer.structure(&body(far.index, 0, 0)), far)
                        .u32(IFLA_NET_NS_FD, far_namespace.as_raw_fd() as u32)
                })
            })
        },
    );
    netlink.request(message, Step { operation: "create veth pair", object, feature: Some(VETH) })
}

/// Disables IPv6 addresses that the kernel would generate. Does nothing on a kernel without IPv6.
pub(crate) fn no_link_local(netlink: &mut Netlink, index: u32, object: &str) -> Result<(), LabError> {
    let message = Request::new(RTM_NEWLINK, 0, &body(index, 0, 0)).nested(IFLA_AF_SPEC, |spec| {
        spec.nested(u16::from(AF_INET6), |inet6| inet6.u8(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE))
    });
    let feature = Some("IPv6 (CONFIG_IPV6; remove ipv6.disable=1 from the kernel's command line)");
    netlink.request(message, Step { operation: "disable link-local addresses of", object, feature })
}

/// Sets an interface up.
pub(crate) fn set_up(netlink: &mut Netlink, index: u32, object: &str) -> Result<(), LabError> {
    let message = Request::new(RTM_NEWLINK, 0, &body(index, IFF_UP, IFF_UP));
    netlink.request(message, Step { operation: "set up", object, feature: None })
}

/// Sets an interface down: it carries no packets, and the other end of a veth pair loses its carrier.
pub(crate) fn set_down(netlink: &mut Netlink, index: u32, object: &str) -> Result<(), LabError> {
    let message = Request::new(RTM_NEWLINK, 0, &body(index, 0, IFF_UP));
    netlink.request(message, Step { operation: "set down", object, feature: None })
}

/// Deletes an interface; a veth pair is deleted as a whole.
pub(crate) fn delete(netlink: &mut Netlink, index: u32, object: &str) -> Result<(), LabError> {
    let message = Request::new(RTM_DELLINK, 0, &body(index, 0, 0));
    netlink.request(message, Step { operation: "delete", object, feature: None })
}

/// Makes an interface a port of a bridge.
pub(crate) fn set_master(
    netlink: &mut Netlink,
    index: u32,
    master: u32,
    object: &str,
) -> Result<(), LabError> {
    let message = Request::new(RTM_NEWLINK, 0, &body(index, 0, 0)).u32(IFLA_MASTER, master);
    netlink.request(message, Step { operation: "add to its bridge", object, feature: None })
}

/// Sets the options of a bridge port. Ports never learn: the lab sets every forwarding entry.
pub(crate) fn set_port(
    netlink: &mut Netlink,
    index: u32,
    settings: PortSettings,
    object: &str,
) -> Result<(), LabError> {
    let message = Request::new(RTM_NEWLINK, 0, &body(index, 0, 0)).nested(IFLA_LINKINFO, |info| {
        info.text(IFLA_INFO_SLAVE_KIND, "bridge").nested(IFLA_INFO_SLAVE_DATA, |data| {
            let flood = u8::from(settings.flood);
            let data = data
                .u8(IFLA_BRPORT_LEARNING, 0)
                .u8(IFLA_BRPORT_ISOLATED, u8::from(settings.isolated))
                .u8(IFLA_BRPORT_UNICAST_FLOOD, flood)
                .u8(IFLA_BRPORT_MCAST_FLOOD, flood)
                .u8(IFLA_BRPORT_BCAST_FLOOD, flood);
            match settings.backup {
                Some(port) => data.u32(IFLA_BRPORT_BACKUP_PORT, port),
                None => data,
            }
        })
    });
    let feature = Some("isolated bridge ports with a backup port (Linux 4.19 or later)");
    netlink.request(message, Step { operation: "set up bridge port", object, feature })
}

/// The state of the interface with this index; absent when there is none.
pub(crate) fn state(netlink: &mut Netlink, index: u32, object: &str) -> Result<Option<LinkState>, LabError> {
    const ENODEV: Errno = Errno(19);
    let message = Request::new(RTM_GETLINK, 0, &body(index, 0, 0));
    let payload = match netlink.get(message, Step { operation: "read the state of", object, feature: None }) {
        Ok(payload) => payload,
        Err(LabError::Kernel { errno: ENODEV, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let attributes = payload.get(16..).unwrap_or_default();
    let statistics = attribute(attributes, IFLA_STATS64).unwrap_or_default();
    let counter = |position: usize| u64_at(statistics, position * 8);
    let (Some(rx_packets), Some(tx_packets), Some(rx_bytes), Some(tx_bytes)) =
        (counter(0), counter(1), counter(2), counter(3))
    else {
        return Err(Step { operation: "read the counters of", object, feature: None }.failed(Errno::IO, None));
    };
    let forwarding = attribute(attributes, IFLA_LINKINFO)
        .and_then(|info| attribute(info, IFLA_INFO_SLAVE_DATA))
        .and_then(|data| attribute(data, IFLA_BRPORT_STATE))
        .map(|state| state == [PORT_FORWARDING]);
    Ok(Some(LinkState {
        operational: attribute(attributes, IFLA_OPERSTATE) == Some(&[OPERSTATE_UP]),
        forwarding,
        counters: Counters { rx_packets, tx_packets, rx_bytes, tx_bytes },
    }))
}

/// The bridge of a port; absent for other interfaces.
pub(crate) fn master(netlink: &mut Netlink, index: u32, object: &str) -> Result<Option<u32>, LabError> {
    let message = Request::new(RTM_GETLINK, 0, &body(index, 0, 0));
    let payload = netlink.get(message, Step { operation: "read the state of", object, feature: None })?;
    Ok(attribute(payload.get(16..).unwrap_or_default(), IFLA_MASTER).and_then(|value| u32_at(value, 0)))
}
