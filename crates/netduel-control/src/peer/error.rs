//! What can be wrong with the other end of a conversation.
use crate::protocol::{LineError, PROTOCOL};

/// Lines that are no message and are passed over before the first message: login banners of remote shells.
pub const BANNER_LINES_MAX: usize = 50;

/// What went wrong with the other end. It is of no use afterwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It speaks another version.
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
    /// It sent something that is no message.
    #[error("it sent what is not the protocol: {0}")]
    Garbage(#[from] LineError),
    /// It began with text that is no message, for too long.
    #[error(
        "it printed more than {BANNER_LINES_MAX} lines that are no message instead of answering, the last was `{last}`: does the \
         command start `netduel agent`?"
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
    /// Its traffic runs, and it says nothing.
    #[error(
        "it has said nothing for {seconds} s while traffic runs: its process is stopped, its host hangs, or the path to it \
         carries nothing any more"
    )]
    Quiet {
        /// For how long, seconds.
        seconds: u64,
    },
}
