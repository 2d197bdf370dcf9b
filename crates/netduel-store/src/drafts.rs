//! Drafts: files that get their name when they are whole. Their own names are random, and they are opened with `O_EXCL` and `O_NOFOLLOW`, so
//! that a link that another user has planted is neither followed nor overwritten. A process that is killed leaves its draft, which a later one
//! removes. Nothing here knows what a draft becomes.
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::run_file;
use crate::writer;

/// What the name of a draft begins with.
const START: &str = ".part-";
/// Hexadecimal digits behind it.
const DIGITS: usize = 32;
/// A draft that was changed since may belong to a process that is about to lock it.
const AGE_MIN: Duration = Duration::from_secs(60);

/// Creates an empty draft in a folder, to be read and written, and locks it as [`hold`] does where the file system can. Its name is not that of
/// the process: in containers that share a folder every program may be process 1, and a name that can be predicted can be planted.
///
/// # Errors
/// That of the system.
pub fn create(folder: &Path, mode: Mode) -> io::Result<(PathBuf, File)> {
    let name = random()?;
    let draft = folder.join(format!("{START}{name:0DIGITS$x}"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(open(&draft, flags, mode)?);
    // A file system without locks: no process removes the draft of another there.
    drop(hold(&file));
    Ok((draft, file))
}

/// Whether a file has the name of a draft.
pub fn is_draft(name: &str) -> bool {
    let digits = name.strip_prefix(START);
    digits.is_some_and(|text| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn random() -> io::Result<u128> {
    let mut bytes = [0_u8; 16];
    // So few bytes come whole (getrandom(2)).
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if count == bytes.len() {
        Ok(u128::from_ne_bytes(bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Locks a draft, so that [`remove_abandoned`] of other processes leaves it. The lock ends with the file, or with the process.
///
/// # Errors
/// That of a file system without locks, on which no draft is ever removed, or of a draft that another process has locked.
pub fn hold(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Removes the drafts of this user in a folder whose processes have ended: those that are not locked and were not changed within a minute of now.
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
        if is_own
            && metadata.modified().is_ok_and(|time| distance(time) >= AGE_MIN)
            && run_file::open_draft(&entry.path()).is_ok_and(|file| is_abandoned(&file))
        {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// The time between now and this time, which is in the future when the clock was set back since.
fn distance(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_else(|error| error.duration())
}

/// Whether no process has locked a draft. Where locks do not work, that is not known.
fn is_abandoned(file: &File) -> bool {
    let is_free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if is_free {
        writer::unlock(file);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn draft_has_a_name_of_its_own_and_is_private_and_locked() {
        let folder = tempfile::tempdir().unwrap();
        let make = || create(folder.path(), Mode::RUSR | Mode::WUSR).unwrap();
        let [(one, held), (other, _)] = [make(), make()];
        assert_ne!(one, other);
        for path in [&one, &other] {
            assert!(is_draft(path.file_name().unwrap().to_str().unwrap()), "{}", path.display());
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let again = File::open(&one).unwrap();
        assert!(hold(&again).is_err(), "another process could remove it");
        drop(held);
        for name in [".part-", ".part-x", "part-0123456789abcdef0123456789abcdef", ".x.netduel.new"] {
            assert!(!is_draft(name), "{name}");
        }
    }
}
