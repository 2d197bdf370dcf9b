//! File handles of network namespaces (nsfs, Linux 6.18): whether the namespace of a handle still exists. Enters no namespace.
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::str::FromStr;

use rustix::thread::{CapabilitySet, capabilities};

/// `FD_NSFS_ROOT` (include/uapi/linux/fcntl.h): in place of a descriptor of the filesystem of namespaces.
const FD_NSFS_ROOT: libc::c_int = -10_003;
/// `PROC_USER_INIT_INO` (include/uapi/linux/nsfs.h): inode of the initial user namespace.
const INITIAL_USER_INODE: u64 = 0xEFFF_FFFD;
/// `MAX_HANDLE_SZ` (include/linux/exportfs.h), bytes.
const LEN_MAX: usize = 128;

/// `struct file_handle` (include/linux/fs.h) with room for the longest handle.
#[repr(C)]
struct RawHandle {
    handle_bytes: libc::c_uint,
    handle_type: libc::c_int,
    f_handle: [u8; LEN_MAX],
}

/// The file handle of a network namespace. It contains the namespace's number, which no later namespace gets before the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceHandle {
    kind: libc::c_int,
    bytes: Vec<u8>,
}

impl NamespaceHandle {
    /// The handle of the calling thread's network namespace.
    ///
    /// # Errors
    /// `EOPNOTSUPP` before Linux 6.18; when `/proc` is not mounted.
    pub fn of_network() -> io::Result<Self> {
        let file = File::open("/proc/thread-self/ns/net")?;
        let mut raw =
            RawHandle { handle_bytes: LEN_MAX as libc::c_uint, handle_type: 0, f_handle: [0; LEN_MAX] };
        let mut mount: libc::c_int = 0;
        // SAFETY: `raw` has room for the `handle_bytes` bytes that it states, the path is a C string, and `mount` is an int; all outlive
        // the call. This function upholds it.
        let result = unsafe {
            libc::name_to_handle_at(
                file.as_raw_fd(),
                c"".as_ptr(),
                (&raw mut raw).cast(),
                &raw mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes = raw.f_handle.get(..raw.handle_bytes as usize).ok_or(io::ErrorKind::InvalidData)?.to_vec();
        Ok(Self { kind: raw.handle_type, bytes })
    }

    /// Whether the namespace exists. The kernel answers `ESTALE` for one that is gone and for one that the caller may not open, so
    /// the answer is certain only with `CAP_SYS_ADMIN` in the initial user namespace.
    ///
    /// # Errors
    /// `PermissionDenied` without that capability; `EBADF` or `EOPNOTSUPP` before Linux 6.18.
    pub fn exists(&self) -> io::Result<bool> {
        if !opens_all_namespaces() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut raw = RawHandle {
            handle_bytes: self.bytes.len() as libc::c_uint,
            handle_type: self.kind,
            f_handle: [0; LEN_MAX],
        };
        raw.f_handle
            .get_mut(..self.bytes.len())
            .ok_or(io::ErrorKind::InvalidInput)?
            .copy_from_slice(&self.bytes);
        // SAFETY: `raw` holds the `handle_bytes` bytes that it states and outlives the call. This function upholds it.
        let result = unsafe {
            libc::open_by_handle_at(FD_NSFS_ROOT, (&raw mut raw).cast(), libc::O_RDONLY | libc::O_CLOEXEC)
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ESTALE) { Ok(false) } else { Err(error) };
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        drop(unsafe { OwnedFd::from_raw_fd(result) });
        Ok(true)
    }
}

/// Whether the kernel lets this thread open every namespace.
fn opens_all_namespaces() -> bool {
    std::fs::metadata("/proc/thread-self/ns/user").is_ok_and(|file| file.ino() == INITIAL_USER_INODE)
        && capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// The type in decimal, a colon, the bytes in hexadecimal.
impl fmt::Display for NamespaceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind)?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for NamespaceHandle {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let (kind, digits) = text.split_once(':').ok_or_else(invalid)?;
        let byte = |index: usize| {
            digits
                .get(index..index + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(invalid)
        };
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect::<io::Result<_>>()?;
        if bytes.is_empty() || bytes.len() > LEN_MAX {
            return Err(invalid());
        }
        Ok(Self { kind: kind.parse().map_err(|_| invalid())?, bytes })
    }
}

#[cfg(test)]
mod tests {
    use netduel_test_support::skip;

    use super::*;
    use crate::namespace::{Kind, unshare};

    #[test]
    fn handle_is_read_as_it_is_written() {
        let handle = NamespaceHandle { kind: 241, bytes: vec![3, 0, 255] };
        assert_eq!(handle.to_string(), "241:0300ff");
        assert_eq!("241:0300ff".parse::<NamespaceHandle>().unwrap(), handle);
        for invalid in ["", "241", "241:", "241:0", "x:00", "241:zz"] {
            assert!(invalid.parse::<NamespaceHandle>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn namespace_exists_until_its_last_thread_ends() {
        let own = match NamespaceHandle::of_network() {
            Ok(own) if opens_all_namespaces() => own,
            Ok(_) => return skip("CAP_SYS_ADMIN in the initial user namespace is missing"),
            Err(error) => return skip(format!("namespaces have no file handles here (Linux 6.18): {error}")),
        };
        assert!(own.exists().unwrap());
        let (kept, released) = std::sync::mpsc::channel::<()>();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            unshare(&[Kind::Net]).unwrap();
            sender.send(NamespaceHandle::of_network().unwrap()).unwrap();
            // Ends with the test's end of the channel.
            let _ = released.recv();
        });
        let other = receiver.recv().unwrap();
        assert_ne!(other, own);
        assert!(other.exists().unwrap());
        drop(kept);
        thread.join().unwrap();
        // The kernel removes a namespace in the background.
        while other.exists().unwrap() {
            std::thread::yield_now();
        }
    }
}
