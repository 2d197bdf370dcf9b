//! Queues, cores and known limits in words.
use std::collections::BTreeMap;

use netduel_model::metric::Metric;
use netduel_stats::summary;

use super::text::percent;
use crate::analysis::{ArmAnalysis, QueueUse, WorkloadAnalysis};

/// The share of a known limit that each arm reached; empty where no limit is known.
pub fn limit_shares(workload: &WorkloadAnalysis) -> Vec<String> {
    workload.arms.iter().filter_map(|arm| share(workload, arm)).collect()
}

/// Queue and CPU distribution at each end of each arm, over all valid trials.
pub fn queues(workload: &WorkloadAnalysis) -> Vec<String> {
    let of_end = |arm: &ArmAnalysis, end: &QueueUse| {
        let mut parts = Vec::new();
        for (what, queues) in [("received by", &end.received), ("sent by", &end.sent)] {
            parts.extend(spread(queues).map(|said| format!("{what} queue {said}")));
        }
        parts.extend(spread(&end.cores).map(|said| format!("processed by core {said}")));
        let QueueUse { role, host, interface, .. } = end;
        (!parts.is_empty()).then(|| {
            format!("{}: at {role} {host} packets of {interface} were {}", arm.arm, parts.join("; "))
        })
    };
    let of_arm = |arm: &ArmAnalysis| match super::packets::spreads(arm) {
        told if told.is_empty() => arm.queues.iter().filter_map(|end| of_end(arm, end)).collect(),
        told => told,
    };
    workload.arms.iter().flat_map(|arm| -> Vec<String> { of_arm(arm) }).collect()
}

/// The busiest of several and their shares: `0 (61 %), 1 (39 %)`; absent without packets.
pub(super) fn spread<K: Ord + Copy + std::fmt::Display>(packets: &BTreeMap<K, u64>) -> Option<String> {
    const MOST: usize = 8;
    let all: u64 = packets.values().sum();
    let mut by_packets: Vec<(K, u64)> = packets.iter().map(|(key, packets)| (*key, *packets)).collect();
    by_packets.sort_by_key(|(key, packets)| (std::cmp::Reverse(*packets), *key));
    by_packets.retain(|(_, packets)| *packets > 0);
    let told: Vec<String> = by_packets
        .iter()
        .take(MOST)
        .map(|(key, packets)| format!("{key} ({})", percent(*packets as f64 / all.max(1) as f64)))
        .collect();
    let more = by_packets.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (all > 0).then(|| told.join(", ") + &more)
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
    let median = summary::median(&values.numbers())?;
    Some(format!("{}: {}", arm.arm, expected.share_words(median)))
}
