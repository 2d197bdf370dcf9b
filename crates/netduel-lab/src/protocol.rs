//! What a lab's keeper and its users say to each other: one JSON document a packet over a Unix socket, and what a keeper
//! reports while it starts. Version 1.
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use netduel_model::failover::{LinkBytes, PathEventKind};
use netduel_model::ids::LabName;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_sys::descriptor_pass;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::netlink::link::Counters;

/// Raised when a document changes. A keeper answers other versions with [`Answer::OtherVersion`] and `Down` always.
pub(crate) const VERSION: u32 = 1;
/// Longest document, bytes: a status is below 2 KiB.
const DOCUMENT_MAX: usize = 64 * 1024;

/// How long a lab lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// As long as the process that brought it up, even if that is killed.
    Attached,
    /// Until it is taken down.
    Standing,
}

/// What is passed to each stage of a keeper on its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The lab's name.
    pub name: LabName,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// What is built.
    pub spec: resolved::Lab,
    /// The program of the next stage.
    pub program: PathBuf,
    /// The words before the stage's own.
    pub words: Vec<String>,
}

/// The one line that a keeper writes to its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub(crate) enum Report {
    /// The lab stands and answers.
    Ready,
    /// It does not, and the keeper ends.
    Failed {
        /// Why.
        error: LabError,
    },
}

/// A request with the version that its sender speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// The request.
    pub ask: Ask,
}

/// Requests to a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// The state of the lab.
    Status,
    /// A change of path.
    SetPath {
        /// To which.
        path: LabPath,
    },
    /// Something done to the path of a guest.
    Perform {
        /// What.
        kind: PathEventKind,
        /// `a` or `b`.
        guest: String,
    },
    /// What the guests' interfaces have carried.
    Bytes,
    /// The path as it was set last, whatever was done to it.
    Restore,
    /// The namespaces of a host.
    Enter {
        /// Which.
        host: String,
    },
    /// The end.
    Down,
}

/// What a keeper answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The state.
    Status {
        /// As the keeper knows it.
        status: KeeperStatus,
    },
    /// The namespaces travel beside this answer: user when there is one of the lab's own, pid, network, host name.
    Entrance {
        /// Whether there is a user namespace.
        user: bool,
    },
    /// It was done to the path.
    Performed(Performed),
    /// What the guests' interfaces have carried.
    Bytes {
        /// Since each was made.
        bytes: Vec<LinkBytes>,
    },
    /// It is done.
    Done,
    /// It could not be done.
    Failed {
        /// Why.
        error: LabError,
    },
    /// The keeper does not speak the request's version.
    OtherVersion,
}

/// Something that was done to the path of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Performed {
    /// Before the first call to the kernel, nanoseconds of the monotonic clock, which all processes of a machine share.
    pub began_ns: u64,
    /// After the last one.
    pub ended_ns: u64,
    /// What the guests' interfaces had carried just before.
    pub before: Vec<LinkBytes>,
    /// And just after.
    pub after: Vec<LinkBytes>,
}

/// The state of a lab as its keeper knows it; the keeper does not see its own pid in the outer pid namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeeperStatus {
    /// What was built.
    pub spec: resolved::Lab,
    /// The path that was set last.
    pub path: LabPath,
    /// The path in use.
    pub observed: Option<LabPath>,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// Whether it stands in a user namespace of its own.
    pub user_namespace: bool,
    /// The guests' ends of the paths.
    pub interfaces: Vec<InterfaceStatus>,
    /// The machines' policies.
    pub policies: Vec<PolicyStatus>,
}

/// The state of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// What was built.
    pub spec: resolved::Lab,
    /// The path that was set last.
    pub path: LabPath,
    /// The path that the forwarding entries and VFs of both sides say is in use now; absent when they are not those of one
    /// path, for example because a VF is down or was deleted.
    pub observed: Option<LabPath>,
    /// The keeper's process id. Ending it ends the lab.
    pub keeper_pid: i32,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// Whether it stands in a user namespace of its own, that is, without root.
    pub user_namespace: bool,
    /// The guests' ends of the paths. An interface that is gone is left out.
    pub interfaces: Vec<InterfaceStatus>,
    /// The machines' policies, counted in the kernel.
    pub policies: Vec<PolicyStatus>,
}

/// A guest's end of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// `a` or `b`.
    pub guest: String,
    /// `syn0`, `vf0` or `dir0`.
    pub interface: String,
    /// Since the interface was made.
    pub counters: Counters,
}

/// The rules of a machine's software switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// `h1` or `h2`.
    pub machine: String,
    /// Rules that an IPv4 packet walks.
    pub ipv4_rules: u32,
    /// Rules that an IPv6 packet walks.
    pub ipv6_rules: u32,
}

/// Sends a document with descriptors.
pub(crate) fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    document: &T,
    descriptors: &[BorrowedFd<'_>],
) -> std::io::Result<()> {
    descriptor_pass::send(socket, &serde_json::to_vec(document)?, descriptors)
}

/// Receives a document with its descriptors; none when the other end is closed.
///
/// # Errors
/// Those of the socket, and `InvalidData` when the document is not of this version.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> std::io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; DOCUMENT_MAX];
    let (length, descriptors) = descriptor_pass::receive(socket, &mut buffer)?;
    if length == 0 {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&buffer[..length])?, descriptors)))
}
