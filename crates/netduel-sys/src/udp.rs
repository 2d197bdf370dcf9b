//! UDP sockets: batches (sendmmsg(2), recvmmsg(2)), buffers, drops at the socket.
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};

use crate::socket_option;
use crate::udp_segment::{self, CONTROL_LEN};

/// Socket option of the socket's memory figures (include/uapi/asm-generic/socket.h), Linux 4.12 and later.
const SO_MEMINFO: i32 = 55;

/// Reports drops of the host when sending (`IP_RECVERR`, ip(7)): without it a drop at a full queue of the interface is
/// not reported, and the datagram appears to be sent.
///
/// # Errors
/// None on an open socket of this kind.
pub fn report_send_errors(socket: &UdpSocket) -> io::Result<()> {
    let (level, name) = if socket.local_addr()?.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_RECVERR)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    };
    socket_option::set_int(socket, level, name, 1)
}

/// Received datagrams that the socket dropped since it was opened, nearly always because its buffer was full
/// (`SK_MEMINFO_DROPS`).
///
/// # Errors
/// `ENOPROTOOPT` on kernels before 4.12.
pub fn drops(socket: &UdpSocket) -> io::Result<u32> {
    let mut bytes = [0; 64];
    let length = socket_option::read_bytes(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut bytes)?;
    let start = libc::SK_MEMINFO_DROPS as usize * size_of::<u32>();
    let field = bytes[..length].get(start..start + size_of::<u32>());
    field
        .and_then(|field| field.try_into().ok())
        .map(u32::from_ne_bytes)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOPROTOOPT))
}

/// The MTU of the path to the peer of a connected socket, as far as the host knows it, bytes with IP and UDP headers
/// (`IP_MTU`, ip(7)).
///
/// # Errors
/// `ENOTCONN` when the socket is not connected.
pub fn path_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let (level, name) = if socket.local_addr()?.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_MTU)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU)
    };
    let mtu = socket_option::read_int(socket, level, name)?;
    Ok(mtu.unsigned_abs())
}

/// The core on which the kernel last processed a packet for this socket (`SO_INCOMING_CPU`, socket(7)): the core that the NIC's
/// queues or RPS selected for the flow. Absent before the first packet.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 3.19.
pub fn incoming_core(socket: &UdpSocket) -> io::Result<Option<u16>> {
    let core = socket_option::read_int(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU)?;
    Ok(u16::try_from(core).ok())
}

/// Memory for a batch of datagrams of one system call.
struct Batch {
    payload: Vec<u8>,
    size: usize,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    /// Memory for control messages, [`CONTROL_LEN`] for each datagram; empty when none are requested.
    control: Vec<u8>,
}

impl Batch {
    fn new(count: usize, size: usize) -> Self {
        assert!(count > 0 && size > 0, "a batch has room for a datagram");
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: `mmsghdr` is integers and pointers, for all of which zero is a valid value.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            payload: vec![0; count * size],
            size,
            vectors: vec![empty; count],
            headers: vec![header; count],
            control: Vec::new(),
        }
    }

    /// Sets the pointers of the headers to the payload. Done before each call, so that no pointer outlives its borrow.
    fn point(&mut self) {
        let parts = self.payload.chunks_exact_mut(self.size);
        for ((part, vector), header) in parts.zip(&mut self.vectors).zip(&mut self.headers) {
            *vector = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_flags = 0;
            header.msg_len = 0;
        }
        for (part, header) in self.control.chunks_exact_mut(CONTROL_LEN).zip(&mut self.headers) {
            header.msg_hdr.msg_control = part.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL_LEN as _;
        }
    }
}

/// Datagrams of one size, sent together on a connected socket.
pub struct SendBatch(Batch);

impl SendBatch {
    /// For `count` datagrams of `size` bytes.
    pub fn new(count: usize, size: usize) -> Self {
        Self(Batch::new(count, size))
    }

    /// Capacity, datagrams.
    pub fn capacity(&self) -> usize {
        self.0.headers.len()
    }

    /// The payload of datagram `index`, to be written before sending.
    #[inline]
    pub fn payload_mut(&mut self, index: usize) -> &mut [u8] {
        let size = self.0.size;
        &mut self.0.payload[index * size..(index + 1) * size]
    }

