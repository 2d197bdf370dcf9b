//! Lost packets by location: each is assigned to one drop counter.
use std::collections::BTreeMap;

use netduel_model::observation::InterfaceDelta;
use netduel_model::trial::Trial;
use netduel_model::workload::Role;

use super::DatagramDirection;
use super::machine::Machines;
use super::packets::interface_of;
use crate::total::{self, Total};

/// Lost packets of one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostPackets {
    /// The counter; `None` for packets without a counter at either host.
    pub place: Option<String>,
    /// The end that dropped them; `None` without a counter.
    pub end: Option<Role>,
    /// Number, over all valid trials.
    pub packets: u64,
}

/// How the place of drops in a qdisc begins.
const QDISC: &str = "the qdisc of ";

impl LostPackets {
    /// Whether a qdisc counted them, which counts a dropped buffer as 1 however many packets it holds (`qdisc_drop` in Linux).
    pub fn are_counted_as_buffers(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.starts_with(QDISC))
    }
}

/// Lost packets by counter, largest first, uncounted ones last; absent when a record has more packets received than sent. Counters
/// are checked from the receiver's program to the sender, and no packet is assigned to two of them.
pub(super) fn of_trials(
    trials: &[&Trial],
    ways: &[&DatagramDirection],
    machines: &Machines,
) -> Option<Vec<LostPackets>> {
    let mut places: BTreeMap<(String, Role), u64> = BTreeMap::new();
    let mut unnamed = 0;
    for way in ways {
        let lost = way.lost?;
        let Some(trial) = trials.iter().find(|trial| trial.slot.block == way.block) else { continue };
        let mut left = lost.all;
        for (place, end, count) in named(trial, way, lost.at_socket, machines.shared(trial)) {
            let count = count.min(left);
            left -= count;
            if count > 0 {
                total::add(places.entry((place, end)).or_default(), count);
            }
        }
        total::add(&mut unnamed, left);
    }
    let counted = |((place, end), packets)| LostPackets { place: Some(place), end: Some(end), packets };
    let mut all: Vec<LostPackets> = places.into_iter().map(counted).collect();
    all.sort_by(|one, other| other.packets.cmp(&one.packets).then_with(|| one.place.cmp(&other.place)));
    all.extend((unnamed > 0).then_some(LostPackets { place: None, end: None, packets: unnamed }));
    Some(all)
}

/// Drop counters of a trial with the end that dropped, from the receiver's program to the sender.
fn named(trial: &Trial, way: &DatagramDirection, at_socket: u64, shared: bool) -> Vec<(String, Role, u64)> {
    let (from, to) = (way.sender, way.sender.opposite());
    let (Some(sender), Some(receiver)) = (trial.end(from), trial.end(to)) else {
        return Vec::new();
    };
    let ring_drops = |end: &netduel_model::trial::TrialEnd| {
        end.report.packets.as_ref().map(|packets| packets.drops.clone()).unwrap_or_default()
    };
    let own: u64 = ring_drops(receiver).values().total();
    let mut named: Vec<(String, Role, u64)> = ring_drops(receiver)
        .into_iter()
        .map(|(counter, count)| (format!("{counter} at the receiver"), to, count))
        .collect();
    // An AF_XDP receiver's drops are among those of its sockets.
    named.push(("the receiver's socket".to_owned(), to, at_socket.saturating_sub(own)));
    named.extend(ring_drops(sender).into_iter().map(|(counter, count)| (counter, from, count)));
    let by_name = |end: &netduel_model::trial::TrialEnd| -> Option<InterfaceDelta> {
        let name = interface_of(end)?;
        end.observation.interfaces.iter().find(|interface| interface.name == name).cloned()
    };
    let (leaving, coming) = (by_name(sender), by_name(receiver));
    let queue = leaving.as_ref().and_then(|interface| interface.qdisc_dropped).unwrap_or(0);
    let sent =
        leaving.as_ref().map_or(0, |interface| interface.tx_dropped.saturating_add(interface.tx_errors));
    let refused = way.refused.unwrap_or(0);
    if let Some(interface) = &leaving {
        // Packets that the qdisc refused with an error to the sender were sent later.
        named.push((format!("{QDISC}{} at the sender", interface.name), from, queue.saturating_sub(refused)));
        let at_ring: u64 = ring_drops(sender).values().total();
        named.push((format!("{} at the sender", interface.name), from, sent.saturating_sub(at_ring)));
    }
    if let Some(interface) = &coming {
        let received = interface.rx_dropped.saturating_add(interface.rx_errors);
        // A veth counts drops at its peer on both ends, and drops at a full ring as its own.
        let counted = own.saturating_add(if shared { sent } else { 0 });
        named.push((format!("{} at the receiver", interface.name), to, received.saturating_sub(counted)));
        let ingress = interface.ingress_dropped.unwrap_or(0);
        named.push((format!("the ingress filter of {} at the receiver", interface.name), to, ingress));
    }
    named
}
