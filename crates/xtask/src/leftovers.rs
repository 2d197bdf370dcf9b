//! Leftovers of tests on a machine: processes, named network namespaces, sockets of labs. Compares before and after; removes
//! nothing, because a leftover is a bug to be investigated.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::stopwatch::{Stopwatch, pause};

/// The environment variable that every process of a test run inherits, which distinguishes its children from those of other users
/// of the same machine.
pub const MARK_VARIABLE: &str = "NETDUEL_TEST_RUN";
/// Mount points of named network namespaces (ip-netns(8)).
const NAMED_NAMESPACES: &str = "/run/netns";
/// Prefix of the abstract socket of a lab's keeper in `/proc/net/unix`.
const LAB_SOCKET: &str = "@netduel-lab-";
/// Grace period of ending processes: the kernel takes some time to remove a network namespace, and more
/// beside busy loops.
const GRACE: Duration = Duration::from_secs(60);

/// A process; the start time distinguishes it from a later one with the same id.
type ProcessKey = (u32, u64);

/// A snapshot of the machine.
#[derive(Debug, Default)]
pub struct Snapshot {
    processes: BTreeSet<ProcessKey>,
    namespaces: BTreeSet<String>,
    lab_sockets: BTreeMap<u64, String>,
}

/// The origin of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Its environment contains the mark of this run.
    Run,
    /// Its environment cannot be read.
    Unknown,
    /// Its environment lacks the mark of this run.
    Other,
}

impl Snapshot {
    /// Takes a snapshot.
    pub fn take() -> Self {
        Self {
            processes: process_ids().filter_map(|id| Some((id, stat(id)?.start))).collect(),
            namespaces: named_namespaces(),
            lab_sockets: lab_sockets(&fs::read_to_string("/proc/net/unix").unwrap_or_default()),
        }
    }

    /// Leftovers of the run with this mark since the snapshot, after the grace period.
    pub fn left_behind(&self, mark: &str) -> Vec<String> {
        let watch = Stopwatch::start();
        loop {
            let left = self.difference(mark);
            if left.is_empty() || watch.elapsed() > GRACE {
                return left;
            }
            pause(Duration::from_millis(100));
        }
    }

    fn difference(&self, mark: &str) -> Vec<String> {
        let mut left = Vec::new();
        for id in process_ids() {
            let Some(stat) = stat(id) else { continue };
            if stat.is_zombie || self.processes.contains(&(id, stat.start)) {
                continue;
            }
            let owner = owner(&fs::read(format!("/proc/{id}/environ")).unwrap_or_default(), mark);
            if is_left(owner, &stat.name) {
                left.push(describe_process(id, &stat.name));
            }
        }
        for name in named_namespaces().difference(&self.namespaces) {
            left.push(format!("network namespace {name} (ip netns delete {name})"));
        }
        let now = lab_sockets(&fs::read_to_string("/proc/net/unix").unwrap_or_default());
        for (inode, name) in now.iter().filter(|(inode, _)| !self.lab_sockets.contains_key(inode)) {
            let holder = socket_holder(*inode);
            let environment =
                holder.and_then(|id| fs::read(format!("/proc/{id}/environ")).ok()).unwrap_or_default();
            if owner(&environment, mark) != Owner::Other {
                let holder =
                    holder.map_or_else(|| "an unknown process".to_owned(), |id| format!("process {id}"));
                left.push(format!("socket {name} of a lab, held by {holder}"));
            }
        }
        left
    }
}

/// The running processes of the run with this mark.
pub fn processes_of(mark: &str) -> Vec<u32> {
    let is_running = |id: &u32| stat(*id).is_some_and(|stat| !stat.is_zombie);
    let environment = |id: u32| fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    process_ids().filter(|id| is_running(id) && owner(&environment(*id), mark) == Owner::Run).collect()
}

/// A leftover is a process of the run; a process without a readable environment counts only by its name.
fn is_left(owner: Owner, name: &str) -> bool {
    owner == Owner::Run || (owner == Owner::Unknown && name.starts_with("netduel"))
}

