//! Errors of storing and finding runs, each with its remedy.
use std::io;
use std::path::{Path, PathBuf};

use netduel_model::PROGRAM;
use netduel_model::file_error;
use netduel_model::ids::RunId;

use crate::format::{EXTENSION, FORMAT};
use crate::removed::Fate;

/// Longest file that is copied by way of memory, bytes: a run of a day has some hundred MB.
pub const SIZE_MAX: u64 = 4 << 30;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system is full, or the file as large as it may be. Records stored before are intact.
    #[error(
        "failed to {operation} {}: {}{}; {} and resume the run{}: {source}",
        path.display(), full(source), needed(*needed_bytes), room(source), other_disk(source)
    )]
    Full {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Bytes that the operation needed, when they are known.
        needed_bytes: Option<u64>,
        /// The kernel's error.
        source: io::Error,
    },
    /// As [`Self::Full`], before the first record of a new run.
    #[error(
        "failed to create run {}: {}{}; {} and start the run again{}: {source}",
        path.display(), full(source), needed(*needed_bytes), room(source), other_disk(source)
    )]
    FullAtStart {
        /// The file that would have been created.
        path: PathBuf,
        /// Bytes that the operation needed, when they are known.
        needed_bytes: Option<u64>,
        /// The kernel's error.
        source: io::Error,
    },
    /// As [`Self::Full`], when a stored run is changed. The run is as it was.
    #[error(
        "failed to {operation} {}: {}{}; the run is as it was; {} and repeat the command: {source}",
        path.display(), full(source), needed(*needed_bytes), room(source)
    )]
    FullAtChange {
        /// The operation.
        operation: &'static str,
        /// The file of the run.
        path: PathBuf,
        /// Bytes that the operation needed, when they are known.
        needed_bytes: Option<u64>,
        /// The kernel's error.
        source: io::Error,
    },
    /// The user lacks the permission, or the file system is read-only.
    #[error("failed to {operation} {}: {source}; {}", path.display(), permission_remedy(source))]
    Permission {
        /// The operation.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Any other error of the kernel.
    #[error("failed to {operation} {}: {source}; {}", path.display(), file_or_folder_remedy(source))]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// No run has this name.
    #[error("failed to find run `{wanted}` in {}: {}", folder.display(), near_words(*runs, near))]
    NotFound {
        /// The requested name.
        wanted: String,
        /// The store's folder.
        folder: PathBuf,
        /// Number of runs in it.
        runs: usize,
        /// Runs with similar names.
        near: Vec<String>,
    },
    /// All runs start in the future, so that it is not known which was begun last.
    #[error(
        "failed to find run `last` in {}: all runs that can be read start in the future of this machine's clock; correct the clock, or name \
         the run; `netduel runs` lists all", folder.display()
    )]
    NoLast {
        /// The store's folder.
        folder: PathBuf,
    },
    /// A run is named by a path, and there is no file.
    #[error("failed to open {}: {source}; name a file that exists; `netduel runs` lists the runs of the store", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The prefix matches more than one run.
    #[error("failed to find run `{wanted}`: more than one begins so; write more of its name: {}", matches.join(", "))]
    Ambiguous {
        /// The requested name.
        wanted: String,
        /// The matching runs.
        matches: Vec<String>,
    },
    /// A run of this name exists.
    #[error("failed to create run {}: there is one of this name; resume it, or take another name", path.display())]
    Exists {
        /// Its file.
        path: PathBuf,
    },
    /// Another run has the name that a run is to have.
    #[error("failed to rename run {}: another run has the name {to}; choose another name", path.display())]
    NameTaken {
        /// The file of the run that is to be renamed.
        path: PathBuf,
        /// The name that is taken.
        to: RunId,
    },
    /// Commands take the name of an imported run for something else.
    #[error(
        "failed to import {}: its run has the name {id}, and {reason}; choose another name with --name", path.display()
    )]
    UnusableName {
        /// The file.
        path: PathBuf,
        /// The name.
        id: RunId,
        /// What commands take it for.
        reason: &'static str,
    },
    /// The file of a run is too large to be copied by way of memory.
    #[error(
        "failed to copy {}: it has {bytes} bytes, and runs of up to {} are copied; copy its file with cp(1)", path.display(), SIZE_MAX
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The file has a newer format.
    #[error(
        "failed to read {}: it has format {format}, written by {}, and {PROGRAM} reads formats 1 to {FORMAT}; {}",
        path.display(), program.as_deref().unwrap_or("a newer netduel"), newer_remedy(program.as_deref())
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The program that wrote it, when the file names it.
        program: Option<String>,
    },
    /// The file is not a run.
    #[error("failed to read {}: it is not the file of a netduel run: {reason}", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
        /// The evidence.
        reason: String,
    },
    /// The header cannot be read. Other damaged records are left out, which is no error.
    #[error(
        "failed to read {} at line {line}: the header of the run is damaged ({reason}), and without it no trial can be understood; \
         restore the file from a copy", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// How that is known.
        reason: String,
    },
    /// Another process writes this run.
    #[error(
        "failed to open {} for writing: another netduel writes this run; wait until it ends, or stop it", path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another program removed or moved the file while the run wrote it.
    #[error(
        "failed to {operation} {}: another program removed or moved the file while the run wrote it; {fate}", path.display()
    )]
    Removed {
        /// The operation.
        operation: &'static str,
        /// The name that it had.
        path: PathBuf,
        /// What became of its records.
        fate: Fate,
    },
    /// The record contains a number that is not finite. It is not written, because it could not be read again.
    #[error("failed to {operation} {}: the record could not be read again: {source}", path.display())]
    Record {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
}

