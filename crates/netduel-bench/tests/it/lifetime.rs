//! A bench leaves no process or namespace behind, however it ends.
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};

use netduel_sys::clock;
use rustix::process::{Pid, Signal, kill_process};

use super::{bench, is_refused};

/// A bench during a run, with its processes and namespaces.
struct Running {
    outer: Child,
    inner: u32,
    /// Inodes of its network namespaces.
    networks: BTreeSet<u64>,
    _folder: tempfile::TempDir,
}

const DEADLINE_NS: u64 = 180_000_000_000;

/// Parent of a process: field 4 of `/proc/PID/stat`, after the name in parentheses.
fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn children(id: u32) -> Vec<u32> {
    processes().filter(|child| parent(*child) == Some(id)).collect()
}

fn network(id: u32) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{id}/ns/net")).ok()?.ino())
}

/// Waits for a condition, and fails when it does not become true.
fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::monotonic_ns() + DEADLINE_NS;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(clock::monotonic_ns() < deadline, "{what} did not come");
        clock::sleep_until(clock::monotonic_ns() + 2_000_000);
    }
}

/// Starts a bench with long runs, and waits for both ends of one run.
fn running(words: &[&str], stdin: Stdio) -> Option<Running> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bench(folder.path(), &["--only", "open-loop"]);
    command.args(["--seconds", "100"]).args(words).stdin(stdin);
    let mut outer = command.spawn().unwrap();
    let mut errors = BufReader::new(outer.stderr.take().unwrap());
    let mut first = String::new();
    errors.read_line(&mut first).unwrap();
    if !first.starts_with("seed") {
        errors.read_to_string(&mut first).unwrap();
        outer.wait().unwrap();
        assert!(is_refused(&first), "{first}");
        return None;
    }
    let inner = children(outer.id())[0];
    let ends = wait_for("two ends", || Some(children(inner)).filter(|ends| ends.len() == 2));
    let networks: BTreeSet<u64> = ends.iter().filter_map(|end| network(*end)).collect();
    assert_eq!(networks.len(), 2, "each end is in a network namespace of its own");
    assert!(!networks.contains(&network(std::process::id()).unwrap()));
    Some(Running { outer, inner, networks, _folder: folder })
}

impl Running {
    /// Reaps the outer program, and waits until the namespaces have no process.
    fn assert_gone(mut self) {
        self.outer.wait().unwrap();
        wait_for("the end of every process", || {
            let left = processes().any(|id| network(id).is_some_and(|inode| self.networks.contains(&inode)));
            (!left).then_some(())
        });
    }
}

fn signal(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
}

#[test]
fn killed_or_interrupted_bench_leaves_nothing_behind() {
    for number in [Signal::KILL, Signal::INT, Signal::TERM] {
        let Some(running) = running(&[], Stdio::null()) else { return };
        signal(running.outer.id(), number);
        running.assert_gone();
    }
}

#[test]
fn killed_inner_program_leaves_nothing_behind() {
    let Some(running) = running(&[], Stdio::null()) else { return };
    signal(running.inner, Signal::KILL);
    running.assert_gone();
}

#[test]
fn bench_ends_with_its_lifeline() {
    let Some(mut running) = running(&["--lifeline"], Stdio::piped()) else { return };
    drop(running.outer.stdin.take());
    running.assert_gone();
}
