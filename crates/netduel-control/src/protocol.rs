//! The messages between coordinator and agent: one JSON object per line, versioned. No IO.
//!
//! Long because: every message of the protocol stands in one of two enums, with the reading of its lines.
use std::net::IpAddr;

use netduel_model::data_ports::{DataPorts, PortNeeds, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::json_text;
use netduel_model::plain_text::controls_output;
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::units::Nanos;
use netduel_model::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the protocol. Both ends must use the same. `tests/golden/` holds every message of every version, and a
/// test fails when a message changes.
///
/// - 1: the first.
/// - 2: the coordinator sets the interval of live figures; new workloads, engines and results.
/// - 3: `pps` is a type of workload of its own; fields and words are renamed as in format 3 of the store.
pub const PROTOCOL: u32 = 3;

/// The newest version of a release of netduel. Versions up to this never change.
pub const PROTOCOL_RELEASED: u32 = 2;

/// The fingerprints of the messages to and from an agent in this version. A test compares them with those of the types.
pub const PROTOCOL_FINGERPRINTS: [&str; 2] = ["969f9051212e587f", "d4d4022f5b701549"];

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Maximum length of a line, bytes: a result with a long series and a wide histogram is some 100 kB; one of 24 h some 50 MB.
pub const LINE_LEN_MAX: usize = 64 << 20;

/// Timeout of describing a host, nanoseconds. The agent's own waits during this must be shorter.
pub const DESCRIBE_TIMEOUT_NS: u64 = 30_000_000_000;

/// Timeout of locking a host, nanoseconds: a former agent may still undo its changes there. The agent's own waits during this must be shorter.
pub const LOCK_TIMEOUT_NS: u64 = 120_000_000_000;

/// Timeout of a treatment, its undoing, or the binding of sockets, nanoseconds. The agent's own waits during these must be shorter, so that
/// the coordinator gets the reason.
pub const STEP_TIMEOUT_NS: u64 = 30_000_000_000;

/// An agent ends a command of a treatment that takes longer, nanoseconds. The coordinator waits for each of them, so that it gets the reason.
pub const COMMAND_TIMEOUT_NS: u64 = 30_000_000_000;

/// Number of a trial, from 1. It distinguishes late messages about an earlier trial.
pub type TrialNumber = u64;

/// Actions of an agent without a request. It reports live figures. It also ends by itself after a silence of its coordinator while its
/// input stays open: a broken connection that the host does not detect must not leave treatments in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Maximum total time, after which it ends.
    pub total: Nanos,
    /// Maximum silence of the coordinator while no traffic runs, after which it ends.
    pub idle: Nanos,
    /// Interval of live figures of a running trial, at least 10 ms.
    #[serde(default = "Limits::default_progress")]
    pub progress: Nanos,
}

impl Limits {
    /// The default progress interval.
    pub const PROGRESS: Nanos = Nanos(500_000_000);
    /// The minimum interval: a line costs the agent some microseconds.
    pub const PROGRESS_MIN: Nanos = Nanos(10_000_000);

    fn default_progress() -> Nanos {
        Self::PROGRESS
    }

    /// The smaller of each value.
    pub(crate) fn within(self, most: Self) -> Self {
        Self {
            total: self.total.min(most.total),
            idle: self.idle.min(most.idle),
            progress: self.progress.min(most.progress),
        }
    }
}

/// The limits that an agent grants its coordinator. An agent that the coordinator's user started grants every request; one that serves
/// several coordinators grants each a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Total time.
    pub total: Nanos,
    /// Silence while no traffic runs.
    pub idle: Nanos,
    /// Bytes of a line.
    pub line_len: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { total: Nanos(u64::MAX), idle: Nanos(u64::MAX), line_len: LINE_LEN_MAX }
    }
}

