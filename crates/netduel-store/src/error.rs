//! Why a run could not be kept or found, with what to do about it.
use std::io;
use std::path::{Path, PathBuf};

use crate::format::{FORMAT, PROGRAM};

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The filesystem has no room. What was stored before is whole.
    #[error(
        "failed to {operation} {}: the disk is full or the quota is used up ({needed_bytes} bytes are needed); make room \
         and resume the run, or choose another disk with --store: {source}", path.display()
    )]
    Full {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// How much was asked for, bytes.
        needed_bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The user may not do this.
    #[error(
        "failed to {operation} {}: permission denied; give this user the right to it, or choose another folder with --store",
        path.display()
    )]
    Permission {
        /// What was tried.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Any other answer of the system.
    #[error("failed to {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No run of this name.
    #[error("failed to find run `{wanted}` in {}: {}", folder.display(), near_words(near))]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// The store's folder.
        folder: PathBuf,
        /// Runs that may have been meant.
        near: Vec<String>,
    },
    /// More than one run begins so.
    #[error("failed to find run `{wanted}`: more than one begins so; write more of its name: {}", matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The runs that begin so.
        matches: Vec<String>,
    },
    /// The run is there already.
    #[error("failed to create run {}: there is one of this name; resume it, or take another name", path.display())]
    Exists {
        /// Its file.
        path: PathBuf,
    },
    /// The file is of a later version.
    #[error(
        "failed to read {}: it has format {format}, written by {}, and {PROGRAM} reads formats 1 to {FORMAT}; update to {} or later",
        path.display(), program.as_deref().unwrap_or("a newer netduel"), program.as_deref().unwrap_or("the version that wrote it")
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        format: u32,
        /// The program that wrote it, when the file names it.
        program: Option<String>,
    },
    /// The file is no run.
    #[error("failed to read {}: it is not the file of a netduel run: {reason}", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
        /// How that shows.
        reason: String,
    },
    /// A line within the file cannot be read. A torn last line is no error.
    #[error(
        "failed to read {} at line {line}: the line is damaged; restore the file from a copy, or remove the line to go \
         without it: {source}", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Another process writes this run.
    #[error(
        "failed to open {} for writing: another netduel writes this run; wait until it ends, or stop it", path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A record that could not be read again must not be written: a number in it is not finite.
    #[error("failed to {operation} {}: the record could not be read again: {source}", path.display())]
    Record {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What reading it said.
        source: serde_json::Error,
    },
}

fn near_words(near: &[String]) -> String {
    if near.is_empty() {
        "there is none yet; `netduel run PLAN.toml` makes one".to_owned()
    } else {
        format!("did you mean {}? `netduel runs` lists all", near.join(" or "))
    }
}

impl StoreError {
    /// Sorts an answer of the system by what can be done about it. The room that was needed is only known by who asks for
    /// it: see [`Self::for_room`].
    pub(crate) fn of(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::for_room(operation, path, 0, source)
    }

    /// As [`Self::of`], for an operation that needs room.
    pub(crate) fn for_room(
        operation: &'static str,
        path: &Path,
        needed_bytes: u64,
        source: io::Error,
    ) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { operation, path, needed_bytes, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Permission { operation, path, source }
            }
            _ => Self::Io { operation, path, source },
        }
    }
}
