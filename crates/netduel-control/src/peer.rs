//! The protocol as two state machines without IO: bytes and the time go in, lines, messages and the next deadline come out.
use netduel_model::sample::LiveFigures;
use netduel_model::trial::TrialEnd;

use crate::protocol::{FailureKind, FromAgent, LineError, Lines, PROTOCOL, ToAgent, decode, encode, quote};

/// Lines that are no message and are passed over before the first message: login banners of remote shells.
pub const BANNER_LINES_MAX: usize = 50;

/// What went wrong with a peer. The peer is of no use afterwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It speaks another version.
    #[error(
        "it speaks protocol {theirs} ({program}), this netduel speaks protocol {PROTOCOL}: install the same version on both hosts"
    )]
    Version {
        /// Its protocol.
        theirs: u32,
        /// Its program.
        program: String,
    },
    /// It sent something that is no message.
    #[error("it sent what is not the protocol: {0}")]
    Garbage(#[from] LineError),
    /// It began with text that is no message, for too long.
    #[error(
        "it printed {BANNER_LINES_MAX} lines that are no message instead of answering, the last was `{last}`: does the command start `netduel agent`?"
    )]
    Banner {
        /// The last such line.
        last: String,
    },
    /// It sent a message that nobody waited for.
    #[error("it sent `{got}` while {awaited} was awaited")]
    Unexpected {
        /// What came.
        got: &'static str,
        /// What was awaited.
        awaited: &'static str,
    },
    /// It did not answer in time.
    #[error("it did not answer in time: {awaited} was awaited for {waited_ms} ms")]
    Silent {
        /// What was awaited.
        awaited: &'static str,
        /// For how long, milliseconds.
        waited_ms: u64,
    },
}

/// What a coordinator learns from an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The answer to the request.
    Answer(FromAgent),
    /// Figures of the trial under way.
    Progress(LiveFigures),
    /// The trial is done at that end.
    Done(Box<TrialEnd>),
    /// The request, or the trial under way, failed.
    Failed {
        /// Whose fault.
        kind: FailureKind,
        /// The agent's words.
        message: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Await {
    what: Awaited,
    since_ns: u64,
    deadline_ns: u64,
}

/// What a peer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Hello,
    Described,
    Locked,
    Applied,
    Undone,
    Prepared,
    Started,
    Done,
    Aborted,
}

impl Awaited {
    fn name(self) -> &'static str {
        match self {
            Self::Hello => "the first message",
            Self::Described => "the description of the host",
            Self::Locked => "the lock of the host",
            Self::Applied => "the treatments",
            Self::Undone => "the undoing of treatments",
            Self::Prepared => "the sockets",
            Self::Started => "the start of traffic",
            Self::Done => "the result of the trial",
            Self::Aborted => "the end of traffic",
        }
    }

    fn is_answered_by(self, message: &FromAgent) -> bool {
        matches!(
            (self, message),
            (Self::Hello, FromAgent::Hello { .. })
                | (Self::Described, FromAgent::Described { .. })
                | (Self::Locked, FromAgent::Locked)
                | (Self::Applied, FromAgent::Applied)
                | (Self::Undone, FromAgent::Undone { .. })
                | (Self::Prepared, FromAgent::Prepared { .. })
                | (Self::Started, FromAgent::Started)
                | (Self::Aborted, FromAgent::Aborted)
        )
    }
}

/// The coordinator's side of one agent.
#[derive(Debug)]
pub struct CoordinatorPeer {
    lines: Lines,
    awaited: Option<Await>,
    greeted: bool,
    banner_lines: usize,
    /// Between "started" and the result: the result may come at any time.
    running: bool,
    /// An abandoned request's answer may still be under way: after an abort everything but `Aborted` is passed over.
    aborting: bool,
}

impl CoordinatorPeer {
    /// A new peer and the line that opens the conversation.
    pub fn open(program: &str, now_ns: u64, timeout_ns: u64) -> (Self, String) {
        let mut peer = Self {
            lines: Lines::default(),
            awaited: None,
            greeted: false,
            banner_lines: 0,
            running: false,
            aborting: false,
        };
        peer.expect(Awaited::Hello, now_ns, timeout_ns);
        (peer, encode(&ToAgent::Hello { protocol: PROTOCOL, program: program.to_owned() }))
    }

