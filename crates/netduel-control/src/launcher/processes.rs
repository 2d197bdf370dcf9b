//! The agents of a run as processes: a bounded channel carries their output. It does not depend on messages.
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::agents::{AgentId, Agents, Arrival, Ended, LaunchError};
use super::process::{AgentProcess, Guard};

/// Maximum number of unread pieces of output, each of at most 64 KiB. A program that prints continuously is blocked, not buffered.
const ARRIVALS_MAX: usize = 64;

/// Agent processes and the channel of their output.
#[derive(Debug)]
pub struct Processes {
    running: BTreeMap<AgentId, AgentProcess>,
    /// Guards of killed agents.
    guards: BTreeMap<AgentId, Guard>,
    arrivals: Receiver<(AgentId, Arrival)>,
    sender: SyncSender<(AgentId, Arrival)>,
}

impl Default for Processes {
    fn default() -> Self {
        let (sender, arrivals) = sync_channel(ARRIVALS_MAX);
        Self { running: BTreeMap::new(), guards: BTreeMap::new(), arrivals, sender }
    }
}

impl Processes {
    /// Without processes.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Agents for Processes {
    fn start(&mut self, id: AgentId, host: &str, argv: &[String]) -> Result<(), LaunchError> {
        let process = AgentProcess::start(host, argv, id, self.sender.clone())?;
        self.running.insert(id, process);
        Ok(())
    }

    fn send(&mut self, id: AgentId, line: &str) {
        if let Some(process) = self.running.get_mut(&id) {
            process.send(line);
        }
    }

    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)> {
        // The channel cannot be disconnected: this struct holds a sender.
        self.arrivals.recv_timeout(timeout).ok()
    }

    fn end(&mut self, id: AgentId, patience: Duration) -> Ended {
        let Some(process) = self.running.remove(&id) else { return Ended::default() };
        let (ended, guard) = process.end(patience);
        if !ended.is_over {
            self.guards.insert(id, guard);
        }
        ended
    }

    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool {
        self.guards.get(&id).is_none_or(|guard| guard.has_ended_within(patience))
    }
}
