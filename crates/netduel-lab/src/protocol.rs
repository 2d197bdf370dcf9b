//! Protocol between a lab's keeper and its clients: one JSON document per packet over a Unix socket, and the keeper's report at
//! its start.
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use netduel_model::failover::{LinkBytes, PathEventKind};
use netduel_model::ids::LabName;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_sys::descriptor_pass;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::netlink::link::Counters;

/// Raised when a document changes, because a standing lab outlives the program that built it. A keeper answers other versions with
/// [`Answer::OtherVersion`], but always obeys `Down`.
/// - 1: the first.
/// - 2: events of a failover, counters of interfaces, the direct path, and the path that is observed.
pub(crate) const VERSION: u32 = 2;
/// Maximum length of a document, bytes: a status is below 2 KiB.
const DOCUMENT_MAX: usize = 64 * 1024;

/// Lifetime of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// As long as the process that created it, even if that is killed.
    Attached,
    /// Until it is removed.
    Standing,
}

/// The command-line argument of each stage of a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The lab's name.
    pub name: LabName,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// The lab's specification.
    pub spec: resolved::Lab,
    /// The program of the next stage.
    pub program: PathBuf,
    /// The arguments before the stage's own.
    pub words: Vec<String>,
}

/// The only line that a keeper writes to its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub(crate) enum Report {
    /// The lab is ready.
    Ready,
    /// The lab failed, and the keeper ends.
    Failed {
        /// The error.
        error: LabError,
    },
}

/// A request with the protocol version of its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Request {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// The request.
    pub ask: Ask,
}

/// Requests to a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// The state of the lab.
    Status,
    /// A change of path.
    SetPath {
        /// The new path.
        path: LabPath,
    },
    /// An event on the path of a guest.
    Perform {
        /// The event.
        kind: PathEventKind,
        /// `a` or `b`.
        guest: String,
    },
    /// The counters of the guests' interfaces.
    Bytes,
    /// Restores the last path that was set, undoing all events.
    Restore,
    /// The namespaces of a host.
    Enter {
        /// The host.
        host: String,
    },
    /// Removes the lab.
    Down,
}

/// Answers of a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The state.
    Status {
        /// The state known to the keeper.
        status: KeeperStatus,
    },
    /// The descriptors of the namespaces are attached: user if the lab has its own, pid, network, host name.
    Entrance {
        /// Whether there is a user namespace.
        user: bool,
    },
    /// The event was performed.
    Performed(Performed),
    /// The counters of the guests' interfaces.
    Bytes {
        /// Since the creation of each interface.
        bytes: Vec<LinkBytes>,
    },
    /// The request succeeded.
    Done,
    /// The request failed.
    Failed {
        /// The error.
        error: LabError,
    },
    /// The keeper does not support the request's version.
    OtherVersion,
}

/// A performed event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Performed {
    /// Before the first call to the kernel, nanoseconds of the monotonic clock, which all processes of a machine share.
    pub began_ns: u64,
    /// After the last one.
    pub ended_ns: u64,
    /// Counters of the guests' interfaces just before.
    pub before: Vec<LinkBytes>,
    /// Counters just after.
    pub after: Vec<LinkBytes>,
}

/// The state of a lab known to its keeper, which does not see its own pid in the outer pid namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeeperStatus {
    /// The specification.
    pub spec: resolved::Lab,
    /// The path that was set last.
    pub path: LabPath,
    /// The path in use.
    pub observed: Option<LabPath>,
    /// The lifetime.
    pub lifetime: Lifetime,
    /// Whether it has its own user namespace.
    pub user_namespace: bool,
    /// The guests' ends of the paths.
    pub interfaces: Vec<InterfaceStatus>,
    /// The machines' policies.
    pub policies: Vec<PolicyStatus>,
}

/// The state of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The specification.
    pub spec: resolved::Lab,
    /// The path that was set last.
    pub path: LabPath,
    /// The path in use according to the forwarding entries and VFs of both sides; absent when these do not match one path, for
    /// example because a VF is down or deleted.
    pub observed: Option<LabPath>,
    /// The keeper's process id. Ending it ends the lab.
    pub keeper_pid: i32,
    /// The lifetime.
    pub lifetime: Lifetime,
    /// Whether it has its own user namespace, that is, runs without root.
    pub user_namespace: bool,
    /// The guests' ends of the paths, without deleted interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// The policies of both machines, counted in the kernel.
    pub policies: Vec<PolicyStatus>,
}

/// A guest's end of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceStatus {
    /// `a` or `b`.
    pub guest: String,
    /// `syn0`, `vf0` or `dir0`.
    pub interface: String,
    /// Counters since the creation of the interface.
    pub counters: Counters,
}

/// The rules of a machine's software switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyStatus {
    /// `h1` or `h2`.
    pub machine: String,
    /// Number of rules that an IPv4 packet traverses.
    pub ipv4_rules: u32,
    /// Number of rules that an IPv6 packet traverses.
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

/// Receives a document with its descriptors; `None` when the other end is closed.
///
/// # Errors
/// Errors of the socket, and `InvalidData` for a document that does not match this version.
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

/// A document as a request and as an answer, written again; absent where it is none. Obeys nothing.
pub fn rewritten(document: &[u8]) -> [Option<Vec<u8>>; 2] {
    fn of<T: DeserializeOwned + Serialize>(document: &[u8]) -> Option<Vec<u8>> {
        let read: T = serde_json::from_slice(document).ok()?;
        serde_json::to_vec(&read).ok()
    }
    [of::<Request>(document), of::<Answer>(document)]
}

#[cfg(test)]
mod tests {
    use netduel_formats::{examples, fingerprint, uncovered, violations};
    use schemars::generate::SchemaSettings;
    use serde_json::Value;

    use super::*;

    /// The newest version that a release of netduel speaks. Versions up to this never change.
    const RELEASED: u32 = 0;
    /// The fingerprints of requests and answers in this version.
    const FINGERPRINTS: [&str; 2] = ["b6f6aaa6651d10d4", "c8ffbc4cc83bd647"];

    /// The fingerprint of a document, after every place of it was written and read.
    fn fingerprint_of<T: JsonSchema + Serialize + DeserializeOwned>() -> String {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schema = generator.into_root_schema_for::<T>().to_value();
        let reread = |example: Value| {
            let read: T = serde_json::from_value(example.clone())
                .unwrap_or_else(|error| panic!("{error} in {example}"));
            serde_json::to_value(&read).unwrap()
        };
        // Names of labs have rules that the schema does not contain.
        let hint =
            |place: &str, number: u64| place.ends_with("LabName").then(|| format!("lab-{number}").into());
        let documents: Vec<Value> = examples(&schema, &hint).into_iter().map(reread).collect();
        assert_eq!(uncovered(&schema, &documents), [""; 0]);
        for document in &documents {
            assert_eq!(violations(&schema, document), [""; 0], "{document}");
        }
        fingerprint(&schema)
    }

    #[test]
    fn changed_document_needs_a_new_version() {
        let found = [fingerprint_of::<Request>(), fingerprint_of::<Answer>()];
        let remedy = if VERSION > RELEASED {
            "this version is unreleased: set FINGERPRINTS"
        } else {
            "this version is released and must not change: raise VERSION"
        };
        assert_eq!(found, FINGERPRINTS, "the protocol of version {VERSION} changed; {remedy}");
    }
}
