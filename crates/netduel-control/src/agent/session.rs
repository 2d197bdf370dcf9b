//! The agent's side of a run without threads: it receives inputs and the time, does the work, and returns lines. The caller waits for inputs.
use std::io::Write;
use std::ops::{Deref, DerefMut};

use netduel_model::data_ports::ListenAt;
use netduel_model::observation::ControlTraffic;
use netduel_model::plain_text::plain;

use super::work::{Clock, Input, Waker, Work, WorkError};
use crate::peer::{AgentPeer, PeerError};
use crate::protocol::{Bounds, FailureKind, FromAgent, ToAgent, encode};

/// Why an agent ended before the end of its input and of the run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The coordinator violated the protocol or a deadline.
    #[error("failed to go on with the coordinator: {0}; `netduel agent` is started by a run, not by hand")]
    Coordinator(#[from] PeerError),
    /// The answer could not be written.
    #[error("failed to answer the coordinator: {0}; it seems to have gone")]
    Write(#[source] std::io::Error),
    /// The reading thread could not be started.
    #[error(
        "failed to start the thread that listens to the coordinator: {0}; the host may have too many threads"
    )]
    Thread(#[source] std::io::Error),
}

/// Work that is stopped and undone when it is dropped, also by a panic.
struct Cleaned<W: DerefMut<Target: Work>> {
    work: W,
    is_clean: bool,
}

impl<W: DerefMut<Target: Work>> Cleaned<W> {
    fn clean(&mut self) -> Vec<String> {
        self.is_clean = true;
        self.work.abort();
        self.work.undo()
    }
}

impl<W: DerefMut<Target: Work>> Drop for Cleaned<W> {
    fn drop(&mut self) {
        if self.is_clean {
            return;
        }
        for problem in self.clean() {
            // The connection is gone; the launcher keeps the last lines of standard error.
            drop(writeln!(std::io::stderr(), "netduel agent: not undone: {}", plain(&problem)));
        }
    }
}

/// Whether a session continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It continues.
    GoesOn,
    /// It has ended.
    Ended,
}

/// The session of one coordinator, and the work that it requests. Dropping it stops traffic and undoes treatments, unless this was
/// done before.
pub struct Session<W: DerefMut<Target: Work>, C, O> {
    output: O,
    work: Cleaned<W>,
    waker: Waker,
    peer: AgentPeer,
    clock: C,
    /// What came in and went out since traffic was started.
    control: ControlTraffic,
}

impl<W: DerefMut<Target: Work>, C: Deref<Target: Clock>, O: Write> Session<W, C, O> {
    /// A session with a coordinator whose requests are limited by `bounds`; `program` is the name and version of this program.
    pub fn new(output: O, work: W, waker: Waker, clock: C, (program, bounds): (&str, Bounds)) -> Self {
        let peer = AgentPeer::bounded(program, bounds, clock.now_ns());
        let work = Cleaned { work, is_clean: false };
        Self { output, work, waker, peer, clock, control: ControlTraffic::default() }
    }

    /// When [`Self::time_passed`] has to be called next.
    pub fn deadline_ns(&self) -> u64 {
        self.peer.deadline_ns()
    }

    /// Handles one input. `Ended` after `bye`, or when the coordinator is gone.
    pub fn input(&mut self, input: Input) -> Result<Progress, AgentError> {
        match input {
            Input::Bytes(bytes) => {
                self.count(bytes.len());
                self.peer.push(&bytes, self.clock.now_ns());
                while let Some(request) = self.next_request()? {
                    if request == ToAgent::Bye {
                        let problems = self.work.clean();
                        self.send(&FromAgent::Bye { problems })?;
                        return Ok(Progress::Ended);
                    }
                    self.serve(request)?;
                }
            }
            Input::Wake => {}
            Input::End => return Ok(Progress::Ended),
        }
        self.time_passed()
    }

    /// Checks for the end of traffic, and sends live figures when they are due. Call it at the deadline at the latest.
    pub fn time_passed(&mut self) -> Result<Progress, AgentError> {
        self.look_for_the_end_of_traffic()?;
        if self.peer.tick(self.clock.now_ns())? {
            let line = self.peer.progress(self.work.work.live(), self.clock.now_ns());
            self.write(&line)?;
        }
        Ok(Progress::GoesOn)
    }