/// From the coordinator to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToAgent {
    /// The first line. `protocol` and `program` are read first and have the same form in every version.
    Hello {
        /// Version of the protocol.
        protocol: u32,
        /// Version of the program.
        program: String,
        /// When the agent ends by itself.
        limits: Limits,
    },
    /// Describe this host.
    Describe {
        /// Do not query the cloud's metadata service; omit what only it provides.
        #[serde(default, skip_serializing_if = "is_false")]
        without_metadata: bool,
    },
    /// Lock this host against other runs.
    LockHost {
        /// For this run.
        run: RunId,
    },
    /// Make these changes.
    Apply {
        /// In this order.
        treatments: Vec<TreatmentAction>,
    },
    /// Undo all changes.
    Undo,
    /// Listen on the ports that trials would have, and answer probes of them.
    OpenPorts {
        /// Address to bind.
        bind: IpAddr,
        /// Ports to choose from; those of the kernel when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<DataPorts>,
        /// What the trials need.
        needs: PortNeeds,
        /// Secret of the probe.
        token: Token,
    },
    /// Probe the open ports of the server.
    ProbePorts {
        /// The server's address.
        peer: IpAddr,
        /// Its TCP ports.
        tcp: Vec<u16>,
        /// Its UDP ports.
        udp: Vec<u16>,
        /// Secret of the probe.
        token: Token,
        /// Timeout of each port.
        timeout: Nanos,
    },
    /// Close the open ports.
    ClosePorts,
    /// Bind the server's sockets.
    PrepareServer {
        /// The trial.
        trial: TrialNumber,
        /// The workload.
        workload: Workload,
        /// Address to bind.
        bind: IpAddr,
        /// Ports to choose from; those of the kernel when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<DataPorts>,
        /// Secret of the trial.
        token: Token,
    },
    /// Connect to the server.
    PrepareClient {
        /// The trial.
        trial: TrialNumber,
        /// The workload.
        workload: Workload,
        /// The server's address.
        peer: IpAddr,
        /// The server's ports.
        ports: Vec<u16>,
        /// Secret of the trial.
        token: Token,
        /// Timeout of connecting.
        deadline: Nanos,
    },
    /// Start traffic.
    Start,
    /// The other end has finished: receive what is in flight and end.
    Finish,
    /// Stop at once, without a result.
    Abort,
    /// The run has ended: stop, undo all changes, and end.
    Bye,
}

/// From an agent to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FromAgent {
    /// The first line. `protocol` and `program` are read first and have the same form in every version.
    Hello {
        /// Version of the protocol.
        protocol: u32,
        /// Version of the program.
        program: String,
    },
    /// This host.
    Described {
        /// Its facts.
        snapshot: Box<HostSnapshot>,
        /// Settings of an earlier run that the agent found and restored before it looked at the host.
        #[serde(default, skip_serializing_if = "Recovery::is_empty")]
        recovery: Recovery,
    },
    /// The host is locked for this run.
    Locked,
    /// Another run has locked the host.
    HostBusy {
        /// The other run, and the remedy.
        by: String,
    },
    /// The changes are made.
    Applied,
    /// The changes are undone, as far as possible.
    Undone {
        /// Changes that could not be undone, and how to undo them by hand.
        problems: Vec<String>,
    },
    /// The ports are open.
    PortsOpen {
        /// TCP ports.
        tcp: Vec<u16>,
        /// UDP ports.
        udp: Vec<u16>,
    },
    /// The ports are probed. After a port without a handshake the others may be absent.
    Probed {
        /// Each port.
        ports: Vec<ProbedPort>,
    },
    /// The ports are closed.
    PortsClosed {
        /// The client of each handshake that began.
        sources: Vec<ProbeSource>,
    },
    /// Sockets are ready; a server names its ports.
    Prepared {
        /// Ports, in the order of the streams.
        ports: Vec<u16>,
    },
    /// Traffic runs.
    Started,
    /// Figures so far.
    Progress {
        /// The trial.
        trial: TrialNumber,
        /// The figures.
        figures: LiveFigures,
    },
    /// This end has finished.
    Done {
        /// The trial.
        trial: TrialNumber,
        /// Its measurements.
        end: Box<TrialEnd>,
    },
    /// Stopped.
    Aborted,
    /// The request failed; the agent is ready for the next one.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
        /// The operation, the cause and the remedy.
        message: String,
    },
    /// Everything is stopped and undone; the agent ends.
    Bye {
        /// Changes that could not be undone, and how to undo them by hand.
        problems: Vec<String>,
    },
}

