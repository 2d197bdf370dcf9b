//! The journal of a guard: what it keeps, line by line in a file, for the case that agent and guard are killed together. The next
//! agent in the same network namespace finds it and restores the settings.
//!
//! A journal belongs to one boot and one network namespace. Its guard holds a lock on it (flock(2)), which the kernel drops with the
//! process, so a journal whose lock is free has no guard any more. It is trusted only when no other user can write it.
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use netduel_control::protocol::Recovery;
use netduel_model::PROGRAM;
use netduel_sys::namespace::network_cookie;
use netduel_sys::namespace_handle::NamespaceHandle;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error_chain::chain;

use super::error::TreatmentError;
use super::in_force::InForce;
use super::protocol::Request;

/// The version of what is in a journal: its first line, and [`Request`] with the records in it. A change of either is a new version.
///
/// - 1: the first.
const VERSION: u32 = 1;
/// Longest journal that is read, bytes: a record is some hundred bytes, an RSS table some thousand.
const LEN_MAX: u64 = 4 << 20;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Head {
    journal: u32,
    /// The program that wrote it, name and version.
    program: String,
    /// `/proc/sys/kernel/random/boot_id`: settings do not outlive a boot.
    boot: String,
    /// The cookie of the network namespace.
    namespace: u64,
    /// The file handle of the network namespace, which tells whether it still exists; absent before Linux 6.18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace_handle: Option<String>,
}

impl Head {
    /// That of a journal which is written now; `None` where boot or namespace has no identifier.
    fn now() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace_handle = NamespaceHandle::of_network().ok().map(|handle| handle.to_string());
        let program = PROGRAM.to_owned();
        Some(Self { journal: VERSION, program, boot, namespace: network_cookie().ok()?, namespace_handle })
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
    fn of_name(name: &str) -> Option<Self> {
        [Self::Coordinator, Self::Agent].into_iter().find(|keeper| name.starts_with(keeper.prefix()))
    }
}

/// A guard's journal.
pub(super) struct Journal {
    /// Where it is when there is something in it; `None` where this host has no place for it.
    place: Option<(OwnedFd, PathBuf, String)>,
    head: Option<Head>,
    file: Option<File>,
}

impl Journal {
    /// With nothing in it, and no file yet.
    pub(super) fn new(keeper: Keeper) -> Self {
        Self::within(&folders(), keeper)
    }

