//! `az` as a child process: no shell, no input, bounded output, a time limit, and an end with the process that started it.
//!
//! A call that is interrupted or takes too long ends with everything that it started. When netduel is killed (SIGKILL), only the process that it
//! started ends, by its parent-death signal. Where `az` is a shell script that does not `exec` Python, as in the package for Debian, Python goes on
//! until its call ends, and a change that it has sent takes effect.
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use netduel_sys::clock::{monotonic_ns, sleep_until_or};
use netduel_sys::process::{ends_within, spawn_bound};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::cause::Cause;
use super::{Az, CallError, PAUSE_S, name, shown};

/// Most bytes of an output: the sizes of a region are below 1 MB, the operations of a bed below 200 kB.
const OUTPUT_MAX: u64 = 16 << 20;
/// Nanoseconds of a pause.
const PAUSE_NS: u64 = PAUSE_S * 1_000_000_000;
/// Time for the ends of both outputs when the process has ended: a process that it left behind may hold a pipe. What `az` itself wrote is in the
/// pipe by then, at most its 64 KiB, and is read in a moment.
const OUTPUT_PATIENCE_NS: u64 = 5_000_000_000;
/// Bytes of an output that are read at once.
const PART_LEN: usize = 1 << 14;

/// The settings of `az` that its answers depend on, as environment variables: they leave the user's configuration unchanged.
const SETTINGS: [(&str, &str); 3] =
    [("AZURE_CORE_OUTPUT", "json"), ("AZURE_CORE_ONLY_SHOW_ERRORS", "true"), ("AZURE_CORE_NO_COLOR", "true")];

/// The user's own `az`.
#[derive(Debug)]
pub struct AzProcess {
    program: PathBuf,
    is_over: Arc<AtomicBool>,
}

/// What a process has written to an output so far, and when that is all.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<io::Result<()>>,
}

