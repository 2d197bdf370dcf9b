//! Commands and their processes: no shell, a deadline, a process group of their own, standard error kept for the message. Waits for
//! descriptors of processes.
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Duration;

use netduel_control::protocol::COMMAND_TIMEOUT_NS;
use netduel_model::shell;
use netduel_sys::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal};

use super::error::TreatmentError;
use super::stderr_pipe::StderrPipe;

/// A command that takes longer is ended: the coordinator waits for it with every trial.
pub(super) const DEADLINE: Duration = Duration::from_nanos(COMMAND_TIMEOUT_NS);
/// Names the treatment in the environment of its processes, so that they are found when the agent dies while they run.
const MARK: &str = "NETDUEL_TREATMENT";
/// An exec shows no environment for some microseconds, or for as long as its thread waits for a core; a
/// process that shows none for longer has none. All processes together are waited for this long in one
/// [`end_marked`], so that a user with many processes of that kind delays no undo.
const EXEC_DEADLINE: Duration = Duration::from_secs(2);
/// A process that makes others as fast as they are ended is not pursued for ever.
const ROUNDS: usize = 50;
/// The program that runs, by no path: at its own there may be another file by now, or none.
pub const THIS_PROGRAM: &str = "/proc/self/exe";
/// What [`THIS_PROGRAM`] is called in a command for a shell, where it would be the shell.
const NAME: &str = "netduel";

/// A command that could not be run to a good end.
pub(super) fn failed(words: &[String], how: String, stderr: String) -> TreatmentError {
    TreatmentError::Command { command: shown(words), how, stderr }
}

/// A command as a person can repeat it.
pub(super) fn shown(words: &[String]) -> String {
    let program = words.first().map(|word| if word == THIS_PROGRAM { NAME } else { word.as_str() });
    shell::line(program.into_iter().chain(words.iter().skip(1).map(String::as_str)))
}

/// Runs a command to its end, within [`DEADLINE`].
pub(super) fn run(words: &[String], mark: &str) -> Result<(), TreatmentError> {
    run_within(words, mark, DEADLINE)
}

/// As [`run`], within another deadline.
pub(super) fn run_within(words: &[String], mark: &str, deadline: Duration) -> Result<(), TreatmentError> {
    let with = |how: String| failed(words, how, String::new());
    let (program, arguments) = words.split_first().ok_or_else(|| with("it names no program".to_owned()))?;
    // The agent's standard output is its control connection, so the command must not have it.
    let mut child = Command::new(program)
        .args(arguments)
        .env(MARK, mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|cause| with(format!("it could not be started: {cause}")))?;
    let mut stderr = StderrPipe::of(&mut child);
    let in_time = stderr.await_end(&mut child, monotonic_ns() + deadline.as_nanos() as u64);
    if !in_time {
        // The child is not reaped yet, so its number is still that of its process group.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        end_marked(mark);
    }
    let status = child.wait();
    let stderr = stderr.finish();
    let status = status.map_err(|cause| with(format!("its end could not be awaited: {cause}")))?;
    if status.success() && in_time {
        return Ok(());
    }
    let how = match (in_time, status.code(), status.signal()) {
        (false, ..) => format!(
            "it took longer than {} s and was stopped; shorten it, or let it start in the background what has to keep \
             running",
            deadline.as_secs_f64()
        ),
        (_, Some(code), _) => format!("it ended with exit code {code}"),
        (_, _, signal) => format!("it was ended by signal {}", signal.unwrap_or_default()),
    };
    Err(failed(words, how, stderr))
}

/// Whether a descriptor became readable, or its other end went away, before the deadline.
pub(super) fn readable_until(descriptor: &OwnedFd, deadline_ns: u64) -> bool {
    poll_until(PollFd::new(descriptor, PollFlags::IN), deadline_ns)
}

/// As [`readable_until`], for any descriptor.
pub(super) fn poll_until(descriptor: PollFd<'_>, deadline_ns: u64) -> bool {
    poll_all_until(&mut [descriptor], deadline_ns)
}

