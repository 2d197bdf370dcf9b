//! What is left in journals whose guards and agents are gone: read, and restored. It writes no record of a change.
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use netduel_control::protocol::Recovery;
use netduel_model::PROGRAM;
use netduel_sys::clock::{monotonic_ns, sleep_until};
use netduel_sys::namespace_handle::NamespaceHandle;
use netduel_sys::range_lock;
use rustix::fs::{Dir, FlockOperation, flock, fstat};
use rustix::io::Errno;
use serde_json::Value;

use crate::error_chain::chain;

use super::error::TreatmentError;
use super::in_force::InForce;
use super::journal::{
    HOLDER_BYTE, Head, Keeper, LEN_MAX, VERSION, cut_torn_line, discard, open, places, unlock, write_line,
};
use super::own_folder::{folders, own_folder};

/// What came of the journals of a host.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) recovery: Recovery,
    /// The journals with a problem.
    pub(crate) left: BTreeSet<PathBuf>,
}

/// Restores what agents of this network namespace left behind which were killed together with their guards.
pub fn recover() -> Recovery {
    recover_within(&folders(), Keeper::Agent)
}

/// The same for coordinators, in whatever boot and network namespace they were. It may take half an hour: an agent, whose coordinator waits for it,
/// must not do this. `lasting`: the folder of [`guard_main`](super::guard_main).
pub fn recover_coordinators(lasting: Option<PathBuf>) -> Recovery {
    recover_within(&places(Keeper::Coordinator, lasting), Keeper::Coordinator)
}

/// As [`recover`], without the journals in `known`.
pub(crate) fn recover_others(known: &BTreeSet<PathBuf>) -> Recovered {
    recover_others_within(&folders(), Keeper::Agent, known)
}

pub(super) fn recover_within(folders: &[PathBuf], whose: Keeper) -> Recovery {
    recover_others_within(folders, whose, &BTreeSet::new()).recovery
}

fn recover_others_within(folders: &[PathBuf], whose: Keeper, known: &BTreeSet<PathBuf>) -> Recovered {
    let Recovered { mut recovery, mut left } = Recovered::default();
    let Some(head) = Head::now() else { return Recovered { recovery, left } };
    let mut paths = journals(folders, whose);
    // The latest first: a change is undone after those that were made after it.
    let order = |path: &PathBuf| {
        let first = open(path).ok().and_then(First::read)?;
        // Each boot has a clock of its own.
        Some((first.is_of_boot(&head), first.made(&head).at_ns))
    };
    paths.sort_by_cached_key(|path| Reverse(order(path)));
    for path in paths.into_iter().filter(|path| !known.contains(path)) {
        let problems = recovery.problems.len();
        // One that cannot be opened or read is not ours, or went meanwhile.
        let _ = recover_one(&path, &head, &mut recovery);
        if recovery.problems.len() > problems {
            left.insert(path);
        }
    }
    Recovered { recovery, left }
}

/// The paths of the journals of agents or coordinators in some folders.
fn journals(folders: &[PathBuf], whose: Keeper) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in folders {
        let Ok(folder) = own_folder(path, false) else { continue };
        let Ok(entries) = Dir::read_from(&folder) else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        found.extend(names.map(|name| path.join(name)).filter(|path| keeper(path) == Some(whose)));
    }
    found.sort_unstable();
    found
}

fn keeper(path: &Path) -> Option<Keeper> {
    Keeper::of_name(path.file_name()?.to_str()?)
}

/// The journal of an agent in use in this network namespace: the agent makes changes, with a guard or without, or it has ended and its guard
/// restores them.
pub(crate) fn in_use() -> Option<PathBuf> {
    in_use_within(&folders())
}

pub(super) fn in_use_within(folders: &[PathBuf]) -> Option<PathBuf> {
    let head = Head::now()?;
    journals(folders, Keeper::Agent).into_iter().find(|path| is_in_use_here(path, &head))
}

fn is_in_use_here(path: &Path, head: &Head) -> bool {
    let Ok(file) = open(path) else { return false };
    // A journal without a first line yet is that of an agent which is about to make changes.
    is_in_use(&file) && First::read(file).is_none_or(|first| first.is_of(head))
}

/// Whether a guard, an agent that restores it, or the process that made its changes has a lock of a journal.
fn is_in_use(file: &File) -> bool {
    if flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return true;
    }
    unlock(file);
    range_lock::is_locked(file.as_fd(), HOLDER_BYTE).unwrap_or(false)
}

/// How long a guard waits for others of its agent, nanoseconds. A guard undoes in less time than an agent that ends waits for it.
const LATER_PATIENCE_NS: u64 = 30_000_000_000;
/// Until the next look whether another guard has ended, nanoseconds.
const LOOK_AGAIN_NS: u64 = 20_000_000;

/// Waits until the other guards of an agent have undone what it changed after the changes in this journal: they may return the device that
/// these changes are of, and with the settings of these changes.
pub(super) fn await_later(path: &Path, head: &Head) {
    let made = Made { agent: head.agent.map(u64::from), at_ns: head.made_ns };
    let deadline_ns = monotonic_ns().saturating_add(LATER_PATIENCE_NS);
    while is_later_in_use(path, made, head) && monotonic_ns() < deadline_ns {
        // A guard that ends sends no message to other processes.
        sleep_until(monotonic_ns() + LOOK_AGAIN_NS);
    }
}

