//! The packets of an interface in a quick test, beside its datagrams or segments.
use netduel_model::observation::{InterfaceDelta, Observation};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::units::human_si;

use crate::words;

/// The Ethernet header and a VLAN tag, which an interface counts beyond its MTU, bytes.
const LINK_HEADERS: u32 = 14 + 4;

/// The MTU of the interface with the most bytes in an observation, from the snapshot of its host.
pub fn mtu(observation: &Observation, host: &HostSnapshot) -> Option<u32> {
    let name = &busiest(observation)?.name;
    host.interfaces.iter().find(|interface| interface.name == *name)?.mtu
}

/// The interface with the most bytes.
fn busiest(observation: &Observation) -> Option<&InterfaceDelta> {
    let carried = |interface: &&InterfaceDelta| interface.rx_bytes.saturating_add(interface.tx_bytes);
    observation.interfaces.iter().filter(|interface| !interface.is_master).max_by_key(carried)
}

/// Packets of the interface with the most bytes: datagrams and segments are not packets. A mean length above its MTU shows GSO.
pub(super) fn words(observation: &Observation, mtu: Option<u32>) -> Option<String> {
    let interface = busiest(observation)?;
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
    (interface.rx_bytes.saturating_add(interface.tx_bytes) > 0).then(|| {
        format!(
            "{} sent {}, received {}",
            words::plain(&interface.name),
            direction(interface.tx_packets, interface.tx_bytes, interface.tx_dropped),
            direction(interface.rx_packets, interface.rx_bytes, interface.rx_dropped)
        )
    })
}
