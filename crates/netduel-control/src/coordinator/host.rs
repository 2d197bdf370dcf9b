//! One agent as the coordinator sees it: its process and its side of the protocol.
use std::sync::mpsc::Sender;

use netduel_model::ids::HostName;

use crate::launcher::{AgentProcess, Arrival, LaunchError};
use crate::peer::{CoordinatorPeer, Heard, PeerError};
use crate::protocol::ToAgent;

/// How long an agent may take to answer its first message, nanoseconds: a remote shell has to log in.
const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;

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
        id: u64,
        arrivals: Sender<(u64, Arrival)>,
        now_ns: u64,
    ) -> Result<Self, LaunchError> {
        let mut process = AgentProcess::start(name.as_str(), argv, id, arrivals)?;
        let (peer, line) = CoordinatorPeer::open(env!("CARGO_PKG_VERSION"), now_ns, HELLO_TIMEOUT_NS);
        process.send(&line);
        Ok(Self { name: name.clone(), id, process, peer })
    }

    /// Sends a request whose answer is awaited for `timeout_ns`.
    pub fn request(&mut self, message: &ToAgent, now_ns: u64, timeout_ns: u64) {
        let line = self.peer.request(message, now_ns, timeout_ns);
        self.process.send(&line);
    }

    /// Waits for the result of a trial that ends by itself.
    pub fn await_done(&mut self, now_ns: u64, timeout_ns: u64) {
        self.peer.await_done(now_ns, timeout_ns);
    }

    /// Takes bytes.
    pub fn input(&mut self, bytes: &[u8]) -> Result<Vec<Heard>, PeerError> {
        self.peer.input(bytes)
    }

    /// Tells the time.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), PeerError> {
        self.peer.tick(now_ns)
    }

    /// When the next wait is over.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.peer.deadline_ns()
    }

    /// Ends the agent. Gives how it ended and the end of its standard error, ready to be put after a message.
    pub fn end(self) -> (String, String) {
        let (status, words) = self.process.end();
        let how = match status {
            // What shells, ssh and their like end with when the command is not there.
            Some(status) if status.code() == Some(127) => {
                format!("{status}: is netduel installed and in the path there?")
            }
            Some(status) => status.to_string(),
            None => "status unknown".to_owned(),
        };
        let words = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
        (how, words)
    }
}
