//! Whether an interface sees the datagrams of a joined buffer as packets: found out by sending some and reading its counter. Offered
//! features do not tell: a veth says that it cuts and hands buffers over whole.
use std::net::UdpSocket;

use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, udp_segment};

use crate::datagram;

/// Buffers that are tried: other traffic of the host could pass for the datagrams of one.
const TRIES: usize = 3;
/// Datagrams of each.
const DATAGRAMS: usize = 48;
/// Packets of others that may leave meanwhile.
const OTHERS: u64 = 8;
/// How long the counter may lag, nanoseconds.
const LAG_NS: u64 = 5_000_000;

/// Sends joined datagrams on a flow, which its receiver passes over, and tells whether the interface counted each as a packet. `sent`
/// reads how many packets it has sent.
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
                return Some((DATAGRAMS as u64..=DATAGRAMS as u64 + OTHERS).contains(&packets));
            }
        }
    };
    let is_segmented = (0..TRIES).all(|_| is_counted() == Some(true));
    // A socket that was not told the size of segments sends each buffer as a datagram.
    let reset = udp_segment::send_in_segments(socket, 0);
    is_segmented && reset.is_ok()
}