    fn expect(&mut self, what: Awaited, now_ns: u64, timeout_ns: u64) {
        self.awaited = Some(Await { what, since_ns: now_ns, deadline_ns: now_ns.saturating_add(timeout_ns) });
    }

    /// The line of a request; its answer is awaited for `timeout_ns`.
    pub fn request(&mut self, message: &ToAgent, now_ns: u64, timeout_ns: u64) -> String {
        let what = match message {
            ToAgent::Hello { .. } => Awaited::Hello,
            ToAgent::Describe => Awaited::Described,
            ToAgent::LockHost { .. } => Awaited::Locked,
            ToAgent::Apply { .. } => Awaited::Applied,
            ToAgent::Undo => Awaited::Undone,
            ToAgent::PrepareServer { .. } | ToAgent::PrepareClient { .. } => Awaited::Prepared,
            ToAgent::Start => Awaited::Started,
            ToAgent::Finish => Awaited::Done,
            ToAgent::Abort => Awaited::Aborted,
        };
        self.aborting = what == Awaited::Aborted;
        self.expect(what, now_ns, timeout_ns);
        encode(message)
    }

    /// Waits for the result of a trial that ends by itself, unless it has come already.
    pub fn await_done(&mut self, now_ns: u64, timeout_ns: u64) {
        if self.running {
            self.expect(Awaited::Done, now_ns, timeout_ns);
        }
    }

    /// When [`CoordinatorPeer::tick`] has to be called next.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.awaited.map(|awaited| awaited.deadline_ns)
    }

    /// Tells the time.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), PeerError> {
        match self.awaited {
            Some(awaited) if now_ns >= awaited.deadline_ns => Err(PeerError::Silent {
                awaited: awaited.what.name(),
                waited_ms: now_ns.saturating_sub(awaited.since_ns) / 1_000_000,
            }),
            _ => Ok(()),
        }
    }

    /// Takes bytes that the agent sent.
    pub fn input(&mut self, bytes: &[u8]) -> Result<Vec<Heard>, PeerError> {
        self.lines.push(bytes);
        let mut heard = Vec::new();
        while let Some(line) = self.lines.next_line()? {
            match decode::<FromAgent>(&line) {
                Ok(message) => heard.extend(self.message(message)?),
                Err(_) if !self.greeted && self.banner_lines < BANNER_LINES_MAX => self.banner_lines += 1,
                Err(_) if !self.greeted => return Err(PeerError::Banner { last: quote(&line) }),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(heard)
    }

    fn message(&mut self, message: FromAgent) -> Result<Option<Heard>, PeerError> {
        if self.aborting && !matches!(message, FromAgent::Aborted) {
            return Ok(None);
        }
        let awaited = self.awaited.map(|awaited| awaited.what);
        match message {
            FromAgent::Hello { protocol, program } if protocol != PROTOCOL => {
                Err(PeerError::Version { theirs: protocol, program })
            }
            FromAgent::Progress { figures } => Ok(Some(Heard::Progress(figures))),
            FromAgent::Done { end } if self.running => {
                self.running = false;
                self.awaited = None;
                Ok(Some(Heard::Done(end)))
            }
            FromAgent::Failed { kind, message } => {
                self.running = false;
                self.awaited = None;
                Ok(Some(Heard::Failed { kind, message }))
            }
            message if awaited.is_some_and(|awaited| awaited.is_answered_by(&message)) => {
                self.awaited = None;
                self.greeted = true;
                self.aborting = false;
                self.running = matches!(message, FromAgent::Started);
                Ok(Some(Heard::Answer(message)))
            }
            other => Err(PeerError::Unexpected {
                got: name_of(&other),
                awaited: awaited.map_or("nothing", Awaited::name),
            }),
        }
    }
}

fn name_of(message: &FromAgent) -> &'static str {
    match message {
        FromAgent::Hello { .. } => "hello",
        FromAgent::Described { .. } => "described",
        FromAgent::Locked => "locked",
        FromAgent::Applied => "applied",
        FromAgent::Undone { .. } => "undone",
        FromAgent::Prepared { .. } => "prepared",
        FromAgent::Started => "started",
        FromAgent::Progress { .. } => "progress",
        FromAgent::Done { .. } => "done",
        FromAgent::Aborted => "aborted",
        FromAgent::Failed { .. } => "failed",
    }
}

