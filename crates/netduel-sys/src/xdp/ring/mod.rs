//! The two sides of a ring that is shared with the kernel: one side produces entries, the other consumes them, each by a counter of
//! its own. Counters run freely and wrap at 2^32; an entry's place is its number modulo the ring's size, a power of two.
use std::sync::atomic::Ordering;

use super::ring_memory::{Counter as _, RingMemory};

/// What the kernel sets in a ring's flags when it waits to be woken by a system call (`XDP_RING_NEED_WAKEUP`).
const NEED_WAKEUP: u32 = libc::XDP_RING_NEED_WAKEUP;

/// A ring that this process fills: frames to be sent, or free frames for the kernel to receive into.
#[derive(Debug)]
pub(super) struct Producer<M> {
    ring: M,
    /// The next number that is written.
    next: u32,
    /// Up to here the kernel's side is known to be free.
    free_until: u32,
}

/// A ring that the kernel fills: frames that arrived, or frames that were sent.
#[derive(Debug)]
pub(super) struct Consumer<M> {
    ring: M,
    /// The next number that is read.
    next: u32,
}

impl<M: RingMemory> Producer<M> {
    /// The producing side of a ring; it goes on where the ring's counters stand.
    pub fn new(ring: M) -> Self {
        let next = ring.producer().load(Ordering::Relaxed);
        // Acquire: as in `has_room`.
        let free_until = ring.consumer().load(Ordering::Acquire).wrapping_add(ring.size());
        Self { ring, next, free_until }
    }

    /// Whether there is room for one more.
    pub fn has_room(&mut self) -> bool {
        if self.next == self.free_until {
            // Acquire: what the kernel read of an entry it has read before it counted it.
            let consumed = self.ring.consumer().load(Ordering::Acquire);
            self.free_until = consumed.wrapping_add(self.ring.size());
        }
        self.next != self.free_until
    }

    /// Writes an entry; the kernel sees it after [`Producer::submit`]. False when there is no room.
    pub fn put(&mut self, entry: M::Entry) -> bool {
        if !self.has_room() {
            return false;
        }
        // SAFETY: the kernel has consumed the entry of this place, and leaves it until the next one is submitted.
        unsafe { self.ring.write(self.next, entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Hands all that was put to the kernel.
    pub fn submit(&mut self) {
        // Release: the entries, and the frames that they name, are written before they are counted.
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel waits for a system call.
    pub fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

impl<M: RingMemory> Consumer<M> {
    /// The consuming side of a ring; it goes on where the ring's counters stand.
    pub fn new(ring: M) -> Self {
        let next = ring.consumer().load(Ordering::Relaxed);
        Self { ring, next }
    }

    /// Takes what there is, `most` at most, one after the other, and gives the places back. Returns how many there were.
    pub fn take(&mut self, most: u32, mut each: impl FnMut(M::Entry)) -> u32 {
        // Acquire: the entries, and the frames that they name, are written before the kernel counts them.
        let produced = self.ring.producer().load(Ordering::Acquire);
        let count = produced.wrapping_sub(self.next).min(most).min(self.ring.size());
        for _ in 0..count {
            // SAFETY: the entry was written by the kernel, which leaves its place until it is given back.
            each(unsafe { self.ring.read(self.next) });
            self.next = self.next.wrapping_add(1);
        }
        if count > 0 {
            // Release: the entries are read before their places are given back.
            self.ring.consumer().store(self.next, Ordering::Release);
        }
        count
    }
}

#[cfg(test)]
mod tests;
