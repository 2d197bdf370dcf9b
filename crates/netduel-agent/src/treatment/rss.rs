//! The table that leads flows to receive queues (`ethtool -X`).
use netduel_model::plan::tuning::RssSpread;
use netduel_sys::ethtool::Ethtool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::ethtool_socket;
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;

/// The RSS table of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct RssOriginal {
    interface: RecordedInterface,
    table: Vec<u32>,
}

impl Original for RssOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, _| undo(interface, &self.table))
    }

    fn what(&self) -> String {
        format!("the change of the RSS table of {}", self.interface)
    }

    fn by_hand(&self) -> String {
        by_hand(self.interface.name(), &self.table)
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct RssChange {
    interface: String,
    table: Vec<u32>,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    interface: &str,
    spread: &RssSpread,
) -> Result<(RssOriginal, RssChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let doing = || format!("set the RSS table of {interface} to {spread}");
    let about = |cause| TreatmentError::about_device(interface, doing(), cause);
    let mut socket = ethtool_socket()?;
    let original = socket.rss(interface).map_err(about)?.indirection;
    if original.is_empty() {
        let why = "its driver shows no table".to_owned();
        return Err(TreatmentError::unsupported(interface, doing(), why));
    }
    let queues = socket.receive_rings(interface).map_err(about)?;
    let table = table(spread, original.len(), queues)
        .map_err(|allowed| TreatmentError::Range { doing: doing(), allowed })?;
    let undo = RssOriginal { interface: recorded, table: original };
    Ok((undo, RssChange { interface: interface.to_owned(), table }))
}

/// A table of `slots` for a device with `queues`, or what is allowed.
fn table(spread: &RssSpread, slots: usize, queues: u64) -> Result<Vec<u32>, String> {
    let last = |count: usize| {
        let fits = count as u64 <= queues && count <= slots;
        if fits { Ok(()) } else { Err(format!("1 to {} queues", queues.min(slots as u64))) }
    };
    // Some drivers answer so while the link is down.
    if queues == 0 {
        return Err("none, since the driver names no receive queue (is the link up?)".to_owned());
    }
    let is_over_none = match spread {
        RssSpread::Default => false,
        RssSpread::Equal { queues } => *queues == 0,
        RssSpread::Weights { weights } => weights.iter().all(|weight| *weight == 0),
    };
    if is_over_none {
        return Err(format!("1 to {} queues, one of which has a weight above 0", queues.min(slots as u64)));
    }
    match spread {
        RssSpread::Default if slots == 0 => Ok(Vec::new()),
        RssSpread::Default => {
            table(&RssSpread::Equal { queues: queues.min(slots as u64) as u32 }, slots, queues)
        }
        RssSpread::Equal { queues: wanted } => {
            last(*wanted as usize)?;
            Ok((0..slots as u32).map(|slot| slot % wanted).collect())
        }
        RssSpread::Weights { weights } => {
            last(weights.len())?;
            let sum: u64 = weights.iter().copied().map(u64::from).sum();
            // As ethtool does: each queue has the slots up to its share of the sum.
            let mut table = Vec::with_capacity(slots);
            let mut reached = 0;
            for (queue, weight) in weights.iter().enumerate() {
                reached += u64::from(*weight);
                let end = (slots as u128 * u128::from(reached) / u128::from(sum)) as usize;
                table.resize(end.max(table.len()), queue as u32);
            }
            Ok(table)
        }
    }
}

impl Change for RssChange {
    fn make(&self) -> Result<(), TreatmentError> {
        let Self { interface, table } = self;
        set(&mut Device { interface, socket: ethtool_socket()? }, interface, table)
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        let Self { interface, table } = self;
        let about = |cause| TreatmentError::about_device(interface, doing(interface), cause);
        is_taken(interface, &ethtool_socket()?.rss(interface).map_err(about)?.indirection, table)
    }

    fn restarts(&self) -> Option<&str> {
        Some(&self.interface)
    }
}

fn doing(interface: &str) -> String {
    format!("set the RSS table of {interface}")
}

/// The table of a device.
trait Table {
    fn read(&mut self) -> Result<Vec<u32>, TreatmentError>;
    /// Number of receive queues.
    fn queues(&mut self) -> Result<u64, TreatmentError>;
    /// Sets it; an empty one stands for the driver's own, which the driver adapts when its queues change.
    fn write(&mut self, table: &[u32]) -> Result<(), TreatmentError>;
}

/// The table of an interface by ethtool.
struct Device<'a> {
    interface: &'a str,
    socket: Ethtool,
}

