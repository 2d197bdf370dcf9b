//! Agent protocol without IO, launchers, the agent's loop, the schedule and the coordinator. It does not depend on traffic or disk.
#![forbid(unsafe_code)]

pub mod agent;
pub mod coordinator;
pub mod launcher;
pub mod peer;
pub mod protocol;
pub mod schedule;
