//! Netlink tables of the calling thread's network namespace. Must not interpret them.
use std::io;
use std::net::IpAddr;

use netduel_sys::netlink::{
    AF_BRIDGE, NFT_GET_RULE, NFT_NEW_RULE, NetlinkSocket, RTA_DST, RTA_OIF, RTM_GETADDR, RTM_GETLINK,
    RTM_GETNEIGH, RTM_GETQDISC, RTM_GETROUTE, Request, TCMSG_LEN, attribute, attributes, messages, u16_at,
    u32_at,
};

use rustix::net::AddressFamily;

use crate::link::text;
use crate::route::{ROUTES_MAX, added_through, is_default, is_limited};
use crate::source::{FilterSource, LinkSource};

/// Bytes of `struct ifinfomsg`, `struct tcmsg`, and of `struct rtmsg` and `struct ndmsg`. A body of zeros requests everything.
const LINK_BODY: [u8; 16] = [0; 16];
const QDISC_BODY: [u8; TCMSG_LEN] = [0; TCMSG_LEN];
const ROUTE_BODY: [u8; 12] = [0; 12];
/// `struct nfgenmsg`; zeros request every family.
const NETFILTER_BODY: [u8; 4] = [0; 4];
/// `RTA_SRC`.
const SOURCE: u16 = 2;
/// Generic netlink (include/uapi/linux/genetlink.h): `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY` and its attributes, `struct genlmsghdr`.
const GENERIC_CONTROL: u16 = 16;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const CONTROL_GROUPS: u16 = 7;
/// Within the attributes of a group.
const CONTROL_GROUP_NAME: u16 = 1;
const CONTROL_GROUP_ID: u16 = 2;
pub(crate) const GENERIC_VERSION: u8 = 1;
pub(crate) const GENERIC_BODY_LEN: usize = 4;
/// The family of network devices and its `NETDEV_CMD_DEV_GET` (include/uapi/linux/netdev.h).
const NETDEV_FAMILY: &str = "netdev";
const NETDEV_GET_DEVICE: u8 = 1;

/// A route netlink socket of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct RouteSocket(NetlinkSocket);

impl RouteSocket {
    /// Opens the socket.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn open() -> io::Result<Self> {
        NetlinkSocket::route().map(Self)
    }

    /// Replaces `into` by the messages of a table.
    fn list(&mut self, kind: u16, body: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        Ok(self.0.dump(&Request::new(kind, 0, body), into)?)
    }

    /// The route that a packet to this address takes now, as one `RTM_NEWROUTE` message; of a socket that is bound to a source address
    /// or a link, if they are given.
    ///
    /// # Errors
    /// `ENETUNREACH` without one; other errors of the kernel.
    pub(crate) fn route_to(
        &mut self,
        address: IpAddr,
        source: Option<IpAddr>,
        link: Option<u32>,
    ) -> io::Result<Vec<u8>> {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let bytes = octets(address);
        let bits = bytes.len() as u8 * 8;
        let mut body = ROUTE_BODY;
        // Family and lengths of the prefixes, bits.
        body[..3].copy_from_slice(&[family.as_raw() as u8, bits, if source.is_some() { bits } else { 0 }]);
        let mut request = Request::new(RTM_GETROUTE, 0, &body).bytes(RTA_DST, &bytes);
        if let Some(source) = source {
            request = request.bytes(SOURCE, &octets(source));
        }
        if let Some(link) = link {
            request = request.bytes(RTA_OIF, &link.to_ne_bytes());
        }
        Ok(self.0.get(request)?)
    }

    /// The destinations of the routes through a link that a user or a program added, of any table.
    pub(crate) fn added_routes(&mut self, link: u32) -> io::Result<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        self.0.dump_into(&Request::new(RTM_GETROUTE, 0, &ROUTE_BODY), &mut found, |found, message| {
            found.extend(added_through(&message, link));
        })?;
        Ok(found)
    }

    /// Replaces `into` by the `RTM_NEWNEIGH` messages of every neighbour.
    pub(crate) fn neighbours(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.list(RTM_GETNEIGH, &ROUTE_BODY, into)
    }

    /// Replaces `into` by the `RTM_NEWNEIGH` messages of the forwarding entries of every bridge (`struct ndmsg` of the family
    /// `AF_BRIDGE`).
    pub(crate) fn forwarding(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut body = ROUTE_BODY;
        body[0] = AF_BRIDGE;
        self.list(RTM_GETNEIGH, &body, into)
    }
}

