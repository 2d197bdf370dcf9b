//! Operations of all kinds of sockets: waiting for several (poll(2)), waking a blocked thread (shutdown(2)), blocking and
//! non-blocking send and receive.
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{self, Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown};

/// Whether a call may block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It may block.
    Block,
    /// It returns `EAGAIN` instead (`MSG_DONTWAIT`).
    Never,
}

/// Whether a call may be repeated: it timed out, would have blocked, or was interrupted by a signal. Not an error of the path.
#[inline]
pub fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Waits until one of `sockets` is readable, was hung up or has an error, and returns this for each. All are
/// false after `timeout` or a signal.
///
/// # Errors
/// Only when the kernel has no memory, or there are more sockets than permitted descriptors.
pub fn wait_readable(sockets: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<Vec<bool>> {
    let mut entries: Vec<_> =
        sockets.iter().map(|socket| PollFd::from_borrowed_fd(*socket, PollFlags::IN)).collect();
    let timeout = to_timespec(timeout);
    match poll(&mut entries, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(entries.iter().map(|entry| !entry.revents().is_empty()).collect())
}

/// The kernel's type; a time beyond its range means no timeout.
pub(crate) fn to_timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

/// Waits until `socket` is readable or writable, or has an error, at most for `timeout`.
///
/// # Errors
/// As [`wait_readable`].
pub fn wait_readable_or_writable(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    let socket = socket.as_fd();
    let mut entry = [PollFd::from_borrowed_fd(socket, PollFlags::IN | PollFlags::OUT)];
    let timeout = to_timespec(timeout);
    match poll(&mut entry, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends both directions, which wakes every thread that sleeps in a call on the socket. On a socket without a peer the
/// kernel returns `ENOTCONN` and still wakes them.
///
/// # Errors
/// `ENOTCONN` as above.
pub fn shut_down(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, Shutdown::Both)?)
}

/// Ends the sending direction: the peer reads to the last byte and then sees the end.
///
/// # Errors
/// `ENOTCONN` when the connection has ended.
pub fn shut_down_sending(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, Shutdown::Write)?)
}

/// Limits a blocking receive to `timeout` (`SO_RCVTIMEO`): it returns the received bytes, or `EAGAIN`.
///
/// # Errors
/// None on an open socket of this kind.
pub fn limit_receive_wait(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    Ok(set_socket_timeout(socket, Timeout::Recv, Some(timeout))?)
}

/// Limits a blocking send to `timeout` (`SO_SNDTIMEO`): it returns the number of sent bytes, or `EAGAIN`.
///
/// # Errors
/// None on an open socket of this kind.
pub fn limit_send_wait(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    Ok(set_socket_timeout(socket, Timeout::Send, Some(timeout))?)
}

/// Sends, and returns the number of accepted bytes. Never raises SIGPIPE.
///
/// # Errors
/// Errors of send(2).
#[inline]
pub fn send(socket: impl AsFd, bytes: &[u8], waiting: Waiting) -> io::Result<usize> {
    let flags = match waiting {
        Waiting::Block => SendFlags::NOSIGNAL,
        Waiting::Never => SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    };
    Ok(rustix::net::send(socket, bytes, flags)?)
}

/// Receives, and returns the number of bytes. 0 is the end of a stream, or an empty datagram. A datagram that is longer
/// than `buffer` is truncated, and the returned length is that of the datagram.
///
/// # Errors
/// Errors of recv(2).
#[inline]
pub fn receive(socket: impl AsFd, buffer: &mut [u8], waiting: Waiting) -> io::Result<usize> {
    let flags = match waiting {
        Waiting::Block => RecvFlags::empty(),
        Waiting::Never => RecvFlags::DONTWAIT,
    };
    let (_, length) = rustix::net::recv(socket, buffer, flags)?;
    Ok(length)
}

/// Bits of the type-of-service byte below the DSCP: those of ECN (RFC 3168), which the kernel keeps.
const ECN_BITS: u32 = 2;

/// Marks sent packets with a DSCP (RFC 2474), 0 to 63: `IP_TOS`, and at sockets of IPv6 `IPV6_TCLASS` too, because such a socket
/// may have an IPv4 peer.
///
/// # Errors
/// Errors of setsockopt(2).
pub fn set_dscp(socket: impl AsFd, dscp: u8) -> io::Result<()> {
    let value = (dscp & 63) << ECN_BITS;
    if sockopt::socket_domain(&socket)? == rustix::net::AddressFamily::INET6 {
        sockopt::set_ipv6_tclass(&socket, u32::from(value))?;
    }
    Ok(sockopt::set_ip_tos(&socket, value)?)
}

/// The DSCP of sent packets.
///
/// # Errors
/// Errors of getsockopt(2).
pub fn dscp(socket: impl AsFd) -> io::Result<u8> {
    Ok(sockopt::ip_tos(socket)? >> ECN_BITS)
}

/// Sets send and receive buffers of `bytes`, beyond the host's limit if permitted (`SO_RCVBUFFORCE` needs
/// CAP_NET_ADMIN). Returns the granted sizes for sending and receiving, in the same measure (the kernel reports twice the
/// requested size, socket(7)).
///
/// # Errors
/// None on an open socket of this kind.
pub fn set_buffers(socket: impl AsFd, bytes: usize) -> io::Result<(usize, usize)> {
    if sockopt::set_socket_send_buffer_size_force(&socket, bytes).is_err() {
        sockopt::set_socket_send_buffer_size(&socket, bytes)?;
    }
    let receiving = set_receive_buffer(&socket, bytes)?;
    Ok((sockopt::socket_send_buffer_size(&socket)? / 2, receiving))
}

/// Sets a receive buffer of `bytes` and returns the granted size, as [`set_buffers`] does.
///
/// # Errors
/// None on an open socket of this kind.
pub fn set_receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    receive_buffer(socket)
}

/// The granted size of the receive buffer, as [`set_receive_buffer`] returns it.
///
/// # Errors
/// None on an open socket of this kind.
pub fn receive_buffer(socket: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_recv_buffer_size(socket)? / 2)
}

/// Size of the send buffer by the kernel's accounting, bytes (`SO_SNDBUF`).
///
/// # Errors
/// None on an open socket of this kind.
pub fn send_buffer(socket: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_send_buffer_size(socket)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn sent_data_makes_the_other_end_readable() {
        let (left, right) = UnixStream::pair().unwrap();
        let nothing = wait_readable(&[left.as_fd(), right.as_fd()], Duration::ZERO).unwrap();
        assert_eq!(nothing, [false, false]);
        assert_eq!(send(&left, b"abc", Waiting::Block).unwrap(), 3);
        let some = wait_readable(&[left.as_fd(), right.as_fd()], Duration::from_secs(10)).unwrap();
        assert_eq!(some, [false, true]);
        let mut buffer = [0; 8];
        assert_eq!(receive(&right, &mut buffer, Waiting::Never).unwrap(), 3);
        let error = receive(&right, &mut buffer, Waiting::Never).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn shutting_down_wakes_a_thread_that_receives() {
        let (left, right) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| receive(&left, &mut [0; 8], Waiting::Block));
            shut_down(&left).unwrap();
            assert_eq!(reader.join().unwrap().unwrap(), 0);
        });
        drop(right);
    }
}
