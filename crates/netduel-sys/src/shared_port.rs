//! One port number for TCP and UDP, for both IP versions (`IPV6_V6ONLY`, ipv6(7)) and for several UDP sockets (`SO_REUSEADDR`,
//! socket(7)). The kernel delivers a datagram to the socket that is connected to its sender (net/ipv4/udp.c, `compute_score`),
//! otherwise to the socket that was bound last.
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};

fn open(address: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let protocol = if kind == SocketType::STREAM { ipproto::TCP } else { ipproto::UDP };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, Some(protocol))?;
    if address.ip() == IpAddr::from([0u16; 8]) {
        // Sets IPV6_V6ONLY explicitly instead of the default (net.ipv6.bindv6only): `[::]` accepts both versions.
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    Ok(socket)
}

/// A non-blocking listener; `[::]` accepts IPv4 too, with mapped addresses. Connections of an earlier listener in
/// TIME_WAIT do not occupy the port (`SO_REUSEADDR`); an open listener does.
///
/// # Errors
/// Errors of socket(2), bind(2) and listen(2): `EADDRINUSE`, `EADDRNOTAVAIL`, `EACCES`, `EAFNOSUPPORT` without IPv6.
pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = open(address, SocketType::STREAM)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(TcpListener::from(socket))
}

/// Accepts the next connection, which does not block, and returns its peer address.
///
/// # Errors
/// Errors of accept(2): `EAGAIN` when there is none, `EMFILE` when no descriptor is available.
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (stream, address) = rustix::net::acceptfrom_with(listener, flags)?;
    // A connection that its peer has reset may have no address.
    let address = address.and_then(|address| SocketAddr::try_from(address).ok());
    let address = address.ok_or_else(|| io::Error::from_raw_os_error(libc::ECONNABORTED))?;
    Ok((TcpStream::from(stream), address))
}

/// Binds a non-blocking UDP socket to a port that no other socket shares; `[::]` accepts IPv4 too.
///
/// # Errors
/// As [`listen`].
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(address, SocketType::DGRAM)?;
    rustix::net::bind(&socket, &address)?;
    Ok(UdpSocket::from(socket))
}

/// A non-blocking UDP socket of the family of `address`, for [`bind_beside`].
///
/// # Errors
/// Errors of socket(2): `EMFILE`, `ENFILE`, `ENOBUFS`.
pub fn unbound(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(address, SocketType::DGRAM)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(UdpSocket::from(socket))
}

/// Binds `socket` to the port of `owner`. The owner permits this during the call only, so that no other program can bind the
/// port and receive datagrams: afterwards each bind to the port conflicts with that of the owner. Until `socket` is connected, it
/// receives datagrams for `address` of senders without a connected socket, in place of the owner.
///
/// # Errors
/// Errors of bind(2): `EADDRNOTAVAIL` when the host no longer has the address, `EADDRINUSE` when `owner` has another port.
pub fn bind_beside(owner: &UdpSocket, socket: &UdpSocket, address: SocketAddr) -> io::Result<()> {
    sockopt::set_socket_reuseaddr(owner, true)?;
    let bound = rustix::net::bind(socket, &address);
    sockopt::set_socket_reuseaddr(owner, false)?;
    Ok(bound?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::local_bind::LocalBind;

    fn receive(socket: &UdpSocket) -> Vec<u8> {
        assert!(crate::socket::wait_readable(&[socket.as_fd()], Duration::from_secs(10)).unwrap()[0]);
        let mut bytes = [0; 16];
        let length = socket.recv(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn connected_socket_on_a_shared_port_receives_only_datagrams_of_its_peer() {
        for (any, host) in [("0.0.0.0:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
            let owner = bind(any.parse().unwrap()).unwrap();
            let mut local: SocketAddr = host.parse().unwrap();
            local.set_port(owner.local_addr().unwrap().port());
            let (peer, other) = (UdpSocket::bind(host).unwrap(), UdpSocket::bind(host).unwrap());
            let flow = unbound(local).unwrap();
            bind_beside(&owner, &flow, local).unwrap();
            flow.connect(peer.local_addr().unwrap()).unwrap();
            other.send_to(b"other", local).unwrap();
            peer.send_to(b"peer", local).unwrap();
            assert_eq!((receive(&flow), receive(&owner)), (b"peer".to_vec(), b"other".to_vec()));
            let error = flow.recv(&mut [0; 16]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn no_other_socket_joins_the_port_uninvited() {
        let owner = bind("[::]:0".parse().unwrap()).unwrap();
        let port = owner.local_addr().unwrap().port();
        let local = SocketAddr::from(([127, 0, 0, 1], port));
        let flow = unbound(local).unwrap();
        bind_beside(&owner, &flow, local).unwrap();
        for address in [local, SocketAddr::from(([0; 4], port)), SocketAddr::from(([127, 0, 0, 2], port))] {
            let intruder = unbound(address).unwrap();
            let error = rustix::net::bind(&intruder, &address).unwrap_err();
            assert_eq!(error, rustix::io::Errno::ADDRINUSE, "{address}");
        }
    }

    #[test]
    fn one_listener_accepts_both_ip_versions_and_blocks_other_listeners() {
        let listener = listen("[::]:0".parse().unwrap(), 8).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(host.parse().unwrap(), port);
            let client =
                crate::tcp::connect(address, None, None, Duration::from_secs(10), &LocalBind::ANY).unwrap();
            assert!(crate::socket::wait_readable(&[listener.as_fd()], Duration::from_secs(10)).unwrap()[0]);
            let (_, peer) = accept(&listener).unwrap();
            assert_eq!(peer.port(), client.local_addr().unwrap().port());
            assert_eq!(peer.ip().to_canonical(), address.ip());
        }
        assert_eq!(accept(&listener).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let error = listen(SocketAddr::from(([0; 4], port)), 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
