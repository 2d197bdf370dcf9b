//! An agent's standard input, written by its own thread: an agent that does not read must not block the coordinator's loop. It does not
//! depend on messages and waits for no answers.
use std::io::{self, Write as _};
use std::process::ChildStdin;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

/// The queue of lines. Dropping it closes the input after the queued lines are written.
#[derive(Debug)]
pub(super) struct Input {
    lines: Sender<String>,
}

impl Input {
    /// Starts the thread that owns the pipe.
    pub(super) fn new(mut stdin: ChildStdin) -> io::Result<Self> {
        let (lines, waiting) = channel::<String>();
        Builder::new().name("agent-in".to_owned()).spawn(move || {
            // The agent has ended; the end of its output reports it.
            for line in waiting {
                if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { lines })
    }

    /// Queues a line and returns at once. The protocol bounds the queue: a request is sent when the previous one is answered or abandoned.
    pub(super) fn send(&self, line: &str) {
        // The thread ends with the agent.
        drop(self.lines.send(line.to_owned()));
    }
}