fn owner(environment: &[u8], mark: &str) -> Owner {
    let wanted = format!("{MARK_VARIABLE}={mark}");
    if environment.is_empty() {
        return Owner::Unknown;
    }
    let is_marked = environment.split(|byte| *byte == 0).any(|setting| setting == wanted.as_bytes());
    if is_marked { Owner::Run } else { Owner::Other }
}

fn describe_process(id: u32, name: &str) -> String {
    let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let command = arguments
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    let network = |id: &str| fs::metadata(format!("/proc/{id}/ns/net")).ok().map(|file| file.ino());
    let elsewhere = network(&id.to_string()).filter(|inode| network("self") != Some(*inode));
    let namespace = elsewhere.map_or_else(String::new, |inode| format!(", keeps network namespace {inode}"));
    format!("process {id} ({name}): {command}{namespace}")
}

/// The fields read from `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    is_zombie: bool,
    /// Clock ticks after boot.
    start: u64,
}

fn stat(id: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// proc_pid_stat(5): the name is in parentheses and may contain some; state is field 3, start time field 22.
fn parse_stat(text: &str) -> Option<Stat> {
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let is_zombie = matches!(*fields.first()?, "Z" | "X");
    Some(Stat { name, is_zombie, start: fields.get(19)?.parse().ok()? })
}

fn process_ids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
}

fn named_namespaces() -> BTreeSet<String> {
    let entries = fs::read_dir(NAMED_NAMESPACES).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect()
}

/// Inode and name of every lab's socket: fields 7 and 8 of `/proc/net/unix`.
fn lab_sockets(table: &str) -> BTreeMap<u64, String> {
    table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(6);
            let inode = fields.next()?.parse().ok()?;
            let name = fields.next()?;
            name.starts_with(LAB_SOCKET).then(|| (inode, name.to_owned()))
        })
        .collect()
}

fn socket_holder(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    process_ids().find(|id| {
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .any(|target| target == Path::new(&wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn the_name_of_a_process_may_hold_parentheses() {
        let text = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let expected = Stat { name: "a) b (c)".into(), is_zombie: false, start: 12345 };
        assert_eq!(parse_stat(text), Some(expected));
    }

    #[test]
    fn only_sockets_of_labs_count() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0: 2 0 00010000 0001 01 771 @netduel-lab-demo\n\
                     0: 2 0 00010000 0001 01 772 @other\n0: 2 0 0 0001 03 773\n";
        assert_eq!(lab_sockets(table), BTreeMap::from([(771, "@netduel-lab-demo".to_owned())]));
    }

    #[test]
    fn a_process_without_an_environment_is_judged_by_its_name() {
        assert_eq!(owner(b"A=1\0NETDUEL_TEST_RUN=x\0", "x"), Owner::Run);
        assert_eq!(owner(b"A=1\0", "x"), Owner::Other);
        assert_eq!(owner(b"", "x"), Owner::Unknown);
        assert!(is_left(Owner::Unknown, "netduel"));
        assert!(!is_left(Owner::Unknown, "kworker/0:1"));
        assert!(!is_left(Owner::Other, "netduel"));
    }

    #[test]
    fn only_running_processes_are_leftovers() {
        let before = Snapshot::take();
        // `cat` ends with its stdin, so this test leaves nothing behind even when it fails.
        let mut child = Command::new("cat")
            .env(MARK_VARIABLE, "a-test-of-leftovers")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The environment is complete once the process answers; spawn may return earlier.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        // Other tests may make labs and namespaces at the same time.
        let name = format!("process {} (cat)", child.id());
        let of_cat = |line: &String| line.contains(&name);
        let left = before.difference("a-test-of-leftovers");
        assert_eq!(left.iter().filter(|line| of_cat(line)).count(), 1, "{left:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        let left = before.difference("a-test-of-leftovers");
        assert!(!left.iter().any(of_cat), "{left:?}");
    }
}
