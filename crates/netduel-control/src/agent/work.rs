//! The traits that the agent's loop calls: the work on its host, and the clock.
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use netduel_model::data_ports::{ListenAt, PortNeeds, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::workload::Workload;

use crate::protocol::{FailureKind, Recovery};

/// The agent's clock.
pub trait Clock {
    /// Monotonic time, nanoseconds.
    fn now_ns(&self) -> u64;
}

/// The work of an agent on its host.
pub trait Work {
    /// Restores settings that a killed agent left changed on this host. It is called before the host is described.
    fn recover(&mut self) -> Recovery {
        Recovery::default()
    }
    /// The facts of this host; with `metadata`, also those of the cloud's metadata service.
    fn snapshot(&mut self, metadata: bool) -> Result<HostSnapshot, WorkError>;
    /// Locks this host against other runs until the agent ends.
    fn lock(&mut self, run: &RunId) -> Result<(), WorkError>;
    /// Applies treatments, all or none.
    fn apply(&mut self, treatments: &[TreatmentAction]) -> Result<(), WorkError>;
    /// Undoes all changes and returns those that could not be undone.
    fn undo(&mut self) -> Vec<String>;
    /// Listens on the ports that trials with these needs would have, answers probes with this token, and returns the ports: TCP, and
    /// UDP.
    fn open_ports(
        &mut self,
        listen: ListenAt,
        needs: PortNeeds,
        token: Token,
    ) -> Result<[Vec<u16>; 2], WorkError>;
    /// Probes the open ports of a server, TCP and UDP.
    fn probe_ports(
        &mut self,
        peer: IpAddr,
        ports: [&[u16]; 2],
        token: Token,
        timeout: Duration,
    ) -> Result<Vec<ProbedPort>, WorkError>;
    /// Closes the ports, and returns the client of each handshake that began.
    fn close_ports(&mut self) -> Vec<ProbeSource>;
    /// Binds the server's sockets and returns their ports.
    fn prepare_server(
        &mut self,
        workload: &Workload,
        listen: ListenAt,
        token: Token,
    ) -> Result<Vec<u16>, WorkError>;
    /// Connects to the server.
    fn prepare_client(
        &mut self,
        workload: &Workload,
        peer: IpAddr,
        ports: &[u16],
        token: Token,
        deadline: Duration,
    ) -> Result<(), WorkError>;
    /// Reads the counters and starts traffic; returns at once. The waker is called when this end finishes by itself.
    fn start(&mut self, waker: Waker) -> Result<(), WorkError>;
    /// Figures so far.
    fn live(&self) -> LiveFigures;
    /// The other end has finished: receive what is in flight and end. Returns at once.
    fn finish(&mut self);
    /// Whether the traffic has ended.
    fn is_done(&self) -> bool;
    /// Reads the counters again and returns the results.
    fn take_result(&mut self) -> Result<TrialEnd, WorkError>;
    /// Stops and discards what is prepared or in progress.
    fn abort(&mut self);
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkError {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The operation, the cause and the remedy.
    pub message: String,
}

/// Maximum number of inputs that wait, each of at most 16 KiB: a client of a standing server that sends without end while its answers
/// wait for it must not fill the memory.
const INPUTS_MAX: usize = 64;

/// The queue of an agent's inputs.
pub(super) fn inputs() -> (SyncSender<Input>, Receiver<Input>) {
    sync_channel(INPUTS_MAX)
}

/// Wakes the agent's loop.
#[derive(Debug, Clone)]
pub struct Waker(SyncSender<Input>);

impl Waker {
    /// A waker of the loop that receives these inputs.
    pub fn new(inputs: SyncSender<Input>) -> Self {
        Self(inputs)
    }

    /// Wakes the loop, and returns at once. A loop with a full queue is awake; does nothing after the loop has ended.
    pub fn wake(&self) {
        drop(self.0.try_send(Input::Wake));
    }
}

/// An input of an agent.
#[derive(Debug)]
pub enum Input {
    /// Bytes from its coordinator.
    Bytes(Vec<u8>),
    /// Its coordinator has ended.
    End,
    /// Its work has ended.
    Wake,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_inputs_are_bounded_and_block_no_worker() {
        let (sender, receiver) = inputs();
        let room = (0..10 * INPUTS_MAX).take_while(|_| sender.try_send(Input::Bytes(Vec::new())).is_ok());
        assert_eq!(room.count(), INPUTS_MAX);
        // With a call that waits for room this test does not end.
        Waker::new(sender).wake();
        assert_eq!(receiver.iter().count(), INPUTS_MAX);
    }
}
