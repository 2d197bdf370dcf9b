//! Namespaces: unshare(2), setns(2), user namespace maps (user_namespaces(7)). No policy: the caller selects the namespaces and their
//! order.
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::socket_option::read_bytes;

/// `include/uapi/asm-generic/socket.h`; the headers of the C library use other names.
const SO_NETNS_COOKIE: i32 = 71;

/// A kind of namespace that a lab uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Users and capabilities.
    User,
    /// The mount table.
    Mount,
    /// Process ids. Unsharing or entering it affects children only.
    Pid,
    /// The network stack.
    Net,
    /// The host name.
    Uts,
}

impl Kind {
    /// Its name under `/proc/PID/ns/`.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Mount => "mnt",
            Self::Pid => "pid",
            Self::Net => "net",
            Self::Uts => "uts",
        }
    }

    const fn unshare_flag(self) -> UnshareFlags {
        match self {
            Self::User => UnshareFlags::NEWUSER,
            Self::Mount => UnshareFlags::NEWNS,
            Self::Pid => UnshareFlags::NEWPID,
            Self::Net => UnshareFlags::NEWNET,
            Self::Uts => UnshareFlags::NEWUTS,
        }
    }

    const fn link_type(self) -> LinkNameSpaceType {
        match self {
            Self::User => LinkNameSpaceType::User,
            Self::Mount => LinkNameSpaceType::Mount,
            Self::Pid => LinkNameSpaceType::ProcessID,
            Self::Net => LinkNameSpaceType::Network,
            Self::Uts => LinkNameSpaceType::HostNameAndNISDomainName,
        }
    }
}

/// Moves the calling thread into new namespaces of these kinds, all or none.
///
/// # Errors
/// `EPERM` without the privilege, `ENOSPC` when a limit of `/proc/sys/user` is reached, `EINVAL` for a user namespace in
/// a process with several threads.
pub fn unshare(kinds: &[Kind]) -> io::Result<()> {
    let flags = kinds.iter().fold(UnshareFlags::empty(), |flags, kind| flags | kind.unshare_flag());
    // SAFETY: the call is unsafe for CLONE_FILES alone, which no `Kind` maps to.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Moves the calling thread into an existing namespace.
///
/// # Errors
/// `EPERM` without the privilege over the namespace, `EINVAL` when `namespace` is not one of this kind.
pub fn enter(kind: Kind, namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(namespace, Some(kind.link_type()))?)
}

/// The cookie of the calling thread's network namespace (`SO_NETNS_COOKIE`, Linux 5.14). Unlike an inode number it is not reused
/// before the next boot.
///
/// # Errors
/// `ENOPROTOOPT` on older kernels.
pub fn network_cookie() -> io::Result<u64> {
    let socket = UnixDatagram::unbound()?;
    let mut bytes = [0; size_of::<u64>()];
    let written = read_bytes(&socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut bytes)?;
    if written == bytes.len() {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// A descriptor of the calling process's namespace, which exists at least as long as the descriptor.
///
/// # Errors
/// When `/proc` is not mounted or hides the file.
pub fn open_own(kind: Kind) -> io::Result<OwnedFd> {
    File::open(format!("/proc/self/ns/{}", kind.file_name())).map(OwnedFd::from)
}

/// In a new user namespace, maps the given outer user and group to root: the only map that needs no privilege.
///
/// # Errors
/// When the kernel refuses one of the three writes (each is possible once).
pub fn map_to_root(outer_uid: u32, outer_gid: u32) -> io::Result<()> {
    // Without this the kernel refuses the group map to an ordinary user (CVE-2014-8989).
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {outer_uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {outer_gid} 1"))
}

/// Sets the host name of the calling thread's UTS namespace, at most 64 bytes.
///
/// # Errors
/// `EPERM` when the namespace does not belong to the caller.
pub fn set_host_name(name: &str) -> io::Result<()> {
    Ok(rustix::system::sethostname(name.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn entering_a_namespace_of_another_kind_is_refused() {
        let net = open_own(Kind::Net).unwrap();
        let error = enter(Kind::Uts, net.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
