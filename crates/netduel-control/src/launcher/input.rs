//! An agent's standard input, written by its own thread: an agent that does not read must not block the coordinator's loop. It knows no
//! messages and waits for no answers.
use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::mpsc::{Sender, channel};

/// What is still to be written. Dropping it closes the input, once everything before is written.
#[derive(Debug)]
pub(super) struct Input {
    lines: Sender<String>,
}

impl Input {
    /// Takes over the pipe.
    pub(super) fn new(mut stdin: ChildStdin) -> Self {
        let (lines, waiting) = channel::<String>();
        std::thread::spawn(move || {
            // The agent is gone; the end of its output shows that.
            for line in waiting {
                if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// Has a line written after those before it, and returns at once. What waits is bounded by the protocol: a request is
    /// sent when the previous one is answered or abandoned.
    pub(super) fn send(&self, line: &str) {
        // The thread has gone when the agent has.
        drop(self.lines.send(line.to_owned()));
    }
}
