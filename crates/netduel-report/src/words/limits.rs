//! Queues, cores and known limits in words.
use std::collections::BTreeMap;

use netduel_model::metric::Metric;

use super::text::{end_and_host, percent};
use crate::analysis::{ArmAnalysis, Bound, Machine, QueueUse, WorkloadAnalysis};
use crate::total::Total;

/// The share of a known limit that each arm reached; empty where no limit is known.
pub fn limit_shares(workload: &WorkloadAnalysis) -> Vec<String> {
    workload.arms.iter().filter_map(|arm| share(workload, arm)).collect()
}

/// Queue and CPU distribution at one end of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRow {
    /// The arm.
    pub arm: String,
    /// Role and host: `client a`.
    pub end: String,
    /// The interface.
    pub interface: String,
    /// Queues with their shares of the packets; absent without queue counters.
    pub queues: Option<String>,
    /// Cores with their shares of the packets of the end's program; absent when it does not count them.
    pub cores: Option<String>,
    /// Threads, NUMA nodes, uneven distribution, XDP mode; empty without any.
    pub remarks: Vec<String>,
}

/// Queue and CPU distribution at each end of each arm, over all valid trials.
pub fn queues(workload: &WorkloadAnalysis) -> Vec<QueueRow> {
    let of_end = |arm: &ArmAnalysis, end: &QueueUse| {
        let directions = [("receive", &end.received), ("transmit", &end.sent)];
        let queues: Vec<String> = directions
            .into_iter()
            .filter_map(|(direction, queues)| Some(format!("{direction} {}", spread(queues)?)))
            .collect();
        (!queues.is_empty()).then(|| QueueRow {
            arm: arm.arm.to_string(),
            end: end_and_host(end.role, &end.host),
            interface: end.interface.clone(),
            queues: Some(queues.join("; ")),
            cores: None,
            remarks: Vec::new(),
        })
    };
    let of_arm = |arm: &ArmAnalysis| match super::packets::spreads(arm) {
        none if none.is_empty() => arm.queues.iter().filter_map(|end| of_end(arm, end)).collect(),
        some => some,
    };
    workload.arms.iter().flat_map(|arm| -> Vec<QueueRow> { of_arm(arm) }).collect()
}

/// Arm, machine and cores with their shares of all packets of the machine. Not for an arm with CPU contention: there the other
/// processes may have sent or received a large part of them.
pub fn packets_by_core(workload: &WorkloadAnalysis) -> Vec<[String; 3]> {
    let of_arm = |arm: &ArmAnalysis| -> Vec<[String; 3]> {
        let of_machine = |machine: &Machine| {
            let packets: BTreeMap<u16, u64> =
                machine.cores.iter().filter_map(|core| Some((core.core, core.packets?))).collect();
            Some([arm.arm.to_string(), machine.title.clone(), spread(&packets)?])
        };
        arm.machines.iter().filter_map(of_machine).collect()
    };
    workload.arms.iter().filter(|arm| !arm.has_cpu_contention()).flat_map(of_arm).collect()
}

/// The busiest entries and their shares: `0 (61 %), 1 (39 %)`; absent without packets.
pub(super) fn spread<K: Ord + Copy + std::fmt::Display>(packets: &BTreeMap<K, u64>) -> Option<String> {
    const SHOWN_MAX: usize = 8;
    let all: u64 = packets.values().total();
    let mut by_packets: Vec<(K, u64)> = packets.iter().map(|(key, packets)| (*key, *packets)).collect();
    by_packets.sort_by_key(|(key, packets)| (std::cmp::Reverse(*packets), *key));
    by_packets.retain(|(_, packets)| *packets > 0);
    let shown: Vec<String> = by_packets
        .iter()
        .take(SHOWN_MAX)
        .map(|(key, packets)| format!("{key} ({})", percent(*packets as f64 / all.max(1) as f64)))
        .collect();
    let more = by_packets.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (all > 0).then(|| shown.join(", ") + &more)
}

/// The share of the limit that an arm's throughput reached, by the median of its trials.
fn share(workload: &WorkloadAnalysis, arm: &ArmAnalysis) -> Option<String> {
    let expected = arm.expected.as_ref()?;
    let throughput = workload
        .judged
        .iter()
        .chain(&workload.unjudged)
        .find(|metric| metric.metric == Metric::Throughput)?;
    let values = throughput.arms.iter().find(|values| values.arm == arm.arm)?;
    let (median, bound) = values.quantile(throughput.metric, 0.5)?;
    let sign = bound.map_or("", Bound::sign);
    Some(format!("{}: {sign}{}", arm.arm, expected.share_words(median)))
}
