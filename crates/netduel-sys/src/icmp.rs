//! Echo requests and replies of ICMP and ICMPv6 (RFC 792, RFC 4443): through a datagram socket where `net.ipv4.ping_group_range` allows
//! one, else through a raw socket (icmp(7), raw(7)).
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto};

use crate::echo_id::EchoId;
use crate::local_bind::LocalBind;
use crate::{socket_filter, socket_option};

/// Bytes of the header of an echo message: type, code, checksum, identifier, sequence number.
pub const HEADER: usize = 8;
/// Maximum number of bytes before the ICMP header of a received message: raw sockets of IPv4 return the IP header with its options.
pub const BEFORE_MAX: usize = 60;

/// Offset of the identifier of an echo message.
const ID_AT: usize = 4;

const REQUEST_V4: u8 = 8;
const REPLY_V4: u8 = 0;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;
/// Option of raw sockets: a bit for each type that is not received (include/uapi/linux/icmp.h, icmpv6.h).
const ICMP_FILTER: i32 = 1;
/// Level of that option, for IPv4.
const SOL_RAW: i32 = 255;

/// A socket for echo requests to one host.
#[derive(Debug)]
pub struct IcmpSocket {
    descriptor: OwnedFd,
    is_v6: bool,
    /// Identifier of the requests of a raw socket. The kernel assigns that of a datagram socket.
    id: Option<EchoId>,
}

impl IcmpSocket {
    /// Opens a socket for echo requests to `peer` from the address and the interface of `bind`: a datagram socket, or a raw one when that
    /// is not allowed. ICMP errors of the path are errors of its calls.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` when this process may open neither: no group of it is in `net.ipv4.ping_group_range` of its network
    /// namespace, and it lacks `CAP_NET_RAW` there. `ENETUNREACH` without a route. Those of [`LocalBind::bind_udp`].
    pub fn connect(peer: IpAddr, bind: &LocalBind) -> io::Result<Self> {
        match Self::open(peer, bind, false) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
                Self::open(peer, bind, true)
            }
            opened => opened,
        }
    }

    fn open(peer: IpAddr, bind: &LocalBind, is_raw: bool) -> io::Result<Self> {
        let is_v6 = peer.is_ipv6();
        let (family, protocol) = match peer {
            IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let kind = if is_raw { SocketType::RAW } else { SocketType::DGRAM };
        let descriptor = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))?;
        let id = if is_raw { Some(EchoId::reserve()?) } else { None };
        if let Some(id) = &id {
            // A raw socket of IPv4 receives IP headers, one of IPv6 does not.
            let program = socket_filter::number_at(ID_AT as u32, id.value(), !is_v6);
            socket_filter::attach(&descriptor, &program)?;
        }
        let (level, name) = if is_v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        } else {
            (libc::IPPROTO_IP, libc::IP_RECVERR)
        };
        socket_option::set_int(&descriptor, level, name, 1)?;
        if is_raw && is_v6 {
            let mut blocked = [u32::MAX; 8];
            blocked[usize::from(REPLY_V6) / 32] = !(1 << (REPLY_V6 % 32));
            let blocked = blocked.map(u32::to_ne_bytes);
            socket_option::set_bytes(&descriptor, libc::IPPROTO_ICMPV6, ICMP_FILTER, blocked.as_flattened())?;
        } else if is_raw {
            socket_option::set_int(&descriptor, SOL_RAW, ICMP_FILTER, !(1 << REPLY_V4))?;
        }
        bind.bind_device(&descriptor)?;
        if let Some(address) = bind.address {
            rustix::net::bind(&descriptor, &SocketAddr::new(address, 0))?;
        }
        rustix::net::connect(&descriptor, &SocketAddr::new(peer, 0))?;
        Ok(Self { descriptor, is_v6, id })
    }

    /// Whether it is a raw socket. The kernel filters the replies to other programs; those that arrive between its opening and the filter
    /// are received.
    pub fn is_raw(&self) -> bool {
        self.id.is_some()
    }

    /// Marks its requests with a DSCP (RFC 2474), 0 to 63. The kernel of the peer copies it to its replies.
    ///
    /// # Errors
    /// None on an open socket of this kind.
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        // The two bits below are ECN (RFC 3168). Unlike UDP sockets, sockets of ICMPv6 lack the option of IPv4.
        let value = i32::from(dscp & 63) << 2;
        if self.is_v6 {
            socket_option::set_int(&self.descriptor, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, value)
        } else {
            socket_option::set_int(&self.descriptor, libc::IPPROTO_IP, libc::IP_TOS, value)
        }
    }

    /// Writes the header of an echo request into the reserved bytes before the payload of `message`.
    #[inline]
    pub fn write_header(&self, message: &mut [u8], sequence: u16) {
        message[0] = if self.is_v6 { REQUEST_V6 } else { REQUEST_V4 };
        message[1..4].fill(0);
        let id = self.id.as_ref().map_or(0, EchoId::value);
        message[ID_AT..ID_AT + 2].copy_from_slice(&id.to_be_bytes());
        message[6..HEADER].copy_from_slice(&sequence.to_be_bytes());
        // The kernel writes the checksum of the other kinds: that of ICMPv6 is over addresses, too.
        if self.is_raw() && !self.is_v6 {
            let sum = checksum(message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// The payload of a received message when it is a reply to a request with the identifier of this socket.
    #[inline]
    pub fn reply<'m>(&self, message: &'m [u8]) -> Option<&'m [u8]> {
        payload_of_reply(message, self.is_v6, self.id.as_ref().map(EchoId::value))
    }

    /// Reads the reports of ICMP errors from the socket, where they would fill its receive buffer.
    pub fn drain_errors(&self) {
        let mut buffer = [0; HEADER];
        while rustix::net::recv(&self.descriptor, &mut buffer, RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT)
            .is_ok()
        {}
    }
}