    /// Sends the first `count` datagrams and returns the number of accepted ones. Blocks when the send buffer is full.
    ///
    /// # Errors
    /// Errors of sendmmsg(2) of the first datagram; that of a later one is returned by the next call.
    #[inline]
    pub fn send(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        assert!(count <= self.capacity(), "no more is sent than there is room for");
        self.0.point();
        let descriptor = socket.as_fd().as_raw_fd();
        // SAFETY: `point` made the first `count` headers point to vectors and payload of this batch, which is borrowed
        // for the call and does not move; the kernel reads payload and writes `msg_len` only.
        let result = unsafe {
            libc::sendmmsg(descriptor, self.0.headers.as_mut_ptr(), count as u32, libc::MSG_NOSIGNAL)
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

/// Memory for datagrams that are received together.
pub struct ReceiveBatch(Batch);

impl ReceiveBatch {
    /// For `count` datagrams of up to `size` bytes.
    pub fn new(count: usize, size: usize) -> Self {
        Self(Batch::new(count, size))
    }

    /// For `count` buffers of merged datagrams, see [`udp_segment::receive_merged`].
    pub fn merged(count: usize) -> Self {
        let mut batch = Batch::new(count, udp_segment::BUFFER_MAX);
        batch.control = vec![0; count * CONTROL_LEN];
        Self(batch)
    }

    /// Waits for a datagram and receives all available ones, up to the capacity; returns their number.
    ///
    /// # Errors
    /// Errors of recvmmsg(2); `EAGAIN` after the socket's receive timeout.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.take(socket, libc::MSG_WAITFORONE)
    }

    /// Receives all available datagrams, up to the capacity; returns their number.
    ///
    /// # Errors
    /// Errors of recvmmsg(2); `EAGAIN` when there is none.
    #[inline]
    pub fn receive_waiting(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.take(socket, libc::MSG_DONTWAIT)
    }

    #[inline]
    fn take(&mut self, socket: &UdpSocket, waiting: i32) -> io::Result<usize> {
        self.0.point();
        let descriptor = socket.as_fd().as_raw_fd();
        let count = self.0.headers.len() as u32;
        let flags = waiting | libc::MSG_TRUNC;
        // SAFETY: `point` made all headers point to vectors, payload and control of this batch, which is borrowed
        // exclusively for the call and does not move; the kernel writes no more than the lengths beside them. No timeout is
        // passed.
        let result = unsafe {
            libc::recvmmsg(descriptor, self.0.headers.as_mut_ptr(), count, flags as _, std::ptr::null_mut())
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Datagram `index` of the last [`Self::receive`]: its payload, perhaps truncated, and its length on the wire.
    #[inline]
    pub fn datagram(&self, index: usize) -> (&[u8], usize) {
        let length = self.0.headers[index].msg_len as usize;
        let start = index * self.0.size;
        (&self.0.payload[start..start + length.min(self.0.size)], length)
    }

    /// The datagrams of buffer `index` of the last [`Self::receive`], each as from [`Self::datagram`]: one, unless the
    /// kernel merged several.
    #[inline]
    pub fn datagrams(&self, index: usize) -> Datagrams<'_> {
        let (rest, length) = self.datagram(index);
        let control = self.0.control.get(index * CONTROL_LEN..).unwrap_or_default();
        let filled = if control.is_empty() { 0 } else { self.0.headers[index].msg_hdr.msg_controllen };
        let size = control.get(..filled).and_then(udp_segment::merged_size);
        // Without merging it is one datagram, even when it is empty or truncated.
        match size.filter(|size| *size < length && rest.len() == length) {
            Some(size) => Datagrams { rest: Some(rest), size, length: None },
            None => Datagrams { rest: Some(rest), size: rest.len(), length: Some(length) },
        }
    }
}

/// The datagrams of one buffer, see [`ReceiveBatch::datagrams`].
pub struct Datagrams<'a> {
    rest: Option<&'a [u8]>,
    /// Bytes of each except the last, which may be shorter.
    size: usize,
    /// The length of the only one, which may be longer than the buffer.
    length: Option<usize>,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = (&'a [u8], usize);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let (payload, after) = rest.split_at(self.size.min(rest.len()));
        if !after.is_empty() {
            self.rest = Some(after);
        }
        Some((payload, self.length.unwrap_or(payload.len())))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pair() -> (UdpSocket, UdpSocket) {
        let left = UdpSocket::bind("127.0.0.1:0").unwrap();
        let right = UdpSocket::bind("127.0.0.1:0").unwrap();
        left.connect(right.local_addr().unwrap()).unwrap();
        right.connect(left.local_addr().unwrap()).unwrap();
        (left, right)
    }

    #[test]
    fn batch_arrives_in_order_and_complete() {
        let (left, right) = pair();
        let mut out = SendBatch::new(4, 100);
        for index in 0..4 {
            out.payload_mut(index).fill(index as u8 + 1);
        }
        assert_eq!(out.send(&left, 3).unwrap(), 3);
        let mut batch = ReceiveBatch::new(8, 100);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            for index in 0..batch.receive(&right).unwrap() {
                let (payload, length) = batch.datagram(index);
                assert_eq!((payload.len(), length), (100, 100));
                seen.push(payload[99]);
            }
        }
        assert_eq!(seen, [1, 2, 3]);
    }

    #[test]
    fn datagram_longer_than_the_buffer_reports_its_length() {
        let (left, right) = pair();
        left.send(&[9; 300]).unwrap();
        let mut batch = ReceiveBatch::new(2, 100);
        assert_eq!(batch.receive(&right).unwrap(), 1);
        let (payload, length) = batch.datagram(0);
        assert_eq!((payload, length), (&[9; 100][..], 300));
    }

    #[test]
    fn empty_datagram_is_a_datagram() {
        let (left, right) = pair();
        left.send(&[]).unwrap();
        let mut batch = ReceiveBatch::new(2, 100);
        assert_eq!(batch.receive_waiting(&right).unwrap(), 1);
        assert_eq!(batch.datagrams(0).collect::<Vec<_>>(), [(&[][..], 0)]);
        assert_eq!(batch.receive_waiting(&right).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn mtu_and_core_of_a_connected_socket_are_known() {
        let (left, right) = pair();
        assert!(path_mtu(&left).unwrap() >= 1500);
        left.send(&[1]).unwrap();
        ReceiveBatch::new(1, 10).receive(&right).unwrap();
        assert!(incoming_core(&right).unwrap().is_some());
        assert!(path_mtu(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn datagrams_beyond_the_receive_buffer_count_as_dropped() {
        let (left, right) = pair();
        assert_eq!(drops(&right).unwrap(), 0);
        let (_, got) = crate::socket::set_buffers(&right, 4096).unwrap();
        assert!(got < 100_000);
        for _ in 0..1000 {
            left.send(&[1; 1000]).unwrap();
        }
        right.set_nonblocking(true).unwrap();
        let mut arrived = 0;
        let mut batch = ReceiveBatch::new(64, 1000);
        while let Ok(count) = batch.receive(&right) {
            arrived += count as u32;
        }
        assert_eq!(arrived + drops(&right).unwrap(), 1000);
        assert!(arrived > 0 && arrived < 1000);
    }
}