/// What an agent is doing, as far as it decides what may be asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    Prepared,
    Running,
}

impl Phase {
    fn awaits(self) -> &'static str {
        match self {
            Self::Idle => "the preparation of a trial",
            Self::Prepared => "the start of the trial",
            Self::Running => "the end of the trial",
        }
    }

    fn allows(self, message: &ToAgent) -> bool {
        match message {
            // The other end may be told to finish while this one's result is already under way.
            ToAgent::Abort | ToAgent::Finish => true,
            ToAgent::Start => self == Self::Prepared,
            ToAgent::PrepareServer { .. } | ToAgent::PrepareClient { .. } => self == Self::Idle,
            ToAgent::Describe | ToAgent::LockHost { .. } | ToAgent::Apply { .. } | ToAgent::Undo => {
                self != Self::Running
            }
            ToAgent::Hello { .. } => false,
        }
    }
}

/// An agent's side of its coordinator.
#[derive(Debug, Default)]
pub struct AgentPeer {
    lines: Lines,
    greeted: bool,
    phase: Phase,
}

impl AgentPeer {
    /// Takes bytes that the coordinator sent.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next message that may be acted upon; call it again after each answer, because an answer decides what may come.
    pub fn next_message(&mut self) -> Result<Option<ToAgent>, PeerError> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let message: ToAgent = decode(&line)?;
        match &message {
            ToAgent::Hello { protocol, program } if !self.greeted && *protocol != PROTOCOL => {
                return Err(PeerError::Version { theirs: *protocol, program: program.clone() });
            }
            ToAgent::Hello { .. } if !self.greeted => self.greeted = true,
            other if !self.greeted => {
                return Err(PeerError::Unexpected { got: request_name(other), awaited: "hello" });
            }
            other if !self.phase.allows(other) => {
                return Err(PeerError::Unexpected { got: request_name(other), awaited: self.phase.awaits() });
            }
            _ => {}
        }
        Ok(Some(message))
    }

    /// The line of an answer.
    pub fn say(&mut self, answer: &FromAgent) -> String {
        self.phase = match answer {
            FromAgent::Prepared { .. } => Phase::Prepared,
            FromAgent::Started => Phase::Running,
            FromAgent::Done { .. } | FromAgent::Aborted | FromAgent::Failed { .. } => Phase::Idle,
            _ => self.phase,
        };
        encode(answer)
    }

    /// Whether a trial's traffic runs.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}

