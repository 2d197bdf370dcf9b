//! The system call bpf(2): its commands, names of objects, and the descriptors that it returns.
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Commands of bpf(2) (include/uapi/linux/bpf.h, `enum bpf_cmd`).
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgramLoad = 5,
    ProgramRun = 10,
    LinkCreate = 28,
}

/// Length of a name in the kernel, with the closing zero (`BPF_OBJ_NAME_LEN`).
pub(super) const NAME_LENGTH: usize = 16;

/// An object name as the kernel accepts it: at most 15 bytes of letters, digits, `_` and `.`.
pub(super) fn object_name(name: &str) -> [u8; NAME_LENGTH] {
    let mut bytes = [0; NAME_LENGTH];
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    for (to, from) in bytes[..NAME_LENGTH - 1].iter_mut().zip(name.bytes().filter(allowed)) {
        *to = from;
    }
    bytes
}

/// Calls bpf(2) with the attributes of a command. The kernel extends a shorter structure with zeros.
///
/// # Safety
/// `attributes` is the structure of `command`, and every address in it is valid for the kernel's reads and writes of the
/// length that it gives, until the call returns.
pub(super) unsafe fn call<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    let pointer: *mut T = attributes;
    // SAFETY: `pointer` is to a live structure of the given size; the caller vouches for what it holds.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command as i32, pointer, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Takes ownership of the descriptor that a command has returned.
///
/// # Safety
/// `descriptor` is open, and has no other owner.
pub(super) unsafe fn own(descriptor: i32) -> OwnedFd {
    // SAFETY: the caller vouches for it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_name_is_shortened_to_the_limit_of_the_kernel() {
        assert_eq!(&object_name("net duel-fates of datagrams"), b"netduelfatesofd\0");
    }
}
