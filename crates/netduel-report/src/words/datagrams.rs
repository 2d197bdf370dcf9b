//! The datagrams of a `udp-stream` in words: packets per datagram, pacing, flows and errors.
use std::collections::BTreeMap;

use netduel_model::units::{self, human_bit_rate, human_nanos, three_digits};
use netduel_model::workload::{Role, Traffic};
use netduel_stats::histogram::Histogram;
use netduel_stats::summary;

use super::metric::packet_rate;
use super::text::plain;
use crate::analysis::{ArmAnalysis, DatagramDirection, Packets, WorkloadAnalysis, not_packets};
use crate::total::{self, Total};

/// A sentence for each arm and direction of a workload, all valid trials together; none for other traffic.
pub fn datagrams(workload: &WorkloadAnalysis) -> Vec<String> {
    let both = |arm: &ArmAnalysis| {
        let first = arm.datagrams.first().map(|way| way.sender);
        arm.datagrams.iter().any(|way| Some(way.sender) != first)
    };
    let mut sentences = Vec::new();
    for arm in &workload.arms {
        for sender in [Role::Client, Role::Server] {
            let ways: Vec<&DatagramDirection> =
                arm.datagrams.iter().filter(|way| way.sender == sender).collect();
            if ways.is_empty() {
                continue;
            }
            let direction = if both(arm) { format!(", {}", direction(sender)) } else { String::new() };
            // Tables hold losses and both ends of packets; this is the rest.
            let mut parts = if arm.packets.is_empty() {
                vec![packets(&ways)]
            } else {
                let mut parts = Vec::from_iter(again(&ways));
                parts.extend(not_packets(arm.datagrams.as_slice()).map(|_| packets(&ways)));
                parts
            };
            let packet = packet_bytes(&arm.workload.traffic);
            parts.extend(pace(&ways, packet));
            parts.extend(spread(&ways));
            parts.extend(errors(&ways));
            if parts.is_empty() {
                continue;
            }
            sentences.push(plain(&format!("{}{direction}: {}", arm.arm, parts.join("; "))));
        }
    }
    sentences
}

/// `client to server`.
pub fn direction(sender: Role) -> &'static str {
    match sender {
        Role::Client => "client to server",
        Role::Server => "server to client",
    }
}

fn total(ways: &[&DatagramDirection], of: impl Fn(&DatagramDirection) -> u64) -> u64 {
    ways.iter().map(|way| of(way)).total()
}

/// Duplicate and reordered ones; absent without any.
fn again(ways: &[&DatagramDirection]) -> Option<String> {
    let further =
        [(total(ways, |way| way.duplicates), "duplicate"), (total(ways, |way| way.reordered), "reordered")];
    let further = further.into_iter().filter(|(count, _)| *count > 0);
    let further: Vec<String> = further.map(|(count, what)| format!("{count} {what}")).collect();
    (!further.is_empty()).then(|| further.join(", "))
}

/// The heading of [`datagrams`].
pub fn datagrams_title(workload: &WorkloadAnalysis) -> &'static str {
    let of_packets = workload.arms.iter().any(|arm| !arm.packets.is_empty());
    if of_packets { "Pacing, flows and errors" } else { "Datagrams and packets" }
}

/// The number of packets at both interfaces.
fn packets(ways: &[&DatagramDirection]) -> String {
    let side = |of: fn(&DatagramDirection) -> Option<&Packets>, verb: &str| {
        let all: Vec<&Packets> = ways.iter().map(|way| of(way)).collect::<Option<_>>()?;
        let (count, bytes) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.bytes));
        let name = &all.first()?.interface;
        let length = bytes as f64 / count.max(1) as f64;
        Some(format!("{name} {verb} {count} packets of {} B", units::count(length)))
    };
    let sides = [
        side(|way| way.packets_sent.as_ref(), "sent"),
        side(|way| way.packets_received.as_ref(), "received"),
    ];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    if sides.is_empty() {
        return "packet count unknown: no interface counted the bytes".to_owned();
    }
    let ratios: Vec<f64> = ways.iter().filter_map(|way| way.datagrams_per_packet).collect();
    let ratio =
        summary::median(&ratios).map(|ratio| format!(" ({} datagrams per packet)", three_digits(ratio)));
    sides.join(", ") + &ratio.unwrap_or_default()
}

