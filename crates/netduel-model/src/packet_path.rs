//! How the packets of a `pps` workload are made and taken: by sockets, past the network stack, or in the kernel itself.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::workload::Role;

/// Ethernet's check sequence, bytes: part of a frame's size as RFC 2544 counts it, never seen by a program.
pub const CHECK_SEQUENCE: u64 = 4;

/// Who makes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketEngine {
    /// UDP sockets, a batch in one system call: what a program has without privilege.
    #[default]
    Socket,
    /// AF_XDP: frames from the program's memory to the driver, past the network stack.
    Xdp,
    /// The kernel makes the frames itself, in the driver's place (BPF test run with live frames): the ceiling of the path.
    Kernel,
}

/// Who takes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketReceiver {
    /// UDP sockets.
    #[default]
    Socket,
    /// AF_XDP: a program gets each frame past the network stack.
    Xdp,
    /// An XDP program counts each packet in the driver and drops it.
    Count,
}

impl PacketEngine {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Xdp => "xdp",
            Self::Kernel => "kernel",
        }
    }

    /// Who takes what this engine makes, when the plan does not say.
    pub fn receiver(self) -> PacketReceiver {
        match self {
            Self::Socket => PacketReceiver::Socket,
            Self::Xdp => PacketReceiver::Xdp,
            Self::Kernel => PacketReceiver::Count,
        }
    }
}

impl PacketReceiver {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Xdp => "xdp",
            Self::Count => "count",
        }
    }
}

/// The way of a workload's packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PacketPath {
    /// Who makes them.
    pub engine: PacketEngine,
    /// Who takes them.
    pub receiver: PacketReceiver,
    /// Size of a frame with its check sequence, as RFC 2544 counts it.
    pub frame: Bytes,
    /// Interface that the client uses past the network stack; absent: the one with the address of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_interface: Option<String>,
    /// The server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_interface: Option<String>,
}

impl PacketPath {
    /// Whether the end of the given role works past the network stack: the client sends.
    pub fn is_raw(&self, role: Role) -> bool {
        match role {
            Role::Client => self.engine != PacketEngine::Socket,
            Role::Server => self.receiver != PacketReceiver::Socket,
        }
    }

    /// The interface that the plan names for an end.
    pub fn interface(&self, role: Role) -> Option<&str> {
        match role {
            Role::Client => self.client_interface.as_deref(),
            Role::Server => self.server_interface.as_deref(),
        }
    }
}
