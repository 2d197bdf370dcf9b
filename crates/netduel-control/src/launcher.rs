//! Starts an agent behind any argv prefix and carries bytes between it and the coordinator's channel. No protocol here.
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lines of an agent's standard error that are kept for the message when it dies.
const LAST_WORDS_LINES: usize = 12;
/// How long an agent may take to end after its input has ended: it undoes treatments then.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launcher names no program.
    #[error("failed to start the agent of host {host}: its launcher is empty")]
    Empty {
        /// Which host.
        host: String,
    },
    /// The program could not be run.
    #[error(
        "failed to start the agent of host {host} with `{command}`: {source}; is `{program}` installed and in the search path?"
    )]
    Spawn {
        /// Which host.
        host: String,
        /// The whole command.
        command: String,
        /// Its first word.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// What arrives from an agent's process.
#[derive(Debug)]
pub enum Arrival {
    /// Bytes of its standard output.
    Bytes(Vec<u8>),
    /// Its standard output has ended.
    End,
}

/// A running agent process.
#[derive(Debug)]
pub struct AgentProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    stderr_done: std::sync::mpsc::Receiver<()>,
}

impl AgentProcess {
    /// Starts `argv`; what arrives goes to `arrivals` under the number `id`.
    pub fn start(
        host: &str,
        argv: &[String],
        id: u64,
        arrivals: Sender<(u64, Arrival)>,
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
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().expect("standard output was asked to be a pipe");
        let stderr = child.stderr.take().expect("standard error was asked to be a pipe");
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read) = stdout.read(&mut buffer) {
                if read == 0 || arrivals.send((id, Arrival::Bytes(buffer[..read].to_vec()))).is_err() {
                    break;
                }
            }
            drop(arrivals.send((id, Arrival::End)));
        });
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let kept = last_words.clone();
        let (done, stderr_done) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(line);
                if kept.len() > LAST_WORDS_LINES {
                    kept.pop_front();
                }
            }
            let _ = done.send(());
        });
        Ok(Self { child, stdin, last_words, stderr_done })
    }

    /// Sends a line. An agent that has gone is noticed by the end of its output, not here.
    pub fn send(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
    }

    /// Closes its input and waits for its end; kills it when it does not end in time.
    pub fn end(mut self) -> (Option<ExitStatus>, String) {
        self.stdin = None;
        // Its standard error ends with the process; waiting for that needs no signal handler and no polling.
        if self.stderr_done.recv_timeout(END_DEADLINE).is_err() {
            drop(self.child.kill());
        }
        let status = self.child.wait().ok();
        let kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        (status, kept.iter().cloned().collect::<Vec<_>>().join("\n"))
    }
}
