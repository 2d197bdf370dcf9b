//! One request that receives from a connection to its end.
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::{CANCEL_NS, CANCEL_STEP, bytes_of, cancel, new_ring, put, wait};
use crate::clock;
use crate::pages::PAGE;

/// Number of buffers of a receiver (a power of two), and bytes of each.
const BUFFERS: u16 = 16;
const BUFFER_BYTES: usize = 64 * 1024;
const GROUP: u16 = 0;

/// Pages that the kernel writes; they are never read.
struct Memory {
    start: *mut std::ffi::c_void,
    length: usize,
}

// SAFETY: the pointer is to memory that this value alone frees and that no reference is made to for longer than a call.
unsafe impl Send for Memory {}

impl Memory {
    fn new(length: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags)? };
        Ok(Self { start, length })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; its owner frees it only when the kernel is done with it.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

/// Receives from one socket.
pub struct Receiver {
    ring: IoUring,
    /// The ring of buffers in the first page and the buffers after it; `None` only when they were leaked because the kernel may use them.
    memory: Option<Memory>,
    tail: u16,
    pub(super) is_armed: bool,
    is_ended: bool,
    failure: Option<io::Error>,
}

impl Receiver {
    /// A receiver with 1 MiB of buffers.
    ///
    /// # Errors
    /// As [`probe`](super::probe), or `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        let memory = Memory::new(PAGE + usize::from(BUFFERS) * BUFFER_BYTES)?;
        let mut receiver = Self {
            ring: new_ring(2)?,
            memory: None,
            tail: 0,
            is_armed: false,
            is_ended: false,
            failure: None,
        };
        let address = memory.start as u64;
        // SAFETY: a page of ours that is aligned to pages and has room for the entries; it is freed after the ring is closed.
        unsafe { receiver.ring.submitter().register_buf_ring_with_flags(address, BUFFERS, GROUP, 0)? };
        receiver.memory = Some(memory);
        for buffer in 0..BUFFERS {
            receiver.give(buffer);
        }
        Ok(receiver)
    }

    /// Passes a buffer to the kernel.
    fn give(&mut self, buffer: u16) {
        let Some(memory) = &self.memory else { return };
        let entries = memory.start.cast::<BufRingEntry>();
        let place = entries.wrapping_add(usize::from(self.tail % BUFFERS));
        // SAFETY: the place is within the first page of our mapping, and the kernel reads it only once the tail is beyond it.
        let entry = unsafe { &mut *place };
        entry.set_addr(memory.start as u64 + (PAGE + usize::from(buffer) * BUFFER_BYTES) as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry is in our mapping, which is zeroed.
        let tail = unsafe { BufRingEntry::tail(entries) };
        // SAFETY: the tail is aligned, lives as long as the mapping, and is read by the kernel only.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Receives the available bytes, after a wait of at most `timeout`; 0 at the end of the stream.
    ///
    /// # Errors
    /// Errors of recv(2); `EAGAIN` after the timeout.
    #[inline]
    pub fn receive(&mut self, stream: &TcpStream, timeout: Duration) -> io::Result<usize> {
        let mut count = self.reap();
        if count == 0 && !self.is_ended && self.failure.is_none() {
            if !self.is_armed {
                let request = opcode::RecvMulti::new(Fd(stream.as_raw_fd()), GROUP).build();
                put(&mut self.ring, &request)?;
                self.is_armed = true;
            }
            wait(&self.ring, timeout)?;
            count = self.reap();
        }
        match (count, self.is_ended) {
            (0, false) => Err(self.failure.take().unwrap_or_else(|| io::ErrorKind::WouldBlock.into())),
            (count, _) => Ok(count),
        }
    }

    /// Reads all completions and returns their buffers to the kernel; returns the number of bytes.
    fn reap(&mut self) -> usize {
        let mut count = 0;
        while let Some(completion) = self.next() {
            if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
                self.give(buffer);
            }
            self.is_armed = cqueue::more(completion.flags());
            match bytes_of(completion.result()) {
                Ok(0) => self.is_ended = true,
                Ok(bytes) => count += bytes,
                // All buffers were full and have been returned meanwhile, or the request was cancelled.
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::ENOBUFS | libc::ECANCELED | libc::EAGAIN | libc::EINTR)
                    ) => {}
                Err(error) => self.failure = Some(error),
            }
        }
        count
    }

    fn next(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// Cancels the request, and returns the bytes that arrived meanwhile.
    ///
    /// # Errors
    /// Errors of `io_uring_enter(2)`; `TimedOut` when the request does not end within 1 s.
    pub fn finish(&mut self) -> io::Result<usize> {
        let until = clock::monotonic_ns() + CANCEL_NS;
        let mut count = self.reap();
        while self.is_armed {
            if clock::monotonic_ns() >= until {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            self.ring.submit()?;
            cancel(&self.ring)?;
            count += self.reap();
            if self.is_armed {
                wait(&self.ring, CANCEL_STEP)?;
                count += self.reap();
            }
        }
        Ok(count)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let is_done = self.finish().is_ok() && self.ring.submitter().unregister_buf_ring(GROUP).is_ok();
        if !is_done {
            // Leaked: it must not be unmapped while the kernel may write to it.
            std::mem::forget(self.memory.take());
        }
    }
}