    fn next_request(&mut self) -> Result<Option<ToAgent>, AgentError> {
        self.peer.next_request().map_err(|error| {
            if matches!(error, PeerError::Version { .. }) {
                // The user sees the coordinator's output only. With this answer the coordinator can name both versions.
                drop(self.write(&encode(&self.peer.greeting())));
            }
            error.into()
        })
    }

    fn look_for_the_end_of_traffic(&mut self) -> Result<(), AgentError> {
        if !self.peer.is_running() || !self.work.work.is_done() {
            return Ok(());
        }
        // The last progress interval ends with the traffic.
        let line = self.peer.progress(self.work.work.live(), self.clock.now_ns());
        self.write(&line)?;
        let answer = match self.work.work.take_result() {
            Ok(mut end) => {
                end.observation.control = Some(self.control);
                FromAgent::Done { trial: self.peer.trial(), end: Box::new(end) }
            }
            Err(error) => failed(error),
        };
        self.send(&answer)
    }

    fn send(&mut self, message: &FromAgent) -> Result<(), AgentError> {
        let line = self.peer.answer(message, self.clock.now_ns());
        self.write(&line)
    }

    fn count(&mut self, bytes: usize) {
        self.control.bytes += bytes as u64;
        self.control.messages += 1;
    }

    fn write(&mut self, line: &str) -> Result<(), AgentError> {
        self.count(line.len());
        self.output.write_all(line.as_bytes()).and_then(|()| self.output.flush()).map_err(AgentError::Write)
    }

    fn serve(&mut self, request: ToAgent) -> Result<(), AgentError> {
        let work = &mut *self.work.work;
        let answer = match request {
            ToAgent::Hello { .. } => Ok(self.peer.greeting()),
            ToAgent::Describe { without_metadata } => {
                let recovery = work.recover();
                work.snapshot(!without_metadata)
                    .map(|snapshot| FromAgent::Described { snapshot: Box::new(snapshot), recovery })
            }
            ToAgent::LockHost { run } => match work.lock(&run) {
                Err(WorkError { kind: FailureKind::Busy, message }) => {
                    Ok(FromAgent::HostBusy { by: message })
                }
                locked => locked.map(|()| FromAgent::Locked),
            },
            ToAgent::Apply { treatments } => work.apply(&treatments).map(|()| FromAgent::Applied),
            ToAgent::Undo => Ok(FromAgent::Undone { problems: work.undo() }),
            ToAgent::OpenPorts { bind, ports, needs, token } => work
                .open_ports(ListenAt { address: bind, ports }, needs, token)
                .map(|[tcp, udp]| FromAgent::PortsOpen { tcp, udp }),
            ToAgent::ProbePorts { peer, tcp, udp, token, timeout } => work
                .probe_ports(peer, [&tcp, &udp], token, timeout.to_duration())
                .map(|ports| FromAgent::Probed { ports }),
            ToAgent::ClosePorts => Ok(FromAgent::PortsClosed { sources: work.close_ports() }),
            ToAgent::PrepareServer { workload, bind, ports, token, .. } => work
                .prepare_server(&workload, ListenAt { address: bind, ports }, token)
                .map(|ports| FromAgent::Prepared { ports }),
            ToAgent::PrepareClient { workload, peer, ports, token, deadline, .. } => work
                .prepare_client(&workload, peer, &ports, token, deadline.to_duration())
                .map(|()| FromAgent::Prepared { ports: Vec::new() }),
            ToAgent::Start => {
                self.control = ControlTraffic::default();
                work.start(self.waker.clone()).map(|()| FromAgent::Started)
            }
            ToAgent::Finish => {
                work.finish();
                return Ok(());
            }
            ToAgent::Abort | ToAgent::Bye => {
                work.abort();
                Ok(FromAgent::Aborted)
            }
        };
        self.send(&answer.unwrap_or_else(failed))
    }
}

fn failed(error: WorkError) -> FromAgent {
    FromAgent::Failed { kind: error.kind, message: error.message }
}
