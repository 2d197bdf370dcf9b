//! A run's file that another program removes or moves while the run writes it. The open file still has every record, so they are written again
//! to a file with a name.
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use crate::folder;

/// Number of bytes that are copied at a time.
const CHUNK: usize = 1 << 20;

/// What became of the records of a run whose file was removed.
#[derive(Debug)]
pub enum Fate {
    /// They were written again to this file.
    Restored(PathBuf),
    /// The file has another name.
    Moved(PathBuf),
    /// They could not be written again.
    Lost(io::Error),
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Restored(path) => write!(f, "its finished trials were written again to {}", path.display()),
            Self::Moved(path) => write!(f, "its finished trials are in {}", path.display()),
            Self::Lost(error) => write!(f, "its finished trials could not be written again: {error}"),
        }
    }
}

/// Whether the open file of a run has lost its name: it was removed, or no file is at its path. Another error, as of a folder that may not be
/// read any more, says nothing about the file.
pub(crate) fn has_lost_its_name(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|open| open.nlink() == 0)
        || fs::symlink_metadata(path).is_err_and(|error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        })
}

/// The present name of an open file that was moved.
pub(crate) fn new_name(file: &File) -> Option<PathBuf> {
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let there = fs::symlink_metadata(&name).ok()?;
    let open = file.metadata().ok()?;
    ((there.dev(), there.ino()) == (open.dev(), open.ino())).then_some(name)
}

/// Writes the first `length` bytes of an open file to a new file of the same name, whose folder is created again when it is missing. Where
/// another file has that name, the new one is beside it. Another user may have planted a link in place of the folder since it was removed.
pub(crate) fn write_again(file: &File, path: &Path, length: u64) -> io::Result<(File, PathBuf)> {
    let folder = folder::create(path.parent().unwrap_or(Path::new("")))?;
    let create = |path: PathBuf| -> io::Result<(File, PathBuf)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = openat(&folder, name_of(&path), flags, Mode::RUSR | Mode::WUSR)?;
        Ok((new.into(), path))
    };
    let (new, path) = match create(path.to_owned()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => create(beside(path))?,
        created => created?,
    };
    if let Err(error) = copy(file, &new, length) {
        // Best effort: a part of a run would look like the whole.
        let _ = unlinkat(&folder, name_of(&path), AtFlags::empty());
        return Err(error);
    }
    Ok((new, path))
}

/// The name of a file in its folder. Without one it cannot be opened.
fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// The name of a run whose own name is taken.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_stem().map_or_else(OsString::new, OsString::from);
    name.push("-again");
    path.with_file_name(name).with_extension(path.extension().unwrap_or_default())
}

fn copy(from: &File, to: &File, length: u64) -> io::Result<()> {
    let mut at = 0;
    let mut buffer = vec![0; CHUNK];
    while at < length {
        let wanted = usize::try_from(length - at).map_or(CHUNK, |left| left.min(CHUNK));
        from.read_exact_at(&mut buffer[..wanted], at)?;
        to.write_all_at(&buffer[..wanted], at)?;
        at += wanted as u64;
    }
    to.sync_all()
}
