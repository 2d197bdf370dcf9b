//! Socket calls with or without a time stamp: recvmsg(2) takes 1 us longer than recv(2) after a wake-up.
use std::io;
use std::os::fd::BorrowedFd;

use netduel_sys::socket::{self, Waiting};
use netduel_sys::timestamping::{self, Stamp};

use crate::round_trip::transport::Receiver;

/// An end that receives time stamps.
pub(super) trait StampedReceiver {
    /// Whether the next call may receive a stamped message.
    fn may_be_stamped(&self) -> bool;
}

impl<S: StampedReceiver> Receiver for S {
    type Stamp = Stamp;

    /// The stamp is empty when no stamped message may arrive.
    #[inline]
    fn receive(
        &self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        waiting: Waiting,
    ) -> io::Result<(usize, Stamp)> {
        if self.may_be_stamped() {
            timestamping::receive(socket, buffer, waiting)
        } else {
            socket::receive(socket, buffer, waiting).map(|length| (length, Stamp::default()))
        }
    }
}

/// Sends, with a transmit stamp when `is_stamped`.
#[inline]
pub(super) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    waiting: Waiting,
    is_stamped: bool,
) -> io::Result<usize> {
    if is_stamped { timestamping::send(socket, bytes, waiting) } else { socket::send(socket, bytes, waiting) }
}
