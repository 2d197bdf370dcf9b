//! Enables time stamping of packets in the kernel before the traffic begins. The first socket with time stamps enables it with a delay:
//! the kernel uses a work queue (`net_enable_timestamp` in net/core/dev.c), which took longer than a trial of 0.6 s on a busy host.
//! Moves no traffic of the trial.
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use netduel_sys::{clock, socket, timestamping};

/// Longest wait, nanoseconds: after it, missing stamps are counted.
const LIMIT_NS: u64 = 2_000_000_000;
/// Receive timeout of a datagram over loopback, and the pause before the next.
const STEP: Duration = Duration::from_millis(1);

/// Keeps time stamping enabled on this host until it is dropped.
#[derive(Debug)]
pub(crate) struct KernelTimestamping {
    #[expect(dead_code, reason = "held for its end alone")]
    socket: UdpSocket,
}

impl KernelTimestamping {
    /// Waits until the kernel stamps received packets.
    ///
    /// # Errors
    /// When the host has no loopback interface, or its kernel has no time stamps. The traffic can run all the same: its sockets enable
    /// time stamps, too.
    pub(crate) fn enable() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        timestamping::enable(&socket, false)?;
        socket::limit_receive_wait(&socket, STEP)?;
        let deadline = clock::monotonic_ns() + LIMIT_NS;
        while clock::monotonic_ns() < deadline {
            socket::send(&socket, &[0], socket::Waiting::Block)?;
            match timestamping::receive(&socket, &mut [0; 1], socket::Waiting::Block) {
                Ok((_, stamp)) if stamp.software_ns.is_some() => break,
                _ => clock::sleep_until(clock::monotonic_ns() + STEP.as_nanos() as u64),
            }
        }
        Ok(Self { socket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_packets_are_stamped_afterwards() {
        let _stamping = KernelTimestamping::enable().unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        timestamping::enable(&socket, false).unwrap();
        socket.send(&[0]).unwrap();
        let (_, stamp) = timestamping::receive(&socket, &mut [0; 1], socket::Waiting::Block).unwrap();
        assert!(stamp.software_ns.is_some());
    }
}