    /// As [`Self::new`], in the first of some folders that only this user can write.
    pub(super) fn within(folders: &[PathBuf], keeper: Keeper) -> Self {
        let head = Head::now();
        let place = head.as_ref().and_then(|_| {
            let (folder, path) =
                folders.iter().find_map(|path| Some((own_folder(path, true).ok()?, path)))?;
            let random = netduel_sys::random::bytes16().ok()?;
            let name = format!("{}{:032x}", keeper.prefix(), u128::from_ne_bytes(random));
            Some((folder, path.join(&name), name))
        });
        Self { place, head, file: None }
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|(_, path, _)| path.clone())
    }

    /// Adds a request; the file is made with the first.
    pub(super) fn note(&mut self, request: &Request) -> io::Result<()> {
        let Some((folder, _, name)) = &self.place else { return Ok(()) };
        if self.file.is_none() {
            let mut file = File::from(locked(folder, name)?);
            write_line(&mut file, &self.head)?;
            self.file = Some(file);
        }
        self.file.as_mut().map_or(Ok(()), |file| write_line(file, request))
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

/// Ends the lock of a journal. Closing the file may not unlock it: a child that another thread starts has the descriptor until it executes
/// its program.
fn unlock(file: &impl AsFd) {
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

/// One write for a line, so that a killed guard leaves whole lines and at most one that is cut off.
fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(value).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// Where journals may be: a folder that goes with the boot, else one of the user's own.
pub(crate) fn folders() -> Vec<PathBuf> {
    let user = geteuid();
    let mut folders = Vec::new();
    if user.is_root() {
        folders.push(PathBuf::from("/run/netduel"));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
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
fn is_own(file: &OwnedFd, kind: FileType) -> io::Result<bool> {
    let found = fstat(file)?;
    let others = found.st_mode & 0o077;
    Ok(FileType::from_raw_mode(found.st_mode) == kind && found.st_uid == geteuid().as_raw() && others == 0)
}

/// Removes the journal of a guard that is gone, after its agent has undone everything by itself.
pub(super) fn discard(path: &Path) {
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && let Ok(folder) = own_folder(folder, false)
    {
        let _ = unlinkat(&folder, name, AtFlags::empty());
    }
}

/// Restores what agents and coordinators of this network namespace left behind which were killed together with their guards.
pub fn recover() -> Recovery {
    recover_within(&folders())
}

fn recover_within(folders: &[PathBuf]) -> Recovery {
    let mut recovery = Recovery::default();
    let Some(head) = Head::now() else { return recovery };
    for path in folders {
        let Ok(folder) = own_folder(path, false) else { continue };
        let Ok(entries) = Dir::read_from(&folder) else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| Keeper::of_name(name).is_some()).collect();
        names.sort_unstable();
        for name in names {
            // One that cannot be opened or read is not ours, or went meanwhile.
            let _ = recover_one(&folder, &path.join(&name), &name, &head, &mut recovery);
        }
    }
    recovery
}

/// The journal of an agent's guard that lives in this network namespace: its agent makes changes, or has ended and the guard restores them.
pub(crate) fn with_guard() -> Option<PathBuf> {
    with_guard_within(&folders())
}

fn with_guard_within(folders: &[PathBuf]) -> Option<PathBuf> {
    let head = Head::now()?;
    folders.iter().find_map(|path| {
        let folder = own_folder(path, false).ok()?;
        let names = Dir::read_from(&folder).ok()?.flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .find(|name| Keeper::of_name(name) == Some(Keeper::Agent) && has_guard(&folder, name, &head))
            .map(|name| path.join(name))
    })
}

fn has_guard(folder: &OwnedFd, name: &str, head: &Head) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return false };
    if !is_own(&file, FileType::RegularFile).unwrap_or(false) {
        return false;
    }
    if flock(&file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK) {
        unlock(&file);
        return false;
    }
    let mut first = String::new();
    // A journal without a first line yet is that of an agent which is about to make changes.
    let _ = BufReader::new(File::from(file)).take(LEN_MAX).read_line(&mut first);
    let its: Option<serde_json::Value> = serde_json::from_str(&first).ok();
    its.is_none_or(|its| {
        its.get("boot").and_then(serde_json::Value::as_str) == Some(head.boot.as_str())
            && its.get("namespace").and_then(serde_json::Value::as_u64) == Some(head.namespace)
    })
}

fn recover_one(
    folder: &OwnedFd,
    path: &Path,
    name: &str,
    head: &Head,
    recovery: &mut Recovery,
) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::APPEND;
    let file = openat(folder, name, flags, Mode::empty())?;
    if !is_own(&file, FileType::RegularFile)? {
        return Ok(());
    }
    // Its guard lives, or another agent is at it.
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let mut file = File::from(file);
    let recovered = recover_locked(&mut file, folder, (path, name), head, recovery);
    unlock(&file);
    recovered
}

