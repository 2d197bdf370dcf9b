//! The local address that a datagram was sent to, and the source address of the answer (`IP_PKTINFO`, ip(7); `IPV6_PKTINFO`,
//! ipv6(7)). Without it, a socket bound to all addresses answers from the address that the route selects, and a peer that is
//! connected to another address never receives that answer.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use crate::socket_option;

/// Bytes of the largest expected address: `sockaddr_in6`.
const NAME_BYTES: usize = size_of::<libc::sockaddr_in6>();
/// Bytes of the header of a control message; its data follows, and the next message begins at a word boundary.
const HEAD_BYTES: usize = size_of::<libc::cmsghdr>();
const WORD_BYTES: usize = size_of::<usize>();
/// Space for either control message.
const CONTROL_BYTES: usize = 2 * HEAD_BYTES + 2 * size_of::<libc::in6_pktinfo>();

/// A received datagram and its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its length; a longer datagram is truncated to the buffer, and this is the length of the buffer.
    pub length: usize,
    /// Its sender. IPv4 on an IPv6 socket is returned as IPv4.
    pub peer: SocketAddr,
    /// Its destination address, which is the source of an answer, with port 0; a link-local address with its interface.
    pub local: SocketAddr,
}

/// Memory for addresses, aligned for all types.
#[repr(C, align(8))]
struct Aligned<const LENGTH: usize>([u8; LENGTH]);

