//! The journal of a guard: what it keeps, line by line in a file, for the case that agent and guard are killed together. The next
//! agent in the same network namespace finds it and restores the settings (`recovery`).
//!
//! A journal of an agent belongs to one boot and one network namespace. What a coordinator changes outlives both, and so does its journal. The guard
//! has a lock on a journal (flock(2)), and so has the process that makes the changes ([`HOLDER_BYTE`], `held_journal`). The kernel drops each with
//! its process: no process is left to undo the changes of a journal without both. It is trusted only when no other user can write it.
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use netduel_model::PROGRAM;
use netduel_sys::clock::monotonic_ns;
use netduel_sys::namespace::network_cookie;
use netduel_sys::namespace_handle::NamespaceHandle;
use netduel_sys::range_lock;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, fsync, openat, unlinkat};
use rustix::io::retry_on_intr;
use rustix::process::getppid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own_folder::{folders, is_own, own_folder};
use super::protocol::Request;

/// The version of what is in a journal: its first line, and [`Request`] with the records in it. A change of either is a new version.
///
/// - 1: the first.
pub(super) const VERSION: u32 = 1;
/// Longest journal that is read, bytes: a record is some hundred bytes, an RSS table some thousand.
pub(super) const LEN_MAX: u64 = 4 << 20;

/// The byte that the process has locked which makes the changes in a journal (`range_lock`). The guard has a lock of another kind, so that each
/// is distinguished from the other.
pub(super) const HOLDER_BYTE: i64 = 0;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Head {
    journal: u32,
    /// The program that wrote it, name and version.
    program: String,
    /// `/proc/sys/kernel/random/boot_id`: settings do not outlive a boot.
    pub(super) boot: String,
    /// The cookie of the network namespace.
    pub(super) namespace: u64,
    /// The file handle of the network namespace, which tells whether it still exists; absent before Linux 6.18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace_handle: Option<String>,
    /// The process whose changes these are. An agent has several guards while traffic of a trial changes its interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<u32>,
    /// When the first change was recorded, nanoseconds of the monotonic clock: changes are undone in reverse, also those of several journals.
    pub(super) made_ns: u64,
}

impl Head {
    /// That of a journal which the guard of the parent process writes now; `None` where boot or namespace has no identifier.
    pub(super) fn now() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace_handle = NamespaceHandle::of_network().ok().map(|handle| handle.to_string());
        Some(Self {
            journal: VERSION,
            program: PROGRAM.to_owned(),
            boot,
            namespace: network_cookie().ok()?,
            namespace_handle,
            agent: getppid().map(|parent| parent.as_raw_nonzero().get().unsigned_abs()),
            made_ns: monotonic_ns(),
        })
    }
}

/// Whose changes a guard keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// Those of an agent, to the settings of this host: no other agent begins before they are restored.
    Agent,
    /// Those of a coordinator, to resources of a provider. It may run on the host of one of its agents, which starts while they are in force.
    Coordinator,
}

impl Keeper {
    /// What the name of a journal begins with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "undo-",
            Self::Coordinator => "undo-coordinator-",
        }
    }

    /// Whose journal has this name, if it is one.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        [Self::Coordinator, Self::Agent].into_iter().find(|keeper| name.starts_with(keeper.prefix()))
    }
}

/// Where the journals of a keeper may be, the best place first. `lasting`: a folder that outlives a boot, as the changes of a coordinator do.
pub(super) fn places(keeper: Keeper, lasting: Option<PathBuf>) -> Vec<PathBuf> {
    let lasting = lasting.filter(|_| keeper == Keeper::Coordinator);
    lasting.into_iter().chain(folders()).collect()
}

/// A guard's journal.
pub(super) struct Journal {
    keeper: Keeper,
    /// Where it is when there is something in it; `None` where this host has no place for it.
    place: Option<(OwnedFd, PathBuf, String)>,
    head: Option<Head>,
    file: Option<File>,
}

impl Journal {
    /// With nothing in it, and no file yet. `lasting`: as of [`places`].
    pub(super) fn new(keeper: Keeper, lasting: Option<PathBuf>) -> Self {
        Self::within(&places(keeper, lasting), keeper)
    }

    /// As [`Self::new`], in the first of some folders that only this user can write.
    pub(super) fn within(folders: &[PathBuf], keeper: Keeper) -> Self {
        let head = Head::now();
        let place = head.as_ref().and_then(|_| {
            let (folder, path) = folders.iter().find_map(|path| Some((folder_for(keeper, path)?, path)))?;
            let random = netduel_sys::random::bytes16().ok()?;
            let name = format!("{}{:032x}", keeper.prefix(), u128::from_ne_bytes(random));
            Some((folder, path.join(&name), name))
        });
        Self { keeper, place, head, file: None }
    }

