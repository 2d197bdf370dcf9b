//! The agent's loop: messages in, work done, messages out. What the work is is the caller's (`Work`); it ends with its input.
use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use netduel_model::ids::{RunId, Token};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::workload::Workload;

use crate::peer::{AgentPeer, PeerError};
pub use crate::protocol::FailureKind;
use crate::protocol::{FromAgent, PROTOCOL, ToAgent};

/// How often figures of a trial under way are sent.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// What an agent does on its host.
pub trait Work {
    /// The facts of this host.
    fn snapshot(&mut self) -> Result<HostSnapshot, WorkError>;
    /// Keeps other runs from this host until the agent ends.
    fn lock(&mut self, run: &RunId) -> Result<(), WorkError>;
    /// Makes changes; all or none.
    fn apply(&mut self, treatments: &[TreatmentAction]) -> Result<(), WorkError>;
    /// Undoes all changes and tells what could not be undone.
    fn undo(&mut self) -> Vec<String>;
    /// Binds the server's sockets and returns their ports.
    fn prepare_server(
        &mut self,
        workload: &Workload,
        bind: IpAddr,
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
    /// Takes the reading before and begins; returns at once. The waker is used when this end is done by itself.
    fn start(&mut self, waker: Waker) -> Result<(), WorkError>;
    /// Figures so far.
    fn live(&self) -> LiveFigures;
    /// The other end is done: drain and end. Returns at once.
    fn finish(&mut self);
    /// Whether the traffic has ended.
    fn is_done(&self) -> bool;
    /// Takes the reading after and the results.
    fn take_result(&mut self) -> Result<TrialEnd, WorkError>;
    /// Stops and throws away what is prepared or under way.
    fn abort(&mut self);
}

/// Why work could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkError {
    /// Whose fault.
    pub kind: FailureKind,
    /// What, why, and what to do.
    pub message: String,
}

/// Wakes the agent's loop.
#[derive(Debug, Clone)]
pub struct Waker(Sender<Input>);

impl Waker {
    /// Wakes it; once it has ended this does nothing.
    pub fn wake(&self) {
        drop(self.0.send(Input::Wake));
    }
}

#[derive(Debug)]
enum Input {
    Bytes(Vec<u8>),
    End,
    Wake,
}

/// Why an agent ended other than by the end of its input.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// What came in is not the protocol, or not in its order.
    #[error("failed to understand the coordinator: {0} (`netduel agent` is started by a run, not by hand)")]
    Peer(#[from] PeerError),
    /// The answer could not be written.
    #[error("failed to answer the coordinator: {0}")]
    Write(#[from] std::io::Error),
}

/// Serves one coordinator until its input ends. Traffic is stopped and treatments are undone in every case.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    work: &mut dyn Work,
    program: &str,
) -> Result<(), AgentError> {
    let (sender, receiver) = channel();
    let waker = Waker(sender.clone());
    std::thread::Builder::new().name("control-in".to_owned()).spawn(move || read_all(input, &sender))?;
    let mut session = Session { output, work, waker, program, peer: AgentPeer::default() };
    let result = session.run(&receiver);
    session.work.abort();
    for problem in session.work.undo() {
        eprintln!("netduel agent: not undone: {problem}");
    }
    result
}

fn read_all(mut input: impl Read, sender: &Sender<Input>) {
    let mut buffer = [0; 16 << 10];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                if sender.send(Input::Bytes(buffer[..read].to_vec())).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    drop(sender.send(Input::End));
}

struct Session<'a, O> {
    output: O,
    work: &'a mut dyn Work,
    waker: Waker,
    program: &'a str,
    peer: AgentPeer,
}

impl<O: Write> Session<'_, O> {
    fn run(&mut self, receiver: &Receiver<Input>) -> Result<(), AgentError> {
        loop {
            let input = if self.peer.is_running() {
                match receiver.recv_timeout(PROGRESS_INTERVAL) {
                    Ok(input) => Some(input),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            } else {
                match receiver.recv() {
                    Ok(input) => Some(input),
                    Err(_) => return Ok(()),
                }
            };
            match input {
                Some(Input::Bytes(bytes)) => {
                    self.peer.push(&bytes);
                    self.messages()?;
                }
                Some(Input::End) => return Ok(()),
                Some(Input::Wake) => {}
                None => {
                    let figures = self.work.live();
                    self.say(&FromAgent::Progress { figures })?;
                }
            }
            if self.peer.is_running() && self.work.is_done() {
                let answer = match self.work.take_result() {
                    Ok(end) => FromAgent::Done { end: Box::new(end) },
                    Err(error) => failed(error),
                };
                self.say(&answer)?;
            }
        }
    }

    fn say(&mut self, message: &FromAgent) -> Result<(), AgentError> {
        self.output.write_all(self.peer.say(message).as_bytes())?;
        Ok(self.output.flush()?)
    }

    fn messages(&mut self) -> Result<(), AgentError> {
        loop {
            match self.peer.next_message() {
                Ok(Some(message)) => self.message(message)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    // A coordinator of another version is told ours, so that it can name both.
                    if let PeerError::Version { .. } = error {
                        self.say(&FromAgent::Hello { protocol: PROTOCOL, program: self.program.to_owned() })?;
                    }
                    return Err(error.into());
                }
            }
        }
    }

    fn message(&mut self, message: ToAgent) -> Result<(), AgentError> {
        let answer = match message {
            ToAgent::Hello { .. } => {
                Ok(FromAgent::Hello { protocol: PROTOCOL, program: self.program.to_owned() })
            }
            ToAgent::Describe => self.work.snapshot().map(|s| FromAgent::Described { snapshot: Box::new(s) }),
            ToAgent::LockHost { run } => self.work.lock(&run).map(|()| FromAgent::Locked),
            ToAgent::Apply { treatments } => self.work.apply(&treatments).map(|()| FromAgent::Applied),
            ToAgent::Undo => Ok(FromAgent::Undone { problems: self.work.undo() }),
            ToAgent::PrepareServer { workload, bind, token } => {
                self.work.prepare_server(&workload, bind, token).map(|ports| FromAgent::Prepared { ports })
            }
            ToAgent::PrepareClient { workload, peer, ports, token, deadline } => self
                .work
                .prepare_client(&workload, peer, &ports, token, deadline.to_duration())
                .map(|()| FromAgent::Prepared { ports: Vec::new() }),
            ToAgent::Start => self.work.start(self.waker.clone()).map(|()| FromAgent::Started),
            ToAgent::Finish => {
                self.work.finish();
                return Ok(());
            }
            ToAgent::Abort => {
                self.work.abort();
                Ok(FromAgent::Aborted)
            }
        };
        self.say(&answer.unwrap_or_else(failed))
    }
}

fn failed(error: WorkError) -> FromAgent {
    FromAgent::Failed { kind: error.kind, message: error.message }
}
