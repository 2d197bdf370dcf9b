//! Ends the processes of a test run that ends early. Ctrl-C and `kill` end this program before its tests can stop what they started, so a
//! second process waits for its end.
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::leftovers;
use crate::stopwatch::{Stopwatch, pause};

/// The command of the second process.
pub const COMMAND: &str = "end-tests-with-parent";
/// What the second process reads when the run ended by itself.
const FAREWELL: &[u8] = b"done";
/// Processes restore settings of the machine before they end.
const GRACE: Duration = Duration::from_secs(20);

/// The second process. It ends the processes of the run unless this value is dropped.
#[derive(Debug)]
pub struct Warden {
    child: Child,
    stdin: ChildStdin,
}

impl Warden {
    /// Starts it for the run with this mark.
    pub fn start(mark: &str) -> Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // A group of its own: Ctrl-C is not for it.
        command.args([COMMAND, mark]).stdin(Stdio::piped()).process_group(0);
        let mut child = command.spawn().context("failed to start the process that ends tests")?;
        let stdin = child.stdin.take().context("the process that ends tests has no standard input")?;
        Ok(Self { child, stdin })
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // When this cannot be written, it ends what is left, and nothing should be.
        let _ = self.stdin.write_all(FAREWELL);
        let _ = self.stdin.flush();
        // The rest of its input is not awaited: it ends with the farewell.
        let _ = self.child.wait();
    }
}

/// The second process: waits for the end of the first one.
pub fn watch(mark: &str) -> Result<bool> {
    let ended = wait_and_end(&mut io::stdin().lock(), mark, GRACE)?;
    if ended > 0 {
        eprintln!("xtask: the run ended early; ended {ended} processes of its tests");
    }
    Ok(true)
}

/// Waits for the farewell or the end of the input, and after the latter ends the processes of the run. Returns their number.
fn wait_and_end(input: &mut impl Read, mark: &str, grace: Duration) -> Result<usize> {
    let mut farewell = [0; FAREWELL.len()];
    match input.read_exact(&mut farewell) {
        Ok(()) if farewell == *FAREWELL => return Ok(0),
        Ok(()) => bail!("the test run wrote something other than its end"),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(error).context("failed to wait for the end of the test run"),
    }
    let first = leftovers::processes_of(mark);
    signal("TERM", &first)?;
    let watch = Stopwatch::start();
    loop {
        let left = leftovers::processes_of(mark);
        if left.is_empty() {
            return Ok(first.len());
        }
        // Those that started others meanwhile, too.
        if watch.elapsed() >= grace {
            signal("KILL", &left)?;
        }
        pause(Duration::from_millis(50));
    }
}

/// Sends a signal to these processes. Those that ended meanwhile are no error.
fn signal(name: &str, processes: &[u32]) -> Result<()> {
    if processes.is_empty() {
        return Ok(());
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "signal=$1; shift; for id; do kill -s \"$signal\" \"$id\"; done; true", "sh", name]);
    shell.args(processes.iter().map(u32::to_string)).stderr(Stdio::null());
    let status = shell.status().context("failed to start sh to end processes of tests")?;
    if !status.success() {
        bail!("failed to end processes of tests: sh ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::leftovers::MARK_VARIABLE;

    const SIGTERM: i32 = 15;
    const SIGKILL: i32 = 9;

    /// The mark of a run of this process alone.
    fn mark(name: &str) -> String {
        format!("{name}-{}", std::process::id())
    }

    /// A process of a run that runs until it is ended; it first executes `before`.
    fn process(mark: &str, before: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before}; echo x; while :; do read line || exit 0; done")]);
        shell.env(MARK_VARIABLE, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 2]).unwrap();
        child
    }

    #[test]
    fn run_that_ends_early_ends_its_processes() {
        let mark = &mark("a-run-that-ends-early");
        let (mut child, mut other) = (process(mark, ":"), process(&self::mark("another-run"), ":"));
        assert_eq!(wait_and_end(&mut io::empty(), mark, GRACE).unwrap(), 1);
        assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
        assert!(other.try_wait().unwrap().is_none(), "a process of another run was ended");
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn process_that_ignores_the_request_is_killed() {
        let mark = &mark("a-run-with-a-deaf-process");
        let mut child = process(mark, "trap '' TERM");
        wait_and_end(&mut io::empty(), mark, Duration::ZERO).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
    }

    #[test]
    fn run_that_ends_by_itself_keeps_its_processes() {
        let mark = &mark("a-run-that-ends");
        let mut child = process(mark, ":");
        assert_eq!(wait_and_end(&mut io::Cursor::new(FAREWELL), mark, GRACE).unwrap(), 0);
        assert!(child.try_wait().unwrap().is_none(), "it was ended");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
