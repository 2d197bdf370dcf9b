//! The number of an interface's queues (`ethtool -L`).
use std::io;

use netduel_sys::ethtool::{Channels, Ethtool};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::ethtool_socket;
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;
use super::steering::{QueueFiles, all_files};
use super::{rss, steering};

/// Numbers of queues (receive, transmit, other, combined), and what goes with a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct QueuesOriginal {
    interface: RecordedInterface,
    channels: [u32; 4],
    table: Vec<u32>,
    files: QueueFiles,
}

impl Original for QueuesOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        let Self { interface, channels, table, files } = self;
        interface.restore(|interface, _| restore(interface, *channels, table, files))
    }

    fn what(&self) -> String {
        format!("the change of the queues of {}", self.interface)
    }

    fn by_hand(&self) -> String {
        let Self { interface, channels, table, files } = self;
        let words = ["rx", "tx", "other", "combined"].into_iter().zip(channels);
        let words = words.filter(|(_, count)| **count > 0).map(|(word, count)| format!(" {word} {count}"));
        let mut steps = vec![format!("`ethtool -L {interface}{}`", words.collect::<String>())];
        if !table.is_empty() {
            steps.push(rss::by_hand(interface.name(), table));
        }
        steps.extend(steering::by_hand(interface.name(), files));
        steps.join(", ")
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct QueuesChange {
    interface: String,
    wanted: Channels,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    interface: &str,
    queues: u32,
) -> Result<(QueuesOriginal, QueuesChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let doing = || format!("set {queues} queues on {interface}");
    let mut socket = ethtool_socket()?;
    let now = socket
        .channels(interface)
        .map_err(|cause| TreatmentError::about_device(interface, doing(), cause))?;
    let wanted = wanted(now, queues).map_err(|allowed| TreatmentError::Range { doing: doing(), allowed })?;
    let undo = QueuesOriginal {
        interface: recorded,
        channels: counts(now),
        // Drivers deal flows anew when the number of queues changes, and a queue that goes takes its files along.
        table: socket.rss(interface).map(|rss| rss.indirection).unwrap_or_default(),
        files: all_files(interface),
    };
    Ok((undo, QueuesChange { interface: interface.to_owned(), wanted }))
}

/// The channels with another number of queues, or what the device allows.
fn wanted(now: Channels, queues: u32) -> Result<Channels, String> {
    let (wanted, most, kind) = if now.max_combined > 0 {
        // Queues beside the combined ones would be counted twice.
        let alone = |count: u32| if count == now.combined { 0 } else { count };
        let (rx, tx) = (alone(now.rx), alone(now.tx));
        (Channels { combined: queues, rx, tx, ..now }, now.max_combined, "combined")
    } else {
        (
            Channels { rx: queues, tx: queues, ..now },
            now.max_rx.min(now.max_tx),
            "receive and transmit queues each",
        )
    };
    if (1..=most).contains(&queues) { Ok(wanted) } else { Err(format!("1 to {most} {kind}")) }
}

impl Change for QueuesChange {
    fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, self.wanted)
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        read_back(&mut ethtool_socket()?, &self.interface, self.wanted)
    }

    fn restarts(&self) -> Option<&str> {
        Some(&self.interface)
    }
}

pub(super) fn counts(channels: Channels) -> [u32; 4] {
    [channels.rx, channels.tx, channels.other, channels.combined]
}

fn in_words([rx, tx, _, combined]: [u32; 4]) -> String {
    format!("{rx} receive, {tx} transmit and {combined} combined queues")
}

fn doing(interface: &str, wanted: Channels) -> String {
    format!("set {} on {interface}", in_words(counts(wanted)))
}

fn set(interface: &str, wanted: Channels) -> Result<(), TreatmentError> {
    let mut socket = ethtool_socket()?;
    let refused = |cause| TreatmentError::about_device(interface, doing(interface, wanted), cause);
    // Some drivers take the link down even for a change that is none.
    if counts(socket.channels(interface).map_err(refused)?) == counts(wanted) {
        return Ok(());
    }
    let taken = socket.set_channels(interface, &wanted);
    taken.map_err(|cause| {
        let table = socket.rss(interface).map(|rss| rss.indirection).unwrap_or_default();
        kept_by_table(interface, wanted, &table, &cause).unwrap_or_else(|| refused(cause))
    })?;
    read_back(&mut socket, interface, wanted)
}

