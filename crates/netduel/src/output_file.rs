//! Every file that a command writes, apart from runs: reports, man pages, pairings, the identity of a server, the step summary of a
//! workflow. The content is not made here.
//!
//! A regular file is replaced by a rename(2): its draft ([`drafts`]) is in the same folder, and that of a killed process is removed by the next
//! write to this folder. Anything else that exists, as a terminal, a pipe or /dev/stdout, is written into. A file that the command reads and a run
//! of its store are not replaced ([`kept_files`]).
mod stream;

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use netduel_store::drafts;
use netduel_store::folder::{self, LINKS_MAX, check_owner};
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags, access, fstat, open, statx,
};

use crate::kept_files;

use stream::Stream;

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Everybody whom the umask allows.
    Umask,
    /// Its owner: it contains a secret, or all that is known of hosts.
    Owner,
}

impl Readers {
    fn mode(self) -> Mode {
        match self {
            Self::Umask => Mode::from_raw_mode(0o666),
            Self::Owner => Mode::from_raw_mode(0o600),
        }
    }
}

/// Creates a folder for [`write()`] and the folders that it is in, as far as they are missing.
///
/// # Errors
/// The error of the system; a link that another user has planted on the way is refused.
pub fn create_folder(path: &Path) -> io::Result<()> {
    folder::create(path).map(drop)
}

/// Writes to what a path names: a regular file is replaced atomically by one with these readers, what exists and is none is written into.
/// The folder exists.
///
/// # Errors
/// The error of the system; a folder, a link or pipe of another user, a link without a target, an input of the command and a run of its store
/// are refused.
pub fn write(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    match Target::of(path)? {
        Target::File(path) => replace(&path, content, readers),
        Target::Stdout => written(&mut io::stdout().lock(), content),
        Target::Stderr => written(&mut io::stderr().lock(), content),
        Target::Stream(stream) => written(&mut stream.open(readers)?, content),
    }
}

/// The error of [`write()`] where the path names an input of the command, or a run of its store.
pub fn refusal(path: &Path) -> Option<io::Error> {
    Target::of(path).err().filter(kept_files::is_refusal)
}

/// Whether [`write()`] would write into what is no file: it may be a terminal, or what a workflow reads.
pub fn is_stream(path: &Path) -> bool {
    matches!(Target::of(path), Ok(Target::Stdout | Target::Stderr | Target::Stream(_)))
}

/// Opens what a path names to add to its end; a missing file is created. A pipe without a reader is an error: to wait for one would hold up
/// a result.
///
/// # Errors
/// As [`write()`].
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(match Target::of(path)? {
        Target::File(path) => {
            open(&path, flags | OFlags::CREATE | OFlags::NOFOLLOW, Readers::Umask.mode())?.into()
        }
        Target::Stream(stream) => stream.open_with(flags)?,
        Target::Stdout => io::stdout().as_fd().try_clone_to_owned()?.into(),
        Target::Stderr => io::stderr().as_fd().try_clone_to_owned()?.into(),
    })
}

/// Whether [`write()`] could write to the path now: an empty draft is made beside a file and removed again, a device or pipe is not opened.
///
/// # Errors
/// As [`write()`].
pub fn check(path: &Path) -> io::Result<()> {
    match Target::of(path)? {
        Target::File(path) => {
            check_replaceable(&path)?;
            let (draft, _) = draft(&path, Readers::Owner)?;
            fs::remove_file(draft)
        }
        Target::Stream(stream) => Ok(access(&stream.path, Access::WRITE_OK)?),
        Target::Stdout | Target::Stderr => Ok(()),
    }
}

/// Replaces a file atomically, or creates it. A link of this name is replaced, not followed.
///
/// # Errors
/// The error of the system; the old file is then unchanged.
pub fn replace(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    finish(path, content, readers, |draft| fs::rename(draft, path))
}

/// Creates a file with its whole content, or leaves the existing one.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`], or the error of the system.
pub fn create(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    finish(path, content, readers, |draft| fs::hard_link(draft, path).and_then(|()| fs::remove_file(draft)))
}