fn needed(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |bytes| format!(" ({bytes} bytes are needed)"))
}

/// What leaves no room.
fn full(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "the file would exceed the limit of file sizes",
        _ => "the disk is full or the quota is used up",
    }
}

fn room(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => file_error::RAISE_FILE_SIZE,
        _ => "make room",
    }
}

/// The remedy beside [`room`]. The limit of file sizes is that of each disk.
fn other_disk(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "",
        _ => ", or choose another disk with --store",
    }
}

fn permission_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "choose another folder with --store",
        _ => "give this user the permission, or choose another folder with --store",
    }
}

fn file_or_folder_remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "it is not a folder, or lies below a file: choose another folder with --store".to_owned()
        }
        io::ErrorKind::IsADirectory => "write the name of a run, or the file of one".to_owned(),
        _ => file_error::remedy(file_error::to_write(error), "choose another folder with --store"),
    }
}

/// A build between two releases has the version of this program and a later format.
fn newer_remedy(program: Option<&str>) -> String {
    match program {
        Some(program) if program == PROGRAM => {
            format!("use the build of {program} that wrote it, or a later one")
        }
        Some(program) => format!("update to {program} or later"),
        None => "update to the version that wrote it or later".to_owned(),
    }
}

fn near_words(runs: usize, near: &[String]) -> String {
    match (runs, near) {
        (0, _) => "there is none yet; `netduel run PLAN.toml` makes one".to_owned(),
        (_, []) => "no run has a similar name; `netduel runs` lists all".to_owned(),
        (_, near) => format!("did you mean {}? `netduel runs` lists all", near.join(" or ")),
    }
}

