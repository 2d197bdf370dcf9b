//! Locks on single bytes of a file that belong to an open file description (`F_OFD_SETLK`, fcntl_locking(2)): the kernel drops them with
//! the last descriptor, however its process ends. Several locks share a file, so that no file has to be removed.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Locks the byte at `offset` of a file that is open for writing; `false` when another open file description has the lock.
///
/// # Errors
/// Errors of fcntl(2): `EBADF` when the file is not open for writing, `EINVAL` for a negative offset, `ENOLCK`.
pub fn try_lock(file: BorrowedFd<'_>, offset: i64) -> io::Result<bool> {
    // The type of `flock` has padding on some platforms, so it is not written as a literal.
    // SAFETY: `flock` is a C struct of integers, for which zeros are valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = libc::F_WRLCK as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = offset;
    range.l_len = 1;
    // SAFETY: `file` is open for the call, and F_OFD_SETLK reads the `flock` at the pointer, which is alive for the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn byte_is_locked_until_its_descriptor_is_closed() {
        let memory = rustix::fs::memfd_create("locks", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        let open = || File::options().write(true).open(&path).unwrap();
        let (first, second) = (open(), open());
        assert!(try_lock(first.as_fd(), 7).unwrap());
        assert!(!try_lock(second.as_fd(), 7).unwrap());
        assert!(try_lock(second.as_fd(), 8).unwrap());
        drop(first);
        // A process that another test starts has the descriptor until it executes its program.
        while !try_lock(second.as_fd(), 7).unwrap() {
            std::thread::yield_now();
        }
    }
}