impl Device<'_> {
    fn about(&self, cause: std::io::Error) -> TreatmentError {
        TreatmentError::about_device(self.interface, doing(self.interface), cause)
    }
}

impl Table for Device<'_> {
    fn read(&mut self) -> Result<Vec<u32>, TreatmentError> {
        let read = self.socket.rss(self.interface);
        read.map(|rss| rss.indirection).map_err(|cause| self.about(cause))
    }

    fn queues(&mut self) -> Result<u64, TreatmentError> {
        self.socket.receive_rings(self.interface).map_err(|cause| self.about(cause))
    }

    fn write(&mut self, table: &[u32]) -> Result<(), TreatmentError> {
        self.socket.set_rss_indirection(self.interface, table).map_err(|cause| self.about(cause))
    }
}

/// Sets the table back as it was.
pub(super) fn undo(interface: &str, original: &[u32]) -> Result<(), TreatmentError> {
    set_back(&mut Device { interface, socket: ethtool_socket()? }, interface, original)
}

/// Requests the driver's own table first, and sets the earlier one only when that leads other shares of the flows to a queue. The kernel
/// keeps a table that was set as configured, and then refuses fewer queues than it names.
fn set_back(device: &mut dyn Table, interface: &str, original: &[u32]) -> Result<(), TreatmentError> {
    if device.read()? == original {
        return Ok(());
    }
    device.write(&[])?;
    let now = device.read()?;
    // The driver may deal the slots to the queues in another order now than at its start, as igb does.
    if now.len() == original.len() && shares(&now) == shares(original) {
        return Ok(());
    }
    set(device, interface, original)
}

/// Sets the table where it differs, and reads it back. The driver's default table is requested as the default, so that
/// the driver adapts it when its queues change.
fn set(device: &mut dyn Table, interface: &str, wanted: &[u32]) -> Result<(), TreatmentError> {
    if device.read()? == wanted {
        return Ok(());
    }
    let queues = device.queues()?;
    let is_default = table(&RssSpread::Default, wanted.len(), queues).is_ok_and(|own| own == wanted);
    device.write(if is_default { &[] } else { wanted })?;
    let mut now = device.read()?;
    if is_default && now != wanted {
        // This driver's own table is another one.
        device.write(wanted)?;
        now = device.read()?;
    }
    is_taken(interface, &now, wanted)
}

fn is_taken(interface: &str, now: &[u32], wanted: &[u32]) -> Result<(), TreatmentError> {
    if now == wanted {
        return Ok(());
    }
    let answered = format!("{}, not {}", shares(now), shares(wanted));
    Err(TreatmentError::NotTaken { doing: doing(interface), answered })
}

/// How many slots each queue has: `queue 0: 64, queue 1: 64`.
fn shares(table: &[u32]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for queue in table {
        *counts.entry(queue).or_insert(0) += 1;
    }
    counts.iter().map(|(queue, slots)| format!("queue {queue}: {slots} slots")).collect::<Vec<_>>().join(", ")
}

/// Queues of a command that sets a table by hand at most: as many as the widest NICs have.
const QUEUES_NAMED_MAX: u32 = 4096;

