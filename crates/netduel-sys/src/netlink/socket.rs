//! Netlink sockets. A socket stays in the network namespace of the thread that opened it.
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{GENERIC, NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use super::error::NetlinkError;
use super::message::{HEADER_LEN, Message, attribute, messages, u32_at};
use super::request::Request;
use crate::socket_option::set_int;

/// `NLMSG_ERROR`: an acknowledgement, or an error number.
const MESSAGE_ERROR: u16 = libc::NLMSG_ERROR as u16;
/// `NLMSG_DONE`: the table is complete.
const MESSAGE_DONE: u16 = libc::NLMSG_DONE as u16;
/// `NLM_F_DUMP_INTR`: the table changed while it was read.
const FLAG_INTERRUPTED: u16 = libc::NLM_F_DUMP_INTR as u16;
/// `NLMSGERR_ATTR_MSG`: the kernel's message about an error.
const ERROR_WORDS: u16 = 1;
/// Receive buffer: the kernel fills datagrams of up to 32 KiB.
const RECEIVE_LEN: usize = 64 << 10;
/// Maximum number of attempts to read a table that changes meanwhile; after that the last reading is used.
const ATTEMPTS: usize = 3;
/// `RTMGRP_LINK` (include/uapi/linux/rtnetlink.h): the multicast group of changes of links.
const GROUP_LINK: u32 = 1;

/// A netlink socket for requests.
#[derive(Debug)]
pub struct NetlinkSocket {
    descriptor: OwnedFd,
    sequence: u32,
    received: Vec<u8>,
}

impl NetlinkSocket {
    /// Opens a socket for links, addresses, routes, neighbours and queueing disciplines (rtnetlink(7)).
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn route() -> io::Result<Self> {
        // `None` is protocol 0, `NETLINK_ROUTE`.
        Self::open(None)
    }

    /// Opens a socket for nftables. The kernel may load a module for it.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT` without netfilter in the kernel.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(Some(NETFILTER))
    }

    /// Opens a socket for generic netlink families.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn generic() -> io::Result<Self> {
        Self::open(Some(GENERIC))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let descriptor = raw_socket(SocketFlags::CLOEXEC, protocol)?;
        // An acknowledgement then contains only the header of its request, and the kernel's message on an error.
        set_int(&descriptor, libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, 1)?;
        set_int(&descriptor, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1)?;
        Ok(Self { descriptor, sequence: 0, received: vec![0; RECEIVE_LEN] })
    }

    /// Sends a request and waits for its acknowledgement.
    ///
    /// # Errors
    /// The kernel's error, with its message.
    pub fn request(&mut self, request: Request) -> Result<(), NetlinkError> {
        self.batch([request.acknowledged()])
    }

    /// Sends requests as one datagram, at least one of which requests an acknowledgement.
    ///
    /// # Errors
    /// The first error of one of them, with the kernel's message.
    pub fn batch(&mut self, requests: impl IntoIterator<Item = Request>) -> Result<(), NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend_from_slice(&request.finish(self.next_sequence()));
        }
        let count = self.sequence.wrapping_sub(first);
        self.send(&bytes)?;
        loop {
            let received = self.receive()?;
            let is_ours = |message: &Message<'_>| {
                message.kind == MESSAGE_ERROR && message.sequence.wrapping_sub(first) <= count
            };
            if let Some(message) = messages(received).find(is_ours) {
                return acknowledgement(&message);
            }
        }
    }

    /// Sends a request for one object and returns the message that answers it.
    ///
    /// # Errors
    /// The kernel's error, with its message; `ENODEV`, for example, when there is no such object.
    pub fn get(&mut self, request: Request) -> Result<Vec<u8>, NetlinkError> {
        let sequence = self.next_sequence();
        self.send(&request.finish(sequence))?;
        loop {
            for message in messages(self.receive()?).filter(|message| message.sequence == sequence) {
                match message.kind {
                    MESSAGE_ERROR => acknowledgement(&message)?,
                    _ => return Ok(message.raw.to_vec()),
                }
            }
        }
    }

    /// Replaces `into` by every message of a table.
    ///
    /// # Errors
    /// As [`NetlinkSocket::get`].
    pub fn dump(&mut self, request: &Request, into: &mut Vec<u8>) -> Result<(), NetlinkError> {
        self.dump_into(request, into, |into, message| into.extend_from_slice(message.raw))
    }

    /// Calls `take` with every message of a table and the collected value, which is reset to its default at each attempt.
    ///
    /// # Errors
    /// As [`NetlinkSocket::get`].
    pub fn dump_into<T: Default>(
        &mut self,
        request: &Request,
        into: &mut T,
        mut take: impl FnMut(&mut T, Message<'_>),
    ) -> Result<(), NetlinkError> {
        for _ in 0..ATTEMPTS {
            *into = T::default();
            if self.dump_once(request.clone(), |message| take(into, message))? {
                break;
            }
        }
        Ok(())
    }

    /// Whether the table did not change while it was read.
    fn dump_once(
        &mut self,
        request: Request,
        mut take: impl FnMut(Message<'_>),
    ) -> Result<bool, NetlinkError> {
        let sequence = self.next_sequence();
        self.send(&request.dump().finish(sequence))?;
        let mut is_whole = true;
        loop {
            for message in messages(self.receive()?).filter(|message| message.sequence == sequence) {
                is_whole &= message.flags & FLAG_INTERRUPTED == 0;
                match message.kind {
                    MESSAGE_ERROR => acknowledgement(&message)?,
                    // The end of a table carries an error number as well.
                    MESSAGE_DONE => return acknowledgement(&message).map(|()| is_whole),
                    _ => take(message),
                }
            }
        }
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn send(&self, bytes: &[u8]) -> Result<(), NetlinkError> {
        // A netlink socket that is not connected sends to the kernel.
        send(&self.descriptor, bytes, SendFlags::empty())?;
        Ok(())
    }

    /// Receives one datagram. The kernel handles a request within send(2), and the next part of a table within recv(2): a missing answer
    /// never arrives and is `EAGAIN`.
    fn receive(&mut self) -> Result<&[u8], NetlinkError> {
        let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        let (_, length) =
            rustix::io::retry_on_intr(|| recv(&self.descriptor, &mut self.received[..], flags))?;
        self.received.get(..length).ok_or_else(|| {
            let reason = "the kernel's answer is longer than its own limit";
            NetlinkError::from(io::Error::new(io::ErrorKind::InvalidData, reason))
        })
    }
}

/// A socket that receives a message with every change of a link of this network namespace. It does not block: without a message
/// receiving returns `EAGAIN`, and `ENOBUFS` when messages were lost.
///
/// # Errors
/// When no descriptor is available.
pub fn link_notifications() -> io::Result<OwnedFd> {
    let socket = raw_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUP_LINK))?;
    Ok(socket)
}

