//! The test bench: labs of root and of an ordinary user, controlled by the example `lab`, and waiting for processes.
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use netduel_test_support::{copy_program, skip};
use rustix::process::{Pid, PidfdFlags};
use serde_json::Value;

/// The user of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user of the test.
    Own,
    /// The user `nobody`, through setpriv(1): an ordinary user for tests that run as root.
    Nobody,
}

/// The users for lab tests. Prints the skipped ones with the reason.
pub fn users() -> Vec<User> {
    if !rustix::process::geteuid().is_root() {
        return vec![User::Own];
    }
    if Command::new("setpriv").arg("--version").output().is_ok() {
        return vec![User::Own, User::Nobody];
    }
    skip("an ordinary user's lab needs setpriv (util-linux)");
    vec![User::Own]
}

/// A unique name.
pub fn name_for(purpose: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{purpose}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The example programs, copied to a place that every user can read.
pub struct Bench {
    user: User,
    directory: tempfile::TempDir,
}

impl Bench {
    /// A bench for a user; `None` when this machine does not permit that user to create labs.
    pub fn new(user: User) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let everyone = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), everyone).unwrap();
        for program in ["lab", "echo"] {
            copy_program(example(program), directory.path());
        }
        let bench = Self { user, directory };
        let name = name_for("permitted");
        let up = bench.lab(["up", &name, "0"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&up.stderr).into_owned();
        if stderr.contains("create the namespaces of the lab") {
            skip(format!("{user:?}: {stderr}"));
            return None;
        }
        assert!(up.status.success(), "{stderr}");
        bench.text(["down", &name]);
        Some(bench)
    }

    /// Path of an example program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The command that runs `program` as the bench's user.
    pub fn command(&self, program: &Path) -> Command {
        match self.user {
            User::Own => Command::new(program),
            User::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
                command.current_dir(self.directory.path());
                command
            }
        }
    }

    /// The example `lab` with arguments.
    pub fn lab<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.command(&self.program("lab"));
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Runs `lab` with arguments, which must succeed, and returns its output.
    pub fn text<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        printed(&self.lab(words).output().unwrap())
    }

    /// A command inside a host.
    pub fn inside(&self, lab: &str, host: &str, program: &str, words: &[&str]) -> Command {
        let mut command = self.lab(["exec", lab, host, program]);
        command.args(words);
        command
    }

    /// The example `echo` inside a host.
    pub fn echo(&self, lab: &str, host: &str, words: &[&str]) -> Command {
        let program = self.program("echo");
        self.inside(lab, host, program.to_str().unwrap(), words)
    }

    /// The state of a lab.
    pub fn status(&self, lab: &str) -> Value {
        serde_json::from_str(&self.text(["status", lab])).unwrap()
    }

    /// Bytes sent and received on an interface of a guest since its creation.
    pub fn bytes(&self, lab: &str, guest: &str, interface: &str) -> u64 {
        let status = self.status(lab);
        let found =
            status["interfaces"].as_array().unwrap().iter().find(|row| {
                row["guest"].as_str() == Some(guest) && row["interface"].as_str() == Some(interface)
            });
        let counters = &found.unwrap()["counters"];
        counters["rx_bytes"].as_u64().unwrap() + counters["tx_bytes"].as_u64().unwrap()
    }

    /// A server in guest b.
    pub fn serve(&self, lab: &str, address: &str) -> Server {
        let mut child = self
            .echo(lab, "b", &["serve", address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (tcp, udp) = line.trim().split_once(' ').unwrap();
        Server { tcp: tcp.to_owned(), udp: udp.to_owned(), child, input: Some(input), _output: output }
    }

    /// The network namespaces of a lab's hosts, as `/proc/PID/ns/net` shows them.
    pub fn networks(&self, lab: &str) -> BTreeSet<String> {
        netduel_model::lab::HOSTS
            .iter()
            .map(|host| {
                let output = self.inside(lab, host, "readlink", &["/proc/self/ns/net"]).output().unwrap();
                printed(&output).trim().to_owned()
            })
            .collect()
    }

    /// Whether the user's list of labs contains a name.
    pub fn lists(&self, lab: &str) -> bool {
        self.text(["list"]).lines().any(|line| line == lab)
    }
}

/// A lab that is removed at the end of a test, even when the test fails.
pub struct Standing<'a> {
    pub bench: &'a Bench,
    pub name: String,
}

impl<'a> Standing<'a> {
    /// Creates a lab with the arguments after its name.
    pub fn up(bench: &'a Bench, purpose: &str, words: &[&str]) -> Self {
        let name = name_for(purpose);
        bench.text(["up", &name].into_iter().chain(words.iter().copied()));
        Self { bench, name }
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let _ = self.bench.lab(["down", &self.name]).output();
    }
}

/// A server inside a lab; ends with this value.
pub struct Server {
    pub tcp: String,
    pub udp: String,
    child: Child,
    input: Option<ChildStdin>,
    _output: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The output of a program, which must have succeeded.
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let path = this.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: run `cargo test -p netduel-lab`, which builds it", path.display());
    path
}

/// A process that can be waited for even if it is not a child.
pub struct Watched(std::os::fd::OwnedFd);

impl Watched {
    pub fn new(pid: i32) -> Self {
        Self(rustix::process::pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap())
    }

    pub fn kill(&self) {
        rustix::process::pidfd_send_signal(&self.0, rustix::process::Signal::KILL).unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::pidfd_send_signal(&self.0, signal).unwrap();
    }

    pub fn wait(&self) {
        let has_ended =
            netduel_sys::process::ends_within(self.0.as_fd(), Duration::MAX, &AtomicBool::new(false));
        assert!(has_ended.unwrap());
    }
}

/// All process ids, with the parent's.
fn processes() -> Vec<(i32, i32)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect()
}

/// The only child of a process.
pub fn only_child(parent: i32) -> i32 {
    let children: Vec<i32> = processes().into_iter().filter(|row| row.1 == parent).map(|row| row.0).collect();
    assert_eq!(children.len(), 1, "children of {parent}: {children:?}");
    children[0]
}

/// The processes in any of the given network namespaces.
pub fn inhabitants(networks: &BTreeSet<String>) -> Vec<i32> {
    let lives_there = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/ns/net"))
            .is_ok_and(|link| networks.contains(link.to_str().unwrap_or_default()))
    };
    processes().into_iter().map(|row| row.0).filter(lives_there).collect()
}