impl LinkSource for RouteSocket {
    fn links(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.list(RTM_GETLINK, &LINK_BODY, into)
    }

    fn addresses(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        // `struct ifaddrmsg` is shorter, and the kernel accepts a longer body.
        self.list(RTM_GETADDR, &LINK_BODY, into)
    }

    fn queueing(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.list(RTM_GETQDISC, &QDISC_BODY, into)
    }

    fn xdp(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        *into = xdp_devices()?;
        Ok(())
    }

    fn routes(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        // A router has a million routes. The collected value is reset when the kernel's list changes while it is read.
        let mut kept: (Vec<u8>, usize) = (Vec::new(), 0);
        self.0.dump_into(&Request::new(RTM_GETROUTE, 0, &ROUTE_BODY), &mut kept, |kept, message| {
            let is_other = !is_default(&message);
            if is_other && (kept.1 > ROUTES_MAX || !is_limited(&message)) {
                return;
            }
            kept.1 += usize::from(is_other);
            kept.0.extend_from_slice(message.raw);
        })?;
        *into = kept.0;
        Ok(())
    }
}

/// XDP features of the devices of the calling thread's network namespace: messages of the generic netlink family
/// `netdev` (Linux 6.3), whose number the kernel assigns at boot.
pub(crate) fn xdp_devices() -> io::Result<Vec<u8>> {
    let mut socket = NetlinkSocket::generic()?;
    let family = Family::find(&mut socket, NETDEV_FAMILY)?;
    let mut devices = Vec::new();
    let body = [NETDEV_GET_DEVICE, GENERIC_VERSION, 0, 0];
    socket.dump(&Request::new(family.id, 0, &body), &mut devices)?;
    Ok(devices)
}

/// A family of generic netlink, whose numbers the kernel assigns at boot.
#[derive(Debug)]
pub(crate) struct Family {
    /// The type of its messages.
    pub id: u16,
    answer: Vec<u8>,
}

impl Family {
    /// Requests it from the kernel.
    ///
    /// # Errors
    /// `ENOENT` when the kernel does not have it.
    pub fn find(socket: &mut NetlinkSocket, name: &str) -> io::Result<Self> {
        let body = [CONTROL_GET_FAMILY, GENERIC_VERSION, 0, 0];
        let answer = socket.get(Request::new(GENERIC_CONTROL, 0, &body).text(CONTROL_FAMILY_NAME, name))?;
        let id = described(&answer, CONTROL_FAMILY_ID).and_then(|value| u16_at(value, 0));
        Ok(Self { id: id.ok_or(io::ErrorKind::InvalidData)?, answer })
    }

    /// The number of one of its multicast groups.
    pub fn group(&self, name: &str) -> Option<u32> {
        let (_, group) = attributes(described(&self.answer, CONTROL_GROUPS)?).find(|(_, group)| {
            attribute(group, CONTROL_GROUP_NAME).is_some_and(|found| text(found) == name)
        })?;
        u32_at(attribute(group, CONTROL_GROUP_ID)?, 0)
    }
}

/// The value of an attribute of a family.
fn described(answer: &[u8], kind: u16) -> Option<&[u8]> {
    let mut attributes = messages(answer).flat_map(|message| message.attributes(GENERIC_BODY_LEN));
    attributes.find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// nftables of the network namespace of the calling thread. It opens a socket for each query only, because opening one may load a
/// kernel module.
#[derive(Debug)]
pub(crate) struct NetfilterSocket;

impl FilterSource for NetfilterSocket {
    fn rules(&mut self) -> io::Result<u32> {
        let mut count = 0;
        let request = Request::new(NFT_GET_RULE, 0, &NETFILTER_BODY);
        NetlinkSocket::netfilter()?.dump_into(&request, &mut count, |count, message| {
            *count += u32::from(message.kind == NFT_NEW_RULE);
        })?;
        Ok(count)
    }
}
