//! A client's view of a lab: create it, change its path, query its state, remove it.
use std::io::{BufRead, BufReader, PipeWriter, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use netduel_model::failover::{LinkBytes, PathEventKind};
use netduel_model::ids::LabName;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_sys::process;
use rustix::process::{Pid, PidfdFlags};

use crate::directory;
use crate::error::{Errno, LabError};
use crate::keeper::{self, Stage};
use crate::protocol::{self, Answer, Ask, Lifetime, Performed, Report, Request, Status, Task, VERSION};

/// The command that starts a keeper: a program whose arguments after `words` go to [`crate::keeper_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeeperCommand {
    /// The program, for example `/proc/self/exe`.
    pub program: PathBuf,
    /// The hidden subcommand, for example `lab-keeper`.
    pub words: Vec<String>,
}

/// How long the end of a lab is awaited. The kernel ends its processes within a second, on a busy machine within some seconds; it never
/// does where the parent of one of them does not reap.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A running lab. Dropping the handle of an attached lab removes the lab and waits for its end, as [`Lab::end`]; dropping the handle of
/// a standing lab does nothing.
#[derive(Debug)]
pub struct Lab {
    name: LabName,
    keeper_pid: i32,
    keeper: OwnedFd,
    connection: Mutex<OwnedFd>,
    words: Option<std::fs::File>,
    attached: Option<Attached>,
}

/// The lifeline of an attached lab.
#[derive(Debug)]
struct Attached {
    lifeline: Option<PipeWriter>,
    guard: Child,
}

impl Attached {
    /// Closes the lifeline and waits for the end of the guard, or until `is_over` was set. Whether it has ended.
    fn end(&mut self, is_over: &AtomicBool) -> std::io::Result<bool> {
        drop(self.lifeline.take());
        // The guard ends after the init, and the init after every process of the lab.
        let guard = rustix::process::pidfd_open(Pid::from_child(&self.guard), PidfdFlags::empty())?;
        if !process::ends_within(guard.as_fd(), END_PATIENCE, is_over)? {
            return Ok(false);
        }
        self.guard.wait().map(|_| true)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The lab ends with its lifeline in any case; after an error only the wait for that is shorter.
        if self.lifeline.is_some() {
            let _ = self.end(&AtomicBool::new(false));
        }
    }
}

impl Lab {
    /// Builds a lab and waits until all its paths carry traffic. The synthetic path is in use.
    ///
    /// # Errors
    /// Every [`LabError`] except those of requests; everything created before the error is removed.
    pub fn up(
        name: &LabName,
        spec: &resolved::Lab,
        lifetime: Lifetime,
        keeper: &KeeperCommand,
    ) -> Result<Self, LabError> {
        let task = Task {
            name: name.clone(),
            lifetime,
            spec: spec.clone(),
            program: keeper.program.clone(),
            words: keeper.words.clone(),
        };
        let (words, mut report, attached) = start(&task)?;
        let mut line = String::new();
        let _ = report.read_line(&mut line);
        match serde_json::from_str(&line) {
            Ok(Report::Ready) => {}
            Ok(Report::Failed { error }) => return Err(error),
            Err(_) => {
                // The guard ends after its last output.
                drop(attached);
                let operation = "build the lab".to_owned();
                return Err(LabError::KeeperDied {
                    operation,
                    name: name.clone(),
                    last_words: last_words(&words),
                });
            }
        }
        let mut lab = Self::connect(name)?;
        lab.words = Some(words);
        lab.attached = attached;
        Ok(lab)
    }

