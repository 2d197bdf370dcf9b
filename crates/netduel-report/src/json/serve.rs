//! The lines of `netduel serve --json`.
use std::net::SocketAddr;

use netduel_model::workload;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, Origin};
use super::parts::Workload;

/// A line of `netduel serve --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServerEvent {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What happened.
    #[serde(flatten)]
    pub event: ServerEventKind,
}

impl Document for ServerEvent {
    const NAME: &'static str = "netduel.server_event";
    // 1: without a version.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

/// What happened on a server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ServerEventKind {
    /// The server accepts tests.
    Ready {
        /// Address and port that it listens on.
        address: SocketAddr,
        /// How to pair with it.
        pairings: Vec<ServerPairing>,
        /// Why no other host can use the pairings, or why there are none, and what to do; null otherwise, and where --bind or --advertise names the address.
        warning: Option<String>,
    },
    /// A test is over.
    Test {
        /// Address and port of the client.
        client: SocketAddr,
        /// The workload with every default written out.
        workload: Box<Workload>,
        /// Payload that the server received; null for none.
        received: Option<Moved>,
        /// Payload that the server sent; null for none.
        sent: Option<Moved>,
        /// Tests of other clients at the same time.
        concurrent_tests: u32,
    },
    /// A test ended without a result.
    Failed {
        /// Address and port of the client.
        client: SocketAddr,
        /// The workload with every default written out.
        workload: Box<Workload>,
        /// Why.
        reason: String,
    },
    /// A client was rejected, or one of its requests.
    Refused {
        /// Address and port of the client.
        client: SocketAddr,
        /// Why.
        reason: String,
    },
    /// Events that have no line of their own: too many within a minute, or the reader of the lines was too slow.
    NotPrinted {
        /// Tests that are over.
        tests: u64,
        /// Tests that ended without a result.
        failed: u64,
        /// Clients and requests that were rejected.
        refused: u64,
    },
}

/// How to pair with a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerPairing {
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The pairing string. It is a secret.
    pub string: String,
}

/// Payload that was moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Moved {
    /// Payload.
    pub bytes: u64,
    /// Mean rate from the first to the last byte; null when they are not apart.
    pub rate_bps: Option<f64>,
}

impl ServerEvent {
    /// An event.
    pub fn of(event: ServerEventKind, origin: &Origin) -> Self {
        Self { envelope: Self::envelope(origin), event }
    }
}

impl ServerEventKind {
    /// A finished test.
    pub fn test(
        client: SocketAddr,
        workload: &workload::Workload,
        [received, sent]: [Option<Moved>; 2],
        concurrent_tests: u32,
    ) -> Self {
        Self::Test { client, workload: Box::new(Workload::of(workload)), received, sent, concurrent_tests }
    }

    /// A test without a result.
    pub fn failed(client: SocketAddr, workload: &workload::Workload, reason: &str) -> Self {
        Self::Failed { client, workload: Box::new(Workload::of(workload)), reason: reason.to_owned() }
    }

    /// A rejected client or request.
    pub fn refused(client: SocketAddr, reason: &str) -> Self {
        Self::Refused { client, reason: reason.to_owned() }
    }
}
