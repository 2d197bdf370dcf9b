//! Starts an agent behind any argv prefix and carries bytes between it and the coordinator's channel. It knows no messages.
//!
//! `ip netns exec`, `ssh`, `srun` and `kubectl exec -i` differ in their prefix alone: all carry standard input and output, and
//! all end the far program, or its input, when they end.
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::agents::{Arrival, Ended, LaunchError};
use super::input::Input;

/// Lines of an agent's standard error that are kept for the message when it dies.
const LAST_WORDS_LINES: usize = 12;
/// How long the end of standard error is waited for once the process has ended or is killed, and then the end of a killed process.
const KILL_PATIENCE: Duration = Duration::from_secs(1);
/// Longest such line that is kept, bytes.
const LAST_WORDS_LEN: usize = 400;

/// A running agent process.
#[derive(Debug)]
pub struct AgentProcess {
    child: Child,
    stdin: Option<Input>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    stderr_done: Option<Receiver<()>>,
}

impl AgentProcess {
    /// Starts `argv`; what arrives goes to `arrivals` under the number `id`.
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
            // Ctrl-C at the terminal is for the coordinator alone: it stops its agents in order.
            .process_group(0)
            .spawn()
            .map_err(|source| LaunchError::Spawn {
                host: host.to_owned(),
                command: argv.join(" "),
                program: program.clone(),
                source,
            })?;
        let stdin = child.stdin.take().map(Input::new);
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let stderr = child.stderr.take().expect("standard error is a pipe");
        std::thread::spawn(move || carry(stdout, id, &arrivals));
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let kept = last_words.clone();
        let (done, stderr_done) = channel::<()>();
        std::thread::spawn(move || {
            keep_last_words(stderr, &kept);
            // Its receiver learns the end by this.
            drop(done);
        });
        Ok(Self { child, stdin, last_words, stderr_done: Some(stderr_done) })
    }

    /// Sends a line without waiting for the agent to read it. An agent that is gone is noticed by the end of its output, not here.
    pub fn send(&mut self, line: &str) {
        if let Some(stdin) = &self.stdin {
            stdin.send(line);
        }
    }

    /// Closes its input. It undoes what it did and ends; [`AgentProcess::end`] waits for that.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes its input and waits for its end; kills it with all that it started when it does not end in time. Gives how it
    /// ended, and what may be left of it.
    pub fn end(mut self, patience: Duration) -> (Ended, Remains) {
        self.close_input();
        let remains = Remains(self.stderr_done.take());
        let group = Pid::from_child(&self.child);
        let exit = exit_of(self.child);
        let mut status = exit.recv_timeout(patience).ok();
        let is_over = match status {
            // It has undone its changes. What still has its standard error is not its guard but, for example, the master process of an
            // ssh connection that is kept open (ControlPersist): only the last output of the agent is waited for.
            Some(Some(exited)) if exited.success() => {
                remains.are_gone(KILL_PATIENCE);
                true
            }
            // Its guard, which has its standard error, may be at work.
            Some(_) => remains.are_gone(patience),
            None if remains.are_gone(Duration::ZERO) => true,
            None => {
                kill(group);
                // Its last output may hold the reason. A process outside of the group may keep the pipe open.
                remains.are_gone(KILL_PATIENCE)
            }
        };
        if status.is_none() {
            // A process that could not be killed, because its launcher made it another user's, is not waited for.
            status = exit.recv_timeout(KILL_PATIENCE).ok();
        }
        let status = status.flatten();
        let kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let last_words = kept.iter().cloned().collect::<Vec<_>>().join("\n");
        (Ended { status, last_words, is_over }, remains)
    }
}

/// Kills the process group: a launcher that is a shell has the agent for a child. The guard that undoes treatments after an agent was
/// killed is in a session of its own.
fn kill(group: Pid) {
    // The error says that the group is gone, or another user's. Its number alone is not killed instead: a thread waits for the child,
    // so that it may be another process by now.
    let _ = kill_process_group(group, Signal::KILL);
}

/// What a killed agent may have left running: its guard, which is in a session of its own. It holds the agent's standard error.
#[derive(Debug)]
pub struct Remains(Option<Receiver<()>>);

impl Remains {
    /// Waits for their end, `patience` at most.
    pub fn are_gone(&self, patience: Duration) -> bool {
        // No message is ever sent: the thread that reads drops its end of the channel at the end of the output.
        let ended = self.0.as_ref().map(|done| done.recv_timeout(patience));
        ended != Some(Err(RecvTimeoutError::Timeout))
    }
}

/// How a process ended, once it has: its receiver decides how long to wait.
fn exit_of(mut child: Child) -> Receiver<Option<ExitStatus>> {
    let (ended, status) = channel();
    std::thread::spawn(move || {
        // The receiver may be gone.
        let _ = ended.send(child.wait().ok());
    });
    status
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
    // Without a receiver the end does not matter.
    drop(arrivals.send((id, Arrival::End)));
}

/// Reads standard error to its end, so that the agent never blocks on it, and keeps its last lines.
fn keep_last_words(stderr: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A program that writes without ending its lines is read piece by piece.
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
