//! testpmd as it is installed, over real wires between network namespaces. Skipped aloud where it is not there, or without root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod fate;
mod refusals;
mod traffic;
mod wire;