/// Enables the local address of each received datagram.
///
/// # Errors
/// None on an open socket of this kind.
pub fn enable(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv4() {
        socket_option::set_int(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        socket_option::set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

/// Receives on a socket for which [`enable`] was called.
///
/// # Errors
/// The error of recvmsg(2); kind `InvalidData` when the kernel returned no local address.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Received> {
    let mut name = Aligned([0; NAME_BYTES]);
    let mut control = Aligned([0; CONTROL_BYTES]);
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = empty();
    message.msg_name = name.0.as_mut_ptr().cast();
    message.msg_namelen = NAME_BYTES as libc::socklen_t;
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: `message` points to `name`, `vector`, `buffer` and `control`, all live and exclusively borrowed here, with
    // their lengths, beyond which the kernel does not write; the descriptor is borrowed and so open.
    let result = unsafe { libc::recvmsg(descriptor, &raw mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    let named = (message.msg_namelen as usize).min(NAME_BYTES);
    let filled = message.msg_controllen.min(CONTROL_BYTES);
    match (read_name(&name.0[..named]), read_local(&control.0[..filled])) {
        (Some(peer), Some(local)) => Ok(Received { length, peer, local }),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Sends to `peer` from `local`; both as returned by [`receive`]. Never blocks.
///
/// # Errors
/// Errors of sendmsg(2): `EINVAL` or `ENODEV` when the host no longer has the address `local`.
pub fn send(socket: &UdpSocket, bytes: &[u8], local: SocketAddr, peer: SocketAddr) -> io::Result<usize> {
    let is_ipv4 = socket.local_addr()?.is_ipv4();
    let (name, name_length) = write_name(peer, is_ipv4);
    let (control, control_length) = write_local(local, is_ipv4);
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = empty();
    message.msg_name = (&raw const name.0).cast_mut().cast();
    message.msg_namelen = name_length as libc::socklen_t;
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = (&raw const control.0).cast_mut().cast();
    message.msg_controllen = control_length as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: `message` points to `name`, `vector`, `bytes` and `control`, all live for the call, with lengths within them;
    // sendmsg(2) writes to none of them. The descriptor is borrowed and so open.
    let result = unsafe { libc::sendmsg(descriptor, &raw const message, flags) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn empty() -> libc::msghdr {
    // SAFETY: `msghdr` is integers and pointers, for all of which zero is a valid value.
    unsafe { std::mem::zeroed() }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local()
}

/// `sockaddr_in` or `sockaddr_in6` (ip(7), ipv6(7)).
fn read_name(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    if family == libc::AF_INET {
        let address: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
        return Some(SocketAddr::from((address, port)));
    }
    let address: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
    let address = Ipv6Addr::from(address);
    Some(match address.to_ipv4_mapped() {
        Some(mapped) => SocketAddr::from((mapped, port)),
        None => SocketAddrV6::new(address, port, 0, number(bytes, 24)?).into(),
    })
}

/// The inverse of [`read_name`], with its length; IPv4 is mapped on an IPv6 socket.
fn write_name(address: SocketAddr, is_ipv4: bool) -> (Aligned<NAME_BYTES>, usize) {
    let mut name = Aligned([0; NAME_BYTES]);
    let bytes = &mut name.0;
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    if let (IpAddr::V4(address), true) = (address.ip(), is_ipv4) {
        bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        bytes[4..8].copy_from_slice(&address.octets());
        return (name, size_of::<libc::sockaddr_in>());
    }
    bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
    bytes[8..24].copy_from_slice(&in_ipv6(address.ip()).octets());
    if let SocketAddr::V6(address) = address {
        bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
    }
    (name, NAME_BYTES)
}

fn in_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The local address in the control messages: `in_pktinfo` is interface, local address, address in the header; `in6_pktinfo`
/// is address and interface.
fn read_local(mut control: &[u8]) -> Option<SocketAddr> {
    while control.len() > HEAD_BYTES {
        let length = usize::from_ne_bytes(control[..WORD_BYTES].try_into().ok()?);
        let level = number(control, WORD_BYTES)?.cast_signed();
        let kind = number(control, WORD_BYTES + 4)?.cast_signed();
        let data = control.get(HEAD_BYTES..length)?;
        if (level, kind) == (libc::IPPROTO_IP, libc::IP_PKTINFO) {
            let address: [u8; 4] = data.get(4..8)?.try_into().ok()?;
            return Some(SocketAddr::from((address, 0)));
        }
        if (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) {
            let address: [u8; 16] = data.get(..16)?.try_into().ok()?;
            let address = Ipv6Addr::from(address);
            let scope = if is_link_local(address) { number(data, 16)? } else { 0 };
            return Some(match address.to_ipv4_mapped() {
                Some(mapped) => SocketAddr::from((mapped, 0)),
                None => SocketAddrV6::new(address, 0, 0, scope).into(),
            });
        }
        control = control.get(length.next_multiple_of(WORD_BYTES)..)?;
    }
    None
}

/// The control message that sets the source, with its length.
fn write_local(local: SocketAddr, is_ipv4: bool) -> (Aligned<CONTROL_BYTES>, usize) {
    let mut control = Aligned([0; CONTROL_BYTES]);
    let mut data = [0; size_of::<libc::in6_pktinfo>()];
    let (level, kind, length) = match local.ip() {
        IpAddr::V4(address) if is_ipv4 => {
            data[4..8].copy_from_slice(&Ipv4Addr::octets(&address));
            (libc::IPPROTO_IP, libc::IP_PKTINFO, size_of::<libc::in_pktinfo>())
        }
        address => {
            data[..16].copy_from_slice(&in_ipv6(address).octets());
            if let SocketAddr::V6(local) = local {
                data[16..20].copy_from_slice(&local.scope_id().to_ne_bytes());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, data.len())
        }
    };
    let bytes = &mut control.0;
    bytes[..WORD_BYTES].copy_from_slice(&(HEAD_BYTES + length).to_ne_bytes());
    bytes[WORD_BYTES..WORD_BYTES + 4].copy_from_slice(&level.to_ne_bytes());
    bytes[WORD_BYTES + 4..HEAD_BYTES].copy_from_slice(&kind.to_ne_bytes());
    bytes[HEAD_BYTES..HEAD_BYTES + length].copy_from_slice(&data[..length]);
    (control, HEAD_BYTES + length.next_multiple_of(WORD_BYTES))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Sends a request to `host`, where a socket bound to `any` answers from the destination of the request; returns the received datagram.
    fn ask(any: &str, host: &str, client: &str) -> Received {
        let server = crate::shared_port::bind(any.parse().unwrap()).unwrap();
        enable(&server).unwrap();
        let mut address: SocketAddr = host.parse().unwrap();
        address.set_port(server.local_addr().unwrap().port());
        let client = UdpSocket::bind(client).unwrap();
        client.connect(address).unwrap();
        client.send(b"question").unwrap();
        assert!(crate::socket::wait_readable(&[server.as_fd()], Duration::from_secs(10)).unwrap()[0]);
        let mut bytes = [0; 16];
        let received = receive(&server, &mut bytes).unwrap();
        assert_eq!(&bytes[..received.length], b"question");
        assert_eq!(received.peer, client.local_addr().unwrap());
        assert_eq!(send(&server, b"answer", received.local, received.peer).unwrap(), 6);
        // The client is connected, so it receives answers only from the address of its request.
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let length = client.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"answer");
        assert_eq!(receive(&server, &mut bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        received
    }

    #[test]
    fn reply_has_the_address_of_the_request() {
        // The route would select the source 127.0.0.1 for any of these.
        assert_eq!(ask("0.0.0.0:0", "127.7.8.9:0", "127.0.0.1:0").local, "127.7.8.9:0".parse().unwrap());
        assert_eq!(ask("[::]:0", "127.7.8.9:0", "127.0.0.1:0").local, "127.7.8.9:0".parse().unwrap());
        assert_eq!(ask("[::]:0", "[::1]:0", "[::1]:0").local, "[::1]:0".parse().unwrap());
        assert_eq!(ask("[::1]:0", "[::1]:0", "[::1]:0").local, "[::1]:0".parse().unwrap());
        assert_eq!(ask("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0").local, "127.0.0.1:0".parse().unwrap());
    }

    #[test]
    fn link_local_address_keeps_its_interface() {
        let local: SocketAddr = SocketAddrV6::new("fe80::7".parse().unwrap(), 0, 0, 3).into();
        let (control, length) = write_local(local, false);
        assert_eq!(read_local(&control.0[..length]), Some(local));
        let peer: SocketAddr = SocketAddrV6::new("fe80::8".parse().unwrap(), 99, 0, 3).into();
        let (name, length) = write_name(peer, false);
        assert_eq!(read_name(&name.0[..length]), Some(peer));
    }

    #[test]
    fn control_messages_that_are_cut_short_give_no_address() {
        let (control, length) = write_local("127.0.0.1:0".parse().unwrap(), true);
        for short in 0..HEAD_BYTES + 8 {
            assert_eq!(read_local(&control.0[..short]), None, "{short} of {length}");
        }
    }
}