/// Payload of a packet, bytes, in workloads of packets.
pub(super) fn packet_bytes(traffic: &Traffic) -> Option<f64> {
    traffic.facts().packet_bytes().map(|bytes| bytes as f64)
}

/// Accuracy of pacing. `packet`: payload of a packet, bytes, where rates are in packets per second.
fn pace(ways: &[&DatagramDirection], packet: Option<f64>) -> Option<String> {
    let rate_of =
        |bps: f64| packet.map_or_else(|| human_bit_rate(bps), |bytes| packet_rate(bps / 8.0 / bytes));
    let paced: Vec<_> = ways.iter().filter_map(|way| way.pacing.as_ref()).collect();
    let target = paced.first()?.requested_bps;
    let rates: Vec<f64> = paced.iter().filter_map(|pacing| pacing.sent_bps).collect();
    let mut parts = vec![format!("target {}", rate_of(target))];
    if let Some(rate) = summary::median(&rates) {
        let off = (rate / target - 1.0) * 100.0;
        parts.push(format!("sent {} in the steady window ({off:+.2} %)", rate_of(rate)));
    }
    let mut late: Option<Histogram> = None;
    for one in paced.iter().filter_map(|pacing| pacing.late.as_ref()) {
        match &mut late {
            Some(late) => late.merge(one),
            None => late = Some(one.clone()),
        }
    }
    let burst = ways.iter().filter_map(|way| way.burst).max().unwrap_or(1);
    let lateness = |late: &Histogram| {
        let at = |p| late.percentile(p).map(|value| human_nanos(value as f64));
        let of = if burst == 1 { "datagrams".to_owned() } else { format!("bursts of up to {burst}") };
        Some(format!("{of} left {} late at p50, {} at p99, {} at max", at(50.0)?, at(99.0)?, at(100.0)?))
    };
    parts.extend(late.as_ref().and_then(lateness));
    Some(parts.join(", "))
}

/// Failed calls at both ends, most frequent first; a refusal because of a full queue is not a loss.
fn errors(ways: &[&DatagramDirection]) -> Option<String> {
    const SHOWN: usize = 4;
    let mut counts: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for way in ways {
        for (end, errors) in [("sender", &way.errors[0]), ("receiver", &way.errors[1])] {
            for error in errors {
                total::add(counts.entry((end, &error.call, &error.error)).or_default(), error.count);
            }
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = if counts.len() > SHOWN { " and others" } else { "" };
    let shown: Vec<String> = counts
        .iter()
        .take(SHOWN)
        .map(|((end, call, error), count)| format!("{call} at the {end}: {error} ({count} times)"))
        .collect();
    (!shown.is_empty()).then(|| format!("failed calls: {}{more}", shown.join(", ")))
}

/// Ports and cores of the flows, in the last trial that recorded them.
fn spread(ways: &[&DatagramDirection]) -> Option<String> {
    let flows = &ways.iter().rev().find(|way| way.flows.len() > 1)?.flows;
    let mut cores: BTreeMap<u16, u32> = BTreeMap::new();
    for core in flows.iter().filter_map(|flow| flow.incoming_core) {
        *cores.entry(core).or_default() += 1;
    }
    let ports = flows.iter().map(|flow| flow.from.port());
    let (first, last) = (ports.clone().min()?, ports.max()?);
    let cores: Vec<String> = cores.iter().map(|(core, count)| format!("core {core} for {count}")).collect();
    let came = if cores.is_empty() {
        String::new()
    } else {
        format!("; the last packet of each flow was processed by {}", cores.join(", "))
    };
    Some(format!("in the last trial {} flows from ports {first} to {last}{came}", flows.len()))
}