    /// Its first line, when there is something in it.
    pub(super) fn head(&self) -> Option<&Head> {
        self.head.as_ref().filter(|_| self.file.is_some())
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|(_, path, _)| path.clone())
    }

    /// Adds a request; the file is made with the first. After an error the journal is as it was before.
    pub(super) fn note(&mut self, request: &Request) -> io::Result<()> {
        let Some((folder, _, name)) = &self.place else { return Ok(()) };
        if self.file.is_none() {
            self.head.iter_mut().for_each(|head| head.made_ns = monotonic_ns());
            let mut file = File::from(locked(folder, name)?);
            if let Err(cause) = write_line(&mut file, &self.head) {
                // A file without its first line would be in the way of the next request.
                let _ = unlinkat(folder, name.as_str(), AtFlags::empty());
                unlock(&file);
                return Err(cause);
            }
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        write_line(file, request)?;
        if self.keeper == Keeper::Coordinator && matches!(request, Request::Keep { .. }) {
            // The change outlives a power failure. Where this fails the record does not, and is of use in every other case.
            let _ = file.sync_data().and_then(|()| Ok(fsync(folder)?));
        }
        Ok(())
    }

    /// Removes the file: nothing is left to restore.
    pub(super) fn remove(&mut self) {
        // Its lock ends after its name: the next holder of the lock finds a journal that is still needed, or none.
        if let Some(file) = self.file.take()
            && let Some((folder, _, name)) = &self.place
        {
            let _ = unlinkat(folder, name.as_str(), AtFlags::empty());
            unlock(&file);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            unlock(file);
        }
    }
}

/// The folder for a journal, made if it is not there. `None` when it can have none.
fn folder_for(keeper: Keeper, path: &Path) -> Option<OwnedFd> {
    let folder = own_folder(path, true).ok()?;
    // That of a coordinator may be on a file system of the network.
    let has_locks = keeper == Keeper::Agent || has_both_locks(&folder).unwrap_or(false);
    has_locks.then_some(folder)
}

/// Whether a file in a folder can have both locks of a journal, that of the guard and that of the process that makes the changes. On NFS the two
/// exclude each other (flock(2)).
fn has_both_locks(folder: &OwnedFd) -> io::Result<bool> {
    let name = format!("locks-{:032x}", u128::from_ne_bytes(netduel_sys::random::bytes16()?));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || openat(folder, name.as_str(), flags, Mode::RUSR | Mode::WUSR);
    let locked = open().and_then(|guards| Ok((guards, open()?))).map_err(io::Error::from);
    let locked = locked.and_then(|(guards, makers)| {
        flock(&guards, FlockOperation::NonBlockingLockExclusive)?;
        range_lock::try_lock(makers.as_fd(), HOLDER_BYTE)
    });
    let _ = unlinkat(folder, name.as_str(), AtFlags::empty());
    locked
}

/// Ends the lock of a journal. Closing the file may not unlock it: a child that another thread starts has the descriptor until it executes
/// its program.
pub(super) fn unlock(file: &impl AsFd) {
    let _ = flock(file, FlockOperation::Unlock);
}

/// A new file with its lock. An agent that looks through the journals may lock it first, for a moment, and removes it because it is
/// empty: then it is made again.
fn locked(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::APPEND;
    loop {
        let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// One write for a line, so that a killed guard leaves whole lines and at most one that is cut off. A full file system cuts a line off as
/// well: what is there of it is removed again, because the next line would continue it.
pub(super) fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(value).map_err(io::Error::other)?;
    line.push('\n');
    let end = file.metadata()?.len();
    file.write_all(line.as_bytes()).inspect_err(|_| drop(file.set_len(end)))
}

/// Takes a last line away that a killed guard left cut off: it was never confirmed, and what is written next would continue it.
pub(super) fn cut_torn_line(file: &mut File) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if whole < bytes.len() { file.set_len(whole as u64) } else { Ok(()) }
}

/// Opens a journal to read it and to add lines, when it is a file that no other user can write.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let (folder, name) = place(path)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::APPEND;
    let file = openat(&folder, name, flags, Mode::empty())?;
    if is_own(&file, FileType::RegularFile)? {
        Ok(File::from(file))
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Removes a journal: nothing in it is left to restore.
pub(super) fn discard(path: &Path) -> io::Result<()> {
    let (folder, name) = place(path)?;
    Ok(unlinkat(&folder, name, AtFlags::empty())?)
}

/// The folder of a journal, and its name there.
fn place(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((own_folder(folder, false)?, name))
}

#[cfg(test)]
mod tests;