/// The command that sets a table: how many slots each queue has. The order of the slots is lost.
pub(super) fn by_hand(interface: &str, table: &[u32]) -> String {
    let queues = table.iter().max().map_or(0, |last| last.saturating_add(1));
    // A number that no device has: a command with a weight for each would not fit a line.
    if queues > QUEUES_NAMED_MAX {
        return format!("`ethtool -X {interface} default`");
    }
    let slots = |queue| table.iter().filter(|slot| **slot == queue).count().to_string();
    let weights = (0..queues).map(slots).collect::<Vec<_>>().join(" ");
    format!("`ethtool -X {interface} weight {weights}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_ethtool() {
        let of = |text: &str, slots, queues| table(&text.parse().unwrap(), slots, queues);
        assert_eq!(of("equal 3", 8, 4).unwrap(), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(of("default", 6, 4).unwrap(), [0, 1, 2, 3, 0, 1]);
        assert_eq!(of("weights 6 2", 8, 4).unwrap(), [0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(of("weights 1 0 1", 5, 3).unwrap(), [0, 0, 2, 2, 2]);
        assert_eq!(of("weights 1 1 1", 128, 3).unwrap().len(), 128);
    }

    #[test]
    fn more_queues_than_there_are_are_refused_with_the_limit() {
        let of = |text: &str| table(&text.parse().unwrap(), 128, 2).unwrap_err();
        assert_eq!(
            (of("equal 4"), of("weights 1 1 1")),
            ("1 to 2 queues".to_owned(), "1 to 2 queues".to_owned())
        );
    }

    #[test]
    fn a_driver_that_names_no_queue_is_refused_without_a_panic() {
        for text in ["default", "equal 1", "weights 1"] {
            let refused = table(&text.parse().unwrap(), 128, 0).unwrap_err();
            assert!(refused.contains("no receive queue"), "{text}: {refused}");
        }
    }

    /// A plan has none of them, a message may.
    #[test]
    fn spread_over_no_queue_is_refused_without_a_panic() {
        let spreads = [
            RssSpread::Equal { queues: 0 },
            RssSpread::Weights { weights: Vec::new() },
            RssSpread::Weights { weights: vec![0, 0] },
        ];
        for spread in spreads {
            let refused = table(&spread, 128, 4);
            assert_eq!(
                refused,
                Err("1 to 4 queues, one of which has a weight above 0".to_owned()),
                "{spread:?}"
            );
        }
    }

    #[test]
    fn table_with_the_largest_queue_number_is_undone_by_the_default() {
        assert_eq!(by_hand("eth0", &[u32::MAX, 1]), "`ethtool -X eth0 default`");
        assert_eq!(by_hand("eth0", &[0, 1, 1]), "`ethtool -X eth0 weight 1 2`");
    }

    /// As igb: its own table at the start is not the kernel's, and one that was set counts as configured.
    struct Igb {
        table: Vec<u32>,
        is_configured: bool,
    }

    impl Table for Igb {
        fn read(&mut self) -> Result<Vec<u32>, TreatmentError> {
            Ok(self.table.clone())
        }
        fn queues(&mut self) -> Result<u64, TreatmentError> {
            Ok(2)
        }
        fn write(&mut self, table: &[u32]) -> Result<(), TreatmentError> {
            self.is_configured = !table.is_empty();
            self.table = if table.is_empty() { vec![0, 1, 0, 1] } else { table.to_vec() };
            Ok(())
        }
    }

    #[test]
    fn undo_leaves_no_configured_table_where_the_default_has_the_same_shares() {
        let own = [0, 0, 1, 1];
        let mut device = Igb { table: own.to_vec(), is_configured: false };
        set(&mut device, "pf0", &[0, 0, 0, 0]).unwrap();
        assert!(device.is_configured);
        set_back(&mut device, "pf0", &own).unwrap();
        assert!(!device.is_configured, "the kernel would refuse fewer queues");
        assert_eq!(shares(&device.table), shares(&own));
        // Other shares than the default's can only be set.
        set_back(&mut device, "pf0", &[0, 0, 0, 1]).unwrap();
        assert_eq!((device.table, device.is_configured), (vec![0, 0, 0, 1], true));
    }

    #[test]
    fn shares_are_listed_by_queue() {
        assert_eq!(shares(&[0, 2, 0]), "queue 0: 2 slots, queue 2: 1 slots");
    }
}
