//! Has the kernel stamp packets before the traffic begins. It starts to with the first socket that asks, and some time after it: the
//! switch is left to a work queue (`net_enable_timestamp` in net/core/dev.c), which on a busy host was seen to take longer than a
//! trial of 0.6 s. It moves no traffic of the trial.
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use netduel_sys::{clock, socket, timestamping};

/// How long it is waited for, nanoseconds: stamps that are missing after that are counted as such.
const LIMIT_NS: u64 = 2_000_000_000;
/// How long a datagram over loopback may take, and the pause before the next.
const STEP: Duration = Duration::from_millis(1);

/// Packets of the host are stamped as long as there is one of these.
#[derive(Debug)]
pub(crate) struct KernelTimestamping {
    #[expect(dead_code, reason = "held for its end alone")]
    socket: UdpSocket,
}

impl KernelTimestamping {
    /// Waits until the kernel stamps what arrives.
    ///
    /// # Errors
    /// When the host has no loopback interface to see it by, or its kernel stamps nothing. The traffic can go on: its own sockets ask
    /// for stamps, too.
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
    fn what_arrives_afterwards_is_stamped() {
        let _stamping = KernelTimestamping::enable().unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        timestamping::enable(&socket, false).unwrap();
        socket.send(&[0]).unwrap();
        let (_, stamp) = timestamping::receive(&socket, &mut [0; 1], socket::Waiting::Block).unwrap();
        assert!(stamp.software_ns.is_some());
    }
}
