//! What coordinator and agent say to each other: one JSON message a line, versioned. No IO.
use std::net::IpAddr;

use netduel_model::ids::{RunId, Token};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::LiveFigures;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::units::Nanos;
use netduel_model::workload::Workload;
use serde::{Deserialize, Serialize};

/// Version of the protocol. Both ends must speak the same.
///
/// 1: the first.
pub const PROTOCOL: u32 = 1;

/// Longest line that is taken, bytes: a result with a long series and a wide histogram is some 100 kB.
pub const LINE_LEN_MAX: usize = 64 << 20;

/// From the coordinator to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToAgent {
    /// The first line.
    Hello {
        /// Version of the protocol.
        protocol: u32,
        /// Version of the program.
        program: String,
    },
    /// What is this host?
    Describe,
    /// Keep other runs from this host.
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
    /// Bind the server's sockets.
    PrepareServer {
        /// What will run.
        workload: Workload,
        /// Address to bind.
        bind: IpAddr,
        /// Secret of the trial.
        token: Token,
    },
    /// Connect to the server.
    PrepareClient {
        /// What will run.
        workload: Workload,
        /// The server's address.
        peer: IpAddr,
        /// The server's ports.
        ports: Vec<u16>,
        /// Secret of the trial.
        token: Token,
        /// How long connecting may take.
        deadline: Nanos,
    },
    /// Begin.
    Start,
    /// The other end is done: drain and end.
    Finish,
    /// Stop at once; no result is wanted.
    Abort,
}

/// From an agent to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FromAgent {
    /// The first line.
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
    },
    /// The host is this run's.
    Locked,
    /// The changes are made.
    Applied,
    /// The changes are undone, or as many as could be.
    Undone {
        /// What could not be undone, and how to do it by hand.
        problems: Vec<String>,
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
        /// The figures.
        figures: LiveFigures,
    },
    /// This end is done.
    Done {
        /// What it measured.
        end: Box<TrialEnd>,
    },
    /// Stopped.
    Aborted,
    /// What was asked for could not be done; the agent is ready for the next request.
    Failed {
        /// Whose fault.
        kind: FailureKind,
        /// What, why, and what to do.
        message: String,
    },
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The plan asks for something that makes no sense on this host.
    Usage,
    /// The host lacks something.
    Environment,
    /// Traffic did not come about.
    Traffic,
    /// Another run has the host.
    Busy,
    /// A bug.
    Internal,
}

/// Why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It does not end.
    #[error("a line is longer than {LINE_LEN_MAX} bytes")]
    TooLong,
    /// It is not what this protocol knows.
    #[error("`{start}` is no message of protocol {PROTOCOL}: {reason}")]
    NotAMessage {
        /// Its first characters.
        start: String,
        /// What the parser says.
        reason: String,
    },
}

/// A message as its line, with the line's end.
pub fn encode<M: Serialize>(message: &M) -> String {
    let mut line = serde_json::to_string(message).expect("messages hold no map with keys that are not text");
    line.push('\n');
    line
}

/// Reads a line as a message.
pub fn decode<M: for<'a> Deserialize<'a>>(line: &[u8]) -> Result<M, LineError> {
    serde_json::from_slice(line)
        .map_err(|error| LineError::NotAMessage { start: quote(line), reason: error.to_string() })
}

/// How much of a wrong line is shown.
const QUOTE_LEN: usize = 80;

/// The beginning of a line, safe to print.
pub fn quote(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(4 * QUOTE_LEN)])
        .chars()
        .map(|c| if c.is_control() { '.' } else { c })
        .take(QUOTE_LEN)
        .collect()
}

/// Cuts a stream of bytes into lines, however they arrive.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
    searched: usize,
}

impl Lines {
    /// Takes bytes as they come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole line without its end.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        let Some(found) = self.pending[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.pending.len();
            return if self.pending.len() > LINE_LEN_MAX { Err(LineError::TooLong) } else { Ok(None) };
        };
        let end = self.searched + found;
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
    fn what_is_quoted_of_a_wrong_line_is_short_and_safe_to_print() {
        let wrong = decode::<FromAgent>("\u{1b}[31mgarbage\r".repeat(40).as_bytes()).unwrap_err().to_string();
        assert!(wrong.contains(".[31mgarbage") && !wrong.contains('\u{1b}'), "{wrong}");
        assert!(wrong.len() < 400, "{wrong}");
        assert!(decode::<FromAgent>(&[0xff, 0xfe, b'{']).is_err());
    }

    #[test]
    fn an_unknown_message_names_the_known_ones() {
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
