//! Locks on single bytes of a file that belong to an open file description (`F_OFD_SETLK`, fcntl_locking(2)): the kernel drops them with
//! the last descriptor, however its process ends. Several locks share a file, so that no file has to be removed.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Locks the byte at `offset` of a file that is open for writing; `false` when another open file description has the lock.
///
/// # Errors
/// Errors of fcntl(2): `EBADF` when the file is not open for writing, `EINVAL` for a negative offset, `ENOLCK`.
pub fn try_lock(file: BorrowedFd<'_>, offset: i64) -> io::Result<bool> {
    let range = byte(libc::F_WRLCK, offset);
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

/// Whether another open file description has the lock of the byte at `offset`. Takes no lock.
///
/// # Errors
/// Errors of fcntl(2): `EINVAL` for a negative offset.
pub fn is_locked(file: BorrowedFd<'_>, offset: i64) -> io::Result<bool> {
    let mut range = byte(libc::F_WRLCK, offset);
    // SAFETY: `file` is open for the call, and F_OFD_GETLK reads and writes the `flock` at the pointer, which is alive for the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(range.l_type != libc::F_UNLCK as libc::c_short)
}

/// Ends the lock of the byte at `offset` that this open file description has. Closing the descriptor may not end it: a child that another
/// thread starts has a copy until it executes its program.
///
/// # Errors
/// Errors of fcntl(2): `EINVAL` for a negative offset.
pub fn unlock(file: BorrowedFd<'_>, offset: i64) -> io::Result<()> {
    let range = byte(libc::F_UNLCK, offset);
    // SAFETY: `file` is open for the call, and F_OFD_SETLK reads the `flock` at the pointer, which is alive for the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One byte of a file, for a lock of this kind. The number of a process is 0 in it, as these locks require.
fn byte(kind: libc::c_int, offset: i64) -> libc::flock {
    // The type of `flock` has padding on some platforms, so it is not written as a literal.
    // SAFETY: `flock` is a C struct of integers, for which zeros are valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = offset;
    range.l_len = 1;
    range
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    /// Descriptions of one file, which no other test has.
    fn opened() -> (std::os::fd::OwnedFd, impl Fn() -> File) {
        let memory = rustix::fs::memfd_create("locks", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        (memory, move || File::options().read(true).write(true).open(&path).unwrap())
    }

    #[test]
    fn byte_is_locked_until_its_descriptor_is_closed() {
        let (_memory, open) = opened();
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

    #[test]
    fn lock_of_another_description_is_seen_until_it_is_ended() {
        let (_memory, open) = opened();
        let (first, second) = (open(), open());
        assert!(try_lock(first.as_fd(), 0).unwrap());
        let seen = |file: &File| is_locked(file.as_fd(), 0).unwrap();
        assert!(seen(&second) && !seen(&first), "its own lock excludes no description");
        assert!(!is_locked(second.as_fd(), 1).unwrap());
        // A copy of the descriptor, as a child has it, keeps no lock that was ended.
        let copy = first.try_clone().unwrap();
        unlock(first.as_fd(), 0).unwrap();
        assert!(!seen(&second));
        drop(copy);
    }
}
