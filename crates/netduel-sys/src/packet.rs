//! Raw frames of an interface (packet(7)): received and sent with their Ethernet header.
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::socket::{self, Waiting};

/// All protocols (include/uapi/linux/if_ether.h, `ETH_P_ALL`), in network order.
const ALL_PROTOCOLS: u16 = 0x0003_u16.to_be();

/// A socket on one interface.
#[derive(Debug)]
pub struct PacketSocket {
    descriptor: OwnedFd,
}

impl PacketSocket {
    /// Opens one on the interface with this index in the calling thread's network namespace, with a receive
    /// buffer of `buffer_bytes` (beyond the host's limit, which needs the same capability).
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW, `ENODEV` without such an interface.
    pub fn open(interface: u32, buffer_bytes: usize) -> io::Result<Self> {
        // Without a protocol, so that no frames of other interfaces arrive before the bind.
        let descriptor = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_recv_buffer_size_force(&descriptor, buffer_bytes)?;
        // SAFETY: `sockaddr_ll` is integers, for all of which zero is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL_PROTOCOLS;
        address.sll_ifindex =
            i32::try_from(interface).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
        let pointer: *const libc::sockaddr_ll = &raw const address;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `pointer` is to a live structure of `length` bytes, which the kernel only reads; the descriptor is open.
        let result = unsafe { libc::bind(descriptor.as_raw_fd(), pointer.cast(), length) };
        if result == 0 { Ok(Self { descriptor }) } else { Err(io::Error::last_os_error()) }
    }

    /// Reads the next received or sent frame and returns its length; a longer frame is truncated to `buffer`.
    ///
    /// # Errors
    /// `EAGAIN` when there is none and the socket does not block, `ENETDOWN` when the interface went down.
    pub fn receive(&self, buffer: &mut [u8], waiting: Waiting) -> io::Result<usize> {
        socket::receive(&self.descriptor, buffer, waiting)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// Errors of send(2): `EMSGSIZE` beyond the MTU, `ENOBUFS` when the queue is full, `ENETDOWN`.
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        socket::send(&self.descriptor, frame, Waiting::Block)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_needs_the_capability_and_an_interface() {
        let error = PacketSocket::open(i32::MAX as u32, 4096).unwrap_err();
        let expected = if rustix::process::geteuid().is_root() { libc::ENODEV } else { libc::EPERM };
        assert_eq!(error.raw_os_error(), Some(expected));
    }
}