fn request_name(message: &ToAgent) -> &'static str {
    match message {
        ToAgent::Hello { .. } => "hello",
        ToAgent::Describe => "describe",
        ToAgent::LockHost { .. } => "lock-host",
        ToAgent::Apply { .. } => "apply",
        ToAgent::Undo => "undo",
        ToAgent::PrepareServer { .. } => "prepare-server",
        ToAgent::PrepareClient { .. } => "prepare-client",
        ToAgent::Start => "start",
        ToAgent::Finish => "finish",
        ToAgent::Abort => "abort",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn greeted() -> CoordinatorPeer {
        let (mut peer, _) = CoordinatorPeer::open("test", 0, SECOND);
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "test".into() });
        assert!(matches!(
            peer.input(hello.as_bytes()).unwrap()[..],
            [Heard::Answer(FromAgent::Hello { .. })]
        ));
        peer
    }

    #[test]
    fn another_version_is_named_with_what_to_do() {
        let (mut peer, _) = CoordinatorPeer::open("test", 0, SECOND);
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL + 1, program: "netduel 9.9".into() });
        let error = peer.input(hello.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("netduel 9.9") && error.contains("install the same version"), "{error}");
        let mut agent = AgentPeer::default();
        agent.push(
            encode(&ToAgent::Hello { protocol: PROTOCOL + 1, program: "netduel 9.9".into() }).as_bytes(),
        );
        assert!(matches!(agent.next_message(), Err(PeerError::Version { .. })));
    }

    #[test]
    fn a_login_banner_is_passed_over_and_endless_text_is_not() {
        let (mut peer, _) = CoordinatorPeer::open("test", 0, SECOND);
        assert_eq!(peer.input(b"Welcome!\nLast login: yesterday\n"), Ok(vec![]));
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "test".into() });
        assert_eq!(peer.input(hello.as_bytes()).map(|heard| heard.len()), Ok(1));
        assert!(matches!(peer.input(b"Mail for you\n"), Err(PeerError::Garbage(_))));

        let (mut peer, _) = CoordinatorPeer::open("test", 0, SECOND);
        let endless = "y\n".repeat(BANNER_LINES_MAX + 1);
        assert!(matches!(peer.input(endless.as_bytes()), Err(PeerError::Banner { last }) if last == "y"));
    }

    #[test]
    fn silence_is_an_error_that_names_what_was_awaited() {
        let mut peer = greeted();
        peer.request(&ToAgent::Describe, 5 * SECOND, 2 * SECOND);
        assert_eq!(peer.deadline_ns(), Some(7 * SECOND));
        assert_eq!(peer.tick(7 * SECOND - 1), Ok(()));
        let error = peer.tick(7 * SECOND).unwrap_err().to_string();
        assert!(error.contains("the description of the host") && error.contains("2000 ms"), "{error}");
    }

    #[test]
    fn an_answer_that_nobody_waits_for_is_an_error() {
        let mut peer = greeted();
        let started = encode(&FromAgent::Started);
        let error = peer.input(started.as_bytes()).unwrap_err();
        assert_eq!(error, PeerError::Unexpected { got: "started", awaited: "nothing" });
    }

    #[test]
    fn a_result_that_comes_before_it_is_awaited_is_taken_and_no_deadline_is_left() {
        let mut peer = greeted();
        peer.request(&ToAgent::Start, 0, SECOND);
        assert_eq!(peer.input(encode(&FromAgent::Started).as_bytes()).map(|heard| heard.len()), Ok(1));
        let failed = FromAgent::Failed { kind: FailureKind::Traffic, message: "no".into() };
        assert_eq!(peer.input(encode(&failed).as_bytes()).map(|heard| heard.len()), Ok(1));
        peer.await_done(0, SECOND);
        assert_eq!(peer.deadline_ns(), None);
    }

    #[test]
    fn after_an_abort_stale_answers_are_passed_over() {
        let mut peer = greeted();
        peer.request(&ToAgent::Start, 0, SECOND);
        peer.request(&ToAgent::Abort, 0, SECOND);
        let late =
            encode(&FromAgent::Started) + &encode(&FromAgent::Progress { figures: LiveFigures::default() });
        assert_eq!(peer.input(late.as_bytes()), Ok(vec![]));
        let aborted = encode(&FromAgent::Aborted);
        assert_eq!(peer.input(aborted.as_bytes()), Ok(vec![Heard::Answer(FromAgent::Aborted)]));
        assert_eq!(peer.deadline_ns(), None);
    }

    #[test]
    fn an_agent_takes_requests_in_their_order_only() {
        let mut agent = AgentPeer::default();
        agent.push(encode(&ToAgent::Describe).as_bytes());
        let unexpected = PeerError::Unexpected { got: "describe", awaited: "hello" };
        assert_eq!(agent.next_message(), Err(unexpected));

        let mut agent = AgentPeer::default();
        agent.push(encode(&ToAgent::Hello { protocol: PROTOCOL, program: String::new() }).as_bytes());
        agent.push(encode(&ToAgent::Start).as_bytes());
        assert!(matches!(agent.next_message(), Ok(Some(ToAgent::Hello { .. }))));
        let unexpected = PeerError::Unexpected { got: "start", awaited: "the preparation of a trial" };
        assert_eq!(agent.next_message(), Err(unexpected));
    }
}
