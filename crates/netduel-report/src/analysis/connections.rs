//! Congestion control and MSS of the TCP connections of an arm, as its trials recorded them. Trials with other values are trials of another
//! configuration, whatever changed it. It names no cause, and reads no settings of hosts.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::sample::TcpInfo;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::warning::Warning;
use netduel_model::workload::{Role, Workload};

/// From here on the MSS can be half of the largest window that the peer has offered (`tcp_bound_to_half_wnd` in include/net/tcp.h), which
/// depends on the traffic: Linux before 4.20 began with 29,200 bytes. Only loopback and veth have such an MTU.
const MSS_OF_WINDOW: u64 = 14_600;
/// Values that a warning names: those that came first.
const VALUES_MAX: usize = 4;
/// Ranges of blocks that a value has in words.
const RANGES_MAX: usize = 8;

/// A value of the connections of an end, in words; absent where it recorded none.
type Value = fn(&Workload, &TrialEnd) -> Option<String>;

/// What is compared. Connections that carry transactions can have another congestion control than those of the load beside them.
const COMPARED: [(&str, Value); 3] = [
    ("congestion control", congestion_control),
    ("congestion control of new connections", congestion_control_of_transactions),
    ("MSS", segment_size),
];

/// The warnings of a workload on an arm: at most one for each end of each host. `trials`: its valid ones.
pub(super) fn differing(
    plan: &ResolvedPlan,
    arm: &Arm,
    workload: &Workload,
    trials: &[&Trial],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for role in [Role::Client, Role::Server] {
        let mut by_host: BTreeMap<&HostName, Vec<(u32, &TrialEnd)>> = BTreeMap::new();
        for trial in trials {
            let host = plan.pair_in(arm, trial.slot.block).host(role);
            let end = trial.end(role).map(|end| (trial.slot.block, end));
            by_host.entry(host).or_default().extend(end);
        }
        for (host, ends) in by_host {
            let differences = COMPARED.into_iter().filter_map(|(name, value)| {
                let seen = ends.iter().filter_map(|(block, end)| Some((*block, value(workload, end)?)));
                Some(format!("{name} {}", values_by_block(seen)?))
            });
            let differences: Vec<String> = differences.collect();
            if !differences.is_empty() {
                warnings.push(Warning::ConnectionsDiffered {
                    arm: arm.name.clone(),
                    workload: workload.name.clone(),
                    host: host.clone(),
                    detail: differences.join(", and "),
                });
            }
        }
    }
    warnings
}

/// The records of the connections on which an end sent: what the other ones would send with had no effect.
fn sending(end: &TrialEnd) -> impl Iterator<Item = &TcpInfo> {
    let streams = end.report.streams.iter().filter(|stream| stream.sent_bytes > 0);
    streams.filter_map(|stream| stream.tcp.as_ref())
}

fn congestion_control(_: &Workload, end: &TrialEnd) -> Option<String> {
    let names: BTreeSet<&str> = sending(end).filter_map(|tcp| tcp.congestion.as_deref()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

fn congestion_control_of_transactions(_: &Workload, end: &TrialEnd) -> Option<String> {
    let report = &end.report;
    let parts = report.round_trips.as_ref().and_then(|round_trips| round_trips.parts.as_ref());
    let beside_load = || report.under_load.as_ref().map(|under_load| &under_load.foreign);
    parts.or_else(beside_load)?.congestion.clone()
}

/// `1448 bytes`. The size of a segment matters up to that of all messages in flight, and up to [`MSS_OF_WINDOW`]. Absent where the plan has
/// events: traffic may end on another interface than it began on, or not.
fn segment_size(workload: &Workload, end: &TrialEnd) -> Option<String> {
    let facts = workload.traffic.facts();
    if !facts.events.is_empty() {
        return None;
    }
    let requests = facts.requests.filter(|_| facts.bulk.is_none());
    let in_flight = requests.map(|requests| requests.size.0.saturating_mul(u64::from(requests.outstanding)));
    let ceiling = in_flight.map_or(MSS_OF_WINDOW, |bytes| bytes.min(MSS_OF_WINDOW));
    let sizes = sending(end).filter_map(|tcp| tcp.snd_mss).map(|mss| u64::from(mss).min(ceiling));
    let sizes: BTreeSet<u64> = sizes.collect();
    let (least, most) = (*sizes.first()?, *sizes.last()?);
    let beyond = if most == ceiling { " or more" } else { "" };
    Some(if least == most {
        format!("{most} bytes{beyond}")
    } else {
        format!("{least} to {most} bytes{beyond}")
    })
}

/// `cubic in blocks 1 to 3, reno in blocks 4 to 8`, in the order of their first blocks; absent where all trials have the same value.
fn values_by_block(seen: impl Iterator<Item = (u32, String)>) -> Option<String> {
    let mut by_value: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (block, value) in seen {
        by_value.entry(value).or_default().insert(block);
    }
    let mut by_value: Vec<(String, BTreeSet<u32>)> = by_value.into_iter().collect();
    if by_value.len() < 2 {
        return None;
    }
    by_value.sort_by_key(|(_, blocks)| blocks.first().copied());
    let others: BTreeSet<u32> =
        by_value.iter().skip(VALUES_MAX).flat_map(|(_, blocks)| blocks).copied().collect();
    let named = by_value.iter().take(VALUES_MAX);
    let named = named.map(|(value, blocks)| format!("{value} in {}", in_words(blocks)));
    let others = (!others.is_empty()).then(|| format!("other values in {}", in_words(&others)));
    Some(named.chain(others).collect::<Vec<_>>().join(", "))
}

/// `block 4`, `blocks 1 to 3, 5`; `12 of the blocks 1 to 40` where they have many ranges. Blocks count from 0, their words from 1.
fn in_words(blocks: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        let number = u64::from(*block) + 1;
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    match ranges.as_slice() {
        [(only, last)] if only == last => format!("block {only}"),
        [(first, _), .., (_, last)] if ranges.len() > RANGES_MAX => {
            format!("{} of the blocks {first} to {last}", blocks.len())
        }
        ranges => {
            let words = |(first, last): &(u64, u64)| {
                if first == last { first.to_string() } else { format!("{first} to {last}") }
            };
            format!("blocks {}", ranges.iter().map(words).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_named_by_their_ranges() {
        let words = |blocks: &[u32]| in_words(&blocks.iter().copied().collect());
        assert_eq!(words(&[3]), "block 4");
        assert_eq!(words(&[0, 1, 2]), "blocks 1 to 3");
        assert_eq!(words(&[0, 1, 2, 4, u32::MAX]), "blocks 1 to 3, 5, 4294967296");
        let every_other: Vec<u32> = (0..20).map(|index| 2 * index).collect();
        assert_eq!(words(&every_other), "20 of the blocks 1 to 39");
    }

    #[test]
    fn values_are_named_in_the_order_of_their_first_blocks() {
        let words = |values: &[&str]| {
            values_by_block((0..).zip(values).map(|(block, value)| (block, (*value).to_owned())))
        };
        assert_eq!(words(&[]), None);
        assert_eq!(words(&["reno", "reno"]), None);
        assert_eq!(words(&["reno", "cubic", "reno"]).unwrap(), "reno in blocks 1, 3, cubic in block 2");
        let many = words(&["f", "e", "d", "c", "b", "a"]).unwrap();
        assert_eq!(
            many,
            "f in block 1, e in block 2, d in block 3, c in block 4, other values in blocks 5 to 6"
        );
    }
}