/// Restores what a journal has whose lock this process holds.
fn recover_locked(
    file: &mut File,
    folder: &OwnedFd,
    (path, name): (&Path, &str),
    head: &Head,
    recovery: &mut Recovery,
) -> io::Result<()> {
    if fstat(&*file)?.st_nlink == 0 {
        return Ok(());
    }
    let mut bytes = Vec::new();
    (&mut *file).take(LEN_MAX + 1).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let remove = || unlinkat(folder, name, AtFlags::empty()).map_err(io::Error::from);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    let its = match serde_json::from_str::<serde_json::Value>(first) {
        Ok(its) => its,
        // The guard was killed before it had written anything that was acknowledged.
        Err(_) if !first.ends_with('\n') => return remove(),
        Err(_) => {
            recovery.problems.push(damaged(path, 1));
            return Ok(());
        }
    };
    match its.get("boot").and_then(serde_json::Value::as_str) {
        Some(boot) if boot == head.boot => {}
        Some(_) => return remove(),
        None => {
            recovery.problems.push(damaged(path, 1));
            return Ok(());
        }
    }
    if its.get("namespace").and_then(serde_json::Value::as_u64) != Some(head.namespace) {
        return if is_gone(&its) { remove() } else { Ok(()) };
    }
    let version = its.get("journal").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let program =
            its.get("program").and_then(serde_json::Value::as_str).unwrap_or("another version of netduel");
        recovery.problems.push(format!(
            "failed to restore the settings in {}: {program} wrote it with journal version {}, and {PROGRAM} reads version {VERSION}; run an \
             agent of {program} on this host, or restore the settings by hand and remove the file",
            path.display(),
            version.map_or_else(|| "unknown".to_owned(), |version| version.to_string()),
        ));
        return Ok(());
    }
    if bytes.len() as u64 > LEN_MAX {
        recovery.problems.push(too_long(path));
        return Ok(());
    }
    let (in_force, damaged_lines) = records(lines);
    recovery.problems.extend(damaged_lines.iter().map(|line| damaged(path, *line)));
    let what = in_force.what();
    let left = in_force.undo_all(|id| drop(write_line(file, &Request::Forget { id })));
    if left.is_empty() && damaged_lines.is_empty() {
        remove()?;
    }
    recovery
        .restored
        .extend(what.into_iter().filter(|what| !left.iter().any(|failed| failed.is_about(what))));
    recovery.problems.extend(left.iter().map(|failed| left_behind(failed, Some(path))));
    Ok(())
}

/// The changes that are in force by the lines after the first, and the numbers of damaged lines.
fn records<'t>(lines: impl Iterator<Item = &'t str>) -> (InForce, Vec<usize>) {
    let (mut in_force, mut damaged_lines) = (InForce::default(), Vec::new());
    for (line, number) in lines.zip(2..) {
        match serde_json::from_str(line) {
            Ok(request) => drop(in_force.note(request)),
            // The last line may be cut off: it was not acknowledged then.
            Err(_) if !line.ends_with('\n') => {}
            Err(_) => damaged_lines.push(number),
        }
    }
    (in_force, damaged_lines)
}

/// The changes that are in force by the text of a journal, in words, and the numbers of its damaged lines. Restores nothing.
pub fn journaled(text: &str) -> (Vec<String>, Vec<usize>) {
    let (in_force, damaged_lines) = records(text.split_inclusive('\n').skip(1));
    (in_force.what(), damaged_lines)
}

/// The problem of a change that could not be undone. As long as the journal has its record, each agent tries to undo it again, and no run
/// measures on this host.
pub(crate) fn left_behind(failed: &TreatmentError, journal: Option<&Path>) -> String {
    let end = journal.map(|path| format!("; when all is undone, remove {}", path.display()));
    format!("failed to {}{}", chain(failed), end.unwrap_or_default())
}

/// The problem of a line that cannot be read.
fn damaged(path: &Path, line: usize) -> String {
    unreadable(&format!("line {line} of {}: it is damaged", path.display()))
}

/// The problem of a journal that has more than is read of it. Half of it does not tell which changes are in force.
fn too_long(path: &Path) -> String {
    unreadable(&format!("{}: it is longer than {} MiB", path.display(), LEN_MAX >> 20))
}

fn unreadable(what: &str) -> String {
    format!(
        "failed to read {what}; settings that an earlier run changed may still be changed: compare them with the plan of that run, restore them \
         by hand, and remove the file"
    )
}

/// Whether the network namespace of a journal is certainly gone, and its settings with it: the kernel knows its file handle no more, and
/// this agent may open every namespace. Where the kernel has no such handles, or this agent is not root, it may exist.
fn is_gone(head: &serde_json::Value) -> bool {
    let handle = head.get("namespace_handle").and_then(serde_json::Value::as_str);
    let handle = handle.and_then(|text| text.parse::<NamespaceHandle>().ok());
    handle.is_some_and(|handle| handle.exists().is_ok_and(|exists| !exists))
}

#[cfg(test)]
mod tests;
