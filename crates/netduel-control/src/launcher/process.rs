//! Starts an agent with any argv prefix and carries bytes between it and the coordinator's channel. It does not depend on messages.
//!
//! `ip netns exec`, `ssh`, `srun` and `kubectl exec -i` differ in the prefix only: all carry standard input and output, and
//! all end the remote program, or its input, when they end.
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use netduel_model::shell;
use rustix::process::{Pid, Signal, kill_process_group};

use super::agents::{Arrival, Ended, LaunchError};
use super::input::Input;

/// Lines of an agent's standard error that are kept for the message when it dies.
/// The warning of ssh about another host key has 13.
const LAST_WORDS_LINES: usize = 24;
/// Timeout of the end of standard error after the process has ended.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);
/// The same, at least, after it has failed or was killed, and of the end of a killed process after that. They
/// come at once, unless the thread that waits for them has to wait for a core.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of such a line, bytes.
const LAST_WORDS_LEN: usize = 400;

/// A running agent process.
#[derive(Debug)]
pub struct AgentProcess {
    /// Its process group: it is the leader.
    group: Pid,
    /// Its exit status, when it has ended.
    exit: Receiver<Option<ExitStatus>>,
    stdin: Option<Input>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    stderr_done: Option<Receiver<()>>,
}

impl AgentProcess {
    /// Starts `argv`; its output goes to `arrivals` under the number `id`.
    pub fn start(
        host: &str,
        argv: &[String],
        id: u64,
        arrivals: SyncSender<(u64, Arrival)>,
    ) -> Result<Self, LaunchError> {
        let (program, words) =
            argv.split_first().ok_or_else(|| LaunchError::Empty { host: host.to_owned() })?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at the terminal must reach the coordinator only, which stops its agents in order.
            .process_group(0)
            .spawn()
            .map_err(|source| match source.kind() {
                // fork(2) had no process or memory left: the program itself was not looked up.
                ErrorKind::WouldBlock | ErrorKind::OutOfMemory => {
                    LaunchError::Exhausted { host: host.to_owned(), source }
                }
                _ => LaunchError::Spawn {
                    host: host.to_owned(),
                    command: shell::line(argv),
                    program: program.clone(),
                    source,
                },
            })?;
        let group = Pid::from_child(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let stdout = stdout.expect("standard output is a pipe");
        let stderr = stderr.expect("standard error is a pipe");
        let start = || -> io::Result<Self> {
            // First of all the thread that waits for the process.
            let exit = exit_of(child)?;
            let stdin = stdin.map(Input::new).transpose()?;
            thread("agent-out", move || carry(stdout, id, &arrivals))?;
            let last_words = Arc::new(Mutex::new(VecDeque::new()));
            let kept = last_words.clone();
            let (done, stderr_done) = channel::<()>();
            thread("agent-err", move || {
                keep_last_words(stderr, &kept);
                // The receiver learns of the end by this message.
                drop(done);
            })?;
            Ok(Self { group, exit, stdin, last_words, stderr_done: Some(stderr_done) })
        };
        start().map_err(|source| {
            // It has received no request, so it has changed nothing.
            kill(group);
            LaunchError::Exhausted { host: host.to_owned(), source }
        })
    }

    /// Sends a line without waiting for the agent to read it. The end of an agent is detected by the end of its output, not here.
    pub fn send(&mut self, line: &str) {
        if let Some(stdin) = &self.stdin {
            stdin.send(line);
        }
    }

    /// Closes its input. The agent undoes its changes and ends; [`AgentProcess::end`] waits for that.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes its input and waits for its end; kills its process group after a timeout. Returns how it ended, and its remaining
    /// processes, if any.
    pub fn end(mut self, patience: Duration) -> (Ended, Guard) {
        self.close_input();
        let guard = Guard(self.stderr_done.take());
        let mut status = self.exit.recv_timeout(patience).ok();
        let is_over = match status {
            // It has undone its changes, so no guard remains. Another process may still hold its standard error, for example the master
            // process of a persistent ssh connection (ControlPersist): only the last output of the agent is awaited.
            Some(Some(exited)) if exited.success() => {
                guard.has_ended_within(OUTPUT_PATIENCE);
                true
            }
            // Its guard, which holds its standard error, may still run.
            Some(_) => guard.has_ended_within(patience.max(KILL_PATIENCE)),
            None if guard.has_ended_within(Duration::ZERO) => true,
            None => {
                kill(self.group);
                // Its last output may contain the reason. A process outside the group may keep the pipe open.
                guard.has_ended_within(KILL_PATIENCE)
            }
        };
        if status.is_none() {
            // A process that could not be killed, because its launcher changed its user, is not awaited.
            status = self.exit.recv_timeout(KILL_PATIENCE).ok();
        }
        let status = status.flatten();
        let kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let last_words = kept.iter().cloned().collect::<Vec<_>>().join("\n");
        (Ended { status, last_words, connection: None, is_over }, guard)
    }
}

/// Kills the process group: if the launcher is a shell, the agent is its child. The guard that undoes treatments after an agent was
/// killed has its own session.
fn kill(group: Pid) {
    // On error the group has ended, or another user owns it. The process is not killed by its number instead: a thread waits for the child,
    // so the number may already belong to another process.
    let _ = kill_process_group(group, Signal::KILL);
}

/// The remaining process of a killed agent: its guard, which has its own session. It holds the agent's standard error.
#[derive(Debug)]
pub struct Guard(Option<Receiver<()>>);

impl Guard {
    /// Waits for its end, `patience` at most.
    pub fn has_ended_within(&self, patience: Duration) -> bool {
        // No message is ever sent: the reading thread drops its end of the channel at the end of the output.
        let ended = self.0.as_ref().map(|done| done.recv_timeout(patience));
        ended != Some(Err(RecvTimeoutError::Timeout))
    }
}

/// Delivers the exit status of a process; the receiver decides how long to wait.
fn exit_of(mut child: Child) -> io::Result<Receiver<Option<ExitStatus>>> {
    let (ended, status) = channel();
    thread("agent-end", move || {
        // The receiver may have been dropped.
        let _ = ended.send(child.wait().ok());
    })?;
    Ok(status)
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Carries standard output to the channel until it ends.
fn carry(mut stdout: impl Read, id: u64, arrivals: &SyncSender<(u64, Arrival)>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stdout.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(read) => {
                if arrivals.send((id, Arrival::Bytes(buffer[..read].to_vec()))).is_err() {
                    break;
                }
            }
        }
    }
    // Without a receiver the end is not needed.
    drop(arrivals.send((id, Arrival::End)));
}

/// Reads standard error to its end, so that the agent never blocks on it, and keeps its last lines.
fn keep_last_words(stderr: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A program that writes no line ends is read in pieces.
        match stderr.by_ref().take(64 << 10).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line[..line.len().min(LAST_WORDS_LEN)]).trim_end().to_owned();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(text);
        if kept.len() > LAST_WORDS_LINES {
            kept.pop_front();
        }
    }
}
