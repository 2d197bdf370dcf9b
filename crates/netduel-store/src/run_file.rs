//! Opens run files. A pipe may never have a writer and a device may have no end, so that only regular files are read; nothing here knows
//! their content.
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::StoreError;

/// Opens a run for reading.
pub(crate) fn open(path: &Path) -> Result<File, StoreError> {
    opened(path, OpenOptions::new().read(true), OFlags::empty(), "open")
}

/// Opens a draft for reading. Another user may have planted a link of such a name, which is not followed.
pub(crate) fn open_draft(path: &Path) -> Result<File, StoreError> {
    opened(path, OpenOptions::new().read(true), OFlags::NOFOLLOW, "open")
}

/// Opens a run for reading and appending.
pub(crate) fn open_for_writing(path: &Path) -> Result<File, StoreError> {
    opened(path, OpenOptions::new().read(true).write(true), OFlags::empty(), "open for writing")
}

fn opened(
    path: &Path,
    options: &mut OpenOptions,
    flags: OFlags,
    operation: &'static str,
) -> Result<File, StoreError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            StoreError::NoFile { path: path.to_owned(), source }
        }
        _ => StoreError::of(operation, path, source),
    };
    // A listing opens each entry of a folder, and a device may act when it is opened.
    match fs::metadata(path) {
        Ok(found) => check_kind(path, found.file_type())?,
        Err(error) if path.is_symlink() && error.kind() != io::ErrorKind::PermissionDenied => {
            return Err(other(path, "a link to no file"));
        }
        // To open it has the same error.
        Err(_) => {}
    }
    // Another one may have its name by now: opening a pipe must not wait for its other end. Regular files do not have the flag.
    let file =
        options.custom_flags((OFlags::NONBLOCK | flags).bits().cast_signed()).open(path).map_err(failed)?;
    check_kind(path, file.metadata().map_err(failed)?.file_type())?;
    Ok(file)
}

/// Refuses what is no regular file.
fn check_kind(path: &Path, kind: FileType) -> Result<(), StoreError> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "no regular file",
    };
    Err(other(path, what))
}

fn other(path: &Path, what: &str) -> StoreError {
    let reason = format!(
        "it is {what}; name a regular file, for example a copy of what it yields, and move what is none out of the store"
    );
    StoreError::NotARun { path: path.to_owned(), reason }
}
