//! Causes of a disagreement between the counts of programs and of interfaces, with their remedies. No arithmetic.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the count of an interface differs from those of the programs, as far as the figures show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountsCause {
    /// The interface carried more than the trial's traffic.
    OtherTraffic,
    /// Packets were dropped between the interface and the program's socket.
    DroppedAfterInterface,
    /// The interface does not count all packets, or counts them late.
    NotCounted,
}

impl CountsCause {
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::OtherTraffic => {
                "other traffic used the interface: stop it, or read the figures as those of a shared path"
            }
            Self::DroppedAfterInterface => {
                "packets arrived at the host and were dropped before the program's socket: check its firewall and the drops in \
                 softnet_stat; this part of the loss is not on the path"
            }
            Self::NotCounted => {
                "the interface does not count packets that bypass it (XDP, offloads), or the bytes took another path"
            }
        }
    }
}