    /// A handle of a running lab of this user. The lab does not end with the handle.
    ///
    /// # Errors
    /// [`LabError::NoSuchLab`], [`LabError::Local`].
    pub fn connect(name: &LabName) -> Result<Self, LabError> {
        let (connection, keeper_pid) = directory::connect(name)?;
        let gone = || LabError::NoSuchLab { name: name.clone() };
        let pid = Pid::from_raw(keeper_pid).ok_or_else(gone)?;
        let keeper = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|_| gone())?;
        Ok(Self {
            name: name.clone(),
            keeper_pid,
            keeper,
            connection: Mutex::new(connection),
            words: None,
            attached: None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &LabName {
        &self.name
    }

    /// Changes the path of the guests' addresses, in both directions. Connections survive. When this returns, the next packet
    /// uses the path.
    ///
    /// # Errors
    /// [`LabError::Kernel`] and the other errors of the kernel when a step fails, [`LabError::KeeperDied`].
    pub fn set_path(&self, path: LabPath) -> Result<(), LabError> {
        match self.ask(Ask::SetPath { path }, "set the path")?.0 {
            Answer::Done => Ok(()),
            _ => Err(self.other_version()),
        }
    }

    /// Performs an event on the path of a guest, `a` or `b`, while traffic runs. [`Self::restore`] undoes it.
    ///
    /// # Errors
    /// [`LabError::Kernel`] and the other errors of the kernel when a step fails, [`LabError::NoSuchHost`], [`LabError::KeeperDied`].
    pub fn perform(&self, kind: PathEventKind, guest: &str) -> Result<Performed, LabError> {
        match self.ask(Ask::Perform { kind, guest: guest.to_owned() }, "change the path")?.0 {
            Answer::Performed(performed) => Ok(performed),
            _ => Err(self.other_version()),
        }
    }

    /// Counters of the guests' ends of the paths since their creation; without deleted interfaces.
    ///
    /// # Errors
    /// [`LabError::Kernel`] when a counter cannot be read, [`LabError::KeeperDied`].
    pub fn bytes(&self) -> Result<Vec<LinkBytes>, LabError> {
        match self.ask(Ask::Bytes, "read the counters")?.0 {
            Answer::Bytes { bytes } => Ok(bytes),
            _ => Err(self.other_version()),
        }
    }

    /// Undoes all events of [`Self::perform`], and sets the path that was set last.
    ///
    /// # Errors
    /// As [`Self::set_path`].
    pub fn restore(&self) -> Result<(), LabError> {
        match self.ask(Ask::Restore, "restore the path")?.0 {
            Answer::Done => Ok(()),
            _ => Err(self.other_version()),
        }
    }

    /// The lab's current state, read from the kernel.
    ///
    /// # Errors
    /// [`LabError::Kernel`] when the state cannot be read, [`LabError::KeeperDied`].
    pub fn status(&self) -> Result<Status, LabError> {
        match self.ask(Ask::Status, "read the status")?.0 {
            Answer::Status { status } => Ok(Status {
                spec: status.spec,
                path: status.path,
                observed: status.observed,
                keeper_pid: self.keeper_pid,
                lifetime: status.lifetime,
                user_namespace: status.user_namespace,
                interfaces: status.interfaces,
                policies: status.policies,
            }),
            _ => Err(self.other_version()),
        }
    }

    /// Removes the lab, and waits until every process in it has ended and its name is free.
    ///
    /// # Errors
    /// [`LabError::NotEnded`] after 10 s, [`LabError::Local`] when waiting fails. A lab whose keeper has died is already removed.
    pub fn down(self) -> Result<(), LabError> {
        match self.ask(Ask::Down, "take the lab down") {
            Ok(_) | Err(LabError::KeeperDied { .. }) => {}
            Err(error) => return Err(error),
        }
        self.ended(process::ends_within(self.keeper.as_fd(), END_PATIENCE, &AtomicBool::new(false)))
    }

    /// Removes an attached lab, and waits until every process in it has ended, or until `is_over` was set. Does nothing to a standing lab.
    ///
    /// # Errors
    /// As [`Self::down`]; [`LabError::NotEnded`] also when `is_over` ended the wait.
    pub fn end(mut self, is_over: &AtomicBool) -> Result<(), LabError> {
        let ended = self.attached.as_mut().map_or(Ok(true), |attached| attached.end(is_over));
        self.ended(ended)
    }

    fn ended(&self, waited: std::io::Result<bool>) -> Result<(), LabError> {
        match waited {
            Ok(true) => Ok(()),
            Ok(false) => Err(LabError::NotEnded { name: self.name.clone(), pid: self.keeper_pid }),
            Err(error) => Err(LabError::local(format!("wait for the end of lab {}", self.name))(error)),
        }
    }

    /// The descriptors for entering a host: user (if the lab has its own), pid, network, host name.
    pub(crate) fn entrance(&self, host: &str) -> Result<(bool, Vec<OwnedFd>), LabError> {
        match self.ask(Ask::Enter { host: host.to_owned() }, "open the namespaces of a host")? {
            (Answer::Entrance { user }, descriptors) => Ok((user, descriptors)),
            _ => Err(self.other_version()),
        }
    }

    fn other_version(&self) -> LabError {
        LabError::OtherVersion { name: self.name.clone() }
    }

    fn ask(&self, ask: Ask, operation: &str) -> Result<(Answer, Vec<OwnedFd>), LabError> {
        // After a panic between request and answer, late answers may arrive on the connection.
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = protocol::send(connection.as_fd(), &Request { version: VERSION, ask }, &[])
            .and_then(|()| protocol::receive::<Answer>(connection.as_fd()));
        match answered {
            Ok(Some((Answer::Failed { error }, _))) => Err(error),
            Ok(Some((Answer::OtherVersion, _))) => Err(self.other_version()),
            Ok(Some((answer, descriptors))) => Ok((answer, descriptors)),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(self.other_version()),
            Ok(None) | Err(_) => Err(LabError::KeeperDied {
                operation: operation.to_owned(),
                name: self.name.clone(),
                last_words: self.words.as_ref().and_then(last_words),
            }),
        }
    }
}

type Started = (std::fs::File, BufReader<std::io::PipeReader>, Option<Attached>);

/// Starts the keeper's first stage. Returns its standard error, its report, and the lifeline of an attached lab.
fn start(task: &Task) -> Result<Started, LabError> {
    let program = format!("start the keeper {}", task.program.display());
    let failed = || LabError::local::<std::io::Error>(program.clone());
    let words = rustix::fs::memfd_create("netduel-lab-keeper", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|error| failed()(error.into()))?;
    let words = std::fs::File::from(words);
    let (report, writer) = std::io::pipe().map_err(failed())?;
    let stage = if task.lifetime == Lifetime::Attached { Stage::Guard } else { Stage::Detach };
    let mut command = keeper::command(task, stage)?;
    command.stdout(writer).stderr(words.try_clone().map_err(failed())?);
    let mut lifeline = None;
    if task.lifetime == Lifetime::Attached {
        // Its own process group: Ctrl-C is for the program in the foreground, which decides about the lab.
        command.process_group(0);
        let (reader, writer) = std::io::pipe().map_err(failed())?;
        command.stdin(reader);
        lifeline = Some(writer);
    } else {
        command.stdin(Stdio::null());
    }
    let mut child = command.spawn().map_err(failed())?;
    // It holds copies of the pipes' ends, which would keep them open.
    drop(command);
    let attached = if lifeline.is_some() {
        Some(Attached { lifeline, guard: child })
    } else {
        child.wait().map_err(failed())?;
        None
    };
    Ok((words, BufReader::new(report), attached))
}

/// What the keeper wrote to its standard error, if anything.
fn last_words(mut words: &std::fs::File) -> Option<String> {
    let mut text = String::new();
    words.rewind().ok()?;
    words.read_to_string(&mut text).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn lab_of_another_version_is_reported_with_the_remedy() {
        let (connection, keeper) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let this = rustix::process::getpid();
        let name = LabName::new("older").unwrap();
        let lab = Lab {
            name: name.clone(),
            keeper_pid: this.as_raw_pid(),
            keeper: rustix::process::pidfd_open(this, PidfdFlags::empty()).unwrap(),
            connection: Mutex::new(connection),
            words: None,
            attached: None,
        };
        // The answer waits for the request.
        protocol::send(keeper.as_fd(), &Answer::OtherVersion, &[]).unwrap();
        let error = lab.status().unwrap_err();
        assert_eq!(error, LabError::OtherVersion { name });
        assert!(error.to_string().contains("netduel lab down --lab older"), "{error}");
    }
}
