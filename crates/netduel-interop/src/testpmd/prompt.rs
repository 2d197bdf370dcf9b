//! A program with a prompt: commands go through a pipe, output comes from a pseudo-terminal. It does not interpret the output.
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;
use netduel_sys::process::spawn_bound;
use netduel_sys::pty::Pty;
use rustix::process::{Pid, Signal, kill_process_group};

use super::error::{DpdkError, Ending, last_words};
use super::prompt_output::{PromptOutput, without_echo};

/// Time limit for a process that has closed one of its sockets to end.
const LINGERING: Duration = Duration::from_secs(2);
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

/// Reasons for a missing prompt.
enum Missed {
    Silent,
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
            // The terminal returns an error when the program has closed it.
            while let Ok(length @ 1..) = user.read(&mut bytes) {
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
        match self.wait_for_prompt(within) {
            Ok(text) => Ok(text),
            Err(Missed::Ended) => Err(self.ended(doing)),
            Err(Missed::Silent) => {
                Err(DpdkError::Silent { doing, within, text: last_words(&self.text.unread()) })
            }
        }
    }

    fn wait_for_prompt(&mut self, within: Duration) -> Result<String, Missed> {
        let deadline_ns = monotonic_ns().saturating_add(within.as_nanos() as u64);
        loop {
            if let Some(text) = self.text.take_answer() {
                return Ok(text);
            }
            let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.text.push(&bytes),
                Err(RecvTimeoutError::Timeout) => return Err(Missed::Silent),
                Err(RecvTimeoutError::Disconnected) => return Err(Missed::Ended),
            }
        }
    }

    /// Reads the output so far.
    pub(super) fn take_in(&mut self) {
        while let Ok(bytes) = self.output.try_recv() {
            self.text.push(&bytes);
        }
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
        let deadline_ns = monotonic_ns().saturating_add(within.as_nanos() as u64);
        loop {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.text.push(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let text = last_words(&self.text.unread());
                    self.kill();
                    return Err(DpdkError::Silent { doing, within, text });
                }
            }
        }
        // The end of its output is the end of the program, because no other process has the terminal.
        let status = self.child.wait().map_err(|error| DpdkError::system("wait for testpmd", error))?;
        if status.success() {
            return Ok(self.text.unread());
        }
        Err(DpdkError::Ended { doing, ending: Ending(status), text: last_words(&self.text.unread()) })
    }

    /// The cause of a failure of another interface: the program's end, if it has ended.
    pub(super) fn explain(&mut self, doing: &'static str, error: DpdkError) -> DpdkError {
        // An ending process closes its sockets first, and its terminal right after.
        loop {
            match self.output.recv_timeout(LINGERING) {
                Ok(bytes) => self.text.push(&bytes),
                Err(RecvTimeoutError::Disconnected) => return self.ended(doing),
                Err(RecvTimeoutError::Timeout) => return error,
            }
        }
    }

    /// Reports that it ended without a request.
    fn ended(&mut self, doing: &'static str) -> DpdkError {
        // It may have closed the terminal without ending.
        self.kill();
        while let Ok(bytes) = self.output.recv() {
            self.text.push(&bytes);
        }
        match self.child.wait() {
            Ok(status) => {
                DpdkError::Ended { doing, ending: Ending(status), text: last_words(&self.text.unread()) }
            }
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
