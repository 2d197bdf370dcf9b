//! The readers on captured and written trees, and on this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod captured;
mod fixture;
mod hosts;
mod live;
mod locality;
mod metadata;
mod service;
mod written;
