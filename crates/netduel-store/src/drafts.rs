//! Drafts: files that get their name when they are whole. A process that is killed leaves its draft, which a later one removes. Nothing here
//! knows what a draft becomes.
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::run_file;
use crate::writer;

/// A draft that was changed since may belong to a process that is about to lock it.
const AGE_MIN: Duration = Duration::from_secs(60);

/// Locks a draft, so that [`remove_abandoned`] of other processes leaves it. The lock ends with the file, or with the process.
///
/// # Errors
/// That of a file system without locks, on which no draft is ever removed, or of a draft that another process has locked.
pub fn hold(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Removes the drafts of this user in a folder whose processes have ended: those that are not locked and were not changed for a minute.
/// `is_draft` judges names. What cannot be removed is left: no draft is ever read.
pub fn remove_abandoned(folder: &Path, is_draft: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(&is_draft) {
            continue;
        }
        // Not that of the target of a link.
        let Ok(metadata) = entry.metadata() else { continue };
        let is_own = metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw();
        let age = || metadata.modified().ok()?.elapsed().ok();
        if is_own
            && age().is_some_and(|age| age >= AGE_MIN)
            && run_file::open_draft(&entry.path()).is_ok_and(|file| is_abandoned(&file))
        {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// Whether no process has locked a draft. Where locks do not work, that is not known.
fn is_abandoned(file: &File) -> bool {
    let is_free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if is_free {
        writer::unlock(file);
    }
    is_free
}