/// The kernel refuses fewer receive queues than a table names that was set and not dealt by the driver (`ethtool_check_max_channel`).
fn kept_by_table(
    interface: &str,
    wanted: Channels,
    table: &[u32],
    cause: &io::Error,
) -> Option<TreatmentError> {
    let last = table.iter().max().copied()?;
    let is_refused = cause.raw_os_error() == Some(Errno::INVAL.raw_os_error());
    (is_refused && last >= wanted.rx.saturating_add(wanted.combined)).then(|| TreatmentError::Refused {
        doing: format!(
            "{}, because its RSS table leads flows to queue {last} and was set by hand (reset it: `ethtool -X {interface} default`)",
            doing(interface, wanted)
        ),
        cause: Errno::INVAL.into(),
    })
}

fn read_back(socket: &mut Ethtool, interface: &str, wanted: Channels) -> Result<(), TreatmentError> {
    let doing = doing(interface, wanted);
    let refused = |cause| TreatmentError::about_device(interface, doing.clone(), cause);
    let now = counts(socket.channels(interface).map_err(refused)?);
    if now == counts(wanted) {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing, answered: in_words(now) })
}

/// Sets the queues as they were, and then what had gone with them.
pub(super) fn restore(
    interface: &str,
    [rx, tx, other, combined]: [u32; 4],
    table: &[u32],
    files: &QueueFiles,
) -> Result<(), TreatmentError> {
    let steps: [&dyn Fn() -> Result<(), TreatmentError>; 3] = [
        &|| set(interface, Channels { rx, tx, other, combined, ..Channels::default() }),
        &|| if table.is_empty() { Ok(()) } else { rss::undo(interface, table) },
        &|| steering::restore(interface, files),
    ];
    // A device that does not take the queues back has most of what goes with them.
    steering::all(steps.iter().map(|step| step()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_come_back_by_hand_with_all_that_went_with_them() {
        let original = QueuesOriginal {
            interface: RecordedInterface::named("va", 1),
            channels: [0, 0, 0, 4],
            table: vec![0, 0, 1],
            files: vec![("rx-1/rps_cpus".to_owned(), "3".to_owned())],
        };
        assert_eq!(
            original.by_hand(),
            "`ethtool -L va combined 4`, `ethtool -X va weight 2 1`, `echo 3 > /sys/class/net/va/queues/rx-1/rps_cpus`"
        );
    }

    #[test]
    fn table_that_names_more_queues_is_given_as_the_reason() {
        let one = Channels { combined: 1, max_combined: 2, ..Channels::default() };
        let invalid = io::Error::from(Errno::INVAL);
        let refused = kept_by_table("pf0", one, &[0, 1, 0, 1], &invalid).unwrap().to_string();
        assert!(refused.contains("RSS table") && refused.contains("ethtool -X pf0 default"), "{refused}");
        assert!(kept_by_table("pf0", one, &[0, 0], &invalid).is_none());
        assert!(kept_by_table("pf0", one, &[0, 1], &Errno::PERM.into()).is_none());
    }

    #[test]
    fn the_kind_of_queues_that_a_device_has_is_set_and_its_limit_named() {
        let combined = Channels { combined: 2, max_combined: 2, ..Channels::default() };
        assert_eq!(wanted(combined, 1).unwrap().combined, 1);
        assert_eq!(wanted(combined, 4).unwrap_err(), "1 to 2 combined");
        let apart = Channels { rx: 4, tx: 4, max_rx: 4, max_tx: 8, ..Channels::default() };
        let set = wanted(apart, 3).unwrap();
        assert_eq!((set.rx, set.tx, set.combined), (3, 3, 0));
        assert_eq!(wanted(apart, 8).unwrap_err(), "1 to 4 receive and transmit queues each");
    }
}
