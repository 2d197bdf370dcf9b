//! Several sends in flight over one connection.
use std::collections::BTreeSet;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};

use super::{CANCEL_NS, CANCEL_STEP, bytes_of, cancel, new_ring, put, wait};
use crate::clock;
use crate::pages::Pages;
use crate::zerocopy::Counts;

/// Sends in flight, at most: while the kernel processes some, the next are queued.
const DEPTH: u32 = 8;
/// Maximum number of accepted sends without notification: on a long path each notification arrives a round trip later.
const UNNOTIFIED_MAX: u64 = 256;
/// `IORING_SEND_ZC_REPORT_USAGE` and `IORING_NOTIF_USAGE_ZC_COPIED` (include/uapi/linux/io_uring.h).
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;
/// Maximum number of bytes of a request: the other bits of a [`Name`] are in use.
const LENGTH_MAX: u32 = (1 << 31) - 1;

/// The user data of a request, which its completion returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    number: u32,
    is_zero_copy: bool,
    /// Bytes, at most [`LENGTH_MAX`].
    length: u32,
}

impl Name {
    fn to_bits(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.is_zero_copy) << 31 | u64::from(self.length)
    }

    fn from_bits(bits: u64) -> Self {
        let low = (bits & u64::from(u32::MAX)) as u32;
        Self { number: (bits >> 32) as u32, is_zero_copy: low > LENGTH_MAX, length: low & LENGTH_MAX }
    }
}

/// Sends pages to one socket.
pub struct Sender {
    ring: IoUring,
    /// `None` only when they were leaked because the kernel may still read them.
    pages: Option<Pages>,
    /// Whether sends are zero-copy.
    is_zero_copy: bool,
    counts: Counts,
    /// Sends without a result, and their bytes.
    pub(super) in_flight: u32,
    pub(super) claimed: usize,
    /// Sends with an outstanding notification; of these the numbers of those that sent nothing, which do not count.
    unnotified: u64,
    void: BTreeSet<u32>,
    number: u32,
    /// Whether the kernel had no memory for further sends, and has sent no notification since.
    is_full: bool,
    failure: Option<io::Error>,
}

impl Sender {
    /// With up to `block` bytes per request.
    ///
    /// # Errors
    /// As [`probe`](super::probe), or `ENOMEM`.
    pub fn new(block: usize) -> io::Result<Self> {
        Self::with(block, true)
    }

    pub(super) fn with(block: usize, is_zero_copy: bool) -> io::Result<Self> {
        Ok(Self {
            ring: new_ring(DEPTH)?,
            pages: Some(Pages::with_pattern(block)?),
            is_zero_copy,
            counts: Counts::default(),
            in_flight: 0,
            claimed: 0,
            unnotified: 0,
            void: BTreeSet::new(),
            number: 0,
            is_full: false,
            failure: None,
        })
    }

    /// Keeps sends of up to `block` bytes each in flight, with at most `left` unaccepted bytes in total, and returns the number of bytes
    /// that the kernel accepted of these and of earlier sends. It waits for `timeout` at most.
    ///
    /// # Errors
    /// Errors of send(2) of one of them; `EAGAIN` after the timeout.
    #[inline]
    pub fn send(
        &mut self,
        stream: &TcpStream,
        (block, left): (usize, usize),
        timeout: Duration,
    ) -> io::Result<usize> {
        while self.in_flight < DEPTH
            && self.claimed < left
            && self.unnotified < UNNOTIFIED_MAX
            && !self.is_full
            && self.failure.is_none()
        {
            self.submit(stream, block.min(left - self.claimed))?;
        }
        let mut taken = self.reap();
        if taken == 0 && self.failure.is_none() {
            wait(&self.ring, timeout)?;
            taken = self.reap();
        } else {
            // Submits the queued requests now, without waiting for the next call.
            self.ring.submit()?;
        }
        match (taken, self.failure.take()) {
            (0, Some(error)) => Err(error),
            (0, None) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
            (taken, failure) => {
                self.failure = failure;
                Ok(taken)
            }
        }
    }

