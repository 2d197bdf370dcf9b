//! The agent's loop: messages in, work done, messages out. What the work is is the caller's (`Work`), and so is the clock.
//!
//! It ends with its input, with a limit that the coordinator set, or with an error of the protocol, and leaves nothing behind.
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
pub use crate::protocol::{Bounds, FailureKind};
use crate::protocol::{FromAgent, ToAgent, encode};

/// The agent's clock.
pub trait Clock {
    /// Nanoseconds of a clock that never steps back.
    fn now_ns(&self) -> u64;
}

/// What an agent does on its host.
pub trait Work {
    /// The facts of this host, those that a cloud's metadata service tells only when `metadata` says so.
    fn snapshot(&mut self, metadata: bool) -> Result<HostSnapshot, WorkError>;
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

/// Why an agent ended other than by the end of its input or the end of the run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The coordinator speaks another version, said what makes no sense, or nothing for too long.
    #[error("failed to go on with the coordinator: {0}; `netduel agent` is started by a run, not by hand")]
    Coordinator(#[from] PeerError),
    /// The answer could not be written.
    #[error("failed to answer the coordinator: {0}; it seems to have gone")]
    Write(#[source] std::io::Error),
    /// The thread that reads could not be started.
    #[error(
        "failed to start the thread that listens to the coordinator: {0}; the host may have too many threads"
    )]
    Thread(#[source] std::io::Error),
}

/// Serves one coordinator until its end; `program` is the name and version of this program. Traffic is stopped and treatments
/// are undone in every case, also when the work panics.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    work: &mut dyn Work,
    program: &str,
    clock: &dyn Clock,
) -> Result<(), AgentError> {
    serve_within(Bounds::default(), input, output, work, program, clock)
}

/// The same for a coordinator that may ask for no more than `bounds`.
pub fn serve_within(
    bounds: Bounds,
    input: impl Read + Send + 'static,
    output: impl Write,
    work: &mut dyn Work,
    program: &str,
    clock: &dyn Clock,
) -> Result<(), AgentError> {
    let (sender, receiver) = channel();
    let waker = Waker(sender.clone());
    std::thread::Builder::new()
        .name("control-in".to_owned())
        .spawn(move || read_all(input, &sender))
        .map_err(AgentError::Thread)?;
    let peer = AgentPeer::bounded(program, bounds, clock.now_ns());
    Session { output, work: Cleaned { work, is_clean: false }, waker, peer, clock }.run(&receiver)
}

/// Work that is stopped and undone when it goes out of sight, however that happens.
struct Cleaned<'a> {
    work: &'a mut dyn Work,
    is_clean: bool,
}

impl Cleaned<'_> {
    fn clean(&mut self) -> Vec<String> {
        self.is_clean = true;
        self.work.abort();
        self.work.undo()
    }
}

impl Drop for Cleaned<'_> {
    fn drop(&mut self) {
        if self.is_clean {
            return;
        }
        for problem in self.clean() {
            // Nobody listens to the protocol any more; the end of standard error is kept by whoever started this agent.
            eprintln!("netduel agent: not undone: {problem}");
        }
    }
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
    work: Cleaned<'a>,
    waker: Waker,
    peer: AgentPeer,
    clock: &'a dyn Clock,
}

impl<O: Write> Session<'_, O> {
    fn run(&mut self, receiver: &Receiver<Input>) -> Result<(), AgentError> {
        loop {
            let wait_ns = self.peer.deadline_ns().saturating_sub(self.clock.now_ns());
            match receiver.recv_timeout(Duration::from_nanos(wait_ns)) {
                Ok(Input::Bytes(bytes)) => {
                    self.peer.push(&bytes, self.clock.now_ns());
                    while let Some(request) = self.next_request()? {
                        if request == ToAgent::Bye {
                            let problems = self.work.clean();
                            return self.say(&FromAgent::Bye { problems });
                        }
                        self.serve(request)?;
                    }
                }
                Ok(Input::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.look_for_the_end_of_traffic()?;
            if self.peer.tick(self.clock.now_ns())? {
                let line = self.peer.progress(self.work.work.live(), self.clock.now_ns());
                self.write(&line)?;
            }
        }
    }

    fn next_request(&mut self) -> Result<Option<ToAgent>, AgentError> {
        self.peer.next_request().map_err(|error| {
            if matches!(error, PeerError::Version { .. }) {
                // The coordinator is the end that a user sees; it can name both versions when it hears this one.
                drop(self.write(&encode(&self.peer.greeting())));
            }
            error.into()
        })
    }

    fn look_for_the_end_of_traffic(&mut self) -> Result<(), AgentError> {
        if !self.peer.is_running() || !self.work.work.is_done() {
            return Ok(());
        }
        // The last interval of whoever watches ends with the traffic.
        let line = self.peer.progress(self.work.work.live(), self.clock.now_ns());
        self.write(&line)?;
        let answer = match self.work.work.take_result() {
            Ok(end) => FromAgent::Done { trial: self.peer.trial(), end: Box::new(end) },
            Err(error) => failed(error),
        };
        self.say(&answer)
    }

    fn say(&mut self, message: &FromAgent) -> Result<(), AgentError> {
        let line = self.peer.answer(message, self.clock.now_ns());
        self.write(&line)
    }

    fn write(&mut self, line: &str) -> Result<(), AgentError> {
        self.output.write_all(line.as_bytes()).and_then(|()| self.output.flush()).map_err(AgentError::Write)
    }

    fn serve(&mut self, request: ToAgent) -> Result<(), AgentError> {
        let work = &mut *self.work.work;
        let answer = match request {
            ToAgent::Hello { .. } => Ok(self.peer.greeting()),
            ToAgent::Describe { without_metadata } => {
                work.snapshot(!without_metadata).map(|s| FromAgent::Described { snapshot: Box::new(s) })
            }
            ToAgent::LockHost { run } => match work.lock(&run) {
                Err(WorkError { kind: FailureKind::Busy, message }) => {
                    Ok(FromAgent::HostBusy { by: message })
                }
                locked => locked.map(|()| FromAgent::Locked),
            },
            ToAgent::Apply { treatments } => work.apply(&treatments).map(|()| FromAgent::Applied),
            ToAgent::Undo => Ok(FromAgent::Undone { problems: work.undo() }),
            ToAgent::PrepareServer { workload, bind, token, .. } => {
                work.prepare_server(&workload, bind, token).map(|ports| FromAgent::Prepared { ports })
            }
            ToAgent::PrepareClient { workload, peer, ports, token, deadline, .. } => work
                .prepare_client(&workload, peer, &ports, token, deadline.to_duration())
                .map(|()| FromAgent::Prepared { ports: Vec::new() }),
            ToAgent::Start => work.start(self.waker.clone()).map(|()| FromAgent::Started),
            ToAgent::Finish => {
                work.finish();
                return Ok(());
            }
            ToAgent::Abort | ToAgent::Bye => {
                work.abort();
                Ok(FromAgent::Aborted)
            }
        };
        self.say(&answer.unwrap_or_else(failed))
    }
}

fn failed(error: WorkError) -> FromAgent {
    FromAgent::Failed { kind: error.kind, message: error.message }
}
