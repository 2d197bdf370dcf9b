//! Standard error of a command: a pipe that is read while the command runs, and afterwards for as long as a process that it left behind can
//! write to it. The beginning and the end of the text are kept for a message. Nothing here ends a process.
//!
//! A process never learns how much is kept: no write fails or waits for a reader that is gone, and no amount fills the memory.
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::Builder;

use netduel_sys::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::processes::poll_all_until;

/// So many bytes are kept of the beginning, where a program names what it does, and as many of the end, where it names why it fails.
const KEPT_LEN: usize = 2048;
/// Bytes of one read.
const PIECE_LEN: usize = 8192;
/// Interval at which a command is looked at when no descriptor is to spare for its end, nanoseconds.
const LOOK_INTERVAL_NS: u64 = 50_000_000;

/// What a command writes to its standard error.
#[derive(Debug)]
pub(super) struct StderrPipe {
    /// Absent after its end: no process can write any more.
    pipe: Option<ChildStderr>,
    first: Vec<u8>,
    last: VecDeque<u8>,
    /// Bytes between these two.
    dropped: u64,
}

impl StderrPipe {
    /// That of a command whose standard error is [`Stdio::piped`].
    pub(super) fn of(child: &mut Child) -> Self {
        Self { pipe: child.stderr.take(), first: Vec::new(), last: VecDeque::new(), dropped: 0 }
    }

    /// Reads until the command has ended. Whether it did before the deadline.
    pub(super) fn await_end(&mut self, child: &mut Child, deadline_ns: u64) -> bool {
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok();
        loop {
            let look_ns = monotonic_ns().saturating_add(LOOK_INTERVAL_NS);
            let until_ns = if process.is_some() { deadline_ns } else { deadline_ns.min(look_ns) };
            let is_readable = self.wait(process.as_ref(), until_ns);
            // The error of a process that cannot be waited for is that of the next wait.
            if !matches!(child.try_wait(), Ok(None)) {
                return true;
            }
            // A command that writes without end has an end here.
            if monotonic_ns() >= deadline_ns {
                return false;
            }
            if is_readable {
                self.read();
            }
        }
    }

    /// Waits until the pipe can be read or has its end, or the process has ended. Whether it is the pipe.
    fn wait(&self, process: Option<&OwnedFd>, until_ns: u64) -> bool {
        let pipe = self.pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let process = process.map(|process| PollFd::new(process, PollFlags::IN));
        let mut descriptors: Vec<_> = pipe.into_iter().chain(process).collect();
        poll_all_until(&mut descriptors, until_ns);
        self.pipe.is_some() && descriptors.first().is_some_and(|pipe| !pipe.revents().is_empty())
    }

    /// Reads once and keeps what belongs to the beginning or the end. Returns the number of bytes.
    fn read(&mut self) -> usize {
        let mut piece = [0; PIECE_LEN];
        let count = match self.pipe.as_mut().map_or(Ok(0), |pipe| pipe.read(&mut piece)) {
            Ok(count) if count > 0 => count,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => return 0,
            Ok(_) | Err(_) => {
                self.pipe = None;
                return 0;
            }
        };
        let room = KEPT_LEN.saturating_sub(self.first.len());
        let bytes = piece.iter().take(count);
        self.first.extend(bytes.clone().take(room));
        self.last.extend(bytes.skip(room));
        let excess = self.last.len().saturating_sub(KEPT_LEN);
        self.last.drain(..excess);
        self.dropped += excess as u64;
        count
    }

    /// What the command wrote, in one line. A process that it left behind can write on.
    pub(super) fn finish(mut self) -> String {
        // No more than the pipe has now: such a process may write without end.
        let mut left = self.pipe.as_ref().map_or(0, |pipe| ioctl_fionread(pipe).unwrap_or(0));
        while left > 0 && self.pipe.is_some() {
            left = left.saturating_sub(self.read() as u64);
        }
        if let Some(pipe) = self.pipe.take().filter(has_writer) {
            read_on(pipe);
        }
        self.text()
    }

    fn text(mut self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', " | ");
        if self.dropped == 0 {
            self.first.extend(&self.last);
            return text(&self.first);
        }
        let (first, last) = (text(&self.first), text(self.last.make_contiguous()));
        format!("{first} | [bytes left out: {}] | {last}", self.dropped)
    }
}

/// Whether a process can still write to a pipe.
fn has_writer(pipe: &ChildStderr) -> bool {
    let mut descriptors = [PollFd::new(pipe, PollFlags::IN)];
    poll_all_until(&mut descriptors, 0);
    !descriptors.iter().any(|pipe| pipe.revents().contains(PollFlags::HUP))
}

/// Reads and drops what is written to a pipe until its end. Without a reader the next message of a service that the command left behind, or that
/// an undo started again, would end it by SIGPIPE. The service may outlive this process, so `cat` reads, which outlives it, too, and
/// ends with the service. Where `cat` cannot be started, or was killed, this process reads.
fn read_on(mut pipe: ChildStderr) {
    let cat = pipe.as_fd().try_clone_to_owned().and_then(|copy| {
        // Not in the group of this process, whose signals are not meant for the service, and with none of its outputs.
        let mut cat = Command::new("cat");
        cat.stdin(copy).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()
    });
    let rest = move || {
        if let Ok(mut cat) = cat {
            let _ = cat.wait();
        }
        let _ = io::copy(&mut pipe, &mut io::sink());
    };
    // Without a thread `cat` alone reads.
    let _ = Builder::new().name("command-stderr".to_owned()).spawn(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of the output of a script that ends.
    fn kept(script: &str) -> String {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = StderrPipe::of(&mut child);
        assert!(stderr.await_end(&mut child, u64::MAX));
        stderr.finish()
    }

    #[test]
    fn beginning_and_end_of_a_long_text_are_kept_with_the_number_of_bytes_between_them() {
        assert_eq!(kept("true"), "");
        assert_eq!(kept("echo no such door >&2; echo >&2"), "no such door");
        assert_eq!(kept("exec 2>&-; true"), "");
        // The lengths up to which all is kept, and one byte more.
        let letters = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' x >&2");
        assert_eq!(kept(&letters(2 * KEPT_LEN)), "x".repeat(2 * KEPT_LEN));
        let half = "x".repeat(KEPT_LEN);
        assert_eq!(kept(&letters(2 * KEPT_LEN + 1)), format!("{half} | [bytes left out: 1] | {half}"));
        let text = kept("seq 50000 >&2; echo the cause >&2");
        assert!(text.starts_with("1 | 2 | 3 | ") && text.ends_with(" | 50000 | the cause"), "{text}");
        assert!(text.contains(" | [bytes left out: ") && text.len() < 4 * KEPT_LEN, "{text}");
    }
}