    fn submit(&mut self, stream: &TcpStream, length: usize) -> io::Result<()> {
        let bytes = self.pages.as_ref().map_or(&[][..], Pages::bytes);
        let length =
            u32::try_from(length.min(bytes.len())).map_or(LENGTH_MAX, |length| length.min(LENGTH_MAX));
        let (socket, address) = (Fd(stream.as_raw_fd()), bytes.as_ptr());
        let request = if self.is_zero_copy {
            let request = opcode::SendZc::new(socket, address, length).zc_flags(REPORT_USAGE);
            request.flags(libc::MSG_NOSIGNAL).build()
        } else {
            opcode::Send::new(socket, address, length).flags(libc::MSG_NOSIGNAL).build()
        };
        self.number = self.number.wrapping_add(1);
        let name = Name { number: self.number, is_zero_copy: self.is_zero_copy, length };
        put(&mut self.ring, &request.user_data(name.to_bits()))?;
        self.in_flight += 1;
        self.claimed += length as usize;
        Ok(())
    }

    /// Reads all completions; returns the number of accepted bytes.
    fn reap(&mut self) -> usize {
        let mut taken = 0;
        let Self {
            ring, counts, in_flight, claimed, unnotified, void, is_zero_copy, is_full, failure, ..
        } = self;
        for completion in ring.completion() {
            let (name, result) = (Name::from_bits(completion.user_data()), completion.result());
            if cqueue::notif(completion.flags()) {
                *unnotified -= 1;
                *is_full = false;
                if !void.remove(&name.number) {
                    counts.completions += 1;
                    counts.copied += u64::from(result.cast_unsigned() & COPIED != 0);
                }
                continue;
            }
            *in_flight -= 1;
            *claimed -= name.length as usize;
            let is_notified_later = cqueue::more(completion.flags());
            *unnotified += u64::from(is_notified_later);
            match bytes_of(result) {
                Ok(bytes) if bytes > 0 => {
                    taken += bytes;
                    counts.sends += u64::from(name.is_zero_copy);
                    continue;
                }
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::ECANCELED | libc::EAGAIN | libc::EINTR) => {}
                    // Linux before 6.1.2 does not report whether it copied.
                    Some(libc::EINVAL) if name.is_zero_copy && counts.sends == 0 => *is_zero_copy = false,
                    Some(libc::ENOMEM | libc::ENOBUFS) if *unnotified > u64::from(is_notified_later) => {
                        counts.deferred += 1;
                        *is_full = true;
                    }
                    _ => *failure = Some(error),
                },
            }
            if is_notified_later {
                void.insert(name.number);
            }
        }
        taken
    }

    /// Cancels all sends in flight, waits for their results, and returns the number of bytes that were accepted meanwhile.
    ///
    /// # Errors
    /// Errors of `io_uring_enter(2)`; `TimedOut` when a result does not arrive within 1 s.
    pub fn finish(&mut self) -> io::Result<usize> {
        let until = clock::monotonic_ns() + CANCEL_NS;
        let mut taken = self.reap();
        while self.in_flight > 0 {
            if clock::monotonic_ns() >= until {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            // Queued requests must be submitted before they can be cancelled.
            self.ring.submit()?;
            cancel(&self.ring)?;
            taken += self.reap();
            if self.in_flight > 0 {
                wait(&self.ring, CANCEL_STEP)?;
                taken += self.reap();
            }
        }
        Ok(taken)
    }

    /// Waits until all sends are notified, for `timeout` at most; false when some are not.
    ///
    /// # Errors
    /// Errors of `io_uring_enter(2)`.
    pub fn settle(&mut self, timeout: Duration) -> io::Result<bool> {
        self.reap();
        if self.unnotified > 0 {
            wait(&self.ring, timeout)?;
            self.reap();
        }
        Ok(self.unnotified == 0)
    }

    /// The counts so far; `None` where the kernel does not report copies (before Linux 6.1.2) and ordinary sends were used.
    pub fn counts(&self) -> Option<Counts> {
        self.is_zero_copy.then_some(self.counts)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.finish().is_err() {
            // Leaked: they must not be unmapped while the kernel may read them.
            std::mem::forget(self.pages.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_of_a_request_is_returned_unchanged() {
        for (number, is_zero_copy, length) in
            [(0, false, 0), (u32::MAX, true, LENGTH_MAX), (7, false, 262_144)]
        {
            let name = Name { number, is_zero_copy, length };
            assert_eq!(Name::from_bits(name.to_bits()), name);
        }
    }
}
