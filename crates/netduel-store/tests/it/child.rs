//! Tests that need a separate process: this test binary starts itself with one test and a folder.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = "NETDUEL_STORE_TEST_FOLDER";

/// The command that runs the test with this name in a child process, after optional prefix words.
pub fn command(prefix: &[&str], test: &str, folder: &Path) -> Command {
    let binary = std::env::current_exe().expect("a test knows its binary");
    let mut command = match prefix.split_first() {
        Some((program, words)) => {
            let mut command = Command::new(program);
            command.args(words).arg(binary);
            command
        }
        None => Command::new(binary),
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The folder from the parent; `None` outside a child, where such a test does nothing.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}
