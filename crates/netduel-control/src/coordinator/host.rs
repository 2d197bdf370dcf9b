//! One agent as the coordinator sees it: its number and its side of the conversation. No IO.
use std::time::Duration;

use netduel_model::PROGRAM;
use netduel_model::ids::HostName;

use crate::launcher::{AgentId, Ended};
use crate::peer::{AgentEvent, CoordinatorPeer, PeerError};
use crate::protocol::{Limits, ToAgent};

/// Timeout of the first answer of an agent, nanoseconds: a remote shell has to log in.
const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// Timeout of the end of an agent after its input was closed: it undoes treatments.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Timeout of the end of a process without a `hello`, or one abandoned for its silence: its last output may contain the reason. An
/// unreachable agent undoes its changes when it notices the lost connection.
const STRANGER_PATIENCE: Duration = Duration::from_secs(1);
/// What the dynamic linker prints of a program that it cannot start (glibc, elf/dl-load.c).
const LIBRARIES: &str = "error while loading shared libraries";

/// How the process of an agent ended, as parts of a message.
#[derive(Debug, Default)]
pub struct EndWords {
    /// Its exit status.
    pub how: String,
    /// Its last output.
    pub last_words: String,
    /// The error message with which netduel itself ended.
    pub own_reason: Option<String>,
}

/// An agent's number and conversation.
#[derive(Debug)]
pub struct HostLink {
    /// The host's name in the plan.
    pub name: HostName,
    /// Number of the agent whose bytes these are; a restarted agent has another.
    pub id: AgentId,
    peer: CoordinatorPeer,
}

impl HostLink {
    /// Opens the conversation with a started agent. Returns the first line to send.
    pub fn open(name: &HostName, id: AgentId, limits: Limits, now_ns: u64) -> (Self, String) {
        let (peer, line) = CoordinatorPeer::open(PROGRAM, limits, now_ns, HELLO_TIMEOUT_NS);
        (Self { name: name.clone(), id, peer }, line)
    }

    /// The line of a request whose answer is awaited for `timeout_ns`.
    pub fn request(&mut self, message: &ToAgent, now_ns: u64, timeout_ns: u64) -> String {
        self.peer.request(message, now_ns, timeout_ns)
    }

    /// The line that starts traffic. Its start is awaited for `timeout_ns`, and then its end for `done_timeout_ns`.
    pub fn start(&mut self, now_ns: u64, timeout_ns: u64, done_timeout_ns: u64) -> String {
        self.peer.start(now_ns, timeout_ns, done_timeout_ns)
    }

    /// Processes received bytes.
    pub fn input(&mut self, bytes: &[u8], now_ns: u64) -> Result<Vec<AgentEvent>, PeerError> {
        self.peer.input(bytes, now_ns)
    }

    /// Extends its deadline by the time from `from_ns` to `to_ns`, in which the coordinator did not listen.
    pub fn postpone(&mut self, from_ns: u64, to_ns: u64) {
        self.peer.postpone(from_ns, to_ns);
    }

    /// Checks the deadline.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), PeerError> {
        self.peer.tick(now_ns)
    }

    /// Whether it has sent the `hello` of an agent.
    pub fn is_greeted(&self) -> bool {
        self.peer.is_greeted()
    }

    /// The next deadline.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.peer.deadline_ns()
    }

    /// Timeout of the end of the agent after its input was closed.
    pub fn patience(&self) -> Duration {
        if self.peer.is_greeted() && !self.peer.is_quiet() { END_PATIENCE } else { STRANGER_PATIENCE }
    }

    /// The end of the agent's process.
    pub fn end_words(&self, ended: &Ended) -> EndWords {
        let banner = self.peer.unanswered_banner().join(" / ");
        let is_silent = ended.last_words.is_empty() && ended.connection.is_none();
        let how = match ended.status {
            // Shells and ssh end with this status when they do not find the command, and a program whose libraries cannot be loaded.
            Some(status) if status.code() == Some(127) && !ended.last_words.contains(LIBRARIES) => {
                format!("{status}: install netduel there, in a folder of its PATH")
            }
            // ssh(1) ends with this status, too, and leaves it to its master process to print why.
            Some(status) if status.code() == Some(255) && is_silent => {
                format!("{status}, as ssh ends when its connection is lost or a signal ends its command")
            }
            Some(status) => status.to_string(),
            None => "status unknown".to_owned(),
        };
        let part = |what: &str, text: &str| match text {
            "" => String::new(),
            text => format!("; {what}: {text}"),
        };
        let own_reason = ended.last_words.lines().last().and_then(|line| line.strip_prefix("netduel: "));
        EndWords {
            how,
            last_words: part("it printed", &banner)
                + &part("its last output", &ended.last_words)
                + &part("its connection ended with", ended.connection.as_deref().unwrap_or_default()),
            own_reason: own_reason.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use netduel_model::units::Nanos;

    use super::*;

    #[test]
    fn status_of_ssh_is_explained_when_nothing_else_is() {
        let words = |code: i32, last_words: &str, connection: Option<&str>| {
            let limits = Limits { total: Nanos(1), idle: Nanos(1), progress: Limits::PROGRESS };
            let (link, _) = HostLink::open(&HostName::new("a").unwrap(), 1, limits, 0);
            let status = Some(ExitStatus::from_raw(code << 8));
            let (last_words, connection) = (last_words.to_owned(), connection.map(str::to_owned));
            link.end_words(&Ended { status, last_words, connection, is_over: true })
        };
        let how = |code: i32, last_words: &str| words(code, last_words, None).how;
        let explained = how(255, "");
        assert!(explained.starts_with("exit status: 255, as ssh ends when its connection is lost"));
        assert_eq!(how(255, "Permission denied (publickey)."), "exit status: 255");
        assert_eq!(how(1, ""), "exit status: 1");
        let timeout = Some("Timeout, server vm1 not responding.");
        let EndWords { how, last_words, .. } = words(255, "netduel: a warning", timeout);
        assert_eq!(how, "exit status: 255");
        assert_eq!(
            last_words,
            "; its last output: netduel: a warning; its connection ended with: Timeout, server vm1 not \
             responding."
        );
        assert_eq!(words(255, "", timeout).how, "exit status: 255");
    }
}
