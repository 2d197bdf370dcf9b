//! The frames: one mapping, which the kernel reads and writes according to the rings.
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of a frame. A page holds two, and one holds the longest frame of an interface with the usual MTU of 1500.
pub const FRAME: usize = 2048;
/// Transparent huge pages of x86-64 and arm64.
const HUGE: usize = 2 << 20;

/// Memory for frames, initially zero.
#[derive(Debug)]
pub struct Umem {
    mapping: NonNull<c_void>,
    length: usize,
    frames: u32,
}

// SAFETY: the mapping belongs to this value alone, and is reached through `&mut self` only.
unsafe impl Send for Umem {}

impl Umem {
    /// For `frames` frames.
    pub fn new(frames: u32) -> io::Result<Self> {
        let length = frames as usize * FRAME;
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), length.max(1), protection, flags)? };
        if length >= HUGE {
            // Without huge pages small pages work at a higher cost.
            // SAFETY: the range is the mapping; the advice changes no content.
            let _ = unsafe { madvise(mapping, length, Advice::LinuxHugepage) };
        }
        let mapping = NonNull::new(mapping).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { mapping, length, frames })
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Its address and length in bytes, for the kernel.
    pub fn region(&self) -> (u64, u64) {
        (self.mapping.as_ptr() as u64, self.length as u64)
    }

    /// The bytes at an offset, limited to `length` and to the end of the frame at the offset.
    ///
    /// The caller owns the frame: by the protocol of the rings the kernel neither reads nor writes it now.
    pub fn bytes_mut(&mut self, offset: u64, length: usize) -> &mut [u8] {
        let offset = offset as usize;
        let end = (offset / FRAME + 1).saturating_mul(FRAME);
        assert!(end <= self.length, "the kernel names a frame that there is");
        let length = length.min(end - offset);
        // SAFETY: `offset` lies within the mapping, as asserted.
        let start = unsafe { self.mapping.as_ptr().cast::<u8>().add(offset) };
        // SAFETY: offset and length lie within the mapping, which lives as long as `self`, is borrowed mutably for the slice, and
        // whose bytes are all initialised.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; pages that the kernel still uses it holds references to.
        let _ = unsafe { munmap(self.mapping.as_ptr(), self.length.max(1)) };
    }
}