/// As [`poll_until`], for any of several descriptors.
pub(super) fn poll_all_until(descriptors: &mut [PollFd<'_>], deadline_ns: u64) -> bool {
    loop {
        let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
        // Only a time beyond the kernel's reach has no representation; waiting without an end is then the same.
        let left = Timespec::try_from(left).ok();
        match poll(descriptors, left.as_ref()) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Ends every process that carries the mark, wherever it went, and waits until it is gone, [`DEADLINE`] at most.
pub(super) fn end_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    // A process that is made while the list is read may be missed once, when process numbers begin anew.
    let mut empty_lists = 0;
    let exec_deadline_ns = monotonic_ns() + EXEC_DEADLINE.as_nanos() as u64;
    let deadline_ns = monotonic_ns() + DEADLINE.as_nanos() as u64;
    for _ in 0..ROUNDS {
        let found = marked(wanted.as_bytes(), exec_deadline_ns);
        empty_lists = if found.is_empty() { empty_lists + 1 } else { 0 };
        if empty_lists == 2 {
            return;
        }
        for process in &found {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        // One that waits in the kernel, for a device or a file server, ends when the kernel lets it. All have one limit.
        if !found.iter().all(|process| readable_until(process, deadline_ns)) {
            return;
        }
    }
}

fn marked(wanted: &[u8], exec_deadline_ns: u64) -> Vec<OwnedFd> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != getpid() && carries(*pid, wanted, exec_deadline_ns))
        .filter_map(|pid| {
            let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // Read again: the number may have gone to another process before the descriptor held it.
            carries(pid, wanted, exec_deadline_ns).then_some(process)
        })
        .collect()
}

/// Whether a process has the mark in its environment. One that is in the midst of exec shows none for some microseconds:
/// it is looked at until it shows one, or until the deadline.
fn carries(pid: Pid, wanted: &[u8], deadline_ns: u64) -> bool {
    let file = |name: &str| format!("/proc/{}/{name}", pid.as_raw_nonzero());
    loop {
        let environment = fs::read(file("environ")).unwrap_or_default();
        // A program without an environment has words, and threads of the kernel and dead processes have no program.
        let in_exec = environment.is_empty()
            && fs::read(file("cmdline")).is_ok_and(|words| words.is_empty())
            && fs::read_link(file("exe")).is_ok();
        if !in_exec || monotonic_ns() > deadline_ns {
            return environment.split(|byte| *byte == 0).any(|entry| entry == wanted);
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn soon_ns() -> u64 {
        monotonic_ns() + EXEC_DEADLINE.as_nanos() as u64
    }

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn failed_command_is_reported_with_its_standard_error_alone() {
        let failed =
            run(&words(&["sh", "-c", "echo out; echo no such door >&2; exit 3"]), "mark-a").unwrap_err();
        let text = failed.to_string();
        assert!(text.ends_with("exit code 3; standard error: no such door"), "{text}");
        let missing = run(&words(&["/no/such/program"]), "mark-b").unwrap_err().to_string();
        assert!(missing.contains("could not be started"), "{missing}");
    }

    #[test]
    fn command_writes_any_amount_to_standard_error() {
        run(&words(&["sh", "-c", "set -e; seq 50000 >&2; head -c 3000000 /dev/zero >&2"]), "mark-c").unwrap();
        let failed = run(&words(&["sh", "-c", "seq 50000 >&2 && echo no such door >&2; exit 3"]), "mark-d");
        let text = failed.unwrap_err().to_string();
        assert!(text.contains("exit code 3; standard error: 1 | 2 | "), "{text}");
        assert!(text.ends_with(" | 50000 | no such door"), "{text}");
    }

    #[test]
    fn command_that_writes_without_end_is_stopped_at_its_deadline() {
        let mark = format!("mark-endless-{}", getpid().as_raw_nonzero());
        let endless = words(&["sh", "-c", "exec yes >&2"]);
        let failed = run_within(&endless, &mark, Duration::from_millis(200)).unwrap_err().to_string();
        assert!(failed.contains("longer than 0.2 s"), "{failed}");
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_all_that_it_started() {
        let mark = format!("mark-{}", getpid().as_raw_nonzero());
        let hang = words(&["sh", "-c", "setsid sleep 1000 & exec sleep 1000"]);
        let failed = run_within(&hang, &mark, Duration::from_millis(200)).unwrap_err().to_string();
        assert!(failed.contains("longer than 0.2 s") && failed.contains("`sh -c 'setsid sleep"), "{failed}");
        assert!(failed.contains("was stopped; shorten it"), "{failed}");
        assert!(marked(format!("{MARK}={mark}").as_bytes(), soon_ns()).is_empty());
    }

    #[test]
    fn a_service_that_a_command_leaves_behind_does_not_hold_it_up() {
        let mark = format!("mark-service-{}", getpid().as_raw_nonzero());
        run(&words(&["sh", "-c", "setsid sleep 1000 &"]), &mark).unwrap();
        end_marked(&mark);
        assert!(marked(format!("{MARK}={mark}").as_bytes(), soon_ns()).is_empty());
    }

    #[test]
    fn service_that_a_command_leaves_behind_writes_on_and_does_not_hold_it_up() {
        let folder = tempfile::tempdir().unwrap();
        let [go, done] = ["go", "done"].map(|name| folder.path().join(name));
        for pipe in [&go, &done] {
            mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        // Both directions are open here, so that no open of the command waits.
        let [mut start, mut ended] =
            [&go, &done].map(|pipe| File::options().read(true).write(true).open(pipe).unwrap());
        let pipes = format!("exec 3<{} 4>{}", go.display(), done.display());
        let script = format!("{pipes}; (read line <&3; seq 50000 >&2; echo $? >&4) &");
        let mark = format!("mark-writing-{}", getpid().as_raw_nonzero());
        run(&words(&["sh", "-c", &script]), &mark).unwrap();
        start.write_all(b"go\n").unwrap();
        // A failed write has another code, and so has a signal.
        let mut code = [0; 2];
        ended.read_exact(&mut code).unwrap();
        assert_eq!(&code, b"0\n");
        end_marked(&mark);
    }
}
