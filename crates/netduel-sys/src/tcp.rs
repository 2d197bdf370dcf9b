//! TCP sockets: options, sendfile(2), receive that discards (MSG_TRUNC).
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};

use crate::memory_file::MemoryFile;
use crate::socket_option;

fn open(address: SocketAddr, congestion: Option<&str>) -> io::Result<rustix::fd::OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    if let Some(name) = congestion {
        sockopt::set_tcp_congestion(&socket, name)?;
    }
    Ok(socket)
}

/// Listens. Connections inherit `congestion`, so that it holds from the first segment on. `backlog` is what the kernel
/// keeps of connections that were not accepted yet; it caps it at `net.core.somaxconn`.
///
/// # Errors
/// What socket(2), setsockopt(2) (`ENOENT`: no such congestion control), bind(2) and listen(2) say.
pub fn listen(address: SocketAddr, congestion: Option<&str>, backlog: i32) -> io::Result<TcpListener> {
    let socket = open(address, congestion)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(TcpListener::from(socket))
}

/// Connects within `timeout`, with `congestion` in use from the first segment on.
///
/// # Errors
/// What socket(2), setsockopt(2) and connect(2) say; kind `TimedOut` after the time-out.
pub fn connect(address: SocketAddr, congestion: Option<&str>, timeout: Duration) -> io::Result<TcpStream> {
    let socket = open(address, congestion)?;
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

/// The congestion control in use on a connection.
///
/// # Errors
/// Does not happen on a live socket.
pub fn congestion(stream: &TcpStream) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(stream)?)
}

/// A receive call waits until this many bytes are there, the stream ended, or the window is full (`SO_RCVLOWAT`,
/// socket(7)). The kernel caps it at half of what the receive buffer may become (net/ipv4/tcp.c, `tcp_set_rcvlowat`),
/// so a small buffer cannot make it wait for more than fits.
///
/// # Errors
/// Does not happen on a live socket with a value that is not negative.
pub fn set_receive_low_water(stream: &TcpStream, bytes: i32) -> io::Result<()> {
    socket_option::set_int(stream, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// The kernel sends no faster than this, bytes of payload and headers a second (`SO_MAX_PACING_RATE`, socket(7)); without an
/// `fq` queue TCP paces with timers of its own.
///
/// # Errors
/// Does not happen on a live socket.
pub fn set_max_pacing_rate(stream: &TcpStream, bytes_per_second: u64) -> io::Result<()> {
    // Linux 4.20 and later take 64 bits here.
    socket_option::set_u64(stream, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)
}

/// Sends up to `length` bytes from the beginning of `file` without copying them (sendfile(2)); returns how many were
/// taken. A process that does not ignore SIGPIPE dies of it when the peer is gone; Rust's runtime ignores it.
///
/// # Errors
/// What sendfile(2) says.
#[inline]
pub fn send_file(stream: &TcpStream, file: &MemoryFile, length: usize) -> io::Result<usize> {
    Ok(rustix::fs::sendfile(stream, file, Some(&mut 0), length.min(file.length()))?)
}

/// Takes up to `length` bytes off the stream without copying them (`MSG_TRUNC`, tcp(7)); returns how many, 0 at the end.
///
/// # Errors
/// What recv(2) says.
#[inline]
pub fn receive_discard(stream: &TcpStream, length: usize) -> io::Result<usize> {
    let descriptor = stream.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing to the buffer (tcp(7)); should it ever try, the
    // null address makes it return EFAULT. The descriptor is borrowed and so open.
    let result = unsafe { libc::recv(descriptor, std::ptr::null_mut(), length, libc::MSG_TRUNC) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = listen("127.0.0.1:0".parse().unwrap(), None, 8).unwrap();
        let client = connect(listener.local_addr().unwrap(), None, Duration::from_secs(10)).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_file_is_sent_and_read() {
        let (client, mut server) = pair();
        let file = MemoryFile::with_pattern(1000).unwrap();
        assert_eq!(send_file(&client, &file, 5000).unwrap(), 1000);
        drop(client);
        let mut bytes = Vec::new();
        server.read_to_end(&mut bytes).unwrap();
        let mut pattern = vec![0; 1000];
        crate::memory_file::fill_with_pattern(&mut pattern);
        assert_eq!(bytes, pattern);
    }

    #[test]
    fn discarded_bytes_are_counted_and_the_end_wakes_in_spite_of_the_low_water_mark() {
        let (client, server) = pair();
        set_receive_low_water(&server, 512 * 1024).unwrap();
        let file = MemoryFile::with_pattern(3000).unwrap();
        send_file(&client, &file, 3000).unwrap();
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

    #[test]
    fn the_congestion_control_asked_for_is_in_use_at_both_ends() {
        let listener = listen("[::1]:0".parse().unwrap(), Some("reno"), 8).unwrap();
        let client = connect(listener.local_addr().unwrap(), Some("reno"), Duration::from_secs(10)).unwrap();
        assert_eq!(congestion(&client).unwrap(), "reno");
        assert_eq!(congestion(&listener.accept().unwrap().0).unwrap(), "reno");
        let error = listen("[::1]:0".parse().unwrap(), Some("nonsense"), 8).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_closed_port_refuses() {
        let address = listen("127.0.0.1:0".parse().unwrap(), None, 1).unwrap().local_addr().unwrap();
        let error = connect(address, None, Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
