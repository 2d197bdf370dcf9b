//! The memory of a program (malloc(3)): its end when none is left. No policy about how much is used.
use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of the system, which ends the process with `CODE` and a message when no memory is left. The standard library would abort it,
/// with a code that no caller knows and with a core dump.
#[derive(Debug)]
pub struct EndingAllocator<const CODE: i32>;

/// Written without formatting, which could need memory.
const MESSAGE: &[u8] =
    b"netduel: failed to allocate memory: none is left; raise the limit (`ulimit -v`, MemoryMax= of the service, \
      memory.max of a container), or use fewer streams or a smaller plan\n";

impl<const CODE: i32> EndingAllocator<CODE> {
    fn checked(allocated: *mut u8) -> *mut u8 {
        if allocated.is_null() {
            // Without a standard error the code alone says it.
            // SAFETY: the message is readable for its length, and write(2) keeps no pointer to it.
            unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
            // SAFETY: `_exit` runs no handler and no destructor, which could need memory.
            unsafe { libc::_exit(CODE) }
        }
        allocated
    }
}

// SAFETY: every call goes to the allocator of the system unchanged, and its result is returned unchanged or not at all.
unsafe impl<const CODE: i32> GlobalAlloc for EndingAllocator<CODE> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`, which `System` has as well.
        Self::checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        Self::checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; `block` is one of `System`, as all of this allocator are.
        Self::checked(unsafe { System.realloc(block, layout, new_size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}
