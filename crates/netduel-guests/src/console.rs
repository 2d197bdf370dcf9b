//! The console of a guest and the messages of its QEMU, as they come. It writes nothing into the guest.
use std::io::{BufRead as _, BufReader, Read};
use std::time::Duration;

use crate::error::last_lines;
use crate::watched::Watched;

/// Lines in an error.
const LINES_IN_ERRORS: usize = 25;
/// The line of `init.sh` when the ssh server runs.
const READY: &str = "netduel-guest ready";

/// What was read so far.
#[derive(Debug, Default)]
struct Text {
    text: String,
    has_ended: bool,
}

/// The state of a guest as its console shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The ssh server runs.
    Ready,
    /// QEMU ended.
    Ended,
}

/// A console that a thread reads until its end.
#[derive(Debug, Clone, Default)]
pub struct Console(Watched<Text>);

impl Console {
    /// Reads lines until the end; for a thread of its own.
    pub fn read(&self, source: impl Read) {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        // An error is the end: there is nothing more to read.
        while source.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let text = String::from_utf8_lossy(&line).replace('\r', "");
            self.0.change(|console| console.text.push_str(&text));
            line.clear();
        }
        self.0.change(|console| console.has_ended = true);
    }

    /// Waits until the guest is ready or QEMU ended; `None` after the bound.
    pub fn wait(&self, bound: Duration) -> Option<State> {
        self.0.wait(bound, |console| {
            let is_ready = console.text.lines().any(|line| line.ends_with(READY));
            match (is_ready, console.has_ended) {
                (_, true) => Some(State::Ended),
                (true, false) => Some(State::Ready),
                (false, false) => None,
            }
        })
    }

    /// Waits until QEMU ended; whether it did within the bound.
    pub fn wait_for_end(&self, bound: Duration) -> bool {
        self.0.wait(bound, |console| console.has_ended.then_some(())).is_some()
    }

    /// Everything so far.
    pub fn text(&self) -> String {
        self.0.change(|console| console.text.clone())
    }

    /// The last lines.
    pub fn end(&self) -> String {
        last_lines(&self.text(), LINES_IN_ERRORS)
    }
}