impl Output {
    /// The bytes of a process that has ended. The end of the output is awaited until this time: a process that was left behind may hold it.
    fn bytes(&self, end_ns: u64) -> io::Result<Vec<u8>> {
        let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
        self.ended.recv_timeout(left).unwrap_or(Ok(()))?;
        Ok(std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl AzProcess {
    /// The program `az` of the search path. `is_over` becomes true when the user interrupts.
    pub fn new(is_over: Arc<AtomicBool>) -> Self {
        Self { program: PathBuf::from("az"), is_over }
    }

    /// Starts a process; its outputs are standard output and standard error.
    fn start(&self, words: &[&str]) -> io::Result<(Child, [Output; 2])> {
        let mut command = Command::new(&self.program);
        command.args(words).envs(SETTINGS).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at the terminal must reach this process only, which then says what exists.
        command.process_group(0);
        let mut child = spawn_bound(&mut command)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let outputs = || -> io::Result<[Output; 2]> { Ok([read(stdout)?, read(stderr)?]) };
        match outputs() {
            Ok(outputs) => Ok((child, outputs)),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Waits for the end of a process; whether it came in time.
    fn has_ended(&self, child: &Child, limit: Duration) -> io::Result<bool> {
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        ends_within(pidfd.as_fd(), limit, &self.is_over)
    }
}

impl Az for AzProcess {
    fn call(&mut self, words: &[&str], limit: Duration) -> Result<String, CallError> {
        let failed = |source| CallError::Start { program: self.program.display().to_string(), source };
        if self.is_over.load(Ordering::Relaxed) {
            return Err(CallError::Interrupted { command: name(words) });
        }
        let (mut child, [stdout, stderr]) = self.start(words).map_err(failed)?;
        let has_ended = self.has_ended(&child, limit);
        if !matches!(has_ended, Ok(true)) {
            end(&mut child);
            return Err(match has_ended {
                Err(source) => failed(source),
                Ok(_) if self.is_over.load(Ordering::Relaxed) => {
                    CallError::Interrupted { command: name(words) }
                }
                Ok(_) => CallError::TimedOut { command: name(words), limit },
            });
        }
        let status = child.wait().map_err(failed)?;
        let end_ns = monotonic_ns().saturating_add(OUTPUT_PATIENCE_NS);
        let text = |output: &Output| {
            let bytes = output.bytes(end_ns).map_err(failed)?;
            if bytes.len() as u64 > OUTPUT_MAX {
                let reason = format!("more than {OUTPUT_MAX} bytes");
                return Err(CallError::Answer { command: shown(words), reason });
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (stdout, stderr) = (text(&stdout)?, text(&stderr)?);
        if status.success() {
            return Ok(stdout);
        }
        Err(CallError::Failed { command: name(words), cause: Cause::of_output(&stderr, status.code()) })
    }

    fn pause(&mut self) -> bool {
        sleep_until_or(monotonic_ns().saturating_add(PAUSE_NS), &self.is_over)
    }
}

/// Kills a process and everything that it started, and waits for its end.
fn end(child: &mut Child) {
    // On error the group has ended.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    drop(child.wait());
}

/// Reads an output to its end, in a thread of its own: a process that writes much into both would wait otherwise.
fn read(output: Option<impl Read + Send + 'static>) -> io::Result<Output> {
    let (done, ended) = channel();
    let bytes = Arc::<Mutex<Vec<u8>>>::default();
    let held = bytes.clone();
    Builder::new().name("az-output".to_owned()).spawn(move || {
        let result = output.map_or(Ok(()), |output| append(output.take(OUTPUT_MAX + 1), &held));
        // Without a receiver the call was given up.
        drop(done.send(result));
    })?;
    Ok(Output { bytes, ended })
}

/// Appends what is read to these bytes, up to the end.
fn append(mut output: impl Read, bytes: &Mutex<Vec<u8>>) -> io::Result<()> {
    let mut part = [0; PART_LEN];
    loop {
        match output.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let part = part.get(..count).unwrap_or_default();
                bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(part);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::kill_process;

    use super::*;
    use crate::az::CALL_LIMIT;

    /// A shell in place of `az`: a script in a file could not be executed while another test forks.
    fn shell() -> AzProcess {
        AzProcess { program: PathBuf::from("/bin/sh"), is_over: Arc::default() }
    }

    #[test]
    fn arguments_reach_the_program_as_they_are() {
        let script = "for word; do printf '<%s>' \"$word\"; done";
        let words = ["-c", script, "az", "a b", "$(id)", "", "--x=;y"];
        assert_eq!(shell().call(&words, CALL_LIMIT).unwrap(), "<a b><$(id)><><--x=;y>");
    }

    #[test]
    fn answers_do_not_depend_on_the_configuration_of_the_user() {
        let words = ["-c", "printf %s \"$AZURE_CORE_OUTPUT $AZURE_CORE_ONLY_SHOW_ERRORS\""];
        assert_eq!(shell().call(&words, CALL_LIMIT).unwrap(), "json true");
    }

    #[test]
    fn failure_has_the_cause_from_standard_error() {
        let script = "echo 'ERROR: (ResourceNotFound) nothing there' >&2; exit 3";
        let error = shell().call(&["-c", script, "--name", "x"], CALL_LIMIT).unwrap_err().to_string();
        let end = "exit 3'` failed: nothing there (ResourceNotFound)";
        assert!(error.starts_with("`az -c ") && error.ends_with(end), "{error}");
    }

    #[test]
    fn missing_program_is_named_with_the_remedy() {
        let mut az = AzProcess { program: PathBuf::from("/nonexistent/az"), is_over: Arc::default() };
        let error = az.call(&["version"], CALL_LIMIT).unwrap_err().to_string();
        assert!(error.contains("install the Azure CLI"), "{error}");
    }

    #[test]
    fn call_beyond_its_limit_is_stopped_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let words = ["-c", "sleep 1000 & echo $! > \"$0\"; wait", file.to_str().unwrap()];
        // Far too short for the program to end, at any speed of the machine.
        let error = shell().call(&words, Duration::from_millis(200)).unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }) && error.is_transient(), "{error}");
        // The shell may have been killed before it wrote the file.
        let started = std::fs::read_to_string(file).unwrap_or_default().trim().parse().ok();
        if let Some(pidfd) =
            started.and_then(Pid::from_raw).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        {
            assert!(ends_within(pidfd.as_fd(), CALL_LIMIT, &AtomicBool::default()).unwrap());
        }
    }

    #[test]
    fn answer_is_read_although_a_process_that_was_left_behind_holds_the_output() {
        let answer = shell().call(&["-c", "sleep 60 2>/dev/null & echo $!"], CALL_LIMIT).unwrap();
        let left = answer.trim().parse().ok().and_then(Pid::from_raw).unwrap();
        kill_process(left, Signal::KILL).unwrap();
    }

    #[test]
    fn interrupt_ends_a_call_and_prevents_the_next() {
        let mut az = shell();
        let is_over = az.is_over.clone();
        let thread = Builder::new().spawn(move || is_over.store(true, Ordering::Relaxed)).unwrap();
        let error = az.call(&["-c", "sleep 1000"], CALL_LIMIT).unwrap_err();
        assert!(matches!(error, CallError::Interrupted { .. }), "{error}");
        thread.join().unwrap();
        let error = az.call(&["-c", "true", "--tags", "netduel=x"], CALL_LIMIT).unwrap_err();
        assert!(matches!(error, CallError::Interrupted { .. }) && !az.pause(), "{error}");
        assert_eq!(error.to_string(), "`az -c true` was interrupted");
    }

    #[test]
    fn output_on_both_ends_beyond_the_size_of_a_pipe_is_read() {
        let script = "head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2";
        assert_eq!(shell().call(&["-c", script], CALL_LIMIT).unwrap().len(), 300_000);
    }
}
