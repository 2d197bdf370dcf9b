//! Packets by queue, from driver counters.
use std::collections::BTreeMap;

use crate::total;
use netduel_model::observation::{InterfaceDelta, Observation};
use netduel_model::trial::Trial;
use netduel_model::workload::Role;
use serde::Serialize;

/// Fewer packets show no distribution over queues or cores.
pub(super) const PACKETS_MIN: u64 = 1000;

/// Packets by queue in one direction.
pub type ByQueue = BTreeMap<u32, u64>;

/// Packets of each receive queue, from the driver's counters; empty where the driver does not count by queue.
///
/// Known names: `rx_queue_0_packets` (virtio, ixgbe, netvsc), `rx0_packets` (mlx4, mlx5), `rx_0_packets` (mana), `queue_0_rx_cnt`
/// (ena), `rx-0.packets` (i40e, iavf), `rx_queue_0_xdp_packets` (veth).
pub fn received(counters: &BTreeMap<String, i64>) -> ByQueue {
    by_queue(counters, "rx")
}

/// Packets of each transmit queue.
pub fn sent(counters: &BTreeMap<String, i64>) -> ByQueue {
    by_queue(counters, "tx")
}

fn by_queue(counters: &BTreeMap<String, i64>, direction: &str) -> ByQueue {
    let [mut plain, mut express] = [ByQueue::new(), ByQueue::new()];
    for (name, change) in counters {
        let Some((queue, is_express)) = queue_of(name, direction) else { continue };
        let packets = u64::try_from(*change).unwrap_or(0);
        let queues = if is_express { &mut express } else { &mut plain };
        total::add(queues.entry(queue).or_default(), packets);
    }
    // Drivers that count both include XDP packets in the total.
    if plain.is_empty() { express } else { plain }
}

/// The queue of a packet counter, and whether it counts XDP packets only.
fn queue_of(name: &str, direction: &str) -> Option<(u32, bool)> {
    let (mut queue, mut directed, mut counts, mut express) = (None, false, false, false);
    for word in words(name) {
        match word {
            "queue" => {}
            "packets" | "pkts" | "cnt" => counts = true,
            "xdp" => express = true,
            word if word == direction && !directed => directed = true,
            word => {
                let number: u32 = word.parse().ok()?;
                if queue.replace(number).is_some() {
                    return None;
                }
            }
        }
    }
    (directed && counts).then_some(())?;
    Some((queue?, express))
}

/// Splits a name into letters and digits: `rx0_packets` is `rx`, `0`, `packets`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|sign: char| !sign.is_ascii_alphanumeric())
        .flat_map(|part| {
            let digits = part.find(|sign: char| sign.is_ascii_digit()).unwrap_or(part.len());
            let (head, tail) = part.split_at(digits);
            [head, tail]
        })
        .filter(|word| !word.is_empty())
}

/// Packets of an arm by queue of the interface of one end, over all its valid trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueUse {
    /// The end.
    pub role: Role,
    /// The host.
    pub host: String,
    /// The interface that carried the most bytes.
    pub interface: String,
    /// Packets by receive queue; empty where the driver does not report them.
    pub received: ByQueue,
    /// Packets by transmit queue.
    pub sent: ByQueue,
}

/// Queues of an arm, by end. `hosts`: the words for client and server.
pub(super) fn of_arm(hosts: &[String; 2], trials: &[&Trial]) -> Vec<QueueUse> {
    let ends = [Role::Client, Role::Server].into_iter().zip(hosts);
    ends.filter_map(|(role, host)| at_end(host, role, trials)).collect()
}

fn at_end(host: &str, role: Role, trials: &[&Trial]) -> Option<QueueUse> {
    let seen: Vec<&Observation> =
        trials.iter().filter_map(|trial| Some(&trial.end(role)?.observation)).collect();
    let interface = carrier(seen.first()?)?.name.clone();
    let (mut received_by, mut sent_by) = (ByQueue::new(), ByQueue::new());
    for observation in seen {
        if let Some(counters) = observation.driver.get(&interface) {
            add(&mut received_by, received(counters));
            add(&mut sent_by, sent(counters));
        }
    }
    let host = host.to_owned();
    Some(QueueUse { role, host, interface, received: received_by, sent: sent_by })
}

fn add(all: &mut ByQueue, more: ByQueue) {
    for (key, packets) in more {
        total::add(all.entry(key).or_default(), packets);
    }
}

/// The interface that carried the most bytes of a host; for a master, its lower interface.
pub(super) fn carrier(observation: &Observation) -> Option<&InterfaceDelta> {
    observation
        .interfaces
        .iter()
        .filter(|interface| !interface.is_master && interface.rx_bytes.saturating_add(interface.tx_bytes) > 0)
        .max_by_key(|interface| interface.rx_bytes.saturating_add(interface.tx_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(names: &[(&str, i64)]) -> BTreeMap<String, i64> {
        names.iter().map(|(name, change)| ((*name).to_owned(), *change)).collect()
    }

    #[test]
    fn queue_counters_of_all_drivers_are_parsed() {
        for name in [
            "rx_queue_3_packets",
            "rx3_packets",
            "rx_3_packets",
            "queue_3_rx_cnt",
            "rx-3.packets",
            "rx_queue_3_xdp_packets",
        ] {
            assert_eq!(received(&counters(&[(name, 7)])), [(3, 7)].into(), "{name}");
            assert_eq!(sent(&counters(&[(&name.replace("rx", "tx"), 7)])), [(3, 7)].into(), "{name}");
        }
        for name in [
            "rx_packets",
            "rx_queue_3_bytes",
            "rx3_xdp_drop",
            "queue_3_rx_drops",
            "cpu3_rx_packets",
            "rx_3_4_packets",
        ] {
            assert_eq!(received(&counters(&[(name, 7)])), ByQueue::new(), "{name}");
        }
    }

    #[test]
    fn xdp_packets_are_counted_once() {
        let both =
            counters(&[("rx_queue_0_packets", 10), ("rx_queue_0_xdp_packets", 4), ("rx_queue_1_packets", 5)]);
        assert_eq!(received(&both), [(0, 10), (1, 5)].into());
    }
}
