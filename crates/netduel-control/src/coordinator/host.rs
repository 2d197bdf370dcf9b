//! One agent as the coordinator sees it: its process and its side of the protocol.
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use netduel_model::ids::HostName;

use crate::launcher::{AgentProcess, Arrival, LaunchError};
use crate::peer::{CoordinatorPeer, Heard, PeerError};
use crate::protocol::{Limits, ToAgent};

/// How long an agent may take to answer its first message, nanoseconds: a remote shell has to log in.
const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// How long an agent may take to end after its input has ended: it undoes treatments then.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How long something may take to end that never said it was an agent, or says nothing any more: perhaps it has last words. An agent
/// that cannot be reached undoes what it did when it sees that.
const STRANGER_PATIENCE: Duration = Duration::from_secs(1);
/// This program, as it names itself.
const PROGRAM: &str = concat!("netduel ", env!("CARGO_PKG_VERSION"));

/// An agent's process and conversation.
#[derive(Debug)]
pub struct HostLink {
    /// The host's name in the plan.
    pub name: HostName,
    /// Number under which its bytes arrive; a restarted agent has another.
    pub id: u64,
    process: AgentProcess,
    peer: CoordinatorPeer,
}

impl HostLink {
    /// Starts an agent and opens the conversation.
    pub fn open(
        name: &HostName,
        argv: &[String],
        (id, arrivals): (u64, SyncSender<(u64, Arrival)>),
        limits: Limits,
        now_ns: u64,
    ) -> Result<Self, LaunchError> {
        let mut process = AgentProcess::start(name.as_str(), argv, id, arrivals)?;
        let (peer, line) = CoordinatorPeer::open(PROGRAM, limits, now_ns, HELLO_TIMEOUT_NS);
        process.send(&line);
        Ok(Self { name: name.clone(), id, process, peer })
    }

    /// Sends a request whose answer is awaited for `timeout_ns`.
    pub fn request(&mut self, message: &ToAgent, now_ns: u64, timeout_ns: u64) {
        let line = self.peer.request(message, now_ns, timeout_ns);
        self.process.send(&line);
    }

    /// Has traffic begin, which is awaited for `timeout_ns`, and end, which is then awaited for `done_timeout_ns`.
    pub fn start(&mut self, now_ns: u64, timeout_ns: u64, done_timeout_ns: u64) {
        let line = self.peer.start(now_ns, timeout_ns, done_timeout_ns);
        self.process.send(&line);
    }

    /// Takes bytes.
    pub fn input(&mut self, bytes: &[u8], now_ns: u64) -> Result<Vec<Heard>, PeerError> {
        self.peer.input(bytes, now_ns)
    }

    /// Tells the time.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), PeerError> {
        self.peer.tick(now_ns)
    }

    /// Whether it has shown that it is an agent.
    pub fn is_greeted(&self) -> bool {
        self.peer.is_greeted()
    }

    /// When the next wait is over.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.peer.deadline_ns()
    }

    /// Ends the agent. Gives how it ended and its last words, ready to be put after a message.
    pub fn end(self) -> (String, String) {
        let banner = self.peer.unanswered_banner().join(" / ");
        let patience =
            if self.peer.is_greeted() && !self.peer.is_quiet() { END_PATIENCE } else { STRANGER_PATIENCE };
        let (status, words) = self.process.end(patience);
        let how = match status {
            // What shells, ssh and their like end with when the command is not there.
            Some(status) if status.code() == Some(127) => {
                format!("{status}: is netduel installed and in the path there?")
            }
            Some(status) => status.to_string(),
            None => "status unknown".to_owned(),
        };
        let told = |what: &str, words: &str| match words {
            "" => String::new(),
            words => format!("; {what}: {words}"),
        };
        (how, told("it printed instead of answering", &banner) + &told("its last words", &words))
    }
}
