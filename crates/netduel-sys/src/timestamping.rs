//! Time stamps of packets by the kernel and the NIC (`SO_TIMESTAMPING`, Documentation/networking/timestamping.rst).
//!
//! Receive stamps arrive with the data. Transmit stamps are requested for each message and arrive through the socket's error
//! queue, with a number and without payload. Nothing here changes a device: a NIC stamps when an administrator has enabled it
//! (`SIOCSHWTSTAMP`), and its stamps are returned when available.
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};

use crate::socket::Waiting;
use crate::socket_option;

/// Bytes for control messages: `SCM_TIMESTAMPING` takes 64, `IPV6_RECVERR` 64.
pub(crate) const CONTROL_BYTES: usize = 256;
/// Bytes of a control message's header, aligned (`CMSG_ALIGN(sizeof(struct cmsghdr))`).
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>().next_multiple_of(ALIGNMENT);
const ALIGNMENT: usize = size_of::<usize>();
/// Bytes of `struct timespec`; `struct scm_timestamping` is three of them.
const TIMESPEC_BYTES: usize = size_of::<libc::timespec>();
/// Flags of a send: the kernel's stamp, and the NIC's.
const TRANSMIT: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_HARDWARE;

/// The time stamps of a packet, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// By the kernel, on the wall clock (`CLOCK_REALTIME`).
    pub software_ns: Option<u64>,
    /// By the NIC, on its own clock.
    pub hardware_ns: Option<u64>,
}

/// A transmit stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmitted {
    /// The message: over TCP the number of its last byte, over UDP that of the stamped datagram, both from 0.
    pub key: u32,
    /// The time: either the software or the hardware stamp, which arrive separately.
    pub stamp: Stamp,
}

/// The origin of the numbers of transmit stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// From the call of [`enable`].
    FromHere,
    /// TCP before Linux 6.2: from the oldest unacknowledged byte at that time.
    FromUnacknowledged,
}

/// Enables stamps of received packets, and of those sent by [`send`]. The kernel stamps all packets of the host while such a socket
/// exists; the first packets may still be without a stamp.
///
/// # Errors
/// Errors of setsockopt(2): `EINVAL` on kernels before 4.0.
pub fn enable(socket: impl AsFd, is_stream: bool) -> io::Result<Numbering> {
    let socket = socket.as_fd();
    let common = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let both = common | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    let exact = both | libc::SOF_TIMESTAMPING_OPT_ID_TCP;
    let set = |flags: u32| {
        socket_option::set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())
    };
    if is_stream {
        set(exact)
            .map(|()| Numbering::FromHere)
            .or_else(|_| set(both).or_else(|_| set(common)).map(|()| Numbering::FromUnacknowledged))
    } else {
        set(both).or_else(|_| set(common)).map(|()| Numbering::FromHere)
    }
}

/// Buffer for control messages, aligned as the kernel requires.
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_BYTES]);

/// A header without addresses and data.
fn empty_header() -> libc::msghdr {
    // SAFETY: `msghdr` is integers and pointers, for all of which zero is a valid value.
    unsafe { std::mem::zeroed() }
}

