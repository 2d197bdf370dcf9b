//! The messages between an agent and its guard: one JSON object per line.
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::Record;

/// A request of the agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Request {
    /// Keep this record, and undo it when the agent ends. `running`: a command of it starts now.
    Keep { id: u64, undo: Record, running: bool },
    /// A command of it starts, or has ended.
    Running { id: u64, running: bool },
    /// It is undone.
    Forget { id: u64 },
}

/// A response of the guard.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// The guard is on watch, in the network namespace of this inode; what it keeps is in this journal as well.
    Ready { namespace: Option<u64>, journal: Option<PathBuf> },
    /// The request of this number is done.
    Done { id: u64 },
    /// The journal has no record of the change of this number, and the guard does not keep it.
    NotRecorded { id: u64, cause: String },
}

/// Inode of the calling thread's network namespace.
pub(super) fn namespace() -> Option<u64> {
    let link = std::fs::read_link("/proc/thread-self/ns/net").ok()?;
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}
