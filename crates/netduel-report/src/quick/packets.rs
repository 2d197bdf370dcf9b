//! The packets of an interface in a quick test, beside its datagrams or segments.
use netduel_model::observation::{InterfaceDelta, Observation};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::units::human_si;

use crate::words;

/// The Ethernet header and a VLAN tag, which an interface counts beyond its MTU, bytes.
const LINK_HEADERS: u32 = 14 + 4;

/// The MTU of the interface with the most bytes in an observation, from the snapshot of its host.
pub fn mtu(observation: &Observation, host: &HostSnapshot) -> Option<u32> {
    let name = &busiest(observation)?.name;
    host.interfaces.iter().find(|interface| interface.name == *name)?.mtu
}

/// The interface with the most bytes; absent where none has any.
fn busiest(observation: &Observation) -> Option<&InterfaceDelta> {
    let carried = |interface: &&InterfaceDelta| interface.rx_bytes.saturating_add(interface.tx_bytes);
    let ports = observation.interfaces.iter().filter(|interface| !interface.is_master);
    ports.max_by_key(carried).filter(|interface| carried(interface) > 0)
}

/// Packets of the interface with the most bytes at each end, given with its name and the MTU of that interface, and the note on the counters.
pub(super) fn words(ends: [(&str, &TrialEnd, Option<u32>); 2]) -> Vec<String> {
    let mut counted = Vec::new();
    for (name, end, mtu) in ends {
        counted.extend(busiest(&end.observation).map(|interface| (name, interface, mtu)));
    }
    let note = words::loopback_counters(counted.iter().map(|(_, interface, _)| interface.name.as_str()));
    let of_ends =
        counted.iter().map(|(name, interface, mtu)| format!("{name}: {}", of_interface(interface, *mtu)));
    of_ends.chain(note).collect()
}

/// Datagrams and segments are not packets. A mean length above the MTU shows GSO.
fn of_interface(interface: &InterfaceDelta, mtu: Option<u32>) -> String {
    let direction = |packets: u64, bytes: u64, dropped: u64| {
        if packets == 0 {
            return "none".to_owned();
        }
        let lost = if dropped > 0 { format!(", {dropped} dropped") } else { String::new() };
        let mean = (bytes as f64 / packets as f64).round();
        let is_gso = mtu.is_some_and(|mtu| mean > f64::from(mtu + LINK_HEADERS));
        let kind = if is_gso { ": unsegmented GSO packets" } else { "" };
        format!("{packets} (mean {}{kind}){lost}", human_si(mean, "B"))
    };
    format!(
        "{} sent {}, received {}",
        words::plain(&interface.name),
        direction(interface.tx_packets, interface.tx_bytes, interface.tx_dropped),
        direction(interface.rx_packets, interface.rx_bytes, interface.rx_dropped)
    )
}
