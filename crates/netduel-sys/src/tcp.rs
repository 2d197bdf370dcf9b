//! TCP sockets: options, and a receive that discards (MSG_TRUNC).
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};

use crate::local_bind::LocalBind;
use crate::{socket_option, tcp_info};

/// States of a connection (include/net/tcp_states.h): ended.
const CLOSE: u8 = 7;
/// `TCP_FIN_WAIT1`, `TCP_LAST_ACK` and `TCP_CLOSING`: the peer has not acknowledged the FIN of this end.
const FIN_UNACKNOWLEDGED: [u8; 3] = [4, 9, 11];

fn open(address: SocketAddr, congestion: Option<&str>) -> io::Result<rustix::fd::OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    if let Some(name) = congestion {
        sockopt::set_tcp_congestion(&socket, name)?;
    }
    Ok(socket)
}

/// Listens. Connections inherit `congestion`, so it is in use from the first segment. `backlog` is the length of the accept
/// queue, which the kernel limits to `net.core.somaxconn`. Connections of an earlier listener in TIME_WAIT do not occupy a port that the
/// caller names (`SO_REUSEADDR`); an open listener does.
///
/// # Errors
/// Errors of socket(2), setsockopt(2) (`ENOENT`: no such congestion control), bind(2) and listen(2).
pub fn listen(address: SocketAddr, congestion: Option<&str>, backlog: i32) -> io::Result<TcpListener> {
    let socket = open(address, congestion)?;
    if address.port() != 0 {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(TcpListener::from(socket))
}

/// Connects within `timeout` from the address and interface of `bind`, with `congestion` in use and segments of at most `mss` bytes
/// (`TCP_MAXSEG`, tcp(7)) from the first segment on.
///
/// # Errors
/// Errors of socket(2), setsockopt(2), connect(2) and [`LocalBind::bind_tcp`]; kind `TimedOut` after the timeout.
pub fn connect(
    address: SocketAddr,
    congestion: Option<&str>,
    mss: Option<u32>,
    timeout: Duration,
    bind: &LocalBind,
) -> io::Result<TcpStream> {
    let socket = open(address, congestion)?;
    if let Some(mss) = mss {
        let mss = i32::try_from(mss).unwrap_or(i32::MAX);
        socket_option::set_int(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, mss)?;
    }
    bind.bind_tcp(&socket)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {
            let mut entry = [PollFd::new(&socket, PollFlags::OUT)];
            let timeout = crate::socket::to_timespec(timeout);
            if poll(&mut entry, Some(&timeout))? == 0 {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    rustix::io::ioctl_fionbio(&socket, false)?;
    Ok(TcpStream::from(socket))
}

/// An unconnected socket for [`continue_connecting`], bound to the address and interface of `bind`. It sends small messages at once
/// (`TCP_NODELAY`), and no call on it sleeps longer than `limit`; without a limit no call sleeps while it connects.
///
/// # Errors
/// Errors of socket(2), setsockopt(2) and [`LocalBind::bind_tcp`].
pub fn unconnected(address: SocketAddr, limit: Option<Duration>, bind: &LocalBind) -> io::Result<TcpStream> {
    let socket = open(address, None)?;
    bind.bind_tcp(&socket)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match limit {
        Some(_) => {
            sockopt::set_socket_timeout(&socket, Timeout::Send, limit)?;
            sockopt::set_socket_timeout(&socket, Timeout::Recv, limit)?;
        }
        None => rustix::io::ioctl_fionbio(&socket, true)?,
    }
    Ok(TcpStream::from(socket))
}

/// Starts or continues connecting; false while it is not connected: after the time limit of the socket, or at once
/// without one (connect(2): `EINPROGRESS`, then `EALREADY`).
///
/// # Errors
/// Errors of connect(2): `ECONNREFUSED`, `ETIMEDOUT`, `EADDRNOTAVAIL` when no local port is free for this peer, ...
#[inline]
pub fn continue_connecting(socket: &TcpStream, address: SocketAddr) -> io::Result<bool> {
    use rustix::io::Errno;
    match rustix::net::connect(socket, &address) {
        Ok(()) | Err(Errno::ISCONN) => Ok(true),
        Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Delays accepting a connection until its first bytes have arrived (`TCP_DEFER_ACCEPT`, tcp(7)), and drops it when none arrive
/// within about `timeout`: the accepting thread can read at once.
///
/// # Errors
/// None on a listening socket.
pub fn defer_accept(listener: &TcpListener, timeout: Duration) -> io::Result<()> {
    let seconds = i32::try_from(timeout.as_secs()).unwrap_or(i32::MAX).max(1);
    socket_option::set_int(listener, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, seconds)
}

/// Limits the unsent bytes in the send queue to `bytes` (`TCP_NOTSENT_LOWAT`, tcp(7)): later data waits behind at most these and the
/// data in flight.
///
/// # Errors
/// None on an open socket of this kind.
pub fn limit_unsent(stream: &TcpStream, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    socket_option::set_int(stream, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Sends small messages at once (`TCP_NODELAY`, tcp(7)): on a connection, or on every accepted connection of a listener.
///
/// # Errors
/// None on an open socket of this kind.
pub fn send_at_once(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(socket, true)?)
}

/// Sets the congestion control of a socket, whether it is connected or not.
///
/// # Errors
/// `ENOENT`: the host has none of that name; `EPERM`: this process may not use it.
pub fn set_congestion(stream: impl AsFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(stream, name)?)
}

/// Whether a socket of this host could use the congestion control.
///
/// # Errors
/// As [`set_congestion`], and errors of socket(2).
pub fn try_congestion(name: &str) -> io::Result<()> {
    open(SocketAddr::from(([0; 4], 0)), Some(name)).map(drop)
}

/// The congestion control in use on a connection.
///
/// # Errors
/// None on an open socket of this kind.
pub fn congestion(stream: &TcpStream) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(stream)?)
}

/// Makes a receive call wait until this many bytes have arrived, the stream has ended, or the window is full (`SO_RCVLOWAT`,
/// socket(7)). The kernel limits it to half of the maximum receive buffer (net/ipv4/tcp.c, `tcp_set_rcvlowat`), so it never waits
/// for more than the buffer can hold.
///
/// # Errors
/// None on an open TCP socket with a value that is not negative.
pub fn set_receive_low_water(stream: &TcpStream, bytes: i32) -> io::Result<()> {
    socket_option::set_int(stream, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Limits the sending rate, bytes of payload and headers a second (`SO_MAX_PACING_RATE`, socket(7)); without an `fq` qdisc TCP paces
/// with its own timers.
///
/// # Errors
/// None on an open socket of this kind.
pub fn set_max_pacing_rate(stream: &TcpStream, bytes_per_second: u64) -> io::Result<()> {
    // Linux 4.20 and later accept 64 bits here.
    socket_option::set_u64(stream, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)
}

/// Discards up to `length` received bytes without copying them (`MSG_TRUNC`, tcp(7)); returns their number, 0 at the end.
///
/// # Errors
/// Errors of recv(2).
#[inline]
pub fn receive_discard(stream: &TcpStream, length: usize) -> io::Result<usize> {
    let descriptor = stream.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing to the buffer (tcp(7)); should it ever try, the
    // null address makes it return EFAULT. The descriptor is borrowed and so open.
    let result = unsafe { libc::recv(descriptor, std::ptr::null_mut(), length, libc::MSG_TRUNC) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Bytes of this end, sent or not, that the peer has not acknowledged (`SIOCOUTQ`, tcp(7)); 0 for a connection
/// that has ended.
///
/// # Errors
/// `EINVAL` on a socket that listens.
pub fn unacknowledged(stream: &TcpStream) -> io::Result<u64> {
    // First: the FIN can be acknowledged meanwhile, and is then in neither figure.
    let state = tcp_info::read(stream)?.state();
    if state == Some(CLOSE) {
        return Ok(0);
    }
    // The FIN has a sequence number, and the kernel counts these.
    let fin = u64::from(state.is_some_and(|state| FIN_UNACKNOWLEDGED.contains(&state)));
    let mut bytes: libc::c_int = 0;
    let argument: *mut libc::c_int = &raw mut bytes;
    // SAFETY: SIOCOUTQ writes one `int`, which `argument` points to and which lives through the call; the
    // descriptor is borrowed and so open.
    let result = unsafe { libc::ioctl(stream.as_fd().as_raw_fd(), libc::TIOCOUTQ as _, argument) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(bytes).unwrap_or(0).saturating_sub(fin))
}

/// Makes the close of a connection discard what the peer has not acknowledged, and reset the connection
/// (`SO_LINGER` of 0 s, socket(7)). Otherwise the kernel continues to send it after the close.
///
/// # Errors
/// None on an open socket of this kind.
pub fn discard_at_close(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = listen("127.0.0.1:0".parse().unwrap(), None, 8).unwrap();
        let client =
            connect(listener.local_addr().unwrap(), None, None, Duration::from_secs(10), &LocalBind::ANY)
                .unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn discarded_bytes_are_counted_and_the_end_wakes_in_spite_of_the_low_water_mark() {
        let (client, server) = pair();
        set_receive_low_water(&server, 512 * 1024).unwrap();
        (&client).write_all(&[7; 3000]).unwrap();
        drop(client);
        let mut total = 0;
        loop {
            let count = receive_discard(&server, 4 << 20).unwrap();
            if count == 0 {
                break;
            }
            total += count;
        }
        assert_eq!(total, 3000);
    }

    /// Sends until the peer, which does not read, has a full window and this end a full buffer; returns the number of bytes.
    fn fill(mut stream: &TcpStream) -> u64 {
        stream.set_nonblocking(true).unwrap();
        let block = vec![7; 64 << 10];
        let mut sent = 0;
        loop {
            match stream.write(&block) {
                Ok(count) => sent += count as u64,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    return sent;
                }
            }
        }
    }

    #[test]
    fn data_is_unacknowledged_until_the_peer_has_room_for_it_and_a_fin_is_no_data() {
        let (client, mut server) = pair();
        assert_eq!(unacknowledged(&client).unwrap(), 0);
        let sent = fill(&client);
        let waiting = unacknowledged(&client).unwrap();
        assert!(waiting > 0 && waiting <= sent, "{waiting} of {sent}");
        crate::socket::shut_down_sending(&client).unwrap();
        assert!(unacknowledged(&client).unwrap() <= waiting);
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert_eq!(received.len() as u64, sent);
        // The end of the stream has arrived; its acknowledgement may be delayed.
        while unacknowledged(&client).unwrap() > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn close_of_a_connection_discards_unsent_data_on_request() {
        let (client, mut server) = pair();
        let sent = fill(&client);
        crate::socket::shut_down(&client).unwrap();
        discard_at_close(&client).unwrap();
        drop(client);
        let mut received = Vec::new();
        let error = server.read_to_end(&mut received).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!((received.len() as u64) < sent, "{} of {sent}", received.len());
    }

    #[test]
    fn connection_that_has_ended_has_nothing_unacknowledged() {
        let (client, server) = pair();
        fill(&client);
        discard_at_close(&server).unwrap();
        drop(server);
        assert!(crate::socket::wait_readable(&[client.as_fd()], Duration::from_secs(10)).unwrap()[0]);
        assert_eq!(unacknowledged(&client).unwrap(), 0);
    }

    #[test]
    fn requested_congestion_control_is_in_use_at_both_ends() {
        let listener = listen("[::1]:0".parse().unwrap(), Some("reno"), 8).unwrap();
        let client = connect(
            listener.local_addr().unwrap(),
            Some("reno"),
            None,
            Duration::from_secs(10),
            &LocalBind::ANY,
        )
        .unwrap();
        assert_eq!(congestion(&client).unwrap(), "reno");
        assert_eq!(congestion(&listener.accept().unwrap().0).unwrap(), "reno");
        let error = listen("[::1]:0".parse().unwrap(), Some("nonsense"), 8).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn connection_is_made_in_steps_and_accepted_with_its_first_bytes() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), None, 8).unwrap();
        defer_accept(&listener, Duration::from_secs(10)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        for limit in [None, Some(Duration::from_secs(10))] {
            let client = unconnected(address, limit, &LocalBind::ANY).unwrap();
            while !continue_connecting(&client, address).unwrap() {}
            assert!(continue_connecting(&client, address).unwrap(), "a connected socket stays so");
            assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            crate::socket::send(&client, b"x", crate::socket::Waiting::Block).unwrap();
            assert!(crate::socket::wait_readable(&[listener.as_fd()], Duration::from_secs(10)).unwrap()[0]);
            let mut byte = [0; 1];
            let (server, _) = listener.accept().unwrap();
            assert_eq!(crate::socket::receive(&server, &mut byte, crate::socket::Waiting::Never).unwrap(), 1);
        }
    }

    #[test]
    fn refused_connection_is_reported_while_connecting() {
        let address = listen("127.0.0.1:0".parse().unwrap(), None, 1).unwrap().local_addr().unwrap();
        let client = unconnected(address, None, &LocalBind::ANY).unwrap();
        let error = loop {
            match continue_connecting(&client, address) {
                Ok(connected) => assert!(!connected),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn connection_to_a_closed_port_is_refused() {
        let address = listen("127.0.0.1:0".parse().unwrap(), None, 1).unwrap().local_addr().unwrap();
        let error = connect(address, None, None, Duration::from_secs(10), &LocalBind::ANY).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