/// Writes a draft, makes it durable and gives it its name.
fn finish(
    path: &Path,
    content: &[u8],
    readers: Readers,
    name: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    drafts::remove_abandoned(folder_of(path), drafts::is_draft);
    let (draft, mut file) = draft(path, readers)?;
    let finished = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| name(&draft));
    if let Err(error) = finished {
        // Best effort: the draft is as private as the file itself, and is not read again.
        drop(fs::remove_file(&draft));
        return Err(error);
    }
    File::open(folder_of(path))?.sync_all()
}

/// A new empty file beside another one.
fn draft(path: &Path, readers: Readers) -> io::Result<(PathBuf, File)> {
    drafts::create(folder_of(path), readers.mode())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes to a descriptor that others may read. A reader that has gone has read what it wanted, as in `| head`.
fn written(out: &mut impl io::Write, content: &[u8]) -> io::Result<()> {
    match out.write_all(content).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, or none yet; links to it are resolved.
    File(PathBuf),
    /// A device or a pipe.
    Stream(Stream),
    /// This program's standard output. It is not opened anew: a socket cannot be opened, and a file would be overwritten from its beginning.
    Stdout,
    /// Its standard error.
    Stderr,
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let (mut path, mut links) = (path.to_owned(), 0);
        let named = loop {
            folder::check(folder_of(&path))?;
            let named = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound && links == 0 => {
                    return Ok(Self::File(path));
                }
                named => named?,
            };
            if !named.is_symlink() {
                break named;
            }
            check_owner(&path, "link", named.uid())?;
            links += 1;
            if links > LINKS_MAX {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let next = folder_of(&path).join(fs::read_link(&path)?);
            if fs::symlink_metadata(&next).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                // A link of /proc to a pipe, a socket or a deleted file has a target, which has no name.
                break fs::metadata(&path).map_err(|error| match error.kind() {
                    ErrorKind::NotFound => {
                        io::Error::other(format!("{} is a link to a missing file", path.display()))
                    }
                    _ => error,
                })?;
            }
            path = next;
        };
        Ok(match named {
            named if links > 0 && is_open_as(&named, io::stdout()) => Self::Stdout,
            named if links > 0 && is_open_as(&named, io::stderr()) => Self::Stderr,
            named if named.is_dir() => {
                return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder"));
            }
            named if named.is_file() && fs::symlink_metadata(&path).is_ok_and(|named| named.is_file()) => {
                kept_files::refuse(&path, folder_of(&path), &named)?;
                Self::File(path)
            }
            named if named.file_type().is_block_device() => {
                return Err(io::Error::other("it is a disk (a block device), whose content would be lost"));
            }
            named => Self::Stream(Stream::of(path, &named)?),
        })
    }
}

/// Whether a file is the one behind a descriptor.
fn is_open_as(named: &Metadata, descriptor: impl AsFd) -> bool {
    fstat(descriptor).is_ok_and(|open| (open.st_dev, open.st_ino) == (named.dev(), named.ino()))
}

