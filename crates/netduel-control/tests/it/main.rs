//! The protocol in virtual time, its golden file, and the coordinator over real child processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod blocks;
mod coordinator;
mod golden;
mod launching;
mod messages;
mod ports;
mod providing;
mod restarting;
mod restoring;
mod searching;
mod serving;
mod surroundings;
mod virtual_time;
