//! End markers: datagrams that signal the end of a flow to its receiver.
use std::net::UdpSocket;

use netduel_sys::clock;
use netduel_sys::socket::{self, Waiting};

use crate::datagram::{self, MESSAGE_HEADER};

/// End markers of a flow. Several, because each may be lost, and at intervals, because losses come in bursts. Each carries its number,
/// from 1: after the last one the sender sends nothing more, so the receiver may close its socket.
pub const END_MARKERS: u64 = 5;
const MARKER_GAP_NS: u64 = 2_000_000;

/// Sends the end markers of each flow. A failure means that the peer is gone or the path is broken; a deadline or `finish` ends the
/// peer then.
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
