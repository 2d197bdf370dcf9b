//! The master connection of a host (`ControlMaster` in ssh_config(5)) with a shell in it, to which scripts are sent. It interprets no answers.
//!
//! The shell reads its scripts from a pipe of this process, so it ends with this process, and the connection ends with its last session.
//! `ControlPersist` is off: nothing outlives the run.
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use netduel_control::launcher::{AgentProcess, Arrival, Ended};
use netduel_model::ids::HostName;
use netduel_model::plain_text::plain;
use netduel_model::plan::SshHost;
use netduel_sys::clock::monotonic_ns;

use super::jumps::{self, Way};
use super::obstacle::{self, Obstacle};
use super::options::{self, CONNECT_TIMEOUT};
use super::scripts;
use super::stop::Stop;

/// Timeout of an answer, nanoseconds: with proxies a login takes several connections, and a security key waits for a touch.
const ANSWER_TIMEOUT_NS: u64 = 60_000_000_000;
/// ssh ends a connection on which the server has sent nothing for six intervals of 10 s, the timeout of an answer: a host that changes the queues
/// of a NIC, or that others use, may stall for long. While traffic runs, the coordinator gives up a silent agent much sooner.
const ALIVE: [&str; 4] = ["-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=6"];
/// Longest answer, bytes: start files of a shell print before it.
const ANSWER_LEN_MAX: usize = 256 << 10;
/// Interval of the checks of [`Stop`].
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// How long a connection may take to end after one of its sessions has: ssh ends them by its own end. A session whose command a signal has ended
/// is followed by nothing.
const FOLLOWING: Duration = Duration::from_secs(1);
/// Timeout of the end of a connection: its agents have ended.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// Unread pieces of output.
const ARRIVALS_MAX: usize = 8;

/// A program on a host that is the one of this build, and has started there.
#[derive(Debug, Clone)]
pub struct TriedProgram {
    /// Its file.
    pub file: String,
    /// The state of that file, as [`scripts::state`] prints it.
    pub state: String,
}

/// A connection to a host.
#[derive(Debug)]
pub struct Master {
    process: Option<AgentProcess>,
    arrivals: Receiver<(u64, Arrival)>,
    is_first: bool,
    /// The options of every process to the host.
    options: Vec<String>,
    way: Way,
    destination: Vec<String>,
    socket: PathBuf,
    ssh: SshHost,
    /// The program that agents start with over this connection without another comparison.
    pub program: Option<TriedProgram>,
}

impl Master {
    /// Starts the connection; the first answer tells whether it is there. `is_known`: the run has connected to the host earlier.
    pub fn open(
        name: &HostName,
        ssh: &SshHost,
        socket: PathBuf,
        is_known: bool,
        stop: &Stop,
    ) -> Result<Self, Obstacle> {
        let (sender, arrivals) = sync_channel(ARRIVALS_MAX);
        let own = ["-M", "-o", "ControlPersist=no", "-o", CONNECT_TIMEOUT];
        let own = own.into_iter().chain(ALIVE).chain(["-S"]);
        let way = jumps::find(name, ssh, stop)?;
        let known = if is_known { options::of_known_host(ssh) } else { Vec::new() };
        let options = [known, options::of_host(ssh), way.options.clone()].concat();
        let destination = options::destination(ssh);
        let argv: Vec<String> = std::iter::once("ssh".to_owned())
            .chain(options.iter().cloned())
            .chain(own.map(str::to_owned))
            .chain([options::escaped(&socket)])
            .chain(destination.iter().cloned())
            // Whatever the login shell is, the scripts are read by this one.
            .chain(["exec /bin/sh".to_owned()])
            .collect();
        let process = AgentProcess::start(name.as_str(), &argv, 0, sender)
            .map_err(|error| Obstacle::NoSsh(error.into()))?;
        let (process, ssh) = (Some(process), ssh.clone());
        let program = None;
        Ok(Self { process, arrivals, is_first: true, options, way, destination, socket, ssh, program })
    }

    /// Runs a script in the shell and returns what it printed.
    pub fn ask(&mut self, script: &str, stop: &Stop) -> Result<String, Obstacle> {
        self.ask_within(script, ANSWER_TIMEOUT_NS, stop)
    }

