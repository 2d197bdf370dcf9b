//! Tests that run again, alone, in a network namespace of their own.
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use crate::{repeat_skips, skip};

/// Set in the process that runs a test in its namespace.
const INSIDE: &str = "NETDUEL_TEST_INSIDE";

/// A new network namespace and mount namespace, and how a test is started there. Without root it is in a new user namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewNamespace<'a> {
    /// Shell commands before the test.
    pub prepare: &'a str,
    /// Words before the command of the test, such as `setpriv --bounding-set=-net_raw`.
    pub wrapper: &'a str,
    /// Whether root also works in a new user namespace.
    pub always_user: bool,
}

impl NewNamespace<'_> {
    /// Runs `body` in the namespace, by running the test that calls this again there. `test` is its full name, as `cargo test` lists it.
    /// Skips the test where no such namespace can be made and prepared.
    ///
    /// # Panics
    /// If the test fails there, or has another name.
    #[track_caller]
    pub fn run(self, test: &str, body: impl FnOnce()) {
        if env::var_os(INSIDE).is_some() {
            return body();
        }
        let tried = self.command("ip").arg("link").output();
        if !tried.as_ref().is_ok_and(|output| output.status.success()) {
            return skip(format!(
                "no network namespace: unshare(1), ip(8) and the right to make and prepare one are needed: {tried:?}"
            ));
        }
        let this = env::current_exe().expect("a test knows its binary");
        let this = this.to_str().expect("the path of a test is UTF-8");
        let output = self.command(this).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output();
        let output = output.expect("unshare(1) was started before");
        let text = String::from_utf8_lossy(&output.stdout);
        // Indented, because the lines of this test harness would be taken for those of the one around it.
        let indented = |text: &str| format!("    | {}", text.replace('\n', "\n    | "));
        let errors = indented(&String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}\n{errors}", indented(&text));
        assert!(text.contains("1 passed"), "the test `{test}` was not found: {text}");
        repeat_skips(&text);
    }

    /// The command that runs a program in the namespace.
    fn command(&self, program: &str) -> Command {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let flags = if is_root && !self.always_user { "-nm" } else { "-rnm" };
        let script = format!("{}\nexec {} \"$@\"", self.prepare, self.wrapper);
        let mut command = Command::new("unshare");
        command.args([flags, "--", "sh", "-ec", &script, "sh", program]);
        command
    }
}

/// Runs `body` in a new network namespace; see [`NewNamespace::run`].
#[track_caller]
pub fn in_namespace(test: &str, body: impl FnOnce()) {
    NewNamespace::default().run(test, body);
}
