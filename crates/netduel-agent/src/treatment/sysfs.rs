//! `/sys` as the agent's network namespace has it. Must not know what its files mean.
use std::fs::File;
use std::io;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use netduel_host::LinkState;
use rustix::fs::{Dir, Mode, OFlags, open, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::error::TreatmentError;

/// A tree of files that shows the interfaces of the calling thread's network namespace.
#[derive(Debug)]
pub(super) struct Sysfs {
    root: OwnedFd,
}

impl Sysfs {
    /// A tree of its own, that is mounted nowhere; `/sys` where that is not allowed, when it shows the same interfaces
    /// as netlink: an agent that was put into a network namespace may still see another one's `/sys`.
    pub(super) fn open() -> Result<Self, TreatmentError> {
        let cause = match fresh() {
            Ok(root) => return Ok(Self { root }),
            Err(cause) => cause,
        };
        let refused = |cause: io::Error| TreatmentError::Refused { doing: "open /sys".to_owned(), cause };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open("/sys", flags, Mode::empty()).map_err(|cause| refused(cause.into()))?;
        let mounted = Self { root };
        if mounted.shows(&netduel_host::link_states()?) {
            return Ok(mounted);
        }
        Err(TreatmentError::ForeignSysfs { cause })
    }

    fn shows(&self, links: &[LinkState]) -> bool {
        let listed = self.names("class/net").unwrap_or_default();
        let index = |name: &str| self.read(&format!("class/net/{name}/ifindex")).ok()?.parse().ok();
        let address = |name: &str| self.read(&format!("class/net/{name}/address")).ok();
        links.iter().all(|link| {
            listed.contains(&link.name)
                && index(&link.name) == Some(link.index)
                && link.mac.as_ref().is_none_or(|mac| address(&link.name).as_ref() == Some(mac))
        })
    }

    /// A file's text without the white space around it. `path` has no slash at its head.
    pub(super) fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(path, OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    }

    /// Hands a file its text in one call.
    pub(super) fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.file(path, OFlags::WRONLY)?.write_all(text.as_bytes())
    }

    /// The names in a folder, sorted.
    pub(super) fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let folder = self.file(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn file(&self, path: &str, flags: OFlags) -> io::Result<File> {
        Ok(File::from(openat(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty())?))
    }
}

fn fresh() -> io::Result<OwnedFd> {
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
