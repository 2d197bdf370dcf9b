//! Tests whether an interface segments GSO buffers into packets: sends some and reads its packet counter. Feature flags do not show it:
//! a veth has the flag and passes buffers on unsegmented.
use std::net::UdpSocket;

use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, udp_segment};

use crate::datagram;

/// Datagrams of the largest buffer, at most and at least. Fewer could be packets of other programs.
const DATAGRAMS_MAX: usize = 48;
const DATAGRAMS_MIN: usize = 4;
/// One of so many datagrams: as many packets of other programs may leave while a buffer is counted.
const FOREIGN_SHARE: u64 = 6;
/// Time between two readings of the counter, nanoseconds.
const GAP_NS: u64 = 5_000_000;
/// How long the counter may take to show the first packet, nanoseconds: some devices write their counters once a second, and virtio-net
/// counts a packet when the hypervisor has taken it.
const FIRST_PACKET_NS: u64 = 1_000_000_000;
/// How long the other packets of a buffer may come after the first, nanoseconds.
const LAG_NS: u64 = 50_000_000;

/// Sends GSO buffers on a flow, whose receiver ignores them, and returns whether the interface counted each datagram as a packet.
/// `sent` reads how many packets the interface has sent.
pub(crate) fn is_segmented(
    socket: &UdpSocket,
    magic: u64,
    size: usize,
    mut sent: impl FnMut() -> Option<u64>,
) -> bool {
    let most = udp_segment::segments(size).min(DATAGRAMS_MAX);
    if most < DATAGRAMS_MIN || udp_segment::send_in_segments(socket, size).is_err() {
        return false;
    }
    // Packets of other programs could look like the segments of one buffer, but not like those of each of several lengths.
    let is_segmented = [most, most / 2, most * 3 / 4].into_iter().all(|datagrams| {
        let mut buffer = vec![0; size * datagrams];
        for payload in buffer.chunks_exact_mut(size) {
            datagram::write_number(payload, magic, 0);
        }
        is_counted(socket, &buffer, datagrams as u64, &mut sent) == Some(true)
    });
    // With a segment size of 0 the socket sends each buffer as one datagram.
    let reset = udp_segment::send_in_segments(socket, 0);
    is_segmented && reset.is_ok()
}

/// Sends a buffer, and returns whether the counter rose by the number of its datagrams, and would not have risen without it; absent when the
/// buffer was not sent or the counter not read.
fn is_counted(
    socket: &UdpSocket,
    buffer: &[u8],
    datagrams: u64,
    mut sent: impl FnMut() -> Option<u64>,
) -> Option<bool> {
    let foreign_max = datagrams / FOREIGN_SHARE;
    let before = sent()?;
    let began_ns = clock::monotonic_ns();
    socket::send(socket, buffer, Waiting::Block).ok()?;
    let (mut is_first, mut deadline_ns) = (true, began_ns.saturating_add(FIRST_PACKET_NS));
    loop {
        // Before the reading: there is one after the deadline, however long this thread waited for a core.
        let now_ns = clock::monotonic_ns();
        let packets = sent()?.saturating_sub(before);
        if is_first && packets > 0 {
            (is_first, deadline_ns) = (false, clock::monotonic_ns().saturating_add(LAG_NS));
        }
        if packets >= datagrams || now_ns > deadline_ns {
            break;
        }
        clock::sleep_until(now_ns.saturating_add(GAP_NS));
    }
    // Packets of other programs go on, those of the buffer do not.
    clock::sleep_until(clock::monotonic_ns().saturating_add(GAP_NS));
    let after = sent()?;
    if !(datagrams..=datagrams + foreign_max).contains(&after.saturating_sub(before)) {
        return Some(false);
    }
    let now_ns = clock::monotonic_ns();
    let took_ns = now_ns.saturating_sub(began_ns).min(FIRST_PACKET_NS);
    clock::sleep_until(now_ns.saturating_add(took_ns));
    Some(sent()?.saturating_sub(after) <= foreign_max)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SIZE: usize = 18;

    /// The sender of a flow, and the counter of an interface that segments what it sends.
    fn flow() -> (UdpSocket, impl FnMut() -> u64) {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut arrived = 0;
        let counter = move || {
            while receiver.recv(&mut [0; SIZE]).is_ok() {
                arrived += 1;
            }
            arrived
        };
        (sender, counter)
    }

    #[test]
    fn datagrams_of_every_size_that_are_counted_as_packets_are_segments() {
        for size in [SIZE, 1472, 8972] {
            let (socket, mut counter) = flow();
            assert!(is_segmented(&socket, 7, size, || Some(counter())), "{size}");
        }
        let (socket, mut counter) = flow();
        assert!(!is_segmented(&socket, 7, 30_000, || Some(counter())), "two datagrams are too few");
    }

    #[test]
    fn first_packet_may_be_counted_late() {
        let (socket, mut counter) = flow();
        let mut due_ns = None;
        let sent = || {
            let arrived = counter();
            if arrived > 0 && due_ns.is_none() {
                due_ns = Some(clock::monotonic_ns() + 5 * LAG_NS);
            }
            let is_due = due_ns.is_some_and(|due_ns| clock::monotonic_ns() >= due_ns);
            Some(if is_due { arrived } else { 0 })
        };
        assert!(is_segmented(&socket, 7, SIZE, sent));
    }

    #[test]
    fn packets_of_other_programs_are_no_segments() {
        let began_ns = clock::monotonic_ns();
        for per_second in [900, 1_000, 2_000, 10_000, 100_000] {
            let (socket, mut counter) = flow();
            let sent = || {
                let buffers = u64::from(counter() > 0);
                Some(buffers + (clock::monotonic_ns() - began_ns) * per_second / 1_000_000_000)
            };
            assert!(!is_segmented(&socket, 7, SIZE, sent), "{per_second}");
        }
        // One more at each reading, however fast the readings follow each other.
        let (socket, _counter) = flow();
        let mut readings = 0;
        let sent = || {
            readings += 1;
            Some(readings)
        };
        assert!(!is_segmented(&socket, 7, SIZE, sent));
    }

    #[test]
    fn buffers_that_are_counted_as_one_packet_are_not_segmented() {
        let (socket, mut counter) = flow();
        assert!(!is_segmented(&socket, 7, SIZE, || Some(counter() / DATAGRAMS_MAX as u64)));
        assert!(!is_segmented(&socket, 7, SIZE, || None), "no counter");
        // What the test sends afterwards is one datagram.
        let mut arrived = [0; 2 * SIZE];
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(receiver.local_addr().unwrap()).unwrap();
        socket.send(&[1; 2 * SIZE]).unwrap();
        assert_eq!(receiver.recv(&mut arrived).unwrap(), 2 * SIZE);
    }
}