/// The payload of a message as a socket receives it, when it is an echo reply of this version of IP: from a raw socket with the identifier
/// `raw_id`, or from a datagram socket, whose replies the kernel selects.
#[inline]
pub fn payload_of_reply(message: &[u8], is_v6: bool, raw_id: Option<u16>) -> Option<&[u8]> {
    let message = if raw_id.is_some() && !is_v6 {
        // The low half of the first byte is the length of the IP header in words of 4 bytes (RFC 791).
        message.get(usize::from(message.first()? & 15) * 4..)?
    } else {
        message
    };
    let kind = if is_v6 { REPLY_V6 } else { REPLY_V4 };
    let (header, payload) = message.split_at_checked(HEADER)?;
    let is_own = raw_id.is_none_or(|id| header[ID_AT..ID_AT + 2] == id.to_be_bytes());
    (header[..2] == [kind, 0] && is_own).then_some(payload)
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The Internet checksum (RFC 1071) of a message whose checksum field is zero.
fn checksum(message: &[u8]) -> u16 {
    let words =
        message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    // 64 KiB are 2^15 words: the sum stays below 2^31.
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    use netduel_test_support::skip;

    use super::*;
    use crate::socket::{self, Waiting};

    /// Sends a request and waits for its reply. Ignores replies to others that came before the filter of a raw socket.
    fn echo(socket: &IcmpSocket, payload: &[u8]) -> Vec<u8> {
        let mut message = [&[0; HEADER], payload].concat();
        socket.write_header(&mut message, 7);
        socket::limit_receive_wait(socket, Duration::from_secs(60)).unwrap();
        assert_eq!(socket::send(socket, &message, Waiting::Block).unwrap(), message.len());
        let mut buffer = vec![0; BEFORE_MAX + message.len()];
        loop {
            let length = socket::receive(socket, &mut buffer, Waiting::Block).unwrap();
            if let Some(reply) = socket.reply(&buffer[..length]) {
                return reply.to_vec();
            }
        }
    }

    #[test]
    fn kernel_answers_each_permitted_kind_of_socket_over_both_versions() {
        let mut opened = 0;
        for peer in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            for is_raw in [false, true] {
                let socket = match IcmpSocket::open(peer, &LocalBind::ANY, is_raw) {
                    Ok(socket) => socket,
                    Err(error) => {
                        assert!(matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)), "{error}");
                        // Both kinds are tested in namespaces that allow them, with the workload.
                        continue;
                    }
                };
                opened += 1;
                for payload in [&b"an odd number of bytes."[..], &[7; 1400], &[]] {
                    assert_eq!(echo(&socket, payload), payload, "{peer} {is_raw}");
                }
            }
        }
        if opened == 0 {
            skip("no ICMP socket is allowed here (CAP_NET_RAW, net.ipv4.ping_group_range)");
        }
    }

    #[test]
    fn bound_socket_sends_from_its_address() {
        let bind: LocalBind = "127.0.0.2%lo".parse().unwrap();
        match IcmpSocket::connect(Ipv4Addr::LOCALHOST.into(), &bind) {
            Ok(socket) => {
                let local = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
                assert_eq!(local.ip(), Ipv4Addr::new(127, 0, 0, 2));
                assert_eq!(echo(&socket, b"bound"), b"bound");
            }
            Err(error) => skip(format!("no ICMP socket is allowed here: {error}")),
        }
    }

    #[test]
    fn replies_to_other_sockets_and_other_messages_are_rejected() {
        let Ok(socket) = IcmpSocket::open(Ipv4Addr::LOCALHOST.into(), &LocalBind::ANY, true) else {
            return skip("raw sockets need CAP_NET_RAW");
        };
        let id = socket.id.as_ref().unwrap().value();
        let of = |kind: u8, id: u16| {
            let mut message = vec![0x45; 20];
            message.extend([kind, 0, 0, 0]);
            message.extend(id.to_be_bytes());
            message.extend([0, 1, 9]);
            message
        };
        assert_eq!(socket.reply(&of(REPLY_V4, id)), Some(&[9][..]));
        assert_eq!(socket.reply(&of(REPLY_V4, id ^ 1)), None);
        assert_eq!(socket.reply(&of(REQUEST_V4, id)), None);
        for length in 0..28 {
            assert_eq!(socket.reply(&of(REPLY_V4, id)[..length]), None, "{length}");
        }
    }

    #[test]
    fn raw_socket_receives_only_replies_to_its_own_requests() {
        for peer in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let open = || IcmpSocket::open(peer, &LocalBind::ANY, true);
            let (Ok(socket), Ok(other)) = (open(), open()) else {
                return skip("raw sockets need CAP_NET_RAW");
            };
            // Replies that arrived between its opening and the filter.
            while socket::receive(&socket, &mut [0; 256], Waiting::Never).is_ok() {}
            for _ in 0..3 {
                // The kernel delivers a reply to all raw sockets before it processes the next request.
                assert_eq!(echo(&other, b"other"), b"other");
            }
            let nothing = socket::receive(&socket, &mut [0; 256], Waiting::Never);
            assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::WouldBlock, "{peer}");
            assert_eq!(echo(&socket, b"own"), b"own");
        }
    }

    #[test]
    fn checksum_matches_the_example_of_the_rfc() {
        // The example of RFC 1071, section 3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff]), 0x00ff);
        assert_eq!(checksum(&vec![0xff; 65_515]), 0x00ff);
    }
}
