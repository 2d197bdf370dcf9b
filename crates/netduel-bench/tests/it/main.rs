//! The bench as a program: netduel's own values, the message for missing tools, and clean-up. No value is compared with a target:
//! a test machine is too busy.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, in its helpers too")]

mod campaign;
mod lifetime;
mod listing;

use netduel_test_support::skip;
use std::path::Path;
use std::process::{Command, Stdio};

/// The bench with these arguments, writing to a folder.
fn bench(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netduel-bench"));
    command
        .args(["--pairs", "1", "--seconds", "1", "--pin", "free", "--json"])
        .arg(folder.join("peers.json"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Prints that a test was skipped because namespaces are not permitted.
fn is_refused(errors: &str) -> bool {
    let is_refused = errors.contains("failed to make a user namespace")
        || errors.contains("failed to make mount, pid and network namespaces")
        || errors.contains("failed to mount /proc");
    if is_refused {
        skip(errors);
    }
    is_refused
}
