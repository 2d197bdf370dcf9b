//! Identifiers of echo requests on raw ICMP sockets. The kernel assigns those of datagram sockets only, and process ids repeat in
//! other pid namespaces, so an identifier is random. Its reservation is an abstract Unix socket (unix(7)): like raw sockets, it belongs to
//! the network namespace, and it ends with the process. Any user may bind all of these names, so a reservation is not required: without
//! one, two of a few random identifiers out of 65,536 are rarely equal.
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::random;

/// Draws of eight identifiers each. Even with 60,000 of the 65,536 reserved, fewer than 1 in 10^7 reservations fails.
const DRAWS: usize = 24;

/// An identifier that no other raw socket of netduel in this network namespace has reserved, until it is dropped.
#[derive(Debug)]
pub(crate) struct EchoId {
    value: u16,
    _reservation: Option<UnixDatagram>,
}

impl EchoId {
    /// Reserves a random identifier; one without a reservation when all drawn ones are reserved.
    ///
    /// # Errors
    /// Errors of socket(2) and bind(2) other than `EADDRINUSE`.
    pub(crate) fn reserve() -> io::Result<Self> {
        Self::reserve_with(reservation)
    }

    fn reserve_with(reservation: impl Fn(u16) -> io::Result<UnixDatagram>) -> io::Result<Self> {
        let mut value = 0;
        for _ in 0..DRAWS {
            for pair in random::bytes16()?.chunks_exact(2) {
                value = u16::from_ne_bytes([pair[0], pair[1]]);
                match reservation(value) {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                    reserved => return Ok(Self { value, _reservation: Some(reserved?) }),
                }
            }
        }
        Ok(Self { value, _reservation: None })
    }

    /// The identifier.
    pub(crate) fn value(&self) -> u16 {
        self.value
    }
}

/// The socket whose name reserves an identifier.
fn reservation(value: u16) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("netduel-echo-{value}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_identifier_is_refused_until_it_is_dropped() {
        let first = EchoId::reserve().unwrap();
        assert_eq!(reservation(first.value()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_ne!(EchoId::reserve().unwrap().value(), first.value());
        let value = first.value();
        drop(first);
        // A child that another test's thread forks has the socket until it executes a program.
        while reservation(value).is_err() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn identifiers_that_are_all_reserved_block_no_socket() {
        let in_use = |_| Err(io::ErrorKind::AddrInUse.into());
        assert!(EchoId::reserve_with(in_use).is_ok());
        let denied = |_| Err(io::ErrorKind::PermissionDenied.into());
        assert!(EchoId::reserve_with(denied).is_err());
    }
}
