//! What an agent and its guard say to each other: one JSON message a line.
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::record::Record;

/// What the agent says, one a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Request {
    /// Keep this and undo it if I go. `running` says that a command of it starts now.
    Keep { id: u64, undo: Record, running: bool },
    /// A command of it starts, or has ended.
    Running { id: u64, running: bool },
    /// It is undone.
    Forget { id: u64 },
}

/// What the guard answers, one a line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// The guard is on watch, in the network namespace of this inode; what it keeps is in this journal as well.
    Ready { namespace: Option<u64>, journal: Option<PathBuf> },
    /// The request of this number is done.
    Done { id: u64 },
}

/// Inode of the calling thread's network namespace.
pub(super) fn namespace() -> Option<u64> {
    let link = std::fs::read_link("/proc/thread-self/ns/net").ok()?;
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}