impl StoreError {
    /// The path of a file that could not be read as a run, where this is such an error. What is in the file is not known then, so a caller that
    /// hides names has to replace the path.
    pub fn unread_file(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Newer { path, .. }
            | Self::NotARun { path, .. }
            | Self::Damaged { path, .. }
            | Self::TooLarge { path, .. } => Some(path),
            Self::Io { path, .. } | Self::Permission { path, .. } | Self::NoFile { path, .. }
                if path.extension().is_some_and(|end| end == EXTENSION) =>
            {
                Some(path)
            }
            _ => None,
        }
    }

    /// The path of the file of a run that was not changed, where this is such an error. A change may read no record, so the file may be one that
    /// cannot be read, as that of [`Self::unread_file`].
    pub fn unchanged_file(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::NameTaken { path, .. } | Self::InUse { path } | Self::FullAtChange { path, .. } => {
                Some(path)
            }
            _ => None,
        }
    }

    /// The error with the remedy for this error of the kernel. For an operation that needs disk space: [`Self::for_space`].
    pub(crate) fn of(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::for_kernel(operation, path, None, source)
    }

    /// The error of a run that does not exist yet: it names the run's file in place of its draft.
    pub(crate) fn at_start(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Full { needed_bytes, source, .. } => Self::FullAtStart { path, needed_bytes, source },
            Self::Permission { operation, source, .. } => Self::Permission { operation, path, source },
            Self::Io { operation, source, .. } => Self::Io { operation, path, source },
            other => other,
        }
    }

    /// The error of a change of a stored run: it names the change and the run's file in place of a step of it and its draft.
    pub(crate) fn at_change(self, operation: &'static str, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Full { needed_bytes, source, .. } => {
                Self::FullAtChange { operation, path, needed_bytes, source }
            }
            Self::Permission { source, .. } => Self::Permission { operation, path, source },
            Self::Io { source, .. } => Self::Io { operation, path, source },
            other => other,
        }
    }

    /// As [`Self::of`], for an operation that needs this number of bytes on disk.
    pub(crate) fn for_space(
        operation: &'static str,
        path: &Path,
        needed_bytes: u64,
        source: io::Error,
    ) -> Self {
        Self::for_kernel(operation, path, Some(needed_bytes), source)
    }

    fn for_kernel(
        operation: &'static str,
        path: &Path,
        needed_bytes: Option<u64>,
        source: io::Error,
    ) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { operation, path, needed_bytes, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Permission { operation, path, source }
            }
            _ => Self::Io { operation, path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_names_the_bytes_that_are_known_to_be_needed() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let known = StoreError::for_space("store a trial in", Path::new("x"), 7, full()).to_string();
        assert!(known.contains("is used up (7 bytes are needed); make room"), "{known}");
        for error in [
            StoreError::of("create", Path::new("x"), full()),
            StoreError::of("create", Path::new("x"), full()).at_start(Path::new("x")),
            StoreError::of("create", Path::new("x"), full()).at_change("change run", Path::new("x")),
        ] {
            let unknown = error.to_string();
            assert!(unknown.contains("make room") && !unknown.contains("bytes"), "{unknown}");
        }
    }

    #[test]
    fn limit_of_file_sizes_is_named_as_such() {
        let error = || io::Error::from(io::ErrorKind::FileTooLarge);
        let of = || StoreError::for_space("store a trial in", Path::new("x"), 7, error());
        for error in [of(), of().at_start(Path::new("x")), of().at_change("change run", Path::new("x"))] {
            let text = error.to_string();
            let is_named =
                text.contains("x: the file would exceed the limit of file sizes (7 bytes are needed); ");
            assert!(is_named && text.contains("raise the limit of file sizes (`ulimit -f`"), "{text}");
            assert!(!text.contains("another disk"), "{text}");
        }
    }

    #[test]
    fn path_of_a_file_that_is_no_run_can_be_replaced_and_that_of_a_folder_stays() {
        let denied = |path: &str| {
            StoreError::of("open", Path::new(path), io::Error::from(io::ErrorKind::PermissionDenied))
        };
        let reason = "it is empty".to_owned();
        let mut no_run = StoreError::NotARun { path: PathBuf::from("by-someone"), reason };
        for error in [&mut no_run, &mut denied("/runs/by-someone.netduel")] {
            let path = error.unread_file().expect("a run file");
            path.set_file_name("file-1");
            let text = error.to_string();
            assert!(text.contains("file-1") && !text.contains("by-someone"), "{text}");
        }
        assert_eq!(denied("/runs").unread_file(), None);
    }

    #[test]
    fn error_of_a_change_names_the_change_and_no_run_to_resume() {
        let of = |kind: io::ErrorKind| {
            let error = StoreError::of("write run", Path::new(".x.new"), io::Error::from(kind));
            error.at_change("change the title and notes of run", Path::new("x.netduel")).to_string()
        };
        for kind in
            [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied, io::ErrorKind::NotADirectory]
        {
            let text = of(kind);
            assert!(text.starts_with("failed to change the title and notes of run x.netduel: "), "{text}");
            assert!(!text.contains("resume"), "{text}");
        }
        assert!(of(io::ErrorKind::StorageFull).contains("make room and repeat the command"));
    }
}
