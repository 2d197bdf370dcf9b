//! The second stage: pid 1 of the lab's pid namespace. It holds the namespaces, answers requests one at a time and reaps orphans.
//! It ends on a request, when the lifeline or the guard is gone, and on SIGTERM, SIGINT or SIGHUP. The lab ends with it.
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netduel_model::failover::{LinkBytes, PathEventKind};
use netduel_sys::namespace::{self, Kind};
use netduel_sys::process::{self, SignalDescriptor};
use netduel_sys::{descriptor_pass, mount};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SocketFlags;
use rustix::process::Signal;

use super::{guard, report};
use crate::error::LabError;
use crate::protocol::{
    self, Answer, Ask, InterfaceStatus, KeeperStatus, Performed, PolicyStatus, Report, Request, Task, VERSION,
};
use crate::topology::Topology;

/// Maximum number of connections; further ones are closed at once.
const CLIENTS_MAX: usize = 64;

/// Descriptors and settings from the guard.
struct Inheritance {
    listener: OwnedFd,
    lifeline: Option<OwnedFd>,
    user_namespace: bool,
}

pub(super) fn run(task: &Task) -> Result<i32, LabError> {
    // Safe because the guard changed its credentials before it started this process.
    process::die_with_parent().map_err(LabError::local("bind the keeper's stages together"))?;
    let signals = SignalDescriptor::block_and_open(&[Signal::TERM, Signal::INT, Signal::HUP, Signal::CHILD])
        .map_err(LabError::local("open a descriptor for signals"))?;
    let Some(inheritance) = inherit()? else { return Ok(1) };
    namespace::unshare(&[Kind::Mount]).map_err(LabError::namespaces("unshare the mount namespace"))?;
    mount::make_private().map_err(LabError::namespaces("make the mount namespace private"))?;
    // A container may forbid both; the keeper works without them, and programs in the lab get their own.
    let _ = mount::proc();
    let topology = Topology::build(&task.spec)?;
    let _ = mount::sys();
    let mut init = Init { task, topology, inheritance, clients: Vec::new() };
    report(&Report::Ready);
    init.serve(&signals)?;
    Ok(0)
}

/// Receives the guard's message; `None` when the guard has ended.
fn inherit() -> Result<Option<Inheritance>, LabError> {
    let mut buffer = [0; 16];
    let (length, descriptors) = descriptor_pass::receive(std::io::stdin().as_fd(), &mut buffer)
        .map_err(LabError::local("receive the lab's name from the keeper's first stage"))?;
    let mut descriptors = descriptors.into_iter();
    let user_namespace = &buffer[..length] == guard::WITH_USER;
    Ok(descriptors.next().map(|listener| Inheritance {
        listener,
        lifeline: descriptors.next(),
        user_namespace,
    }))
}

/// Whether the lab continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

struct Init<'a> {
    task: &'a Task,
    topology: Topology,
    inheritance: Inheritance,
    clients: Vec<OwnedFd>,
}

