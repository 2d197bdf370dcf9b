//! UDP segmentation offload (udp(7)): one buffer is sent as many datagrams (`UDP_SEGMENT`, Linux 4.18), and many datagrams of a flow
//! are received as one buffer (`UDP_GRO`, Linux 5.0). The offload features decide whether the kernel or the NIC segments.
use std::io;
use std::net::UdpSocket;

use crate::socket_option;

/// Maximum number of datagrams of a buffer: `UDP_MAX_SEGMENTS` in include/linux/udp.h since Linux 6.9.
const SEGMENTS_MAX: usize = 128;
/// The same of older kernels, which return `EINVAL` for more.
pub const SEGMENTS_OLD: usize = 64;

/// Maximum length of a buffer, bytes: an IPv4 packet of 65535 bytes less its headers of 20 and 8 bytes.
pub const BUFFER_MAX: usize = 65_507;

/// Maximum number of datagrams of `size` bytes in a buffer, with new kernels.
pub fn segments(size: usize) -> usize {
    (BUFFER_MAX / size.max(1)).clamp(1, SEGMENTS_MAX)
}

/// Segments every buffer sent on the socket into datagrams of `size` bytes; the last may be shorter.
///
/// # Errors
/// `EINVAL` when `size` is larger than a datagram can be; `ENOPROTOOPT` before Linux 4.18. The send call returns errors of the
/// path: `EMSGSIZE` (older kernels: `EINVAL`) when a datagram exceeds the MTU, `EIO` when an
/// IPsec policy applies or, in older kernels, the device computes no checksums.
pub fn send_in_segments(socket: &UdpSocket, size: usize) -> io::Result<()> {
    let size = u16::try_from(size).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    socket_option::set_int(socket, libc::SOL_UDP, libc::UDP_SEGMENT, i32::from(size))
}

/// Permits the kernel to deliver several datagrams of one size as one buffer.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.0.
pub fn receive_merged(socket: &UdpSocket) -> io::Result<()> {
    socket_option::set_int(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Bytes for the control message with the size of merged datagrams, and for one more.
pub(crate) const CONTROL_LEN: usize = 64;

/// The size of merged datagrams from control messages (`struct cmsghdr`, cmsg(3)); absent when a buffer is one datagram.
/// Pure: a truncated message ends the iteration.
#[inline]
pub(crate) fn merged_size(control: &[u8]) -> Option<usize> {
    const WORD: usize = size_of::<usize>();
    const HEADER: usize = WORD + 8;
    let mut rest = control;
    loop {
        let length = usize::from_ne_bytes(*rest.first_chunk()?);
        let number = |at: usize| Some(i32::from_ne_bytes(*rest.get(at..)?.first_chunk()?));
        if length < HEADER || length > rest.len() {
            return None;
        }
        if (number(WORD)?, number(WORD + 4)?) == (libc::SOL_UDP, libc::UDP_GRO) {
            return usize::try_from(number(HEADER)?).ok().filter(|size| *size > 0);
        }
        rest = rest.get(length.next_multiple_of(WORD)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{ReceiveBatch, tests::pair};

    fn message(level: i32, kind: i32, value: &[u8]) -> Vec<u8> {
        let mut bytes = (size_of::<usize>() + 8 + value.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    #[test]
    fn size_is_found_among_other_messages_and_absent_when_truncated() {
        let mut bytes = message(libc::SOL_SOCKET, 40, &[1, 2, 3]);
        bytes.extend(message(libc::SOL_UDP, libc::UDP_GRO, &1448_i32.to_ne_bytes()));
        assert_eq!(merged_size(&bytes), Some(1448));
        let needed = bytes.len() - size_of::<usize>() + 4;
        for cut in 0..needed {
            assert_eq!(merged_size(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(merged_size(&[0; CONTROL_LEN]), None);
        assert_eq!(merged_size(&message(libc::SOL_UDP, libc::UDP_GRO, &(-1_i32).to_ne_bytes())), None);
    }

    #[test]
    fn as_many_segments_fit_as_the_kernel_takes() {
        assert_eq!((segments(64), segments(1448), segments(1472)), (128, 45, 44));
        assert_eq!((segments(40_000), segments(BUFFER_MAX), segments(0)), (1, 1, 128));
    }

    #[test]
    fn gso_buffer_arrives_as_datagrams_or_coalesced() {
        for merged in [false, true] {
            let (left, right) = pair();
            send_in_segments(&left, 100).unwrap();
            if merged {
                receive_merged(&right).unwrap();
            }
            let mut out = vec![0; 64 * 100];
            for (index, part) in out.chunks_mut(100).enumerate() {
                part.fill(index as u8);
            }
            assert_eq!(left.send(&out).unwrap(), out.len());
            assert_eq!(left.send(&[99; 30]).unwrap(), 30);
            let mut batch = if merged { ReceiveBatch::merged(8) } else { ReceiveBatch::new(8, 100) };
            let (mut seen, mut buffers) = (Vec::new(), 0);
            while seen.len() < 65 {
                let taken = batch.receive(&right).unwrap();
                buffers += taken;
                for index in 0..taken {
                    seen.extend(batch.datagrams(index).map(|(payload, length)| (payload[0], length)));
                }
            }
            let mut expected: Vec<(u8, usize)> = (0..64).map(|index| (index, 100)).collect();
            expected.push((99, 30));
            assert_eq!((seen, buffers), (expected, if merged { 2 } else { 65 }), "merged: {merged}");
        }
    }

    #[test]
    fn too_long_segment_is_rejected() {
        let (left, _right) = pair();
        assert_eq!(send_in_segments(&left, 70_000).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        send_in_segments(&left, 10).unwrap();
        assert!(left.send(&vec![0; 10 * 2000]).is_err());
    }
}
