//! The agent's side of the conversation with its coordinator. No IO, no clock, no thread.
//!
//! [`AgentPeer::next_request`] returns one request at a time; each is answered with [`AgentPeer::answer`] before the next.
//! A request out of order is an error: both programs have one version, so it is a bug or another program, and an agent that continued
//! could leave a host changed.
use netduel_model::sample::LiveFigures;
use netduel_model::units::Nanos;

use super::error::PeerError;
use super::name::name_of;
use crate::protocol::{
    Bounds, FromAgent, Limits, Lines, Opening, PROTOCOL, ToAgent, TrialNumber, decode, encode,
};

/// Time that traffic may run beyond its duration before the agent abandons it, nanoseconds. Longer than the coordinator's deadline, so that
/// the coordinator's error reaches the user first.
pub const RUNNING_MARGIN_NS: u64 = 60_000_000_000;
/// Timeout of the first message, nanoseconds.
const HELLO_TIMEOUT_NS: u64 = 60_000_000_000;

/// State of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the first message.
    Opening,
    /// Between trials.
    Idle,
    /// Sockets are ready.
    Prepared,
    /// Traffic runs.
    Running { since_ns: u64, next_progress_ns: u64 },
}

/// The agent's side.
#[derive(Debug)]
pub struct AgentPeer {
    lines: Lines,
    program: String,
    limits: Limits,
    /// Limits of the coordinator's requests.
    limits_max: Limits,
    opened_ns: u64,
    /// Time of the last request or answer, nanoseconds.
    spoken_ns: u64,
    stage: Stage,
    trial: TrialNumber,
    duration_ns: u64,
}

impl AgentPeer {
    /// A new peer; `program` is the name and version of this program.
    pub fn new(program: &str, now_ns: u64) -> Self {
        Self::bounded(program, Bounds::default(), now_ns)
    }

    /// As [`AgentPeer::new`], for a coordinator with limited trust.
    pub fn bounded(program: &str, bounds: Bounds, now_ns: u64) -> Self {
        let hello = Nanos(HELLO_TIMEOUT_NS);
        let limits_max = Limits { total: bounds.total, idle: bounds.idle, progress: Nanos(u64::MAX) };
        Self {
            lines: Lines::bounded(bounds.line_len),
            program: program.to_owned(),
            limits: Limits { total: hello, idle: hello, progress: Limits::PROGRESS }.within(limits_max),
            limits_max,
            opened_ns: now_ns,
            spoken_ns: now_ns,
            stage: Stage::Opening,
            trial: 0,
            duration_ns: 0,
        }
    }

    /// Processes bytes from the coordinator.
    pub fn push(&mut self, bytes: &[u8], now_ns: u64) {
        self.spoken_ns = now_ns;
        self.lines.push(bytes);
    }

    /// The next request. A first message of another version is an error, but the caller still answers it with
    /// [`AgentPeer::greeting`], so that the coordinator can name both versions.
    pub fn next_request(&mut self) -> Result<Option<ToAgent>, PeerError> {
        while let Some(line) = self.lines.next_line()? {
            if self.stage == Stage::Opening
                && let Some(Opening { protocol, program, .. }) = Opening::of(&line)
                && protocol != PROTOCOL
            {
                return Err(PeerError::Version { theirs: protocol, program, ours: self.program.clone() });
            }
            let request: ToAgent = decode(&line)?;
            if self.is_belated(&request) {
                continue;
            }
            self.check(&request)?;
            match &request {
                ToAgent::Hello { limits, .. } => self.limits = limits.within(self.limits_max),
                ToAgent::PrepareServer { trial, workload, .. }
                | ToAgent::PrepareClient { trial, workload, .. } => {
                    self.trial = *trial;
                    self.duration_ns = workload.timing.duration.0;
                }
                _ => {}
            }
            return Ok(Some(request));
        }
        Ok(None)
    }

    /// Whether a request is obsolete: this end was done before it read `finish`.
    fn is_belated(&self, request: &ToAgent) -> bool {
        *request == ToAgent::Finish && self.stage == Stage::Idle
    }

