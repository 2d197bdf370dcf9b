//! The agent's end of the lifeline: starts the guard, hands it records, waits for its word.
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::TreatmentError;
use super::held_journal::HeldJournal;
use super::journal;
use super::processes::{THIS_PROGRAM, poll_until, readable_until};
use super::protocol::{Answer, Request, namespace};

/// The guard answers within a millisecond, and on a host without a free core within seconds; one that does not within this time is stopped
/// or stuck. Shorter than the time that the coordinator gives a step, so that its error names the guard.
const ANSWER_DEADLINE: Duration = Duration::from_secs(25);
/// How long an agent that ends waits for a guard that still tries to undo what the agent could not.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// How the guard is started: a program and its words, for example [`THIS_PROGRAM`] and `undo-guard`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// Program.
    pub program: PathBuf,
    /// Its words.
    pub words: Vec<String>,
}

impl GuardCommand {
    /// An agent's guard, of the program that runs.
    pub fn of_this_program() -> Self {
        Self { program: THIS_PROGRAM.into(), words: vec!["undo-guard".to_owned()] }
    }

    /// The guard of a coordinator that changes resources of a provider, of the program that runs.
    pub fn of_this_coordinator() -> Self {
        let mut command = Self::of_this_program();
        command.words.push("--coordinator".to_owned());
        command
    }
}

/// A guard on watch.
#[derive(Debug)]
pub(super) struct Lifeline {
    child: Child,
    /// Only this end exists (it is closed on exec), so the guard sees the agent's death, however it dies.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    /// Where the guard writes what it keeps.
    journal: Option<PathBuf>,
    /// The same, held by this process since the first change that is in it.
    held: Option<HeldJournal>,
}

impl Lifeline {
    /// Starts a guard and waits until it is on watch in the same network namespace.
    pub(super) fn start(command: &GuardCommand) -> Result<Self, TreatmentError> {
        let program = command.program.display().to_string();
        let failed = |cause: String| TreatmentError::GuardStart { program: program.clone(), cause };
        let mut child = Command::new(&command.program)
            .args(&command.words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|cause| failed(cause.to_string()))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let mut lifeline = Self { child, requests: Some(requests), answers, journal: None, held: None };
        let how = match lifeline.answer() {
            Ok(Answer::Ready { namespace: its, journal }) if its == namespace() => {
                lifeline.journal = journal;
                return Ok(lifeline);
            }
            Ok(Answer::Ready { .. }) => "it runs in another network namespace".to_owned(),
            Ok(answer) => format!("it began with {answer:?}"),
            Err(how) => how,
        };
        // It keeps nothing yet, and it may be a program that does not care for its standard input.
        let ended = lifeline.end_now();
        Err(failed(format!("{how} ({ended})")))
    }

    /// Ends the guard. Returns how it ended, in words.
    fn end_now(&mut self) -> String {
        let _ = self.child.kill();
        self.child.wait().map_or_else(|cause| cause.to_string(), |status| status.to_string())
    }

    /// Where the guard writes what it keeps.
    pub(super) fn journal(&self) -> Option<PathBuf> {
        self.journal.clone()
    }

    /// Asks, and waits for the guard's word. After [`TreatmentError::GuardLost`] the guard is lost; it is ended then.
    pub(super) fn ask(&mut self, id: u64, request: &Request) -> Result<(), TreatmentError> {
        let how = match self.send(request).and_then(|()| self.answer()) {
            Ok(Answer::Done { id: its }) if its == id => match self.hold(request) {
                Ok(()) => return Ok(()),
                Err(how) => how,
            },
            Ok(Answer::NotRecorded { id: its, cause }) if its == id => {
                let journal = self.journal.as_deref().unwrap_or(Path::new("the journal of its guard"));
                return Err(TreatmentError::NotRecorded { journal: journal.to_owned(), cause });
            }
            Ok(answer) => format!("it answered {answer:?}"),
            Err(how) => how,
        };
        // A guard that wakes up late would undo in the midst of a later trial.
        Err(TreatmentError::GuardLost { how: format!("{how} ({})", self.end_now()) })
    }

    /// Holds the journal, in which the record of a change is now: the guard may be killed, and no other agent may restore then what this one
    /// changes.
    fn hold(&mut self, request: &Request) -> Result<(), String> {
        let Some(path) = self.journal.as_deref().filter(|_| matches!(request, Request::Keep { .. })) else {
            return Ok(());
        };
        if self.held.as_ref().is_none_or(|held| !held.is_there()) {
            let held = HeldJournal::hold(path);
            self.held = Some(held.map_err(|cause| format!("{} cannot be held: {cause}", path.display()))?);
        }
        Ok(())
    }

    /// What is left of a guard that is lost: its journal, when a change in it was made. A change is not made before its journal is held.
    pub(super) fn orphan(mut self) -> Option<HeldJournal> {
        let held = self.held.take().filter(HeldJournal::is_there);
        if held.is_none()
            && let Some(path) = &self.journal
        {
            // The guard may have been killed before it removed the file.
            let _ = journal::discard(path);
        }
        held
    }

    fn send(&mut self, request: &Request) -> Result<(), String> {
        let mut line = serde_json::to_string(request).map_err(|cause| cause.to_string())?;
        line.push('\n');
        let requests = self.requests.as_mut().ok_or("its lifeline is closed")?;
        requests.write_all(line.as_bytes()).map_err(|cause| format!("it does not listen: {cause}"))
    }

    /// One line. The guard writes only in answer to a request, so nothing follows the end of the line.
    fn answer(&mut self) -> Result<Answer, String> {
        let deadline = monotonic_ns() + ANSWER_DEADLINE.as_nanos() as u64;
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            if !poll_until(PollFd::new(&self.answers, PollFlags::IN), deadline) {
                return Err(format!("it did not answer within {} s", ANSWER_DEADLINE.as_secs()));
            }
            let mut bytes = [0; 512];
            match self.answers.read(&mut bytes) {
                Ok(0) => return Err("it ended".to_owned()),
                Ok(count) => line.extend_from_slice(&bytes[..count]),
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(format!("its answer could not be read: {cause}")),
            }
        }
        serde_json::from_slice(&line).map_err(|cause| format!("its answer makes no sense: {cause}"))
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        // The guard now undoes what it still keeps, and ends.
        self.requests = None;
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let deadline = monotonic_ns() + END_DEADLINE.as_nanos() as u64;
        if let Ok(process) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())
            && readable_until(&process, deadline)
        {
            let _ = self.child.wait();
        }
    }
}
