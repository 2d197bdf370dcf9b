//! The lab as root and as an ordinary user. Needs the crate's examples, which `cargo test -p netduel-lab` builds, and a kernel
//! that permits this user to create namespaces.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, in its helpers too")]

mod bench;
mod exec;
mod lifetime;
mod paths;
mod refusals;
