//! The two sides of a ring shared with the kernel: one side produces entries, the other consumes them, each with its own counter.
//! Counters wrap at 2^32; the slot of an entry is its number modulo the size of the ring, a power of two.
use std::sync::atomic::Ordering;

use super::ring_memory::{Counter as _, RingMemory};

/// The flag by which the kernel requests a wake-up by a system call (`XDP_RING_NEED_WAKEUP`).
const NEED_WAKEUP: u32 = libc::XDP_RING_NEED_WAKEUP;

/// A ring that this process fills: frames to send, or free frames for receiving.
#[derive(Debug)]
pub(super) struct Producer<M> {
    ring: M,
    /// Number of the next entry to write.
    next: u32,
    /// Entries before this number are known to fit.
    free_until: u32,
}

/// A ring that the kernel fills: received frames, or sent frames.
#[derive(Debug)]
pub(super) struct Consumer<M> {
    ring: M,
    /// Number of the next entry to read.
    next: u32,
}

impl<M: RingMemory> Producer<M> {
    /// The producing side of a ring; continues at the counters of the ring.
    pub fn new(ring: M) -> Self {
        let next = ring.producer().load(Ordering::Relaxed);
        // Acquire: as in `has_room`.
        let free_until = ring.consumer().load(Ordering::Acquire).wrapping_add(ring.size());
        Self { ring, next, free_until }
    }

    /// Whether the ring has a free slot.
    pub fn has_room(&mut self) -> bool {
        if self.next == self.free_until {
            // Acquire: the kernel reads an entry before it counts it as consumed.
            let consumed = self.ring.consumer().load(Ordering::Acquire);
            self.free_until = consumed.wrapping_add(self.ring.size());
        }
        self.next != self.free_until
    }

    /// Writes an entry; the kernel sees it after [`Producer::submit`]. False when the ring is full.
    pub fn put(&mut self, entry: M::Entry) -> bool {
        if !self.has_room() {
            return false;
        }
        // SAFETY: the kernel has consumed the entry of this place, and leaves it until the next one is submitted.
        unsafe { self.ring.write(self.next, entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Submits all written entries to the kernel.
    pub fn submit(&mut self) {
        // Release: the entries and their frames are written before they are counted.
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel waits for a system call.
    pub fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

impl<M: RingMemory> Consumer<M> {
    /// The consuming side of a ring; continues at the counters of the ring.
    pub fn new(ring: M) -> Self {
        let next = ring.consumer().load(Ordering::Relaxed);
        Self { ring, next }
    }

    /// Consumes the available entries, at most `most`, in order, and frees their slots. Returns their number.
    pub fn take(&mut self, most: u32, mut each: impl FnMut(M::Entry)) -> u32 {
        // Acquire: the kernel writes the entries and their frames before it counts them.
        let produced = self.ring.producer().load(Ordering::Acquire);
        let count = produced.wrapping_sub(self.next).min(most).min(self.ring.size());
        for _ in 0..count {
            // SAFETY: the entry was written by the kernel, which leaves its place until it is returned.
            each(unsafe { self.ring.read(self.next) });
            self.next = self.next.wrapping_add(1);
        }
        if count > 0 {
            // Release: the entries are read before their slots are freed.
            self.ring.consumer().store(self.next, Ordering::Release);
        }
        count
    }
}

#[cfg(test)]
mod tests;
