//! Memory for exchanges with drivers that may write more than was requested. Must not know the commands.
use std::io;
use std::ptr::NonNull;

/// Private memory before an inaccessible page.
#[derive(Debug)]
pub(super) struct GuardedMemory {
    start: NonNull<u8>,
    len: usize,
    mapped: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to the thread that made it.
unsafe impl Send for GuardedMemory {}

impl GuardedMemory {
    /// `len` is rounded up to whole pages.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let len = len.next_multiple_of(page);
        let mapped = len + page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without a wanted address the kernel chooses a free range, so no memory in use is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let memory = Self { start, len, mapped };
        // SAFETY: the first `len` bytes are ours since the call above; the last page keeps PROT_NONE.
        let result =
            unsafe { libc::mprotect(start.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_WRITE) };
        if result == 0 { Ok(memory) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are mapped readable and initialised (the kernel zeroes them) as long as `self`
        // lives, and only `&mut self` methods write to them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Its address, for the kernel only.
    pub(super) fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Zeroes the start of the memory.
    pub(super) fn clear(&mut self, len: usize) {
        self.bytes_mut()[..len].fill(0);
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        self.bytes()[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    pub(super) fn set_word(&mut self, at: usize, value: u32) {
        self.bytes_mut()[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
}

impl Drop for GuardedMemory {
    fn drop(&mut self) {
        // SAFETY: `start` and `mapped` are those of our own mapping, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::ethtool::Ethtool;
    use crate::ethtool::features::SET_FEATURE_NAMES;
    use crate::ethtool::ioctl::GET_STRINGS;
    use crate::link::request;

    #[test]
    fn kernel_cannot_write_past_the_memory() {
        let mut ethtool = Ethtool::open().unwrap();
        let socket = crate::link::request_socket().unwrap();
        let mut short = GuardedMemory::new(1).unwrap();
        // The names of the features need some 2 KiB; they are requested with 100 bytes.
        let room = short.len;
        for (field, value) in [GET_STRINGS, SET_FEATURE_NAMES, 0].into_iter().enumerate() {
            short.set_word(room - 100 + field * 4, value);
        }
        let mut wanted = request("lo").unwrap();
        // SAFETY: the offset lies within the mapping.
        let inside = unsafe { short.start.as_ptr().add(room - 100) };
        wanted.ifr_ifru.ifru_data = inside.cast();
        let argument = (&raw mut wanted).cast::<c_void>();
        // SAFETY: the kernel's copy meets the inaccessible page; that is what is tested.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, argument) };
        let error = io::Error::last_os_error();
        assert_eq!((result, error.raw_os_error()), (-1, Some(libc::EFAULT)));
        assert!(ethtool.features("lo").is_ok());
    }
}
