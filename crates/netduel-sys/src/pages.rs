//! Pages of this process's memory (mmap(2)) that the kernel may reference for any time: they are filled once and never written
//! again.
use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Smallest page size of the supported machines; larger ones are multiples.
pub const PAGE: usize = 4096;
/// Size of huge pages, which are cheaper for the kernel (transparent huge pages of x86-64 and arm64).
const HUGE: usize = 2 << 20;

/// A read-only run of pages, aligned to huge ones.
#[derive(Debug)]
pub struct Pages {
    /// The mapping, which contains the pages: the kernel aligns it to small pages only.
    mapping: *mut std::ffi::c_void,
    mapped: usize,
    start: *const u8,
    length: usize,
}

// SAFETY: the pointers are to memory that is not written after construction, and that this value alone frees.
unsafe impl Send for Pages {}

impl Pages {
    /// Pages for `length` bytes, filled with [`crate::pattern`]; huge pages if available.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn with_pattern(length: usize) -> io::Result<Self> {
        let length = length.max(1).next_multiple_of(PAGE);
        let mapped = length.next_multiple_of(HUGE) + HUGE;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, protection, flags)? };
        let offset = mapping.cast::<u8>().align_offset(HUGE);
        assert!(offset + length <= mapped, "the aligned part lies within the mapping");
        // SAFETY: the offset is within the mapping, as asserted.
        let start = unsafe { mapping.cast::<u8>().add(offset) };
        let pages = Self { mapping, mapped, start, length };
        // Without huge pages (EINVAL, or none available) small pages work at a higher cost.
        // SAFETY: the range lies within the mapping; the advice changes no content.
        let _ = unsafe { madvise(start.cast(), length.next_multiple_of(HUGE), Advice::LinuxHugepage) };
        // SAFETY: the memory is ours alone, zeroed by the kernel, writable, and as long as asserted.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, length) };
        crate::pattern::fill(bytes);
        Ok(pages)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is to `length` bytes of a mapping that lives as long as `self`, and that is not written.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what the kernel still reads of its pages it holds references to.
        let _ = unsafe { munmap(self.mapping, self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_whole_and_filled() {
        for (requested, allocated) in [(0, PAGE), (1, PAGE), (PAGE + 1, 2 * PAGE), (HUGE + 1, HUGE + PAGE)] {
            let pages = Pages::with_pattern(requested).unwrap();
            assert_eq!(pages.bytes().len(), allocated);
            assert_eq!(pages.bytes().as_ptr().align_offset(HUGE), 0);
            let mut expected = vec![0; allocated];
            crate::pattern::fill(&mut expected);
            assert!(pages.bytes() == expected);
        }
    }
}
