//! A ring that is shared with the kernel: one side produces entries, the other consumes them, each by a counter of its own.
//! Counters run freely and wrap at 2^32; an entry's place is its number modulo the ring's size, a power of two.
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// What the kernel sets in a ring's flags when it waits to be woken by a system call (`XDP_RING_NEED_WAKEUP`).
const NEED_WAKEUP: u32 = libc::XDP_RING_NEED_WAKEUP;

/// The mapping of a ring.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    length: usize,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    size: u32,
}

impl Mapping {
    fn new<T>(
        socket: BorrowedFd<'_>,
        place: u64,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let length = offsets.desc as usize + size as usize * size_of::<T>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, socket, place)? };
        let start = NonNull::new(start).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let (producer, consumer) = (offsets.producer as usize, offsets.consumer as usize);
        let mapping = Self {
            start,
            length,
            producer,
            consumer,
            flags: offsets.flags as usize,
            entries: offsets.desc as usize,
            size,
        };
        for at in [mapping.producer, mapping.consumer, mapping.flags] {
            assert!(at + 4 <= length && at.is_multiple_of(4), "the kernel's offsets lie within its ring");
        }
        assert!(mapping.entries.is_multiple_of(align_of::<T>()), "the kernel aligns its entries");
        Ok(mapping)
    }

    fn counter(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `at` is one of the three offsets that were checked against the mapping when it was made.
        let place = unsafe { self.start.as_ptr().cast::<u8>().add(at) };
        // SAFETY: aligned as checked then, valid as long as `self`, and both sides of the ring use it atomically.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    fn entry<T>(&self, number: u32) -> *mut T {
        let index = (number & (self.size - 1)) as usize;
        // SAFETY: the entries begin within the mapping, which was made long enough for `size` of this type.
        let first = unsafe { self.start.as_ptr().cast::<u8>().add(self.entries) };
        // SAFETY: the index is below `size`.
        unsafe { first.cast::<T>().add(index) }
    }

    fn needs_wakeup(&self) -> bool {
        self.counter(self.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

/// A ring that this process fills: frames to be sent, or frames for what arrives.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Mapping,
    /// The next number that is written.
    next: u32,
    /// Up to here the kernel's side is known to be free.
    free_until: u32,
    entry: PhantomData<T>,
}

/// A ring that the kernel fills: what arrived, or frames that were sent.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Mapping,
    next: u32,
    entry: PhantomData<T>,
}

// SAFETY: a ring's mapping belongs to one value, whose methods that write take `&mut self`.
unsafe impl<T: Send> Send for Producer<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T: Copy> Producer<T> {
    pub fn map(
        socket: BorrowedFd<'_>,
        place: u64,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let ring = Mapping::new::<T>(socket, place, offsets, size)?;
        Ok(Self { ring, next: 0, free_until: size, entry: PhantomData })
    }

    /// Whether there is room for one more.
    pub fn has_room(&mut self) -> bool {
        if self.next == self.free_until {
            // Acquire: what the kernel read of an entry it has read before it counted it.
            let consumed = self.ring.counter(self.ring.consumer).load(Ordering::Acquire);
            self.free_until = consumed.wrapping_add(self.ring.size);
        }
        self.next != self.free_until
    }

    /// Writes an entry; the kernel sees it after [`Producer::submit`]. False when there is no room.
    pub fn put(&mut self, entry: T) -> bool {
        if !self.has_room() {
            return false;
        }
        // SAFETY: the place is within the ring, and not the kernel's until it is submitted.
        unsafe { self.ring.entry::<T>(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Hands all that was put to the kernel.
    pub fn submit(&mut self) {
        // Release: the entries, and the frames that they name, are written before they are counted.
        self.ring.counter(self.ring.producer).store(self.next, Ordering::Release);
    }

    /// Whether the kernel waits for a system call.
    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

impl<T: Copy> Consumer<T> {
    pub fn map(
        socket: BorrowedFd<'_>,
        place: u64,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let ring = Mapping::new::<T>(socket, place, offsets, size)?;
        Ok(Self { ring, next: 0, entry: PhantomData })
    }

    /// Takes what there is, `most` at most, one after the other, and gives the places back. Returns how many there were.
    pub fn take(&mut self, most: u32, mut each: impl FnMut(T)) -> u32 {
        // Acquire: the entries, and the frames that they name, are written before the kernel counts them.
        let produced = self.ring.counter(self.ring.producer).load(Ordering::Acquire);
        let count = produced.wrapping_sub(self.next).min(most).min(self.ring.size);
        for _ in 0..count {
            // SAFETY: the place is within the ring and was written by the kernel, which leaves it until it is given back.
            each(unsafe { self.ring.entry::<T>(self.next).read() });
            self.next = self.next.wrapping_add(1);
        }
        if count > 0 {
            self.ring.counter(self.ring.consumer).store(self.next, Ordering::Release);
        }
        count
    }
}