/// Finds what refuses the rename of a draft to the name of an existing file, although the draft can be made.
fn check_replaceable(path: &Path) -> io::Result<()> {
    let Ok(there) = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::UID) else { return Ok(()) };
    let has = |attribute: StatxAttributes| there.stx_attributes.contains(attribute);
    let denied = |text: &str| Err(io::Error::new(ErrorKind::PermissionDenied, text));
    if has(StatxAttributes::IMMUTABLE) || has(StatxAttributes::APPEND) {
        return denied("it has the attribute immutable or append-only (`chattr -ia` removes them)");
    }
    if has(StatxAttributes::MOUNT_ROOT) {
        return denied("it is a mount point, which cannot be replaced");
    }
    let folder = fs::metadata(folder_of(path))?;
    let user = rustix::process::geteuid().as_raw();
    let is_sticky = folder.mode() & Mode::from_raw_mode(0o1000).bits() != 0;
    if is_sticky && user != 0 && there.stx_uid != user && folder.uid() != user {
        return denied(
            "it belongs to another user, and its folder lets only the owner replace it (sticky bit)",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use rustix::fs::{FileType, mknodat};

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("listed").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn file_is_replaced_whole_and_its_draft_is_gone() {
        let folder = folder();
        let path = folder.path().join("x");
        write(&path, b"long content", Readers::Umask).expect("created");
        write(&path, b"short", Readers::Umask).expect("replaced");
        assert_eq!(fs::read(&path).expect("read"), b"short");
        assert_eq!(names(folder.path()), ["x"]);
        let error = create(&path, b"other", Readers::Owner).expect_err("it exists");
        assert_eq!(
            (error.kind(), fs::read(&path).expect("read")),
            (ErrorKind::AlreadyExists, b"short".to_vec())
        );
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn draft_of_an_ended_process_is_removed_by_the_next_write() {
        let folder = folder();
        let make = |name: &str, is_old: bool| {
            let path = folder.path().join(name);
            let file = File::create(&path).expect("created");
            if is_old {
                file.set_modified(std::time::UNIX_EPOCH).expect("its time can be set");
            }
            (path, file)
        };
        let name = |digit: &str| format!(".part-{}", digit.repeat(32));
        let (left, _) = make(&name("a"), true);
        let (live, held) = make(&name("b"), true);
        drafts::hold(&held).expect("locked");
        let (young, _) = make(&name("c"), false);
        let (foreign, _) = make(".part-of-a-book", true);
        let (link, target) = (folder.path().join(name("d")), folder.path().join("target"));
        fs::write(&target, "x").expect("written");
        symlink(&target, &link).expect("linked");
        write(&folder.path().join("report.html"), b"page", Readers::Umask).expect("written");
        assert!(!left.exists());
        assert!([live, young, foreign, link, target].iter().all(|path| path.exists()));
        // The draft of this process is locked as long as it is one.
        let (own, open) = draft(&folder.path().join("x"), Readers::Owner).expect("made");
        open.set_modified(std::time::UNIX_EPOCH).expect("its time can be set");
        write(&folder.path().join("report.html"), b"page", Readers::Umask).expect("written");
        assert!(own.exists());
        // A child that another test starts may have the descriptor for a moment: to close it would not unlock the draft.
        open.unlock().expect("unlocked");
        write(&folder.path().join("report.html"), b"page", Readers::Umask).expect("written");
        assert!(!own.exists());
    }

    #[test]
    fn secret_is_readable_by_its_owner_only() {
        type Write = fn(&Path, &[u8], Readers) -> io::Result<()>;
        let folder = folder();
        let ways: [(&str, Write); 3] = [("written", write), ("replaced", replace), ("created", create)];
        for (name, write) in ways {
            let path = folder.path().join(name);
            write(&path, b"x", Readers::Owner).expect("written");
            assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn pipe_is_written_into_and_stays_a_pipe() {
        let folder = folder();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        // Linux opens a pipe for both directions without waiting for another end.
        let mut reader = File::options().read(true).write(true).open(&path).expect("opened");
        check(&path).and_then(|()| write(&path, b"text", Readers::Umask)).expect("written");
        let mut text = [0; 4];
        reader.read_exact(&mut text).expect("read");
        assert_eq!(&text, b"text");
        assert!(fs::symlink_metadata(&path).expect("there").file_type().is_fifo());
    }

    #[test]
    fn own_link_keeps_naming_the_file_that_is_replaced() {
        let folder = folder();
        let (link, file) = (folder.path().join("latest"), folder.path().join("file"));
        fs::write(&file, "old").expect("written");
        symlink("file", &link).expect("linked");
        check(&link).and_then(|()| write(&link, b"new", Readers::Umask)).expect("written");
        assert_eq!(fs::read(&file).expect("read"), b"new");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        fs::remove_file(&file).expect("removed");
        let error = check(&link).expect_err("no target");
        assert!(error.to_string().contains("link to a missing file"), "{error}");
    }

    #[test]
    fn what_cannot_be_replaced_is_found_before_it_is_written() {
        let folder = folder();
        let error = check(folder.path()).expect_err("a folder");
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        let loops = folder.path().join("loop");
        symlink("loop", &loops).expect("linked");
        check(&loops).expect_err("a loop");
        check(&folder.path().join("missing/x")).expect_err("no folder");
        assert_eq!(names(folder.path()), ["loop"]);
    }
}
