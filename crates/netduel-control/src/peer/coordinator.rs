//! The coordinator's side of the conversation with one agent. No IO, no clock, no thread.
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::trial::TrialEnd;

use super::error::{BANNER_LINES_MAX, PeerError};
use super::name::name_of;
use crate::protocol::{
    FailureKind, FromAgent, Limits, Lines, Opening, PROTOCOL, ToAgent, TrialNumber, decode, encode, quote,
};

/// The coordinator abandons an agent that sends nothing for this long while its traffic runs, nanoseconds. It is longer than an outage in a
/// failover trial, and longer than a thread waits for a core on a busy host. With a longer progress interval it is ten intervals.
const QUIET_NS: u64 = 10_000_000_000;
const QUIET_LINES: u64 = 10;

/// The largest extension of a deadline, nanoseconds: it also abandons an agent that sends more than the coordinator can read. An agent
/// without traffic abandons its coordinator after a minute.
const EXTENSION_NS_MAX: u64 = 120_000_000_000;

/// An event from an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The answer to the request.
    Answer(FromAgent),
    /// Live figures of the running trial.
    Progress(LiveFigures),
    /// The trial has ended at that end.
    Done(Box<TrialEnd>),
    /// The request or the running trial failed.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
        /// The agent's message.
        message: String,
    },
}

/// State of a peer: what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Hello,
    Described,
    Locked,
    Applied,
    Undone,
    PortsOpen,
    Probed,
    PortsClosed,
    Prepared,
    Started,
    Done,
    Aborted,
    Bye,
}

impl PeerError {
    /// An agent sent this answer to a request that has another one.
    pub fn unexpected(answer: &FromAgent, request: &ToAgent) -> Self {
        Self::Unexpected { got: name_of(answer), awaited: Awaited::of(request).name() }
    }
}

