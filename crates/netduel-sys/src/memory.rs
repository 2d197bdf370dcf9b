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

/// What glibc's malloc maps at least when its heap cannot grow, in bytes (`MMAP_AS_MORECORE_SIZE` of malloc/malloc.c).
const ROOM: usize = 1 << 20;

impl<const CODE: i32> EndingAllocator<CODE> {
    /// Ends the process as this allocator does also where the standard library and the C library need memory without it: for the signal
    /// stack of a new thread, where the one panics in a place that nothing can catch, and for the destructors of its thread-local
    /// variables, where the other aborts.
    pub fn end_without_memory_for_threads(&self) {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The file that maps the stack; its only panics are about memory (std/src/sys/pal/unix/stack_overflow.rs).
            if panic.location().is_some_and(|place| place.file().ends_with("/stack_overflow.rs")) {
                Self::end();
            }
            usual(panic);
        }));
        let handler: extern "C" fn(libc::c_int) = Self::aborted;
        // SAFETY: every field of sigaction may be zero.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_ONSTACK;
        // SAFETY: `action` lives during the call, and the handler calls only what is safe in one (signal-safety(7)).
        unsafe { libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut()) };
    }

    /// The handler of SIGABRT: when it returns, abort(3) ends the process as without it.
    extern "C" fn aborted(_: libc::c_int) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice changes no other one.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), ROOM, access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            Self::end();
        }
    }

    fn checked(allocated: *mut u8) -> *mut u8 {
        if allocated.is_null() {
            Self::end();
        }
        allocated
    }

    fn end() -> ! {
        // Without a standard error the code alone says it.
        // SAFETY: the message is readable for its length, and write(2) keeps no pointer to it.
        unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
        // SAFETY: `_exit` runs no handler and no destructor, which could need memory.
        unsafe { libc::_exit(CODE) }
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
