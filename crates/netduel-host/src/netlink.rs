//! Messages and attributes of netlink (RFC 3549), and sockets that list what a namespace has. Must not interpret them.
//!
//! A walk over the bytes instead of a parser of every attribute: a newer kernel's attributes must not make a reading
//! fail, and a reading around a trial must stay cheap.
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{GENERIC, NETFILTER};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::source::{FilterSource, LinkSource};

/// Bytes of `struct nlmsghdr`.
const HEADER_LEN: usize = 16;
/// `NLMSG_ERROR`: the answer is an error number.
const MESSAGE_ERROR: u16 = 2;
/// `NLMSG_DONE`: the list is complete.
const MESSAGE_DONE: u16 = 3;
/// `RTM_NEWLINK`.
pub(crate) const MESSAGE_LINK: u16 = 16;
/// `RTM_DELLINK`.
pub(crate) const MESSAGE_LINK_GONE: u16 = 17;
/// `RTM_NEWADDR`.
pub(crate) const MESSAGE_ADDRESS: u16 = 20;
/// `RTM_NEWQDISC`.
pub(crate) const MESSAGE_QUEUEING: u16 = 36;
/// `RTM_NEWROUTE`.
pub(crate) const MESSAGE_ROUTE: u16 = 24;
/// `RTM_NEWNEIGH`.
pub(crate) const MESSAGE_NEIGHBOUR: u16 = 28;
/// What is asked for, and how long its head is: `struct ifinfomsg`, `struct ifaddrmsg` (shorter, but the kernel takes a longer
/// one), `struct tcmsg`, `struct rtmsg` and `struct nfgenmsg`.
type Request = (u16, usize);
const REQUEST_LINKS: Request = (18, 16);
const REQUEST_ADDRESSES: Request = (22, 16);
const REQUEST_QUEUEING: Request = (38, 20);
const REQUEST_ROUTES: Request = (26, 12);
const REQUEST_NEIGHBOURS: Request = (30, 12);
/// Generic netlink (include/uapi/linux/genetlink.h): `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY` and its attributes, `struct genlmsghdr`.
const GENERIC_CONTROL: u16 = 16;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const GENERIC_VERSION: u8 = 1;
pub(crate) const GENERIC_HEAD: usize = 4;
/// The family of network devices and its `NETDEV_CMD_DEV_GET` (include/uapi/linux/netdev.h).
const NETDEV_FAMILY: &[u8] = b"netdev\0";
const NETDEV_GET_DEVICE: u8 = 1;
/// `RTA_DST`.
const ATTRIBUTE_DESTINATION: u16 = 1;
/// `NFT_MSG_GETRULE` of the subsystem `NFNL_SUBSYS_NFTABLES`; a head of zeros asks for every family.
const REQUEST_RULES: Request = (10 << 8 | 7, 4);
/// `NFT_MSG_NEWRULE`.
const MESSAGE_RULE: u16 = 10 << 8 | 6;
/// `NLM_F_REQUEST`: one answer.
const FLAGS_ONE: u16 = 1;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const FLAGS_LIST: u16 = 0x301;
/// `NLM_F_DUMP_INTR`: something changed while the list was made.
const FLAG_INTERRUPTED: u16 = 0x10;
/// Room for the longest request.
const REQUEST_LEN: usize = HEADER_LEN + 32;
/// The kernel fills datagrams of up to 32 KiB when it is given room for them.
const RECEIVE_LEN: usize = 64 << 10;
/// A list that changes under the reader is asked for again this often; then the last one is taken as it is.
const ATTEMPTS: usize = 3;

/// One netlink message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    /// What follows the header.
    pub payload: &'a [u8],
    /// Header and payload, padded.
    pub raw: &'a [u8],
}

/// Walks messages that lie one behind the other; ends at the first that is cut off.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = number32(rest, 0)? as usize;
        if length < HEADER_LEN {
            return None;
        }
        let payload = rest.get(HEADER_LEN..length)?;
        let (kind, flags, sequence) = (number16(rest, 4)?, number16(rest, 6)?, number32(rest, 8)?);
        let padded = length.next_multiple_of(4).min(rest.len());
        let raw = &rest[..padded];
        rest = &rest[padded..];
        Some(Message { kind, flags, sequence, payload, raw })
    })
}

/// Walks attributes (kind without its flags, value); ends at the first that is cut off.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(number16(rest, 0)?);
        let kind = number16(rest, 2)? & 0x3fff;
        let value = rest.get(4..length)?;
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        Some((kind, value))
    })
}

