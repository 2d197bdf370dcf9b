//! The installed testpmd over veths between network namespaces. Skipped with a message without testpmd or root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod fate;
mod refusals;
mod traffic;
mod wire;