/// As [`crate::socket::send`], with a transmit stamp.
///
/// # Errors
/// Errors of sendmsg(2).
#[inline]
pub fn send(socket: impl AsFd, bytes: &[u8], waiting: Waiting) -> io::Result<usize> {
    let mut control = Control([0; CONTROL_BYTES]);
    let length = HEADER_BYTES + size_of::<u32>();
    control.0[..ALIGNMENT].copy_from_slice(&length.to_ne_bytes());
    control.0[ALIGNMENT..ALIGNMENT + 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    control.0[ALIGNMENT + 4..ALIGNMENT + 8].copy_from_slice(&libc::SO_TIMESTAMPING.to_ne_bytes());
    control.0[HEADER_BYTES..length].copy_from_slice(&TRANSMIT.to_ne_bytes());
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut header = empty_header();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = length.next_multiple_of(ALIGNMENT) as _;
    let flags = match waiting {
        Waiting::Block => libc::MSG_NOSIGNAL,
        Waiting::Never => libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
    };
    // SAFETY: the header points to one vector over `bytes` and to one control message, all of which outlive the call;
    // sendmsg only reads them.
    let result = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const header, flags) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// As [`crate::socket::receive`], with the receive stamp. Of a stream it is that of the segment that holds the last byte read;
/// where segments were merged in the queue, that of the last of them.
///
/// # Errors
/// Errors of recvmsg(2).
#[inline]
pub fn receive(socket: impl AsFd, buffer: &mut [u8], waiting: Waiting) -> io::Result<(usize, Stamp)> {
    let flags = match waiting {
        Waiting::Block => 0,
        Waiting::Never => libc::MSG_DONTWAIT,
    };
    let mut control = Control([0; CONTROL_BYTES]);
    let (length, control_length) = receive_message(socket, buffer, &mut control, flags)?;
    let messages = Messages { bytes: &control.0[..control_length.min(CONTROL_BYTES)] };
    Ok((length, messages.stamp()))
}

/// Reads up to `most` transmit stamps from the error queue without waiting, and calls `each` for every one until it returns
/// `Break`: each is a system call, and so is finding the queue empty. Other messages of the queue (of ICMP, for example) are
/// skipped.
///
/// # Errors
/// Errors of recvmsg(2), except an empty queue.
pub fn transmitted(
    socket: impl AsFd,
    most: usize,
    mut each: impl FnMut(Transmitted) -> ControlFlow<()>,
) -> io::Result<()> {
    let socket = socket.as_fd();
    for _ in 0..most {
        let mut control = Control([0; CONTROL_BYTES]);
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        match receive_message(socket, &mut [], &mut control, flags) {
            Ok((_, length)) => {
                let messages = Messages { bytes: &control.0[..length.min(CONTROL_BYTES)] };
                if let Some(key) = messages.key()
                    && each(Transmitted { key, stamp: messages.stamp() }).is_break()
                {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Bytes of data and of control messages.
#[inline]
pub(crate) fn receive_message(
    socket: impl AsFd,
    buffer: &mut [u8],
    control: &mut Control,
    flags: i32,
) -> io::Result<(usize, usize)> {
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut header = empty_header();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the header points to one vector over `buffer` and to `control`, both borrowed exclusively for the call; the
    // kernel writes no more than their lengths.
    let result = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, flags) };
    let length = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    Ok((length, header.msg_controllen as _))
}

/// Control messages of the kernel as bytes; every access is bounds-checked.
#[derive(Clone, Copy)]
pub(crate) struct Messages<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Level, type and data of the first message, and the rest.
    fn split(self) -> Option<(i32, i32, &'a [u8], Self)> {
        let length = usize::from_ne_bytes(self.bytes.get(..ALIGNMENT)?.try_into().ok()?);
        let level = number(self.bytes, ALIGNMENT)?;
        let kind = number(self.bytes, ALIGNMENT + 4)?;
        let data = self.bytes.get(HEADER_BYTES..length)?;
        let rest = self.bytes.get(length.checked_next_multiple_of(ALIGNMENT)?..).unwrap_or_default();
        Some((level.cast_signed(), kind.cast_signed(), data, Self { bytes: rest }))
    }

    pub(crate) fn find<T>(mut self, wanted: impl Fn(i32, i32, &[u8]) -> Option<T>) -> Option<T> {
        while let Some((level, kind, data, rest)) = self.split() {
            if let Some(found) = wanted(level, kind, data) {
                return Some(found);
            }
            self = rest;
        }
        None
    }

    /// The stamps; the kernel writes an absent one as zero.
    fn stamp(self) -> Stamp {
        let stamp = self.find(|level, kind, data| {
            let ours = level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPING;
            ours.then(|| Stamp { software_ns: time(data, 0), hardware_ns: time(data, 2) })
        });
        stamp.unwrap_or_default()
    }

    /// The number of a transmit stamp (`struct sock_extended_err`, include/uapi/linux/errqueue.h).
    fn key(self) -> Option<u32> {
        self.find(|level, kind, data| {
            let ours = (level == libc::SOL_IP && kind == libc::IP_RECVERR)
                || (level == libc::SOL_IPV6 && kind == libc::IPV6_RECVERR);
            let is_stamp = data.get(4) == Some(&libc::SO_EE_ORIGIN_TIMESTAMPING)
                && number(data, 0) == Some(libc::ENOMSG.cast_unsigned());
            if ours && is_stamp { number(data, 12) } else { None }
        })
    }
}

pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Entry `index` of `struct scm_timestamping`.
fn time(data: &[u8], index: usize) -> Option<u64> {
    let start = index * TIMESPEC_BYTES;
    let word = |at: usize| -> Option<i64> {
        let bytes = data.get(start + at..start + at + TIMESPEC_BYTES / 2)?;
        // `long` and `time_t` of the running platform.
        match bytes.len() {
            8 => bytes.try_into().ok().map(i64::from_ne_bytes),
            _ => bytes.try_into().ok().map(i32::from_ne_bytes).map(i64::from),
        }
    };
    let (seconds, nanoseconds) = (word(0)?, word(TIMESPEC_BYTES / 2)?);
    let ns = u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?;
    Some(ns + u64::try_from(nanoseconds).ok()?).filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::clock;

    fn tcp_pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn udp_pair(address: &str) -> (UdpSocket, UdpSocket) {
        let (left, right) = (UdpSocket::bind(address).unwrap(), UdpSocket::bind(address).unwrap());
        left.connect(right.local_addr().unwrap()).unwrap();
        right.connect(left.local_addr().unwrap()).unwrap();
        (left, right)
    }

    /// Sends 100-byte messages, every third of them stamped, and returns their keys in order, and the number of messages
    /// before: the kernel enables receive stamps with a delay.
    fn exchange(from: impl AsFd, to: impl AsFd, is_stream: bool) -> (Vec<u32>, u32) {
        let (from, to) = (from.as_fd(), to.as_fd());
        assert_eq!(enable(from, is_stream).unwrap(), Numbering::FromHere);
        enable(to, is_stream).unwrap();
        let mut before = 0;
        loop {
            crate::socket::send(from, &[7; 100], Waiting::Block).unwrap();
            before += 1;
            if receive(to, &mut [0; 200], Waiting::Block).unwrap().1.software_ns.is_some() {
                break;
            }
            std::thread::yield_now();
        }
        let mut keys = Vec::new();
        for number in 0..90 {
            let started = clock::realtime_ns();
            let sent = if number % 3 == 0 {
                send(from, &[7; 100], Waiting::Block)
            } else {
                crate::socket::send(from, &[7; 100], Waiting::Block)
            };
            assert_eq!(sent.unwrap(), 100);
            let (count, stamp) = receive(to, &mut [0; 200], Waiting::Block).unwrap();
            let after = clock::realtime_ns();
            assert_eq!(count, 100);
            let within = |ns: u64| assert!((started..=after).contains(&ns), "{started} {ns} {after}");
            within(stamp.software_ns.unwrap());
            transmitted(from, 16, |transmitted| {
                keys.push(transmitted.key);
                within(transmitted.stamp.software_ns.unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        }
        (keys, before)
    }

    #[test]
    fn transmit_stamps_of_a_stream_have_the_number_of_the_last_byte() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (client, server) = tcp_pair(address);
            let (keys, before) = exchange(&client, &server, true);
            let expected: Vec<u32> = (0..30).map(|index| (before + index * 3) * 100 + 99).collect();
            assert_eq!(keys, expected);
        }
    }

    #[test]
    fn datagrams_are_numbered_among_the_stamped_ones() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (client, server) = udp_pair(address);
            let (keys, _) = exchange(&client, &server, false);
            assert_eq!(keys, (0..30).collect::<Vec<_>>());
        }
    }

    #[test]
    fn pending_stamp_neither_fails_nor_wakes_a_receive_call() {
        let (client, _server) = udp_pair("127.0.0.1:0");
        enable(&client, false).unwrap();
        send(&client, &[1; 10], Waiting::Block).unwrap();
        let error = receive(&client, &mut [0; 10], Waiting::Never).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let length = HEADER_BYTES + data.len();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(length.next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn stamps_of_nic_and_kernel_are_distinguished_and_other_messages_ignored() {
        let times: Vec<u8> = [0_i64, 0, 0, 0, 3, 5].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut error = libc::ENOMSG.to_ne_bytes().to_vec();
        error.extend([libc::SO_EE_ORIGIN_TIMESTAMPING, 0, 0, 0, 0, 0, 0, 0]);
        error.extend(77_u32.to_ne_bytes());
        let mut bytes = message(libc::SOL_IP, libc::IP_TTL, &[1, 2, 3]);
        bytes.extend(message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &times));
        bytes.extend(message(libc::SOL_IPV6, libc::IPV6_RECVERR, &error));
        let messages = Messages { bytes: &bytes };
        assert_eq!(messages.stamp(), Stamp { software_ns: None, hardware_ns: Some(3_000_000_005) });
        assert_eq!(messages.key(), Some(77));
        // Cut anywhere, nothing is read past the end.
        for length in 0..bytes.len() {
            let cut = Messages { bytes: &bytes[..length] };
            assert!(cut.key().is_none_or(|key| key == 77));
            assert!(cut.stamp().software_ns.is_none());
        }
    }

    #[test]
    fn icmp_report_has_no_key() {
        let mut error = libc::ECONNREFUSED.to_ne_bytes().to_vec();
        error.extend([2, 3, 3, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        let bytes = message(libc::SOL_IP, libc::IP_RECVERR, &error);
        assert_eq!(Messages { bytes: &bytes }.key(), None);
    }
}
