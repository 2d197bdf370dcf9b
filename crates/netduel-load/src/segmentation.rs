//! Tests whether an interface segments GSO buffers into packets: sends some and reads its packet counter. Feature flags do not show it:
//! a veth has the flag and passes buffers on unsegmented.
use std::net::UdpSocket;

use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, udp_segment};

use crate::datagram;

/// Buffers to send: other traffic of the host could be mistaken for the segments of one.
const TRIES: usize = 3;
/// Datagrams per buffer.
const DATAGRAMS: usize = 48;
/// Packets of other programs that may leave meanwhile.
const FOREIGN_PACKETS_MAX: u64 = 8;
/// How long the counter may lag, nanoseconds. virtio-net counts a packet when the hypervisor has taken it.
const LAG_NS: u64 = 50_000_000;

/// Sends GSO buffers on a flow, whose receiver ignores them, and returns whether the interface counted each datagram as a packet.
/// `sent` reads how many packets the interface has sent.
pub(crate) fn is_segmented(
    socket: &UdpSocket,
    magic: u64,
    size: usize,
    mut sent: impl FnMut() -> Option<u64>,
) -> bool {
    if udp_segment::send_in_segments(socket, size).is_err() {
        return false;
    }
    let mut buffer = vec![0; size * DATAGRAMS];
    for payload in buffer.chunks_exact_mut(size) {
        datagram::write_number(payload, magic, 0);
    }
    let mut is_counted = || {
        let before = sent()?;
        socket::send(socket, &buffer, Waiting::Block).ok()?;
        let deadline = clock::monotonic_ns() + LAG_NS;
        loop {
            let packets = sent()?.saturating_sub(before);
            if packets >= DATAGRAMS as u64 || clock::monotonic_ns() > deadline {
                return Some((DATAGRAMS as u64..=DATAGRAMS as u64 + FOREIGN_PACKETS_MAX).contains(&packets));
            }
        }
    };
    let is_segmented = (0..TRIES).all(|_| is_counted() == Some(true));
    // With a segment size of 0 the socket sends each buffer as one datagram.
    let reset = udp_segment::send_in_segments(socket, 0);
    is_segmented && reset.is_ok()
}
