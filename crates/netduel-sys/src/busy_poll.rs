//! Busy polling of a socket's receive queue (socket(7), Documentation/networking/napi.rst): a thread that waits for data
//! polls the NIC's queue itself for a while before it sleeps. Only devices with NAPI can be polled so.
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::socket_option;

/// The granted busy polling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Whether the kernel leaves the queue to the polling thread (`SO_PREFER_BUSY_POLL`, Linux 5.11 and later).
    pub preferred: bool,
}

/// Makes a blocking call on `socket` poll for up to `length` before it sleeps (`SO_BUSY_POLL`), with the interrupts of its queue
/// disabled meanwhile where the kernel supports it (`SO_PREFER_BUSY_POLL`).
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN when `length` is more than `net.core.busy_read`; `ENOPROTOOPT` when the kernel was built
/// without busy polling (`CONFIG_NET_RX_BUSY_POLL`).
pub fn enable(socket: impl AsFd, length: Duration) -> io::Result<Granted> {
    let socket = socket.as_fd();
    let micros = i32::try_from(length.as_micros()).unwrap_or(i32::MAX);
    socket_option::set_int(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, micros)?;
    // Optional: without it the queue is still polled.
    let preferred = socket_option::set_int(socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1).is_ok();
    Ok(Granted { preferred })
}

/// The NAPI instance that the socket's packets last came from (`SO_INCOMING_NAPI_ID`, Linux 4.12 and later); 0 when they came
/// from a device without one, which cannot be polled, and before the first packet.
///
/// # Errors
/// `ENOPROTOOPT` as in [`enable`].
pub fn incoming_napi_id(socket: impl AsFd) -> io::Result<u32> {
    let mut bytes = [0; size_of::<u32>()];
    let name = libc::SO_INCOMING_NAPI_ID;
    socket_option::read_bytes(socket, libc::SOL_SOCKET, name, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn loopback_has_no_queue_to_poll() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        receiver.recv(&mut [0; 8]).unwrap();
        assert_eq!(incoming_napi_id(&receiver).unwrap(), 0);
    }
}