/// A socket that receives the messages of a multicast group of generic netlink, for this network namespace. It behaves as that of
/// [`link_notifications`].
///
/// # Errors
/// When no descriptor is available, and `EINVAL` without such a group.
pub fn generic_notifications(group: u32) -> io::Result<OwnedFd> {
    let socket = raw_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, Some(GENERIC))?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    set_int(&socket, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group.cast_signed())?;
    Ok(socket)
}

fn raw_socket(flags: SocketFlags, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?)
}

/// The content of an acknowledgement (`struct nlmsgerr`): 0, or a negative error number and perhaps a text.
fn acknowledgement(message: &Message<'_>) -> Result<(), NetlinkError> {
    let Some(code) = u32_at(message.payload, 0).map(u32::cast_signed) else {
        return Err(io::Error::from_raw_os_error(libc::EIO).into());
    };
    if code == 0 {
        return Ok(());
    }
    // The number is followed by the header of the request, without its body (`NETLINK_CAP_ACK`).
    let words = message
        .payload
        .get(4 + HEADER_LEN..)
        .and_then(|attributes| attribute(attributes, ERROR_WORDS))
        .map(|text| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
    Err(NetlinkError { cause: io::Error::from_raw_os_error(code.wrapping_neg()), words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{CREATE, EXCL, RTM_GETLINK, RTM_NEWLINK};

    /// `struct ifinfomsg` of a link.
    fn link(index: u32) -> [u8; 16] {
        let mut body = [0; 16];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body
    }

    #[test]
    fn loopback_is_listed_and_found_by_its_index() {
        let mut socket = NetlinkSocket::route().unwrap();
        let mut table = Vec::new();
        socket.dump(&Request::new(RTM_GETLINK, 0, &link(0)), &mut table).unwrap();
        assert!(messages(&table).any(|message| message.kind == RTM_NEWLINK));
        let answer = socket.get(Request::new(RTM_GETLINK, 0, &link(1))).unwrap();
        let message = messages(&answer).next().unwrap();
        assert_eq!((message.kind, u32_at(message.payload, 4)), (RTM_NEWLINK, Some(1)));
        let missing = socket.get(Request::new(RTM_GETLINK, 0, &link(i32::MAX as u32))).unwrap_err();
        assert_eq!(missing.cause.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn error_has_its_number_and_the_socket_stays_usable() {
        let mut socket = NetlinkSocket::route().unwrap();
        let kind = |info: Request| info.text(1, "no-such-kind");
        let create = Request::new(RTM_NEWLINK, CREATE | EXCL, &link(0)).nested(18, kind);
        let refused = socket.request(create).unwrap_err();
        // Without privilege it is refused before the kernel looks for the kind.
        assert!(matches!(refused.cause.raw_os_error(), Some(libc::EPERM | libc::EOPNOTSUPP)), "{refused}");
        let unknown = socket.dump(&Request::new(0xff, 0, &[0; 16]), &mut Vec::new()).unwrap_err();
        assert!(unknown.cause.raw_os_error().is_some(), "{unknown}");
        assert!(socket.get(Request::new(RTM_GETLINK, 0, &link(1))).is_ok());
    }

    #[test]
    fn message_of_the_kernel_is_read_from_an_acknowledgement() {
        let mut payload = (-libc::EINVAL).to_ne_bytes().to_vec();
        payload.extend_from_slice(&[0; HEADER_LEN]);
        payload.extend_from_slice(
            &Request::new(0, 0, &[]).text(ERROR_WORDS, "Unknown attribute").finish(0)[HEADER_LEN..],
        );
        let bytes = Request::new(MESSAGE_ERROR, 0, &payload).finish(1);
        let refused = acknowledgement(&messages(&bytes).next().unwrap()).unwrap_err();
        assert_eq!(refused.words.as_deref(), Some("Unknown attribute"));
        assert!(refused.to_string().ends_with("; kernel message: \"Unknown attribute\""), "{refused}");
        let empty = Request::new(MESSAGE_ERROR, 0, &[]).finish(1);
        assert!(acknowledgement(&messages(&empty).next().unwrap()).is_err());
    }

    #[test]
    fn missing_answer_is_an_error() {
        let mut socket = NetlinkSocket::route().unwrap();
        // Without the acknowledgement flag the kernel sends no answer.
        let silent = socket.batch([Request::new(libc::NLMSG_NOOP as u16, 0, &[])]).unwrap_err();
        assert_eq!(silent.cause.raw_os_error(), Some(libc::EAGAIN));
    }
}