    /// As [`Master::ask`], with a timeout.
    pub fn ask_within(&mut self, script: &str, timeout_ns: u64, stop: &Stop) -> Result<String, Obstacle> {
        let deadline_ns = monotonic_ns().saturating_add(timeout_ns);
        if let Some(process) = &mut self.process {
            process.send(&scripts::framed(script));
        }
        let mut bytes = Vec::new();
        loop {
            match self.arrivals.recv_timeout(STOP_INTERVAL) {
                Ok((_, Arrival::Bytes(more))) => bytes.extend(more),
                Ok((_, Arrival::End)) | Err(RecvTimeoutError::Disconnected) => return Err(self.lost()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Some(answer) = scripts::answer(&text) {
                self.is_first = false;
                return Ok(answer.to_owned());
            }
            stop.check()?;
            if bytes.len() > ANSWER_LEN_MAX {
                return Err(Obstacle::Chatty { host: self.ssh.host.clone() });
            }
            if monotonic_ns() >= deadline_ns {
                let seconds = timeout_ns / 1_000_000_000;
                let last_words = self.end(Duration::ZERO).last_words;
                let last_words = self.way.with_refusals(last_words);
                return Err(Obstacle::Silent { ssh: Box::new(self.ssh.clone()), seconds, last_words });
            }
        }
    }

    /// The connection has ended, or was never made.
    fn lost(&mut self) -> Obstacle {
        let Ended { status, last_words, .. } = self.end(END_PATIENCE);
        let printed = self.way.with_refusals(last_words);
        obstacle::of_connection(&self.ssh, &self.way.hosts, self.is_first, status, &printed)
    }

    /// The last line that ssh printed when the connection has ended, or ends after the session that has just ended. `None` while it lives. It is from
    /// outside, so it has no control characters; [`AgentProcess`] limits its length.
    pub fn last_line(&mut self) -> Option<String> {
        self.last_line_within(FOLLOWING)
    }

    fn last_line_within(&mut self, patience: Duration) -> Option<String> {
        let deadline_ns = monotonic_ns().saturating_add(patience.as_nanos() as u64);
        loop {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            match self.arrivals.recv_timeout(Duration::from_nanos(left_ns)) {
                // What a start file of the shell left running prints.
                Ok((_, Arrival::Bytes(_))) if left_ns > 0 => {}
                Ok((_, Arrival::Bytes(_))) | Err(RecvTimeoutError::Timeout) => return None,
                Ok((_, Arrival::End)) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let printed = self.end(END_PATIENCE).last_words;
        printed.lines().map(|line| plain(line.trim())).rfind(|line| !line.is_empty())
    }

    /// The argv of another session, which runs `command` there.
    pub fn session_argv(&self, command: &str) -> Vec<String> {
        let own = ["-o", "ControlMaster=no", "-o", CONNECT_TIMEOUT, "-S"].map(str::to_owned);
        std::iter::once("ssh".to_owned())
            .chain(self.options.iter().cloned())
            .chain(own)
            .chain([options::escaped(&self.socket)])
            .chain(self.destination.iter().cloned())
            .chain([command.to_owned()])
            .collect()
    }

    fn end(&mut self, patience: Duration) -> Ended {
        self.process.take().map(|process| process.end(patience).0).unwrap_or_default()
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.end(END_PATIENCE);
        // An ssh that was killed, for example during a command that does not end, leaves it.
        drop(std::fs::remove_file(&self.socket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It ends a test that would otherwise hang.
    const LONG: Duration = Duration::from_secs(60);

    /// A connection whose ssh is a script.
    fn of(script: &str) -> Master {
        let (sender, arrivals) = sync_channel(ARRIVALS_MAX);
        let argv = ["sh", "-c", script].map(str::to_owned);
        let process = AgentProcess::start("vm1", &argv, 0, sender).expect("a shell starts");
        Master {
            process: Some(process),
            arrivals,
            is_first: false,
            options: Vec::new(),
            way: Way::default(),
            destination: Vec::new(),
            socket: PathBuf::new(),
            ssh: SshHost::of("vm1"),
            program: None,
        }
    }

    #[test]
    fn last_line_of_a_lost_connection_is_plain_text_of_limited_length() {
        let last_line =
            |printed: &str| of(&format!("printf '{printed}' >&2; exit 255")).last_line_within(LONG);
        let timeout = last_line(r"Welcome\nTimeout, server vm1 not responding.\r\n\r\n");
        assert_eq!(timeout.as_deref(), Some("Timeout, server vm1 not responding."));
        let reset = last_line(r"\033[2JConnection reset by peer\n").expect("a line");
        assert!(reset.ends_with("Connection reset by peer") && !reset.contains('\u{1b}'), "{reset:?}");
        assert_eq!(last_line(""), None);
        let long = of("printf 'x%.0s' $(seq 5000) >&2; exit 255").last_line_within(LONG).expect("a line");
        assert!(long.len() < 2_000, "{}", long.len());
    }

    #[test]
    fn connection_that_lives_has_no_last_line_and_goes_on() {
        // It ends with its input.
        let mut living = of("echo busy >&2; cat");
        assert_eq!(living.last_line_within(Duration::ZERO), None);
        assert!(living.process.is_some());
    }
}