/// Whether a later journal of the same agent is in use, of this boot and network namespace.
fn is_later_in_use(path: &Path, made: Made, head: &Head) -> bool {
    let (Some(folder), Some(whose)) = (path.parent(), keeper(path)) else { return false };
    let others = journals(&[folder.to_owned()], whose).into_iter().filter(|other| other != path);
    others.filter_map(|other| open(&other).ok()).any(|file| {
        let is_later = |first: First| first.is_of(head) && made.is_before(first.made(head));
        is_in_use(&file) && First::read(file).is_some_and(is_later)
    })
}

/// The process that made the changes of a journal, and since when, nanoseconds of the monotonic clock.
#[derive(Clone, Copy)]
struct Made {
    agent: Option<u64>,
    at_ns: u64,
}

impl Made {
    /// Whether the same process made these changes earlier than the others.
    fn is_before(self, other: Self) -> bool {
        self.agent.is_some() && self.agent == other.agent && self.at_ns < other.at_ns
    }
}

/// The first line of a journal, of any version.
struct First(Value);

impl First {
    /// `None` where it cannot be read.
    fn read(file: File) -> Option<Self> {
        let mut line = String::new();
        BufReader::new(file).take(LEN_MAX).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok().map(Self)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64)
    }

    /// By which process of this boot and network namespace, and when: elsewhere its number is that of another process.
    fn made(&self, head: &Head) -> Made {
        let agent = self.number("agent").filter(|_| self.is_of(head));
        Made { agent, at_ns: self.number("made_ns").unwrap_or_default() }
    }

    fn is_of_boot(&self, head: &Head) -> bool {
        self.text("boot") == Some(head.boot.as_str())
    }

    /// Whether it is of this boot and network namespace.
    fn is_of(&self, head: &Head) -> bool {
        self.is_of_boot(head) && self.number("namespace") == Some(head.namespace)
    }

    /// Whether the network namespace is certainly gone, and its settings with it: the kernel knows its file handle no more, and this agent may
    /// open every namespace. Where the kernel has no such handles, or this agent is not root, it may exist.
    fn is_gone(&self) -> bool {
        let handle = self.text("namespace_handle").and_then(|text| text.parse::<NamespaceHandle>().ok());
        handle.is_some_and(|handle| handle.exists().is_ok_and(|exists| !exists))
    }
}

/// What becomes of a journal.
enum Judged {
    /// It is restored, unless a later one of the same agent is in use.
    Ours(Made),
    /// Nothing in it can be in force.
    Obsolete,
    /// It is of another network namespace, which may exist.
    Elsewhere,
    /// It is not read, for this problem.
    Unread(String),
}

/// What becomes of a journal by its first line.
fn judged(line: &str, path: &Path, head: &Head) -> Judged {
    let first = match serde_json::from_str(line).map(First) {
        Ok(first) => first,
        // The guard was killed before it had written anything that was acknowledged.
        Err(_) if !line.ends_with('\n') => return Judged::Obsolete,
        Err(_) => return Judged::Unread(damaged(path, 1)),
    };
    if first.text("boot").is_none() {
        return Judged::Unread(damaged(path, 1));
    }
    // What a coordinator has changed is no part of this machine.
    let is_of_agent = keeper(path) == Some(Keeper::Agent);
    if is_of_agent && !first.is_of_boot(head) {
        return Judged::Obsolete;
    }
    if is_of_agent && !first.is_of(head) {
        return if first.is_gone() { Judged::Obsolete } else { Judged::Elsewhere };
    }
    let version = first.number("journal");
    if version == Some(u64::from(VERSION)) {
        return Judged::Ours(first.made(head));
    }
    let program = first.text("program").unwrap_or("another version of netduel");
    let remedy =
        if is_of_agent { "run an agent of" } else { "start a run that changes resources of Azure with" };
    Judged::Unread(format!(
        "failed to restore the settings in {}: {program} wrote it with journal version {}, and {PROGRAM} reads version {VERSION}; {remedy} \
         {program} on this host, or restore the settings by hand and remove the file",
        path.display(),
        version.map_or_else(|| "unknown".to_owned(), |version| version.to_string()),
    ))
}

fn recover_one(path: &Path, head: &Head, recovery: &mut Recovery) -> io::Result<()> {
    let mut file = open(path)?;
    // Its guard lives, or another agent is at it.
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // The process that made its changes may live without its guard: it undoes them itself. When it does not hold the journal yet, it cannot do
    // so from now on, and makes no change.
    let recovered = match range_lock::try_lock(file.as_fd(), HOLDER_BYTE) {
        Ok(true) => recover_locked(&mut file, path, head, recovery),
        Ok(false) => Ok(()),
        Err(cause) => Err(cause),
    };
    let _ = range_lock::unlock(file.as_fd(), HOLDER_BYTE);
    unlock(&file);
    recovered
}

/// Restores what a journal has whose locks this process has.
fn recover_locked(file: &mut File, path: &Path, head: &Head, recovery: &mut Recovery) -> io::Result<()> {
    if fstat(&*file)?.st_nlink == 0 {
        return Ok(());
    }
    let mut bytes = Vec::new();
    (&mut *file).take(LEN_MAX + 1).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.split_inclusive('\n');
    match judged(lines.next().unwrap_or_default(), path, head) {
        // The agent that locks the host waits for that one, and comes back to this one.
        Judged::Ours(made) if is_later_in_use(path, made, head) => return Ok(()),
        Judged::Ours(_) => {}
        Judged::Obsolete => return discard(path),
        Judged::Elsewhere => return Ok(()),
        Judged::Unread(problem) => {
            recovery.problems.push(problem);
            return Ok(());
        }
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
    let left = in_force.undo_all(|note| drop(write_line(file, note)));
    if left.is_empty() && damaged_lines.is_empty() {
        discard(path)?;
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
