//! What has to be done to undo a change. Agent and guard undo by the same code; the guard has the record before the
//! change is made.
//!
//! Undoing must stand being done twice: whoever dies between undoing and saying so leaves it to the other.
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice::index_to_name, socket};
use serde::{Deserialize, Serialize};

use super::command;
use super::error::TreatmentError;
use super::offload::{self, feature_words};
use super::{mtu, sysctl};

/// The original state of what a treatment changes. Spoken only between an agent and the guard that it started from its
/// own program, so there is no other version to understand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Undo {
    /// Features of an interface.
    Offload {
        interface: String,
        index: u32,
        /// Features that are changed, as they had been asked for.
        requested: Vec<(String, bool)>,
        /// All that were in force: one feature may take others along.
        active: Vec<String>,
    },
    /// An MTU, bytes.
    Mtu { interface: String, index: u32, mtu: u32 },
    /// A sysctl.
    Sysctl { name: String, value: String },
    /// A command.
    Command {
        command: Vec<String>,
        undo: Vec<String>,
        /// The mark of both commands' processes.
        mark: String,
    },
}

impl Undo {
    /// Undoes, and reads back whether it took.
    pub(super) fn undo(&self) -> Result<(), TreatmentError> {
        self.attempt().map_err(|failed| TreatmentError::NotUndone {
            what: self.what(),
            cause: format!("failed to {failed}"),
            by_hand: self.by_hand(),
        })
    }

    fn attempt(&self) -> Result<(), TreatmentError> {
        match self {
            Self::Offload { index, requested, active, .. } => match present(*index)? {
                Some(interface) => offload::restore(&interface, requested, active),
                None => Ok(()),
            },
            Self::Mtu { index, mtu, .. } => match present(*index)? {
                Some(interface) => mtu::set(&interface, *mtu),
                None => Ok(()),
            },
            Self::Sysctl { name, value } => sysctl::set(name, value),
            Self::Command { undo, mark, .. } => command::run(undo, mark),
        }
    }

    /// The mark of processes that may still be at work on this change.
    pub(super) fn mark(&self) -> Option<&str> {
        match self {
            Self::Command { mark, .. } => Some(mark),
            _ => None,
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Offload { interface, requested, .. } => {
                let names: Vec<&str> = requested.iter().map(|(name, _)| name.as_str()).collect();
                format!("the change of {} of {interface}", names.join(", "))
            }
            Self::Mtu { interface, .. } => format!("the change of the MTU of {interface}"),
            Self::Sysctl { name, .. } => format!("the change of sysctl `{name}`"),
            Self::Command { command, .. } => format!("`{}`", command.join(" ")),
        }
    }

    fn by_hand(&self) -> String {
        match self {
            Self::Offload { interface, requested, .. } => {
                let words: Vec<String> =
                    requested.iter().map(|(name, on)| format!("{name} {}", feature_words(*on))).collect();
                format!("`ethtool -K {interface} {}`", words.join(" "))
            }
            Self::Mtu { interface, mtu, .. } => format!("`ip link set dev {interface} mtu {mtu}`"),
            Self::Sysctl { name, value } => format!("`sysctl -w '{name}={value}'`"),
            Self::Command { undo, .. } => format!("`{}`", undo.join(" ")),
        }
    }
}

/// The present name of the device that had this index. A device that is gone took its settings along, and a namesake that
/// came after it was never changed.
fn present(index: u32) -> Result<Option<String>, TreatmentError> {
    let refused = |cause: Errno| TreatmentError::Refused {
        doing: format!("find the interface of index {index}"),
        cause: cause.into(),
    };
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(refused)?;
    match index_to_name(&socket, index) {
        Ok(name) => Ok(Some(name)),
        Err(Errno::NODEV | Errno::NXIO) => Ok(None),
        Err(cause) => Err(refused(cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_gone_needs_no_undoing() {
        let gone = Undo::Mtu { interface: "lo".to_owned(), index: u32::MAX >> 1, mtu: 1 };
        assert!(gone.undo().is_ok());
    }

    #[test]
    fn what_could_not_be_undone_says_how_to_do_it_by_hand() {
        let undo = Undo::Sysctl { name: "net.no.such".to_owned(), value: "1\t2".to_owned() };
        let failed = undo.undo().unwrap_err();
        assert!(failed.is_left_behind());
        let text = failed.to_string();
        assert!(text.contains("`net.no.such`") && text.contains("sysctl -w 'net.no.such=1\t2'"), "{text}");
    }
}
