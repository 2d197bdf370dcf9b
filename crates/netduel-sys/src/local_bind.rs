//! Binds a socket to an address or an interface of this host before it connects (bind(2); `SO_BINDTODEVICE`, socket(7)). The
//! caller connects it.
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::str::FromStr;

use rustix::net::sockopt;

use crate::socket_option;

/// The destination port of a socket that is connected for its route and sends nothing (RFC 863).
pub const DISCARD_PORT: u16 = 9;

/// The address and the interface that a socket is bound to; by default neither, and the route selects them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalBind {
    /// The source address.
    pub address: Option<IpAddr>,
    /// The interface that carries the packets, regardless of routes of other interfaces.
    pub device: Option<String>,
}

impl LocalBind {
    /// Neither address nor interface.
    pub const ANY: Self = Self { address: None, device: None };

    /// Binds a TCP socket before it is connected. The kernel chooses the port when it connects, so that the same port serves
    /// connections to different peers (`IP_BIND_ADDRESS_NO_PORT`, ip(7)).
    ///
    /// # Errors
    /// As [`Self::bind_udp`].
    #[inline]
    pub fn bind_tcp(&self, socket: impl AsFd) -> io::Result<()> {
        self.bind_device(&socket)?;
        let Some(address) = self.address else { return Ok(()) };
        // Kernels before 4.2 lack the option; bind(2) then selects a port that no other socket has.
        let _ = socket_option::set_int(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
        Ok(rustix::net::bind(&socket, &SocketAddr::new(address, 0))?)
    }

    /// Binds a UDP socket to a free port, of the address if there is one.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EPERM` for an interface before Linux 5.7 without `CAP_NET_RAW`; `EADDRNOTAVAIL` when no
    /// interface has the address; `EINVAL` or `EAFNOSUPPORT` for an address of the other IP version.
    pub fn bind_udp(&self, socket: impl AsFd, any: IpAddr) -> io::Result<()> {
        self.bind_device(&socket)?;
        Ok(rustix::net::bind(&socket, &SocketAddr::new(self.address.unwrap_or(any), 0))?)
    }

    /// Binds any socket to the interface, if there is one.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EPERM` before Linux 5.7 without `CAP_NET_RAW`.
    #[inline]
    pub fn bind_device(&self, socket: impl AsFd) -> io::Result<()> {
        match &self.device {
            Some(device) => {
                socket_option::set_bytes(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())
            }
            None => Ok(()),
        }
    }

    /// Binds a separate socket and drops it, to test whether this host has the address and the interface.
    ///
    /// # Errors
    /// Errors of socket(2), and as [`Self::bind_udp`].
    pub fn try_udp(&self, any: IpAddr) -> io::Result<()> {
        udp(self, any).map(drop)
    }
}

/// Maximum length of an interface name, bytes (`IFNAMSIZ` without its zero; `dev_valid_name` in net/core/dev.c).
const DEVICE_LEN_MAX: usize = 15;

/// The text is neither an address nor a possible name of an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("neither an IP address, nor the name of an interface, nor ADDRESS%INTERFACE")]
pub struct NotABind;

impl FromStr for LocalBind {
    type Err = NotABind;

    /// `ADDRESS`, `ADDRESS%INTERFACE` or `INTERFACE`.
    fn from_str(text: &str) -> Result<Self, NotABind> {
        let device = |name: &str| {
            let is_name = (1..=DEVICE_LEN_MAX).contains(&name.len())
                && !matches!(name, "." | "..")
                && !name
                    .contains(|c: char| c == '/' || c == ':' || c == '%' || c.is_whitespace() || c == '\0');
            if is_name { Ok(Some(name.to_owned())) } else { Err(NotABind) }
        };
        if let Ok(address) = text.parse() {
            return Ok(Self { address: Some(address), device: None });
        }
        match text.split_once('%') {
            Some((address, name)) => {
                Ok(Self { address: Some(address.parse().map_err(|_| NotABind)?), device: device(name)? })
            }
            None => Ok(Self { address: None, device: device(text)? }),
        }
    }
}

impl fmt::Display for LocalBind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address, &self.device) {
            (Some(address), Some(device)) => write!(f, "{address}%{device}"),
            (Some(address), None) => write!(f, "{address}"),
            (None, Some(device)) => write!(f, "{device}"),
            (None, None) => write!(f, "any address"),
        }
    }
}

/// A UDP socket that is bound to a free port.
///
/// # Errors
/// Errors of socket(2), and as [`LocalBind::bind_udp`].
pub fn udp(bind: &LocalBind, any: IpAddr) -> io::Result<std::net::UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
    let address = bind.address.unwrap_or(any);
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipproto::UDP))?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind.bind_udp(&socket, any)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
    use std::time::Duration;

    use super::*;

    const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    fn on(address: Option<&str>, device: Option<&str>) -> LocalBind {
        LocalBind { address: address.map(|text| text.parse().unwrap()), device: device.map(str::to_owned) }
    }

    #[test]
    fn text_is_an_address_an_interface_or_both() {
        for text in ["127.0.0.2", "fe80::1%eth0", "10.0.0.1%vlan.7", "eth0", "::1"] {
            assert_eq!(text.parse::<LocalBind>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1%lo".parse(), Ok(on(Some("10.0.0.1"), Some("lo"))));
        for wrong in
            ["", "%eth0", "10.0.0.1%", "10.0.0.1:80", "a b", "an-interface-too-long", "x%lo", "..", "a/b"]
        {
            assert_eq!(wrong.parse::<LocalBind>(), Err(NotABind), "{wrong}");
        }
    }

    #[test]
    fn listener_sees_the_bound_source_address_of_each_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for bind in [on(Some("127.0.0.2"), None), on(Some("127.0.0.3"), Some("lo"))] {
            let kept: Vec<_> = (0..3)
                .map(|_| crate::tcp::connect(address, None, None, Duration::from_secs(60), &bind).unwrap())
                .collect();
            for _ in &kept {
                assert_eq!(Some(listener.accept().unwrap().1.ip()), bind.address);
            }
        }
    }

    #[test]
    fn datagram_socket_has_the_bound_address_and_a_port() {
        let socket = udp(&on(Some("127.0.0.2"), Some("lo")), ANY).unwrap();
        let local = socket.local_addr().unwrap();
        assert!(local.ip() == Ipv4Addr::new(127, 0, 0, 2) && local.port() != 0, "{local}");
        assert_eq!(udp(&LocalBind::ANY, ANY).unwrap().local_addr().unwrap().ip(), ANY);
    }

    #[test]
    fn address_of_another_host_and_missing_interface_are_refused_with_their_errors() {
        let error = |bind: LocalBind| bind.try_udp(ANY).unwrap_err().raw_os_error();
        assert_eq!(error(on(Some("192.0.2.1"), None)), Some(libc::EADDRNOTAVAIL));
        assert_eq!(error(on(None, Some("absent9"))), Some(libc::ENODEV));
        let ipv4 = crate::tcp::unconnected("127.0.0.1:9".parse().unwrap(), None, &LocalBind::ANY).unwrap();
        assert!(on(Some(&Ipv6Addr::LOCALHOST.to_string()), None).bind_tcp(&ipv4).is_err());
    }
}