/// A 16-bit number in the machine's order.
pub(crate) fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_ne_bytes(*chunk))
}

/// A 32-bit number in the machine's order.
pub(crate) fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_ne_bytes(*chunk))
}

/// A 64-bit number in the machine's order.
pub(crate) fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_ne_bytes(*chunk))
}

/// A netlink socket of the network namespace of the thread that opened it.
#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
    received: Vec<u8>,
}

impl Socket {
    /// No protocol stands for `NETLINK_ROUTE`, which is number 0.
    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let descriptor =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { descriptor, sequence: 0, received: vec![0; RECEIVE_LEN] })
    }

    /// Replaces `into` by every message of the list.
    fn list(&mut self, request: Request, into: &mut Vec<u8>) -> io::Result<()> {
        self.list_some(request, into, |into, message| into.extend_from_slice(message.raw))
    }

    /// Hands every message of the list to `take`, into what is emptied before another attempt.
    fn list_some<T: Default>(
        &mut self,
        request: Request,
        into: &mut T,
        mut take: impl FnMut(&mut T, Message<'_>),
    ) -> io::Result<()> {
        let (kind, head) = request;
        for _ in 0..ATTEMPTS {
            *into = T::default();
            let body = &[0; REQUEST_LEN - HEADER_LEN][..head];
            if !self.list_once(kind, body, |message| take(into, message))? {
                break;
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = [0; REQUEST_LEN];
        let length = HEADER_LEN + body.len();
        bytes[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&request.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[HEADER_LEN..length].copy_from_slice(body);
        // Without an address a netlink socket speaks to the kernel.
        send(&self.descriptor, &bytes[..length], SendFlags::empty())?;
        Ok(())
    }

    /// The one message that answers a request.
    fn one(&mut self, request: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        self.ask(request, FLAGS_ONE, body)?;
        let (_, length) =
            rustix::io::retry_on_intr(|| recv(&self.descriptor, &mut self.received[..], RecvFlags::TRUNC))?;
        let answer = self.received.get(..length).unwrap_or_default();
        let Some(message) = messages(answer).find(|message| message.sequence == self.sequence) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is none"));
        };
        match (message.kind, number32(message.payload, 0).map(u32::cast_signed)) {
            (MESSAGE_ERROR, Some(code)) => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(message.raw.to_vec()),
        }
    }

    /// Whether the list changed while it was made.
    fn list_once(
        &mut self,
        request: u16,
        body: &[u8],
        mut take: impl FnMut(Message<'_>),
    ) -> io::Result<bool> {
        self.ask(request, FLAGS_LIST, body)?;
        let mut interrupted = false;
        loop {
            let (_, length) = rustix::io::retry_on_intr(|| {
                recv(&self.descriptor, &mut self.received[..], RecvFlags::TRUNC)
            })?;
            let received = self.received.get(..length).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is longer than its own limit")
            })?;
            for message in messages(received).filter(|message| message.sequence == self.sequence) {
                interrupted |= message.flags & FLAG_INTERRUPTED != 0;
                let code = number32(message.payload, 0).unwrap_or(0).cast_signed();
                match message.kind {
                    MESSAGE_DONE | MESSAGE_ERROR if code < 0 => {
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                    MESSAGE_DONE => return Ok(interrupted),
                    MESSAGE_ERROR => {}
                    _ => take(message),
                }
            }
        }
    }
}

/// A route netlink socket of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct RouteSocket(Socket);

impl RouteSocket {
    /// Opens the socket.
    ///
    /// # Errors
    /// Without a descriptor to spare.
    pub fn open() -> io::Result<Self> {
        Socket::open(None).map(Self)
    }
}

impl RouteSocket {
    /// The route that a packet to this address takes now, as one `RTM_NEWROUTE` message.
    ///
    /// # Errors
    /// `ENETUNREACH` without one; what else the kernel said.
    pub(crate) fn route_to(&mut self, address: IpAddr) -> io::Result<Vec<u8>> {
        let (family, bytes) = match address {
            IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
            IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
        };
        // `struct rtmsg` with the length of the prefix, and an attribute with the address.
        let mut body = vec![family.as_raw() as u8, bytes.len() as u8 * 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        body.extend((bytes.len() as u16 + 4).to_ne_bytes());
        body.extend(ATTRIBUTE_DESTINATION.to_ne_bytes());
        body.extend(bytes);
        self.0.one(REQUEST_ROUTES.0, &body)
    }

    /// Replaces `into` by the `RTM_NEWNEIGH` messages of every neighbour.
    pub(crate) fn neighbours(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.0.list(REQUEST_NEIGHBOURS, into)
    }
}

impl LinkSource for RouteSocket {
    fn links(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.0.list(REQUEST_LINKS, into)
    }

    fn addresses(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.0.list(REQUEST_ADDRESSES, into)
    }

    fn queueing(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.0.list(REQUEST_QUEUEING, into)
    }

    fn xdp(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        *into = xdp_devices()?;
        Ok(())
    }

    fn default_routes(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        // A router has a million others, which nobody asked for.
        self.0.list_some(REQUEST_ROUTES, into, |into, message| {
            if message.kind == MESSAGE_ROUTE && message.payload.get(1) == Some(&0) {
                into.extend_from_slice(message.raw);
            }
        })
    }
}

/// The devices of the calling thread's network namespace with what they can do with XDP: messages of the generic netlink family
/// `netdev` (Linux 6.3), whose number the kernel gives out when it starts.
pub(crate) fn xdp_devices() -> io::Result<Vec<u8>> {
    let mut socket = Socket::open(Some(GENERIC))?;
    let mut body = vec![CONTROL_GET_FAMILY, GENERIC_VERSION, 0, 0];
    body.extend((NETDEV_FAMILY.len() as u16 + 4).to_ne_bytes());
    body.extend(CONTROL_FAMILY_NAME.to_ne_bytes());
    body.extend(NETDEV_FAMILY);
    body.resize(body.len().next_multiple_of(4), 0);
    let told = socket.one(GENERIC_CONTROL, &body)?;
    let family = messages(&told)
        .flat_map(|message| attributes(message.payload.get(GENERIC_HEAD..).unwrap_or_default()))
        .find(|(kind, _)| *kind == CONTROL_FAMILY_ID)
        .and_then(|(_, value)| number16(value, 0));
    let family = family.ok_or(io::ErrorKind::InvalidData)?;
    for _ in 0..ATTEMPTS {
        let mut list = Vec::new();
        let take = |message: Message<'_>| list.extend_from_slice(message.raw);
        if !socket.list_once(family, &[NETDEV_GET_DEVICE, GENERIC_VERSION, 0, 0], take)? {
            return Ok(list);
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// nftables of the network namespace of the thread that asks. No socket is open between two questions, because opening
/// one may make the kernel load a module.
#[derive(Debug)]
pub(crate) struct NetfilterSocket;

impl FilterSource for NetfilterSocket {
    fn rules(&mut self) -> io::Result<u32> {
        let mut count = 0;
        let mut socket = Socket::open(Some(NETFILTER))?;
        socket.list_some(REQUEST_RULES, &mut count, |count, message| {
            *count += u32::from(message.kind == MESSAGE_RULE);
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_or_attribute_that_is_cut_off_ends_the_walk() {
        let mut bytes = Vec::new();
        for (length, kind) in [(20u32, 16u16), (24, 16)] {
            bytes.extend_from_slice(&length.to_ne_bytes());
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.resize(bytes.len() + length as usize - 6, 7);
        }
        assert_eq!(messages(&bytes).count(), 2);
        for cut in 0..bytes.len() {
            assert!(messages(&bytes[..cut]).count() < 2, "{cut}");
        }
        let attribute = [8, 0, 3, 0x80, 1, 2, 3, 4, 5, 0, 9, 0, 1];
        assert_eq!(attributes(&attribute).collect::<Vec<_>>(), [(3, &[1, 2, 3, 4][..]), (9, &[1][..])]);
        assert_eq!(attributes(&attribute[..12]).count(), 1);
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0);
    }

    #[test]
    fn the_kernel_lists_the_loopback() {
        let mut bytes = Vec::new();
        RouteSocket::open().unwrap().links(&mut bytes).unwrap();
        assert!(messages(&bytes).any(|message| message.kind == MESSAGE_LINK));
    }

    #[test]
    fn a_request_that_the_kernel_refuses_is_an_error() {
        let mut bytes = Vec::new();
        let refused = Socket::open(None).unwrap().list((0xff, 16), &mut bytes).unwrap_err();
        assert!(refused.raw_os_error().is_some(), "{refused}");
    }
}