/// Settings that an earlier agent and its guard left changed because both were killed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// The restored settings, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// Settings that could not be restored, and how to restore them by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl Recovery {
    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.problems.is_empty()
    }
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The plan is invalid on this host.
    Usage,
    /// The host lacks a permission, a kernel feature or a program.
    Environment,
    /// Traffic failed.
    Traffic,
    /// Another run has locked the host.
    Busy,
    /// A change of the host could not be undone.
    NotRestored,
    /// A bug.
    Internal,
}

/// The part of a first line that is the same in every version.
#[derive(Debug, Deserialize)]
pub(crate) struct Opening {
    #[serde(rename = "type")]
    kind: String,
    /// Version of the protocol.
    pub protocol: u32,
    /// Version of the program.
    pub program: String,
}

impl Opening {
    /// Parses a first line of any version. An error shows the program, so its name is made short and safe to print.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        let opening = serde_json::from_slice::<Self>(line).ok().filter(|opening| opening.kind == "hello")?;
        Some(Self { program: printable(&opening.program, QUOTE_LEN), ..opening })
    }
}

/// Why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is too long.
    #[error("the line `{start}` is longer than {len_max} bytes")]
    TooLong {
        /// Its first characters.
        start: String,
        /// Maximum length, bytes.
        len_max: usize,
    },
    /// It has a text that is longer than any of a message.
    #[error("the line `{start}` has a text of {length} bytes, and {TEXT_LEN_MAX} are allowed")]
    LongText {
        /// Its first characters.
        start: String,
        /// Length of the text, bytes.
        length: usize,
    },
    /// It is not a message of this protocol.
    #[error("`{start}` is no message of protocol {PROTOCOL}: {reason}")]
    NotAMessage {
        /// Its first characters.
        start: String,
        /// The error of the parser.
        reason: String,
    },
}

/// A message as a line, with its line end.
pub fn encode<M: Serialize>(message: &M) -> String {
    let mut line = serde_json::to_string(message).expect("messages hold no map with keys that are not text");
    line.push('\n');
    line
}

/// Bytes of a text in a message at most, as JSON writes it: names, readings of small files, errors, and the arguments of commands.
const TEXT_LEN_MAX: usize = 128 << 10;

/// Parses a line.
pub fn decode<M: for<'a> Deserialize<'a>>(line: &[u8]) -> Result<M, LineError> {
    if let Some(length) = json_text::longer_than(line, TEXT_LEN_MAX, None) {
        return Err(LineError::LongText { start: quote(line), length });
    }
    serde_json::from_slice(line)
        .map_err(|error| LineError::NotAMessage { start: quote(line), reason: reason(&error) })
}

/// Characters of an invalid line that an error shows.
const QUOTE_LEN: usize = 80;

/// The beginning of a line, safe to print.
pub fn quote(line: &[u8]) -> String {
    printable(&String::from_utf8_lossy(&line[..line.len().min(4 * QUOTE_LEN)]), QUOTE_LEN)
}

/// Characters of a parser's error that an error shows. The known types of messages are some 200.
const REASON_LEN: usize = 400;

/// The error of the parser, safe to print: it quotes the unknown words of the line, as long as they are.
fn reason(error: &serde_json::Error) -> String {
    printable(&error.to_string(), REASON_LEN)
}

/// The first characters of a text, those for the control of a terminal replaced.
fn printable(text: &str, len: usize) -> String {
    text.chars().map(|c| if controls_output(c) { '.' } else { c }).take(len).collect()
}

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct Lines {
    pending: Vec<u8>,
    searched: usize,
    len_max: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::bounded(LINE_LEN_MAX)
    }
}