impl Awaited {
    fn name(self) -> &'static str {
        match self {
            Self::Hello => "the first message",
            Self::Described => "the description of the host",
            Self::Locked => "the lock of the host",
            Self::Applied => "the treatments",
            Self::Undone => "the undoing of treatments",
            Self::PortsOpen => "the open ports",
            Self::Probed => "the probe of the ports",
            Self::PortsClosed => "the end of the probe",
            Self::Prepared => "the sockets",
            Self::Started => "the start of traffic",
            Self::Done => "the result of the trial",
            Self::Aborted => "the end of traffic",
            Self::Bye => "the end of the agent",
        }
    }

    fn of(request: &ToAgent) -> Self {
        match request {
            ToAgent::Hello { .. } => Self::Hello,
            ToAgent::Describe { .. } => Self::Described,
            ToAgent::LockHost { .. } => Self::Locked,
            ToAgent::Apply { .. } => Self::Applied,
            ToAgent::Undo => Self::Undone,
            ToAgent::OpenPorts { .. } => Self::PortsOpen,
            ToAgent::ProbePorts { .. } => Self::Probed,
            ToAgent::ClosePorts => Self::PortsClosed,
            ToAgent::PrepareServer { .. } | ToAgent::PrepareClient { .. } => Self::Prepared,
            ToAgent::Start => Self::Started,
            ToAgent::Finish => Self::Done,
            ToAgent::Abort => Self::Aborted,
            ToAgent::Bye => Self::Bye,
        }
    }

    fn is_answered_by(self, message: &FromAgent) -> bool {
        match message {
            FromAgent::Hello { .. } => self == Self::Hello,
            FromAgent::Described { .. } => self == Self::Described,
            FromAgent::Locked | FromAgent::HostBusy { .. } => self == Self::Locked,
            FromAgent::Applied => self == Self::Applied,
            FromAgent::Undone { .. } => self == Self::Undone,
            FromAgent::PortsOpen { .. } => self == Self::PortsOpen,
            FromAgent::Probed { .. } => self == Self::Probed,
            FromAgent::PortsClosed { .. } => self == Self::PortsClosed,
            FromAgent::Prepared { .. } => self == Self::Prepared,
            FromAgent::Started => self == Self::Started,
            FromAgent::Progress { .. } | FromAgent::Done { .. } => self == Self::Done,
            FromAgent::Aborted => self == Self::Aborted,
            FromAgent::Bye { .. } => self == Self::Bye,
            // `hello`, `abort` and `bye` cannot be refused.
            FromAgent::Failed { .. } => !matches!(self, Self::Hello | Self::Aborted | Self::Bye),
        }
    }

    /// Whether messages before the answer are ignored: the answer to an abandoned request may be in flight.
    fn flushes(self) -> bool {
        matches!(self, Self::Aborted | Self::Bye)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Await {
    what: Awaited,
    since_ns: u64,
    deadline_ns: u64,
    /// When the agent must have sent a message.
    quiet_until_ns: u64,
    /// Total extension of the deadline.
    extended_ns: u64,
}

/// The coordinator's side of one agent. One request at a time: the next needs the answer or an abort first.
#[derive(Debug)]
pub struct CoordinatorPeer {
    lines: Lines,
    program: String,
    awaited: Option<Await>,
    greeted: bool,
    banner: Vec<String>,
    trial: TrialNumber,
    /// The treatments that it applied last, in words.
    treatments: String,
    /// Timeout of the result after traffic started, nanoseconds.
    done_timeout_ns: u64,
    /// Maximum silence of the agent while traffic runs, nanoseconds.
    quiet_ns: u64,
    is_quiet: bool,
}

impl CoordinatorPeer {
    /// A new peer and the line that opens the conversation; `program` is the name and version of this program.
    pub fn open(program: &str, limits: Limits, now_ns: u64, timeout_ns: u64) -> (Self, String) {
        let program = program.to_owned();
        let mut peer = Self {
            lines: Lines::default(),
            program: program.clone(),
            awaited: None,
            greeted: false,
            banner: Vec::new(),
            trial: 0,
            treatments: String::new(),
            done_timeout_ns: 0,
            quiet_ns: limits.progress.0.saturating_mul(QUIET_LINES).max(QUIET_NS),
            is_quiet: false,
        };
        let line = peer.request(&ToAgent::Hello { protocol: PROTOCOL, program, limits }, now_ns, timeout_ns);
        (peer, line)
    }

    fn expect(&mut self, what: Awaited, now_ns: u64, timeout_ns: u64) {
        let quiet_ns = if what == Awaited::Done { self.quiet_ns } else { u64::MAX };
        self.awaited = Some(Await {
            what,
            since_ns: now_ns,
            deadline_ns: now_ns.saturating_add(timeout_ns),
            quiet_until_ns: now_ns.saturating_add(quiet_ns),
            extended_ns: 0,
        });
    }

    /// The line of a request; its answer is awaited for `timeout_ns`.
    pub fn request(&mut self, message: &ToAgent, now_ns: u64, timeout_ns: u64) -> String {
        if let ToAgent::PrepareServer { trial, .. } | ToAgent::PrepareClient { trial, .. } = message {
            self.trial = *trial;
        }
        if let ToAgent::Apply { treatments } = message {
            self.treatments = treatments.iter().map(TreatmentAction::words).collect::<Vec<_>>().join(", ");
        }
        let awaited = self.awaited.map(|awaited| awaited.what);
        if *message == ToAgent::Start {
            self.done_timeout_ns = timeout_ns;
        }
        // A result that was sent without a request is the only one.
        if *message != ToAgent::Finish || awaited == Some(Awaited::Done) {
            let what = Awaited::of(message);
            // The agent reads this request after the abandoned one, which keeps its own deadline. Traffic stops at once.
            let busy_until_ns = self
                .awaited
                .filter(|given_up| what.flushes() && given_up.what != Awaited::Done)
                .map_or(now_ns, |given_up| given_up.deadline_ns.max(now_ns));
            self.expect(what, now_ns, (busy_until_ns - now_ns).saturating_add(timeout_ns));
        }
        encode(message)
    }

    /// The line that starts traffic. Its answer is awaited for `timeout_ns`, and immediately after it the result for
    /// `done_timeout_ns`.
    pub fn start(&mut self, now_ns: u64, timeout_ns: u64, done_timeout_ns: u64) -> String {
        let line = self.request(&ToAgent::Start, now_ns, timeout_ns);
        self.done_timeout_ns = done_timeout_ns;
        line
    }

    /// When [`CoordinatorPeer::tick`] has to be called next; `None` when nothing is awaited.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.awaited.map(|awaited| awaited.deadline_ns.min(awaited.quiet_until_ns))
    }

    /// The coordinator did not listen from `from_ns` to `to_ns`: extends the deadline by that time.
    pub fn postpone(&mut self, from_ns: u64, to_ns: u64) {
        if let Some(awaited) = &mut self.awaited {
            let lost_ns = to_ns.saturating_sub(from_ns.max(awaited.since_ns));
            let lost_ns = lost_ns.min(EXTENSION_NS_MAX.saturating_sub(awaited.extended_ns));
            awaited.extended_ns += lost_ns;
            awaited.deadline_ns = awaited.deadline_ns.saturating_add(lost_ns);
            awaited.quiet_until_ns = awaited.quiet_until_ns.saturating_add(lost_ns);
        }
    }

    /// Checks the deadline.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), PeerError> {
        match self.awaited {
            Some(awaited) if now_ns >= awaited.deadline_ns => {
                Err(self.silent(awaited.what, now_ns.saturating_sub(awaited.since_ns)))
            }
            Some(awaited) if now_ns >= awaited.quiet_until_ns => {
                self.is_quiet = true;
                Err(PeerError::Quiet { seconds: self.quiet_ns / 1_000_000_000 })
            }
            _ => Ok(()),
        }
    }

    /// The error of an answer that did not come.
    fn silent(&self, awaited: Awaited, waited_ns: u64) -> PeerError {
        let doing = match awaited {
            Awaited::Applied => "applying",
            Awaited::Undone => "undoing",
            _ => return PeerError::Silent { awaited: awaited.name(), waited_ms: waited_ns / 1_000_000 },
        };
        let treatments = self.treatments.clone();
        PeerError::Treating { doing, treatments, seconds: waited_ns / 1_000_000_000 }
    }

    /// Whether the agent was abandoned because it sent nothing while its traffic ran.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Whether the agent has sent its first message. Before that it changes nothing on its host.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// The output of an agent that ended before its first message: often the reason.
    pub fn unanswered_banner(&self) -> &[String] {
        if self.greeted { &[] } else { &self.banner }
    }

    /// Processes bytes from the agent.
    pub fn input(&mut self, bytes: &[u8], now_ns: u64) -> Result<Vec<AgentEvent>, PeerError> {
        self.lines.push(bytes);
        let mut events = Vec::new();
        while let Some(line) = self.lines.next_line()? {
            if self.greeted {
                events.extend(self.message(decode(&line)?, now_ns)?);
            } else {
                events.extend(self.first_line(&line, now_ns)?);
            }
        }
        Ok(events)
    }

    fn first_line(&mut self, line: &[u8], now_ns: u64) -> Result<Option<AgentEvent>, PeerError> {
        if let Some(Opening { protocol, program, .. }) = Opening::of(line) {
            if protocol != PROTOCOL {
                return Err(PeerError::Version { theirs: protocol, program, ours: self.program.clone() });
            }
            self.greeted = true;
            return self.message(decode(line)?, now_ns);
        }
        if let Ok(message) = decode::<FromAgent>(line) {
            return Err(PeerError::Unexpected { got: name_of(&message), awaited: Awaited::Hello.name() });
        }
        if self.banner.len() == BANNER_LINES_MAX {
            return Err(PeerError::Banner { last: quote(line) });
        }
        self.banner.push(quote(line));
        Ok(None)
    }

    fn message(&mut self, message: FromAgent, now_ns: u64) -> Result<Option<AgentEvent>, PeerError> {
        let awaited = self.awaited.map(|awaited| awaited.what);
        let answers = awaited.is_some_and(|awaited| awaited.is_answered_by(&message));
        if !answers && awaited.is_some_and(Awaited::flushes) {
            return Ok(None);
        }
        let of_this_trial = match &message {
            FromAgent::Progress { trial, .. } | FromAgent::Done { trial, .. } => *trial == self.trial,
            _ => true,
        };
        if !answers || !of_this_trial {
            return Err(PeerError::Unexpected {
                got: name_of(&message),
                awaited: awaited.map_or("nothing", Awaited::name),
            });
        }
        if let FromAgent::Progress { figures, .. } = message {
            if let Some(awaited) = &mut self.awaited {
                awaited.quiet_until_ns = now_ns.saturating_add(self.quiet_ns);
            }
            return Ok(Some(AgentEvent::Progress(figures)));
        }
        self.awaited = None;
        Ok(Some(match message {
            FromAgent::Done { end, .. } => AgentEvent::Done(end),
            FromAgent::Failed { kind, message } => AgentEvent::Failed { kind, message },
            FromAgent::Started => {
                self.expect(Awaited::Done, now_ns, self.done_timeout_ns);
                AgentEvent::Answer(FromAgent::Started)
            }
            answer => AgentEvent::Answer(answer),
        }))
    }
}
