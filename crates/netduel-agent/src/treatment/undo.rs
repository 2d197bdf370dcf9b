//! What has to be done to undo a change. Agent and guard undo by the same code; the guard has the record before the
//! change is made.
//!
//! Undoing must stand being done twice: whoever dies between undoing and saying so leaves it to the other.
use std::path::PathBuf;

use netduel_model::plan::tuning::{COALESCE_PARAMETERS, Ring};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice::index_to_name, socket};
use serde::{Deserialize, Serialize};

use super::command;
use super::error::TreatmentError;
use super::irq::IrqCores;
use super::loan::Lent;
use super::offload::{self, feature_words};
use super::pci::Returning;
use super::steering::QueueFiles;
use super::{coalesce, irq, mtu, pci, queues, ring, rss, steering, sysctl, vf};

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
    /// Whether a link is up.
    Link { interface: String, index: u32, up: bool, carrier: bool },
    /// A PCI function that is on the bus.
    Pci { sys: PathBuf, slot: String, expected: Vec<Returning> },
    /// Numbers of queues (receive, transmit, other, combined), and what goes with a queue.
    Queues { interface: String, index: u32, channels: [u32; 4], table: Vec<u32>, files: QueueFiles },
    /// An RSS table.
    Rss { interface: String, index: u32, table: Vec<u32> },
    /// The size of a ring.
    Ring { interface: String, index: u32, ring: Ring, descriptors: u32 },
    /// Interrupt coalescing: all parameters in the kernel's order, and the one that is changed.
    Coalesce { interface: String, index: u32, parameter: String, original: Vec<u32> },
    /// Files of an interface's queues.
    QueueFiles { interface: String, index: u32, files: QueueFiles },
    /// The cores of interrupts.
    IrqAffinity { interface: String, interrupts: Vec<IrqCores> },
    /// What another program was lent.
    Lent(Lent),
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
            Self::Sysctl { name, value } => sysctl::set(name, value),
            Self::Command { undo, mark, .. } => command::run(undo, mark),
            Self::Pci { sys, slot, expected } => pci::restore(sys, slot, expected),
            Self::IrqAffinity { interrupts, .. } => irq::restore(interrupts),
            Self::Lent(lent) => match lent.index().map(present).transpose()? {
                Some(None) => Ok(()),
                interface => lent.give_back(&interface.flatten().unwrap_or_default()),
            },
            Self::Offload { index, .. }
            | Self::Mtu { index, .. }
            | Self::Link { index, .. }
            | Self::Queues { index, .. }
            | Self::Rss { index, .. }
            | Self::Ring { index, .. }
            | Self::Coalesce { index, .. }
            | Self::QueueFiles { index, .. } => match present(*index)? {
                Some(interface) => self.restore(&interface),
                None => Ok(()),
            },
        }
    }

    /// Undoes the change of a device by its present name.
    fn restore(&self, interface: &str) -> Result<(), TreatmentError> {
        match self {
            Self::Offload { requested, active, .. } => offload::restore(interface, requested, active),
            Self::Mtu { mtu, .. } => mtu::set(interface, *mtu),
            Self::Link { index, up, carrier, .. } => vf::restore(interface, *index, *up, *carrier),
            Self::Queues { channels, table, files, .. } => {
                queues::restore(interface, *channels, table, files)
            }
            Self::Rss { table, .. } => rss::restore(interface, table),
            Self::Ring { ring, descriptors, .. } => ring::set(interface, *ring, *descriptors),
            Self::Coalesce { original, .. } => coalesce::restore(interface, original),
            Self::QueueFiles { files, .. } => steering::restore(interface, files),
            Self::Sysctl { .. }
            | Self::Command { .. }
            | Self::Pci { .. }
            | Self::IrqAffinity { .. }
            | Self::Lent(_) => Ok(()),
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
            Self::Lent(lent) => lent.what(),
            Self::Link { interface, .. } => format!("the change of the link of {interface}"),
            Self::Pci { slot, .. } => format!("the removal of PCI function {slot}"),
            Self::Queues { interface, .. } => format!("the change of the queues of {interface}"),
            Self::Rss { interface, .. } => format!("the change of the RSS table of {interface}"),
            Self::Ring { interface, ring, .. } => {
                format!("the change of the {} ring of {interface}", ring.word())
            }
            Self::Coalesce { interface, parameter, .. } => {
                format!("the change of {parameter} of {interface}")
            }
            Self::QueueFiles { interface, .. } => format!("the change of packet steering of {interface}"),
            Self::IrqAffinity { interface, .. } => {
                format!("the change of the cores of the interrupts of {interface}")
            }
            Self::Command { command, .. } => format!("`{}`", command.join(" ")),
        }
    }

    fn by_ethtool(&self) -> String {
        match self {
            Self::Queues { interface, channels, .. } => {
                let words = ["rx", "tx", "other", "combined"].into_iter().zip(channels);
                let words =
                    words.filter(|(_, count)| **count > 0).map(|(word, count)| format!(" {word} {count}"));
                format!("`ethtool -L {interface}{}`", words.collect::<String>())
            }
            Self::Coalesce { interface, parameter, original, .. } => {
                let place = COALESCE_PARAMETERS.iter().position(|name| name == parameter);
                let value = place.and_then(|place| original.get(place)).copied().unwrap_or_default();
                let value = match (parameter.starts_with("adaptive-"), value) {
                    (true, 0) => "off".to_owned(),
                    (true, _) => "on".to_owned(),
                    (false, value) => value.to_string(),
                };
                format!("`ethtool -C {interface} {parameter} {value}`")
            }
            Self::Rss { interface, table, .. } => {
                format!("`ethtool -X {interface} weight {}`", weights(table))
            }
            _ => String::new(),
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
            Self::Lent(lent) => lent.by_hand(),
            Self::Command { undo, .. } => format!("`{}`", undo.join(" ")),
            Self::Link { interface, up, .. } => {
                format!("`ip link set dev {interface} {}`", if *up { "up" } else { "down" })
            }
            Self::Pci { .. } => "`echo 1 > /sys/bus/pci/rescan`".to_owned(),
            Self::Ring { interface, ring, descriptors, .. } => {
                format!("`ethtool -G {interface} {} {descriptors}`", ring.word())
            }
            Self::Rss { .. } | Self::Coalesce { .. } => self.by_ethtool(),
            Self::Queues { interface, table, files, .. } => {
                let mut steps = vec![self.by_ethtool()];
                if !table.is_empty() {
                    steps.push(format!("`ethtool -X {interface} weight {}`", weights(table)));
                }
                steps.extend(echoes(interface, files));
                steps.join(", ")
            }
            Self::QueueFiles { interface, files, .. } => echoes(interface, files).join(", "),
            Self::IrqAffinity { interrupts, .. } => {
                let echo =
                    |IrqCores { file, list, .. }: &IrqCores| format!("`echo {list} > {}`", file.display());
                interrupts.iter().map(echo).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The commands that write the files of an interface's queues.
fn echoes(interface: &str, files: &QueueFiles) -> Vec<String> {
    let echo = |(path, value): &(String, String)| {
        format!("`echo {value} > /sys/class/net/{interface}/queues/{path}`")
    };
    files.iter().map(echo).collect()
}

/// How many slots of a table each queue had, as `ethtool -X` takes it; the order of the slots is lost.
fn weights(table: &[u32]) -> String {
    let queues = table.iter().max().map_or(0, |last| last + 1);
    let slots = |queue| table.iter().filter(|slot| **slot == queue).count().to_string();
    (0..queues).map(slots).collect::<Vec<_>>().join(" ")
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
    fn queues_come_back_by_hand_with_all_that_went_with_them() {
        let undo = Undo::Queues {
            interface: "va".to_owned(),
            index: 1,
            channels: [0, 0, 0, 4],
            table: vec![0, 0, 1],
            files: vec![("rx-1/rps_cpus".to_owned(), "3".to_owned())],
        };
        assert_eq!(
            undo.by_hand(),
            "`ethtool -L va combined 4`, `ethtool -X va weight 2 1`, `echo 3 > /sys/class/net/va/queues/rx-1/rps_cpus`"
        );
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
