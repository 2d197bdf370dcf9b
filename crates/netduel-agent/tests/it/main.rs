//! The agent's work behind its protocol, in this process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod scripted;
