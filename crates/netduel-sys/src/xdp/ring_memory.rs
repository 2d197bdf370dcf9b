//! The memory of a ring: a mapping shared with the kernel, or plain memory in tests. Must not decide who owns an entry.
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// An atomic 32-bit counter.
pub(super) trait Counter {
    fn load(&self, ordering: Ordering) -> u32;
    fn store(&self, value: u32, ordering: Ordering);
}

impl Counter for AtomicU32 {
    fn load(&self, ordering: Ordering) -> u32 {
        Self::load(self, ordering)
    }

    fn store(&self, value: u32, ordering: Ordering) {
        Self::store(self, value, ordering);
    }
}

/// The counters and entries of a ring. Its size is a power of two.
pub(super) trait RingMemory {
    type Entry: Copy;
    type Counter: Counter;

    fn size(&self) -> u32;
    /// Number of produced entries; wraps.
    fn producer(&self) -> &Self::Counter;
    /// Number of consumed entries; wraps.
    fn consumer(&self) -> &Self::Counter;
    /// Flags of the kernel.
    fn flags(&self) -> &Self::Counter;

    /// Reads the entry with this number.
    ///
    /// # Safety
    /// The other side has written the entry and does not write it now.
    unsafe fn read(&self, number: u32) -> Self::Entry;

    /// Writes the entry with this number.
    ///
    /// # Safety
    /// The other side neither reads nor writes the entry now.
    unsafe fn write(&self, number: u32, entry: Self::Entry);
}

/// The mapping of a ring of the kernel.
#[derive(Debug)]
pub(super) struct Mapping<T> {
    start: NonNull<c_void>,
    length: usize,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    size: u32,
    entry: PhantomData<T>,
}

// SAFETY: a ring's mapping belongs to one value, whose owner alone writes through it.
unsafe impl<T: Send> Send for Mapping<T> {}

impl<T> Mapping<T> {
    /// Maps the ring at `place` of the socket, with the kernel's layout `offsets` for `size` entries.
    pub fn new(
        socket: BorrowedFd<'_>,
        place: u64,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "a ring's size is a power of two");
        let length = offsets.desc as usize + size as usize * size_of::<T>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, socket, place)? };
        let start = NonNull::new(start).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mapping = Self {
            start,
            length,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags as usize,
            entries: offsets.desc as usize,
            size,
            entry: PhantomData,
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

    fn entry(&self, number: u32) -> *mut T {
        let index = (number & (self.size - 1)) as usize;
        // SAFETY: the entries begin within the mapping, which was made long enough for `size` of this type.
        let first = unsafe { self.start.as_ptr().cast::<u8>().add(self.entries) };
        // SAFETY: the index is below `size`.
        unsafe { first.cast::<T>().add(index) }
    }
}

impl<T: Copy> RingMemory for Mapping<T> {
    type Entry = T;
    type Counter = AtomicU32;

    fn size(&self) -> u32 {
        self.size
    }

    fn producer(&self) -> &AtomicU32 {
        self.counter(self.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.counter(self.consumer)
    }

    fn flags(&self) -> &AtomicU32 {
        self.counter(self.flags)
    }

    unsafe fn read(&self, number: u32) -> T {
        // SAFETY: the place is within the ring, aligned, and by the caller's promise not written now.
        unsafe { self.entry(number).read() }
    }

    unsafe fn write(&self, number: u32, entry: T) {
        // SAFETY: the place is within the ring, aligned, and by the caller's promise not used by the kernel now.
        unsafe { self.entry(number).write(entry) }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}
