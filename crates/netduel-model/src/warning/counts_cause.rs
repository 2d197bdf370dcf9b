//! Why figures of programs and of interfaces do not add up, and what to do about it. Words and no arithmetic.
use serde::{Deserialize, Serialize};

/// Why an interface's count differs from what the programs counted, as far as the figures tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountsCause {
    /// The interface carried more than the trial's traffic.
    OtherTraffic,
    /// What the interface received was dropped on its way to the program's socket.
    DroppedBehind,
    /// The interface's counter leaves out, or is late.
    NotCounted,
}

impl CountsCause {
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::OtherTraffic => {
                "other traffic used the interface: stop it, or the figures are those of a shared path"
            }
            Self::DroppedBehind => {
                "it arrived at the host and was dropped before the program's socket: look for a filter or firewall there, and \
                 at the drops in softnet_stat; that part of the loss is not the path's"
            }
            Self::NotCounted => {
                "the interface's counter leaves out what passes it by (XDP, offloads), or the bytes took another way"
            }
        }
    }
}