impl Init<'_> {
    fn serve(&mut self, signals: &SignalDescriptor) -> Result<(), LabError> {
        let guard = std::io::stdin();
        loop {
            // From the last to the first, so that removing a client keeps the indices before it.
            for source in self.wait(signals.as_fd(), guard.as_fd())?.into_iter().rev() {
                let next = match source {
                    Source::Signals => drain(signals)?,
                    // The guard sends nothing more and the lifeline is never written to: readable means closed.
                    Source::Guard | Source::Lifeline => Next::End,
                    Source::Listener => {
                        self.accept();
                        Next::GoOn
                    }
                    Source::Client(index) => self.answer(index).unwrap_or_else(|| {
                        self.clients.remove(index);
                        Next::GoOn
                    }),
                };
                if next == Next::End {
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the next event and returns its source.
    fn wait(&self, signals: BorrowedFd<'_>, guard: BorrowedFd<'_>) -> Result<Vec<Source>, LabError> {
        let inheritance = &self.inheritance;
        let mut watched = vec![
            (Source::Signals, signals),
            (Source::Guard, guard),
            (Source::Listener, inheritance.listener.as_fd()),
        ];
        watched.extend(inheritance.lifeline.iter().map(|lifeline| (Source::Lifeline, lifeline.as_fd())));
        let clients = self.clients.iter().enumerate();
        watched.extend(clients.map(|(index, client)| (Source::Client(index), client.as_fd())));
        let mut polled: Vec<PollFd<'_>> = watched
            .iter()
            .map(|(_, descriptor)| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
            .collect();
        loop {
            match poll(&mut polled, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(LabError::local("wait for requests")(error)),
            }
        }
        let happened = watched.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(happened.map(|((source, _), _)| *source).collect())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(client) = rustix::net::accept_with(&self.inheritance.listener, flags) else { return };
        // In a user namespace only the lab's owner is mapped to a user id, which is ours. Root outside is not mapped; it can
        // become the owner or send a signal.
        let same_user = descriptor_pass::peer(client.as_fd())
            .is_ok_and(|peer| peer.uid == rustix::process::geteuid().as_raw());
        if same_user && self.clients.len() < CLIENTS_MAX {
            self.clients.push(client);
        }
    }

    /// Answers one request of a client; `None` when the client is gone or sends invalid data.
    fn answer(&mut self, index: usize) -> Option<Next> {
        let request = match protocol::receive::<Request>(self.clients[index].as_fd()) {
            Ok(Some((request, _))) => request,
            Ok(None) => return None,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Some(Next::GoOn),
            Err(_) => {
                let _ = protocol::send(self.clients[index].as_fd(), &Answer::OtherVersion, &[]);
                return None;
            }
        };
        let down = request.ask == Ask::Down;
        let mut own = Vec::new();
        let mut host = None;
        let answer = match request.ask {
            Ask::Down => Answer::Done,
            _ if request.version != VERSION => Answer::OtherVersion,
            Ask::Status => self
                .status()
                .map_or_else(|error| Answer::Failed { error }, |status| Answer::Status { status }),
            Ask::SetPath { path } => {
                self.topology.set_path(path).map_or_else(|error| Answer::Failed { error }, |()| Answer::Done)
            }
            Ask::Perform { kind, guest } => {
                self.perform(kind, &guest).map_or_else(|error| Answer::Failed { error }, Answer::Performed)
            }
            Ask::Bytes => {
                self.bytes().map_or_else(|error| Answer::Failed { error }, |bytes| Answer::Bytes { bytes })
            }
            Ask::Restore => {
                self.topology.restore().map_or_else(|error| Answer::Failed { error }, |()| Answer::Done)
            }
            Ask::Enter { host: name } => match (self.topology.host(&name), self.own_namespaces()) {
                (None, _) => Answer::Failed { error: LabError::NoSuchHost { host: name } },
                (_, Err(error)) => Answer::Failed { error },
                (Some(found), Ok(namespaces)) => {
                    (host, own) = (Some(found), namespaces);
                    Answer::Entrance { user: self.inheritance.user_namespace }
                }
            },
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = own.iter().map(AsFd::as_fd).collect();
        descriptors.extend(host.into_iter().flat_map(|host| [host.network.as_fd(), host.names.as_fd()]));
        let sent = protocol::send(self.clients[index].as_fd(), &answer, &descriptors);
        if down {
            return Some(Next::End);
        }
        sent.ok().map(|()| Next::GoOn)
    }

    fn perform(&mut self, kind: PathEventKind, guest: &str) -> Result<Performed, LabError> {
        let before = self.bytes()?;
        let done = self.topology.perform(kind, guest)?;
        Ok(Performed { began_ns: done.began_ns, ended_ns: done.ended_ns, before, after: self.bytes()? })
    }

    fn bytes(&mut self) -> Result<Vec<LinkBytes>, LabError> {
        let counters = self.topology.counters()?.into_iter();
        Ok(counters
            .map(|(guest, interface, counters)| {
                let bytes = counters.rx_bytes.saturating_add(counters.tx_bytes);
                LinkBytes { guest, interface, bytes }
            })
            .collect())
    }

    /// The user namespace, when the lab has its own, and the pid namespace.
    fn own_namespaces(&self) -> Result<Vec<OwnedFd>, LabError> {
        let kinds: &[Kind] =
            if self.inheritance.user_namespace { &[Kind::User, Kind::Pid] } else { &[Kind::Pid] };
        let open = |kind: &Kind| {
            namespace::open_own(*kind)
                .map_err(LabError::local(format!("open the lab's {} namespace", kind.file_name())))
        };
        kinds.iter().map(open).collect()
    }

    fn status(&mut self) -> Result<KeeperStatus, LabError> {
        let (path, observed) = (self.topology.path(), self.topology.observed()?);
        let interfaces = self
            .topology
            .counters()?
            .into_iter()
            .map(|(guest, interface, counters)| InterfaceStatus { guest, interface, counters });
        let interfaces = interfaces.collect();
        let policies = self
            .topology
            .rules()?
            .into_iter()
            .map(|(machine, ipv4_rules, ipv6_rules)| PolicyStatus { machine, ipv4_rules, ipv6_rules });
        Ok(KeeperStatus {
            spec: self.task.spec.clone(),
            path,
            observed,
            lifetime: self.task.lifetime,
            user_namespace: self.inheritance.user_namespace,
            interfaces,
            policies: policies.collect(),
        })
    }
}

/// The source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Guard,
    Lifeline,
    Listener,
    /// A client, by index.
    Client(usize),
}

/// Reads pending signals; reaps on SIGCHLD, because pid 1 is the parent of every orphan of the lab.
fn drain(signals: &SignalDescriptor) -> Result<Next, LabError> {
    let failed = || LabError::local::<std::io::Error>("read a signal");
    while let Some(signal) = signals.next().map_err(failed())? {
        if signal != Signal::CHILD.as_raw() {
            return Ok(Next::End);
        }
        while process::reap().map_err(LabError::local("reap an orphan"))?.is_some() {}
    }
    Ok(Next::GoOn)
}
