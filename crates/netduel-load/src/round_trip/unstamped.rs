//! Round trips without time stamps: all hooks are empty.
use std::io;
use std::os::fd::BorrowedFd;

use netduel_model::stamps::StampReport;
use netduel_sys::socket::{self, Waiting};

use super::responder::RespondStamps;
use super::transport::{ReceiveStamps, Receiver, SendStamps};
use crate::datagram;
use crate::recorder::Trip;
use crate::worker::Worker;

/// No stamps.
pub(super) struct Unstamped;

impl SendStamps for Unstamped {
    #[inline]
    fn begin_stream(&mut self, _: u64, _: u64, _: &mut [u8]) {}

    #[inline]
    fn begin_datagram(&mut self, number: u64, _: u64) -> u64 {
        number
    }

    #[inline]
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], waiting: Waiting) -> io::Result<usize> {
        socket::send(socket, bytes, waiting)
    }

    #[inline]
    fn sent(&mut self) {}

    fn failed(&mut self, _: &io::Error) {}
}

impl Receiver for Unstamped {
    type Stamp = ();

    #[inline]
    fn receive(
        &self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        waiting: Waiting,
    ) -> io::Result<(usize, ())> {
        socket::receive(socket, buffer, waiting).map(|length| (length, ()))
    }
}

impl ReceiveStamps for Unstamped {
    const HEAD_BYTES: usize = 0;

    #[inline]
    fn sent_ns(&self, _: u64) -> Option<u64> {
        None
    }

    fn answered(&mut self, _: u64, _: u64, _: Trip, (): (), _: &[u8]) {}

    fn between(&mut self, _: BorrowedFd<'_>) {}

    fn begin(&mut self, _: &mut Worker) {}

    fn finish(self, _: BorrowedFd<'_>, _: &mut Worker) -> Option<StampReport> {
        None
    }
}

impl RespondStamps for Unstamped {
    #[inline]
    fn complete(&mut self, bytes: &[u8], partial: &mut usize, size: usize) -> usize {
        let count = *partial + bytes.len();
        *partial = count % size;
        count / size
    }

    #[inline]
    fn before_responses(&mut self, _: &mut [u8], _: usize, (): (), _: u64) {}

    #[inline]
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        socket::send(socket, bytes, Waiting::Block)
    }

    #[inline]
    fn after_responses(&mut self, _: &mut Worker, _: BorrowedFd<'_>) {}

    #[inline]
    fn respond(
        &mut self,
        socket: BorrowedFd<'_>,
        message: &mut [u8],
        response_magic: u64,
        (): (),
        _: u64,
    ) -> io::Result<usize> {
        datagram::write_number(message, response_magic, datagram::read_number(message).unwrap_or(0));
        socket::send(socket, message, Waiting::Block)
    }

    fn finish(self, _: &mut Worker, _: BorrowedFd<'_>) -> Option<StampReport> {
        None
    }
}
