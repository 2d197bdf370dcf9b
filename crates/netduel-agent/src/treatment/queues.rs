//! The number of an interface's queues (`ethtool -L`).
use netduel_sys::ethtool::Channels;

use super::error::TreatmentError;
use super::offload::{door, index_of};
use super::steering::{QueueFiles, all_files};
use super::undo::Undo;
use super::{rss, steering};

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct QueuesChange {
    interface: String,
    wanted: Channels,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(interface: &str, queues: u32) -> Result<(Undo, QueuesChange), TreatmentError> {
    let index = index_of(interface)?;
    let doing = || format!("set {queues} queues on {interface}");
    let mut door = door()?;
    let now =
        door.channels(interface).map_err(|cause| TreatmentError::about_device(interface, doing(), cause))?;
    let wanted = wanted(now, queues).map_err(|allowed| TreatmentError::Range { doing: doing(), allowed })?;
    let undo = Undo::Queues {
        interface: interface.to_owned(),
        index,
        channels: [now.rx, now.tx, now.other, now.combined],
        // Drivers deal flows anew when the number of queues changes, and a queue that goes takes its files along.
        table: door.rss(interface).map(|rss| rss.indirection).unwrap_or_default(),
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

impl QueuesChange {
    /// Makes the change and reads back whether it took.
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, self.wanted)
    }
}

fn counts(channels: Channels) -> [u32; 4] {
    [channels.rx, channels.tx, channels.other, channels.combined]
}

fn in_words([rx, tx, _, combined]: [u32; 4]) -> String {
    format!("{rx} receive, {tx} transmit and {combined} combined queues")
}

fn set(interface: &str, wanted: Channels) -> Result<(), TreatmentError> {
    let doing = || format!("set {} on {interface}", in_words(counts(wanted)));
    let mut door = door()?;
    let refused = |cause| TreatmentError::about_device(interface, doing(), cause);
    // Some drivers take the link down even for a change that is none.
    if counts(door.channels(interface).map_err(refused)?) == counts(wanted) {
        return Ok(());
    }
    door.set_channels(interface, &wanted).map_err(refused)?;
    let now = counts(door.channels(interface).map_err(refused)?);
    if now == counts(wanted) {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(), answered: in_words(now) })
}

/// Sets the queues as they were, and then what had gone with them.
pub(super) fn restore(
    interface: &str,
    [rx, tx, other, combined]: [u32; 4],
    table: &[u32],
    files: &QueueFiles,
) -> Result<(), TreatmentError> {
    set(interface, Channels { rx, tx, other, combined, ..Channels::default() })?;
    let dealt = if table.is_empty() { Ok(()) } else { rss::restore(interface, table) };
    // A table that does not come back keeps the files from nothing.
    dealt.and(steering::restore(interface, files))
}

#[cfg(test)]
mod tests {
    use super::*;

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
