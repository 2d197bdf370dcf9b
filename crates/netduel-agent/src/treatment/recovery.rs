//! What is left in journals whose guards are gone: read, and restored. It writes no record of a change.
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use netduel_control::protocol::Recovery;
use netduel_model::PROGRAM;
use netduel_sys::namespace_handle::NamespaceHandle;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::Errno;

use crate::error_chain::chain;

use super::error::TreatmentError;
use super::in_force::InForce;
use super::journal::{
    Head, Keeper, LEN_MAX, VERSION, cut_torn_line, folders, is_own, own_folder, unlock, write_line,
};
use super::protocol::Request;

/// Restores what agents and coordinators of this network namespace left behind which were killed together with their guards.
pub fn recover() -> Recovery {
    recover_within(&folders())
}

pub(super) fn recover_within(folders: &[PathBuf]) -> Recovery {
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

pub(super) fn with_guard_within(folders: &[PathBuf]) -> Option<PathBuf> {
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
    // On a file system that became read-only the settings are restored all the same.
    let _ = cut_torn_line(file);
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
