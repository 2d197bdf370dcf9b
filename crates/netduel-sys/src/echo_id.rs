//! Identifiers of echo requests on raw ICMP sockets. The kernel assigns those of datagram sockets only, and process ids repeat in
//! other pid namespaces, so an identifier is random. Its reservation is an abstract Unix socket (unix(7)): like raw sockets, it belongs to
//! the network namespace, and it ends with the process.
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::random;

/// Draws of eight identifiers each. Even with 60,000 of the 65,536 reserved, fewer than 1 in 10^7 reservations fails.
const DRAWS: usize = 24;

/// An identifier that no other raw socket of netduel in this network namespace has, until it is dropped.
#[derive(Debug)]
pub(crate) struct EchoId {
    value: u16,
    _reservation: UnixDatagram,
}

impl EchoId {
    /// Reserves a random identifier.
    ///
    /// # Errors
    /// Errors of socket(2) and bind(2); `EADDRINUSE` when all drawn identifiers are reserved.
    pub(crate) fn reserve() -> io::Result<Self> {
        for _ in 0..DRAWS {
            for pair in random::bytes16()?.chunks_exact(2) {
                match Self::reserve_value(u16::from_ne_bytes([pair[0], pair[1]])) {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                    result => return result,
                }
            }
        }
        Err(io::Error::from_raw_os_error(libc::EADDRINUSE))
    }

    fn reserve_value(value: u16) -> io::Result<Self> {
        let name = SocketAddr::from_abstract_name(format!("netduel-echo-{value}"))?;
        Ok(Self { value, _reservation: UnixDatagram::bind_addr(&name)? })
    }

    /// The identifier.
    pub(crate) fn value(&self) -> u16 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_identifier_is_refused_until_it_is_dropped() {
        let first = EchoId::reserve().unwrap();
        let again = EchoId::reserve_value(first.value());
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_ne!(EchoId::reserve().unwrap().value(), first.value());
        let value = first.value();
        drop(first);
        assert_eq!(EchoId::reserve_value(value).unwrap().value(), value);
    }
}
