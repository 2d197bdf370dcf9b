//! Mounts inside a private mount namespace (mount(2)). The functions allocate no memory, so they may be called between
//! fork and exec.
use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// Makes the mount namespace private: mounts in it are visible in it only.
///
/// # Errors
/// `EPERM` when the mount namespace does not belong to the caller.
pub fn make_private() -> io::Result<()> {
    Ok(mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Mounts a `/proc` of the caller's pid namespace.
///
/// # Errors
/// `EPERM` in a container that masks parts of `/proc`: a full one would unmask them.
pub fn proc() -> io::Result<()> {
    Ok(mount(c"proc", c"/proc", c"proc", PLAIN, None)?)
}

/// Mounts a `/sys` that shows the interfaces of the caller's network namespace.
///
/// # Errors
/// `EPERM` in a container that masks parts of `/sys`: a full one would unmask them.
pub fn sys() -> io::Result<()> {
    Ok(mount(c"sysfs", c"/sys", c"sysfs", PLAIN, None)?)
}

/// Hides `/sys/class/net` behind an empty directory, so that it does not show the interfaces of another namespace.
///
/// # Errors
/// When the directory does not exist or the mount namespace does not belong to the caller.
pub fn hide_sys_class_net() -> io::Result<()> {
    Ok(mount(c"none", c"/sys/class/net", c"tmpfs", PLAIN, None)?)
}