    fn check(&self, request: &ToAgent) -> Result<(), PeerError> {
        let (fits, awaited) = match self.stage {
            Stage::Opening => (matches!(request, ToAgent::Hello { .. }), "the first message"),
            _ if matches!(request, ToAgent::Abort | ToAgent::Bye) => (true, ""),
            Stage::Idle => (
                !matches!(request, ToAgent::Hello { .. } | ToAgent::Start | ToAgent::Finish),
                "the next trial",
            ),
            Stage::Prepared => (*request == ToAgent::Start, "the start of traffic"),
            Stage::Running { .. } => (*request == ToAgent::Finish, "the end of traffic"),
        };
        if fits { Ok(()) } else { Err(PeerError::Unexpected { got: name_of(request), awaited }) }
    }

    fn progress_ns(&self) -> u64 {
        self.limits.progress.0.max(Limits::PROGRESS_MIN.0)
    }

    /// The first message of this end.
    pub fn greeting(&self) -> FromAgent {
        FromAgent::Hello { protocol: PROTOCOL, program: self.program.clone() }
    }

    /// The line of an answer.
    pub fn answer(&mut self, message: &FromAgent, now_ns: u64) -> String {
        self.spoken_ns = now_ns;
        self.stage = match message {
            FromAgent::Hello { .. } | FromAgent::Aborted | FromAgent::Done { .. } | FromAgent::Bye { .. } => {
                Stage::Idle
            }
            FromAgent::Prepared { .. } => Stage::Prepared,
            FromAgent::Started => Stage::Running {
                since_ns: now_ns,
                next_progress_ns: now_ns.saturating_add(self.progress_ns()),
            },
            // A failed start or trial has ended; the agent is ready for the next request.
            FromAgent::Failed { .. } => Stage::Idle,
            FromAgent::Described { .. }
            | FromAgent::Locked
            | FromAgent::HostBusy { .. }
            | FromAgent::Applied
            | FromAgent::Undone { .. }
            | FromAgent::PortsOpen { .. }
            | FromAgent::Probed { .. }
            | FromAgent::PortsClosed { .. }
            | FromAgent::Progress { .. } => self.stage,
        };
        encode(message)
    }

    /// Whether traffic runs, so that its end must be checked for.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { .. })
    }

    /// The running trial, or the last one.
    pub fn trial(&self) -> TrialNumber {
        self.trial
    }

    /// When [`AgentPeer::tick`] has to be called next.
    pub fn deadline_ns(&self) -> u64 {
        let total_ns = self.opened_ns.saturating_add(self.limits.total.0);
        match self.stage {
            Stage::Running { next_progress_ns, .. } => total_ns.min(next_progress_ns),
            _ => total_ns.min(self.spoken_ns.saturating_add(self.limits.idle.0)),
        }
    }

    /// Processes the time. True when live figures are due, which [`AgentPeer::progress`] sends.
    pub fn tick(&mut self, now_ns: u64) -> Result<bool, PeerError> {
        let silent = |awaited, since_ns: u64| {
            Err(PeerError::Silent { awaited, waited_ms: now_ns.saturating_sub(since_ns) / 1_000_000 })
        };
        if now_ns >= self.opened_ns.saturating_add(self.limits.total.0) {
            return silent("the end of the run", self.opened_ns);
        }
        match self.stage {
            Stage::Running { since_ns, next_progress_ns } => {
                let overdue_ns = self.duration_ns.saturating_add(RUNNING_MARGIN_NS);
                if now_ns >= since_ns.saturating_add(overdue_ns) {
                    return silent("the end of traffic", since_ns);
                }
                Ok(now_ns >= next_progress_ns)
            }
            _ if now_ns >= self.spoken_ns.saturating_add(self.limits.idle.0) => {
                silent("the next request", self.spoken_ns)
            }
            _ => Ok(false),
        }
    }

    /// The line with figures so far.
    pub fn progress(&mut self, figures: LiveFigures, now_ns: u64) -> String {
        let next_ns = now_ns.saturating_add(self.progress_ns());
        if let Stage::Running { next_progress_ns, .. } = &mut self.stage {
            *next_progress_ns = next_ns;
        }
        encode(&FromAgent::Progress { trial: self.trial, figures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval is the coordinator's: a wrong one must not end the agent.
    #[test]
    fn progress_interval_without_an_end_is_never_due() {
        let mut agent = AgentPeer::new("agent", 0);
        agent.limits = Limits { progress: Nanos(u64::MAX), ..agent.limits };
        agent.answer(&FromAgent::Started, 7);
        agent.progress(LiveFigures::default(), 8);
        assert_eq!(agent.deadline_ns(), agent.limits.total.0);
    }
}
