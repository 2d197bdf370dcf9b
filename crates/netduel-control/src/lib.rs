//! Agent protocol without IO, launchers, the agent's loop, the schedule and the coordinator. Sees neither traffic nor disk.
#![forbid(unsafe_code)]

pub mod agent;
pub mod coordinator;
pub mod launcher;
pub mod peer;
pub mod protocol;
pub mod schedule;
