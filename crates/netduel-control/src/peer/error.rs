//! Violations of the protocol by the other end.
use crate::protocol::{LineError, PROTOCOL};

/// Lines before the first message that are ignored: login banners of remote shells.
pub const BANNER_LINES_MAX: usize = 50;

/// A violation by the other end. It ends the conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It uses another version of the protocol.
    #[error(
        "it speaks protocol {theirs} ({program}), this is protocol {PROTOCOL} ({ours}): install the same version of netduel on both \
         hosts"
    )]
    Version {
        /// Its protocol.
        theirs: u32,
        /// Its program.
        program: String,
        /// This program.
        ours: String,
    },
    /// It sent an invalid message.
    #[error("it sent an invalid message: {0}")]
    Garbage(#[from] LineError),
    /// It sent too many lines of text before its first message.
    #[error(
        "it printed more than {BANNER_LINES_MAX} lines of text instead of a message, the last is `{last}`: does the command start \
         `netduel agent`?"
    )]
    Banner {
        /// The last such line.
        last: String,
    },
    /// It sent a message out of order.
    #[error("it sent `{got}`; expected: {awaited}")]
    Unexpected {
        /// The received message.
        got: String,
        /// The expected message.
        awaited: &'static str,
    },
    /// It did not answer in time.
    #[error("it did not answer in time: waited {waited_ms} ms for {awaited}")]
    Silent {
        /// The expected message.
        awaited: &'static str,
        /// Duration of the wait, milliseconds.
        waited_ms: u64,
    },
    /// It did not apply or undo treatments in time.
    #[error(
        "it did not answer in time: {doing} {treatments} took longer than {seconds} s; look for what hangs on that host, end it, and correct \
         the treatment"
    )]
    Treating {
        /// `applying` or `undoing`.
        doing: &'static str,
        /// The treatments, in words.
        treatments: String,
        /// Duration of the wait, seconds.
        seconds: u64,
    },
    /// It sent nothing while its traffic ran.
    #[error(
        "it has sent nothing for {seconds} s while traffic runs: its process is stopped, its host hangs, or the network path to it is down"
    )]
    Quiet {
        /// Duration of the silence, seconds.
        seconds: u64,
    },
}
