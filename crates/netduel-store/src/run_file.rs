//! Opens run files. A pipe may never have a writer and a device may have no end, so that only regular files are read, and none to which another
//! user may have planted a link; nothing here knows their content.
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::StoreError;
use crate::folder;

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
    folder::check_input(path).map_err(|error| not_a_run(path, error.to_string()))?;
    // A listing opens each entry of a folder, and a device may act when it is opened.
    match fs::metadata(path) {
        Ok(found) => check_kind(path, found.file_type())?,
        Err(error) if path.is_symlink() && has_no_target(&error) => {
            let remedy = "mount the disk of its file, correct the link, or move the link out of the store";
            return Err(not_a_run(path, format!("it is a link to no file; {remedy}")));
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
    let remedy = "name a regular file, for example a copy of its content; if it is in the store, move it out of the store";
    Err(not_a_run(path, format!("it is {what}; {remedy}")))
}

/// Whether this error of a link is that of its target. A disk or a server that does not answer has another one.
fn has_no_target(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

fn not_a_run(path: &Path, reason: String) -> StoreError {
    StoreError::NotARun { path: path.to_owned(), reason }
}
