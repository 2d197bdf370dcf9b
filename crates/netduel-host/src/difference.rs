//! Computes an observation from two readings. Pure. Handles counters that wrap, are reset, or disappear.
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::observation::{InterfaceDelta, Observation, Presence, ProcessUsage};

use crate::link::{Counters, Link};
use crate::reading::Reading;
use crate::{interrupts, processor, protocol, queueing, softnet};

/// The differences between two readings. `tick_ns` is the length of a clock tick; `observer_cpu_ns` is filled in by the caller.
pub(crate) fn observation(before: &Reading, after: &Reading, tick_ns: u64) -> Observation {
    let (stat_before, stat_after) = (text(&before.stat), text(&after.stat));
    let (links_before, links_after) = (before.present(), after.present());
    let (interrupts, interrupts_by_core) =
        interrupts::differences(&text(&before.interrupts), &text(&after.interrupts));
    let wall_ns = after.monotonic_ns.saturating_sub(before.monotonic_ns);
    let realtime_ns = after.realtime_ns.wrapping_sub(before.realtime_ns);
    Observation {
        concurrent_tests: 0,
        placement: None,
        link_events: None,
        identity: None,
        control: None,
        wall_ns,
        clock_step_ns: realtime_ns.wrapping_sub(wall_ns).cast_signed(),
        cores: processor::core_times(&stat_before, &stat_after, tick_ns),
        process: process(before, after),
        interrupts,
        interrupts_by_core,
        context_switches: processor::context_switches(&stat_before, &stat_after),
        softnet: softnet::differences(&text(&before.softnet), &text(&after.softnet)),
        interfaces: interfaces(before, after, &links_before, &links_after),
        driver: drivers(before, after, &links_after),
        protocol: protocols(before, after),
        observer_cpu_ns: 0,
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn process(before: &Reading, after: &Reading) -> ProcessUsage {
    let (first, last) = (before.usage, after.usage);
    ProcessUsage {
        user_ns: last.user_ns.saturating_sub(first.user_ns),
        system_ns: last.system_ns.saturating_sub(first.system_ns),
        voluntary_switches: last.voluntary_switches.saturating_sub(first.voluntary_switches),
        involuntary_switches: last.involuntary_switches.saturating_sub(first.involuntary_switches),
    }
}

fn texts<'a>(of: &'a [Cow<'a, str>; 3]) -> protocol::Texts<'a> {
    protocol::Texts { snmp: &of[0], snmp6: &of[1], netstat: &of[2] }
}

fn protocols(before: &Reading, after: &Reading) -> BTreeMap<String, i64> {
    let first = [text(&before.snmp), text(&before.snmp6), text(&before.netstat)];
    let last = [text(&after.snmp), text(&after.snmp6), text(&after.netstat)];
    protocol::differences(texts(&first), texts(&last))
}

/// Links are matched by index: the same name under another index is another device, which is reported as one removed and one
/// added device.
fn interfaces(first: &Reading, last: &Reading, before: &[Link], after: &[Link]) -> Vec<InterfaceDelta> {
    let queueing = [queueing::dropped(&first.queueing), queueing::dropped(&last.queueing)];
    let dropped = |index: u32| {
        let [first, last] = queueing.each_ref().map(|all| all.get(&index).copied().unwrap_or_default());
        [
            (first.sending, last.sending),
            (first.receiving, last.receiving),
            (first.overlimits, last.overlimits),
        ]
        .map(|(first, last)| queueing::difference(first, last))
    };
    let all = || before.iter().chain(after);
    let masters: BTreeSet<u32> = all().filter_map(|link| link.master).collect();
    let name_of =
        |index: u32| after.iter().chain(before).find(|link| link.index == index).map(|l| l.name.clone());
    let described = |link: &Link| InterfaceDelta {
        name: link.name.clone(),
        index: link.index,
        is_master: masters.contains(&link.index),
        master: link.master.and_then(name_of),
        bus: link.bus.clone(),
        ..InterfaceDelta::default()
    };
    let mut found: Vec<InterfaceDelta> = after
        .iter()
        .map(|link| {
            let old = before.iter().find(|old| old.index == link.index);
            // An interface can lack counters (in some namespaces). Then only its presence is known.
            let last = link.counters.unwrap_or_default();
            let (presence, first) = match old {
                None => (Presence::Added, Counters::default()),
                Some(old) => match old.counters.unwrap_or_default() {
                    first if was_reset(&first, &last) => (Presence::Added, Counters::default()),
                    first => (Presence::Unchanged, first),
                },
            };
            let [qdisc_dropped, ingress_dropped, qdisc_overlimits] = dropped(link.index);
            let described = InterfaceDelta {
                presence,
                qdisc_dropped,
                ingress_dropped,
                qdisc_overlimits,
                ..described(link)
            };
            counted(described, &first, &last)
        })
        .collect();
    let gone = before.iter().filter(|old| !after.iter().any(|link| link.index == old.index));
    found.extend(gone.map(|old| InterfaceDelta { presence: Presence::Removed, ..described(old) }));
    found
}

/// Whether the driver reset its counters: packets and bytes never decrease otherwise. Such a device counts as added during the trial,
/// with its counts since the reset.
fn was_reset(first: &Counters, last: &Counters) -> bool {
    last.rx_packets < first.rx_packets
        || last.tx_packets < first.tx_packets
        || last.rx_bytes < first.rx_bytes
        || last.tx_bytes < first.tx_bytes
}

fn counted(mut delta: InterfaceDelta, first: &Counters, last: &Counters) -> InterfaceDelta {
    delta.rx_bytes = last.rx_bytes.saturating_sub(first.rx_bytes);
    delta.tx_bytes = last.tx_bytes.saturating_sub(first.tx_bytes);
    delta.rx_packets = last.rx_packets.saturating_sub(first.rx_packets);
    delta.tx_packets = last.tx_packets.saturating_sub(first.tx_packets);
    // Drops and errors are sums that some drivers compute without a lock: a small decrease is not a reset.
    delta.rx_dropped = last.rx_dropped.saturating_sub(first.rx_dropped);
    delta.tx_dropped = last.tx_dropped.saturating_sub(first.tx_dropped);
    delta.rx_errors = last.rx_errors.saturating_sub(first.rx_errors);
    delta.tx_errors = last.tx_errors.saturating_sub(first.tx_errors);
    delta
}

/// Raw differences of the drivers' counters: some are gauges and may decrease. A removed device has none; an added device and a new
/// counter (more queues) count from 0.
fn drivers(before: &Reading, after: &Reading, links: &[Link]) -> BTreeMap<String, BTreeMap<String, i64>> {
    let mut found = BTreeMap::new();
    for last in &after.drivers {
        let Some(link) = links.iter().find(|link| link.index == last.index) else { continue };
        let old = before.drivers.iter().find(|first| first.index == last.index);
        let first: BTreeMap<&str, u64> = old
            .map(|old| old.names.iter().map(String::as_str).zip(old.values.iter().copied()).collect())
            .unwrap_or_default();
        let changed: BTreeMap<String, i64> = last
            .names
            .iter()
            .zip(&last.values)
            .filter_map(|(name, value)| {
                let change = value.wrapping_sub(first.get(name.as_str()).copied().unwrap_or(0)).cast_signed();
                (change != 0).then(|| (name.clone(), change))
            })
            .collect();
        if !changed.is_empty() {
            found.insert(link.name.clone(), changed);
        }
    }
    found
}
