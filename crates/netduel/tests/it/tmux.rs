//! A real terminal for tests: a server of tmux with one window, its keys and its screen.
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use netduel_test_support::skip;

use crate::support::{Bench, until};

/// A terminal; dropping it ends its server and what runs in it.
pub struct Tmux<'b> {
    bench: &'b Bench,
    socket: String,
}

impl<'b> Tmux<'b> {
    /// A terminal of this size with a shell that prints `$ ` before each command; `None` without tmux, with the reason as a skip.
    pub fn start(bench: &'b Bench, (width, height): (u16, u16), shell: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip("no tmux");
            return None;
        }
        let name = format!("{}-{width}x{height}", bench.path().file_name().unwrap().to_string_lossy());
        let tmux = Self { bench, socket: name };
        let program = Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let size = [width.to_string(), height.to_string()];
        let mut command =
            tmux.command(&["-f", "/dev/null", "-u", "new-session", "-d", "-x", &size[0], "-y", &size[1]]);
        command
            .args([shell])
            .env("PATH", path)
            .env("LC_ALL", "C.UTF-8")
            .env("PS1", "$ ")
            .env("ENV", "")
            .env("TERM", "screen");
        let started = command.output().unwrap();
        assert!(started.status.success(), "{started:?}");
        tmux.call(&["pipe-pane", &format!("exec cat > {}", tmux.record().display())]);
        Some(tmux)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket]).args(words).current_dir(self.bench.path());
        self.bench.mark(&mut command);
        command
    }

    fn call(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Types a text.
    pub fn send(&self, text: &str) {
        self.call(&["send-keys", "-l", text]);
    }

    /// Presses a key, by the name that tmux has for it.
    pub fn press(&self, key: &str) {
        self.call(&["send-keys", key]);
    }

    /// The file with all that programs send to the terminal.
    fn record(&self) -> PathBuf {
        self.bench.path().join(format!(".{}", self.socket))
    }

    /// All that programs have sent to the terminal, as far as it is recorded: a screen may be gone before a test
    /// that waits for a core looks at it.
    pub fn recorded(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.record()).unwrap_or_default()).into_owned()
    }

    /// The screen as it is.
    pub fn screen(&self) -> String {
        self.call(&["capture-pane", "-p"])
    }

    /// The screen with control sequences for the styles and colours of its characters.
    fn styled_screen(&self) -> String {
        self.call(&["capture-pane", "-e", "-p"])
    }

    /// Waits until the screen has this text, which is of one style, and colours of these kinds and no others: dark ones
    /// (SGR 30 to 38 of ECMA-48), and bright ones (SGR 90 to 97 of aixterm).
    #[track_caller]
    pub fn wait_for_colours(&self, what: &str, text: &str, (dark, bright): (bool, bool)) {
        let mut screen = String::new();
        let seen = until(|| {
            screen = self.styled_screen();
            let colours = parameters(&screen);
            let has = |codes: RangeInclusive<u8>| colours.iter().any(|colour| codes.contains(colour));
            screen.contains(text) && (has(30..=38), has(90..=97)) == (dark, bright)
        });
        assert!(seen, "the terminal never showed {what}:\n{screen:?}");
    }

    /// Whether the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.call(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Changes the size.
    pub fn resize(&self, width: u16, height: u16) {
        self.call(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// Waits until the screen is as wanted, and returns it.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut screen = String::new();
        let seen = until(|| {
            screen = self.screen();
            is_wanted(&screen)
        });
        assert!(seen, "the terminal never showed {what}:\n{screen}");
        screen
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // Its shell may have ended, and the server with it.
        drop(self.command(&["kill-server"]).output());
    }
}

/// The parameters of all control sequences that select a style or a colour (SGR in ECMA-48).
fn parameters(styled: &str) -> Vec<u8> {
    let sequences = styled.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m'));
    sequences.flat_map(|(codes, _)| codes.split(';').filter_map(|code| code.parse().ok())).collect()
}

#[test]
fn colours_of_a_styled_screen_are_found() {
    assert_eq!(parameters("plain m \u{1b}[1mbold\u{1b}[0;92mgood\u{1b}[39m"), [1, 0, 92, 39]);
    assert!(parameters("31m").is_empty());
}