impl Lines {
    /// For lines of at most this many bytes.
    pub(crate) fn bounded(len_max: usize) -> Self {
        Self { pending: Vec::new(), searched: 0, len_max }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete line without its line end.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        let found = memchr::memchr(b'\n', &self.pending[self.searched..]);
        let end = found.map_or(self.pending.len(), |found| self.searched + found);
        if end > self.len_max {
            return Err(LineError::TooLong { start: quote(&self.pending[..end]), len_max: self.len_max });
        }
        if found.is_none() {
            self.searched = end;
            return Ok(None);
        }
        let mut line: Vec<u8> = self.pending.drain(..=end).collect();
        line.pop();
        self.searched = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn too_long_line_is_rejected_with_and_without_line_end() {
        for bytes in [&b"123456789"[..], b"123456789\n", b"1\n123456789\n"] {
            let mut lines = Lines { len_max: 8, ..Lines::default() };
            lines.push(bytes);
            let error = std::iter::from_fn(|| lines.next_line().transpose()).find_map(Result::err);
            assert_eq!(error, Some(LineError::TooLong { start: "123456789".into(), len_max: 8 }));
        }
        let mut lines = Lines { len_max: 8, ..Lines::default() };
        lines.push(b"12345678\n");
        assert_eq!(lines.next_line(), Ok(Some(b"12345678".to_vec())));
    }

    #[test]
    fn message_with_a_very_long_text_is_rejected() {
        let failed = |length: usize| {
            let message = "x".repeat(length);
            encode(&FromAgent::Failed { kind: FailureKind::Internal, message })
        };
        assert!(decode::<FromAgent>(failed(TEXT_LEN_MAX).as_bytes()).is_ok());
        let error = decode::<FromAgent>(failed(TEXT_LEN_MAX + 1).as_bytes()).unwrap_err();
        assert!(matches!(error, LineError::LongText { length, .. } if length == TEXT_LEN_MAX + 1));
        assert!(error.to_string().len() < 300, "{error}");
    }

    #[test]
    fn invalid_line_is_quoted_short_and_without_control_characters() {
        let long = format!("\x1b[31m{}", "x".repeat(500));
        for (bytes, start) in [
            (b"Welcome to host\r".as_slice(), "Welcome to host.".to_owned()),
            (b"\xff\xfe{}".as_slice(), "\u{fffd}\u{fffd}{}".to_owned()),
            (b"{\"type\":\"dance\"}".as_slice(), "{\"type\":\"dance\"}".to_owned()),
            (long.as_bytes(), format!(".[31m{}", "x".repeat(75))),
        ] {
            match decode::<FromAgent>(bytes) {
                Err(LineError::NotAMessage { start: quoted, reason }) => {
                    assert_eq!(quoted, start);
                    assert!(!reason.is_empty());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn reason_of_an_invalid_line_is_short_and_without_control_characters() {
        for word in [r"\u001b[2Jred", "\u{7f}", r"\u009b", &"x".repeat(100_000)] {
            let line = format!("{{\"type\":\"{word}\"}}");
            let error = decode::<ToAgent>(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("unknown variant") && error.len() < 1000, "{error:?}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn common_part_of_a_first_line_of_another_version_is_parsed() {
        let line = br#"{"type":"hello","protocol":99,"program":"netduel 9.9.9","limits":"none","colour":3}"#;
        let opening = Opening::of(line).unwrap();
        assert_eq!((opening.protocol, opening.program.as_str()), (99, "netduel 9.9.9"));
        assert!(Opening::of(br#"{"type":"bye","protocol":99,"program":"x"}"#).is_none());
        let program = format!("\\u001b[2J{}", "x".repeat(1 << 20));
        let long = format!(r#"{{"type":"hello","protocol":99,"program":"{program}"}}"#);
        let opening = Opening::of(long.as_bytes()).unwrap();
        assert_eq!(opening.program, format!(".[2J{}", "x".repeat(QUOTE_LEN - 4)));
    }
    #[test]
    fn error_of_an_unknown_message_lists_the_known_ones() {
        let error = decode::<ToAgent>(br#"{"type":"reboot"}"#).unwrap_err().to_string();
        assert!(error.contains("reboot") && error.contains("prepare-server"), "{error}");
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_their_bytes_arrive(
            texts in proptest::collection::vec("[^\n]{0,40}", 0..8),
            cuts in proptest::collection::vec(1..9_usize, 1..40),
        ) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([b'\n'])).collect();
            let (mut lines, mut seen, mut rest) = (Lines::default(), Vec::new(), bytes.as_slice());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                lines.push(head);
                rest = tail;
                while let Some(line) = lines.next_line().unwrap() {
                    seen.push(String::from_utf8(line).unwrap());
                }
            }
            prop_assert_eq!(seen, texts);
        }
    }
}
