//! Starts a program on a host, with or without pinning, and collects its CPU time; the same for every tool.
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netduel_sys::{affinity, clock, usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::hosts::Hosts;
use crate::record::Placement;

/// Poll interval of the socket tables while a server starts, nanoseconds. Other tools buffer their output when it is a pipe, so
/// their messages come too late.
const LISTENER_POLL_NS: u64 = 2_000_000;

/// The context of started programs.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The two hosts.
    pub hosts: &'a Hosts,
    /// Placement of the ends.
    pub placement: Placement,
    /// Deadline of a run, on the monotonic clock.
    pub deadline_ns: u64,
}

/// A running program. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct Launched {
    name: String,
    child: Child,
    pidfd: OwnedFd,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
    deadline_ns: u64,
    is_taken: bool,
}

/// A finished program.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Standard output without the lines that were read earlier.
    pub text: String,
    /// CPU seconds, user and system, including children that it waited for.
    pub cpu_s: f64,
}

/// A protocol of listening sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, in state LISTEN.
    Tcp,
    /// UDP, bound.
    Udp,
}

impl Site<'_> {
    /// Starts a program on the server's or the client's host.
    pub fn start(&self, is_server: bool, mut command: Command) -> Result<Launched> {
        let program = Path::new(command.get_program());
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let core = self.placement.core(is_server);
        let mut child = self.hosts.inside(is_server, || {
            if let Some(core) = core {
                affinity::pin_this_thread(core).with_context(|| format!("failed to pin to core {core}"))?;
            }
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().with_context(|| format!("failed to start {name}"))
        })?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
            .with_context(|| format!("failed to open the process of {name}"))?;
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().context("stderr is a pipe")?;
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).trim().to_owned()
        });
        let deadline_ns = self.deadline_ns;
        Ok(Launched { name, child, pidfd, lines, errors: Some(errors), deadline_ns, is_taken: false })
    }

    /// Starts a server and waits until it listens on `port`.
    pub fn start_server(&self, mut command: Command, protocol: Protocol, port: u16) -> Result<Launched> {
        command.stdin(Stdio::null());
        let mut server = self.start(true, command)?;
        let tables = match protocol {
            Protocol::Tcp => ["tcp", "tcp6"],
            Protocol::Udp => ["udp", "udp6"],
        };
        loop {
            for table in tables {
                let path = format!("/proc/{}/net/{table}", server.child.id());
                if is_listening(&std::fs::read_to_string(path).unwrap_or_default(), protocol, port) {
                    return Ok(server);
                }
            }
            if let Some(ended) = server.take()? {
                let words = server.last_words(&ended.text);
                bail!("{} ended before it listened: {words}", server.name);
            }
            if clock::monotonic_ns() > self.deadline_ns {
                bail!("{} does not listen on port {port}", server.name);
            }
            clock::sleep_until(clock::monotonic_ns() + LISTENER_POLL_NS);
        }
    }

    /// Starts a client and waits for its end.
    pub fn run_client(&self, mut command: Command) -> Result<Ended> {
        command.stdin(Stdio::null());
        self.start(false, command)?.finish()
    }
}

impl Launched {
    /// The next line of standard output.
    pub fn line(&mut self) -> Result<String> {
        let left = Duration::from_nanos(self.deadline_ns.saturating_sub(clock::monotonic_ns()));
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => bail!("{} gave no output until the deadline", self.name),
            Err(RecvTimeoutError::Disconnected) => {
                let words = self.last_words("");
                bail!("{} ended early: {words}", self.name)
            }
        }
    }

    /// Writes a line on standard input.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().context("stdin is a pipe")?;
        input
            .write_all(format!("{line}\n").as_bytes())
            .with_context(|| format!("failed to speak to {}", self.name))
    }

    /// Stops or continues the process.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::pidfd_send_signal(&self.pidfd, signal)
            .with_context(|| format!("failed to send a signal to {}", self.name))
    }

    /// Stops the process until a signal continues it. It is stopped when this returns: a signal alone reaches a thread on another
    /// core later.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let what = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), what)
            .with_context(|| format!("failed to wait for {} to stop", self.name))?;
        ensure!(status.is_some_and(|status| status.stopped()), "{} ended instead of stopping", self.name);
        Ok(())
    }

    /// Waits for its end, which must be a success.
    pub fn finish(mut self) -> Result<Ended> {
        loop {
            if let Some(ended) = self.take()? {
                return Ok(ended);
            }
            let left = self.deadline_ns.saturating_sub(clock::monotonic_ns());
            if left == 0 {
                bail!("{} did not end in time", self.name);
            }
            let timeout = Timespec {
                tv_sec: (left / 1_000_000_000).cast_signed(),
                tv_nsec: (left % 1_000_000_000).cast_signed(),
            };
            let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).with_context(|| format!("failed to wait for {}", self.name)),
            }
        }
    }

    /// Terminates a server that does not end by itself.
    pub fn stop(mut self) -> Result<Ended> {
        self.signal(Signal::KILL)?;
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        while let Err(rustix::io::Errno::INTR) = poll(&mut polled, None) {}
        let used = self.reap()?.map_or(0.0, |(_, cpu_s)| cpu_s);
        Ok(Ended { text: self.rest(), cpu_s: used })
    }

    /// Reaps it when it has ended.
    fn take(&mut self) -> Result<Option<Ended>> {
        let Some((succeeded, cpu_s)) = self.reap()? else { return Ok(None) };
        let text = self.rest();
        if !succeeded {
            let words = self.last_words(&text);
            bail!("{} failed: {words}", self.name);
        }
        Ok(Some(Ended { text, cpu_s }))
    }

    fn reap(&mut self) -> Result<Option<(bool, f64)>> {
        let taken = usage::of_ended_child(&mut self.child)
            .with_context(|| format!("failed to take {}", self.name))?;
        let Some((status, used)) = taken else { return Ok(None) };
        self.is_taken = true;
        Ok(Some((status.success(), (used.user_ns + used.system_ns) as f64 / 1e9)))
    }

    /// The rest of standard output. The process has ended, so the output ends.
    fn rest(&self) -> String {
        self.lines.iter().fold(String::new(), |text, line| text + &line + "\n")
    }

    /// The reason of a failure, from its output.
    fn last_words(&mut self, output: &str) -> String {
        let errors = self.errors.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let words = if errors.is_empty() { output.trim() } else { &errors };
        words.lines().last().unwrap_or("it does not say why").to_owned()
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !self.is_taken {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a table of `/proc/net` has a socket that listens on `port` (include/net/tcp_states.h: 0A is LISTEN, 07 is the state of
/// a bound UDP socket).
fn is_listening(table: &str, protocol: Protocol, port: u16) -> bool {
    let state = match protocol {
        Protocol::Tcp => "0A",
        Protocol::Udp => "07",
    };
    let local = format!(":{port:04X}");
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 3 && words[1].ends_with(&local) && words[3] == state
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listeners_on_the_port_match() {
        let table = "  sl  local_address rem_address   st\n\
                     0: 0100007F:1451 00000000:0000 0A 00000000:00000000\n\
                     1: 0100007F:1452 0100007F:9999 01 00000000:00000000\n\
                     2: 00000000:1453 00000000:0000 07 00000000:00000000\n";
        assert!(is_listening(table, Protocol::Tcp, 0x1451));
        assert!(!is_listening(table, Protocol::Tcp, 0x1452));
        assert!(!is_listening(table, Protocol::Udp, 0x1451));
        assert!(is_listening(table, Protocol::Udp, 0x1453));
    }
}
