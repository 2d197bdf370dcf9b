//! Socket options that are a plain integer (setsockopt(2), getsockopt(2)), for the files of this crate that own a kind
//! of socket. Not public: other crates use typed functions.
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option whose value is a C `int`.
pub(crate) fn set_int(socket: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    let pointer: *const i32 = &raw const value;
    // SAFETY: `pointer` is to a live local of `length` bytes, which the kernel only reads during the call; the
    // descriptor is borrowed and so open.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, pointer.cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option whose value is text or bytes.
pub(crate) fn set_bytes(socket: impl AsFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    let length = value.len() as libc::socklen_t;
    // SAFETY: `value` is readable for `length` bytes, and the kernel only reads it during the call; the descriptor is borrowed and so
    // open.
    let result = unsafe { libc::setsockopt(descriptor, level, name, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option whose value is a 64-bit integer.
pub(crate) fn set_u64(socket: impl AsFd, level: i32, name: i32, value: u64) -> io::Result<()> {
    let length = size_of::<u64>() as libc::socklen_t;
    let pointer: *const u64 = &raw const value;
    // SAFETY: `pointer` is to a live local of `length` bytes, which the kernel only reads during the call; the
    // descriptor is borrowed and so open.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, pointer.cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into `buffer` and returns the number of bytes that the kernel has written.
pub(crate) fn read_bytes(socket: impl AsFd, level: i32, name: i32, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: `buffer` is writable for `length` bytes, and the kernel writes no more than the length it is given.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok((length as usize).min(buffer.len())) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option whose value is a C `int`.
pub(crate) fn read_int(socket: impl AsFd, level: i32, name: i32) -> io::Result<i32> {
    let mut bytes = [0; size_of::<i32>()];
    read_bytes(socket, level, name, &mut bytes)?;
    Ok(i32::from_ne_bytes(bytes))
}
