//! Folders for files of agents and guards that no other user of the machine can read or write.
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use netduel_model::user_folder::UserFolder;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Where files of agents and guards may be: a folder that goes with the boot, else one of the user's own.
pub(crate) fn folders() -> Vec<PathBuf> {
    let user = geteuid();
    let mut folders = Vec::new();
    if user.is_root() {
        folders.push(PathBuf::from("/run/netduel"));
    }
    let runtime = UserFolder::Runtime.path(|name| std::env::var_os(name));
    folders.extend(runtime.map(|path| path.join("netduel")));
    folders.push(std::env::temp_dir().join(format!("netduel-{}", user.as_raw())));
    folders
}

/// A folder that only this user can write, made if it is not there.
pub(crate) fn own_folder(path: &Path, make: bool) -> io::Result<OwnedFd> {
    if make {
        match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, path, flags, Mode::empty())?;
    if is_own(&folder, FileType::Directory)? {
        Ok(folder)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Whether a file is of this kind, belongs to this user, and no other user can open it.
pub(super) fn is_own(file: &impl AsFd, kind: FileType) -> io::Result<bool> {
    let found = fstat(file)?;
    let others = found.st_mode & 0o077;
    Ok(FileType::from_raw_mode(found.st_mode) == kind && found.st_uid == geteuid().as_raw() && others == 0)
}
