//! The copy of a program to a host through its connection, with progress on standard error. It decides nothing about which program.
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use netduel_model::plan::SshHost;
use netduel_sys::clock::monotonic_ns;
use rustix::process::{Pid, Signal, kill_process_group};

use super::binary::Binary;
use super::master::Master;
use super::obstacle::{self, Obstacle};
use super::scripts::{self, Probe};
use super::stop::Stop;
use crate::console::tell;

/// Bytes of one write.
const PIECE: usize = 64 << 10;
/// Interval of the checks of [`Stop`].
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of the lines of progress, nanoseconds.
const LINE_INTERVAL_NS: u64 = 3_000_000_000;
/// Timeout of a copy that does not go on, nanoseconds.
const STALL_TIMEOUT_NS: u64 = 60_000_000_000;
/// What is kept of the messages of a session, bytes: several times those of ssh, of the script and of the programs that it starts.
const MESSAGES_MAX: u64 = 16 << 10;

/// A copy to be made.
pub struct Upload<'a> {
    /// How it is reached.
    pub ssh: &'a SshHost,
    /// What is copied.
    pub binary: &'a Binary,
    /// Where to.
    pub probe: &'a Probe,
    /// Whether progress is not shown.
    pub is_quiet: bool,
}

impl Upload<'_> {
    /// Copies the program. The file on the host is replaced as a whole or not at all.
    pub fn run(&self, master: &Master, stop: &Stop) -> Result<(), Obstacle> {
        let plain = &self.binary.bytes;
        let has_gzip = self.probe.has_gzip;
        let bytes =
            if has_gzip { self.binary.compressed.of(plain, || stop.check())? } else { Arc::clone(plain) };
        let from = format!(", compressed from {:.1} MB", megabytes(plain.len() as u64));
        let from = if has_gzip { from.as_str() } else { "" };
        let size = megabytes(bytes.len() as u64);
        let why = if self.probe.checksum.is_some() { "replacing a damaged copy of" } else { "copying" };
        self.tell(&format!("{why} netduel ({size:.1} MB{from}) to {}", self.probe.file));
        let command = scripts::copy(self.probe, &self.binary.checksum);
        let output = self.send(&master.session_argv(&command), &bytes, stop)?;
        if output.status.success() {
            self.tell("copied netduel");
            return Ok(());
        }
        Err(obstacle::of_copy(self.ssh, &self.probe.file, &output))
    }

    fn tell(&self, text: &str) {
        if !self.is_quiet {
            let port = self.ssh.port.map(|port| format!(" port {port}")).unwrap_or_default();
            tell(&format!("{}{port}: {text}", self.ssh.host));
        }
    }

    /// Starts the session and writes the bytes to it. Progress counts these bytes, as they are sent.
    fn send(&self, argv: &[String], bytes: &Arc<Vec<u8>>, stop: &Stop) -> Result<Output, Obstacle> {
        let failed = |error: io::Error| Obstacle::NoSsh(Box::new(error));
        let (program, words) = argv.split_first().ok_or(Obstacle::Interrupted)?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let group = Pid::from_child(&child);
        let (sent, size) = (Arc::new(AtomicU64::new(0)), bytes.len() as u64);
        let bytes = Arc::clone(bytes);
        let counted = Arc::clone(&sent);
        let stdin = child.stdin.take();
        let (done, result) = channel();
        let write = move || {
            let Some(mut stdin) = stdin else { return };
            for piece in bytes.chunks(PIECE) {
                // The exit status tells why it reads no more.
                if stdin.write_all(piece).is_err() {
                    return;
                }
                counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
        };
        let threads = |wait: Task| {
            Builder::new().name("ssh-copy".to_owned()).spawn(write)?;
            Builder::new().name("ssh-copy-end".to_owned()).spawn(wait).map(drop)
        };
        hand_over(child, done, threads).map_err(failed)?;
        let end = || {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        };
        let (mut seen, mut moved_ns, mut printed_ns) = (0, monotonic_ns(), monotonic_ns());
        loop {
            match result.recv_timeout(STOP_INTERVAL) {
                Ok(output) => return output.map_err(failed),
                Err(RecvTimeoutError::Disconnected) => return Err(Obstacle::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let (now, count) = (monotonic_ns(), sent.load(Ordering::Relaxed));
            if count != seen {
                (seen, moved_ns) = (count, now);
            }
            if let Err(stopped) = stop.check() {
                end();
                return Err(stopped);
            }
            if now.saturating_sub(moved_ns) >= STALL_TIMEOUT_NS {
                end();
                let seconds = STALL_TIMEOUT_NS / 1_000_000_000;
                let last_words = format!("the copy stopped after {count} bytes");
                return Err(Obstacle::Silent { ssh: Box::new(self.ssh.clone()), seconds, last_words });
            }
            if now.saturating_sub(printed_ns) >= LINE_INTERVAL_NS {
                printed_ns = now;
                self.tell(&progress(count, size));
            }
        }
    }
}

/// What a thread does.
type Task = Box<dyn FnOnce() + Send>;

/// Hands a session to a thread that waits for its end, started by `start`. Without a thread the session is ended here, and its process is
/// waited for.
fn hand_over(
    mut child: Child,
    done: Sender<io::Result<Output>>,
    start: impl FnOnce(Task) -> io::Result<()>,
) -> io::Result<()> {
    let (give, given) = channel();
    let wait = move || {
        if let Ok(child) = given.recv() {
            // Without a receiver the result is not needed.
            drop(done.send(output_of(child)));
        }
    };
    if let Err(error) = start(Box::new(wait)) {
        // It may have ended meanwhile.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        drop(child.wait());
        return Err(error);
    }
    drop(give.send(child));
    Ok(())
}

/// Waits for the end of a session. Of its messages the beginning is kept, and the rest is read: a host may print without end.
fn output_of(mut child: Child) -> io::Result<Output> {
    let mut messages = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.by_ref().take(MESSAGES_MAX).read_to_end(&mut messages)?;
        io::copy(&mut pipe, &mut io::sink())?;
    }
    Ok(Output { status: child.wait()?, stdout: Vec::new(), stderr: messages })
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The line of progress: how much is sent, of how much.
fn progress(sent: u64, size: u64) -> String {
    let share = 100.0 * sent as f64 / size.max(1) as f64;
    format!("copying netduel: {:.1} of {:.1} MB ({share:.0} %)", megabytes(sent), megabytes(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_the_share_of_what_is_sent() {
        assert_eq!(progress(0, 0), "copying netduel: 0.0 of 0.0 MB (0 %)");
        assert_eq!(progress(3_000_000, 12_000_000), "copying netduel: 3.0 of 12.0 MB (25 %)");
    }

    #[test]
    fn session_without_a_thread_leaves_no_process() {
        let child = Command::new("sleep").arg("1000").process_group(0).spawn().expect("sleep starts");
        let process = format!("/proc/{}", child.id());
        let (done, _result) = channel();
        let refused = hand_over(child, done, |_| Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        assert!(!std::path::Path::new(&process).exists(), "it ended, and this process has waited for it");
    }

    #[test]
    fn messages_of_a_host_without_end_are_read_and_not_kept() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 7";
        let child =
            Command::new("sh").args(["-c", script]).stderr(Stdio::piped()).spawn().expect("sh starts");
        let output = output_of(child).expect("it ends");
        assert_eq!((output.status.code(), output.stderr.len() as u64), (Some(7), MESSAGES_MAX));
    }
}
