//! Datagrams that tell the receiver of a flow that no more comes.
use std::net::UdpSocket;

use netduel_sys::clock;
use netduel_sys::socket::{self, Waiting};

use crate::datagram::{self, MESSAGE_HEADER};

/// End markers: so many, because each may be lost; apart, because losses come in bursts. Each carries its number, from 1: a receiver
/// that has the last one knows that its peer sends nothing more to a socket that may be closed by then.
pub(crate) const END_MARKERS: u64 = 5;
const MARKER_GAP_NS: u64 = 2_000_000;

/// Tells the peer of each flow that no more comes, by the flow's end magic. A failure means that the peer is gone or the path is
/// broken; its own deadline or `finish` ends it then.
pub(crate) fn send<'a, F: Iterator<Item = (&'a UdpSocket, u64)>>(flows: impl Fn() -> F) {
    let mut marker = [0; MESSAGE_HEADER];
    for number in 1..=END_MARKERS {
        if number > 1 {
            clock::sleep_until(clock::monotonic_ns() + MARKER_GAP_NS);
        }
        for (socket, end_magic) in flows() {
            datagram::write_number(&mut marker, end_magic, number);
            let _ = socket::send(socket, &marker, Waiting::Block);
        }
    }
}
