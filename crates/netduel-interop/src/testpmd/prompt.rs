//! A program with a prompt: commands go through a pipe, output comes from a pseudo-terminal. It does not interpret the output.
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use netduel_sys::process::{ends_within, spawn_bound};
use netduel_sys::pty::Pty;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::deadline;
use super::error::{DpdkError, Ending, last_words};
use super::prompt_output::{PromptOutput, without_echo};

/// Time limit for a process that has closed one of its sockets to end.
const LINGERING: Duration = Duration::from_secs(3);
/// Bytes of one read of the output.
const PIECE: usize = 4096;
/// Pieces that wait to be taken in. testpmd fills a few of them; a driver that logs without end fills any number.
const PIECES_MAX: usize = 1024;

/// A running program, killed when this is dropped or when the thread that started it ends.
#[derive(Debug)]
pub(super) struct Prompt {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    /// Output that was not read yet.
    text: PromptOutput,
}

/// Why a wait ended without what was awaited.
enum Missed {
    /// Its time is over.
    Late,
    /// The program has closed its terminal.
    Ended,
}

impl Prompt {
    /// Starts a program whose prompt is `mark`.
    pub(super) fn start(command: &mut Command, mark: &'static str) -> Result<Self, DpdkError> {
        let Pty { user, program } =
            Pty::open().map_err(|error| DpdkError::system("open a terminal for testpmd", error))?;
        let copy =
            program.try_clone().map_err(|error| DpdkError::system("open a terminal for testpmd", error))?;
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::from(program)).stderr(Stdio::from(copy)).process_group(0);
        let mut child = spawn_bound(command).map_err(|source| DpdkError::Start { program: name, source })?;
        // The command holds copies of the terminal, which would keep it open.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let input = child.stdin.take();
        let (to, output) = sync_channel(PIECES_MAX);
        let reader = std::thread::Builder::new().name("testpmd-output".to_owned()).spawn(move || {
            let mut user = File::from(user);
            let mut bytes = [0; PIECE];
            loop {
                let length = match user.read(&mut bytes) {
                    Ok(length @ 1..) => length,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    // The terminal returns an error when the program has closed it.
                    Ok(0) | Err(_) => break,
                };
                // What finds no room is left out: a program that had to wait would not forward meanwhile.
                if let Err(TrySendError::Disconnected(_)) = to.try_send(bytes[..length].to_vec()) {
                    break;
                }
            }
        });
        let prompt = Self { child, input, output, text: PromptOutput::new(mark) };
        reader.map_err(|error| DpdkError::system("start a thread", error))?;
        Ok(prompt)
    }

    /// The program's process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line, and returns the output up to the next prompt without the echo of the line.
    pub(super) fn ask(
        &mut self,
        line: &str,
        doing: &'static str,
        within: Duration,
    ) -> Result<String, DpdkError> {
        self.take_in();
        self.text.clear();
        self.tell(line, doing)?;
        let text = self.until_prompt(doing, within)?;
        Ok(without_echo(&text, line).to_owned())
    }

    fn tell(&mut self, line: &str, doing: &'static str) -> Result<(), DpdkError> {
        let sent = match &mut self.input {
            Some(input) => input.write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        };
        // It has closed its input, which it does only at its end.
        sent.map_err(|_| self.ended(doing))
    }

    /// The output up to the next prompt.
    pub(super) fn until_prompt(
        &mut self,
        doing: &'static str,
        within: Duration,
    ) -> Result<String, DpdkError> {
        match self.wait(deadline::after(within), PromptOutput::take_answer) {
            Ok(text) => Ok(text),
            Err(Missed::Ended) => Err(self.ended(doing)),
            Err(Missed::Late) => Err(self.silent(doing, "did not come to its prompt", within)),
        }
    }

    /// Waits for what `take` takes from the output. The deadline is that of the whole wait, whatever the program prints meanwhile; what
    /// has arrived by then counts.
    fn wait<T>(
        &mut self,
        deadline_ns: u64,
        take: impl Fn(&mut PromptOutput) -> Option<T>,
    ) -> Result<T, Missed> {
        loop {
            if let Some(taken) = take(&mut self.text) {
                return Ok(taken);
            }
            let left = deadline::left(deadline_ns);
            if left.is_zero() {
                let missed = if self.take_in() { Missed::Late } else { Missed::Ended };
                return take(&mut self.text).ok_or(missed);
            }
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.text.push(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Missed::Ended),
            }
        }
    }

    /// Waits until the program has closed its terminal; whether it has by the deadline.
    fn closes_by(&mut self, deadline_ns: u64) -> bool {
        matches!(self.wait(deadline_ns, |_| None::<()>), Err(Missed::Ended))
    }

    /// Reads the output so far; whether more may come.
    pub(super) fn take_in(&mut self) -> bool {
        // More would arrive meanwhile without end.
        for _ in 0..PIECES_MAX {
            match self.output.try_recv() {
                Ok(bytes) => self.text.push(&bytes),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    /// Sends the last line, and waits until the program has ended. Returns the rest of its output.
    pub(super) fn quit(
        &mut self,
        line: &str,
        doing: &'static str,
        within: Duration,
    ) -> Result<String, DpdkError> {
        self.tell(line, doing)?;
        self.input = None;
        let deadline_ns = deadline::after(within);
        let waited = |error: io::Error| DpdkError::system("wait for testpmd", error);
        // No other process has the terminal, so it is closed by the program, at its end or before it.
        if !self.closes_by(deadline_ns) || !self.ends_by(deadline_ns).map_err(waited)? {
            let error = self.silent(doing, "did not end", within);
            self.kill();
            return Err(error);
        }
        let status = self.child.wait().map_err(waited)?;
        if status.success() {
            return Ok(self.text.unread());
        }
        Err(DpdkError::Ended { doing, ending: Ending(status), text: self.last_output() })
    }

    /// Waits until the process has ended; whether it has by the deadline.
    fn ends_by(&self, deadline_ns: u64) -> io::Result<bool> {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        ends_within(pidfd.as_fd(), deadline::left(deadline_ns), &AtomicBool::new(false))
    }

    /// The cause of a failure of another interface: the program's end, if it has ended. An answer in an unknown format is its own cause.
    pub(super) fn explain(&mut self, doing: &'static str, error: DpdkError) -> DpdkError {
        // An ending process closes its sockets first, and its terminal right after.
        let patience = match &error {
            DpdkError::System { .. } => LINGERING,
            DpdkError::Silent { .. } => Duration::ZERO,
            _ => return error,
        };
        if self.closes_by(deadline::after(patience)) {
            return self.ended(doing);
        }
        match error {
            DpdkError::Silent { missed, within, .. } => self.silent(doing, missed, within),
            error => error,
        }
    }

    /// Reports what it has not done in time, with its last output.
    fn silent(&self, doing: &'static str, missed: &'static str, within: Duration) -> DpdkError {
        DpdkError::Silent { doing, missed, within, text: self.last_output() }
    }

    /// The last lines of its output.
    pub(super) fn last_output(&self) -> String {
        last_words(&self.text.unread())
    }

    /// Reports that it ended without a request.
    fn ended(&mut self, doing: &'static str) -> DpdkError {
        // It may have closed the terminal without ending.
        self.kill();
        let status = self.child.wait();
        // Its last output. A process that it left behind may hold the terminal.
        self.closes_by(deadline::after(LINGERING));
        match status {
            Ok(status) => DpdkError::Ended { doing, ending: Ending(status), text: self.last_output() },
            Err(error) => DpdkError::system("wait for testpmd", error),
        }
    }

    fn kill(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // It is not reaped, so its id is still that of its process group.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(90);

    fn shell(script: &str) -> Prompt {
        Prompt::start(Command::new("sh").args(["-c", script]), "> ").unwrap()
    }

    #[test]
    fn prompt_answers_line_by_line_until_quit() {
        let mut prompt = shell(
            "printf 'hello\\n> '; while read -r line; do if [ \"$line\" = quit ]; then echo Bye; exit 0; fi; \
             printf '%s\\nyou said %s\\n> ' \"$line\" \"$line\"; done",
        );
        assert_eq!(prompt.until_prompt("start it", SOON).unwrap(), "hello\n");
        assert_eq!(prompt.ask("one", "ask it", SOON).unwrap(), "you said one");
        assert_eq!(prompt.ask("two", "ask it", SOON).unwrap(), "you said two");
        assert_eq!(prompt.quit("quit", "end it", SOON).unwrap().trim(), "Bye");
    }

    #[test]
    fn ended_program_is_reported_with_exit_code_and_last_output() {
        let error =
            shell("echo no such device; exit 3").until_prompt("start it", SOON).unwrap_err().to_string();
        assert_eq!(error, "start it: testpmd ended with exit code 3; its last output: no such device");
        let mut prompt = shell("printf '> '; read -r line; kill -9 $$");
        prompt.until_prompt("start it", SOON).unwrap();
        let error = prompt.ask("start", "ask it", SOON).unwrap_err().to_string();
        assert!(error.contains("signal 9"), "{error}");
    }

    #[test]
    fn program_without_a_prompt_is_killed() {
        let mut prompt = shell("echo still busy; exec sleep 1000");
        let error = prompt.until_prompt("start it", Duration::from_millis(300)).unwrap_err();
        assert!(matches!(&error, DpdkError::Silent { .. }), "{error}");
        let pid = prompt.pid();
        drop(prompt);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn wait_has_one_limit_though_the_program_prints_without_end() {
        let mut prompt = shell("exec yes still busy");
        let first = prompt.output.recv().unwrap();
        prompt.text.push(&first);
        let error = prompt.until_prompt("start it", Duration::from_millis(300)).unwrap_err().to_string();
        let beginning = "start it: testpmd did not come to its prompt within 0.3 s; its last output: ";
        assert!(error.starts_with(beginning) && error.contains("still busy"), "{error}");
        let error = prompt.quit("quit", "end it", Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.starts_with("end it: testpmd did not end within 0.3 s; its last output: "), "{error}");
    }

    #[test]
    fn program_that_closes_its_terminal_and_stays_is_killed_at_the_limit() {
        let mut prompt = shell("printf '> '; read -r line; exec sleep 1000 >/dev/null 2>&1");
        prompt.until_prompt("start it", SOON).unwrap();
        let error = prompt.quit("quit", "end it", Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.starts_with("end it: testpmd did not end within 0.3 s"), "{error}");
    }

    #[test]
    fn silence_of_another_interface_is_reported_with_the_last_output() {
        let mut prompt = shell("echo no more buffers; exec sleep 1000");
        let is_there = |output: &mut PromptOutput| output.unread().contains("buffers").then_some(());
        assert!(prompt.wait(deadline::after(SOON), is_there).is_ok());
        let silent = DpdkError::Silent {
            doing: "ask it",
            missed: "did not answer",
            within: Duration::from_secs(5),
            text: String::new(),
        };
        let error = prompt.explain("read its counters", silent).to_string();
        assert_eq!(
            error,
            "read its counters: testpmd did not answer within 5.0 s; its last output: no more buffers"
        );
    }

    #[test]
    fn unread_output_is_bounded_and_stops_no_program() {
        // 16 MiB.
        let mut prompt = shell("head -c 16777216 /dev/zero | tr '\\0' x");
        prompt.child.wait().unwrap();
        // The last of it may come from the terminal while this reads.
        let kept = prompt.output.iter().flatten().count();
        assert!((1..2 * PIECES_MAX * PIECE).contains(&kept), "{kept}");
    }

    #[test]
    fn missing_program_is_an_error_with_the_package_to_install() {
        let error = Prompt::start(&mut Command::new("/nonexistent/testpmd"), "> ").unwrap_err().to_string();
        assert!(
            error.contains("/nonexistent/testpmd") && error.contains("apt-get install dpdk-dev"),
            "{error}"
        );
    }
}
